"""How much faster a quantised model is, by runs of both in alternation in one process."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np


@dataclass
class Speed:
    """A speed-up (times of the model as it was by times of the changed one) with the ends of its 95 % interval; times in ms."""

    ratio: float
    low: float
    high: float
    before_ms: float
    after_ms: float
    spread: float  # middle half of the float times, as a share of their median
    pairs: int

    def text(self) -> str:
        return f"{self.ratio:.2f}×, {self.low:.2f}…{self.high:.2f}"


def interval_of_ratio(before, after, seed=0, resamples=1000):
    """(median of paired ratios, ends of its 95 % interval by resampling pairs)."""
    ratios = np.asarray(before, np.float64) / np.asarray(after, np.float64)
    random = np.random.default_rng(seed)
    medians = [np.median(ratios[random.integers(0, len(ratios), len(ratios))]) for _ in range(resamples)]
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def compare_speed(before, after, samples, seconds=2.0, least=30, seed=0) -> Speed:
    """Times two functions of a sample in turns: at least `least` pairs and about `seconds` for each of the two.

    Which of a pair runs first alternates, and samples are gone through in turn.
    """
    for _ in range(3):
        before(samples[0])
        after(samples[0])
    times: tuple[list, list] = ([], [])
    start = time.perf_counter()
    while True:
        count = len(times[0])
        used = time.perf_counter() - start
        if count >= least and used >= 2 * seconds or count >= 10000:
            break
        sample = samples[count % len(samples)]
        for which in (0, 1) if count % 2 else (1, 0):
            begin = time.perf_counter()
            (before, after)[which](sample)
            times[which].append(time.perf_counter() - begin)
    ratio, low, high = interval_of_ratio(*times, seed)
    quarter, median, third = np.percentile(times[0], [25, 50, 75])
    return Speed(
        ratio, low, high, 1e3 * float(median), 1e3 * float(np.median(times[1])), float((third - quarter) / median),
        len(times[0]),
    )  # fmt: skip


def refusal_of_speed(goal, wanted, speed, fastest, fastest_value, what="int8") -> str:
    """Why a speed-up isn't reached.

    :param goal: what the metric must reach, as text.
    :param speed: of the best plan that reaches it.
    :param fastest: of the plan with nothing in float, whose metric is `fastest_value`; `speed` itself where they are one.
    :param what: the changed model, in a word.
    """
    if speed.low < wanted <= speed.high and speed.high - speed.low > 0.05 * speed.ratio:
        return (
            f"The speed can't be told here: repeated runs differ by {100 * speed.spread:.0f} % (other load). Give more "
            "time or `min_speedup=None`."
        )
    if max(speed.high, fastest.high) < 1:
        return f"{what} is slower than float on this processor ({speed.text()}): nothing was written."
    sentence = f"No plan reaches {goal} at ≥ {wanted:.2f}×: the best that reaches it has {speed.text()}"
    if fastest is not speed:
        sentence += f", all in {what} has {fastest_value} at {fastest.text()}"
    return sentence + "."
