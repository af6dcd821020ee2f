"""Convolutions whose windows tile registers read from lines with pads, and others of their kind."""

import numpy as np
import onnx
import pytest
from numerics import vectors  # noqa: F401
from onnx import helper, numpy_helper

import sardonyx as sdx

# Images, channels, size, filters, kernel, dilations, pads.
FORMS = [
    (1, 64, (14, 14), 32, (3, 3), (1, 1), (1, 1, 1, 1)),
    (2, 64, (9, 56), 70, (3, 3), (1, 1), (1, 1, 1, 1)),
    (1, 128, (7, 7), 96, (3, 3), (1, 1), (1, 1, 1, 1)),
    (3, 64, (5, 6), 33, (3, 3), (1, 1), (0, 0, 0, 0)),
    (1, 64, (33, 5), 32, (5, 2), (3, 1), (6, 0, 6, 1)),
    (2, 192, (8, 17), 20, (1, 3), (1, 1), (0, 2, 0, 0)),
    (1, 64, (12, 11), 40, (3, 1), (2, 1), (3, 0, 1, 0)),
    (1, 64, (10, 30), 24, (2, 7), (1, 1), (0, 3, 1, 9)),
    (1, 512, (7, 7), 544, (3, 3), (1, 1), (1, 1, 1, 1)),
    (1, 64, (6, 3), 32, (3, 3), (1, 1), (1, 1, 1, 1)),
]


def convolve(x, w, dilations, pads):
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    height = x.shape[2] - dilations[0] * (w.shape[2] - 1)
    width = x.shape[3] - dilations[1] * (w.shape[3] - 1)
    y = 0
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            part = x[:, :, i * dilations[0] :][:, :, :height, j * dilations[1] :][..., :width]
            y = y + np.einsum("nchw,fc->nfhw", part, w[:, :, i, j], optimize=True)
    return y


def run(node, feeds, constants, options):
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()],
        [helper.make_tensor_value_info("y", onnx.TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return sdx.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_bytes(form, threads):
    images, channels, size, filters, kernel, dilations, pads = form
    rng = np.random.default_rng(filters)
    x = rng.integers(0, 256, (images, channels, *size)).astype(np.uint8)
    w = rng.integers(-128, 128, (filters, channels, *kernel)).astype(np.int8)
    zero = np.array(77, np.uint8)
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], kernel_shape=kernel, dilations=dilations, pads=pads)
    options = sdx.SessionOptions()
    options.intra_op_num_threads = threads
    y = run(node, {"x": x}, {"w": w, "z": zero}, options)
    want = convolve(x.astype(np.float64) - 77, w.astype(np.float64), dilations, pads)
    np.testing.assert_array_equal(y, want.astype(np.int64))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_bf16(form):
    images, channels, size, filters, kernel, dilations, pads = form
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels, *kernel)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], kernel_shape=kernel, dilations=dilations, pads=pads)
    options = sdx.SessionOptions()
    options.precision = "bf16"
    y = run(node, {"x": x}, {"w": w, "b": bias}, options)
    want = convolve(x.astype(np.float64), w.astype(np.float64), dilations, pads) + bias.reshape(-1, 1, 1)
    assert np.abs(y - want).max() < 0.02 * np.abs(want).max()
