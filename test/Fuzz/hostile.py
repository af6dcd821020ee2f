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
from references import Refused  # noqa: E402
from report import Counts  # noqa: E402
from trial import Settings, failure_of, guarded, of_seed  # noqa: E402
from values import STRING, Items, Map, Maps, is_tensor, like_of  # noqa: E402

SECONDS = 30
MEMORY = 8 << 30
LARGEST = 1 << 22  # elements of an input
LARGE_MODEL = 200_000  # bytes
TEXTS = ["", "a", "-1", "9" * 400, "1e999", "0x10", "nan", "\0", "a\0b", "\udcff", "\u202e", "\U0010ffff", " " * 1000, "a" * 100_000, "ß" * 999, "(" * 500]
HUGE = [2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63), -1]


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


def damaged(seed, models, wanted=None):
    """A model, and inputs that its base took, if they are known."""
    rng = np.random.default_rng(seed)
    base, feeds = models[rng.integers(len(models))] if models else None, {}
    if base is None or rng.random() < 0.4:
        try:
            trial = of_seed(seed)
            made = trial.graph.model()
            if base is None or names_operator(made, wanted):
                base, feeds = made, trial.runs[0]
        except Refused:
            pass
    if base is None:
        raise Refused("no model")
    return (Mutator(rng).mutate(base) if rng.random() < 0.8 or not feeds else base), feeds


def spoilt(value, rng):
    """An input with a few elements that mean trouble, or none."""
    if isinstance(value, Items):
        kept = [spoilt(item, rng) for item in value if rng.random() < 0.9]
        return Items(kept + kept[: rng.integers(0, 2)], value.dtype)
    if isinstance(value, Maps):
        return Maps([spoilt(item, rng) for item in value if rng.random() < 0.9], value.like)
    if isinstance(value, Map):
        return spoilt_map(value, rng)
    if not is_tensor(value):
        return value
    value = np.array(value)
    if rng.random() < 0.05:
        return value[:0] if value.ndim else value
    flat = value.reshape(-1)
    for _ in range(int(rng.integers(0, 3)) if flat.size else 0):
        at = rng.integers(flat.size)
        if value.dtype == STRING:
            flat[at] = TEXTS[rng.integers(len(TEXTS))]
        elif value.dtype.kind in "iu":
            info = np.iinfo(value.dtype)
            flat[at] = min(max(HUGE[rng.integers(len(HUGE))], info.min), info.max)
        elif value.dtype.kind == "f":
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1.0, 0.0]).astype(value.dtype)
    return value


def spoilt_map(value, rng):
    """With other keys, and troublesome values."""
    pool = TEXTS if value.keys and isinstance(value.keys[0], str) else [0, 1, *(n for n in HUGE if abs(n) < 2**63)]
    keys = list(dict.fromkeys(pool[rng.integers(len(pool))] if rng.random() < 0.2 else key for key in value.keys))
    array = spoilt(value.array, rng)
    keys = keys[: len(array)]
    return Map(keys, array[: len(keys)])


def map_for(kind, rng, builder):
    like = like_of(kind)
    few = 0 if like.dtype == STRING else 5
    keys = [f"k{i}" if like.keys == [""] else i - 2 for i in range(int(rng.integers(0, 3 + few)))]
    return spoilt_map(Map(keys, builder.data(like.dtype, (len(keys),))), rng)


def maps_for(kind, rng, builder):
    """A map, or a sequence of them."""
    if not kind.startswith("seq("):
        return map_for(kind, rng, builder)
    inner = kind[len("seq(") : -1]
    return Maps([map_for(inner, rng, builder) for _ in range(int(rng.integers(0, 4)))], like_of(inner))


def tensor_for(dtype, shape, rng, builder):
    if dtype == STRING:
        return spoilt(builder.data(dtype, shape), rng)
    if dtype.name not in np.sctypeDict:
        return np.zeros(shape, dtype)
    if dtype.kind == "i" and rng.random() < 0.3:
        if rng.random() < 0.8:
            return rng.choice(np.array([0, 1, -1, 2, 127], dtype), shape)
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
    return np.asarray(builder.data(dtype, shape)) if dtype.kind != "c" else np.ones(shape, dtype)


def inside(arg, rng, builder):
    """A sequence or an optional."""
    if not arg._is_sequence and rng.random() < 0.3:
        return None
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(arg._item_type))
    shapes = [tuple(rng.integers(0, 4, rng.integers(0, 4))) for _ in range(int(rng.integers(0, 4)))]
    if shapes and rng.random() < 0.6:
        shapes = shapes[:1] * len(shapes)
    items = Items([tensor_for(dtype, shape, rng, builder) for shape in shapes], dtype)
    return items if arg._is_sequence else tensor_for(dtype, (2,), rng, builder)


def feeds_for(session, known, rng):
    """Inputs as the session describes them; now and then one that doesn't fit. `known`: such as the model took."""
    builder, sizes, feeds = Builder(rng, 22), {}, {}
    use_known = rng.random() < 0.7
    for arg in session.get_inputs():
        if use_known and arg.name in known:
            feeds[arg.name] = spoilt(known[arg.name], rng)
            continue
        if "map(" in arg.type:
            feeds[arg.name] = maps_for(arg.type, rng, builder)
            continue
        if arg._item_type:
            feeds[arg.name] = inside(arg, rng, builder)
            continue
        shape = []
        for dim in arg.shape if arg.shape is not None else [2] * int(rng.integers(0, 4)):
            if not isinstance(dim, int):
                dim = sizes.setdefault(dim or object(), int(rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 17])))
            shape.append(dim)
        if rng.random() < 0.03 and shape:
            shape[rng.integers(len(shape))] += 1
        if np.prod(shape, dtype=object) > LARGEST:
            return None
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(arg._element_type))
        feeds[arg.name] = tensor_for(dtype, tuple(shape), rng, builder)
    return feeds


def attempt(model, seed, stage, known=None):
    """Loads and runs a model."""
    import sardonyx

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = np.random.default_rng(seed)
    settings = Settings.drawn(rng)._replace(threads=1)
    stage("load")
    try:
        session = sardonyx.InferenceSession(model.SerializeToString(), settings.options())
    except Exception as problem:
        return failure_of(problem) or {"status": "refused"}
    limits = sardonyx.RunOptions()
    limits.timeout = SECONDS / 6
    status = "not run"
    for run in range(3):
        try:
            feeds = feeds_for(session, known or {}, rng)
            feeds = feeds and {name: guarded(array) for name, array in feeds.items() if array is not None}
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


def smaller(model, seed, kind, known):
    """Takes away outputs, nodes, attributes and constants while the fault stays."""

    def fails(candidate):
        result = workers.alone(lambda task, stage: attempt(candidate, seed, stage, known), None, SECONDS)
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
            model, known = damaged(seed, self.models, self.args.only)
            return {"status": "small", "model": smaller(model, seed, result["kind"], known)}

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
        try:
            model, known = damaged(seed, models, args.only)
        except Refused:
            return {"status": "no model"}
        return attempt(model, seed, stage, known)

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
