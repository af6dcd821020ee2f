"""TopK of rows so long that whole blocks are passed over."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx


def best(x, k, axis, largest, is_open):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = [f"d{i}" for i in range(x.ndim)] if is_open else x.shape
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=int(largest))],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [onnx.ValueInfoProto(name=name) for name in ("v", "i")],
        [numpy_helper.from_array(np.array([k], np.int64), "k")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return sardonyx.InferenceSession(model.SerializeToString()).run(None, {"x": x})


def expected(x, k, axis, largest):
    """Of equals the lower index is first; NaN is more than all else."""
    order = x.astype(np.float64) if x.dtype.kind == "f" else x.astype(object)
    if x.dtype.kind == "f":
        order = np.where(np.isnan(order), np.inf, np.where(np.isinf(order), np.sign(order) * 1e300, order))
    i = np.argsort(-order if largest else order, axis=axis, kind="stable").take(range(k), axis)
    return np.take_along_axis(x, i, axis), i


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.int8])
def test_rows(dtype, largest, is_open):
    rng = np.random.default_rng(1)
    for shape, k, axis in [((3, 1000), 5, 1), ((1, 5003), 100, 1), ((2, 64), 1, -1), ((2, 65), 1, -1), ((2, 300, 3), 7, 1), ((1, 130), 130, 1), ((2, 257), 0, 1)]:
        for span in (3, 120):
            x = np.round(rng.standard_normal(shape) * span).astype(dtype)
            for rising in (False, True):
                if rising:
                    x = np.sort(x, axis)
                v, i = best(x, k, axis, largest, is_open)
                want = expected(x, k, axis, largest)
                np.testing.assert_array_equal(v, want[0])
                np.testing.assert_array_equal(i, want[1])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_what_is_no_number(dtype, largest):
    x = np.random.default_rng(2).standard_normal((4, 700)).astype(dtype)
    x[0, [10, 300, 301, 650]] = np.nan
    x[1, 5:] = np.nan
    x[2, [100, 500]], x[2, [101, 600]] = np.inf, -np.inf
    x[3, 64:128] = np.nan
    x[3, 100] = -9
    v, i = best(x, 6, 1, largest, False)
    want = expected(x, 6, 1, largest)
    np.testing.assert_array_equal(v, want[0])
    np.testing.assert_array_equal(i, want[1])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
@pytest.mark.parametrize("step", [16, 32, 48, 64, 208])
def test_best_at_steps(step, dtype, largest):
    """What is better than all else lies in few of the groups that bound the best, all of it or up to k of many equals."""
    rng = np.random.default_rng(step)
    for size, k in [(2000, 10), (5000, 50), (77, 4)]:
        x = rng.integers(0, 3, (2, size)).astype(dtype)
        x[0, step // 2 :: step] += rng.integers(10, 90, len(x[0, step // 2 :: step])).astype(dtype)
        x[1, step - 1 :: step] += 40
        x = x if largest else -x
        for is_open in (False, True):
            v, i = best(x, k, 1, largest, is_open)
            want = expected(x, k, 1, largest)
            np.testing.assert_array_equal(v, want[0])
            np.testing.assert_array_equal(i, want[1])
