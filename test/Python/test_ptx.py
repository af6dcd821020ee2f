"""Kernels that LLVM's NVPTX back end writes, run by the interpreter of PTX and compared with numpy."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
LLVM = Path("/usr/lib/llvm-22/bin")
RUN = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release")) / "bin" / "ptx-run"
LOWERING = (
    "builtin.module(nvvm-attach-target{chip=sm_80 features=+ptx78 O=3},gpu.module(convert-nvgpu-to-nvvm,"
    "expand-strided-metadata,convert-vector-to-scf{full-unroll=true},convert-scf-to-cf,lower-affine,canonicalize,cse,"
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv},canonicalize,cse,reconcile-unrealized-casts),"
    "convert-nvvm-to-llvm,gpu-module-to-binary{format=isa})"
)


def lower(name, tmp_path):
    """The PTX of a module of kernels."""
    if not (LLVM / "mlir-opt").exists():
        pytest.skip("needs LLVM 22's mlir-opt")
    command = [LLVM / "mlir-opt", Path(__file__).parent / "Inputs" / name, f"-pass-pipeline={LOWERING}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', done.stdout).group(1)
    text = re.sub(r"\\([0-9A-Fa-f]{2}|\\)", lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)
    path = tmp_path / "kernels.ptx"
    path.write_text(text.rstrip("\0"))
    return path


def run(ptx, kernel, threads, arrays, tmp_path):
    """Runs one block of a kernel; the arrays are afterwards as it left them."""
    files = [tmp_path / f"{i}.bin" for i in range(len(arrays))]
    for file, array in zip(files, arrays):
        array.tofile(file)
    command = [RUN, ptx, kernel, "1", str(threads), "0", *(f"data={file}" for file in files)]
    done = subprocess.run(command, capture_output=True, text=True)
    for file, array in zip(files, arrays):
        array[...] = np.fromfile(file, array.dtype).reshape(array.shape)
    return done


@pytest.fixture
def operands():
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((16, 64), (64, 8)))
    return a, b, np.full((16, 8), np.nan, np.float32)


def test_product_by_tensor_cores(operands, tmp_path):
    a, b, c = operands
    ptx = lower("ptx_product.mlir", tmp_path)
    for instruction in ("mma.sync.aligned.m16n8k16", "ldmatrix", "cp.async.ca"):
        assert instruction in ptx.read_text()
    done = run(ptx, "product", 32, [a, b, c], tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_product_without_its_wait_is_refused(operands, tmp_path):
    ptx = lower("ptx_product.mlir", tmp_path)
    text = ptx.read_text()
    assert "cp.async.wait_group" in text
    ptx.write_text(re.sub(r"cp\.async\.wait_group\s+\d+;", "", text))
    done = run(ptx, "product", 32, list(operands), tmp_path)
    assert done.returncode == 1
    assert re.search(r"kernel product, .*unfinished async copy", done.stderr), done.stderr


def test_buffer_that_is_too_small_is_refused(operands, tmp_path):
    a, b, c = operands
    done = run(lower("ptx_product.mlir", tmp_path), "product", 32, [a, b, c[:15].copy()], tmp_path)
    assert done.returncode == 1
    assert re.search(r"writes 4 bytes .*out of bounds.*allocation of 480 bytes", done.stderr), done.stderr


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O3"])
def test_arithmetic_is_that_of_the_host(level, tmp_path):
    """C is compiled for the host and for NVPTX; contractions and what C leaves open are kept out."""
    if not (LLVM / "clang").exists():
        pytest.skip("needs LLVM 22's clang")
    source = Path(__file__).parent / "Inputs" / "ptx_arithmetic.c"
    common = [LLVM / "clang", "-w", "-ffp-contract=off", source]
    host, ptx = tmp_path / "host", tmp_path / "kernels.ptx"
    made = subprocess.run([*common, "-O1", "-o", host, "-lm"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip("the host's compiler can't link")
    device = ["--target=nvptx64-nvidia-cuda", "-march=sm_80", "-nocudalib", "-ffreestanding", "-S", level, "-o", ptx]
    subprocess.run([*common, *device], check=True)
    numbers = np.random.default_rng(1).integers(0, 1 << 32, 256, np.uint32)
    expected = np.frombuffer(subprocess.run([host], input=numbers.tobytes(), capture_output=True).stdout, np.uint64)
    results = np.zeros(256, np.uint64)
    done = run(ptx, "compute", 256, [results, numbers], tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(results, expected)
