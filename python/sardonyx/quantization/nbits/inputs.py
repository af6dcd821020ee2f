"""What products' inputs look like: G = XᵀX, the mean and the largest |x| of each input, and the number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..observe import session_with_outputs


@dataclass
class InputStatistics:
    gram: np.ndarray  # f64 [K, K]
    absolute: np.ndarray  # f64 [K], the sum of |x|
    largest: np.ndarray  # f32 [K], of |x|
    rows: int = 0

    @property
    def mean(self) -> np.ndarray:
        return (self.absolute / max(self.rows, 1)).astype(np.float32)

    @property
    def importance(self) -> np.ndarray:
        return (np.diag(self.gram) / max(self.rows, 1)).astype(np.float32)


def collect(model, sizes: dict, samples, providers=None, at_a_time: int = 16, gram: bool = True) -> dict:
    """{tensor: InputStatistics} of tensors whose last size is given, from all samples.

    Tensors are outputs of a session, `at_a_time` of them; nothing is kept of a sample. `samples` is gone through once.
    Without `gram`, no G is made.
    """
    names = list(sizes)
    inputs = {value.name for value in model.graph.input}
    sessions = []
    computed = [name for name in names if name not in inputs]
    for start in range(0, len(computed), at_a_time):
        part = computed[start : start + at_a_time]
        sessions.append((session_with_outputs(model, part, providers), part))
    found = {
        name: InputStatistics(np.zeros((size, size) if gram else (0, 0)), np.zeros(size), np.zeros(size, np.float32))
        for name, size in sizes.items()
    }

    def add(name, value):
        rows = np.asarray(value, np.float32).reshape(-1, sizes[name])
        if gram:
            found[name].gram += rows.T @ rows
        sizes_of_rows = np.abs(rows)
        found[name].absolute += sizes_of_rows.sum(axis=0, dtype=np.float64)
        found[name].largest = np.maximum(found[name].largest, sizes_of_rows.max(axis=0, initial=0))
        found[name].rows += len(rows)

    for sample in samples:
        for name in names:
            if name in inputs:
                add(name, sample[name])
        for session, part in sessions:
            wanted = {entry.name for entry in session.get_inputs()}
            values = session.run(part, {name: value for name, value in sample.items() if name in wanted})
            for name, value in zip(part, values):
                add(name, value)
    missing = [name for name, entry in found.items() if not entry.rows]
    if missing:
        raise ValueError(f"no sample of the calibration reached '{missing[0]}'")
    return found
