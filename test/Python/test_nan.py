"""Where NaN comes among numbers."""

import itertools

import numpy as np
import pytest
from numerics import constant
from onnx import helper
from operators import run, same_as_onnxruntime

NAN = np.nan


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_nan(dtype, largest):
    """NaN is more than every number, and of several the first one is first."""
    rows = [[1, NAN, 7, 4, NAN, -3], [NAN, 2, 7, 4, 1, 0], [2, 4, 7, 1, 0, NAN], [np.inf, NAN, -np.inf, NAN, NAN, 0]]
    x = np.array(rows, dtype)
    keys = np.where(np.isnan(x), 1, 0), np.where(np.isnan(x), 0, x)
    order = np.array(
        [sorted(range(6), key=lambda i: [-k[i] if largest else k[i] for k in pair]) for pair in zip(*keys)]
    )
    for k in (1, 3, 6):
        node = helper.make_node("TopK", ["x", "k"], ["v", "i"], largest=largest)
        v, i = run([node], {"x": x}, ["v", "i"], inits=[constant("k", [k])])
        np.testing.assert_array_equal(i, order[:, :k])
        np.testing.assert_array_equal(v, np.take_along_axis(x, order[:, :k], 1))


@pytest.mark.parametrize("op, last", list(itertools.product(["ArgMax", "ArgMin"], [0, 1])))
def test_arg_of_nan(op, last):
    """NaN is the extreme, and of several the first or the last one is asked for."""
    rows = [[1, NAN, 7, NAN, 2], [NAN] * 5, [5, 5, 1, 1, 3], [NAN, 1, 2, 3, 4], [1, 2, 3, 4, NAN]]
    rows.append([np.inf, -np.inf, np.inf, -np.inf, 0])
    x = np.array(rows, np.float32)
    find = np.argmax if op == "ArgMax" else np.argmin
    want = 4 - find(x[:, ::-1], 1) if last else find(x, 1)
    node = helper.make_node(op, ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)
    for is_open in (False, True):
        np.testing.assert_array_equal(run([node], {"x": x}, is_open=is_open)[0], want)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8])
@pytest.mark.parametrize("op, last", list(itertools.product(["ArgMax", "ArgMin"], [0, 1])))
def test_arg_of_equal(op, last, dtype):
    """Long rows with many equal elements, some of them zeros of either sign, and one with NaN in several vectors."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (5, 1003)).astype(dtype)
    x[4] = x[4].min()
    if np.dtype(dtype).kind == "f":
        x[0] *= rng.choice(np.array([-0.0, 0.0], dtype), 1003)
        x[3, [77, 500, 801]] = NAN
    find = np.argmax if op == "ArgMax" else np.argmin
    want = 1002 - find(x[:, ::-1], 1) if last else find(x, 1)
    node = helper.make_node(op, ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)
    for is_open in (False, True):
        np.testing.assert_array_equal(run([node], {"x": x}, is_open=is_open)[0], want)


def test_maxima_of_nan():
    """A window that sees NaN gives NaN, with indices and without, as numpy's maximum does."""
    x = np.array([[[1, NAN, 7, 4, NAN, -3, 2, NAN]]], np.float32)
    want = x.reshape(1, 1, 4, 2).max(-1)
    pool = {"kernel_shape": [2], "strides": [2]}
    np.testing.assert_array_equal(run([helper.make_node("MaxPool", ["x"], ["y"], **pool)], {"x": x})[0], want)
    y, i = run([helper.make_node("MaxPool", ["x"], ["y", "i"], **pool)], {"x": x}, ["y", "i"])
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(i, [[[1, 2, 4, 7]]])
    assert np.isnan(run([helper.make_node("GlobalMaxPool", ["x"], ["y"])], {"x": x})[0]).all()


def test_scores_that_are_nan():
    """No threshold is less than NaN: such a box is not selected where there is one."""
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]]], np.float32)
    scores = np.array([[[NAN, 0.5, NAN, 0.9]]], np.float32)
    inits = [constant("n", [10]), constant("t", [0.5], np.float32), constant("u", [0.1], np.float32)]
    node = helper.make_node("NonMaxSuppression", ["b", "s", "n", "t", "u"], ["y"])
    same_as_onnxruntime([node], {"b": boxes, "s": scores}, inits=inits)
