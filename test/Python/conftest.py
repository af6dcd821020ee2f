import logging
import os
from pathlib import Path

import onnx
import pytest
from onnx import parser

# Tests that want a CUDA device name a driver in a process of their own; others find none, whatever the machine has.
os.environ["SARDONYX_CUDA_DRIVER"] = "/none/libcuda.so.1"

if not (Path(__file__).parents[2] / "lib/Targets/NVPTX").exists():
    collect_ignore_glob = ["test_cuda*.py", "test_device_*.py"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test has a cache of its own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def messages_on_stderr(monkeypatch):
    """pytest's handlers would take what goes to stderr in a program without handlers of its own."""
    from sardonyx import _log

    monkeypatch.setattr(_log, "_logger", logging.Logger("sardonyx"))


@pytest.fixture
def model():
    """Makes a model of ONNX's textual form."""

    def make(graph: str, opset: int = 17) -> onnx.ModelProto:
        return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}')

    return make


@pytest.fixture
def tool():
    """The path of the sardonyx driver."""
    build = os.environ.get("SARDONYX_BUILD")
    path = os.path.join(build or "", "bin", "sardonyx")
    if not build or not os.path.exists(path):
        pytest.skip("SARDONYX_BUILD names no build folder")
    return path
