"""Convolutions of many channels and taps, by panels of positions, against sums in double precision."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from references import check_convolution

import sardonyx as sdx


@pytest.mark.parametrize("images, channels, size, filters, kernel, strides, dilations, pads, groups", [
    (1, 24, (28, 28), 64, (5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 1),
    (1, 24, (28, 28), 64, (3, 3), (1, 1), (2, 2), (2, 2, 2, 2), 1),
    (1, 24, (28, 28), 130, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),  # planes of even and odd columns, 14x14
    (1, 24, (29, 31), 72, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),  # a plane for each column of the kernel
    (2, 24, (23, 37), 40, (3, 3), (2, 2), (1, 1), (0, 0, 0, 0), 1),  # no padding: such planes with open sizes, too
    (1, 24, (22, 35), 40, (4, 3), (2, 2), (1, 2), (1, 3, 2, 2), 2),  # more padding than taps
    (2, 24, (27, 33), 40, (1, 1), (2, 2), (1, 1), (0, 0, 0, 0), 1),
    (1, 24, (28, 28), 8, (5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 1),  # one tile: nothing is packed
    (1, 24, (28, 28), 20, (5, 3), (1, 1), (1, 2), (2, 2, 2, 2), 1),  # the last tile is cut
    (2, 32, (19, 23), 48, (3, 4), (1, 1), (1, 1), (2, 0, 1, 3), 2),
    (1, 20, (300,), 40, (7,), (1,), (1,), (3, 3), 1),
    (1, 20, (303,), 40, (7,), (3,), (2,), (3, 5), 1),  # gathered
    (7, 20, (4,), 40, (3,), (1,), (1,), (1, 1), 1),  # a short line
    (3, 20, (4,), 36, (3,), (2,), (1,), (1, 1), 1),
    (2, 16, (7, 7), 24, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),  # a panel of three vectors, and one position
    (2, 80, (7, 7), 68, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),  # that position, with filters in the lanes
    (1, 160, (10, 5), 72, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 2),  # two positions
    (1, 72, (17, 3), 100, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 1),
    (2, 64, (28, 28), 64, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),  # 14x14: four
    (1, 64, (1,), 40, (3,), (1,), (1,), (1, 1), 1),
    (2, 16, (5, 16), 24, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 2),
    (1, 16, (9, 7), 24, (3, 3), (1, 1), (12, 5), (12, 5, 12, 5), 1),  # rows of taps that see pads only
    (2, 8, (4, 5), 6, (4, 3), (2, 1), (3, 6), (9, 0, 2, 12), 2),
    (2, 32, (9, 7), 40, (3, 3), (1, 1), (6, 5), (6, 5, 6, 5), 1),  # tap by tap
    (1, 32, (12,), 32, (5,), (1,), (5,), (10, 8), 1),
    (1, 9, (6, 9, 11), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), 1),
])  # fmt: skip
@pytest.mark.parametrize("cpu", ["", "haswell"])
@pytest.mark.parametrize("is_open, has_open_sizes", [(False, False), (True, False), (True, True)], ids=["known", "images", "sizes"])
def test_against_doubles(images, channels, size, filters, kernel, strides, dilations, pads, groups, cpu, is_open, has_open_sizes):
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels // groups, *kernel)).astype(np.float32)
    check_convolution(
        x, w, cpu, 1e-6, is_open, has_open_sizes, strides=strides, dilations=dilations, pads=pads, groups=groups
    )


@pytest.mark.parametrize("size", [7, 14])
@pytest.mark.parametrize("cpu", ["", "haswell"])
@pytest.mark.parametrize("is_known", [True, False])
def test_last_positions_and_what_follows(size, cpu, is_known):
    """A bias, an addend and a Relu of the last positions, which are few."""
    rng = np.random.default_rng(size)
    w, bias = rng.standard_normal((90, 72, 1, 1)).astype(np.float32), rng.standard_normal(90).astype(np.float32)
    x = rng.standard_normal((2, 72, size, size)).astype(np.float32)
    addend = rng.standard_normal((2, 90, size, size)).astype(np.float32)
    shape = [2, 72, size, size] if is_known else ["n", 72, "h", "w"]
    nodes = [
        helper.make_node("Conv", ["x", "w", "bias"], ["c"]),
        helper.make_node("Add", ["c", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info(name, 1, [shape[0], n, *shape[2:]]) for name, n in (("x", 72), ("a", 90))]
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "bias")]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    options = sdx.SessionOptions()
    options.cache, options.cpu = False, cpu
    (y,) = sdx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x, "a": addend})
    expected = np.einsum("fc,nchw->nfhw", w[:, :, 0, 0].astype(np.float64), x) + bias[:, None, None] + addend
    np.testing.assert_allclose(y, np.maximum(expected, 0), rtol=1e-5, atol=2e-5)
