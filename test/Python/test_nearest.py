"""Resize to the nearest elements, where these are repeated and where they are not."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx

SCALES = [(1, 2, 2), (1, 1, 2), (1, 2, 1), (3, 1, 3), (1, 4, 4), (2, 2, 5), (1, 1, 9), (1, 1.5, 2), (1, 0.5, 0.5), (1, 0.25, 0.125), (1, 1, 1 / 3), (1, 0.5, 0.7), (1, 2, 0.5), (1, 2, 1.3), (1, 17, 1)]
SHAPES = [(2, 5, 7), (3, 2, 16), (1, 3, 20), (2, 3, 33), (1, 2, 70), (4, 1, 1)]


def nearest(x, scales, coordinates, mode):
    """By ONNX's formulas, axis by axis."""
    rounding = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda at: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    }
    for axis, scale in enumerate(scales):
        size = int(np.floor(np.float32(x.shape[axis]) * np.float32(scale)))
        at = np.arange(size, dtype=np.float64)
        scale = float(np.float32(scale))
        if coordinates == "asymmetric":
            at = at / scale
        elif coordinates == "align_corners":
            at = at * 0 if x.shape[axis] * scale == 1 else at * (x.shape[axis] - 1) / (x.shape[axis] * scale - 1)
        else:
            at = (at + 0.5) / scale - 0.5
        if scale != 1:
            x = x.take(np.clip(rounding[mode](at).astype(int), 0, x.shape[axis] - 1), axis)
    return x


def resize(x, scales, coordinates, mode, is_open):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=mode)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = [f"d{i}" for i in range(x.ndim)] if is_open else x.shape
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(scales, np.float32), "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return sardonyx.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mode", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "align_corners"])
def test_scales(coordinates, mode, is_open):
    rng = np.random.default_rng(1)
    for i, (scales, shape) in enumerate(itertools.product(SCALES, SHAPES)):
        if i % 3 and (mode, coordinates) != ("floor", "asymmetric"):
            continue
        x = rng.standard_normal(shape).astype(np.float32)
        if is_open and coordinates == "align_corners" and 1 in shape:
            continue  # of one element there is no scale
        y = resize(x, scales, coordinates, mode, is_open)
        np.testing.assert_array_equal(y, nearest(x, scales, coordinates, mode), f"{scales} of {shape}")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.uint8, np.bool_])
def test_types(dtype, is_open):
    rng = np.random.default_rng(2)
    for scales, shape in itertools.product([(1, 2, 2), (1, 1, 3), (1, 1.5, 1.5)], [(2, 3, 70), (1, 4, 20), (1, 2, 3)]):
        x = rng.integers(-9, 10, shape).astype(dtype)
        y = resize(x, scales, "asymmetric", "floor", is_open)
        np.testing.assert_array_equal(y, nearest(x, scales, "asymmetric", "floor"))
