"""Scatters whose indices an Expand has made, as graph networks sum over edges, against numpy."""

import numpy as np
import pytest
from numerics import constant, run
from onnx import helper

import sardonyx as sdx

UFUNCS = {"none": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def scatter(data, indices, updates, axis, reduction):
    result = data.copy()
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place]
        ufunc = UFUNCS[reduction]
        at = tuple(target)
        result[at] = ufunc(result[at], updates[place]) if ufunc else updates[place]
    return result


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("reduction", UFUNCS)
@pytest.mark.parametrize("data, column, expanded, axis", [
    ((7, 5), (9, 1), (9, 5), 0),
    ((7, 5), (9, 1), (9, 3), 0),  # not all columns
    ((7, 5), (1,), (9, 5), 0),  # one index for all
    ((4, 6, 3), (4, 8, 1), (4, 8, 3), 1),
    ((4, 6, 3), (8, 1), (4, 8, 3), 1),  # the same for all batches
    ((4, 6, 3), (1, 8, 1), (4, 8, 3), 1),
    ((4, 6, 3), (4, 1, 1), (4, 8, 3), 1),
    ((4, 6, 3), (4, 1, 2), (4, 6, 2), -1),  # along the last dimension
    ((4, 6, 3), (5, 1, 1), (5, 6, 2), 0),
])  # fmt: skip
def test_expanded_indices(data, column, expanded, axis, reduction, is_open):
    rng = np.random.default_rng(len(expanded) + sum(column))
    d, u = rng.standard_normal(data).astype(np.float32), rng.standard_normal(expanded).astype(np.float32)
    extent = data[axis]
    i = rng.integers(-extent, extent, column)
    if reduction == "none":  # of equal places any may come last
        u = np.ones(expanded, np.float32)
    nodes = [
        helper.make_node("Expand", ["i", "shape"], ["full"]),
        helper.make_node("ScatterElements", ["d", "full", "u"], ["y"], axis=axis, reduction=reduction),
    ]
    shapes = {"i": [size if size == 1 else f"i{k}" for k, size in enumerate(column)]} if is_open else {"d": data, "i": column, "u": expanded}
    (y,) = run(nodes, {"d": d, "i": i, "u": u}, ["y"], shapes, 18, [constant("shape", expanded)])
    full = np.broadcast_to(i, expanded)
    np.testing.assert_allclose(y, scatter(d, np.where(full < 0, full + extent, full), u, axis, reduction), rtol=1e-5, atol=1e-6)


def test_sizes_that_turn_out_to_be_one():
    """The column's size is open, and the Expand repeats it."""
    d, u = np.zeros((7, 5), np.float32), np.ones((9, 5), np.float32)
    nodes = [
        helper.make_node("Expand", ["i", "shape"], ["full"]),
        helper.make_node("ScatterElements", ["d", "full", "u"], ["y"], axis=0, reduction="add"),
    ]
    (y,) = run(nodes, {"d": d, "i": np.array([[3]]), "u": u}, ["y"], {"i": ["n", 1]}, 18, [constant("shape", (9, 5))])
    expected = np.zeros((7, 5), np.float32)
    expected[3] = 9
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("wrong", [7, -8, 2**40])
def test_indices_out_of_range(wrong):
    d, u, i = np.zeros((7, 5), np.float32), np.ones((9, 5), np.float32), np.zeros((9, 1), np.int64)
    i[4] = wrong
    nodes = [
        helper.make_node("Expand", ["i", "shape"], ["full"]),
        helper.make_node("ScatterElements", ["d", "full", "u"], ["y"], axis=0, reduction="add"),
    ]
    with pytest.raises(sdx.Fail, match=f"index {wrong} is out of range for a dimension of size 7"):
        run(nodes, {"d": d, "i": i, "u": u}, ["y"], {"i": ["n", 1]}, 18, [constant("shape", (9, 5))])
