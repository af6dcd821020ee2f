#!/usr/bin/env python3
"""Runs twelve public scripts of quantisation with Sardonyx in onnxruntime's place, and tells what became of each.

    quantization_scripts.py CHECKOUTS [--engine onnxruntime] [--only 4 9] [--keep FOLDER]

CHECKOUTS holds clones, each under its own name, of microsoft/onnxruntime-inference-examples, microsoft/Olive,
huggingface/optimum-onnx, opencv/opencv_zoo, amd/RyzenAI-SW and onnx/neural-compressor. A script runs as it is, in a copy of
its folder, with `import onnxruntime` changed and with small networks, pictures and texts where it reads or downloads large
ones (script_data.py). It has run when it ended without an exception and when each model that it wrote passes onnx.checker,
runs in onnxruntime and gives results within a bound of the float model's. Exit status 1 if one of those that are here has not.

It is to be run by a Python that has what the scripts import (docs/Testing.md), with build/release/python in PYTHONPATH.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
from onnxruntime_tests import INSTALL  # noqa: E402

# What a process does before the script: onnxruntime's place is taken as for onnxruntime's own tests.
START = """
import runpy, sys
{prelude}
sys.argv = {arguments!r}
sys.path.insert(0, {folder!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# onnxruntime's optimiser of transformers and its helpers, which are no part of quantisation and which Sardonyx has not: the
# installed onnxruntime's own files, on Sardonyx' sessions.
OPTIMISER = """
import importlib.util, os
class Optimiser:
    folder = next(os.path.join(path, "onnxruntime", "transformers") for path in sys.path
                  if os.path.exists(os.path.join(path, "onnxruntime", "transformers", "optimizer.py")))
    def find_spec(self, name, path=None, target=None):
        file = os.path.join(self.folder, name.rpartition(".")[2] + ".py")
        here = "float16" in name or "io_binding" in name
        if name.startswith("onnxruntime.transformers.") and not here and os.path.exists(file):
            return importlib.util.spec_from_file_location(name, file)
sys.meta_path.insert(0, Optimiser())
sys.path.append(Optimiser.folder)
import onnxruntime.transformers
onnxruntime.transformers.optimizer = importlib.import_module("onnxruntime.transformers.optimizer")
"""
LIMIT = 900  # seconds a script


@dataclasses.dataclass
class Step:
    """One process: a script with its arguments, and what stands in for what it imports but only reads data by."""

    script: str
    arguments: tuple = ()
    prelude: str = ""
    optimiser: bool = False  # whether it needs onnxruntime.transformers beyond what Sardonyx has of it
    alone: bool = False  # whether the import changes in the script's own lines, and not in packages that it imports


@dataclasses.dataclass
class Job:
    """What a script runs on, and how its work is judged."""

    steps: list
    pairs: list = dataclasses.field(default_factory=list)  # (float model, written model) by path
    feeds: list = dataclasses.field(default_factory=list)  # of both models, for the comparison
    bound: float = 0.1  # of the distance of the results, as a part of the float results' length
    says: str = ""  # an expression for lines that the last step must print
    check: object = None  # a further judgement: folder → what it found; raises AssertionError
    folder: str = "."  # where the steps run
    libraries: tuple = ()  # of operators, for onnxruntime
    note: str = ""


@dataclasses.dataclass
class Script:
    row: int
    repository: str
    source: str  # a folder of the repository, which is copied; "" where only its package is imported
    name: str
    calls: str
    make: object  # folder → Job

    @property
    def title(self):
        return f"{self.repository.split('/')[1]} {self.name}"


def judge(job, folder):
    """The worst distance of the written models' results from the float models', as onnxruntime computes both."""
    import onnx
    import onnxruntime

    distances = []
    for before, after in job.pairs:
        distance = 0.0
        onnx.checker.check_model(str(folder / after))
        results = []
        for path in (before, after):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            for library in job.libraries:
                options.register_custom_ops_library(library)
            session = onnxruntime.InferenceSession(str(folder / path), options, providers=["CPUExecutionProvider"])
            names = [value.name for value in session.get_outputs()] if not results else names
            results.append([session.run(names, feed) for feed in job.feeds])
        for wanted, given in zip(*results):
            for name, left, right in zip(names, wanted, given):
                assert left.shape == right.shape, f"{after}: {name} has the shape {right.shape}, not {left.shape}"
                left, right = left.astype(np.float64), right.astype(np.float64)
                distance = max(distance, float(np.linalg.norm(right - left) / max(np.linalg.norm(left), 1e-30)))
        assert distance, f"{after} gives the float model's results to the last bit: nothing was quantised"
        distances.append(distance)
    worst = max(distances, default=0.0)
    assert worst <= job.bound, f"results are {worst:.3f} away from the float model's; at most {job.bound} is asked"
    return f"results within {worst:.2g} of the float model's" if job.pairs else ""


def last_words(text):
    """The exception of a traceback, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Fail|Interrupt|Exit|Argument|Implemented)\b", line)]
    return (named or lines or ["nothing was printed"])[-1][:300]


def perform(script, checkouts, folder, engine):
    """(whether it has run, why or what it gave)."""
    folder.mkdir(parents=True)
    if script.source:
        shutil.copytree(checkouts / script.repository.split("/")[1] / script.source, folder, dirs_exist_ok=True)
    job = script.make(folder)
    place = folder / job.folder
    packages = [str(checkouts / name) for name in ("neural-compressor", "Olive", "optimum-onnx")]
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = dict(
        os.environ, SARDONYX_CACHE_DIR=str(folder / ".cache"), TORCH_HOME=str(folder / ".torch"), HF_HOME=str(folder / ".hub"),
        HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", PATH=search,
        PYTHONPATH=os.pathsep.join([*packages, *filter(None, [os.environ.get("PYTHONPATH")])]),
    )  # fmt: skip
    said = ""
    for index, step in enumerate(job.steps):
        install = INSTALL + (OPTIMISER if step.optimiser else "")
        if engine == "onnxruntime" or step.alone:
            install = ""
        if engine != "onnxruntime" and step.alone:
            text = (place / step.script).read_text()
            text = re.sub(r"^import onnxruntime$", "import sardonyx as onnxruntime", text, flags=re.M)
            (place / step.script).write_text(re.sub(r"^from onnxruntime\b", "from sardonyx", text, flags=re.M))
        code = START.format(prelude=install + step.prelude, arguments=[step.script, *step.arguments], folder=str(place))
        start = place / f".start_{index}.py"
        start.write_text(code)
        command = [sys.executable, str(start)]
        try:
            done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return False, f"{step.script} did not end within {LIMIT} s"
        said = done.stdout
        (place / f".said_{index}.txt").write_text(done.stdout + done.stderr)
        if done.returncode:
            return False, last_words(done.stderr or done.stdout)
    found = []
    if job.says:
        if not re.search(job.says, said):
            return False, f"it printed nothing of the form {job.says!r}"
    try:
        if job.check:
            found.append(job.check(place))
        found.append(judge(job, place))
    except Exception as error:
        return False, f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
    return True, "; ".join(filter(None, [*found, job.note]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--engine", choices=["sardonyx", "onnxruntime"], default="sardonyx")
    parser.add_argument("--only", nargs="+", type=int, help="rows of the table")
    parser.add_argument("--keep", type=Path, help="a folder for what the scripts read, wrote and said")
    args = parser.parse_args()
    from script_table import SCRIPTS

    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for script in SCRIPTS:
            if args.only and script.row not in args.only:
                continue
            checkout = args.checkouts / script.repository.split("/")[1]
            if not checkout.is_dir() or not (checkout / script.source).is_dir():
                rows.append((script, None, f"no checkout of https://github.com/{script.repository} in {args.checkouts}"))
                continue
            folder = (args.keep or Path(temporary)).resolve() / f"{script.row}-{len(rows)}"
            shutil.rmtree(folder, ignore_errors=True)
            try:
                rows.append((script, *perform(script, args.checkouts.resolve(), folder, args.engine)))
            except ImportError as error:
                rows.append((script, None, f"its data can't be made: {error}"))
            print(f"{script.row}: {script.title}: {rows[-1][1:]}", file=sys.stderr, flush=True)
    print("| | script | calls | outcome | reason |\n|---|---|---|---|---|")
    for script, passed, reason in rows:
        outcome = {True: "runs", False: "fails", None: "not run"}[passed]
        print(f"| {script.row} | {script.title} | {script.calls} | {outcome} | {reason} |".replace("\n", " "))
    whole = {script.row for script, *_ in rows} - {script.row for script, passed, _ in rows if not passed}
    count = len({script.row for script, *_ in rows})
    print(f"{len(whole)} of {count} rows run, {sum(bool(row[1]) for row in rows)} of {len(rows)} scripts")
    return int(any(row[1] is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
