"""What tests of numbers share: they run at three widths of vectors."""

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx

OPTIONS = sdx.SessionOptions()


@pytest.fixture(autouse=True, params=["", "haswell", "x86-64"], ids=["native", "256-bits", "128-bits"])
def vectors(request, monkeypatch):
    """Every test of a module that imports it runs with the machine's own vectors and with the narrower ones."""
    monkeypatch.setattr(OPTIONS, "cpu", request.param)


def run(nodes, feeds, outputs, shapes=None, opset=17, initializers=()):
    """Runs nodes on `feeds`; sizes are left open unless `shapes` tells them."""
    shapes = shapes or {}
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(a.dtype),
            shapes.get(name, [f"{name}{d}" for d in range(a.ndim)]),
        )
        for name, a in feeds.items()
    ]
    graph = helper.make_graph(
        nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], list(initializers)
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return sdx.InferenceSession(model.SerializeToString(), OPTIONS).run(None, feeds)


def constant(name, values, dtype=np.int64):
    return onnx.numpy_helper.from_array(np.array(values, dtype), name)
