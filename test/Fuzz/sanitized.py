#!/usr/bin/env python3
"""Models through a `sardonyx` tool that was built with sanitizers.

    sanitized.py BUILD [--every N] [--jobs J] [FOLDER ...]

Loads and runs models with BUILD/bin/sardonyx: those of ONNX's conformance suite, with the suite's inputs (every N-th
of them), and every .onnx file in the folders, with inputs that the tool makes. An interpreter without sanitizers
can't load the Python module of such a build, therefore the tool. Whether the numbers are right is tested
elsewhere; here a model may run or be refused, but nothing may be reported. Exit status: 1 if something is.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Conformance"))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx.backend.test.runner import _normalize_tensor  # noqa: E402

SECONDS = 300
TAKEN = "fiub"  # kinds of arrays that the tool reads
# The libraries of LLVM are not instrumented (see test/CMakeLists.txt).
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "SARDONYX_CACHE": "0",
}
PASSING = (HERE.parent / "Conformance" / "passing.txt").read_text().split()


def suite(folder, every):
    """(name, arguments of `sardonyx run`) of the cases; their files go to the folder."""
    cases = {case.name: case for case in load_model_tests(kind="node") if case.model is not None}
    for name in [name for name in PASSING if name in cases][::every]:
        case, place = cases[name], folder / name
        place.mkdir()
        onnx.save(case.model, place / "model.onnx")
        arguments = [str(place / "model.onnx")]
        for value, given in zip(case.model.graph.input, map(_normalize_tensor, case.data_sets[0][0])):
            for title, array in arrays_of(value.name, given):
                np.save(place / f"{title}.npy", array)
                arguments.append(f"--input={title}={place / title}.npy")
        yield name, arguments


def arrays_of(name, value):
    """(name, array) of what the tool takes of an input; the tool makes up what is not given."""
    if isinstance(value, list):
        parts = [list(arrays_of(f"{name}.{i}", item)) for i, item in enumerate(value)]
        return sum(parts, []) if all(parts) else []
    array = np.asarray(value)
    return [(name, array)] if value is not None and array.dtype.kind in TAKEN else []


def run(tool, name, arguments):
    """What the sanitizers or a signal said, or nothing."""
    try:
        done = subprocess.run(
            [tool, "run", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env=dict(os.environ, **SETTINGS),
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    said = done.stdout + done.stderr
    for mark in ("runtime error:", "ERROR: AddressSanitizer", "AddressSanitizer:"):
        if mark in said:
            return said[max(0, said.index(mark) - 200) :][:3000]
    return f"signal {-done.returncode}: {said[-500:]}" if done.returncode < 0 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_intermixed_args()
    tool, faults, count = args.build / "bin" / "sardonyx", 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        tasks = list(suite(Path(folder), args.every)) if args.every else []
        tasks += [(path.stem, [str(path)]) for place in args.folders for path in sorted(place.glob("*.onnx"))]
        for name, said in zip([t[0] for t in tasks], pool.map(lambda task: run(tool, *task), tasks)):
            count += 1
            if said:
                faults += 1
                print(f"{name}: {said}", flush=True)
    print(f"{count} models, {faults} reports")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
