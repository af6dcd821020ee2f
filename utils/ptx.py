#!/usr/bin/env python3
"""Assemble the kernels of models with CUDA's ptxas, and look at what it says of them.

    utils/ptx.py                    every case of ONNX's backend suite, for sm_80 and sm_90a
    utils/ptx.py --every 20         a sample of it
    utils/ptx.py MODEL.onnx ...     these models

A kernel that ptxas refuses, or that keeps registers in memory (spills), is an error. ptxas is that of $CUDA_HOME, of
$PATH or of PyPI's nvidia-cuda-nvcc-cu12. Options: --sm sm_80,sm_90a; --jobs N; --build FOLDER (build/release).
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


def find_ptxas():
    """The path of ptxas, or None."""
    home = os.environ.get("CUDA_HOME")
    if home and (Path(home) / "bin/ptxas").exists():
        return str(Path(home) / "bin/ptxas")
    if found := shutil.which("ptxas"):
        return found
    wheels = [Path(folder) / "nvidia/cuda_nvcc/bin/ptxas" for folder in sys.path]
    return next((str(path) for path in wheels if path.exists()), None)


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


def assemble(sardonyx, ptxas, model, sm, folder):
    """(faults, kernels, most registers) of a model's kernels on a device."""
    base = Path(folder) / f"{model.stem}-{os.urandom(4).hex()}-{sm}"
    made = subprocess.run(
        [sardonyx, "compile", str(model), "--device", sm, "--to", "ptx", "-o", f"{base}.ptx"],
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
    for ending in ("ptx", "cubin"):
        Path(f"{base}.{ending}").unlink(missing_ok=True)
    faults = [line for line in report.splitlines() if "error" in line or "fatal" in line]
    kernel = ""
    for line in report.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'|Function properties for (\S+)", line):
            kernel = found.group(1) or found.group(2)
        if (found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and found.group(1) != "0":
            faults.append(f"{kernel}: {found.group(0)}")
    registers = [int(text) for text in re.findall(r"Used (\d+) registers", report)]
    return faults, len(registers), max(registers, default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--sm", default="sm_80,sm_90a")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    args = parser.parse_args()
    ptxas = find_ptxas()
    if not ptxas:
        sys.exit("ptx.py: there is no ptxas: install CUDA's toolkit, or nvidia-cuda-nvcc-cu12 from PyPI")
    sardonyx = str(args.build / "bin/sardonyx")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        models = {path.stem: path for path in args.models} or list_suite(folder, args.every)
        tasks = {
            (name, sm): pool.submit(assemble, sardonyx, ptxas, path, sm, folder)
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
