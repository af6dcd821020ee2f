#!/usr/bin/env python3
"""Assemble the kernels of models with CUDA's ptxas, and look at what it says of them.

    utils/ptx.py                    every case of ONNX's backend suite, for sm_80 and sm_90a
    utils/ptx.py --every 20         a sample of it
    utils/ptx.py MODEL.onnx ...     these models
    utils/ptx.py --forms            models of a node or two, whose kernels must have the instructions that they are fast by

A kernel that ptxas refuses, that keeps registers or arrays in memory of threads (spills, a stack, ld.local), that has more
registers than its threads leave it, or whose products by warpgroups ptxas makes wait for each other, is an error. ptxas is that of $SARDONYX_PTXAS, $CUDA_HOME, $CUDA_PATH, $PATH or of
PyPI's nvidia-cuda-nvcc. Options: --sm sm_80,sm_90a; --jobs N; --build FOLDER (build/release).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


REGISTERS = 65536  # of a multiprocessor; a thread has 255 at most
# What the kernels of a model are fast by: the model's text, and how often each instruction must occur at least, on all devices or
# on those of a name. Options of `sardonyx compile` may follow.
WARPGROUPS = {"wgmma.mma_async": 4, "cp.async.bulk.tensor": 3, "mbarrier.try_wait": 2, "wgmma.wait_group": 2,
              "global.shared::cta.tile.bulk_group": 1, "cp.async.bulk.wait_group.read": 1, "fence.proxy.async": 1}  # fmt: skip
PAIRS = {".reqnctapercluster 2": 1, "multicast::cluster": 1, "mapa.shared::cluster": 4, "mbarrier.arrive.release.cluster.shared::cluster": 4,
         "barrier.cluster.arrive": 2, "barrier.cluster.wait": 2}  # fmt: skip
HALVES = {**WARPGROUPS, "stmatrix.sync.aligned.m8n8.x4": 2}
GROUPS = {"wgmma.mma_async": 24, "setmaxnreg": 2, "wgmma.wait_group": 4, "ex2.approx": 128}
TILES = {"mma.sync": 8, "ldmatrix": 2, "cp.async.cg": 2}
FORMS = {
    "product of f16": (
        "g (float16[n, 512] x, float16[512, 256] w) => (float16[n, 256] y) { y = MatMul (x, w) }",
        {"sm_80": TILES, "sm_90a": WARPGROUPS},
    ),
    "product of f16 in large tiles": (
        "g (float16[4096, 4096] x, float16[4096, 4096] w, float16[4096] b) => (float16[4096, 4096] y) "
        "{ p = MatMul (x, w) s = Add (p, b) y = Relu (s) }",
        {"sm_80": TILES, "sm_90a": {**HALVES, **PAIRS, "m64n256k16": 4, "setmaxnreg": 2, "cp.async.bulk.tensor": 7, "stmatrix.sync.aligned.m8n8.x4": 16}},
    ),
    "product of bf16 by columns": (
        "g (bfloat16[n, 768] x, bfloat16[3072, 768] w, bfloat16[n, 3072] r) => (bfloat16[n, 3072] y) "
        "{ p = Gemm <transB = 1> (x, w) y = Add (p, r) }",
        {"sm_80": TILES, "sm_90a": HALVES},
    ),
    "product of f16 that blocks share": (
        "g (float16[128, 3072] x, float16[3072, 768] w) => (float16[128, 768] y) { y = MatMul (x, w) }",
        {"sm_80": TILES, "sm_90a": {**WARPGROUPS, "m64n64k16": 4}},
    ),
    "product of f16 whose rows clusters reduce": (
        "g (float16[128, 768] x, float16[768, 768] w, float16[128, 768] r, float16[768] s, float16[768] b) => (float16[128, 768] y) "
        "{ p = MatMul (x, w) q = Add (p, r) y = LayerNormalization (q, s, b) }",
        {"sm_80": TILES, "sm_90a": {**TILES, ".reqnctapercluster 8": 1, "barrier.cluster.wait": 2, "mapa.shared::cluster": 2, "ld.shared::cluster": 2}},
    ),
    "product of bytes": (
        "g (uint8[n, 512] x, int8[512, 256] w) => (int32[n, 256] y) { y = MatMulInteger (x, w) }",
        {"mma.sync": 8},
    ),
    "product of bytes by weights": (
        f"g (uint8[n, 128] x, uint8 z) => (int32[n, 64] y) <int8[128, 64] w = {{{', '.join(['3'] * 128 * 64)}}}> "
        "{ y = MatMulInteger (x, w, z) }",
        {"sm_80": {"mma.sync": 8}, "sm_90a": {**WARPGROUPS, "s32.s8.s8": 4}},
    ),
    "convolution of f16": (
        "g (float16[n, 64, 56, 56] x, float16[64, 64, 3, 3] w, float16[64] b) => (float16[n, 64, 56, 56] y) "
        "{ c = Conv <pads = [1, 1, 1, 1]> (x, w, b) y = Relu (c) }",
        {"sm_80": TILES, "sm_90a": {**WARPGROUPS, "im2col": 1}},
    ),
    "products of f16 in rows of odd sizes": (
        "g (float16[n, 500] x, float16[500, 252] w) => (float16[n, 252] y) { y = MatMul (x, w) }",
        {"mma.sync": 8, "ldmatrix": 2},
    ),
    "product of f32": (
        "g (float[n, 512] x, float[512, 256] w) => (float[n, 256] y) { y = MatMul (x, w) }",
        {"cp.async.c": 2, "fma.rn.f32": 16},
    ),
    "product of f32 as two bf16": (
        "g (float[n, 512] x, float[256, 512] w) => (float[n, 256] y) { y = Gemm <transB = 1> (x, w) }",
        {"sm_80": {**TILES, "m16n8k16.row.col.f32.bf16": 12, "fma.rn.bf16x2": 4},
         "sm_90a": {**WARPGROUPS, "f32.bf16.bf16": 6, "fma.rn.bf16x2": 4, "fence.proxy.async": 2}},
        "--precision", "bf16x3",
    ),
    "product of f32 as two bf16 in large tiles": (
        "g (float[4096, 4096] x, float[4096, 4096] w) => (float[4096, 4096] y) { y = Gemm <transB = 1> (x, w) }",
        {"sm_80": TILES, "sm_90a": {**WARPGROUPS, **PAIRS, "m64n256k16.f32.bf16.bf16": 6}},
        "--precision", "bf16x3",
    ),
    "convolution of f32 as two bf16": (
        "g (float[n, 64, 56, 56] x, float[64, 64, 3, 3] w) => (float[n, 64, 56, 56] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
        {"sm_80": TILES, "sm_90a": {**WARPGROUPS, "im2col": 1, "f32.bf16.bf16": 6}},
        "--precision", "bf16x3",
    ),
    "attention of f16": (
        "g (float16[2, 16, 4096, 128] q, float16[2, 16, 4096, 128] k, float16[2, 16, 4096, 128] v) => (float16[2, 16, 4096, 128] y) "
        "{ y = Attention (q, k, v) }",
        {"sm_80": TILES, "sm_90a": {**GROUPS, "m64n128k16": 32, "cp.async.bulk.tensor": 6}},
    ),
    "attention of bf16 to the keys before": (
        "g (bfloat16[2, 16, m, 64] q, bfloat16[2, 4, m, 64] k, bfloat16[2, 4, m, 64] v) => (bfloat16[2, 16, m, 64] y) "
        "{ y = Attention <is_causal = 1> (q, k, v) }",
        {"sm_80": TILES, "sm_90a": {**TILES, **GROUPS, "m64n128k16": 8, "m64n64k16": 16}},
    ),
    "attention of f16 with a bias": (
        "g (float16[2, 16, 2048, 128] q, float16[2, 16, 2048, 128] k, float16[2, 16, 2048, 128] v, float16[16, 2048, 2048] m) "
        "=> (float16[2, 16, 2048, 128] y) { y = Attention (q, k, v, m) }",
        {"sm_90a": GROUPS},
    ),
    "attention of f16 in long rows": (
        "g (float16[2, 8, 2048, 256] q, float16[2, 8, 2048, 256] k, float16[2, 8, 2048, 256] v) => (float16[2, 8, 2048, 256] y) "
        "{ y = Attention <is_causal = 1> (q, k, v) }",
        {"sm_90a": {"wgmma.mma_async": 40, "m64n256k16": 8}},
    ),
    "elementwise of f32": ("g (float[1024, 64] x) => (float[1024, 64] y) { y = Relu (x) }", {"ld.global.v4": 1, "st.global.v4": 1}),
    "rows of f32": ("g (float[512, 768] x) => (float[512, 768] y) { y = Softmax (x) }", {"ld.global.v4": 1, "shfl.sync.bfly": 2}),
}


def find_ptxas():
    """The path of ptxas, or None."""
    named = os.environ.get("SARDONYX_PTXAS")
    if named:
        return None if named == "none" else named
    for name in ("CUDA_HOME", "CUDA_PATH"):
        home = os.environ.get(name)
        if home and (Path(home) / "bin/ptxas").exists():
            return str(Path(home) / "bin/ptxas")
    if found := shutil.which("ptxas"):
        return found
    wheels = [Path(folder) / "nvidia" / part / "bin/ptxas" for folder in sys.path for part in ("cu13", "cuda_nvcc")]
    return next((str(path) for path in wheels if path.exists()), None)


def find_local(text):
    """The kernels of a text of PTX that have arrays in memory of threads."""
    kernel, found = "", []
    for line in text.splitlines():
        if entry := re.search(r"\.entry (\w+)\(", line):
            kernel = entry[1]
        if re.match(r"\s*(@\S+\s+)?(ld|st)\.local|\s*\.local\b", line) and kernel not in found:
            found.append(kernel)
    return found


def most_registers(text):
    """The registers that each kernel may have, by the threads of a block that it is made for."""
    limits, kernel = {}, ""
    for line in text.splitlines():
        if entry := re.search(r"\.entry (\w+)\(", line):
            kernel = entry[1]
        if threads := re.match(r"\s*\.maxntid (\d+)", line):
            limits[kernel] = min(255, REGISTERS // int(threads[1]))
    return limits


def wanted_on(name, sm):
    """What the kernels of a form must have on a device."""
    wanted = FORMS[name][1]
    return wanted.get(sm, {}) if any(isinstance(least, dict) for least in wanted.values()) else wanted


def missing(text, wanted):
    """What a text lacks of the instructions that it must have."""
    return [f"{text.count(word)} of {word}, expected {least}" for word, least in wanted.items() if text.count(word) < least]


def list_suite(folder, every):
    """Writes the suite's models to `folder`: {name: path}."""
    sys.path.insert(0, str(ROOT / "test/Conformance"))
    import onnx
    from test_onnx_backend import CASES, PASSING

    models = {}
    for name in sorted(PASSING)[::every]:
        case = CASES[name]
        if case.model is not None:
            models[name] = Path(folder) / f"{name}.onnx"
            onnx.save(case.model, models[name])
        elif case.model_dir is not None:
            models[name] = Path(case.model_dir) / "model.onnx"
    return models


def list_forms(folder):
    """Writes the models of FORMS: {name: path}."""
    models = {}
    for name, (text, *_) in FORMS.items():
        models[name] = Path(folder) / f"{name.replace(' ', '_')}.onnxtxt"
        models[name].write_text(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}')
    return models


def assemble(sardonyx, ptxas, model, sm, folder, wanted=None, options=()):
    """(faults, kernels, most registers) of a model's kernels on a device, which must have the instructions `wanted`."""
    base = Path(folder) / f"{model.stem}-{os.urandom(4).hex()}-{sm}"
    made = subprocess.run(
        [sardonyx, "compile", str(model), "--device", sm, "--to", "ptx", "-o", f"{base}.ptx", *options],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        # What has no kernels, or is refused, is not ptxas's to judge.
        return [], 0, 0
    done = subprocess.run(
        [ptxas, f"-arch={sm}", "-O3", "-v", "-o", f"{base}.cubin", f"{base}.ptx"], capture_output=True, text=True
    )
    report = done.stdout + done.stderr
    text = Path(f"{base}.ptx").read_text()
    for ending in ("ptx", "cubin"):
        Path(f"{base}.{ending}").unlink(missing_ok=True)
    # C7510: products by warpgroups are serialised; C7519: their registers are written after the fence. Registers that a
    # warpgroup does not get are told, too.
    marks = ("error", "fatal", "C7510", "C7519", "wgmma.mma_async instructions are serialized", "setmaxnreg")
    faults = [line for line in report.splitlines() if any(mark in line for mark in marks)]
    faults += [f"{kernel}: memory of threads" for kernel in find_local(text)]
    faults += missing(text, wanted or {})
    limits, kernel = most_registers(text), ""
    for line in report.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'|Function properties for (\S+)", line):
            kernel = found.group(1) or found.group(2)
        if (found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and found.group(1) != "0":
            faults.append(f"{kernel}: {found.group(0)}")
        if (found := re.search(r"(\d+) bytes stack frame", line)) and found.group(1) != "0":
            faults.append(f"{kernel}: {found.group(0)}")
        if (found := re.search(r"Used (\d+) registers", line)) and int(found.group(1)) > limits.get(kernel, 255):
            faults.append(f"{kernel}: {found.group(1)} registers, {limits[kernel]} are there for each thread")
    registers = [int(text) for text in re.findall(r"Used (\d+) registers", report)]
    return faults, len(registers), max(registers, default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--sm", default="sm_80,sm_90a")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    args = parser.parse_args()
    ptxas = find_ptxas()
    if not ptxas:
        sys.exit("ptx.py: there is no ptxas: install CUDA's toolkit, or nvidia-cuda-nvcc from PyPI")
    sardonyx = str(args.build / "bin/sardonyx")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        models = {path.stem: path for path in args.models}
        if not models:
            models = list_forms(folder) if args.forms else list_suite(folder, args.every)
        tasks = {
            (name, sm): pool.submit(assemble, sardonyx, ptxas, path, sm, folder, *((wanted_on(name, sm), FORMS[name][2:]) if args.forms else ()))
            for name, path in models.items()
            for sm in args.sm.split(",")
        }
        bad, kernels, most = 0, 0, 0
        for (name, sm), task in tasks.items():
            faults, count, registers = task.result()
            kernels, most = kernels + count, max(most, registers)
            bad += bool(faults)
            for fault in faults:
                print(f"{name} ({sm}): {fault}", flush=True)
    print(f"{kernels} kernels of {len(models)} models assembled; the largest uses {most} registers")
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
