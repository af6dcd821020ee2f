#!/usr/bin/env python3
"""Models built ahead of time beside their sessions and onnxruntime's and OpenVINO's, as Markdown.

    ahead.py [--peers PYTHON] [--rounds R] MODEL.onnx ...

For each model, one thread: bytes of code beyond the weights; milliseconds from the start of a process to its first answer,
less those of a run in a process that has run before, by the program that `sardonyx build` makes; milliseconds to load the
model, and to load and first run it on zeros (open sizes are 8), by `sardonyx.load`, by a Sardonyx session from its cache, and by
onnxruntime and OpenVINO, each in a process of its own and in turn, the shortest of R. PYTHON is one that has the peers (default: this one); those that are not there are left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import sardonyx

LOADERS = {
    "built": "import sardonyx\nload = lambda: sardonyx.load(sys.argv[2], threads=1)",
    "session": (
        "import sardonyx\no = sardonyx.SessionOptions()\no.intra_op_num_threads = 1\n"
        "load = lambda: sardonyx.InferenceSession(sys.argv[1], o)"
    ),
    "onnxruntime": (
        "import onnxruntime\no = onnxruntime.SessionOptions()\no.intra_op_num_threads = 1\no.log_severity_level = 4\n"
        "load = lambda: onnxruntime.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider'])"
    ),
    "OpenVINO": (
        "import openvino\ncore = openvino.Core()\n"
        "load = lambda: core.compile_model(sys.argv[1], 'CPU', {'INFERENCE_NUM_THREADS': 1})\n"
        "run = lambda model: model(feeds)"
    ),
}


TIMED = """
import sys, time
import numpy
feeds = dict(numpy.load(sys.argv[3]))
run = lambda model: model.run(None, feeds)
%s
start = time.perf_counter()
model = load()
loaded = time.perf_counter()
run(model)
print(loaded - start, time.perf_counter() - start)
"""


def load_seconds(python, engine, *files):
    """How long a new process takes to load a model, its imports apart, and until it has first run; inf where the engine is not there."""
    done = subprocess.run([python, "-c", TIMED % LOADERS[engine], *files], capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()[-2:]] if done.returncode == 0 else [float("inf")] * 2


def zeros(session):
    """Inputs that are all zero."""
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    shapes = {i.name: [8 if not isinstance(n, int) else n for n in i.shape] for i in session.get_inputs()}
    return {i.name: np.zeros(shapes[i.name], kinds[i.type]) for i in session.get_inputs()}


def process_seconds(program):
    start = time.perf_counter()
    subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def run_seconds(program):
    shown = subprocess.run([program, "--repeat", "30"], capture_output=True, text=True, check=True).stdout
    return float(shown.splitlines()[-1].split()[0]) / 1e3


def milliseconds(seconds):
    return "–" if seconds == float("inf") else f"{seconds * 1e3:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    print("| model | code, kB | start − run, ms | " + " | ".join(f"load / and run: {e}, ms" for e in LOADERS) + " |")
    print("|---|---" + "|---" * (len(LOADERS) + 1) + "|")
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            built, program = os.path.join(folder, "model.so"), os.path.join(folder, "model")
            weights = os.path.join(folder, "weights")
            sardonyx.build(model, built, options=options, weights=weights)
            code = os.path.getsize(built)
            os.remove(weights)
            sardonyx.build(model, built, options=options)
            sardonyx.build(model, program, options=options)
            session = sardonyx.InferenceSession(model, options)  # into the cache
            feeds = os.path.join(folder, "feeds.npz")
            np.savez(feeds, **zeros(session))
            best = {engine: [float("inf")] * 2 for engine in LOADERS}
            start = run = float("inf")
            for _ in range(args.rounds):
                start = min(start, process_seconds(program))
                run = min(run, run_seconds(program))
                for engine in LOADERS:
                    python = sys.executable if engine in ("built", "session") else args.peers
                    seconds = load_seconds(python, engine, model, built, feeds)
                    best[engine] = [min(pair) for pair in zip(best[engine], seconds)]
            cells = [os.path.basename(model), f"{code / 1e3:.0f}", milliseconds(start - run)]
            print("| " + " | ".join(cells + [" / ".join(map(milliseconds, best[engine])) for engine in LOADERS]) + " |", flush=True)


if __name__ == "__main__":
    main()
