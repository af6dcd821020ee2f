#!/usr/bin/env python3
"""Mixed models, sizes and threads for a long time: soak.py [--minutes N] [--seed S] [--threads T]

Threads load models (of ONNX's conformance suite, and random graphs), run them with fixed and changing
sizes, share sessions, stop runs and drop sessions while others run them. Every answer is compared with
the one that the model gave when it was first run alone, and that with the expected one. Every minute
all is dropped, and what memory is left then is measured. Fails where an answer is wrong, where a call
raises what it should not, and where that memory grows: the last third of the time against the third before.
"""

import argparse
import collections
import ctypes
import gc
import os
import random
import sys
import threading
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "Conformance"))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import test_onnx_backend as conformance  # noqa: E402

import sardonyx  # noqa: E402
from references import Refused  # noqa: E402
from trial import compare, of_seed  # noqa: E402

HELD = 24  # sessions at a time
GROWTH = 24 << 20  # bytes that may be left more in the last third than in the one before
LARGE = 50_000_000  # bytes of a model's constants: too slow for a soak


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Model:
    """A model's bytes, inputs of some runs, and the right answers."""

    def __init__(self, name, data, runs):
        self.name, self.data, self.runs = name, data, runs


def load(data, rng):
    options = sardonyx.SessionOptions()
    options.cache = rng.random() < 0.5
    options.intra_op_num_threads = rng.choice([1, 1, 2])
    options.cpu = rng.choice(["", "", "", "haswell", "x86-64"])
    return sardonyx.InferenceSession(data, options)


def from_suite(name):
    """A case that passes; None where its values are no arrays."""
    case = conformance.CASES[name]
    model, sets = conformance.materialize(case)
    if sum(np.prod(t.dims, dtype=float) for t in model.graph.initializer) > LARGE / 4 or "vgg" in name:
        raise TypeError("large")
    session = sardonyx.InferenceSession(model.SerializeToString())
    names = [arg.name for arg in session.get_inputs()]
    runs = []
    for inputs, expected in sets:
        feeds = dict(zip(names, inputs))
        answers = session.run(None, feeds)
        conformance.Runner.assert_similar_outputs(expected, answers, rtol=case.rtol, atol=case.atol)
        runs.append((feeds, answers))
    return Model(name, model.SerializeToString(), runs)


def random_graph(seed):
    trial = of_seed(seed)
    data = trial.graph.model().SerializeToString()
    session = sardonyx.InferenceSession(data)
    runs = []
    for feeds in trial.runs:
        try:
            values = trial.graph.step_through(feeds)
        except Refused:
            continue
        answers = session.run(None, feeds)
        wrong = compare(trial.graph, feeds, values, answers)
        if wrong:
            raise AssertionError(f"seed {seed}: {wrong['text']}")
        runs.append((feeds, answers))
    return Model(f"seed {seed}", data, runs)


class Soak:
    def __init__(self, args):
        self.args, self.rng = args, random.Random(args.seed)
        self.models, self.sessions = [], []
        self.lock, self.done = threading.Lock(), threading.Event()
        self.counts, self.faults = collections.Counter(), []

    def collect(self):
        names = sorted(conformance.PASSING)
        for name in self.rng.sample(names, min(self.args.models, len(names))):
            try:
                self.models.append(from_suite(name))
            except (TypeError, AttributeError):
                pass  # sequences and the like
        seed = self.args.seed * 100_000
        for seed in range(seed, seed + self.args.models):
            try:
                self.models.append(random_graph(seed))
            except (Refused, sardonyx.NotImplemented):
                pass
            except Exception as problem:  # a fault of its own, which the differential fuzzer tells better
                self.counts["left out"] += 1
                print(f"left out: {type(problem).__name__}: {str(problem)[:150]}", flush=True)
        self.models = [model for model in self.models if model.runs]

    def same(self, answers, wanted):
        """Other vectors and another number of threads may round in another order."""
        for a, b in zip(answers, wanted):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            x, y = a.astype(np.float64), b.astype(np.float64)
            scale = np.abs(y[np.isfinite(y)]).max(initial=0.0)
            if not np.allclose(x, y, 2e-2, 1e-3 * max(scale, 1e-3), equal_nan=True):
                return False
        return True

    def step(self, rng):
        with self.lock:
            entry = (
                rng.choice(self.sessions)
                if len(self.sessions) >= HELD or self.sessions and rng.random() < 0.85
                else None
            )
        if entry is None:
            model = rng.choice(self.models)
            entry = model, load(model.data, rng)
            self.counts["loaded"] += 1
            with self.lock:
                self.sessions.append(entry)
                if len(self.sessions) > HELD or rng.random() < 0.3:
                    self.sessions.pop(rng.randrange(len(self.sessions)))  # perhaps while it runs elsewhere
        model, session = entry
        for feeds, wanted in rng.sample(model.runs, len(model.runs)):
            if rng.random() < 0.05 and hasattr(sardonyx.RunOptions, "terminate"):
                return self.stop(session, feeds, rng)
            answers = session.run(None, feeds)
            self.counts["runs"] += 1
            if not self.same(answers, wanted):
                self.faults.append(f"{model.name}: another answer than before")

    def stop(self, session, feeds, rng):
        """A run that is told to end; it ends early or with its results."""
        options = sardonyx.RunOptions()
        timer = threading.Timer(rng.random() * 0.002, lambda: setattr(options, "terminate", True))
        timer.start()
        try:
            session.run(None, feeds, options)
            self.counts["ended before it was stopped"] += 1
        except sardonyx.Fail:
            self.counts["stopped"] += 1
        finally:
            timer.join()

    def work(self, seed):
        rng = random.Random(seed)
        while not self.done.is_set() and len(self.faults) < 20:
            try:
                self.step(rng)
            except Exception as problem:  # any one is a fault here
                self.faults.append(f"{type(problem).__name__}: {str(problem)[:300]}")

    def round(self, seconds, number):
        """Bytes that are left when all threads have worked so long and everything is dropped."""
        self.done.clear()
        threads = [threading.Thread(target=self.work, args=(number * 1000 + i,)) for i in range(self.args.threads)]
        for thread in threads:
            thread.start()
        self.done.wait(seconds)
        self.done.set()
        for thread in threads:
            thread.join()
        most = resident()
        self.sessions.clear()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        return most, resident()

    def run(self):
        self.collect()
        print(f"{len(self.models)} models", flush=True)
        start, seconds, left = time.monotonic(), self.args.minutes * 60, []
        while (passed := time.monotonic() - start) < seconds and len(self.faults) < 20:
            most, least = self.round(min(60, seconds / 9), len(left))
            left.append(least)
            print(
                f"[{passed:5.0f} s] {most >> 20} MB, then {least >> 20} MB; {dict(self.counts)}, "
                f"{len(self.faults)} faults",
                flush=True,
            )
        third = len(left) // 3
        before, after = int(np.median(left[third : 2 * third])), int(np.median(left[2 * third :]))
        for fault in sorted(set(self.faults)):
            print(f"fault: {fault}")
        if after - before > GROWTH:
            print(f"fault: {(after - before) >> 20} MB more are left in the last third than in the one before")
        return 1 if self.faults or after - before > GROWTH or not self.counts["runs"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--models", type=int, default=60, help="of the suite, and as many random ones")
    return Soak(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
