"""Judges models by samples that nothing else has seen, and by what the float model gives for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .metrics import Metric, bound_of, metric_of


@dataclass
class Score:
    rows: np.ndarray
    value: float
    loss: float = 0.0


class Judge:
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

    def _score(self, outputs) -> Score:
        parts = [
            np.atleast_1d(self.metric.rows(found, wanted, self.labelled)) for found, wanted in zip(outputs, self.expected)
        ]
        rows = np.concatenate(parts)
        if not np.isfinite(rows).all():
            return Score(rows, float("nan"), float("inf"))
        return Score(rows, self.metric.value(rows))

    def score(self, run) -> Score:
        return self.score_of([run(feeds) for feeds in self.holdout.feeds])

    def score_of(self, outputs) -> Score:
        """The score of what a model gives for the samples of the holdout."""
        score = self._score(outputs)
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
        """The least loss of top-1 that the rows can tell, or 0 for metrics whose rows are compared in pairs.

        It is the lesser of two ends of 95 %: of a share of right answers, and, since both models see the same rows, of
        a loss that none of the rows shows (3 / rows).
        """
        if self.metric.name != "top1":
            return 0.0
        count, share = len(self.before.rows), self.before.value
        share = min(max(share, 1 / count), 1 - 1 / count) if count > 1 else 0.5
        return min(1.96 * (share * (1 - share) / count) ** 0.5, 3 / count)

    def goal(self) -> str:
        value = self.before.value - self.bound if self.metric.better == "higher" else self.before.value + self.bound
        return f"{self.metric.name} {'≥' if self.metric.better == 'higher' else '≤'} {self.metric.text(value)}"
