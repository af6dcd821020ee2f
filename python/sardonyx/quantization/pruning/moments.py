"""What the inputs of products look like: of each place of the axis that is summed over mean, variance and ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..observe import session_with_outputs

_AT_A_TIME = 2**28  # bytes of values that one session gives


@dataclass
class Moments:
    count: int
    mean: np.ndarray
    square: np.ndarray  # mean of x²
    least: np.ndarray
    largest: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        return np.maximum(self.square - self.mean**2, 0)

    def add(self, values: np.ndarray, axis: int) -> None:
        rows = np.moveaxis(np.asarray(values, np.float64), axis, -1).reshape(-1, len(self.mean))
        share = len(rows) / (self.count + len(rows))
        self.mean += (rows.mean(0) - self.mean) * share
        self.square += ((rows**2).mean(0) - self.square) * share
        self.least = np.minimum(self.least, rows.min(0))
        self.largest = np.maximum(self.largest, rows.max(0))
        self.count += len(rows)


def sessions_of(model, names, sizes):
    """[(session, names)] that give values of a model, a few of them at a time; inputs of the model are no outputs."""
    inputs = {value.name for value in model.graph.input}
    blocks: list[list] = []
    used = _AT_A_TIME
    for name in names:
        if name in inputs:
            continue
        size = 4 * int(np.prod(sizes[name]))
        if used + size > _AT_A_TIME:
            blocks.append([])
            used = 0
        blocks[-1].append(name)
        used += size
    return [(session_with_outputs(model, block), block) for block in blocks]


def values_of(sessions, sample, names):
    """(name, value) of what `sessions_of` gives for one sample, and of the inputs among `names`."""
    for name in names:
        if name in sample:
            yield name, np.asarray(sample[name])
    for session, block in sessions:
        wanted = {entry.name for entry in session.get_inputs()}
        values = session.run(block, {name: value for name, value in sample.items() if name in wanted})
        yield from zip(block, values)


def moments_of(analysis, samples) -> dict[tuple, Moments]:
    """{(value, axis): Moments} of what the consumers read, of all samples."""
    wanted = {(each.value, each.axis) for each in analysis.consumers}
    names = list(dict.fromkeys(each.value for each in analysis.consumers))
    sizes = analysis.sizes.of
    found = {}
    for value, axis in wanted:
        zeros = np.zeros(sizes[value][axis])
        found[value, axis] = Moments(0, zeros.copy(), zeros.copy(), zeros + np.inf, zeros - np.inf)
    sessions = sessions_of(analysis.model, names, sizes)
    for place, sample in enumerate(samples):
        for name, array in values_of(sessions, sample, names):
            if not np.isfinite(array).all():
                maker = analysis.index.producers.get(name)
                of_node = f" of node '{maker.name}'" if maker is not None else ""
                raise ValueError(f"Sample {place}: tensor '{name}'{of_node} holds NaN or infinity.")
            for value, axis in wanted:
                if value == name:
                    found[value, axis].add(array, axis)
    return found
