"""Which units go: those whose loss is least for what they cost, in all groups together."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from ..quant_utils import attribute

COSTS = ("parameters", "flops", "time", "channels")
_ENOUGH = 1000  # rows in which a place that is always the same is taken for a constant


class Selection:
    """Scores and costs of the units of an analysis.

    :param moments: {(value, axis): Moments}.
    :param cost: of COSTS.
    :param tile: places that kernels take at a time: groups of four tiles or more keep whole tiles.
    :param times: {node: time} for the cost "time".
    """

    def __init__(self, analysis, moments, cost="parameters", tile=16, times=None):
        self.analysis, self.moments, self.tile, self.times = analysis, moments, tile, times
        self.scores = self._scores()
        self.cost = cost
        self.left = {(v, a): np.ones(analysis.sizes.of[v][a]) for v, a in analysis.links.starts}
        self.tensors = self._tensors()
        self.removed: set = set()

    def _scores(self) -> np.ndarray:
        """For each label the variance that its places bring to what the consumers compute, as a share of all of it."""
        scores = np.zeros(len(self.analysis.labels))
        for each in self.analysis.consumers:
            weight = numpy_helper.to_array(self.analysis.index.initializers[each.weight]).astype(np.float64)
            norms = (np.moveaxis(weight, each.weight_axis, 0).reshape(weight.shape[each.weight_axis], -1) ** 2).sum(1)
            part = self.moments[each.value, each.axis].variance * norms
            np.add.at(scores, self.analysis.places(each.value, each.axis), part / max(part.sum(), 1e-300))
        return scores

    def _tensors(self):
        """(weight, axes on which units lie, how often each of its numbers counts)."""
        analysis = self.analysis
        grouped = {part for group in analysis.groups for part in group.parts}
        found = []
        for name in analysis.index.initializers:
            axes = [axis for axis in range(len(analysis.sizes.of[name])) if (name, axis) in grouped]
            if not axes:
                continue
            factor = 1.0
            if self.cost in ("flops", "time"):
                factor = sum(self._rows(node, name) for node in analysis.index.readers.get(name, []))
            found.append((name, axes, factor))
        return found

    def _rows(self, node, weight) -> float:
        """How often each number of a product's weight is multiplied, or its part of the product's time; 0 for other operators."""
        sizes = self.analysis.sizes.of
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or list(node.input).index(weight) != 1:
            return 0.0
        if self.cost == "time":
            return self.times.get(node.name, 0.0) / max(float(np.prod(sizes[weight])), 1.0)
        if node.op_type == "ConvTranspose":
            return float(np.prod(sizes[node.input[0]][2:]))
        result = sizes[node.output[0]]
        return float(np.prod(result[2:])) if node.op_type == "Conv" else float(np.prod(result[:-1]))

    def _count(self, name, axis) -> float:
        labels = self.analysis.places(name, axis)
        return float((~self._gone[labels]).sum()) if labels is not None else float(self.analysis.sizes.of[name][axis])

    def total(self, removed) -> float:
        """What is left of the cost without some units, as a share."""
        whole, left = self._amounts(())[0], self._amounts(removed)[0]
        return left / whole if whole else 1.0

    def _amounts(self, removed):
        """(cost of all, cost of one place on (weight, axis))."""
        self._gone = np.zeros(len(self.analysis.labels), bool)
        self._gone[np.asarray(list(removed), np.int64)] = True
        sizes = self.analysis.sizes.of
        whole, each = 0.0, {}
        if self.cost == "channels":
            left = sum((~self._gone[group.units]).sum() for group in self.analysis.groups)
            return float(left), {}
        for name, axes, factor in self.tensors:
            counts = [self._count(name, axis) if axis in axes else float(size) for axis, size in enumerate(sizes[name])]
            amount = factor * float(np.prod(counts))
            whole += amount
            for axis in axes:
                each[name, axis] = amount / max(counts[axis], 1)
        if self.cost == "parameters":  # those that nothing removes are parameters, too
            held = {name for name, _, _ in self.tensors}
            floats = (1, 10, 16)
            for name, tensor in self.analysis.index.initializers.items():
                if name not in held and tensor.data_type in floats:
                    whole += float(np.prod(tensor.dims))
        return whole, each

    def _costs(self, removed) -> np.ndarray:
        _, each = self._amounts(removed)
        costs = np.zeros(len(self.analysis.labels))
        if self.cost == "channels":
            costs[:] = 1.0
            return costs
        for (name, axis), amount in each.items():
            np.add.at(costs, self.analysis.places(name, axis), amount)
        return costs

    def choose(self, amount, always=()) -> set:
        """Units that go so that at most 1 - `amount` of the cost is left. `always` go in any case.

        Costs change as places go, and are counted again after every twentieth of what is to go.
        """
        removed = set(always)
        left = self.total(removed)
        while left > 1 - amount:
            costs = self._costs(removed)
            bundles = []
            for group in self.analysis.groups:
                units = np.array([unit for unit in group.units if unit not in removed])
                units = units[np.argsort(self.scores[units], kind="stable")]
                width = len(units)
                whole = len(group.units) >= 4 * self.tile
                size = (width % self.tile or self.tile) if whole else 1
                while width > size:
                    bundle, units = units[:size], units[size:]
                    cost = max(costs[bundle].sum(), 1e-30)
                    bundles.append((self.scores[bundle].sum() / cost, cost, bundle))
                    width -= size
                    size = self.tile if whole else 1
            if not bundles:
                break
            bundles.sort(key=lambda entry: entry[0])
            step = (left - (1 - amount)) * sum(entry[1] for entry in bundles)
            taken, limit = 0.0, max(0.05 * sum(entry[1] for entry in bundles), 0)
            for _, cost, bundle in bundles:
                removed.update(int(unit) for unit in bundle)
                taken += cost
                if taken >= min(limit, max(step / 2, 0)):
                    break
            left = self.total(removed)
        return removed

    def lossless(self) -> set:
        """Units without which outputs stay the same: places that are constant wherever they are read, or read by zeros.

        A constant that is not 0 before a padded convolution is none of these: at the border it isn't there.
        """
        free = self.scores == 0
        for each in self.analysis.consumers:
            moments = self.moments[each.value, each.axis]
            labels = self.analysis.places(each.value, each.axis)
            weight = numpy_helper.to_array(self.analysis.index.initializers[each.weight])
            rows = np.moveaxis(weight, each.weight_axis, 0).reshape(weight.shape[each.weight_axis], -1)
            constant = (moments.least == moments.largest) & (moments.count >= _ENOUGH)
            if not _same_everywhere(each.node):
                constant &= moments.largest == 0
            np.logical_and.at(free, labels, constant | ~rows.any(1))
        read = np.zeros(len(free), bool)
        for each in self.analysis.consumers:
            read[self.analysis.places(each.value, each.axis)] = True
        found: set = set()
        for group in self.analysis.groups:
            chosen = [int(unit) for unit in group.units if free[unit] and read[unit]]
            found.update(chosen[: len(group.units) - 1])
        return found

    def same(self) -> dict:
        """{unit: another of its group that computes the same}, as all weights that make them are equal."""
        found = {}
        read = {(each.weight, each.weight_axis) for each in self.analysis.consumers}
        for group in self.analysis.groups:
            parts = [
                (name, axis) for name, axis in group.parts
                if name in self.analysis.index.initializers and (name, axis) not in read
            ]  # fmt: skip
            if not any(len(self.analysis.sizes.of[name]) > 1 for name, _ in parts):
                continue
            arrays = [
                np.moveaxis(numpy_helper.to_array(self.analysis.index.initializers[name]), axis, 0) for name, axis in parts
            ]
            first: dict[bytes, int] = {}
            for unit in group.units:
                key = b"".join(array[group.parts[part] == unit].tobytes() for part, array in zip(parts, arrays))
                left = first.setdefault(key, int(unit))
                if left != unit:
                    found[int(unit)] = left
        return found


def _same_everywhere(node) -> bool:
    """Whether a constant input gives all places of the output the same."""
    if node.op_type != "Conv":
        return node.op_type in ("Gemm", "MatMul")
    return attribute(node, "auto_pad", b"NOTSET") in (b"NOTSET", b"VALID") and not any(attribute(node, "pads") or ())
