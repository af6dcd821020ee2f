"""Weights that make up for what is missing from a product's inputs: least squares on samples.

Luo, Wu, Lin, "ThiNet" (1707.06342): W' = Y X'ᵀ (X' X'ᵀ + λI)⁻¹, where X' is what the changed model gives a product, and
Y what the product gave in the model as it was. Products are solved in the order of the graph, so that each makes up
for what those before it could not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from ..graph_index import GraphIndex
from ..onnx_model import remove_unused_initializers
from ..quant_utils import attribute
from .moments import sessions_of, values_of
from .rows import can_be_rows, choose, rows_as_weight, rows_of, weight_as_rows

logger = logging.getLogger("sardonyx")

DAMPING = 1e-3  # of the mean of the diagonal of X' X'ᵀ
_FEW = 10  # how much more damping there is for as many inputs as rows
_ROWS, _ROWS_FOR_EACH = 16384, 12  # rows that are looked at: of a product, and for each of its inputs


@dataclass
class Product:
    """A product of both models, by the name of its node. `value` and `weight` have one name in both."""

    name: str
    value: str
    weight: str


@dataclass
class Sums:
    """Of rows x of the changed model and rows y of results of the model as it was."""

    count: int
    x: np.ndarray
    y: np.ndarray
    xx: np.ndarray
    xy: np.ndarray

    @classmethod
    def empty(cls, inputs, outputs) -> Sums:
        return cls(0, np.zeros(inputs), np.zeros(outputs), np.zeros((inputs, inputs)), np.zeros((inputs, outputs)))

    def add(self, x, y) -> None:
        self.count += len(x)
        self.x += x.sum(0, dtype=np.float64)
        self.y += y.sum(0, dtype=np.float64)
        self.xx += x.T @ x
        self.xy += x.T @ y

    def centred(self):
        """(covariance of x [K, K], of x with y [K, N], means of both)."""
        x, y = self.x / self.count, self.y / self.count
        return self.xx / self.count - np.outer(x, x), self.xy / self.count - np.outer(x, y), x, y


def solve(sums: Sums, weight: np.ndarray, damping=DAMPING):
    """(W' [N, K], bias [N]) nearest to `weight` that make the squared error least."""
    xx, xy, x, y = sums.centred()
    damping *= 1 + _FEW * len(xx) / max(sums.count, 1)  # fewer rows than inputs tell little
    damped = xx + damping * max(np.trace(xx) / len(xx), 1e-30) * np.eye(len(xx))
    change = np.linalg.solve(damped, xy - xx @ weight.T).T
    solved = weight + change
    return solved, y - solved @ x


def stages(names, most: int) -> list[list]:
    """`names` in at most `most` runs of neighbours."""
    size = -(-len(names) // most)
    return [names[start : start + size] for start in range(0, len(names), size)]


def products_of(analysis, surgery) -> list[Product]:
    """Products that lost inputs, and whose weights nothing else reads; in the order of the graph."""
    readers = analysis.index.readers
    found = []
    for node in analysis.model.graph.node:
        for each in analysis.consumers:
            if each.node.name != node.name or surgery.kept(each.value, each.axis).all():
                continue
            if can_be_rows(node) and len(readers[each.weight]) == 1 and each.weight not in analysis.index.outputs:
                found.append(Product(node.name, each.value, each.weight))
    return found


def reconstruct(analysis, surgery, samples, most_stages=16, seed=0):
    """Solves the products of a changed model again; changes `surgery.model`.

    :param samples: a list of feeds.
    """
    products = products_of(analysis, surgery)
    for stage in stages(products, most_stages):
        sums = collect(analysis, surgery, stage, samples, seed)
        for product in stage:
            replace(surgery, product, lambda rows, sums=sums[product.name]: solve(sums, rows))
    remove_unused_initializers(surgery.graph)
    return surgery.model


def replace(surgery, product, solver) -> None:
    """Gives a product the weight and what is added to its bias that `solver` makes of its weight, f64 [N, K]."""
    node, held = surgery.nodes[product.name], surgery.weights[product.weight]
    weight = numpy_helper.to_array(held)
    rows = weight_as_rows(node, weight).astype(np.float64)
    scale = attribute(node, "alpha", 1.0) if node.op_type == "Gemm" else 1.0
    solved, bias = solver(rows * scale)
    shaped = rows_as_weight(node, solved / scale, weight.shape).astype(weight.dtype)
    held.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(shaped), product.weight))
    surgery.set_bias(node, bias)


def collect(analysis, surgery, stage, samples, seed) -> dict:
    """{node: Sums} of a few products."""
    index = GraphIndex(surgery.model.graph)
    names = list(dict.fromkeys(product.value for product in stage))
    sizes = analysis.sizes.of
    sessions = [sessions_of(model, names, sizes) for model in (analysis.model, surgery.model)]
    old = {product.name: analysis.index.initializers[product.weight] for product in stage}
    sums, kernels, weights = {}, {}, {}
    for product in stage:
        node = surgery.nodes[product.name]
        new = index.initializers[product.weight]
        kernels[product.name] = tuple(new.dims[2:]) if node.op_type == "Conv" else ()
        weights[product.name] = weight_as_rows(node, numpy_helper.to_array(old[product.name])).astype(np.float32)
        inputs = weight_as_rows(node, numpy_helper.to_array(new)).shape[1]
        kept = surgery.kept_outputs(node)
        weights[product.name] = weights[product.name][kept]
        if node.op_type == "Gemm":
            weights[product.name] = weights[product.name] * np.float32(attribute(node, "alpha", 1.0))
        sums[product.name] = Sums.empty(inputs, int(kept.sum()))
    random = np.random.default_rng(seed)
    for sample in samples:
        before = dict(values_of(sessions[0], sample, names))
        after = dict(values_of(sessions[1], sample, names))
        for product in stage:
            node = surgery.nodes[product.name]
            kernel = kernels[product.name]
            limit = -(-max(_ROWS, _ROWS_FOR_EACH * len(sums[product.name].x)) // len(samples))
            places = choose(node, before[product.value].shape, kernel, limit, random)
            x = rows_of(node, after[product.value], kernel, places)
            y = rows_of(node, before[product.value], kernel, places) @ weights[product.name].T
            sums[product.name].add(x, y)
    return {name: each for name, each in sums.items()}
