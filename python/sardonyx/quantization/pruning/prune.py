"""The loop that removes weights within bounds: of the error that samples measure, and of the speed of this machine."""

from __future__ import annotations

import logging
from typing import Any

from ..contract.case import Case
from ..contract.layer_times import layer_times
from ..contract.result import Refused, Result
from ..contract.timing import refusal_of_speed
from ..options import check_nodes
from .groups import Analysis
from .moments import moments_of
from .reconstruction import reconstruct
from .selection import COSTS, Selection
from .sizes import prepared
from .surgery import Surgery

logger = logging.getLogger("sardonyx")

KINDS = ("structured", "2:4", "block", "magnitude")
_TRIALS = 6  # of amounts, where as much goes as the bound allows


class _Structured:
    """Removes channels, heads and features, and solves the products after them again.

    :param options: `of`, `reconstruct`, `keep`, `tile`.
    """

    def __init__(self, case, of, reconstruct, keep, tile):
        self.case, self.solve = case, reconstruct
        self.model = prepared(case.original)
        samples = case.finding.feeds
        kept = set(check_nodes(keep, self.model, "keep"))
        self.analysis = Analysis(self.model, samples[0], kept)
        if not self.analysis.groups:
            raise Refused(
                "Nothing of this model can be removed: no weights meet on an axis that neither inputs, outputs nor sizes "
                "that are read hold."
            )
        moments = moments_of(self.analysis, samples)
        times = layer_times(self.model, samples[:1], case.threads) if of == "time" else None
        self.selection = Selection(self.analysis, moments, of, tile, times)
        self.means = {(each.node.name, each.value): moments[each.value, each.axis].mean for each in self.analysis.consumers}
        free = self.selection.lossless()
        self.same = {unit: other for unit, other in self.selection.same().items() if not {unit, other} & free}
        for unit, other in self.same.items():
            self.selection.scores[other] += self.selection.scores[unit]
        self.free = free | set(self.same)

    def pruned(self, amount):
        removed = self.selection.choose(amount, self.free)
        # Where the other of two goes as well, what both hold becomes a constant.
        merged = {unit: other for unit, other in self.same.items() if other not in removed}
        surgery = Surgery(self.analysis, removed, self.means, merged)
        model = surgery.run()
        if self.solve:
            model = reconstruct(self.analysis, surgery, self.case.finding.feeds, seed=self.case.seed)
        report = {
            group.text(): {"left": int((~surgery.removed[group.units]).sum()), "of": len(group.units)}
            for group in self.analysis.groups
        }
        return model, {
            "groups": report, "left": self.selection.total(removed), "cost": self.selection.cost, "free": len(self.free)
        }


def prune(
    model, data, kind="structured", amount=None, max_error=None, metric=None, min_speedup=None, output=None,
    of="parameters", reconstruct=True, keep=None, holdout=0.2, threads=None, time_limit=600, timing_seconds=2.0,
    max_size=None, tile=16, block=(1, 16), seed=0,
) -> Result:  # fmt: skip
    """Removes what a model can do without, within bounds that are measured here; raises Refused where it can't.

    :param model: a path or a ModelProto, which is not changed.
    :param data: samples as for `quantize`, or a pair (samples, labels).
    :param kind: "structured" makes layers narrower: a smaller model of the same operators. "2:4" (two of four
        neighbours), "block" and "magnitude" put zeros into weights, which stay stored.
    :param amount: the share to remove, from 0 to 1. None: as much as `max_error` allows.
    :param of: what `amount` is a share of: "parameters", "flops", "time" (of kernels, measured here) or "channels".
    :param max_error: how much worse the metric may get, as for `quantize`. None: as much as it takes.
    :param reconstruct: solve what reads removed channels again by least squares, or let remaining weights make up for zeros.
    :param keep: names, patterns or operators of nodes whose weights keep their sizes, and hold no new zeros.
    :param tile: layers of four times that width keep multiples of it, as kernels compute so many numbers at a time.
    :param block: rows and columns of blocks of zeros, of [outputs, inputs].

    Other arguments are those of `quantize`.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    if of not in COSTS:
        raise ValueError(f"of is one of {', '.join(COSTS)}, not {of!r}")
    if amount is None and max_error is None and kind != "2:4":
        raise ValueError("either amount or max_error tells how much to remove")
    if amount is not None and not 0 < amount < 1:
        raise ValueError(f"amount is a share between 0 and 1, not {amount}")
    case = Case(model, data, max_error, metric, holdout, threads, time_limit, timing_seconds, max_size, seed)
    pruner: Any
    if kind == "structured":
        pruner = _Structured(case, of, reconstruct, keep, tile)
    else:
        from .zeros import Zeros

        pruner = Zeros(case, kind, block, reconstruct, keep)
        amount = 0.5 if kind == "2:4" else amount
    search = _Search(case, pruner)
    best = search.at(amount) if amount is not None else search.most()
    if not case.judge.holds(best.score):
        judge = case.judge
        removed = of if kind == "structured" else "weights"
        what = f"with {100 * best.amount:.3g} % of its {removed} removed"
        raise Refused(
            f"No pruned model reaches {judge.goal()}: {what} it has {judge.metric.text(best.score.value)}.", search.report
        )
    speed = None
    if min_speedup is not None:
        speed = case.timed(best.run)
        if speed.low < min_speedup:
            sentence = refusal_of_speed(
                case.judge.goal(), min_speedup, speed, speed, case.judge.metric.text(best.score.value), "pruned"
            )
            raise Refused(sentence, search.report)
    return case.finish(best.model, None, search.report, best.score, speed, output, {"pruning": best.report})


class _Trial:
    def __init__(self, amount, model, report, run, score):
        self.amount, self.model, self.report, self.run, self.score = amount, model, report, run, score


class _Search:
    """Tries amounts."""

    def __init__(self, case, pruner):
        self.case, self.pruner = case, pruner
        self.report: dict = {"steps": []}

    def at(self, amount) -> _Trial:
        model, report = self.pruner.pruned(amount)
        run = self.case.judge.runner(model)
        score = self.case.judge.score(run)
        self.report["steps"].append(
            {"amount": amount, "left": report["left"], "value": score.value, "loss": score.loss}
        )
        logger.info("%.3g of it removed: loss %.4g of %.4g", amount, score.loss, self.case.judge.bound)
        return _Trial(amount, model, report, run, score)

    def most(self) -> _Trial:
        """The largest amount that holds the bound, by halving; the least that was tried where none does."""
        low, high = 0.0, 1.0
        best = None
        for _ in range(_TRIALS):
            if self.case.late() and best is not None:
                break
            trial = self.at((low + high) / 2)
            if self._holds(trial.score):
                best, low = trial, trial.amount
            else:
                high = trial.amount
                last = trial
        return best if best is not None else last

    def _holds(self, score) -> bool:
        """Whether the whole interval of a loss holds the bound: the best of several trials is in part luck."""
        return self.case.judge.holds(score) and self.case.judge.interval(score)[1] <= self.case.judge.bound
