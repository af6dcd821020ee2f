#!/usr/bin/env python3
"""Random models against onnxruntime and onnx.reference.

    differential.py [--seconds N | --models N] [--seed S] [--jobs J] [--families a,b] [--out FOLDER]
    differential.py --case FILE        a found case (.onnx beside .npz, or .onnxtxt) once more
    differential.py --show SEED        the model of a seed, as text
    differential.py --coverage         which operators that there are no family makes

Model number i of a run is made from seed S + i and nothing else. Fixed and open sizes, vectors of
512, 256 and 128 bits, with and without checks of bounds, and several runs a session with other data and
sizes. --families takes the name of a theme, too. Faults are crashes, hangs, wrong answers, accesses out
of bounds, answers that change from run to run, refusals of what the references compute,
errors in words of the compiler, and refusals by a pass that should know the form. Each is made small and
written to FOLDER (build/fuzz/found), of the same fault three at most. Exit status: 1 if there are faults.
"""

import argparse
import collections
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import cases  # noqa: E402
import covering  # noqa: E402
import workers  # noqa: E402
from minimise import minimise  # noqa: E402
from operators import families  # noqa: E402
from references import Refused  # noqa: E402
from report import Counts  # noqa: E402
from themes import THEMES  # noqa: E402
from trial import attempt, of_seed  # noqa: E402

SECONDS = 60  # for one model
SMALLER = 300  # for making one small


def serve(task, stage):
    seed, names, small = task
    try:
        trial = of_seed(seed, names)
    except Refused:
        return {"status": "empty"}
    if small:
        stage("minimise")
        least, result = minimise(trial)
        for step in least.graph.steps:
            step.valid = None  # goes through no pipe
        return {"status": "small", "trial": least, "result": result}
    ops = [node.op_type for step in trial.graph.steps for node in step.nodes]
    return attempt(trial, stage) | {"ops": ops}


class Report(Counts):
    """Counts, and the faults of each kind."""

    def __init__(self, out, names):
        super().__init__()
        self.out, self.names = out, names
        self.ops, self.refusals = collections.Counter(), collections.Counter()

    def take(self, seed, result):
        self.ops.update(result.get("ops", ()))
        if result["status"] == "refused":
            self.refusals[re.sub(r"'[^']*'|\d+", "_", result["text"])[:90]] += 1
        super().take(seed, result)

    def save(self, seed, result):
        rough = f"{result['kind']} {re.sub(r'[^a-zA-Z]+', ' ', result['text'])[:60]}"
        self.kinds[rough] += 1
        if result["kind"] not in ("wrong answer", "crash", "hang", "not deterministic") and self.kinds[rough] > 3:
            return
        small = workers.alone(serve, (seed, self.names, True), SMALLER)
        trial, again = small.get("trial"), small.get("result")
        if again is None:
            print(
                f"seed {seed}: {result['kind']} ({result.get('stage', '')}): {result['text']}; "
                f"not made small: {small.get('text')}",
                flush=True,
            )
            return
        ops = "-".join(dict.fromkeys(node.op_type for step in trial.graph.steps for node in step.nodes))[:60]
        said = "" if "answer" in again["kind"] else re.sub(r"[^a-zA-Z]+", " ", again["text"])[:40]
        words = f"{again['kind']} {ops} {said}"
        self.kinds[words] += 1
        if self.kinds[words] > 3:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{again['kind'].replace(' ', '-')}-{ops}-{seed}.onnx"
        comment = f"seed {seed}: {again['kind']}: {again['text']}"
        onnx.save(trial.graph.model(), path)
        np.savez(path.with_suffix(".npz"), runs=np.array(trial.runs, object), settings=np.array(trial.settings, object))
        text = cases.to_text(trial, comment)
        path.with_suffix(".onnxtxt").write_text(
            text or f"# {comment}\n# too large for a text\n{cases.shortened(trial.graph)}\n"
        )
        print(f"{path.stem}: {comment} ({trial.settings})", flush=True)

    def finish(self):
        seconds = time.monotonic() - self.started
        total = sum(self.counts.values())
        print(f"{total} models in {seconds:.0f} s: {dict(self.counts)}")
        print(f"operators ({len(self.ops)}): " + " ".join(f"{n}:{c}" for n, c in self.ops.most_common()))
        for text, count in self.refusals.most_common(25):
            print(f"  refused {count}: {text}")
        for text, count in self.kinds.most_common():
            print(f"  fault {count}: {text}")
        return 1 if self.counts["fault"] or self.counts["broken"] else 0


def fuzz(args):
    report = Report(args.out, args.families)

    def seeds():
        end = time.monotonic() + args.seconds if args.seconds else None
        for i in range(args.models or sys.maxsize):
            if end and time.monotonic() > end:
                return
            yield args.seed + i, args.families, False

    workers.serve_all(serve, seeds(), args.jobs, SECONDS, lambda task, result: report.take(task[0], result))
    return report.finish()


def once_more(path):
    trial = cases.from_text(path.read_text()) if path.suffix == ".onnxtxt" else cases.from_files(path)
    result = workers.alone(attempt, trial, SECONDS)
    print(result)
    return result["status"] in ("fault", "dead", "broken")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--models", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--families", type=lambda text: text.split(","), default=[])
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "build" / "fuzz" / "found")
    parser.add_argument("--case", type=Path)
    parser.add_argument("--show", type=int)
    parser.add_argument("--coverage", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.families) - set(families()) - set(THEMES if len(args.families) == 1 else ()):
        parser.error(
            f"no family is called {', '.join(sorted(unknown))}; there are {', '.join(families())}, or one of the themes {', '.join(THEMES)}"
        )
    if args.coverage:
        left = covering.missing(jobs=args.jobs)
        print("\n".join(f"{domain or 'ai.onnx'}.{name}" for domain, name in sorted(left)) or "every operator is made")
        return bool(left)
    if args.case:
        return once_more(args.case)
    if args.show is not None:
        trial = of_seed(args.show, args.families)
        print(f"{trial.settings}\n{cases.shortened(trial.graph)}")
        return 0
    if not args.seconds and not args.models:
        args.seconds = 600
    return fuzz(args)


if __name__ == "__main__":
    sys.exit(main())
