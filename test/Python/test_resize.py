"""Resize and Upsample before version 11, and sizes by scales, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from numerics import constant
from onnx import helper
from operators import run, same_as_onnxruntime

SCALES = [[1, 1, 0.6, 0.6], [1, 1, 0.5, 2], [1, 1, 1.7, 0.4], [1, 1, 2, 3], [1, 1, 0.3, 1], [1, 1, 1.3, 1.9]]


@pytest.mark.parametrize("given", ["constant", "input"])
@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_nearest_of_resize_10(scales, given):
    """Where an axis shrinks the next pixel up is taken."""
    x = np.arange(2 * 7 * 9, dtype=np.float32).reshape(1, 2, 7, 9)
    node = helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest")
    s = np.array(scales, np.float32)
    if given == "constant":
        same_as_onnxruntime([node], {"x": x}, opset=10, inits=[constant("s", scales, np.float32)])
    else:
        same_as_onnxruntime([node], {"x": x, "s": s}, opset=10, is_open=True)


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(opset):
    """Scales of an attribute and of an input, also where one shrinks, as Resize-10 takes them."""
    x = np.arange(2 * 7 * 9, dtype=np.float32).reshape(1, 2, 7, 9)
    for scales in SCALES:
        inits = [constant("s", scales, np.float32)]
        if opset < 9:
            attribute = [float(scale) for scale in scales]
            node, held = helper.make_node("Upsample", ["x"], ["y"], mode="nearest", scales=attribute), []
        else:
            node, held = helper.make_node("Upsample", ["x", "s"], ["y"], mode="nearest"), inits
        [got] = run([node], {"x": x}, opset=opset, inits=held)
        same = helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest")
        np.testing.assert_array_equal(got, run([same], {"x": x}, opset=10, inits=inits, engine=onnxruntime)[0])


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("opset", [10, 13, 18])
def test_sizes_are_multiplied_in_single_precision(opset, is_open):
    for size, scale, want in ((10, 1.9, 19), (10, 0.7, 7), (100, 0.29, 29), (5, 0.6, 3), (3, 4 / 3, 4)):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if opset > 10 else {}
        node = helper.make_node("Resize", ["x", *[""] * (opset > 10), "s"], ["y"], mode="nearest", **options)
        inits = [constant("s", [1, 1, 1, scale], np.float32)]
        assert run([node], {"x": x}, opset=opset, inits=inits, is_open=is_open)[0].shape[3] == want
        same_as_onnxruntime([node], {"x": x}, opset=opset, inits=inits, is_open=is_open)
        if opset >= 18:
            node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", axes=[-1], **options)
            inits = [constant("s", [scale], np.float32)]
            same_as_onnxruntime([node], {"x": x}, opset=opset, inits=inits, is_open=is_open)
