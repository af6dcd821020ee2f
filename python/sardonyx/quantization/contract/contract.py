"""The loop that holds bounds: int8 where samples allow it, float where they don't, nothing where it can't be had."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass

import numpy as np
import onnx

from ..equalization import equalize
from ..model_files import name_nodes, size_of
from ..plan import Plan
from ..registry import QDQRegistry, QLinearOpsRegistry
from ..shape_inference import quant_pre_process
from ..smoothing import smooth
from .case import Case
from .judge import Score
from .nodewise import PRECISIONS, precision_of
from .regions import PRODUCTS
from .result import Refused, Result
from .timing import refusal_of_speed

logger = logging.getLogger("sardonyx")

_LOST = 0.1  # of a consumer's variance: such a tensor goes back to float without further trials


def quantize_within(
    model, data, max_error, metric=None, min_speedup=None, output=None, precision="int8", holdout=0.2, keep_float=None,
    threads=None, time_limit=600, timing_seconds=2.0, max_size=None, target="sardonyx", seed=0,
    calibration=None, correct_biases=False,
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
    :param precision: "int8", "int8-dynamic", "int4" (weights of MatMul, by GPTQ), "f16", "bf16", "halves" (f16, and bf16
        where samples leave its range), or "auto": the fastest of these that holds the bounds.
    :param keep_float: names or patterns of nodes.
    :param time_limit: seconds after which no further plan is tried.
    :param timing_seconds: how long each of two models that are compared is run.
    :param max_size: bytes of the model.
    :param target: "onnxruntime" puts pairs where it computes in 8 bits, and refuses models that it doesn't load. By
        default pairs are where kernels of Sardonyx read and write. Times are those of Sardonyx in both.
    :param calibration: a CalibrationMethod: how ranges of int8 follow from samples (MinMax).
    :param correct_biases: whether biases of int8 take back what rounding shifts.
    """
    if precision not in (*PRECISIONS, "halves", "auto"):
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)} and auto, not {precision!r}")
    case = Case(model, data, max_error, metric, holdout, threads, time_limit, timing_seconds, max_size, seed, target)
    choices = keep_float, calibration, correct_biases
    if precision == "auto":
        return _best_of(case, choices, min_speedup, output)
    report: dict = {}
    best, speed = _within(case, precision, choices, min_speedup, report)
    return _finished(case, best, speed, report, output)


def _within(case, precision, choices, min_speedup, report):
    """(the plan of a precision that holds the bounds, its speed or None); Refused where there is none."""
    judge = case.judge
    search, everything = _begin(case, precision, choices, report)
    if _changes_nothing(case, precision, everything):
        raise Refused(
            f"{precision} changes nothing: no node that it is for lies outside of the bodies of If, Loop and Scan.", report
        )
    best = search.find(everything)
    report["errors"] = search.errors()
    if not judge.holds(best.score):
        late = " in the time given" if search.late() else ""
        raise Refused(
            f"No plan reaches {judge.goal()}{late}: the best has {judge.metric.text(best.score.value)}."
            f"{_culprits(search.regions)}", report
        )  # fmt: skip
    if min_speedup is None:
        return best, None
    return _fast_enough(search, everything, best, min_speedup, report)


def _changes_nothing(case, precision, plan) -> bool:
    if precision == "int8":
        computed = bool(plan.plan.tensors)
    else:
        computed = any(node.precision != "float" for node in plan.plan.nodes.values())
    return not computed and size_of(plan.model) > 0.99 * size_of(case.original)


def _begin(case, precision, choices, report):
    """(search, its plan with nothing in float) of the model, or of one that computes the same and loses less in int8.

    Channels are evened out, and outliers moved from activations into weights, only where the bound doesn't hold without.
    """
    report.update(precision=precision, steps=[])
    # ONNX Runtime computes a node in 8 bits only between two pairs.
    options = {"FloatWithinKernels": case.target == "sardonyx"}

    def begun(model, transform=None):
        quantization = precision_of(precision, model, case.finding.feeds, *choices, options)
        search = _Search(quantization, case, precision, report["steps"])
        everything = search.try_regions([])
        search.steps[-1]["transform"] = transform
        return everything.score.loss, search, everything, transform

    tried = [begun(case.original)]
    if precision == "int8":
        for transform in (_equalized, _smoothed):
            best = min(tried, key=lambda entry: entry[0])
            if case.judge.holds(best[2].score) or case.late():
                break
            model = transform(case)
            if model is not None:
                tried.append(begun(model, transform.__name__.strip("_")))
    _, search, everything, report["transform"] = min(tried, key=lambda entry: entry[0])
    return search, everything


def _equalized(case):
    return equalize(quant_pre_process(case.original))


def _smoothed(case):
    """The model with what LayerNormalizations can take of outliers moved into weights; None where there are none."""
    model = quant_pre_process(case.original)
    name_nodes(model)
    if not any(node.op_type == "LayerNormalization" for node in model.graph.node):
        return None
    smooth(model, case.finding.feeds, sorted({*QDQRegistry, *QLinearOpsRegistry}), [], [])
    return model


def _finished(case, best, speed, report, output) -> Result:
    errors = report["errors"]
    nodes = {
        name: {"precision": node.precision, "reason": node.reason, "error": errors.get(name)}
        for name, node in best.plan.nodes.items()
    }
    words = {"float": best.floats, "nodes": nodes}
    return case.finish(best.model, best.plan, report, best.score, speed, output, words)


def _best_of(case, choices, min_speedup, output) -> Result:
    """The fastest of all precisions that hold the bound; Refused where none does, with what each said."""
    found: list[tuple] = []
    refusals: dict[str, str] = {}
    for precision in PRECISIONS:
        if case.late() and (found or refusals):
            break
        report: dict = {}
        try:
            best, speed = _within(case, precision, choices, min_speedup, report)
        except Refused as refusal:
            refusals[precision] = str(refusal)
            continue
        found.append((speed or case.timed(best.run), best, report))
    tried = {
        **{precision: {"refused": sentence} for precision, sentence in refusals.items()},
        **{report["precision"]: {"ratio": speed.ratio, "low": speed.low} for speed, _, report in found},
    }
    for speed, best, report in sorted(found, key=lambda entry: -entry[0].low):
        report["tried"] = tried
        try:
            return _finished(case, best, speed, report, output)
        except Refused as refusal:
            name = refusal.report["precision"]
            refusals[name] = tried[name]["refused"] = str(refusal)
    sentences = " ".join(f"{name}: {why}" for name, why in refusals.items())
    raise Refused("No precision holds the bounds. " + sentences, {"tried": tried})


@dataclass
class _Try:
    regions: list
    floats: dict  # {node: reason} of those that are kept or given back
    model: onnx.ModelProto
    plan: Plan
    run: object
    score: Score


class _Search:
    """Gives regions back to float, the worst first, until the bound holds; then takes back what need not have been."""

    def __init__(self, quantization, case, precision, steps):
        self.quantization, self.case, self.judge, self.precision = quantization, case, case.judge, precision
        self.steps: list[dict] = steps
        self.regions: list = []

    def products_only(self, plan) -> _Try | None:
        """A plan with all but convolutions and products in float, too; None where there is nothing else."""
        if self.precision != "int8":
            return None
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
                floats.setdefault(name, f"{region.text()} in {self.precision}: error {region.error:.2g} of the variance")
        floats.update(self.quantization.fixed)
        model, plan = self.quantization.quantized(floats)
        run = self.judge.runner(model)
        score = self.judge.score(run)
        tensors = [name for region in regions for name in region.tensors]
        self.steps.append({"float": tensors, "value": score.value, "loss": score.loss})
        logger.info("%d regions in float: loss %.4g of %.4g", len(regions), score.loss, self.judge.bound)
        return _Try(list(regions), floats, model, plan, run, score)

    def errors(self) -> dict:
        """{node or tensor: the largest error that one of its regions makes}."""
        found: dict[str, float] = {}
        for region in reversed(self.regions):  # the worst last, which stays
            found.update(dict.fromkeys((*region.nodes, *region.tensors), region.error))
        return found

    def late(self) -> bool:
        return self.case.late()

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


def _fast_enough(search, everything, best, wanted, report):
    """The plan that is fast enough, and its speed; Refused where there is none.

    Where 8 bits cost more time than they save, it is mostly around cheap operators: with these in float a plan is
    tried a second time.
    """
    judge = search.judge

    def timed(plan):
        speed = search.case.timed(plan.run)
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
    sentence = refusal_of_speed(judge.goal(), wanted, speed, fastest, judge.metric.text(everything.score.value), search.precision)
    if sentence.startswith("No plan"):
        sentence += _culprits(best.regions)
    raise Refused(sentence, report)
