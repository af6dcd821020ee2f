"""docs/reference/OnnxruntimeNames.md is what utils/python_api.py makes."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "utils"))

import python_api  # noqa: E402


def test_page_is_current():
    done = subprocess.run([sys.executable, str(ROOT / "utils" / "python_api.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_are_onnxruntimes():
    """Of the version that the list says, where it is the one installed."""
    onnxruntime = pytest.importorskip("onnxruntime")
    listed = python_api.NAMES.read_text().splitlines()
    if onnxruntime.__version__ != listed[0]:
        pytest.skip(f"the list is of {listed[0]}")
    assert python_api.installed_names() == listed


def test_a_name_that_is_gone_is_told(monkeypatch):
    import sardonyx

    monkeypatch.delattr(sardonyx.OrtValue, "update_inplace")
    assert not python_api.judge("OrtValue.update_inplace")[2]
    monkeypatch.setitem(python_api.REMARKS, "OrtValue.shape", ("absent", ""))
    assert not python_api.judge("OrtValue.shape")[2]
