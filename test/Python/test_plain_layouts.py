"""Packed operands by plain loops (`#cpu.loops`), each layout: kernels are compiled by upstream's tools and compared with numpy.

What unpacks here is written after the descriptions of the operations in dialects/CPU/CPUOps.td.
"""

import ml_dtypes
import numpy as np
import onnx
import pytest
import kernel_text
from kernel_text import LLVM, PANEL, call, compile_kernel, grouped, panels, spell, window
from onnx import helper
from onnx.reference import ReferenceEvaluator
import references

pytestmark = pytest.mark.skipif(not (LLVM / "mlir-opt").exists(), reason="MLIR's tools are not there")
PASSES = "cpu-decompose-packed-ops,cpu-lower-contractions,cpu-lower-conv,cpu-lower-narrow-conv,cpu-lower-channel-windows,cpu-lower-packing,cpu-lower-loops"


def compute(folder, op, inputs, result, init=None):
    """`op` on %t0, %t1, ... and the tensor %f of `init`, or of anything, by plain loops; gives `result` its values."""
    library = compile_kernel(folder, op, inputs, result, init, ", cpu.plan = #cpu.loops", PASSES)
    return call(library, inputs, result)


def floats(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape, dtype=np.float32)


def multiply(folder, packing, a, packed, columns, scales=None, block=None):
    whole = packing == "i8"
    result = np.zeros((*a.shape[:-1], columns), np.int32 if whole else np.float32)
    inputs = [a, packed] if scales is None else [a, packed, scales]
    names = ", ".join(f"%t{i}" for i in range(len(inputs)))
    types = ", ".join(f"tensor<{spell(x)}>" for x in inputs)
    attributes = f"packing = #cpu.packing<{packing}, panel = 32>" + (f", block = {block} : i64" if block else "")
    op = f"cpu.packed_matmul ins({names} : {types}) OUTS {{{attributes}}}"
    return compute(folder, op, inputs, result, "0" if whole else "0.0")


@pytest.mark.parametrize("k,n", [(7, 40), (32, 32), (5, 3)])
def test_products_of_f32(k, n, tmp_path):
    a, b = floats(5, k), floats(k, n)
    np.testing.assert_allclose(multiply(tmp_path, "f32", a, panels(b), n), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batched", [False, True])
def test_products_of_batches(batched, tmp_path):
    a, b = floats(3, 5, 7), floats(3, 7, 40)
    packed = np.stack([panels(x) for x in b]) if batched else panels(b[0])
    expected = a @ (b if batched else b[0])
    np.testing.assert_allclose(multiply(tmp_path, "f32", a, packed, 40), expected, rtol=1e-5, atol=1e-5)


def test_products_of_bf16(tmp_path):
    a, b = floats(5, 7).astype(ml_dtypes.bfloat16), floats(7, 40).astype(ml_dtypes.bfloat16)
    y = multiply(tmp_path, "bf16", a, grouped(b, 2), 40)
    np.testing.assert_allclose(y, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_products_of_bytes(tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (5, 7), np.uint8), rng.integers(-128, 128, (7, 40), np.int8)
    y = multiply(tmp_path, "i8", a, grouped(b, 4), 40)
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_products_of_few_bits(bits, zeros, tmp_path):
    rng = np.random.default_rng(bits)
    k, n, block = 42, 40, 16
    u = rng.integers(0, 2**bits, (k, n), np.uint8)
    scales = floats(2, -(-k // block), 1 + zeros, PANEL)
    number = panels(u)  # [No,K,32]
    # Four values of k of a column are the bytes of 32 bits; a byte holds those of several columns.
    per_byte = 8 // bits
    groups = np.pad(number, ((0, 0), (0, -k % 4), (0, 0))).reshape(2, -1, 4, per_byte, PANEL // per_byte)
    packed = sum(groups[:, :, :, j] << (bits * j) for j in range(per_byte)).astype(np.uint8)
    packed = packed.swapaxes(2, 3).reshape(2, -1, PANEL * 4 // per_byte)
    of_k = np.arange(k) // block
    zero = scales[:, of_k, 1] if zeros else 2 ** (bits - 1)
    b = (scales[:, of_k, 0] * (number.astype(np.float32) - zero)).transpose(1, 0, 2).reshape(k, -1)[:, :n]
    a = floats(5, k)
    np.testing.assert_allclose(multiply(tmp_path, f"u{bits}", a, packed, n, scales, block), a @ b, rtol=1e-4, atol=1e-3 * 2**bits)


def pack(folder, packing, source, result, scales=None, transposed=False):
    inputs = [source] if scales is None else [source, scales]
    names = ", ".join(f"%t{i}" for i in range(len(inputs)))
    types = ", ".join(f"tensor<{spell(x)}>" for x in inputs)
    op = f"cpu.pack_rhs {'transposed ' * transposed}ins({names} : {types}) OUTS {{packing = #cpu.packing<{packing}, panel = 32>}}"
    return compute(folder, op, inputs, result)


@pytest.mark.parametrize("transposed", [False, True])
def test_packing_of_f32(transposed, tmp_path):
    b = floats(7, 40)
    source = np.ascontiguousarray(b.T) if transposed else b
    np.testing.assert_array_equal(pack(tmp_path, "f32", source, np.ones((2, 7, 32), np.float32), transposed=transposed), panels(b))
    b = floats(3, 7, 40)
    source = np.ascontiguousarray(b.transpose(0, 2, 1)) if transposed else b
    packed = pack(tmp_path, "f32", source, np.ones((3, 2, 7, 32), np.float32), transposed=transposed)
    np.testing.assert_array_equal(packed, np.stack([panels(x) for x in b]))


@pytest.mark.parametrize("transposed", [False, True])
def test_packing_of_heads(transposed, tmp_path):
    source = floats(2, 40, 3, 7) if transposed else floats(2, 7, 3, 40)
    matrices = source.transpose(0, 2, 3, 1) if transposed else source.transpose(0, 2, 1, 3)
    packed = pack(tmp_path, "f32", source, np.ones((6, 2, 7, 32), np.float32), transposed=transposed)
    np.testing.assert_array_equal(packed, np.stack([panels(x) for x in matrices.reshape(6, 7, 40)]))


def scales_of(b, largest):
    """A scale for each column, [No,1,1,32]."""
    top = np.ones(-(-b.shape[1] // PANEL) * PANEL, np.float32)
    top[: b.shape[1]] = np.abs(b).max(0)
    return (top / largest).astype(np.float32).reshape(-1, 1, 1, PANEL)


def test_w24(tmp_path):
    b = floats(7, 40)
    scales = scales_of(b, 2**23 - 2)
    packed = pack(tmp_path, "w24", b, np.ones((2, 7, 96), np.int8), scales)
    integers = np.rint(panels(b) * (np.float32(1) / scales[:, 0])).astype("<i4")
    np.testing.assert_array_equal(packed, integers.view(np.int8).reshape(2, 7, 32, 4)[..., :3].reshape(2, 7, 96))
    a = floats(2, 7)
    y = multiply(tmp_path, "w24", a, packed, 40, scales, 7)
    np.testing.assert_allclose(y, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [6, 7, 8])
def test_w21(k, tmp_path):
    b = floats(k, 40)
    scales = scales_of(b, 2**20 - 2)
    packed = pack(tmp_path, "w21", b, np.ones((2, -(-k // 3), 32), np.int64), scales)
    # Each number with what lies below it is as near as half a unit.
    deep = np.zeros((-(-k // 3) * 3, 40), np.float32)
    deep[:k] = b
    wanted = (panels(deep) / scales[:, 0]).reshape(2, -1, 3, PANEL)
    top = lambda bits: (bits >> 32) / 2**11
    quarter = PANEL // 4
    for a in range(4):
        block = packed[:, :, quarter * a : quarter * (a + 1)]
        pair = a % 2 * 2 * quarter + 2 * np.arange(quarter)
        third = a // 2 * 2 * quarter + 2 * np.arange(quarter) + a % 2
        assert np.abs(top(block << 43) - wanted[:, :, a // 2, pair]).max() < 0.6
        assert np.abs(top(block) - wanted[:, :, a // 2, pair + 1]).max() < 0.6
        assert np.abs(top(block << 21) - wanted[:, :, 2, third]).max() < 0.6
        assert not (block >> 21 & 1).any()
    a = floats(2, k)
    y = multiply(tmp_path, "w21", a, packed, 40, scales, k)
    np.testing.assert_allclose(y, a @ b, rtol=1e-4, atol=1e-5)


def spell_list(values):
    return "array<i64: " + ", ".join(map(str, values)) + ">"


def pack_filters(folder, filters, w, shape, dtype=np.float32):
    op = f"cpu.pack_conv_weights ins(%t0 : tensor<{spell(w)}>) OUTS {{filters = #cpu.filters<{filters}>}}"
    return compute(folder, op, [w], np.ones(shape, dtype))


def convolve(folder, filters, x, packed, w, strides, dilations, pads, group):
    size = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(x.shape[2:], pads, dilations, w.shape[2:], strides, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *size), np.float32)
    op = (
        f"cpu.conv ins(%t0, %t1 : tensor<{spell(x)}>, tensor<{spell(packed)}>) OUTS {{kernel_shape = {spell_list(w.shape[2:])}, "
        f"strides = {spell_list(strides)}, dilations = {spell_list(dilations)}, pads_begin = {spell_list(pads)}, "
        f"pads_end = {spell_list(pads)}, group = {group} : i64, filters = #cpu.filters<{filters}>}}"
    )
    return compute(folder, op, [x, packed], result, "0.0")


def reference(x, w, strides, dilations, pads, group):
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=strides, dilations=dilations, pads=pads * 2, group=group)
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xwy"]
    model = helper.make_model(helper.make_graph([node], "g", infos[:2], infos[2:]), opset_imports=[helper.make_opsetid("", 21)])
    return ReferenceEvaluator(model).run(None, {"x": x, "w": w})[0]


CONVS = [
    # The input, the filters, and the window's strides, dilations, pads and groups.
    ((1, 4, 9, 9), (12, 4, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((2, 6, 9), (15, 2, 3), [2], [1], [1], 3),
    ((1, 3, 11, 8), (10, 3, 3, 2), [2, 1], [2, 3], [2, 0], 1),
    ((1, 2, 5, 6, 4), (9, 2, 2, 3, 1), [1, 1, 1], [1, 1, 1], [0, 1, 0], 1),
]


@pytest.mark.parametrize("x,w,strides,dilations,pads,group", CONVS, ids=range(len(CONVS)))
@pytest.mark.parametrize("rows,lanes", [(8, ""), (6, ""), (32, ", in_lanes = true")])
def test_filters_of_f32(x, w, strides, dilations, pads, group, rows, lanes, tmp_path):
    x, w = floats(*x), floats(*w)
    count = w.shape[0] // group
    blocks = -(-count // rows)
    flat = np.zeros((group, blocks * rows, w[0].size), np.float32)
    flat[:, :count] = w.reshape(group, count, -1)
    expected = flat.reshape(group, blocks, rows, -1).transpose(0, 1, 3, 2)
    filters = f"f32, rows = {rows}{lanes}"
    packed = pack_filters(tmp_path, filters, w, expected.shape)
    np.testing.assert_array_equal(packed, expected)
    y = convolve(tmp_path, filters, x, packed, w, strides, dilations, pads, group)
    np.testing.assert_allclose(y, reference(x, w, strides, dilations, pads, group), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels,count,group", [(40, 40, 1), (33, 70, 1), (3, 5, 2)])
def test_filters_of_two_bf16(channels, count, group, tmp_path):
    x, w = floats(1, channels * group, 6, 7), floats(count * group, channels, 3, 2)
    blocks, deep = -(-count // 32), -(-channels // 32)
    padded = np.zeros((group, blocks * 32, deep * 32, 6), np.float32)
    padded[:, :count, :channels] = w.reshape(group, count, channels, 6)
    # [G, Ob, channels / 32, taps, filter, channel]
    steps = padded.reshape(group, blocks, 32, deep, 32, 6).transpose(0, 1, 3, 5, 2, 4).reshape(group, blocks, deep * 6, 1024)
    near = steps.astype(ml_dtypes.bfloat16)
    rest = (steps - near.astype(np.float32)).astype(ml_dtypes.bfloat16)
    expected = np.concatenate([near, rest], -1)
    filters = "bf16x2, rows = 32"
    packed = pack_filters(tmp_path, filters, w, expected.shape, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(packed.view(np.uint16), expected.view(np.uint16))
    window = [1, 1], [1, 1], [1, 0], group
    y = convolve(tmp_path, filters, x, packed, w, *window)
    np.testing.assert_allclose(y, reference(x, w, *window), rtol=1e-3, atol=1e-3)


# What multiplies three weights, from Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), F(2x2, 3x3).
F2 = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


@pytest.mark.parametrize("m,stride,taps", [(2, 1, 16), (4, 1, 36), (2, 2, 16), (4, 2, 36)])
def test_filters_for_winograd(m, stride, taps, tmp_path):
    x, w = floats(1, 5, 9, 12), floats(11, 5, 3, 3)
    filters = f"f32, rows = 8, winograd = {m}" + ", stride = 2" * (stride == 2)
    packed = pack_filters(tmp_path, filters, w, (1, 2, taps * 5, 8))
    if (m, stride) == (2, 1):
        values = (F2 @ w @ F2.T).reshape(11, 5, 16)
        whole = np.zeros((16, 5, 16), np.float32)
        whole[:11] = values
        expected = whole.transpose(2, 1, 0).reshape(80, 2, 8).transpose(1, 0, 2)
        np.testing.assert_allclose(packed[0], expected, rtol=1e-5, atol=1e-6)
    window = [stride, stride], [1, 1], [1, 1], 1
    y = convolve(tmp_path, filters, x, packed, w, *window)
    np.testing.assert_allclose(y, reference(x, w, *window), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("element", ["i8", "bf16"])
@pytest.mark.parametrize("group", [1, 2])
def test_narrow_convolutions(element, group, tmp_path):
    rng = np.random.default_rng(group)
    padding = 17 if element == "i8" else 0
    if element == "i8":
        x, w = rng.integers(0, 256, (2, 6, 5, 7), np.uint8), rng.integers(-128, 128, (40, 6 // group, 3, 2), np.int8)
    else:
        x, w = (rng.integers(-8, 9, s).astype(ml_dtypes.bfloat16) for s in ((2, 6, 5, 7), (40, 6 // group, 3, 2)))
    packed = kernel_text.pack_filters(w, group, 4 if element == "i8" else 2)
    attributes = window(kernel_shape=(3, 2), strides=(2, 1), dilations=(1, 2), pads_begin=(1, 0), pads_end=(2, 2), group=group,
                        padding=padding)  # fmt: skip
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 2), (0, 2)], constant_values=padding)
    expected = np.moveaxis(references.convolve(padded, w, (2, 1), (1, 2), (0, 0, 0, 0), group), 1, -1)
    op = f"cpu.narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}, packing = #cpu.packing<{element}, panel = 32>}}"
    whole = element == "i8"
    y = compute(tmp_path, op, [last, packed], np.zeros(expected.shape, np.int32 if whole else np.float32), "0" if whole else "0.0")
    np.testing.assert_array_equal(y, expected)


def test_depthwise_convolutions_of_bytes(tmp_path):
    rng = np.random.default_rng(5)
    x, w = rng.integers(0, 256, (2, 6, 5, 7), np.uint8), rng.integers(-128, 128, (6, 1, 5, 3), np.int8)
    lines = np.zeros((6, 8, 3), np.int8)
    lines[:, :5] = w[:, 0]
    packed = np.ascontiguousarray(lines.reshape(6, 2, 4, 3).transpose(1, 3, 0, 2).reshape(6, 24))
    attributes = window(kernel_shape=(5, 3), strides=(1, 2), dilations=(1, 1), pads_begin=(2, 1), pads_end=(2, 1), padding=9)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (2, 2), (1, 1)], constant_values=9)
    expected = np.moveaxis(references.convolve(padded, w, (1, 2), (1, 1), (0, 0, 0, 0), 6), 1, -1)
    op = f"cpu.depthwise_narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}}}"
    y = compute(tmp_path, op, [last, packed], np.zeros(expected.shape, np.int32), "0")
    np.testing.assert_array_equal(y, expected)


def test_depthwise_convolutions_of_bf16(tmp_path):
    rng = np.random.default_rng(7)
    x, w = (rng.integers(-8, 9, s).astype(ml_dtypes.bfloat16) for s in ((2, 6, 5, 7), (6, 1, 3, 2)))
    attributes = window(kernel_shape=(3, 2), strides=(1, 2), dilations=(1, 1), pads_begin=(1, 1), pads_end=(1, 0), padding=0)
    last, packed = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(w.reshape(6, 6).T)
    expected = np.moveaxis(references.convolve(x.astype(np.float64), w.astype(np.float64), (1, 2), (1, 1), (1, 1, 1, 0), 6), 1, -1)
    op = f"cpu.depthwise_narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}}}"
    np.testing.assert_array_equal(compute(tmp_path, op, [last, packed], np.zeros(expected.shape, np.float32), "0.0"), expected)


@pytest.mark.parametrize("unsigned", [True, False])
def test_poolings_of_bytes(unsigned, tmp_path):
    rng = np.random.default_rng(6)
    dtype, lowest = (np.uint8, 0) if unsigned else (np.int8, -128)
    x = rng.integers(lowest, lowest + 256, (1, 5, 6, 3)).astype(dtype)
    expected = np.full((1, 3, 3, 3), lowest, dtype)
    for i, j in np.ndindex(3, 3):
        expected[0, i, j] = x[0, max(2 * i - 1, 0) : 2 * i + 2, 2 * j : 2 * j + 2].reshape(-1, 3).max(0)
    attributes = window(kernel_shape=(3, 2), strides=(2, 2), pads_begin=(1, 0)) + (", is_unsigned" if unsigned else "")
    op = f"cpu.channels_last_max_pool ins(%t0 : tensor<{spell(x)}>) OUTS {{{attributes}}}"
    np.testing.assert_array_equal(compute(tmp_path, op, [x], np.zeros(expected.shape, dtype), lowest), expected)
