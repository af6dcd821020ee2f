"""TopK against a stable sort."""

import numpy as np
import pytest
from numerics import constant, run, vectors  # noqa: F401
from onnx import helper


def expected(x, k, axis, largest):
    keys = x.astype(np.int64) if x.dtype.kind in "iub" else x.astype(np.float64)
    order = np.argsort(-keys if largest else keys, axis, kind="stable")
    order = np.take(order, range(k), axis)
    return np.take_along_axis(x, order, axis), order


def top(x, k, axis, largest, is_static):
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    count = np.array([k], np.int64)
    if is_static:
        return run([node], {"x": x}, ["v", "i"], {"x": list(x.shape)}, 17, [constant("k", [k])])
    return run([node], {"x": x, "k": count}, ["v", "i"], opset=17)


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
def test_random(is_static):
    rng = np.random.default_rng(5)
    for case in range(10):
        rank = int(rng.integers(1, 5))
        shape = rng.integers(1, 9, rank)
        if case % 5 == 4:
            shape[rng.integers(rank)] = 0
        axis = int(rng.integers(-rank, rank))
        dtype = [np.float32, np.int64, np.uint8, np.float16, np.int32][case % 5]
        x = rng.integers(0, 9, shape).astype(dtype)
        k, largest = int(rng.integers(0, shape[axis] + 1)), case % 2
        for got, want in zip(top(x, k, axis, largest, is_static), expected(x, k, axis, largest)):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_none():
    for got in top(np.zeros((3, 4), np.float32), 0, 1, 1, True):
        assert got.shape == (3, 0)


@pytest.mark.parametrize("rows, columns, k", [(1, 5000, 5000), (700, 65, 65), (300, 300, 7)])
def test_large(rows, columns, k):
    x = np.random.default_rng(6).integers(-500, 500, (rows, columns)).astype(np.float32)
    for got, want in zip(top(x, k, 1, 1, False), expected(x, k, 1, True)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("k", [-1, 5, 2**62])
def test_k_is_checked(k):
    with pytest.raises(Exception, match="and the axis has 4 elements"):
        top(np.zeros((3, 4), np.float32), k, 1, 1, False)


DTYPES = [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]


@pytest.mark.parametrize("size, k", [(130, 3), (130, 60), (130, 130), (1500, 9)])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_ends_of_types(dtype, largest, size, k):
    """The least and the largest numbers, zeros of both signs, infinities and NaN; of equals the first."""
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind == "f":
        info = np.finfo(dtype)
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny, 1, -1]
    else:
        info = np.iinfo(dtype)
        ends = [info.min, info.max, 0, 1, info.max // 2, info.min // 2]
    x = rng.choice(np.array(ends, dtype), (5, size))
    x[4] = ends[1]
    with np.errstate(all="ignore"):
        keys = np.nan_to_num(x.astype(np.longdouble), nan=np.inf, posinf=np.longdouble("1e400"), neginf=-np.longdouble("1e400"))
    order = np.argsort(-keys if largest else keys, 1, kind="stable")[:, :k]
    is_static = size > 1000 or k == 3
    values, indices = top(x, k, 1, largest, is_static)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(np.signbit(values), np.signbit(np.take_along_axis(x, order, 1)))


@pytest.mark.parametrize("size, k", [(64, 6), (1500, 9), (40, 40), (300, 200)])
def test_constants(size, k):
    """Loops of a constant's elements run when the model is loaded."""
    x = np.random.default_rng(8).integers(0, 99, (3, size)).astype(np.float32)
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"]), helper.make_node("Add", ["v", "z"], ["w"])]
    held = [constant("x", x, np.float32), constant("k", [k])]
    values, indices = run(nodes, {"z": np.zeros(1, np.float32)}, ["w", "i"], {"z": [1]}, 17, held)
    for got, want in zip((values, indices), expected(x, k, 1, True)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["equal", "different"])
def test_best_of_constants_by_a_k_that_is_not_known(kind):
    x = np.zeros(4, np.int64) if kind == "equal" else np.array([3, 9, -1, 9])
    node = helper.make_node("TopK", ["x", "k"], ["values", "indices"])
    for k in (0, 3, 4):
        got = run([node], {"k": np.array([k])}, ["values", "indices"], {"k": [1]}, 17, [constant("x", x)])
        np.testing.assert_array_equal(got[0], np.sort(x)[::-1][:k])
        np.testing.assert_array_equal(got[1], np.argsort(-x, kind="stable")[:k])
