"""TensorScatter against the specification's loop."""

import numpy as np
import pytest
from numerics import constant, run
from onnx import helper


def expected(cache, update, indices, mode, axis):
    result = cache.copy()
    axis %= cache.ndim
    for prefix in np.ndindex(cache.shape[:axis]):
        for i in range(update.shape[axis]):
            at = (0 if indices is None else indices[prefix[0]]) + i
            if mode == "circular":
                at %= cache.shape[axis]
            result[(*prefix, at)] = update[(*prefix, i)]
    return result


def scatter(cache, update, indices, mode, axis, shapes=None):
    feeds = {"c": cache, "u": update}
    if indices is not None:
        feeds["i"] = indices
    node = helper.make_node("TensorScatter", list(feeds), ["y"], mode=mode, axis=axis)
    return run([node], feeds, ["y"], shapes and {n: list(a.shape) for n, a in feeds.items()}, opset=24)[0]


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_against_loop(mode, is_static):
    rng = np.random.default_rng(11)
    for case in range(8):
        rank = int(rng.integers(2, 5))
        axis = int(rng.integers(1, rank))
        shape = rng.integers(1, 6, rank)
        if case % 4 == 3:
            shape[rng.integers(rank)] = 0
        length = int(rng.integers(0, shape[axis] + 1))
        dtype = [np.float32, np.int8, bool, np.float64, np.float16][case % 5]
        cache = rng.integers(0, 100, shape).astype(dtype)
        shape[axis], extent = length, shape[axis]
        update = rng.integers(0, 100, shape).astype(dtype)
        low, high = (-20, 20) if mode == "circular" else (0, extent - length + 1)
        indices = rng.integers(low, high, shape[0]) if case % 3 else None
        if rng.random() < 0.5:
            axis -= rank
        got = scatter(cache, update, indices, mode, axis, is_static)
        np.testing.assert_array_equal(got, expected(cache, update, indices, mode, axis))


@pytest.mark.parametrize("start", [0, 2, 3, 7])
def test_constant_indices(start):
    rng = np.random.default_rng(12)
    cache, update = rng.random((1, 2, 4, 3), np.float32), rng.random((1, 2, 2, 3), np.float32)
    nodes = [helper.make_node("TensorScatter", ["c", "u", "i"], ["y"], mode="circular")]
    feeds = {"c": cache, "u": update}
    shapes = {n: list(a.shape) for n, a in feeds.items()}
    [got] = run(nodes, feeds, ["y"], shapes, 24, [constant("i", [start])])
    np.testing.assert_array_equal(got, expected(cache, update, [start], "circular", 2))


@pytest.mark.parametrize("index", [-1, 3, 2**62, -(2**63)])
def test_index_is_checked(index):
    cache, update = np.zeros((2, 4, 3), np.float32), np.ones((2, 2, 3), np.float32)
    with pytest.raises(Exception, match="does not fit into a cache of size 4"):
        scatter(cache, update, np.array([0, index]), "linear", -2)


@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 2, 3), (2, 2, 4)])
def test_sizes_are_checked(shape):
    with pytest.raises(Exception, match="cache"):
        scatter(np.zeros((2, 4, 3), np.float32), np.ones(shape, np.float32), None, "linear", 1)
