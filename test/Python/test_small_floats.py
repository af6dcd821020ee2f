"""Casts between floats of four, six and eight bits and others, as inputs and outputs of models, against ml_dtypes."""

import ml_dtypes
import numpy as np
import onnx
import pytest
import sardonyx

# Name in ml_dtypes -> ONNX's name.
KINDS = {
    "float4_e2m1fn": "float4e2m1",
    "float6_e2m3fn": "float6e2m3",
    "float6_e3m2fn": "float6e3m2",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e5m2": "float8e5m2",
}
EXACT = {"float4_e2m1fn": 16, "float6_e2m3fn": 64, "float6_e3m2fn": 64, "float8_e4m3fn": 256, "float8_e5m2": 256}


def session(kind, body, source, target):
    text = f'<ir_version: 13, opset_import: ["" : 28]> g ({source}[N] x) => ({target}[N] y) {{ {body} }}'
    options = sardonyx.SessionOptions()
    options.cache = False
    return sardonyx.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)


def code(kind):
    return onnx.TensorProto.DataType.Value(KINDS[kind].upper())


@pytest.mark.parametrize("kind", KINDS)
def test_all_values_widen(kind):
    dtype = getattr(ml_dtypes, kind)
    x = np.arange(EXACT[kind], dtype=np.uint8).view(dtype)
    (y,) = session(kind, "y = Cast <to = 1> (x)", KINDS[kind], "float").run(None, {"x": x})
    np.testing.assert_array_equal(y, x.astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_floats_narrow(kind):
    dtype = getattr(ml_dtypes, kind)
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.linspace(-largest, largest, 4001).astype(np.float32)
    runs = session(kind, f"y = Cast <to = {code(kind)}> (x)", "float", KINDS[kind])
    assert runs.get_outputs()[0].type == f"tensor({KINDS[kind]})"
    (y,) = runs.run(None, {"x": x})
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("kind", ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_what_is_too_large_saturates(kind):
    dtype = getattr(ml_dtypes, kind)
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.array([largest * 1.01, 1e9, np.inf, -largest * 3, -np.inf], np.float32)
    (y,) = session(kind, f"y = Cast <to = {code(kind)}> (x)", "float", KINDS[kind]).run(None, {"x": x})
    np.testing.assert_array_equal(y.astype(np.float32), np.float32(largest) * np.sign(x))
