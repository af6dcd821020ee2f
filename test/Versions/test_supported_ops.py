"""docs/reference/Operators.md tells what is there: a few of its rows, made anew."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_page_is_current():
    done = subprocess.run([sys.executable, str(ROOT / "utils" / "supported_ops.py"), "--check", "12"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-1000:]
