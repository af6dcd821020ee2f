#!/usr/bin/env python3
"""Random graphs between quantised tensors, bit for bit.

    quantized.py [--seconds N | --models N] [--seed S] [--jobs J]
    quantized.py --show SEED       the model of a seed, as text

Model number i of a run is made from seed S + i and nothing else: a chain of 1 to 8 operators of
test/Python/quantized_operators.py on u8 and s8, of odd zero points and weights with a scale for each channel,
with scales that are powers of two (many ties), of a few bits, or any; most operators are between
QuantizeLinear and DequantizeLinear, some follow one another in floats. In a quarter of the models sizes are open,
in an eighth some numbers have 16 bits, and a few have no elements. A fault is an integer that differs from
the reference, an error, or an answer that changes with the values that are results. Of each fault the seed
and the operators are told, and the shortest chain that still has it. Exit status: 1 if there are faults.
"""

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import quantized_graphs as q  # noqa: E402
import quantized_operators as operators  # noqa: E402
import workers  # noqa: E402
from report import Counts  # noqa: E402

SECONDS = 60  # for one model
CPUS = ["", "haswell", "x86-64"]
TYPES = [np.uint8, np.int8, np.uint16, np.int16]


def make(seed, length=None):
    """The graph of a seed, of its first `length` operators, and the processor that it is compiled for."""
    rng = np.random.default_rng(seed)
    cpu = CPUS[rng.integers(len(CPUS))]
    scales = ["pow2", "short", "any"][rng.integers(3)]
    names = [name for name in operators.OPERATORS if scales != "any" or name not in operators.SUMMED]
    types = TYPES if rng.random() < 0.125 else TYPES[:2]
    graph = q.Graph(rng, scales, pairs=rng.random() < 0.6, types=types, is_open=rng.random() < 0.25)
    shape = operators.SHAPES[rng.integers(len(operators.SHAPES))]
    if rng.random() < 0.03:
        shape = (0, *shape[1:])
    value = graph.input(shape)
    ops, whole = [], int(rng.integers(1, 9))
    for _ in range(length or whole):
        after, name = operators.first_fitting(graph, value, [names[i] for i in rng.permutation(len(names))[:6]])
        if after is None:
            break
        value = after
        ops.append(name)
    if ops and value.scale is None:
        graph.quantized(value.name)
    return graph, ops, cpu


def attempt(graph, cpu):
    """What is wrong with it; None if nothing is."""
    import sardonyx

    options = sardonyx.SessionOptions()
    options.cpu = cpu
    try:
        q.check(graph, options)
    except AssertionError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return None


def serve(seed, stage):
    graph, ops, cpu = make(seed)
    if not ops or not graph.integers():
        return {"status": "empty"}
    stage("run")
    text = attempt(graph, cpu)
    if text is None:
        return {"status": "ok"}
    for length in range(1, len(ops)):
        graph, fewer, cpu = make(seed, length)
        if fewer and (shorter := attempt(graph, cpu)):
            ops, text = fewer, shorter
            break
    return {"status": "fault", "kind": "wrong answer", "text": f"{' -> '.join(ops)} ({cpu or 'native'}): {text}"}


class Report(Counts):
    def save(self, seed, result):
        self.kinds[result["text"]] += 1
        print(f"seed {seed}: {result['text']}", flush=True)

    def finish(self):
        print(f"{sum(self.counts.values())} models in {time.monotonic() - self.started:.0f} s: {dict(self.counts)}")
        return 1 if sum(self.kinds.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--models", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int)
    args = parser.parse_args()
    if args.show is not None:
        graph, ops, cpu = make(args.show)
        print(f"{' -> '.join(ops)} ({cpu or 'native'})")
        print(onnx.printer.to_text(graph.model(graph.integers()[-1:])))
        return 0
    if not args.seconds and not args.models:
        args.seconds = 600
    report = Report()

    def seeds():
        end = time.monotonic() + args.seconds if args.seconds else None
        for i in range(args.models or sys.maxsize):
            if end and time.monotonic() > end:
                return
            yield args.seed + i

    workers.serve_all(serve, seeds(), args.jobs, SECONDS, report.take)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
