"""docs/tutorials/QuantizeAClassifier.md does what it says, from the first block to the last."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "QuantizeAClassifier.md"


def test_tutorial(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, command in {"python": "", "sardonyx": "-m sardonyx"}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore {command} "$@"\n')
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    printed = ""
    for kind, block in re.findall(r"```(sh|python \S+)\n(.*?)```", PAGE.read_text(), re.S):
        if kind != "sh":
            (tmp_path / kind.split()[1]).write_text(block)
        elif not block.startswith("pip install"):
            done = subprocess.run(["bash", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            printed += done.stdout
    assert re.search(r"^top1: before 9\d\.\d+ %, after 9\d", printed, re.M)
    assert "right: 9" in printed and "ended with 3" in printed
    assert (tmp_path / "small.onnx").stat().st_size < 0.3 * (tmp_path / "digits.onnx").stat().st_size
    assert not (tmp_path / "tiny.onnx").exists() and "<svg" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "narrow8.onnx").stat().st_size < (tmp_path / "small.onnx").stat().st_size
