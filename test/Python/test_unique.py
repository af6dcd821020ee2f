"""Unique against numpy's."""

import ml_dtypes
import numpy as np
import pytest
from numerics import run
from onnx import helper

NAMES = ["y", "first", "inverse", "counts"]


def expected(x, axis, is_sorted):
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first)
        y = np.take(y, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return y, first, inverse, counts


def unique(x, axis, is_sorted, is_static, names=NAMES):
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Unique", ["x"], list(names), sorted=is_sorted, **attributes)
    return run([node], {"x": x}, [n for n in names if n], {"x": list(x.shape)} if is_static else None)


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("is_sorted", [1, 0], ids=["sorted", "unsorted"])
def test_random(is_sorted, is_static):
    rng = np.random.default_rng(17)
    types = [np.float32, np.int64, np.uint8, np.int8, bool, np.float16, np.float64, np.uint32]
    for case in range(10):
        rank = int(rng.integers(1, 4))
        shape = rng.integers(1, 6, rank)
        axis = [None, int(rng.integers(-rank, rank))][case % 2]
        if case == 8:
            shape[0] = 0
        x = rng.integers(0, 3, shape).astype(types[case % len(types)])
        if x.dtype.kind == "i":
            x -= 1
        for got, want in zip(unique(x, axis, is_sorted, is_static), expected(x, axis, is_sorted)):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_types():
    for dtype in [np.int8, np.uint8, np.int16, np.uint16, np.uint64, np.int64]:
        info = np.iinfo(dtype)
        x = np.array([info.max, info.min, 0, info.max, 1, info.min, info.max - 1], dtype)
        for got, want in zip(unique(x, None, 1, True), expected(x, None, 1)):
            np.testing.assert_array_equal(got, want)
    x = np.array([3, -1, np.inf, -1, 3, -np.inf], ml_dtypes.bfloat16)
    got = unique(x, None, 1, True)
    np.testing.assert_array_equal(got[0].astype(np.float32), [-np.inf, -1, 3, np.inf])
    assert got[2].tolist() == [2, 1, 3, 1, 2, 0]


def test_not_a_number():
    x = np.array([np.nan, 2, -0.0, np.nan, 0.0, np.inf], np.float32)
    for is_sorted in (0, 1):
        for got, want in zip(unique(x, None, is_sorted, False), expected(x, None, is_sorted)):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("names", [["y"], ["y", "", "inverse"], ["y", "", "", "counts"]])
def test_optional_results(names):
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    want = [w for w, n in zip(expected(x, None, 1), names) if n]
    for got, value in zip(unique(x, None, 1, False, names), want):
        np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("count", [64, 65, 900])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64, np.float32, np.int32, np.uint16, np.int8], ids=lambda d: d.__name__)
def test_all_of_a_type(dtype, count):
    """Numbers of all sizes and both signs, whose bits all differ, and few apart."""
    rng = np.random.default_rng(count)
    bits = rng.integers(0, 256, (count, np.dtype(dtype).itemsize), np.uint8).view(dtype)[:, 0]
    ends = [np.nan, -np.inf, np.inf, -0.0, 0.0] if np.dtype(dtype).kind == "f" else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    bits[rng.integers(0, count, 20)] = rng.choice(np.array(ends, dtype), 20)
    for x in (bits, rng.choice(bits, count), (rng.integers(0, 9, count) + 100).astype(dtype), np.full(count, ends[0], dtype)):
        for is_sorted in (0, 1):
            for got, want in zip(unique(x, None, is_sorted, count == 64), expected(x, None, is_sorted)):
                np.testing.assert_array_equal(got, want)


def test_large():
    x = np.random.default_rng(1).integers(0, 50000, 200000)
    for is_sorted in (0, 1):
        for got, want in zip(unique(x, None, is_sorted, False), expected(x, None, is_sorted)):
            np.testing.assert_array_equal(got, want)


def test_scalar_and_empty_slices():
    for x, axis in [(np.float32(3), None), (np.zeros((3, 0), np.float32), 0), (np.zeros((0, 3), np.float32), 0)]:
        got = unique(np.asarray(x), axis, 1, False)
        if x.ndim == 0 or len(x) == 3:
            assert got[1].tolist() == [0] and got[3].tolist() == [max(x.size, 3) if x.ndim else 1]
        else:
            assert got[0].shape == (0, 3) and got[3].shape == (0,)
