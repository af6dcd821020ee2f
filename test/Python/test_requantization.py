"""From sums of products to bytes: factors, residual sums, saturation; against numpy in f32 and f64."""

import numpy as np
import pytest
from numerics import vectors  # noqa: F401
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx

F32 = np.float32
CPUS = ["", "skylake-avx512", "haswell", "x86-64"]


def run(nodes, feeds, constants, cpu=""):
    values = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    graph = helper.make_graph(
        nodes, "g", values, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = sdx.SessionOptions()
    options.cpu = cpu
    return sdx.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


def quantized(x, scale, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / F32(scale)) + F32(zero), limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("seed", range(6))
def test_residual(seed, dtype, cpu):
    """All 65,536 pairs of a convolution's byte and another: a convolution by the identity has exact results."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1).astype(dtype)
    x = np.tile(every, (2, 1)).reshape(1, 2, 256, 1).repeat(256, 3)
    r = np.tile(every, (2, 1)).reshape(1, 2, 1, 256).repeat(256, 2)
    sx, sr = (F32(2.0 ** rng.uniform(-8, 2)) for _ in range(2))
    zx, zr, zy = (dtype(rng.integers(limits.min, limits.max + 1)) for _ in range(3))
    sy = F32((sx + sr) * rng.uniform(0.7, 1.2))
    constants = {
        "w": np.eye(2, dtype=np.int8).reshape(2, 2, 1, 1), "one": F32(1), "wz": np.int8(0), "sx": sx, "zx": zx, "sr": sr, "zr": zr,
        "sy": sy, "zy": zy,
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "one", "wz"], ["fw"]),
        helper.make_node("Conv", ["fx", "fw"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["f"]),
        helper.make_node("DequantizeLinear", ["r", "sr", "zr"], ["fr"]),
        helper.make_node("Add", ["f", "fr"], ["s"]),
        helper.make_node("QuantizeLinear", ["s", "sy", "zy"], ["y"]),
    ]
    a = (x.astype(np.int32) - zx).astype(F32) * sx
    b = (r.astype(np.int32) - zr).astype(F32) * sr
    y = run(nodes, {"x": x, "r": r}, constants, cpu)
    np.testing.assert_array_equal(y, quantized(a + b, sy, zy, dtype))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("filters", [5, 32, 48, 100])
@pytest.mark.parametrize("dtype, zero", [(np.uint8, 0), (np.uint8, 131), (np.int8, -77)])
def test_saturation(dtype, zero, filters, cpu):
    """Sums far beyond all bytes, and beyond what 16 bits hold, become the nearest byte."""
    rng = np.random.default_rng(filters)
    x = rng.integers(0, 256, (2, 64, 7, 9)).astype(np.uint8)
    x[0, :, :3] = 255
    w = rng.integers(-127, 128, (filters, 64, 1, 1)).astype(np.int8)
    w[0], w[1] = 127, -127
    scales = (2.0 ** rng.integers(-12, 6, filters)).astype(F32)
    constants = {
        "w": w, "sx": F32(1), "zx": np.uint8(0), "sw": scales, "zw": np.zeros(filters, np.int8), "sy": F32(0.25), "zy": dtype(zero),
    }  # fmt: skip
    sums = np.einsum("nchw,fc->nfhw", x.astype(np.int64), w[:, :, 0, 0].astype(np.int64))
    expected = quantized(sums.astype(F32) * scales.reshape(1, -1, 1, 1), 0.25, zero, dtype)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["fw"], axis=0),
        helper.make_node("Conv", ["fx", "fw"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"]),
    ]
    np.testing.assert_array_equal(run(nodes, {"x": x}, constants, cpu), expected)
    node = helper.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"], ["y"])
    np.testing.assert_array_equal(run([node], {"x": x}, constants, cpu), expected)


@pytest.mark.parametrize("cpu", CPUS)
def test_half_way(cpu):
    """Sums that are half way between two integers go to the even one, for factors with and without a rounding."""
    sums = np.arange(-1500, 1500)
    x = np.stack([np.full(sums.shape, 1), sums // 100 + 20, sums % 100], 1).astype(np.uint8)
    w = np.array([[-2000 // 16], [100], [1]], np.int8)
    exact = x.astype(np.int64) @ w.astype(np.int64)
    for scale, step in [(0.5, 3.0), (0.7, 1.4), (0.1, 0.6), (1.0, 6.0), (0.3, 4.2)]:
        constants = {"w": w, "sx": F32(scale), "zx": np.uint8(0), "one": F32(1), "zw": np.int8(0), "sy": F32(step), "zy": np.uint8(128)}
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
            helper.make_node("DequantizeLinear", ["w", "one", "zw"], ["fw"]),
            helper.make_node("MatMul", ["fx", "fw"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"]),
        ]
        expected = quantized(exact.astype(F32) * F32(scale), step, 128, np.uint8)
        np.testing.assert_array_equal(run(nodes, {"x": x}, constants, cpu), expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Conv"])
@pytest.mark.parametrize("is_wide", [False, True], ids=["one-scale", "of-columns"])
def test_float_bias(is_wide, op, cpu):
    """A bias that stays a float goes into the factor: other than one operator after the other, in f32, only next to a tie."""
    rng = np.random.default_rng(7)
    n = 70
    x, w = rng.integers(0, 256, (300, 64)).astype(np.uint8), rng.integers(-127, 128, (64, n)).astype(np.int8)
    scales = rng.uniform(0.5e-3, 2e-3, n if is_wide else 1).astype(F32)
    bias = rng.uniform(-3, 3, n).astype(F32)
    bias[3] = 0
    sx, sy, zy = F32(0.0371), F32(0.0477), np.uint8(121)
    zw = np.zeros(scales.size, np.int8)
    sums = (x.astype(np.int64) - 117) @ w
    exact = (sums * (np.float64(sx) * scales) + bias) / sy
    feeds, constants = {"x": x}, {"w": w, "sx": sx, "zx": np.uint8(117), "sw": scales, "zw": zw, "b": bias, "sy": sy, "zy": zy}
    axis = 1
    if op == "Conv":
        feeds["x"], constants["w"], axis = x.reshape(1, 300, 64).swapaxes(1, 2), w.T.reshape(n, 64, 1), 0
        exact = exact.T[None]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["fw"], axis=axis),
    ]
    if op == "MatMul":
        nodes += [helper.make_node("MatMul", ["fx", "fw"], ["p"]), helper.make_node("Add", ["p", "b"], ["c"])]
    else:
        nodes.append(helper.make_node(op, ["fx", "fw", "b"], ["c"]))
    nodes.append(helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"]))
    y = run(nodes, feeds, constants, cpu)
    wanted = np.clip(np.rint(exact) + 121, 0, 255)
    is_tie = np.abs(exact - np.floor(exact) - 0.5) < 3e-4
    assert is_tie.mean() < 2e-3
    np.testing.assert_array_equal(np.where(is_tie, wanted, y), wanted)
    assert np.all(np.abs(y - wanted) <= 1)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("columns", [32, 37])
@pytest.mark.parametrize("dtype, zero", [(np.uint8, 121), (np.int8, -77)])
def test_floats_are_added(dtype, zero, columns, cpu):
    """To sums whose bytes saturate: also infinite ones, and what is divided is as it was."""
    rng = np.random.default_rng(columns)
    x, w = rng.integers(0, 256, (40, 64)).astype(np.uint8), rng.integers(-127, 128, (64, columns)).astype(np.int8)
    r = (rng.uniform(-20, 20, (40, columns)) * 10.0 ** rng.integers(-3, 3, (40, columns))).astype(F32)
    r[3, ::3], r[4, 1::3], r[5, ::2], r[6, ::2] = np.inf, -np.inf, 3e38, -3e38
    sx, sw, sy = F32(0.0371), F32(0.00123), F32(0.0477)
    constants = {"w": w, "sx": sx, "zx": np.uint8(117), "sw": sw, "zw": np.int8(0), "sy": sy, "zy": dtype(zero)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["fw"]),
        helper.make_node("MatMul", ["fx", "fw"], ["p"]),
        helper.make_node("Add", ["p", "r"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"]),
    ]
    sums = ((x.astype(np.int64) - 117) @ w).astype(F32) * (sx * sw)
    with np.errstate(over="ignore"):
        expected = quantized(sums + r, sy, zero, dtype)
    np.testing.assert_array_equal(run(nodes, {"x": x, "r": r}, constants, cpu), expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("filters", [5, 32, 48, 64])
@pytest.mark.parametrize("dtype, zero", [(np.uint8, 0), (np.uint8, 131), (np.int8, -77)])
def test_two_convolutions(dtype, zero, filters, cpu):
    """Bytes between two convolutions: some processors multiply numbers of 16 bits, and then it is these that saturate."""
    rng = np.random.default_rng(filters)
    x = rng.integers(0, 256, (1, 64, 5, 7)).astype(np.uint8)
    w = rng.integers(-127, 128, (filters, 64, 1, 1)).astype(np.int8)
    v = rng.integers(-127, 128, (40, filters, 3, 3)).astype(np.int8)
    scales = (2.0 ** rng.integers(-12, 6, filters)).astype(F32)
    constants = {
        "w": w, "sx": F32(1), "zx": np.uint8(0), "sw": scales, "zw": np.zeros(filters, np.int8), "v": v, "sy": F32(0.25), "zy": dtype(zero),
        "one": F32(1), "zv": np.int8(0), "sz": F32(64), "zz": np.uint8(128),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["fw"], axis=0),
        helper.make_node("Conv", ["fx", "fw"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sy", "zy"], ["f"]),
        helper.make_node("DequantizeLinear", ["v", "one", "zv"], ["fv"]),
        helper.make_node("Conv", ["f", "fv"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["d", "sz", "zz"], ["y"]),
    ]
    sums = np.einsum("nchw,fc->nfhw", x.astype(np.int64), w[:, :, 0, 0].astype(np.int64))
    q = quantized(sums.astype(F32) * scales.reshape(1, -1, 1, 1), 0.25, zero, dtype).astype(np.int64) - zero
    inner = np.pad(q, [(0, 0), (0, 0), (1, 1), (1, 1)])
    sums = sum(
        np.einsum("nchw,fc->nfhw", inner[:, :, i : i + 5, j : j + 7], v[:, :, i, j].astype(np.int64)) for i in range(3) for j in range(3)
    )
    np.testing.assert_array_equal(run(nodes, {"x": x}, constants, cpu), quantized(sums * 0.25, 64, 128, np.uint8))
