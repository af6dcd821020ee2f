"""Resize and Upsample before version 11, and sizes by scales, against onnxruntime."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from numerics import constant
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operators import run, same_as_onnxruntime

import sardonyx as sdx

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


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "cubic", "coordinate_transformation_mode": "half_pixel"},
    ],
    ids=lambda a: f"{a['mode']}-{a['coordinate_transformation_mode']}",
)
def test_between_quantized_convolutions(attributes, is_open):
    """Where images have their channels last, pixels are picked there."""
    rng = np.random.default_rng(0)
    shape = (2, 6, 7, 9)
    constants = {
        "w": rng.integers(-127, 128, (36, 6, 3, 3)).astype(np.int8),
        "v": rng.integers(-127, 128, (20, 36, 1, 1)).astype(np.int8),
        "scales": np.array([1, 1, 1.9, 1.7], np.float32),
        "z": np.uint8(120), "s": np.float32(0.0217), "sw": np.float32(0.0053117), "sv": np.float32(0.0023719),
    }  # fmt: skip
    body = """
        fx = DequantizeLinear(x, s, z)  fw = DequantizeLinear(w, sw)  fv = DequantizeLinear(v, sv)
        c = Conv <pads = [1, 1, 1, 1]> (fx, fw)  qc = QuantizeLinear(c, s, z)  dc = DequantizeLinear(qc, s, z)
        r = Resize <ATTRIBUTES> (dc, , scales)  qr = QuantizeLinear(r, s, z)  dr = DequantizeLinear(qr, s, z)
        o = Conv(dr, fv)  y = QuantizeLinear(o, s, z)"""
    given = ", ".join(f'{name} = "{value}"' for name, value in attributes.items())
    sizes = "n, 6, h, k" if is_open else ", ".join(map(str, shape))
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (uint8[{sizes}] x) => (uint8[n0, c0, h0, w0] y, uint8[n1, c1, h1, w1] qr) {{ {body.replace("ATTRIBUTES", given)} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    options = sdx.SessionOptions()
    options.cache = False
    x = rng.integers(0, 256, shape).astype(np.uint8)
    results = sdx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    # The reference rounds weights of pixels and sums of f32 otherwise: a step for what is next to a boundary, which
    # is added to many sums.
    for result, wanted, most in zip(results, expected, (1e-2, 2e-3)):
        difference = np.abs(result.astype(int) - wanted)
        assert difference.max() <= 1 and (difference > 0).mean() < most
