"""What tells how good a model's outputs are: numbers for each row of a sample, and their mean.

A metric compares outputs with labels, or with the float model's outputs where there are no labels. A function of one's
own takes (outputs, expected), two lists of arrays of one sample (`expected` is the label itself where there are some),
and gives a number or an array of numbers; its attribute `better` is "lower" (the default) or "higher".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np


def _rows(array) -> np.ndarray:
    array = np.asarray(array, np.float64)
    return array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(1, -1)


def _numbers(outputs) -> list[int]:
    """Which outputs are compared: those of floats; where there are none, those of integers. Classes and the like that a
    model chooses by its floats say nothing of how far these are off."""
    kinds = [each.dtype.kind if isinstance(each, np.ndarray) else "" for each in outputs]
    numbers = [at for at, kind in enumerate(kinds) if kind in ("f", "V")] or [at for at, kind in enumerate(kinds) if kind in ("i", "u", "b")]
    if not numbers:
        raise ValueError("a metric compares numbers, and no output of the model is a tensor of them")
    return numbers


def _scores(outputs) -> int:
    """Which output has a score for each class: the first of floats that isn't a vector."""
    numbers = _numbers(outputs)
    return next((at for at in numbers if outputs[at].ndim > 1), numbers[0])


def _class_axis(output: np.ndarray, labels: np.ndarray | None) -> int:
    if labels is not None and labels.shape == output.shape[:1] + output.shape[2:] != output.shape[:-1]:
        return 1
    return 1 if labels is None and output.ndim == 4 else -1


def _labels(label, output):
    label = np.asarray(label)
    if np.issubdtype(label.dtype, np.integer):
        return label.reshape(1) if label.ndim == 0 and len(output) == 1 else label
    raise ValueError(f"labels of classes are integers, not {label.dtype}")


def _top1(outputs, expected, labelled):
    at = _scores(outputs)
    output = outputs[at]
    labels = _labels(expected, output) if labelled else None
    if output.ndim < 2 and output.dtype.kind in "iub":  # the classes themselves
        return (output == (labels if labelled else expected[at])).astype(np.float64).ravel()
    axis = _class_axis(output, labels)
    wanted = labels if labelled else expected[at].argmax(axis)
    return (output.argmax(axis) == wanted).astype(np.float64).ravel()


def _kl(outputs, expected, labelled):
    """KL divergence in nats from what is expected to the Softmax of the outputs; of labels it is the cross entropy."""
    at = _scores(outputs)
    output = outputs[at].astype(np.float64)
    labels = _labels(expected, output) if labelled else None
    axis = _class_axis(output, labels)

    def logs(values):
        values = np.moveaxis(values.astype(np.float64), axis, -1)
        values = values - values.max(-1, keepdims=True)
        return values - np.log(np.exp(values).sum(-1, keepdims=True))

    found = logs(output)
    if labelled:
        return -np.take_along_axis(found, labels[..., None].astype(np.int64), -1).ravel()
    wanted = logs(expected[at])
    return (np.exp(wanted) * (wanted - found)).sum(-1).ravel()


def _pairs(outputs, expected, labelled):
    numbers = _numbers(outputs)
    if labelled:
        return [(_rows(outputs[numbers[0]]), _rows(expected))]
    return [(_rows(outputs[at]), _rows(expected[at])) for at in numbers]


def _cosine(outputs, expected, labelled):
    worst = None
    for found, wanted in _pairs(outputs, expected, labelled):
        norms = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
        value = np.where(norms > 0, (found * wanted).sum(1) / np.maximum(norms, 1e-300), 1.0)
        worst = value if worst is None or len(worst) != len(value) else np.minimum(worst, value)
    return worst


def _mse(outputs, expected, labelled):
    return np.concatenate([((found - wanted) ** 2).mean(1) for found, wanted in _pairs(outputs, expected, labelled)])


def _snr(outputs, expected, labelled):
    """Noise as a share of the power of the signal."""
    pairs = _pairs(outputs, expected, labelled)
    return np.concatenate(
        [((found - wanted) ** 2).sum(1) / np.maximum((wanted**2).sum(1), 1e-300) for found, wanted in pairs]
    )


def _l2(outputs, expected, labelled):
    """The worst relative distance of any output."""
    worst = None
    for found, wanted in _pairs(outputs, expected, labelled):
        value = np.linalg.norm(found - wanted, axis=1) / np.maximum(np.linalg.norm(wanted, axis=1), 1e-30)
        worst = value if worst is None or len(worst) != len(value) else np.maximum(worst, value)
    return worst


def _decibels(mean: float) -> float:
    return -10 * math.log10(max(mean, 1e-30))


@dataclass
class Metric:
    name: str
    rows: Callable  # (outputs, expected, whether expected are labels) → numbers
    better: str = "lower"
    value_of: Callable = staticmethod(lambda mean: mean)  # of the mean of rows
    needs_labels: bool = False
    text: Callable = staticmethod(lambda value: f"{value:.4g}")

    def value(self, rows: np.ndarray) -> float:
        return float(self.value_of(float(np.mean(rows))))

    def loss(self, before: float, after: float) -> float:
        """How much worse `after` is."""
        return before - after if self.better == "higher" else after - before


def _percent(value):
    return f"{100 * value:.4g} %"


def _db(value):
    return f"{value:.2f} dB"


METRICS = {
    "l2": Metric("l2", _l2),
    "top1": Metric("top1", _top1, "higher", text=_percent),
    "cosine": Metric("cosine", _cosine, "higher"),
    "kl": Metric("kl", _kl),
    "mse": Metric("mse", _mse),
    # Of signals up to 1, as images are.
    "psnr": Metric("psnr", _mse, "higher", _decibels, True, _db),
    "snr": Metric("snr", _snr, "higher", _decibels, True, _db),
}


def metric_of(given: Any, labelled: bool) -> Metric:
    """The metric of a name, a function, or None (relative distance from the float model's outputs)."""
    if isinstance(given, Metric):
        return given
    if given is None:
        if labelled:
            raise ValueError(f"with labels a metric must be named: {', '.join(METRICS)}, or a function")
        return METRICS["l2"]
    if callable(given):
        better = getattr(given, "better", "lower")
        if better not in ("lower", "higher"):
            raise ValueError(f"'better' of a metric is \"lower\" or \"higher\", not {better!r}")
        name = getattr(given, "__name__", type(given).__name__)
        return Metric(
            name, lambda outputs, expected, _: np.atleast_1d(np.asarray(given(outputs, expected), np.float64)), better
        )
    if given not in METRICS:
        raise ValueError(f"there is no metric '{given}'; there are {', '.join(METRICS)}, and functions")
    metric = METRICS[given]
    if metric.needs_labels and not labelled:
        raise ValueError(f"{given} against the float model's own outputs has no bound to lose from; give labels, or take l2")
    return metric


def bound_of(max_error, before: float) -> float:
    """`max_error` as a number: given as one, or as "1%" of the float model's value (of 1, where that is 0)."""
    if isinstance(max_error, str):
        text = max_error.strip()
        try:
            number = float(text.rstrip("%"))
        except ValueError:
            raise ValueError(f'max_error is a number or a percentage like "1%", not {max_error!r}') from None
        max_error = number if not text.endswith("%") else number / 100 * (abs(before) or 1.0)
    if not max_error >= 0:
        raise ValueError(f"max_error is not negative, unlike {max_error}")
    return float(max_error)
