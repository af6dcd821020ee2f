"""Convolutions whose positions are whole panels of 48 and one to four more, against sums in double precision."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx


def convolve(x, w, bias, stride, pad, groups):
    """In f64."""
    n, channels, *_ = x.shape
    filters, depth, *kernel = w.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))[:, :, ::stride, ::stride]
    grouped = windows.reshape(n, groups, depth, *windows.shape[2:])
    weights = w.astype(np.float64).reshape(groups, filters // groups, depth, *kernel)
    y = np.einsum("ngchwij,gocij->ngohw", grouped, weights, optimize=True)
    return y.reshape(n, filters, *y.shape[3:]) + bias[:, None, None]


@pytest.mark.parametrize("shape", [
    # images, channels, filters, kernel, stride, output rows, columns, groups
    (1, 64, 32, 1, 1, 14, 14, 1),
    (2, 64, 37, 1, 1, 14, 14, 1),  # a tile of five filters
    (1, 32, 16, 1, 2, 14, 14, 1),  # gathered, by way of planes
    (1, 12, 20, 3, 1, 10, 10, 1),  # padded
    (1, 16, 24, 3, 2, 14, 14, 1),
    (1, 32, 48, 3, 2, 10, 10, 2),
    (1, 20, 9, 5, 1, 22, 22, 1),
    (1, 64, 32, 1, 1, 7, 7, 1),  # one position, and another form
    (1, 64, 32, 1, 1, 1, 97, 1),  # one position
    (1, 64, 32, 1, 1, 14, 7, 1),  # two
    (1, 64, 32, 1, 1, 3, 17, 1),  # three
    (1, 63, 32, 1, 1, 14, 14, 1),  # no whole number of vectors
])
@pytest.mark.parametrize("threads", [1, 2])
def test_against_doubles(shape, threads):
    images, channels, filters, kernel, stride, rows, columns, groups = shape
    rng = np.random.default_rng(channels)
    pad = kernel // 2
    w = rng.standard_normal((filters, channels // groups, kernel, kernel)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    x = rng.standard_normal((images, channels, rows * stride, columns * stride)).astype(np.float32)
    z = rng.standard_normal((images, filters, rows, columns)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[pad] * 4, strides=[stride] * 2, group=groups),
        helper.make_node("Add", ["c", "z"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, v.shape) for n, v in (("x", x), ("z", z), ("y", z))]
    held = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:2], values[2:], held),
                              opset_imports=[helper.make_opsetid("", 18)], ir_version=9)  # fmt: skip
    options = sardonyx.SessionOptions()
    options.cache = False
    options.intra_op_num_threads = threads
    options.check_bounds = True
    y = sardonyx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x, "z": z})[0]
    exact = np.maximum(convolve(x, w, bias, stride, pad, groups) + z, 0)
    assert np.linalg.norm(y - exact) < 1e-6 * np.linalg.norm(exact)
