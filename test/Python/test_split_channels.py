"""Convolutions whose channels go in parts through the operators after them, where one thread computes."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx


def run(nodes, x, weights, threads):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, threads
    return sdx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


def windows(x, stride, border):
    """The nine elements that each window of 3x3 sees, in front."""
    x = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=border)
    rows, columns = ((n - 3) // stride + 1 for n in x.shape[2:])
    return np.stack(
        [x[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride] for i in range(3) for j in range(3)]
    )


@pytest.mark.parametrize("batch, channels, size, stride", [(1, 96, 112, 2), (1, 144, 56, 1), (2, 48, 70, 2), (1, 40, 150, 1)])
@pytest.mark.parametrize("kind", ["depthwise", "MaxPool"])
def test_same_as_whole(kind, batch, channels, size, stride):
    random = np.random.default_rng(0)
    x = random.standard_normal((batch, 16, size, size)).astype(np.float32)
    w = (random.standard_normal((channels, 16)) / 4).astype(np.float32)
    v = (random.standard_normal((channels, 9)) / 3).astype(np.float32)
    b, c = random.standard_normal((2, channels)).astype(np.float32)
    window = {"pads": [1, 1, 1, 1], "strides": [stride, stride]}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "v", "c"], ["r"], group=channels, **window)
        if kind == "depthwise"
        else helper.make_node("MaxPool", ["q"], ["r"], kernel_shape=[3, 3], **window),
        helper.make_node("Tanh", ["r"], ["y"]),
    ]
    weights = {"w": w[:, :, None, None], "b": b, "v": v.reshape(channels, 1, 3, 3), "c": c}
    got, whole = (run(nodes, x, weights, threads) for threads in (1, 2))
    q = np.maximum(np.einsum("oi,nihw->nohw", w, x) + b[:, None, None], 0)
    if kind == "depthwise":
        r = np.einsum("knchw,ck->nchw", windows(q, stride, 0), v) + c[:, None, None]
    else:
        r = windows(q, stride, -np.inf).max(axis=0)
    np.testing.assert_allclose(got, np.tanh(r), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got, whole)
