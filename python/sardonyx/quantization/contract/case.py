"""What every loop with a contract begins and ends with: samples and their roles, and the last verdict."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx

from ..model_files import MODEL_SIZE_THRESHOLD, load_model, save_model, size_of, temporary_folder
from .judge import Judge
from .result import Refused, Result
from .samples import read_samples, split
from .timing import compare_speed

_SHOWN = 4  # samples that a result keeps
_FEW = 32  # rows below which the interval of the loss must lie within the bound


class Case:
    """A model, the samples that find how to change it, those that choose among changes, and those of the last verdict.

    Half of the holdout chooses and half gives the verdict, where it has two distinct samples.
    """

    def __init__(self, model, data, max_error, metric, holdout, threads, time_limit, timing_seconds, max_size, seed, target="sardonyx"):
        if target not in ("sardonyx", "onnxruntime"):
            raise ValueError(f"target is sardonyx or onnxruntime, not {target!r}")
        self.target = target
        self.start = time.monotonic()
        self.deadline = self.start + time_limit
        self.original = load_model(model)
        if size_of(self.original) >= MODEL_SIZE_THRESHOLD:
            raise ValueError(f"bounds are kept of models below 2 GB, and this one has {size_of(self.original):,} bytes")
        self.timing_seconds, self.max_size, self.seed, self.threads = timing_seconds, max_size, seed, threads
        self.finding, held = split(read_samples(data), holdout, seed)
        self.fresh = len({id(feeds) for feeds in held.feeds}) > 1
        last = held
        if self.fresh:
            try:
                held, last = split(held, 0.5, seed)
            except ValueError:  # all of the holdout is one sample, given several times
                self.fresh = False
        bound = np.inf if max_error is None else max_error
        self.judge = Judge(self.original, held, metric, bound, threads, seed)
        self.last = Judge(self.original, last, metric, bound, threads, seed) if self.fresh else self.judge
        for judge in (self.judge, self.last):
            if judge.bound < judge.resolution():
                raise Refused(
                    f"max_error {100 * judge.bound:.3g} % is finer than {len(judge.before.rows)} samples can tell "
                    f"(±{100 * judge.resolution():.2g} points)."
                )

    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def timed(self, run):
        """How much faster a changed model runs than the original."""
        return compare_speed(self.judge.run, run, self.judge.holdout.feeds, self.timing_seconds, seed=self.seed)

    def finish(self, model, plan, report, score, speed, output, words) -> Result:
        """Checks the changed model as a file, in a process of its own, and writes it where it holds.

        :param score: of the samples that chose it.
        :param words: what the report says beside the common summary, by the names of the report's parts.
        """
        onnx.checker.check_model(model)
        sizes = size_of(self.original), size_of(model)
        if self.max_size is not None and sizes[1] > self.max_size:
            raise Refused(
                f"The model within the bounds has {sizes[1]:,} bytes, more than max_size {self.max_size:,}.", report
            )
        judge = self.last
        outputs, onnxruntime = outputs_of_file(model, judge.holdout.feeds, self.threads)
        if self.target == "onnxruntime" and not onnxruntime.endswith("loads the model"):
            raise Refused(f"The model is for onnxruntime, of which is told: {onnxruntime}.", report)
        verdict = judge.score_of(outputs)
        low, high = judge.interval(verdict)
        if not judge.holds(verdict):
            raise Refused(
                f"{judge.metric.name} of the model that holds the bound where it was chosen "
                f"({judge.metric.text(score.value)}) is {judge.metric.text(verdict.value)} on {len(judge.before.rows)} rows "
                f"that nothing was chosen by: {judge.goal()} is missed.", report
            )  # fmt: skip
        if len(judge.before.rows) < _FEW and high - verdict.loss > judge.bound:
            raise Refused(
                f"max_error {judge.bound:.3g} is finer than {len(judge.before.rows)} samples can tell "
                f"({low:.2g}…{high:.2g}).", report
            )  # fmt: skip
        report.update(
            summary={
                "metric": judge.metric.name, "before": judge.before.value, "after": verdict.value,
                "before_text": judge.metric.text(judge.before.value), "after_text": judge.metric.text(verdict.value),
                "loss": verdict.loss, "loss_low": low, "loss_high": high, "max_error": judge.bound,
                "samples": len(self.finding), "holdout": len(judge.holdout), "rows": len(judge.before.rows),
                "fresh_samples": self.fresh, "chosen_at": score.loss, "seed": self.seed, "data": self.finding.digest(),
                "bytes_before": sizes[0], "bytes_after": sizes[1],
                "machine": platform.processor() or platform.machine(), "threads": self.threads,
                "onnxruntime": onnxruntime, "seconds": time.monotonic() - self.start,
            },
            speed=asdict(speed) if speed else None,
            **words,
        )  # fmt: skip
        if output is not None:
            save_model(model, os.fspath(output))
        return Result(model, plan, report, self.original, self.finding.feeds[:_SHOWN], self.threads)


def outputs_of_file(model, samples, threads=None):
    """(outputs of each sample, what onnxruntime says to the file) from a process that knows only the written file."""
    with temporary_folder() as folder:
        save_model(model, folder / "model.onnx")
        for place, feeds in enumerate(samples):
            np.savez(folder / f"feeds_{place}.npz", **feeds)
        command = [sys.executable, "-m", "sardonyx.quantization.contract.last_run", str(folder), str(threads or 0)]
        done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
        if done.returncode:
            raise ValueError(f"the model runs here, and not from its file in a new process: {done.stderr.strip()[-500:]}")
        outputs = []
        for place in range(len(samples)):
            with np.load(folder / f"outputs_{place}.npz") as held:
                outputs.append([held[str(each)] for each in range(len(held.files))])
        return outputs, (folder / "onnxruntime.txt").read_text()


def _environment() -> dict:
    """This process' environment, in which the same package is found."""
    import sardonyx

    here = str(Path(sardonyx.__file__).parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
