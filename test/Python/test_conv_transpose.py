"""Transposed convolutions whose phases have any numbers of taps, against sums of products."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx


def transpose(x, w, strides, pads, extra, dilations, group):
    """Every element of x [N,C,D...] adds w [C,F/G,k...] times itself at its place times the strides."""
    rank = x.ndim - 2
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    full = [(size - 1) * s + span + e for size, s, span, e in zip(x.shape[2:], strides, spans, extra)]
    filters = w.shape[1]
    y = np.zeros((x.shape[0], filters * group, *full))
    for g in range(group):
        part = x[:, g * x.shape[1] // group : (g + 1) * x.shape[1] // group].astype(np.float64)
        taps = w[g * w.shape[0] // group : (g + 1) * w.shape[0] // group].astype(np.float64)
        for tap in np.ndindex(*w.shape[2:]):
            to = tuple(slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, size, s in zip(tap, dilations, x.shape[2:], strides))
            y[(slice(None), slice(g * filters, (g + 1) * filters), *to)] += np.einsum("nc...,cf->nf...", part, taps[(..., *tap)])
    cut = tuple(slice(pads[d], full[d] - pads[rank + d]) for d in range(rank))
    return y[(slice(None), slice(None), *cut)]


# Sizes of images, kernel, strides, pads, output_padding, dilations, groups, channels of a group and its filters.
CASES = {
    "3 by 2": ((9, 10), (3, 3), (2, 2), (1, 1, 1, 1), (0, 0), (1, 1), 1, 5, 4),
    "3 by 2, whole": ((9, 10), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 1), 1, 5, 4),
    "5 by 2, whole": ((8, 7), (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), (1, 1), 1, 6, 3),
    "4 by 2": ((8, 7), (4, 4), (2, 2), (1, 1, 1, 1), (0, 0), (1, 1), 1, 6, 3),
    "4 by 2 of groups": ((8, 7), (4, 4), (2, 2), (1, 0, 2, 1), (0, 0), (1, 1), 3, 2, 2),
    "unlike strides": ((6, 11), (4, 5), (1, 3), (0, 2, 3, 1), (0, 2), (1, 1), 2, 3, 2),
    "pads wider than taps": ((12, 12), (3, 3), (2, 2), (5, 4, 4, 5), (0, 0), (1, 1), 1, 3, 3),
    "2 by 2": ((8, 7), (2, 2), (2, 2), (0, 0, 0, 0), (0, 0), (1, 1), 1, 6, 3),
    "stride beyond the kernel": ((5, 6), (2, 2), (3, 3), (0, 0, 0, 0), (0, 0), (1, 1), 1, 3, 2),
    "dilated": ((5, 6), (3, 3), (2, 2), (1, 1, 1, 1), (0, 0), (2, 2), 1, 3, 2),
    "a line": ((31,), (7,), (4,), (2, 2), (1,), (1,), 1, 3, 5),
    "many phases of a line": ((20,), (16,), (8,), (4, 4), (0,), (1,), 1, 4, 5),
    "a volume": ((3, 4, 5), (3, 3, 3), (2, 2, 2), (1,) * 6, (1, 1, 1), (1, 1, 1), 1, 3, 2),
}


@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("name", CASES)
def test_against_sums(name, is_open):
    sizes, kernel, strides, pads, extra, dilations, group, channels, filters = CASES[name]
    rng = np.random.default_rng(len(name))
    x = rng.standard_normal((2, channels * group, *sizes)).astype(np.float32)
    w = rng.standard_normal((channels * group, filters, *kernel)).astype(np.float32)
    bias = rng.standard_normal(filters * group).astype(np.float32)
    node = helper.make_node(
        "ConvTranspose", ["x", "w", "b"], ["y"],
        strides=strides, pads=pads, output_padding=extra, dilations=dilations, group=group,
    )  # fmt: skip
    shape = ["n", x.shape[1], *(f"d{i}" for i in range(len(sizes)))] if is_open else x.shape
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, shape)], [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (y,) = sdx.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    expected = transpose(x, w, strides, pads, extra, dilations, group) + bias.reshape(-1, *[1] * len(sizes))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=2e-5)


def test_infinite_inputs_meet_no_missing_taps():
    """Of 3 taps with a stride of 2 every other result sees one only."""
    x = np.ones((1, 1, 1, 3), np.float32)
    x[..., 1] = np.inf
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[1, 2])], "g",
        [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.ones((1, 1, 1, 3), np.float32), "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (y,) = sdx.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(y[0, 0, 0], [1, 1, np.inf, np.inf, np.inf, 1, 1])
