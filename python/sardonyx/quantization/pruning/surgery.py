"""Removes places from a graph: slices weights, mends attributes and constants that tell sizes, folds what was constant."""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper

from ..model_files import copy_of, infer_types
from ..onnx_model import remove_unused_initializers, sort_nodes
from ..quant_utils import attribute
from .movement import slice_ends


def _set(node, name, value) -> None:
    for place, entry in enumerate(node.attribute):
        if entry.name == name:
            del node.attribute[place]
            break
    node.attribute.append(helper.make_attribute(name, value))


class Surgery:
    """A copy of an analysed model without some units.

    :param removed: labels of units.
    :param values: {(consumer's node, value): the constant in the place of each place of the axis}; 0 where not given.
    :param merged: {unit that is removed: unit that computes the same}, whose readers get the weights of both.
    """

    def __init__(self, analysis, removed, values=None, merged=None):
        self.analysis = analysis
        self.removed = np.zeros(len(analysis.labels), bool)
        self.removed[np.asarray(list(removed), np.int64)] = True
        self.values, self.merged = values or {}, merged or {}
        self.model = copy_of(analysis.model)
        self.graph = self.model.graph
        self._look_up()
        self.results = {node.name: node.output[0] for node in self.graph.node}
        self.folded: dict = {}  # {product: vector that is added beside its own bias}
        self.number = 0

    def kept(self, value, axis):
        """Which places of an axis are left."""
        labels = self.analysis.places(value, axis)
        if labels is None:
            return np.ones(self.analysis.sizes.of[value][axis], bool)
        return ~self.removed[labels]

    def run(self):
        rules = {
            "Conv": self._groups, "ConvTranspose": self._groups, "Split": self._split, "Slice": self._slice,
            "Attention": self._heads, "Reshape": self._target, "Expand": self._target, "Resize": self._target,
        }  # fmt: skip
        sizes = self.analysis.sizes.of
        for node in list(self.graph.node):
            rule = rules.get(node.op_type)
            known = all(name in sizes for name in (*node.input, *node.output) if name)
            if rule is not None and known and node.domain in ("", "ai.onnx"):
                rule(node)
        self._merge()
        for value, axis in self.analysis.links.starts:
            if value in self.analysis.index.initializers and not self.kept(value, axis).all():
                tensor = self.weights[value]
                array = np.compress(self.kept(value, axis), numpy_helper.to_array(tensor), axis)
                tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), value))
        for consumer in self.analysis.consumers:
            self._fold(consumer)
        remove_unused_initializers(self.graph)
        sort_nodes(self.graph)
        del self.graph.value_info[:]
        infer_types(self.model)
        self._look_up()
        return self.model

    def _look_up(self) -> None:
        self.weights = {tensor.name: tensor for tensor in self.graph.initializer}
        self.nodes = {node.name: node for node in self.graph.node}

    def _merge(self) -> None:
        """Adds the weights that read a place which goes to those that read the one that computes the same."""
        for name, axis in {(each.weight, each.weight_axis) for each in self.analysis.consumers if self.merged}:
            labels = self.analysis.places(name, axis)
            array = np.moveaxis(numpy_helper.to_array(self.weights[name]).copy(), axis, 0)
            for gone, left in self.merged.items():
                array[labels == left] += array[labels == gone]
            array = np.ascontiguousarray(np.moveaxis(array, 0, axis))
            self.weights[name].CopyFrom(numpy_helper.from_array(array, name))

    def _constant(self, node, kind, values) -> str:
        self.number += 1
        name = f"{node.name}_{kind}"
        while name in self.weights:
            name = f"{node.name}_{kind}_{self.number}"
            self.number += 1
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.graph.initializer.append(tensor)
        self.weights[name] = self.graph.initializer[-1]
        return name

    def _fold(self, consumer) -> None:
        """Adds to a product what the removed places give it when they hold their constants."""
        values = self.values.get((consumer.node.name, consumer.value))
        kept = self.kept(consumer.value, consumer.axis)
        if values is None or kept.all():
            return
        labels = self.analysis.places(consumer.value, consumer.axis)
        values = np.where(kept | np.isin(labels, list(self.merged)), 0.0, values)
        if not values.any():
            return
        node = self.nodes[consumer.node.name]
        weight = numpy_helper.to_array(self.analysis.index.initializers[consumer.weight]).astype(np.float64)
        weight = np.moveaxis(weight, consumer.weight_axis, 0)
        spatial = tuple(range(2, weight.ndim))
        delta = np.tensordot(values, weight.sum(axis=spatial) if spatial else weight, 1)
        if node.op_type == "ConvTranspose":
            delta = delta / np.prod(attribute(node, "strides", [1] * len(spatial)))
        self.folded[node.name] = delta[self.kept_outputs(node)]
        self.add_to_bias(node, self.folded[node.name])

    def kept_outputs(self, node):
        """Which outputs of a product are left."""
        result = self.results[node.name]
        axis = 1 if node.op_type.startswith("Conv") else len(self.analysis.sizes.of[result]) - 1
        return self.kept(result, axis)

    def set_bias(self, node, delta) -> None:
        """Makes `delta` what is added to a product beside its own bias, in place of what was folded into it.

        A Gemm's alpha is not applied to it, as it is to what is folded.
        """
        delta = delta / (attribute(node, "alpha", 1.0) if node.op_type == "Gemm" else 1.0)
        self.add_to_bias(node, delta - self.folded.get(node.name, 0.0))
        self.folded[node.name] = delta
        sort_nodes(self.graph)
        self._look_up()

    def bias_of(self, node):
        """(place among the inputs, or None for a MatMul; the vector that is added to the product, or None)."""
        place = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}.get(node.op_type)
        name = node.input[place] if place is not None and len(node.input) > place else ""
        if name and name not in self.weights:
            raise ValueError(f"the bias of node '{node.name}' is computed, and a constant can't be added to it")
        if not name:
            return place, None
        scale = attribute(node, "beta", 1.0) if node.op_type == "Gemm" else 1.0
        return place, scale * numpy_helper.to_array(self.weights[name]).astype(np.float64)

    def add_to_bias(self, node, delta) -> None:
        """Adds a vector of outputs to what a product gives: in its bias, or by an Add after it."""
        kind = numpy_helper.to_array(self.weights[node.input[1]]).dtype
        place, held = self.bias_of(node)
        if place is None:
            result = node.output[0]
            reader = self._add_after(node)
            if reader is not None:
                bias = numpy_helper.to_array(self.weights[reader]).astype(np.float64) + delta
                self.weights[reader].CopyFrom(numpy_helper.from_array(bias.astype(kind), reader))
                return
            inner = node.output[0] = f"{node.name}_product"
            bias = self._constant(node, "bias", delta.astype(kind))
            self.graph.node.append(helper.make_node("Add", [inner, bias], [result], f"{node.name}_Add"))
            return
        if node.op_type == "Gemm":
            delta = delta * attribute(node, "alpha", 1.0)
            _set(node, "beta", 1.0)
        name = self._constant(node, "bias", (delta if held is None else held + delta).astype(kind))
        while len(node.input) <= place:
            node.input.append("")
        node.input[place] = name

    def _add_after(self, node):
        """The vector that the only reader of a MatMul adds to it, if that is a constant which nothing else reads."""
        readers = [each for each in self.graph.node if node.output[0] in each.input]
        if len(readers) != 1 or readers[0].op_type != "Add" or node.output[0] in self.analysis.index.outputs:
            return None
        (other,) = [name for name in readers[0].input if name != node.output[0]] or [""]
        if other not in self.weights or len(self.weights[other].dims) != 1:
            return None
        if sum(list(each.input).count(other) for each in self.graph.node) > 1:
            return None
        columns = self.weights[node.input[1]].dims[-1]
        return other if self.weights[other].dims[0] == columns else None

    def _groups(self, node) -> None:
        groups = attribute(node, "group", 1)
        if groups > 1:
            kept = self.kept(node.input[0], 1)
            _set(node, "group", int(kept.reshape(groups, -1)[:, 0].sum()))

    def _split(self, node) -> None:
        along = attribute(node, "axis", 0) % len(self.analysis.sizes.of[node.input[0]])
        if self.kept(node.input[0], along).all():
            return
        counts = [int(self.kept(name, along).sum()) for name in node.output]
        version = next(entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx"))
        if version < 13:
            _set(node, "split", counts)
            return
        others = [entry for entry in node.attribute if entry.name != "num_outputs"]
        del node.attribute[:]
        node.attribute.extend(others)
        sizes = self._constant(node, "split", np.array(counts, np.int64))
        del node.input[1:]
        node.input.append(sizes)

    def _slice(self, node) -> None:
        sizes = self.analysis.sizes.of[node.input[0]]
        ends = slice_ends(node, self.analysis.constants, sizes)
        if ends is None or all(self.kept(node.input[0], axis).all() for axis in ends):
            return
        axes = [axis for axis, (_, step) in ends.items() if step == 1]
        moved = {axis: self.kept(node.input[0], axis) for axis in axes}
        starts: list[int] = []
        stops: list[int] = []
        steps: list[int] = []
        for axis, (start, step) in ends.items():
            count = self.analysis.sizes.of[node.output[0]][axis]
            stop = start + step * count
            if axis in moved:
                start, stop = int(moved[axis][:start].sum()), int(moved[axis][:stop].sum())
            elif stop < 0:
                stop = -(2**31)
            for numbers, number in zip((starts, stops, steps), (start, stop, step)):
                numbers.append(number)
        if attribute(node, "starts") is not None:
            for name, numbers in (("starts", starts), ("ends", stops), ("axes", list(ends))):
                _set(node, name, numbers)
            return
        names = zip(("starts", "ends", "axes", "steps"), (starts, stops, list(ends), steps))
        inputs = [self._constant(node, name, np.array(numbers, np.int64)) for name, numbers in names]
        del node.input[1:]
        node.input.extend(inputs)

    def _heads(self, node) -> None:
        for name, place in (("q_num_heads", 0), ("kv_num_heads", 1)):
            heads = attribute(node, name)
            if heads is not None:
                _set(node, name, int(self.kept(node.input[place], 2).reshape(heads, -1)[:, 0].sum()))

    def _target(self, node) -> None:
        """Mends sizes that a Reshape, Expand or Resize is told, as far as they name places that are gone."""
        place = 3 if node.op_type == "Resize" else 1
        if len(node.input) <= place or not node.input[place]:
            return
        result = node.output[0]
        sizes = self.analysis.sizes.of[result]
        left = np.array([self.kept(result, axis).sum() for axis in range(len(sizes))], np.int64)
        changed = left != np.array(sizes)
        if not changed.any():
            return
        told = self.analysis.constants.get(node.input[place])
        if told is None:
            inputs = [self._constant(node, "changed", changed), self._constant(node, "sizes", left), node.input[place]]
            chosen = f"{node.name}_mended"
            self.graph.node.append(helper.make_node("Where", inputs, [chosen], chosen))
            node.input[place] = chosen
            return
        told = np.array(told, np.int64)
        for axis in np.flatnonzero(changed):
            same = axis < len(self.analysis.sizes.of[node.input[0]]) and self.kept(node.input[0], axis).sum() == left[axis]
            copied = told[axis] == 0 and not attribute(node, "allowzero", 0) and same
            if not (copied or told[axis] == -1 or (told[axis] == 1 and node.op_type == "Expand")):
                told[axis] = left[axis]
        node.input[place] = self._constant(node, "sizes", told)

