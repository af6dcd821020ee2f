"""Places of axes that go together: classes of (value, axis, place), joined as nodes demand.

Depgraph (2301.12900) in finer grain: not axes are joined but their places, so that Concat, Split and heads need no cases.
"""

from __future__ import annotations

import numpy as np


class Links:
    """Collects which places are to be kept or removed together, and which must stay.

    :param sizes: {value: sizes}.
    """

    def __init__(self, sizes: dict):
        self.sizes = sizes
        self.starts: dict[tuple, int] = {}
        self.count = 0
        self.left: list = []
        self.right: list = []
        self.stay: list = []

    def places(self, value: str, axis: int) -> np.ndarray:
        """The numbers of the places of an axis."""
        size = self.sizes[value][axis]
        start = self.starts.get((value, axis))
        if start is None:
            start = self.starts[value, axis] = self.count
            self.count += size
        return np.arange(start, start + size)

    def join(self, value, axis, other, other_axis, of_value=None, of_other=None) -> None:
        """Joins the places of two axes, or those that index arrays choose."""
        first, second = self.places(value, axis), self.places(other, other_axis)
        first = first if of_value is None else first[of_value]
        second = second if of_other is None else second[of_other]
        if first.shape != second.shape:  # sizes that the operator does not allow, or that its rule does not know
            self.stay += [self.places(value, axis), self.places(other, other_axis)]
            return
        self.left.append(first)
        self.right.append(second)

    def keep(self, value, axis=None, chosen=None) -> None:
        """No place of an axis, or of all axes, may go."""
        if value not in self.sizes:
            return
        for each in range(len(self.sizes[value])) if axis is None else (axis,):
            places = self.places(value, each)
            self.stay.append(places if chosen is None else places[chosen])

    def solve(self):
        """(labels of all places, equal where they go together; whether each place must stay)."""
        empty = np.zeros(0, np.int64)
        left, right = (np.concatenate([empty, *part]) for part in (self.left, self.right))
        labels = np.arange(self.count)
        while True:
            ends = labels[left], labels[right]
            least = np.minimum(*ends)
            new = labels.copy()
            for end in ends:
                np.minimum.at(new, end, least)
            while True:
                jumped = new[new]
                if np.array_equal(jumped, new):
                    break
                new = jumped
            if np.array_equal(new, labels):
                break
            labels = new
        staying = np.zeros(self.count, bool)
        if self.stay:
            staying[labels[np.concatenate(self.stay)]] = True
        return labels, staying[labels]
