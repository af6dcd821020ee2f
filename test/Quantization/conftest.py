import collections

import numpy as np
import onnx
import pytest
from onnx import parser

FEW_CASES = 4
EVERY = 5


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="all cases of tests that have many, not a sample of them")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a case that takes seconds, which a sample leaves out")


def pytest_collection_modifyitems(config, items):
    """Of a test with many cases the first few run, and every fifth of the others, and none that is marked slow."""
    if config.getoption("--whole") or any("::" in argument for argument in config.args):
        return
    count = collections.Counter()
    left = []
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        count[test] += 1
        if item.get_closest_marker("slow") or (count[test] > FEW_CASES and count[test] % EVERY):
            left.append(item)
    config.hook.pytest_deselected(items=left)
    chosen = {id(item) for item in left}
    items[:] = [item for item in items if id(item) not in chosen]


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
