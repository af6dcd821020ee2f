#!/usr/bin/env python3
"""Damaged models through compiling and running.

    hostile.py [--seconds N | --models N] [--seed S] [--jobs J] [--only RE] [--out FOLDER]
    hostile.py --case FILE             a found model once more

A model of ONNX's conformance suite or a random graph is changed in a few places, loaded, and run with inputs
that it asks for, or nearly so. It may be refused, by an exception of sardonyx in words that a user
understands. With --only it is a model with an operator whose domain.name begins with RE. Crashes, hangs, other exceptions and the compiler's own words are faults; they are made
small and written to FOLDER (build/fuzz/found). Exit status: 1 if there are faults.
"""

import argparse
import copy
import re
import resource
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

import workers  # noqa: E402
from graphs import Builder  # noqa: E402
from mutations import Mutator  # noqa: E402
from operators import all_operators  # noqa: E402
from references import Refused  # noqa: E402
from report import Counts  # noqa: E402
from trial import failure_of, guarded, of_seed  # noqa: E402

SECONDS = 30
MEMORY = 8 << 30
LARGEST = 1 << 22  # elements of an input
LARGE_MODEL = 200_000  # bytes


def names_operator(model, wanted):
    return not wanted or any(wanted.match(f"{node.domain}.{node.op_type}") for node in model.graph.node)


def corpus(wanted=None):
    """The suite's models, small ones."""
    models = []
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            model = case.model
            if model is None and case.model_dir:
                path = Path(case.model_dir) / "model.onnx"
                model = onnx.load(path) if path.exists() and path.stat().st_size < LARGE_MODEL else None
            if model is not None and model.ByteSize() < LARGE_MODEL and names_operator(model, wanted):
                models.append(model)
    return models


def damaged(seed, models):
    rng = np.random.default_rng(seed)
    base = models[rng.integers(len(models))]
    if rng.random() < 0.3 and len(models) > 300:
        try:
            base = of_seed(seed, all_operators()).graph.model()
        except Refused:
            pass
    return Mutator(rng).mutate(base), rng


def feeds_for(session, rng):
    """Inputs as the session describes them; now and then one that doesn't fit."""
    builder, sizes, feeds = Builder(rng, 22), {}, {}
    for arg in session.get_inputs():
        shape = []
        for dim in arg.shape if arg.shape is not None else [2] * int(rng.integers(0, 4)):
            if not isinstance(dim, int):
                dim = sizes.setdefault(dim or object(), int(rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 17])))
            shape.append(dim)
        if rng.random() < 0.03 and shape:
            shape[rng.integers(len(shape))] += 1
        if np.prod(shape, dtype=object) > LARGEST:
            return None
        dtype = onnx.helper.tensor_dtype_to_np_dtype(arg._element_type)
        if dtype.name not in np.sctypeDict:
            feeds[arg.name] = np.zeros(shape, dtype)
        elif dtype.kind == "i" and rng.random() < 0.3:
            feeds[arg.name] = (
                rng.choice(np.array([0, 1, -1, 2, 127], dtype), shape)
                if rng.random() < 0.8
                else rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
            )
        else:
            feeds[arg.name] = builder.data(dtype, tuple(shape)) if dtype.kind != "c" else np.ones(shape, dtype)
    return feeds


def attempt(model, seed, stage):
    """Loads and runs a model."""
    import sardonyx

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = np.random.default_rng(seed)
    options = sardonyx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    options.cpu = ["", "", "haswell", "x86-64"][rng.integers(4)]
    stage("load")
    try:
        session = sardonyx.InferenceSession(model.SerializeToString(), options)
    except Exception as problem:
        return failure_of(problem) or {"status": "refused"}
    limits = sardonyx.RunOptions()
    limits.timeout = SECONDS / 6
    status = "not run"
    for run in range(3):
        try:
            feeds = feeds_for(session, rng)
            feeds = feeds and {name: guarded(array) for name, array in feeds.items()}
        except (KeyError, TypeError, ValueError):
            return {"status": "no input"}
        if feeds is None:
            continue
        stage(f"run {run}")
        try:
            session.run(None, feeds, limits)  # a loop may be endless
            status = "ran"
        except Exception as problem:
            wrong = failure_of(problem)
            if wrong:
                return wrong
            status = "refused to run" if status == "not run" else status
    return {"status": status}


def signature(result):
    """What faults of one cause have in common: the text without names and numbers."""
    text = re.sub(r"'[^']*'", "", result["text"])
    return f"{result['kind']} {re.sub(r'[^a-zA-Z.]+', ' ', text)[:80]}"


def smaller(model, seed, kind):
    """Takes away outputs, nodes, attributes and constants while the fault stays."""

    def fails(candidate):
        result = workers.alone(lambda task, stage: attempt(candidate, seed, stage), None, SECONDS)
        return result["status"] in ("fault", "dead") and result["kind"] == kind

    budget = 60
    for part in ("output", "node", "initializer", "input"):
        index = len(getattr(model.graph, part)) - 1
        while index >= 0 and budget:
            candidate = copy.deepcopy(model)
            del getattr(candidate.graph, part)[index]
            if len(getattr(candidate.graph, part)) or part in ("initializer", "input"):
                budget -= 1
                if fails(candidate):
                    model = candidate
            index -= 1
    return model


class Report(Counts):
    def __init__(self, args, models):
        super().__init__()
        self.args, self.models = args, models

    def save(self, seed, result):
        words = signature(result)
        self.kinds[words] += 1
        if self.kinds[words] > (20 if result["kind"] in ("crash", "hang") else 2):
            return

        def work(task, stage):
            return {"status": "small", "model": smaller(damaged(seed, self.models)[0], seed, result["kind"])}

        model = workers.alone(work, None, 600).get("model")
        if model is None:
            return print(f"seed {seed}: {result['kind']}: {result['text']}", flush=True)
        ops = "-".join(dict.fromkeys(node.op_type for node in model.graph.node))[:60]
        words = f"{result['kind']} {ops}"
        self.kinds[words] += 1
        if self.kinds[words] > 2:
            return
        self.args.out.mkdir(parents=True, exist_ok=True)
        path = self.args.out / f"hostile-{result['kind'].replace(' ', '-')}-{ops}-{seed}.onnx"
        onnx.save(model, path)
        path.with_suffix(".txt").write_text(f"seed {seed}\n{result}\n{onnx.printer.to_text(model)[:20000]}\n")
        print(f"{path.stem}: {result['kind']} ({result.get('stage', '')}): {result['text']}", flush=True)

    def finish(self):
        print(f"{sum(self.counts.values())} models in {time.monotonic() - self.started:.0f} s: {dict(self.counts)}")
        for text, count in self.kinds.most_common():
            print(f"  fault {count}: {text}")
        return 1 if self.counts["fault"] or self.counts["broken"] else 0


def fuzz(args):
    models = corpus(args.only)
    report = Report(args, models)

    def serve(seed, stage):
        model, _ = damaged(seed, models)
        return attempt(model, seed, stage)

    def seeds():
        end = time.monotonic() + args.seconds if args.seconds else None
        for i in range(args.models or sys.maxsize):
            if end and time.monotonic() > end:
                return
            yield args.seed + i

    workers.serve_all(serve, seeds(), args.jobs, SECONDS, report.take)
    return report.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--models", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=re.compile)
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "build" / "fuzz" / "found")
    parser.add_argument("--case", type=Path)
    args = parser.parse_args()
    if args.case:
        seed = int(re.search(r"-(\d+)$", args.case.stem)[1])
        result = workers.alone(lambda task, stage: attempt(onnx.load(args.case), seed, stage), None, SECONDS)
        print(result)
        return result["status"] in ("fault", "dead", "broken")
    if not args.seconds and not args.models:
        args.seconds = 600
    return fuzz(args)


if __name__ == "__main__":
    sys.exit(main())
