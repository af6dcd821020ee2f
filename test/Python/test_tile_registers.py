"""Kernels for tile registers (AMX) and products of bytes (VNNI), by a stand-in for these where the processor has none, against
sums of whole numbers."""

import ctypes
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kernel_text import LLVM, PANEL, call, compile_kernel, grouped, pack_filters, spell, window
from references import convolve

FOLDER = Path(__file__).parent
FEATURES = Path("/proc/cpuinfo").read_text()
# With the widest vectors that the processor has.
if "avx512_bf16" in FEATURES:
    TARGET = "#cpu.target<int8 = amx, bf16 = amx>"
    CPU = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx512bf16"]
else:
    TARGET = "#cpu.target<vector_bits = 256, int8 = amx>"
    CPU = ["-mavx2", "-mfma", "-mavxvnni"]
CPU += ["-mamx-tile", "-mamx-int8", "-mamx-bf16"]
VECTORS = TARGET.replace("int8 = amx", "int8 = vnni")
PASSES = "cpu-lower-contractions,cpu-lower-narrow-conv,cpu-lower-channel-windows"

pytestmark = [
    pytest.mark.skipif(not (LLVM / "mlir-opt").exists(), reason="MLIR's tools are not there"),
    pytest.mark.skipif("avx2" not in FEATURES, reason="the processor lacks the vectors beside"),
]


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    """The stand-in, or None where the processor has all."""
    if "amx_tile" in FEATURES:
        return None
    library = tmp_path_factory.mktemp("tiles") / "tiles.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, FOLDER / "tile_registers.c"], check=True)
    return library


def run(folder, tiles, op, inputs, result, init, target=TARGET):
    """In a process of its own, since an instruction that a processor lacks ends it."""
    library = compile_kernel(folder, op, inputs, result, init, "", PASSES, target, CPU)
    np.savez(folder / "operands.npz", *[x.view(np.uint16) if x.dtype == ml_dtypes.bfloat16 else x for x in inputs])
    np.save(folder / "result.npy", result)
    subprocess.run([sys.executable, __file__, library, tiles or "", folder], check=True, cwd=FOLDER)
    return np.load(folder / "result.npy")


def allow_tiles():
    """Linux gives tile registers to processes that ask for them."""
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    assert ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0


def main(library, tiles, folder):
    if tiles:
        stand_in = ctypes.CDLL(tiles)
    else:
        allow_tiles()
    operands = np.load(Path(folder) / "operands.npz")
    result = np.load(Path(folder) / "result.npy")
    np.save(Path(folder) / "result.npy", call(library, [operands[name] for name in operands.files], result))
    if tiles:
        names = "tile_instructions", "vector_instructions"
        counts = [ctypes.c_ulong.in_dll(stand_in, name).value for name in names]
        assert sum(counts) > 0 or "avx512_vnni" in FEATURES, "no instruction of another processor was run"


@pytest.mark.parametrize("m, k, n", [(50, 64, 40), (33, 200, 64), (16, 131, 32)])
def test_products_of_bytes(m, k, n, tiles, tmp_path):
    rng = np.random.default_rng(m)
    a, b = rng.integers(0, 256, (m, k), np.uint8), rng.integers(-128, 128, (k, n), np.int8)
    packed = grouped(b, 4)
    op = f"cpu.packed_matmul ins(%t0, %t1 : tensor<{spell(a)}>, tensor<{spell(packed)}>) OUTS {{packing = #cpu.packing<i8, panel = 32>}}"
    y = run(tmp_path, tiles, op, [a, packed], np.zeros((m, n), np.int32), "0")
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32))


CONVS = [
    ((1, 64, (9, 11)), 70, (1, 1), (1, 1), (0, 0, 0, 0), 1),  # rows of the input
    ((2, 24, (9, 7)), 40, (3, 3), (1, 1), (1, 1, 1, 1), 1),
    ((1, 3, (31, 30)), 32, (7, 7), (2, 2), (3, 3, 3, 3), 1),
    ((1, 128, (7, 7)), 160, (3, 3), (1, 1), (1, 1, 1, 1), 2),
    ((1, 512, (7, 7)), 64, (3, 3), (1, 1), (1, 1, 1, 1), 1),
]


@pytest.mark.parametrize("size, filters, kernel, strides, pads, group", CONVS, ids=str)
@pytest.mark.parametrize("element", ["i8", "bf16"])
@pytest.mark.parametrize("target", [TARGET, VECTORS], ids=["tiles", "vectors"])
def test_convolutions(target, element, size, filters, kernel, strides, pads, group, tiles, tmp_path):
    if element == "bf16" and "bf16" not in target:
        pytest.skip("the processor lacks vectors of bf16")
    images, channels, spatial = size
    rng = np.random.default_rng(filters)
    shape, filter_shape = (images, channels, *spatial), (filters, channels // group, *kernel)
    padding = 17 if element == "i8" else 0
    if element == "i8":
        x, w = rng.integers(0, 256, shape, np.uint8), rng.integers(-128, 128, filter_shape, np.int8)
    else:
        x, w = (rng.integers(-8, 9, s).astype(ml_dtypes.bfloat16) for s in (shape, filter_shape))
    expected = convolve(x.astype(np.float64) - padding, w, strides, (1, 1), pads, group)
    sums = w.astype(np.float64).reshape(filters, -1).sum(1)
    expected = np.moveaxis(expected + padding * sums.reshape(-1, 1, 1), 1, -1)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    packed = pack_filters(w, group, 4 if element == "i8" else 2, unit=16)
    attributes = window(
        kernel_shape=kernel, strides=strides, dilations=(1, 1), pads_begin=pads[:2], pads_end=pads[2:], group=group, padding=padding
    )
    attributes += f", packing = #cpu.packing<{element}, panel = {PANEL}>"
    op = f"cpu.narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}}}"
    result = np.zeros(expected.shape, np.int32 if element == "i8" else np.float32)
    y = run(tmp_path, tiles, op, [last, packed], result, "0" if element == "i8" else "0.0", target)
    np.testing.assert_array_equal(y, expected)


def test_single_channels(tiles, tmp_path):
    rng = np.random.default_rng(4)
    x, w = rng.integers(0, 256, (2, 20, 9, 11), np.uint8), rng.integers(-128, 128, (20, 1, 5, 3), np.int8)
    lines = np.zeros((20, 8, 3), np.int8)
    lines[:, :5] = w[:, 0]
    packed = np.ascontiguousarray(lines.reshape(20, 2, 4, 3).transpose(1, 3, 0, 2).reshape(6, 80))
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (2, 2), (1, 1)], constant_values=9)
    expected = np.moveaxis(convolve(padded, w, (1, 2), (1, 1), (0, 0, 0, 0), 20), 1, -1)
    attributes = window(kernel_shape=(5, 3), strides=(1, 2), dilations=(1, 1), pads_begin=(2, 1), pads_end=(2, 1), padding=9)
    op = f"cpu.depthwise_narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}}}"
    y = run(tmp_path, tiles, op, [last, packed], np.zeros(expected.shape, np.int32), "0", VECTORS)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("channels", [5, 20, 64])
@pytest.mark.parametrize("strides, dilations", [((1, 2), (1, 1)), ((1, 1), (2, 1)), ((2, 1), (1, 2))], ids=str)
def test_single_channels_of_bf16(channels, strides, dilations, tiles, tmp_path):
    if "bf16" not in TARGET:
        pytest.skip("the processor lacks vectors of bf16")
    rng = np.random.default_rng(channels)
    x, w = (rng.integers(-8, 9, s).astype(ml_dtypes.bfloat16) for s in ((2, channels, 9, 21), (channels, 1, 5, 3)))
    pads = (2, 1, 3, 1)
    expected = np.moveaxis(convolve(x.astype(np.float64), w.astype(np.float64), strides, dilations, pads, channels), 1, -1)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    packed = np.ascontiguousarray(w.reshape(channels, 15).T)
    attributes = window(kernel_shape=(5, 3), strides=strides, dilations=dilations, pads_begin=pads[:2], pads_end=pads[2:], padding=0)
    op = f"cpu.depthwise_narrow_conv ins(%t0, %t1 : tensor<{spell(last)}>, tensor<{spell(packed)}>) OUTS {{{attributes}}}"
    y = run(tmp_path, tiles, op, [last, packed], np.zeros(expected.shape, np.float32), "0.0")
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("channels", [3, 16, 70])
def test_poolings_of_f32(channels, tiles, tmp_path):
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((2, 9, 21, channels), np.float32)
    x[0, 3, 5, 1], x[1, 0, 0, 2] = np.nan, -np.nan
    attributes = window(kernel_shape=(3, 2), strides=(2, 1), pads_begin=(1, 1))
    expected = np.empty((2, 5, 21, channels), np.float32)
    for i, j in np.ndindex(5, 21):
        expected[:, i, j] = x[:, max(2 * i - 1, 0) : 2 * i + 2, max(j - 1, 0) : j + 1].max((1, 2))
    op = f"cpu.channels_last_max_pool ins(%t0 : tensor<{spell(x)}>) OUTS {{{attributes}}}"
    y = run(tmp_path, tiles, op, [x], np.zeros(expected.shape, np.float32), "0xFF800000")
    np.testing.assert_array_equal(y, expected)


if __name__ == "__main__":
    main(*sys.argv[1:])
