"""BitCast from each type to another of its width, against numpy's views."""

import ml_dtypes
import numpy as np
import pytest
from numerics import run
from onnx import TensorProto, helper

WIDTHS = {
    1: ["INT8", "UINT8", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"],
    2: ["INT16", "UINT16", "FLOAT16", "BFLOAT16"],
    4: ["INT32", "UINT32", "FLOAT"],
    8: ["INT64", "UINT64", "DOUBLE"],
}
PAIRS = [(a, names[(i + 1 + (i & 1)) % len(names)]) for names in WIDTHS.values() for i, a in enumerate(names)]


def dtype(name):
    return helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))


@pytest.mark.parametrize("source, target", PAIRS, ids=lambda name: name.lower())
def test_pair(source, target):
    rng = np.random.default_rng(7)
    node = helper.make_node("BitCast", ["x"], ["y"], to=getattr(TensorProto, target))
    for shape, is_static in [((), True), ((0, 3), False), ((2, 3, 67), True)]:
        size = dtype(source).itemsize
        bits = rng.integers(0, 256, (*shape, size), dtype=np.uint8)
        x = bits.reshape(-1).view(dtype(source)).reshape(shape)
        [y] = run([node], {"x": x}, ["y"], {"x": list(shape)} if is_static else None, opset=26)
        assert y.dtype == dtype(target) and y.shape == x.shape
        assert np.asarray(y).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtypes", [("INT4", "UINT4"), ("UINT4", "INT4"), ("INT4", "FLOAT4E2M1"), ("FLOAT4E2M1", "UINT4")])
def test_four_bits(dtypes):
    source, target = map(dtype, dtypes)
    x = np.arange(16).astype(np.uint8).view(ml_dtypes.uint4).view(source)
    if source == ml_dtypes.int4:
        x = np.arange(-8, 8).astype(source)
    node = helper.make_node("BitCast", ["x"], ["y"], to=getattr(TensorProto, dtypes[1]))
    [y] = run([node], {"x": x}, ["y"], opset=26)
    bits = x.view(np.uint8) & 15
    assert y.dtype == target
    np.testing.assert_array_equal(y.view(np.uint8) & 15, bits)
    if target == ml_dtypes.int4:
        np.testing.assert_array_equal(y.astype(np.int32), np.where(bits < 8, bits, bits.astype(np.int32) - 16))


def test_bool():
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.BOOL)
    [y] = run([node], {"x": np.array([0, 1, 1, 0], np.int8)}, ["y"], opset=26)
    assert y.dtype == bool and y.tolist() == [False, True, True, False]
