#!/usr/bin/env python3
"""One model with open sizes at many sizes: how even its speed is, and whether memory grows.

    sizes.py MODEL --dim batch=1:8 --dim seq=8:256 [--pairs 200] [--runs 3] [--threads T]

Sizes are drawn at random, evenly over each range, and the model is compiled once. Prints the median and the 99th
percentile over all sizes of the time of a run by its floating-point operations, as `sardonyx profile` counts them, and
what memory the process holds after the first 20 sizes and after all.
"""

import argparse
import json
import os
import tempfile
import time

import numpy as np
import sardonyx


def parse_range(text):
    name, _, bounds = text.partition("=")
    low, _, high = bounds.partition(":")
    return name, (int(low), int(high or low))


def make_inputs(session, sizes, rng):
    feeds = {}
    for value in session.get_inputs():
        shape = [sizes[d] if isinstance(d, str) else d for d in value.shape]
        if value.type == "tensor(float)":
            feeds[value.name] = rng.standard_normal(shape, np.float32)
        else:
            feeds[value.name] = np.ones(shape, np.int64)
    return feeds


def load(model, threads, profile=""):
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling, options.profile_file_prefix = bool(profile), profile
    return sardonyx.InferenceSession(model, options)


def count_flops(model, threads, all_sizes):
    """Of one run at each of the sizes."""
    with tempfile.TemporaryDirectory() as folder:
        session = load(model, threads, os.path.join(folder, "trace"))
        rng = np.random.default_rng(0)
        for sizes in all_sizes:
            session.run(None, make_inputs(session, sizes, rng))
        with open(session.end_profiling()) as file:
            events = json.load(file)
    counts = []
    for event in events:
        if event["cat"] == "Session":
            counts.append(0.0)
        else:
            counts[-1] += event["args"]["flops"]
    return counts


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dim", action="append", default=[], type=parse_range, help="NAME=LOW:HIGH")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3, help="at each of the sizes; the fastest counts")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    all_sizes = [{name: int(rng.integers(low, high + 1)) for name, (low, high) in args.dim} for _ in range(args.pairs)]
    flops = count_flops(args.model, args.threads, all_sizes)
    session = load(args.model, args.threads)
    times, held, early = [], [], min(20, args.pairs)
    for sizes in all_sizes:
        feeds = make_inputs(session, sizes, rng)
        best = np.inf
        for _ in range(args.runs):
            start = time.perf_counter()
            session.run(None, feeds)
            best = min(best, time.perf_counter() - start)
        times.append(best)
        held.append(resident())
    pace = np.array(times) / np.array(flops)
    median, late = np.quantile(pace, 0.5), np.quantile(pace, 0.99)
    slowest = all_sizes[int(np.argmax(pace))]
    print(f"{args.pairs} sizes of {args.model}, {args.threads} threads")
    print(f"speed      {1e-9 / median:.1f} GFLOP/s at the median, {1e-9 / late:.1f} at the 99th percentile")
    print(f"p99/p50    {late / median:.2f} of the time by operations (slowest: {slowest})")
    print(f"memory     {held[early - 1] / 2**20:.0f} MiB after {early} sizes, {held[-1] / 2**20:.0f} after all, "
          f"{max(held) / 2**20:.0f} at most")  # fmt: skip


if __name__ == "__main__":
    main()
