"""What is seen of a tensor in a calibration, of one size however many samples there are, and ranges that follow from it.

A histogram counts numbers by the upper 14 bits of their f32 form: sign, exponent and 5 bits of mantissa. It needs no
range before, sums of samples are exact, and an edge is at most 3 % off; least and largest number are kept as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .quant_utils import smooth_distribution

BITS = 14
_SHIFT = 32 - BITS
_HALF = 2 ** (BITS - 1)  # bins of each sign
_FINITE = 255 << (BITS - 9)  # bins of finite numbers of each sign


def _edges() -> np.ndarray:
    """The ends of the bins of positive numbers, in f64: [finite bins + 1]."""
    edges = (np.arange(_FINITE + 1, dtype=np.uint32) << _SHIFT).view(np.float32).astype(np.float64)
    edges[-1] = 2.0**128
    return edges


_EDGES = _edges()


class Observation:
    """Counts, ends, sums and, if asked, the histogram of all numbers of a tensor so far; or ends of its channels."""

    def __init__(self, dtype=np.float32, bits: bool = False):
        self.dtype = np.dtype(dtype)
        self.count = 0
        self.lowest: Any = None  # arrays: of shape [1], or [channels]
        self.highest: Any = None
        self.sum = self.square_sum = 0.0
        self.bins: Any = np.zeros(2**BITS, np.int64) if bits else None

    @property
    def empty(self) -> bool:
        return self.lowest is None

    def add(self, values: np.ndarray, per_channel: bool = False) -> None:
        """Adds the numbers of one run; with `per_channel` ends are those of axis 1. NaN and infinity are refused."""
        self.dtype = values.dtype
        if not values.size:
            return
        if per_channel:
            axes = tuple(axis for axis in range(values.ndim) if axis != 1)
            low, high = values.min(axis=axes), values.max(axis=axes)
        else:
            low, high = values.min(keepdims=True).reshape(1), values.max(keepdims=True).reshape(1)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError("NaN" if np.isnan(values).any() else "an infinite number")
        self._widen(low, high)
        self.count += values.size
        if self.bins is not None:
            plain = np.ascontiguousarray(values, np.float32).ravel()
            self.bins += np.bincount(plain.view(np.uint32) >> _SHIFT, minlength=2**BITS)
            self.sum += float(plain.sum(dtype=np.float64))
            self.square_sum += float(np.dot(plain.astype(np.float64), plain))

    def _widen(self, low, high) -> None:
        if self.empty:
            self.lowest, self.highest = low, high
        elif low.shape != self.lowest.shape:
            raise ValueError(f"{len(low)} channels after {len(self.lowest)}")
        else:
            self.lowest, self.highest = np.minimum(self.lowest, low), np.maximum(self.highest, high)

    def merge(self, other: Observation) -> None:
        """Adds what another saw: of another sample, thread or machine."""
        self.dtype = other.dtype
        if other.empty:
            return
        self._widen(other.lowest, other.highest)
        self.count += other.count
        if self.bins is not None:
            self.bins += other.bins
            self.sum += other.sum
            self.square_sum += other.square_sum

    def ends(self):
        """(least, largest) as scalars of the tensor's type; 0 of a tensor that was always empty."""
        if self.empty:
            return np.zeros((), self.dtype), np.zeros((), self.dtype)
        return np.asarray(self.lowest.min(), self.dtype), np.asarray(self.highest.max(), self.dtype)

    def _cumulated(self, places: np.ndarray) -> np.ndarray:
        """How many numbers lie below each of `places`, numbers of a bin lying evenly between its ends."""
        positive, negative = self.bins[:_FINITE], self.bins[_HALF : _HALF + _FINITE]
        low, high = (float(end) for end in self.ends())

        def below(counts, distances):
            return np.interp(distances, _EDGES, np.concatenate([[0], np.cumsum(counts)]))

        zeros = self.bins[0] + self.bins[_HALF]  # bin 0 of either sign: 0 itself, and numbers too small to matter
        up, down = positive.copy(), negative.copy()
        up[0] = down[0] = 0
        counts = np.where(
            places > 0, down.sum() + zeros + below(up, np.maximum(places, 0)), down.sum() - below(down, np.maximum(-places, 0))
        ).astype(np.float64)
        counts = np.where(places == 0, down.sum() + zeros / 2, counts)
        return np.where(places <= low, 0, np.where(places >= high, self.count, counts))

    def masses(self):
        """(middles, widths, counts) of the bins that hold numbers; the outermost end where numbers do."""
        low, high = (float(end) for end in self.ends())
        middles = (_EDGES[:-1] + _EDGES[1:]) / 2
        widths = np.diff(_EDGES)
        middles[0], widths[0] = 0.0, 0.0
        values = np.concatenate([middles, -middles])
        counts = np.concatenate([self.bins[:_FINITE], self.bins[_HALF : _HALF + _FINITE]])
        held = counts > 0
        return np.clip(values[held], low, high), np.concatenate([widths, widths])[held], counts[held].astype(np.float64)

    def linear(self, count: int, low: float, high: float):
        """(counts of `count` equally wide bins from `low` to `high`, their ends in the tensor's type)."""
        edges = np.linspace(low, high, count + 1)
        below = self._cumulated(edges)
        below[0], below[-1] = 0, self.count  # a bin holds its own ends
        return np.diff(np.rint(below)).astype(np.int64), edges.astype(self.dtype)  # of sums, as tails have parts of one

    def absolute(self, count: int):
        """The same of absolute values, from 0 to the largest of them."""
        low, high = (float(end) for end in self.ends())
        largest = max(-low, high)
        counts, edges = self.linear(2 * count, -largest, largest)
        return counts[count:] + counts[:count][::-1], edges[count:]

    def moments(self):
        """(mean, standard deviation) in the tensor's type."""
        mean = self.sum / max(self.count, 1)
        variance = max(self.square_sum / max(self.count, 1) - mean * mean, 0.0)
        return np.asarray(mean, self.dtype), np.asarray(variance**0.5, self.dtype)


_LEAST_COUNT = 16  # numbers of a bin, on average, that an entropy is taken of


def clip_to(observation: Observation, low, high):
    """A range within what was seen."""
    least, largest = observation.ends()
    kind = observation.dtype
    return np.asarray(max(low, least), kind), np.asarray(min(high, largest), kind)


def percentile_range(observation: Observation, count: int, percentile: float, symmetric: bool):
    """((least, largest), counts, edges): the range that holds `percentile` % of all numbers.

    With `symmetric` it is that of the absolute values, to either side; else each side loses half of the rest.
    """
    if not 0 <= percentile <= 100:
        raise ValueError(f"a percentile is from 0 to 100, unlike {percentile}")
    largest = max(-float(observation.ends()[0]), float(observation.ends()[1]))
    counts, edges = observation.absolute(count) if symmetric else observation.linear(count, -largest, largest)
    shares = np.cumsum(counts) / max(counts.sum(), 1)
    if symmetric:
        end = edges[min(np.searchsorted(shares, percentile / 100), count)]
        low, high = -end, end
    else:
        rest = (100 - percentile) / 200
        low, high = (edges[min(np.searchsorted(shares, share), count)] for share in (rest, 1 - rest))
    return clip_to(observation, low, high), counts, edges


def entropy(pk, qk, base=None, axis=0):
    """The relative entropy sum(pk · log(pk / qk)) of two histograms, each scaled to sum 1."""
    first, second = (np.asarray(part, np.float32) for part in (pk, qk))
    first, second = np.broadcast_arrays(first, second)
    first = first / first.sum(axis=axis, keepdims=True)
    second = second / second.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first / second), np.where(second >= 0, 0, np.inf))
    total = terms.sum(axis=axis)
    return (total if base is None else total / np.log(base)).astype(np.float32)


def entropy_range(observation: Observation, count: int, levels: int):
    """((least, largest), counts, edges): the range whose rounding to `levels` levels changes the distribution least.

    After "8-bit Inference with TensorRT" (Migacz, GTC 2017): of every range [-T, T] of whole bins, what lies outside
    joins its outer bins (p); the bins are joined to `levels` groups, each spread again over its bins that are not
    empty (q); the least relative entropy of p and q wins. Of few numbers there are fewer bins, as the entropy of bins
    with a number or two says nothing.
    """
    count = max(min(count, observation.count // _LEAST_COUNT), levels)
    largest = max(-float(observation.ends()[0]), float(observation.ends()[1]))
    counts, edges = observation.linear(count, -largest, largest)
    middle, half = count // 2, levels // 2
    sums = np.concatenate([[0], np.cumsum(counts)])
    best, found = np.inf, (edges[0], edges[-1])
    for width in range(half, middle + 1):
        start, end = middle - width, min(middle + width + 1, count)
        divergence = _divergence(counts[start:end], sums[start], sums[-1] - sums[end], levels)
        if divergence < best:
            best, found = divergence, (edges[start], edges[end])
    return clip_to(observation, *found), counts, edges


def _divergence(inside, left, right, levels):
    outer = inside.astype(np.float64)
    outer[0] += left
    outer[-1] += right
    size = len(inside) // levels
    if not size:
        return np.inf
    group = np.minimum(np.arange(len(inside)) // size, levels - 1)
    filled = outer != 0
    totals = np.bincount(group, inside, levels)
    members = np.bincount(group, filled, levels)
    spread = np.where(filled, (totals / np.maximum(members, 1))[group], 0)
    try:
        first, second = smooth_distribution(outer), smooth_distribution(spread)
    except ValueError:
        return np.inf
    return np.inf if first is None or second is None else float(entropy(first, second))


_SHARES = np.geomspace(1, 0.05, 64)  # of a range that are tried


def squared_error_range(observation: Observation, levels: int, symmetric: bool):
    """(least, largest): the range in which rounding to `levels` levels has the least squared error.

    Numbers beyond it become its ends. After ACIQ (1810.05723), with what was seen in the place of a distribution: the
    range is narrowed on both sides, then on either.
    """
    low, high = (min(float(observation.ends()[0]), 0.0), max(float(observation.ends()[1]), 0.0))
    if symmetric:
        low, high = -max(-low, high), max(-low, high)
    if low == high:
        return observation.ends()
    values, widths, counts = observation.masses()

    def error(first, last):
        step = (last - first) / (levels - 1)
        zero = np.rint(-first / step)
        steps = np.clip(np.rint(values / step) + zero, 0, levels - 1) - zero
        far = (values < first) | (values > last)
        exact = (steps * step - values) ** 2
        even = np.minimum(widths, step) ** 2 / 12  # of numbers that lie evenly in their bin, or between two steps
        return float((counts * np.where(far | (widths < step / 2), exact + even * ~far, step**2 / 12)).sum())

    best = min(_SHARES, key=lambda share: error(share * low, share * high))
    first, last = best * low, best * high
    for _ in range(0 if symmetric else 2):
        if low < 0:
            first = low * min(_SHARES, key=lambda share: error(share * low, last))
        if high > 0:
            last = high * min(_SHARES, key=lambda share: error(first, share * high))
    return clip_to(observation, first, last)
