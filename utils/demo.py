"""Compile and run the ResNet-50 that ships in the onnx package, check its output, show the costs."""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

import sardonyx


def main():
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    path = folder / "light_resnet50.onnx"
    print(f"model      {path}")
    with tempfile.TemporaryDirectory() as cache:
        options = sardonyx.SessionOptions()
        options.cache_dir = cache
        start = time.perf_counter()
        session = sardonyx.InferenceSession(str(path), options)
        cold = time.perf_counter() - start
        print("phases     " + "  ".join(f"{name} {seconds:.2f} s" for name, seconds in session.timings.items()))
        start = time.perf_counter()
        sardonyx.InferenceSession(str(path), options)
        print(f"load       {cold:.2f} s cold, {time.perf_counter() - start:.2f} s from the cache")

    model = onnx.load(path)
    held = {tensor.name for tensor in model.graph.initializer}
    info = next(value for value in model.graph.input if value.name not in held)
    feed = {info.name: Runner.generate_dummy_data(info, name="test_resnet50")}
    output = session.run(None, feed)[0]
    expected = numpy_helper.to_array(onnx.load_tensor(folder / "light_resnet50_output_0.pb"))
    error = np.linalg.norm(output - expected) / np.linalg.norm(expected)
    print(f"error      {error:.1e} = |y - expected| / |expected|")

    times = []
    end = time.perf_counter() + 3
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    latency = float(np.median(times))
    threads = len(os.sched_getaffinity(0))
    peak = sardonyx.measure_peak_gflops(threads)
    rate = sardonyx.inspect(str(path))["flops"] / latency / 1e9
    print(f"latency    {1e3 * latency:.2f} ms (median of {len(times)}, {threads} threads)")
    print(f"speed      {rate:.0f} GFLOP/s; this machine's FMA peak is {peak:.0f} GFLOP/s ({100 * rate / peak:.0f} %)")
    if not error <= 1e-5:
        sys.exit(f"the output differs from the expected one by {error:.1e}")


if __name__ == "__main__":
    main()
