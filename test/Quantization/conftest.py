import numpy as np
import onnx
import pytest
from onnx import parser


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Each test has a cache and a working folder of its own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def random():
    return np.random.default_rng(1)


@pytest.fixture
def model():
    """A function that makes a model of its text and of arrays for its initialisers."""

    def make(text, opset=17, ir_version=8, **weights):
        graph = parser.parse_graph(text)
        graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=ir_version)
        onnx.checker.check_model(made)
        return made

    return make
