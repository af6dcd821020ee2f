"""Convolutions of many channels and taps, by panels of positions, against sums in double precision."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx


def convolve(x, w, bias, strides, dilations, pads, groups):
    """In f64, of any number of spatial dimensions."""
    spatial = x.ndim - 2
    before_after = list(zip(pads[:spatial], pads[spatial:]))
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *before_after])
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    sizes = [
        (size - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, dilation, stride in zip(x.shape[3:], w.shape[3:], dilations, strides)
    ]
    y = np.zeros((x.shape[0], groups, w.shape[1], *sizes))
    for tap in np.ndindex(*w.shape[3:]):
        window = tuple(
            slice(k * dilation, k * dilation + stride * (size - 1) + 1, stride)
            for k, dilation, stride, size in zip(tap, dilations, strides, sizes)
        )
        y += np.einsum("ngc...,gfc->ngf...", x[(..., *window)], w[(..., *tap)])
    return y.reshape(x.shape[0], -1, *sizes) + bias.reshape(-1, *[1] * spatial)


@pytest.mark.parametrize("images, channels, size, filters, kernel, strides, dilations, pads, groups", [
    (1, 24, (28, 28), 64, (5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 1),
    (1, 24, (28, 28), 64, (3, 3), (1, 1), (2, 2), (2, 2, 2, 2), 1),
    (1, 24, (28, 28), 130, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),  # planes of even and odd columns, 14x14
    (1, 24, (29, 31), 72, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),  # a plane for each column of the kernel
    (1, 24, (28, 28), 8, (5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 1),  # one tile: nothing is packed
    (1, 24, (28, 28), 20, (5, 3), (1, 1), (1, 2), (2, 2, 2, 2), 1),  # the last tile is cut
    (2, 32, (19, 23), 48, (3, 4), (1, 1), (1, 1), (2, 0, 1, 3), 2),
    (1, 20, (300,), 40, (7,), (1,), (1,), (3, 3), 1),
    (1, 20, (303,), 40, (7,), (3,), (2,), (3, 5), 1),  # gathered
    (1, 9, (6, 9, 11), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), 1),
])  # fmt: skip
@pytest.mark.parametrize("cpu", ["", "haswell"])
@pytest.mark.parametrize("is_open", [False, True])
def test_against_doubles(images, channels, size, filters, kernel, strides, dilations, pads, groups, cpu, is_open):
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels // groups, *kernel)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    shape = ["images", channels, *size] if is_open else x.shape
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads, strides=strides, dilations=dilations, group=groups),
         helper.make_node("Relu", ["c"], ["y"])],
        "panels",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected = np.maximum(convolve(x, w, bias, strides, dilations, pads, groups), 0)
    options = sardonyx.SessionOptions()
    options.cpu = cpu
    for threads in (1, 2):
        options.intra_op_num_threads = threads
        (y,) = sardonyx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        assert y.shape == expected.shape
        assert np.linalg.norm(y - expected) <= 1e-6 * np.linalg.norm(expected)
