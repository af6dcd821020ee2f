"""How operators relate the places of their inputs' axes to those of their outputs'.

A rule joins axes, or says that all places stay. What no rule speaks of stays: operators without one, and inputs and
outputs that a rule leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..onnx_model import outer_names, subgraphs_of
from ..quant_utils import attribute
from .links import Links
from .sizes import axes_of


@dataclass
class Consumer:
    """A product with constant weights that sums over the places of an axis, and ends the class there."""

    node: object
    value: str
    axis: int
    weight: str
    weight_axis: int


class Rules:
    """All nodes of a graph, whose rules go into `links`.

    :param sizes: a `Sizes`.
    :param constants: {name: integers} of initialisers.
    :param index: the graph's `GraphIndex`.
    :param choices: {(node, place of a block): which of several axes goes in whole places}; where there is none, Reshape is skipped.
    """

    def __init__(self, index, sizes, constants, version, choices=None):
        from . import movement, products

        self.index, self.sizes, self.constants, self.version, self.choices = index, sizes, constants, version, choices
        self.links = Links(sizes.of)
        self.consumers: list[Consumer] = []
        self.blocks: list = []  # of Reshape: (key, value, axes)
        self.table = {**_TABLE, **products.TABLE, **movement.TABLE}
        for name in (*index.inputs, *index.outputs):
            self.links.keep(name)
        for node in index.graph.node:
            self._add(node)

    def _add(self, node) -> None:
        touched = {name for name in (*node.input, *node.output) if name}
        bodies = [name for body in subgraphs_of(node) for name in outer_names(body)]
        for name in bodies:
            self.links.keep(name)
        rule = self.table.get(node.op_type) if node.domain in ("", "ai.onnx") and not bodies else None
        known = all(name in self.sizes.of for name in touched)
        spoken = rule(self, node) if rule is not None and known else None
        for name in touched - set(spoken or ()):
            self.links.keep(name)

    def join_same(self, value, other, axes) -> None:
        for axis in axes:
            self.links.join(value, axis, other, axis)

    def rank(self, name) -> int:
        return len(self.sizes.of[name])


def elementwise(rules, node):
    """Sizes are aligned at their ends; where an input has one place for many, its place has no part in it."""
    result = node.output[0]
    sizes = rules.sizes.of
    for name in filter(None, node.input):
        shift = len(sizes[result]) - len(sizes[name])
        for axis, size in enumerate(sizes[name]):
            if shift >= 0 and size == sizes[result][axis + shift] and not (size == 1 and rules.sizes.is_one(name, axis)):
                rules.links.join(name, axis, result, axis + shift)
            else:
                rules.links.keep(name, axis)
    return [*node.input, *node.output]


def per_channel(rules, node):
    """Vectors of channels, axis 1; the rest is elementwise."""
    value, result = node.input[0], node.output[0]
    rules.join_same(value, result, range(rules.rank(value)))
    for name in node.input[1:]:
        rules.links.join(name, 0, value, 1)
    return [*node.input, result]


def pooling(rules, node):
    value = node.input[0]
    for result in filter(None, node.output):
        rules.join_same(value, result, (0, 1))
        for name in (value, result):
            for axis in range(2, rules.rank(name)):
                rules.links.keep(name, axis)
    return [value, *node.output]


def mixing(first):
    """Operators whose results depend on all places of some axes: `first(node, rank, version)` gives these."""

    def rule(rules, node):
        value = node.input[0]
        rank = rules.rank(value)
        mixed = set(first(node, rank, rules.version))
        for axis in range(rank):
            rules.join_same(value, node.output[0], (axis,))
            if axis in mixed:
                rules.links.keep(value, axis)
        return [value, node.output[0]]

    return rule


def _axis_of_softmax(node, rank, version):
    axis = attribute(node, "axis", -1 if version >= 13 else 1) % max(rank, 1)
    return [axis] if version >= 13 else range(axis, rank)


def _from_axis(node, rank, version):
    return range(attribute(node, "axis", -1) % rank, rank)


def _one_axis(default):
    return lambda node, rank, version: [attribute(node, "axis", default) % rank]


def _channels(node, rank, version):
    return [1]


def reduction(rules, node):
    """Axes that are reduced stay: their number counts, and a constant in the place of one would change with the others."""
    value, result = node.input[0], node.output[0]
    rank = rules.rank(value)
    axes = axes_of(node, rules.constants, rank)
    if axes is None:
        if len(node.input) > 1 and node.input[1]:
            return None
        axes = list(range(rank))
    if node.op_type.startswith("Arg"):
        axes = [attribute(node, "axis", 0) % rank]
    held = attribute(node, "keepdims", 1)
    place = 0
    for axis in range(rank):
        if axis in axes:
            rules.links.keep(value, axis)
            if held:
                rules.links.keep(result, place)
        else:
            rules.links.join(value, axis, result, place)
        place += held or axis not in axes
    return [value, result]


_ELEMENTWISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu "
    "Clip Cos Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf "
    "IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or Pow PRelu Reciprocal Relu Round Selu Shrink "
    "Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"
).split()
_TABLE = {
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), per_channel),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), pooling),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), mixing(_axis_of_softmax)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), mixing(_from_axis)),
    "LpNormalization": mixing(_one_axis(-1)),
    **dict.fromkeys(("LRN", "GroupNormalization"), mixing(_channels)),
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
         "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"), reduction
    ),
}  # fmt: skip


def block_places(sizes, axis):
    """Places of axis `axis` for each place of the product of `sizes`."""
    return np.unravel_index(np.arange(int(np.prod(sizes))), sizes)[axis]
