"""The examples of docs/howto/CustomOps.md do what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
PAGE = (ROOT / "docs" / "howto" / "CustomOps.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "include").symlink_to(ROOT / "include")
    return tmp_path


def call(command, folder, **variables):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "SARDONYX_CACHE_DIR": str(folder / "cache"), **variables}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python(folder, number):
    text = blocks("python")[number]
    (expected,) = re.findall(r"^print\(.*\)  # (.*)$", text, re.M)
    assert call([sys.executable, "-c", text], folder).strip() == expected


def test_library(folder):
    (source,) = blocks("cpp")
    (folder / "clip_ops.cpp").write_text(source)
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 22, "com.example" : 1]>'
            " m () => (float[3] y) <float[3] x = {-7, 0.5, 9}> { y = com.example.ClipBoth<most = 2.0>(x) }"
        ),
        folder / "clip.onnx",
    )
    (commands,) = blocks("sh")
    output = call(["sh", "-ec", commands], folder, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
    assert "y: float [3]" in output and "-2 0.5 2" in output
