"""The loop that holds bounds: int8 where samples allow it, float where they don't, nothing where it can't be had."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from dataclasses import asdict, dataclass, field

import numpy as np
import onnx

from ..model_files import MODEL_SIZE_THRESHOLD, load_model, save_model, size_of
from ..plan import Plan
from .metrics import Metric, bound_of, metric_of
from .regions import PRODUCTS, Int8Quantization
from .samples import read_samples, split
from .timing import compare_speed, refusal_of_speed

logger = logging.getLogger("sardonyx")

_LOST = 0.1  # of a consumer's variance: such a tensor goes back to float without further trials


class Refused(ValueError):
    """No plan holds the bounds, or it can't be told; nothing was written. `report` holds what was tried."""

    def __init__(self, sentence, report=None):
        super().__init__(sentence)
        self.report = report or {}


@dataclass
class Result:
    model: onnx.ModelProto
    plan: Plan
    report: dict = field(default_factory=dict)

    def table(self) -> str:
        """The summary, and a line for each node that stays float."""
        summary = self.report["summary"]
        lines = [
            f"{summary['metric']}: float {summary['before_text']}, quantised {summary['after_text']}, "
            f"loss {summary['loss']:.4g} of at most {summary['max_error']:.4g} "
            f"({summary['loss_low']:.2g}…{summary['loss_high']:.2g})",
            f"bytes: {summary['bytes_before']:,} → {summary['bytes_after']:,}",
        ]
        speed = self.report.get("speed")
        if speed:
            lines.append(
                f"time: {speed['float_ms']:.3f} ms → {speed['quantized_ms']:.3f} ms "
                f"({speed['ratio']:.2f}×, {speed['low']:.2f}…{speed['high']:.2f})"
            )
        rows = list(self.report["float"].items())
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(lines + [f"  float: {name:{width}}  {reason}" for name, reason in rows])

    def save_report(self, path) -> None:
        with open(path, "w") as file:
            json.dump(self.report, file, indent=1)


@dataclass
class _Score:
    rows: np.ndarray
    value: float
    loss: float = 0.0


class _Judge:
    """Runs models on the holdout and compares them with the float model there."""

    def __init__(self, model, holdout, metric, max_error, threads, seed):
        self.holdout, self.threads, self.seed = holdout, threads, seed
        labelled = holdout.labels is not None
        self.metric: Metric = metric_of(metric, labelled)
        self.labelled = labelled
        self.run = self.runner(model)
        outputs = [self.run(feeds) for feeds in holdout.feeds]
        self.expected = holdout.labels if labelled else outputs
        self.before = self._score(outputs)
        self.bound = bound_of(max_error, self.before.value)

    def runner(self, model):
        from sardonyx import InferenceSession, SessionOptions

        options = SessionOptions()
        if self.threads:
            options.intra_op_num_threads = self.threads
        session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = [entry.name for entry in session.get_inputs()]
        return lambda feeds: session.run(None, {name: feeds[name] for name in wanted if name in feeds})

    def _score(self, outputs) -> _Score:
        parts = [
            np.atleast_1d(self.metric.rows(found, wanted, self.labelled)) for found, wanted in zip(outputs, self.expected)
        ]
        rows = np.concatenate(parts)
        if not np.isfinite(rows).all():
            return _Score(rows, float("nan"), float("inf"))
        return _Score(rows, self.metric.value(rows))

    def score(self, run) -> _Score:
        score = self._score([run(feeds) for feeds in self.holdout.feeds])
        if np.isfinite(score.loss):
            score.loss = self.metric.loss(self.before.value, score.value)
        return score

    def holds(self, score) -> bool:
        return score.loss <= self.bound

    def interval(self, score):
        """Ends of the 95 % interval of the loss, by resampling rows."""
        random = np.random.default_rng(self.seed)
        count = len(score.rows)
        losses = []
        for _ in range(400):
            chosen = random.integers(0, count, count)
            before, after = self.metric.value(self.before.rows[chosen]), self.metric.value(score.rows[chosen])
            losses.append(self.metric.loss(before, after))
        low, high = np.percentile(losses, [2.5, 97.5])
        return float(low), float(high)

    def resolution(self) -> float:
        """The least loss of top-1 that the rows can tell, or 0 for metrics whose rows are compared in pairs."""
        if self.metric.name != "top1":
            return 0.0
        count, share = len(self.before.rows), self.before.value
        share = min(max(share, 1 / count), 1 - 1 / count) if count > 1 else 0.5
        return 1.96 * (share * (1 - share) / count) ** 0.5

    def goal(self) -> str:
        value = self.before.value - self.bound if self.metric.better == "higher" else self.before.value + self.bound
        return f"{self.metric.name} {'≥' if self.metric.better == 'higher' else '≤'} {self.metric.text(value)}"


def quantize_within(
    model, data, max_error, metric=None, min_speedup=None, output=None, precision="int8", holdout=0.2, keep_float=None,
    threads=None, time_limit=600, timing_seconds=2.0, max_size=None, seed=0,
) -> Result:  # fmt: skip
    """Quantises as much of a model as keeps within bounds that are measured here; raises Refused where none does.

    :param model: a path or a ModelProto, which is not changed.
    :param data: samples as for `quantize_static`, or a pair (samples, labels) of equal length. A sample may be a batch.
    :param max_error: how much worse the metric may get: a number, or "1%" of the float model's value.
    :param metric: "top1", "cosine", "snr", "psnr", "kl", "mse", "l2" or a function (outputs, expected) → numbers with
        an attribute `better`. Without labels the float model's outputs are what is expected.
    :param min_speedup: how many times faster the model must be; the lower end of a 95 % interval counts.
    :param output: a path; nothing is written if the bounds aren't held.
    :param holdout: the share of samples that judges and does not find ranges, or samples of their own for that.
    :param keep_float: names or patterns of nodes.
    :param time_limit: seconds after which no further plan is tried.
    :param timing_seconds: how long each of two models that are compared is run.
    :param max_size: bytes of the model.
    """
    if precision != "int8":
        raise ValueError(f"bounds are kept for precision int8, not for {precision}")
    start = time.monotonic()
    original = load_model(model)
    if size_of(original) >= MODEL_SIZE_THRESHOLD:
        raise ValueError(f"bounds are kept of models below 2 GB, and this one has {size_of(original):,} bytes")
    finding, judging = split(read_samples(data), holdout, seed)
    judge = _Judge(original, judging, metric, max_error, threads, seed)
    if judge.bound < judge.resolution():
        raise Refused(
            f"max_error {100 * judge.bound:.3g} % is finer than {len(judge.before.rows)} samples can tell "
            f"(±{100 * judge.resolution():.2g} points)."
        )
    search = _Search(Int8Quantization(original, finding.feeds, keep_float), judge, start + time_limit)
    report: dict = {"steps": search.steps}
    everything = search.try_regions([])
    best = search.find(everything)
    if not judge.holds(best.score):
        late = " in the time given" if search.late() else ""
        raise Refused(
            f"No plan reaches {judge.goal()}{late}: the best has {judge.metric.text(best.score.value)}."
            f"{_culprits(search.regions)}", report
        )  # fmt: skip
    speed = None
    if min_speedup is not None:
        best, speed = _fast_enough(search, everything, best, min_speedup, timing_seconds, report)
    onnx.checker.check_model(best.model)
    sizes = size_of(original), size_of(best.model)
    if max_size is not None and sizes[1] > max_size:
        raise Refused(f"The model within the bounds has {sizes[1]:,} bytes, more than max_size {max_size:,}.", report)
    low, high = judge.interval(best.score)
    if len(judge.before.rows) < 32 and high - best.score.loss > judge.bound:
        raise Refused(
            f"max_error {judge.bound:.3g} is finer than {len(judge.before.rows)} samples can tell "
            f"({low:.2g}…{high:.2g}).", report
        )  # fmt: skip
    errors: dict[str, float] = {}
    for region in reversed(search.regions):  # the worst last, which stays
        errors.update(dict.fromkeys(region.nodes, region.error))
    report.update(
        summary={
            "metric": judge.metric.name, "before": judge.before.value, "after": best.score.value,
            "before_text": judge.metric.text(judge.before.value), "after_text": judge.metric.text(best.score.value),
            "loss": best.score.loss, "loss_low": low, "loss_high": high, "max_error": judge.bound,
            "samples": len(finding), "holdout": len(judging), "rows": len(judge.before.rows), "seed": seed,
            "bytes_before": sizes[0], "bytes_after": sizes[1], "machine": platform.processor() or platform.machine(),
            "seconds": time.monotonic() - start,
        },
        speed=asdict(speed) if speed else None,
        float=best.floats,
        nodes={
            name: {"precision": node.precision, "reason": node.reason, "error": errors.get(name)}
            for name, node in best.plan.nodes.items()
        },
    )  # fmt: skip
    if output is not None:
        save_model(best.model, os.fspath(output))
    return Result(best.model, best.plan, report)


@dataclass
class _Try:
    regions: list
    floats: dict  # {node: reason} of those that are kept or given back
    model: onnx.ModelProto
    plan: Plan
    run: object
    score: _Score


class _Search:
    """Gives regions back to float, the worst first, until the bound holds; then takes back what need not have been."""

    def __init__(self, quantization, judge, deadline):
        self.quantization, self.judge, self.deadline = quantization, judge, deadline
        self.steps: list[dict] = []
        self.regions: list = []

    def products_only(self, plan) -> _Try | None:
        """A plan with all but convolutions and products in float, too; None where there is nothing else."""
        others = {
            node.name: "costs more time in 8 bits than it saves" for node in self.quantization.model.graph.node
            if node.op_type not in PRODUCTS and node.name not in plan.floats
            and plan.plan.nodes[node.name].precision not in ("float", "removed")
        }  # fmt: skip
        return self.try_regions(plan.regions, others) if others else None

    def try_regions(self, regions, others=()) -> _Try:
        """The model with some regions in float, and nodes of {node: reason}, with its score."""
        floats = dict(others)
        for region in regions:
            for name in region.nodes:
                floats.setdefault(name, f"{region.text()} in 8 bits: error {region.error:.2g} of the consumer's variance")
        floats.update(self.quantization.fixed)
        model, plan = self.quantization.quantized(floats)
        run = self.judge.runner(model)
        score = self.judge.score(run)
        tensors = [name for region in regions for name in region.tensors]
        self.steps.append({"float": tensors, "value": score.value, "loss": score.loss})
        logger.info("%d regions in float: loss %.4g of %.4g", len(regions), score.loss, self.judge.bound)
        return _Try(list(regions), floats, model, plan, run, score)

    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def find(self, everything) -> _Try:
        self.regions = self.quantization.regions(everything.plan)
        if self.judge.holds(everything.score):
            return everything
        lost = sum(region.error > _LOST for region in self.regions)
        count, step = (lost, 1) if lost else (1, 2)
        best = everything
        while count and not self.late():
            current = self.try_regions(self.regions[:count])
            if current.score.loss < best.score.loss:
                best = current
            if self.judge.holds(current.score):
                return self._reduce(current)
            if count >= len(self.regions):
                break
            count = min(count + step, len(self.regions))
            step *= 2
        return best

    def _reduce(self, best) -> _Try:
        """Tries each region in 8 bits again, the least harmful first."""
        for region in reversed(list(best.regions)):
            fewer = [each for each in best.regions if each is not region]
            if self.late() or not fewer:  # all in 8 bits has been tried
                break
            current = self.try_regions(fewer)
            if self.judge.holds(current.score):
                best = current
        return best


def _culprits(regions) -> str:
    """A sentence that names the worst regions, with the signal by noise of what reads them."""
    regions = regions[:2]
    if not regions:
        return ""
    names = [f"{region.text()} ({10 * np.log10(1 / max(region.error, 1e-30)):.1f} dB)" for region in regions]
    several = sum(len(region.tensors) for region in regions) > 1
    return f" {' and '.join(names)} {'are' if several else 'is'} why."


def _fast_enough(search, everything, best, wanted, seconds, report):
    """The plan that is fast enough, and its speed; Refused where there is none.

    Where 8 bits cost more time than they save, it is mostly around cheap operators: with these in float a plan is
    tried a second time.
    """
    judge = search.judge

    def timed(plan):
        speed = compare_speed(judge.run, plan.run, judge.holdout.feeds, seconds, seed=judge.seed)
        report.setdefault("speeds", []).append({"float": sorted(plan.floats), **asdict(speed)})
        return speed

    speed = timed(best)
    if speed.low < wanted and not search.late():
        products = search.products_only(best)
        if products is not None and judge.holds(products.score):
            other = timed(products)
            if other.low > speed.low:
                best, speed = products, other
    if speed.low >= wanted:
        return best, speed
    fastest = speed if best is everything else timed(everything)
    sentence = refusal_of_speed(judge.goal(), wanted, speed, fastest, judge.metric.text(everything.score.value))
    if sentence.startswith("No plan"):
        sentence += _culprits(best.regions)
    raise Refused(sentence, report)
