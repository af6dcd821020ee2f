"""What it costs to see the tensors of a model while it runs: for ranges, for histograms, and for onnxruntime's tool.

    PYTHONPATH=build/release/python .venv/bin/python benchmarks/calibration.py resnet50.onnx resnet50.npz

Sessions take turns, run after run, on the same threads; factors are medians of their ratios to the plain run beside
them. Memory is that of processes that calibrate with few samples and with many.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

MODES = {"plain": None, "ranges": "range", "histograms": "range|moments|bits"}


def float_names(path):
    """Names of the activations that a calibration looks at: floats that nodes of the main graph read or make."""
    from sardonyx.quantization import create_calibrator

    calibrater = create_calibrator(path)
    return calibrater.select_tensors_to_calibrate(calibrater.model)[0]


def load(path, names, kinds, threads):
    import sardonyx

    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    if kinds:
        options.observe = dict.fromkeys(names, kinds)
    return sardonyx.InferenceSession(path, options)


def time_modes(path, feeds, threads, seconds):
    """{mode: [seconds of a run, ...]}, in turns."""
    names = float_names(path)
    sessions = {mode: load(path, names, kinds, threads) for mode, kinds in MODES.items()}
    times = {mode: [] for mode in MODES}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["plain"]) < 5:
        for mode, session in sessions.items():
            start = time.perf_counter()
            session.run(None, feeds)
            times[mode].append(time.perf_counter() - start)
    return {mode: values[2:] for mode, values in times.items()}


def calibrate(engine, path, inputs, samples, threads):
    """Calibrates by percentiles and prints the seconds of a sample and the peak of memory beyond what was there before."""
    feeds = dict(np.load(inputs))
    if engine == "onnxruntime":
        from onnxruntime.quantization import CalibrationMethod, create_calibrator
    else:
        from sardonyx.quantization import CalibrationMethod, create_calibrator

    class Reader:
        left = samples

        def get_next(self):
            self.left -= 1
            return feeds if self.left >= 0 else None

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    calibrater = create_calibrator(
        path, None, "/tmp/augmented.onnx", CalibrationMethod.Percentile, extra_options={"symmetric": False}
    )
    calibrater.collect_data(Reader())
    calibrater.compute_data()
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": taken / samples, "peak": peak * 1024, "more": (peak - before) * 1024}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("inputs", help="an .npz file with an array for each input")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--samples", type=int, nargs="*", default=[2, 16])
    parser.add_argument("--onnxruntime", action="store_true", help="calibrate by onnxruntime's tool, too")
    parser.add_argument("--calibrate", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.calibrate:
        engine, samples = args.calibrate
        return calibrate(engine, args.model, args.inputs, int(samples), args.threads)
    times = time_modes(args.model, dict(np.load(args.inputs)), args.threads, args.seconds)
    for mode, values in times.items():
        ratios = [a / b for a, b in zip(values, times["plain"])]
        print(f"{mode:12} {statistics.median(values) * 1e3:8.2f} ms a sample, {statistics.median(ratios):5.2f} x a plain run")
    for engine in ["sardonyx"] + ["onnxruntime"] * args.onnxruntime:
        for samples in args.samples:
            command = [sys.executable, __file__, args.model, args.inputs, "--calibrate", engine, str(samples)]
            answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ)
            found = json.loads(answer.stdout.splitlines()[-1])
            print(
                f"{engine}, {samples} samples: {found['seconds'] * 1e3:.0f} ms a sample with loading, peak "
                f"{found['peak'] / 2**20:.0f} MB, {found['more'] / 2**20:.0f} MB more than before"
            )


if __name__ == "__main__":
    main()
