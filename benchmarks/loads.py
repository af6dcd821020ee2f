#!/usr/bin/env python3
"""What loading models costs, cold and on one core, as Markdown: seconds, where they go, and peaks of memory.

    loads.py MODEL.onnx... [--bytes] [--compile WAY] [--peer]

Each load is a process of its own on one core, with an empty cache, that does nothing else. Phases are those of
docs/Architecture.md, in milliseconds; "objects" is LLVM. Peaks are what the kernel counts (VmHWM) after the load, less
what the process holds before it, beside the same of onnxruntime, which loads the model with one thread, and of both with
what the process held. With `--compile process` they are of the process that loads.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import side_by_side

GOAL = 3.0  # seconds
PHASES = ["import", "onnx", "linalg", "dispatch", "kernels", "codegen", "llvm", "objects", "link", "init"]

PROGRAM = """
import json, re, sys, time
engine, path, as_bytes, way = sys.argv[1], sys.argv[2], sys.argv[3] == "1", sys.argv[4]
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
if engine == "sardonyx":
    import sardonyx
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    options.compile = way
    make = lambda model: sardonyx.InferenceSession(model, options)
else:
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    make = lambda model: onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
model = open(path, "rb").read() if as_bytes else path
before, begin = peak(), time.perf_counter()
session = make(model)
seconds = time.perf_counter() - begin
timings = session.timings if engine == "sardonyx" else {}
print(json.dumps({"seconds": seconds, "before": before, "peak": peak(), "timings": timings}))
"""


def load(engine, path, as_bytes=False, way="wait"):
    """{"seconds", "before", "peak", "timings"} of one load, or {"failure"}."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, engine, str(path), str(int(as_bytes)), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"SARDONYX_CACHE_DIR": cache},
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1]),
        )
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def row(path, ours, peer):
    if "failure" in ours:
        return [path.stem, ours["failure"]]
    taken = ours["peak"] - ours["before"]
    cells = [path.stem, f"{ours['seconds']:.2f}"]
    cells += [f"{1e3 * ours['timings'].get(phase, 0):.0f}" for phase in PHASES]
    cells += [f"{taken / 1e6:.0f}", f"{path.stat().st_size / 1e6:.0f}"]
    if peer and "failure" not in peer:
        other = peer["peak"] - peer["before"]
        cells += [f"{other / 1e6:.0f}", f"{taken / other:.2f}", f"{ours['peak'] / peer['peak']:.2f}"]
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--bytes", action="store_true", help="load from bytes in memory")
    parser.add_argument("--compile", default="wait", choices=["wait", "background", "process"], help="SessionOptions.compile")
    parser.add_argument("--peer", action="store_true", help="onnxruntime beside it")
    options = parser.parse_args()
    print(side_by_side.processor() + "; " + side_by_side.versions(["sardonyx", "onnxruntime"]) + "\n")
    header = ["model", "s", *PHASES, "MB", "file"]
    if options.peer:
        header += ["onnxruntime", "ratio", "with the libraries"]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    seconds = []
    for path in options.models:
        ours = load("sardonyx", path, options.bytes, options.compile)
        peer = load("onnxruntime", path, options.bytes) if options.peer else None
        print("| " + " | ".join(row(path, ours, peer)) + " |", flush=True)
        seconds.append(ours.get("seconds", float("inf")))
    print(f"\n{sum(s <= GOAL for s in seconds)} of {len(seconds)} within {GOAL:.0f} s.")


if __name__ == "__main__":
    main()
