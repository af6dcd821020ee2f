#!/usr/bin/env python3
"""Fourier transforms beside onnxruntime, one thread each, as Markdown.

    fourier.py [--rounds R]

Needs onnxruntime. Complex numbers of single precision; each row is a number of lines of one length, known when compiling or open.
Times are the shortest of R runs of each in turn; errors are ||y - ref|| / ||ref|| against numpy's transform of doubles.
"""

import argparse
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import sardonyx

CASES = [(64, 512), (64, 1000), (1, 1024), (64, 1024), (64, 1009), (64, 1088), (1, 65536), (1, 1 << 20)]


def make(lines, length, inverse):
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], inverse=inverse)
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in [("x", [lines, length, 1, 2]), ("y", None)]
    ]
    axis = numpy_helper.from_array(np.array(1), "axis")
    graph = helper.make_graph([node], "fourier", infos[:1], infos[1:], [axis])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def sessions(proto):
    ours, theirs = sardonyx.SessionOptions(), onnxruntime.SessionOptions()
    ours.intra_op_num_threads = theirs.intra_op_num_threads = 1
    return sardonyx.InferenceSession(proto, ours), onnxruntime.InferenceSession(proto, theirs)


def shortest(pair, feed, rounds):
    best = [float("inf")] * 2
    for _ in range(rounds):
        for i, session in enumerate(pair):
            start = time.perf_counter()
            session.run(None, feed)
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def error(session, x, inverse):
    number = x[..., 0].astype(np.complex128) + 1j * x[..., 1]
    want = (np.fft.ifft if inverse else np.fft.fft)(number, axis=1)
    got = session.run(None, {"x": x})[0]
    return np.linalg.norm(got[..., 0] + 1j * got[..., 1] - want) / np.linalg.norm(want)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    print("| lines of | transform | us | onnxruntime's us | ratio | error | onnxruntime's |\n|---|---|---|---|---|---|---|")
    for lines, length in CASES:
        x = np.random.default_rng(length).standard_normal((lines, length, 1, 2)).astype(np.float32)
        for what, shape, inverse in [("", (lines, length), 0), ("inverse", (lines, length), 1), ("open length", (None, None), 0)]:
            pair = sessions(make(*shape, inverse))
            ours, theirs = shortest(pair, {"x": x}, arguments.rounds)
            errors = [error(session, x, inverse) for session in pair]
            cells = [f"{lines} of {length}", what, f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}", f"{ours / theirs:.2f}"]
            print("| " + " | ".join(cells + [f"{e:.1e}" for e in errors]) + " |", flush=True)


if __name__ == "__main__":
    main()
