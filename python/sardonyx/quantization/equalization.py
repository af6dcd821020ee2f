"""Cross-layer equalisation: channels between two layers get sizes that one scale for all suits.

Nagel, van Baalen, Blankevoort, Welling, "Data-Free Quantization through Weight Equalization and Bias Correction"
(1906.04721): with r1 and r2 the largest weights that make and read a channel, the former are divided by
s = sqrt(r1 / r2), the latter multiplied. Here s is a power of two, so that floats stay the same to the last bit.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto

from .model_files import copy_of
from .onnx_model import remove_unused_initializers
from .quant_types import FLOAT_TYPES
from .quant_utils import attributes_of

_ROUNDS = 40
# f(x / s) is f(x) / s for every s > 0.
_THROUGH = ("Relu", "LeakyRelu", "PRelu", "Identity")


class _Layer:
    """A convolution or product with constant weights; `rows` are those that make a channel, `columns` those that read one."""

    def __init__(self, node, tensors):
        self.node = node
        attributes = attributes_of(node)
        weight, *bias = node.input[1:]
        self.weight, self.bias = weight, bias[0] if bias else ""
        dims = tensors[weight].dims
        groups = attributes.get("group", 1)
        self.kind = "Conv" if node.op_type == "Conv" else "product"
        turned = node.op_type == "Conv" or attributes.get("transB", 0)
        self.rows = 0 if turned else 1
        self.columns: int | None = 1 - self.rows
        if groups > 1:
            self.columns = 0 if groups == dims[0] and dims[1] == 1 else None


def _layer(node, tensors) -> _Layer | None:
    if node.op_type not in ("Conv", "Gemm", "MatMul") or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Gemm" and attributes_of(node).get("transA"):
        return None
    for name in node.input[1:]:
        if name and (name not in tensors or tensors[name].data_type not in FLOAT_TYPES):
            return None
    if node.op_type != "Conv" and len(tensors[node.input[1]].dims) != 2:
        return None
    layer = _Layer(node, tensors)
    # Of a Gemm, C may be of any shape that goes to [M, N].
    channels = tensors[layer.weight].dims[layer.rows]
    fits = not layer.bias or list(tensors[layer.bias].dims) == [channels]
    return layer if fits else None


def _pairs(graph, tensors) -> list:
    """(layer, next layer) where the first's results have one way to go, through functions that let factors pass."""
    readers: dict[str, list] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    bodies = {name for node in graph.node for name in _names_of_bodies(node)}
    pairs = []
    for node in graph.node:
        first = _layer(node, tensors)
        name = node.output[0] if node.output else ""
        while first is not None:
            following = readers.get(name, [])
            if len(following) != 1 or name in outputs or name in bodies or following[0].input[0] != name:
                break
            if following[0].op_type in _THROUGH:
                name = following[0].output[0]
                continue
            second = _layer(following[0], tensors)
            if second is not None and second.kind == first.kind and second.columns is not None:
                pairs.append((first, second))
            break
    return pairs


def _names_of_bodies(node) -> set:
    names: set[str] = set()
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs):
            names.update(value.name for value in body.output)
            for inner in body.node:
                names.update(inner.input)
                names |= _names_of_bodies(inner)
    return names


def _largest(values: np.ndarray, axis: int) -> np.ndarray:
    """max|w| of each place of an axis."""
    return np.abs(values).max(axis=tuple(other for other in range(values.ndim) if other != axis), initial=0)


def _along(factors, values: np.ndarray, axis: int) -> np.ndarray:
    return factors.reshape([-1 if other == axis else 1 for other in range(values.ndim)])


def equalize(model: ModelProto) -> ModelProto:
    """A copy of a model whose channels between layers are equalised; it computes the same numbers.

    BatchNormalizations are to be folded before, as `quant_pre_process` does. Weights that several nodes read stay.
    """
    model = copy_of(model)
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    reads: dict[str, int] = {}
    for node in graph.node:
        for name in (*node.input, *_names_of_bodies(node)):
            reads[name] = reads.get(name, 0) + 1
    fed = {value.name for value in graph.input}

    def own(*names):
        return all(not name or (reads[name] == 1 and name not in fed) for name in names)

    pairs = [
        (first, second) for first, second in _pairs(graph, tensors) if own(first.weight, first.bias, second.weight)
    ]
    used = {name for pair in pairs for layer in pair for name in (layer.weight, layer.bias) if name}
    values = {name: onnx.numpy_helper.to_array(tensors[name]).astype(np.float64) for name in used}
    for _ in range(_ROUNDS):
        changed = False
        for first, second in pairs:
            ahead, after = values[first.weight], values[second.weight]
            made, read = _largest(ahead, first.rows), _largest(after, second.columns)
            alive = (made > 0) & (read > 0)
            steps = np.zeros(len(made))
            steps[alive] = np.round(np.log2(made[alive] / read[alive]) / 2)
            if not steps.any():
                continue
            changed = True
            factors = 2.0**steps
            values[first.weight] = ahead / _along(factors, ahead, first.rows)
            if first.bias:
                values[first.bias] = values[first.bias] / factors
            values[second.weight] = after * _along(factors, after, second.columns)
        if not changed:
            break
    for name, array in values.items():
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensors[name].data_type)
        tensors[name].CopyFrom(onnx.numpy_helper.from_array(array.astype(kind), name))
    remove_unused_initializers(graph)
    return model
