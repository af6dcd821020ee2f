"""Sessions of nodes at the shapes of what they are fed."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import sardonyx


def model_of(nodes, feeds, outputs=("y",), opset=17, inits=(), is_open=False):
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(a.dtype),
            [f"{name}{dim}" for dim in range(a.ndim)] if is_open else a.shape,
        )
        for name, a in feeds.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs], list(inits))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString()


def run(nodes, feeds, outputs=("y",), opset=17, inits=(), is_open=False, engine=sardonyx):
    options = engine.SessionOptions()
    options.log_severity_level = 4
    model = model_of(nodes, feeds, outputs, opset, inits, is_open)
    return engine.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def same_as_onnxruntime(*args, rtol=1e-5, atol=1e-6, **more):
    want = run(*args, engine=onnxruntime, **{k: v for k, v in more.items() if k != "is_open"})
    for got, expected in zip(run(*args, **more), want):
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
        assert got.shape == expected.shape
