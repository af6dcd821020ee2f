"""Kernels for bytes widened to 16 bits (vpmaddwd), at each width of vectors, and their plain loops, against sums of whole
numbers."""

from pathlib import Path

import numpy as np
import pytest
from kernel_text import LLVM, PANEL, call, compile_kernel, grouped, pack_filters, spell, window
from references import convolve

FEATURES = Path("/proc/cpuinfo").read_text()
WIDTHS = {
    512: ("avx512bw", ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"]),
    256: ("avx2", ["-mavx2"]),
    128: ("sse2", ["-msse2"]),
}
PASSES = "cpu-decompose-packed-ops,cpu-lower-contractions,cpu-lower-narrow-conv,cpu-lower-channel-windows,cpu-lower-loops"

pytestmark = pytest.mark.skipif(not (LLVM / "mlir-opt").exists(), reason="MLIR's tools are not there")


@pytest.fixture(params=[512, 256, 128, "loops"])
def machine(request):
    """Attributes of kernels, the target, and what clang is told."""
    bits = 128 if request.param == "loops" else request.param
    feature, flags = WIDTHS[bits]
    if feature not in FEATURES:
        pytest.skip("the processor lacks the vectors")
    attributes = ", cpu.plan = #cpu.loops" if request.param == "loops" else ""
    return attributes, f"#cpu.target<vector_bits = {bits}, int8 = maddwd>", flags


def run(folder, machine, op, inputs, shape):
    attributes, target, flags = machine
    result = np.zeros(shape, np.int32)
    return call(compile_kernel(folder, op, inputs, result, "0", attributes, PASSES, target, flags), inputs, result)


def widened(x):
    return np.ascontiguousarray(x).astype(np.int16)


def numbers(rng, shape, dtype, extreme):
    """Of any size, or the largest and the smallest only."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = rng.choice([low, high], shape) if extreme else rng.integers(low, high + 1, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("extreme", [False, True], ids=["any", "extreme"])
@pytest.mark.parametrize("m, k, n", [(1, 64, 40), (7, 33, 64), (50, 131, 96), (13, 1, 33)])
def test_products(m, k, n, extreme, machine, tmp_path):
    rng = np.random.default_rng(m)
    a, b = numbers(rng, (m, k), np.uint8, extreme), numbers(rng, (k, n), np.int8, extreme)
    if extreme:
        a[-1], b[:, -1] = 255, -128
    operands = [widened(a), widened(grouped(b, 2))]
    op = f"cpu.packed_matmul ins(%t0, %t1 : tensor<{spell(operands[0])}>, tensor<{spell(operands[1])}>) OUTS {{packing = #cpu.packing<i16, panel = 32>}}"
    y = run(tmp_path, machine, op, operands, (m, n))
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32))


CONVS = [
    ((1, 64, (9, 11)), 70, (1, 1), (1, 1), (0, 0, 0, 0), 1, 255),  # rows of the input
    ((2, 21, (9, 7)), 40, (3, 3), (1, 1), (1, 1, 1, 1), 1, 0),
    ((1, 3, (15, 14)), 32, (7, 7), (2, 2), (3, 3, 3, 3), 1, 17),
    ((1, 66, (7, 7)), 80, (3, 3), (1, 1), (1, 0, 2, 1), 2, 255),
    ((1, 96, (6, 5)), 200, (1, 1), (2, 2), (0, 0, 0, 0), 1, 128),
]


@pytest.mark.parametrize("extreme", [False, True], ids=["any", "extreme"])
@pytest.mark.parametrize("size, filters, kernel, strides, pads, group, padding", CONVS, ids=str)
def test_convolutions(size, filters, kernel, strides, pads, group, padding, extreme, machine, tmp_path):
    images, channels, spatial = size
    rng = np.random.default_rng(filters)
    x = numbers(rng, (images, channels, *spatial), np.uint8, extreme)
    w = numbers(rng, (filters, channels // group, *kernel), np.int8, extreme)
    expected = convolve(x.astype(np.float64) - padding, w, strides, (1, 1), pads, group)
    sums = w.astype(np.float64).reshape(filters, -1).sum(1)
    expected = np.moveaxis(expected + padding * sums.reshape(-1, 1, 1), 1, -1)
    operands = [widened(np.moveaxis(x, 1, -1)), widened(pack_filters(w, group, 2))]
    attributes = window(
        kernel_shape=kernel, strides=strides, dilations=(1, 1), pads_begin=pads[:2], pads_end=pads[2:], group=group, padding=padding
    )
    attributes += f", packing = #cpu.packing<i16, panel = {PANEL}>"
    op = f"cpu.narrow_conv ins(%t0, %t1 : tensor<{spell(operands[0])}>, tensor<{spell(operands[1])}>) OUTS {{{attributes}}}"
    np.testing.assert_array_equal(run(tmp_path, machine, op, operands, expected.shape), expected)


@pytest.mark.parametrize("extreme", [False, True], ids=["any", "extreme"])
@pytest.mark.parametrize("kernel, channels", [((5, 3), 20), ((3, 3), 67), ((2, 2), 3)])
def test_single_channels(kernel, channels, extreme, machine, tmp_path):
    """Two lines of the kernel together, the last one alone."""
    rng = np.random.default_rng(channels)
    x, w = numbers(rng, (2, channels, 9, 11), np.uint8, extreme), numbers(rng, (channels, 1, *kernel), np.int8, extreme)
    pairs, taps = -(-kernel[0] // 2), kernel[1]
    lines = np.zeros((channels, 2 * pairs, taps), np.int8)
    lines[:, : kernel[0]] = w[:, 0]
    packed = lines.reshape(channels, pairs, 2, taps).transpose(1, 3, 0, 2).reshape(pairs * taps, 2 * channels)
    operands = [np.ascontiguousarray(np.moveaxis(x, 1, -1)), widened(packed)]
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (2, 2), (1, 1)], constant_values=255)
    expected = np.moveaxis(convolve(padded, w, (1, 2), (1, 1), (0, 0, 0, 0), channels), 1, -1)
    attributes = window(kernel_shape=kernel, strides=(1, 2), dilations=(1, 1), pads_begin=(2, 1), pads_end=(2, 1), padding=255)
    op = f"cpu.depthwise_narrow_conv ins(%t0, %t1 : tensor<{spell(operands[0])}>, tensor<{spell(operands[1])}>) OUTS {{{attributes}}}"
    np.testing.assert_array_equal(run(tmp_path, machine, op, operands, expected.shape), expected)
