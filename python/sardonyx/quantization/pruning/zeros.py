"""Zeros in weights: two of four neighbours, blocks, or single numbers. The others make up for them.

Frantar, Alistarh, "SparseGPT" (2301.00774): columns of W [N, K] are gone through in order; the error of each number
that becomes 0 is taken by the columns behind it, by the inverse of the covariance of the product's inputs.
"""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from ..contract.result import Refused
from ..nbits.gptq import inverse_factor
from ..onnx_model import remove_unused_initializers
from ..options import check_nodes
from .groups import Analysis
from .moments import moments_of
from .reconstruction import DAMPING, Product, collect, replace, solve, stages
from .rows import can_be_rows, weight_as_rows
from .sizes import prepared
from .surgery import Surgery

_LAZY = 128  # columns whose errors go to the columns behind them as one product
_MOST_STAGES = 16
_STEPS = 40  # of conjugate gradients
_MOST = 0.98  # share of a weight's numbers that may become 0


def mask_of(scores, share, kind, block) -> np.ndarray:
    """Which numbers of columns become 0, of their scores [N, columns]: the least `share` of them, or of blocks."""
    rows, columns = scores.shape
    if kind == "2:4":
        ranks = scores.reshape(rows, -1, 4).argsort(-1, kind="stable").argsort(-1, kind="stable")
        return (ranks < 2).reshape(rows, columns)
    height, width = block if kind == "block" else (1, 1)
    whole = rows // height * height, columns // width * width
    tiles = scores[: whole[0], : whole[1]].reshape(whole[0] // height, height, whole[1] // width, width).sum((1, 3))
    count = round(share * tiles.size)
    mask = np.zeros(scores.shape, bool)
    chosen = np.zeros(tiles.size, bool)
    chosen[np.argsort(tiles, axis=None, kind="stable")[:count]] = True
    mask[: whole[0], : whole[1]] = chosen.reshape(tiles.shape).repeat(height, 0).repeat(width, 1)
    return mask


def sparsify(weight, covariance, share, kind, block=(1, 1), damping=0.01) -> np.ndarray:
    """W [N, K] with zeros, whose other numbers make up for them. `covariance` is that of the inputs, [K, K]."""
    factor = inverse_factor(covariance, damping)
    left = np.array(weight, np.float64)
    columns = left.shape[1]
    for start in range(0, columns, _LAZY):
        end = min(start + _LAZY, columns)
        part = left[:, start:end]
        diagonal = np.diag(factor)[start:end]
        mask = np.zeros(part.shape, bool) if kind == "2:4" else mask_of((part / diagonal) ** 2, share, kind, block)
        errors = np.zeros(part.shape)
        for place in range(end - start):
            if kind == "2:4" and place % 4 == 0:
                four = slice(place, place + 4)
                mask[:, four] = mask_of((part[:, four] / diagonal[four]) ** 2, share, kind, block)
            errors[:, place] = np.where(mask[:, place], part[:, place], 0) / diagonal[place]
            part[:, place:] -= errors[:, place : place + 1] * factor[start + place, start + place : end]
            part[mask[:, place], place] = 0
        left[:, end:] -= errors @ factor[start:end, end:]
    return left


def refine(weight, target, covariance, damping=1e-3, steps=_STEPS) -> np.ndarray:
    """W [N, K] whose zeros stay, and whose other numbers come nearer to what `target` computes.

    Each row solves its own equations on the places that are left, by conjugate gradients.
    """
    left = weight != 0
    damped = covariance + damping * max(np.trace(covariance) / len(covariance), 1e-30) * np.eye(len(covariance))
    scale = 1 / np.diag(damped)
    found = np.array(weight)
    residual = ((target - found) @ damped) * left
    direction = residual * scale
    power = (residual * direction).sum(1)
    for _ in range(steps):
        ahead = (direction @ damped) * left
        step = power / np.maximum((direction * ahead).sum(1), 1e-300)
        found += step[:, None] * direction
        residual -= step[:, None] * ahead
        scaled = residual * scale
        new = (residual * scaled).sum(1)
        direction = scaled + (new / np.maximum(power, 1e-300))[:, None] * direction
        power = new
    return found


class Zeros:
    """Puts zeros into the weights of products of a case's model.

    :param kind: "2:4", "block" or "magnitude".
    :param block: rows and columns of a block.
    :param make_up: whether the other numbers make up for those that become 0.
    """

    def __init__(self, case, kind, block, make_up, keep):
        self.case, self.kind, self.block, self.make_up = case, kind, tuple(block), make_up
        self.model = prepared(case.original)
        samples = case.finding.feeds
        kept = set(check_nodes(keep, self.model, "keep"))
        self.analysis = Analysis(self.model, samples[0])
        readers, initializers = self.analysis.index.readers, self.analysis.index.initializers
        fitting = [
            each for each in self.analysis.products
            if can_be_rows(each.node) and len(readers[each.weight]) == 1 and each.node.name not in kept
        ]  # fmt: skip
        if kind == "2:4":
            fitting = [each for each in fitting if initializers[each.weight].dims[each.weight_axis] % 4 == 0]
        if not fitting:
            raise Refused(f"No weight of this model can get zeros of the kind {kind}.")
        order = {node.name: place for place, node in enumerate(self.model.graph.node)}
        self.products = sorted(fitting, key=lambda each: order[each.node.name])
        self.analysis.consumers = self.products
        self.moments = moments_of(self.analysis, samples)
        self.weights = {each.weight: numpy_helper.to_array(initializers[each.weight]) for each in self.products}

    def _columns(self, each, values):
        """[N, K] with a kernel's places before channels, four of which are neighbours then; and back."""
        weight = self.weights[each.weight]
        if each.node.op_type != "Conv":
            return values
        channels = weight.shape[1]
        return values.reshape(len(values), channels, -1).swapaxes(1, 2).reshape(len(values), -1)

    def _order(self, each) -> np.ndarray:
        weight = weight_as_rows(each.node, self.weights[each.weight])
        return self._columns(each, np.arange(weight.shape[1])[None])[0]

    def _saliency(self, each) -> np.ndarray:
        """[N, K]: the variance that each number brings, as a share of the product's."""
        weight = weight_as_rows(each.node, self.weights[each.weight]).astype(np.float64)
        variance = self.moments[each.value, each.axis].variance
        scores = weight**2 * np.repeat(variance, weight.shape[1] // len(variance))
        return self._columns(each, scores / max(scores.sum(), 1e-300))

    def _shares(self, amount) -> dict:
        """{weight: share of zeros} by one threshold of all weights, so that `amount` of all numbers become 0."""
        if self.kind == "2:4":
            return {each.weight: 0.5 for each in self.products}
        scores = {}
        height, width = self.block if self.kind == "block" else (1, 1)
        for each in self.products:
            all_scores = self._saliency(each)
            rows, columns = (all_scores.shape[0] // height, all_scores.shape[1] // width)
            tiles = all_scores[: rows * height, : columns * width].reshape(rows, height, columns, width)
            scores[each.weight] = tiles.sum((1, 3)).ravel()
        whole = np.sort(np.concatenate(list(scores.values())))
        count = round(amount * sum(self.weights[each.weight].size for each in self.products) / (height * width))
        threshold = whole[min(max(count, 0), len(whole) - 1)] if len(whole) else 0.0
        return {name: min(float((each < threshold).mean()) if each.size else 0.0, _MOST) for name, each in scores.items()}

    def pruned(self, amount):
        """(the model with `amount` of the products' numbers 0, a report)."""
        shares = self._shares(amount)
        surgery = Surgery(self.analysis, ())
        surgery.run()
        names = [Product(each.node.name, each.value, each.weight) for each in self.products]
        by_name = {each.node.name: each for each in self.products}
        for stage in stages(names, _MOST_STAGES):
            sums = collect(self.analysis, surgery, stage, self.case.finding.feeds, self.case.seed) if self.make_up else {}
            for product in stage:
                each = by_name[product.name]
                replace(surgery, product, lambda rows, each=each, sums=sums: self._solved(rows, each, sums, shares))
        remove_unused_initializers(surgery.graph)
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in surgery.graph.initializer}
        zeros = {
            each.node.name: {"zeros": int((held[each.weight] == 0).sum()), "of": held[each.weight].size}
            for each in self.products
        }
        left = 1 - sum(each["zeros"] for each in zeros.values()) / sum(each["of"] for each in zeros.values())
        return surgery.model, {"weights": zeros, "left": left, "cost": "weights", "kind": self.kind}

    def _solved(self, rows, each, sums, shares):
        order = self._order(each)
        share = shares[each.weight]
        if not self.make_up:
            ordered = rows[:, order]
            mask = mask_of(self._saliency(each), share, self.kind, self.block)
            changed = np.empty_like(rows)
            changed[:, order] = np.where(mask, 0, ordered)
            mean = self.moments[each.value, each.axis].mean
            mean = np.repeat(mean, rows.shape[1] // len(mean))
            return changed, (rows - changed) @ mean
        found = sums[each.node.name]
        fitted, _ = solve(found, rows, DAMPING)
        covariance, _, x, y = found.centred()
        changed = np.empty_like(rows)
        changed[:, order] = sparsify(fitted[:, order], covariance[np.ix_(order, order)], share, self.kind, self.block)
        changed = refine(changed, fitted, covariance)
        return changed, y - changed @ x
