"""Biases that take back what rounding shifts: b -= E[f(Q(x), Q(W))] - E[f(x, W)] of each channel.

Nagel, van Baalen, Blankevoort, Welling, "Data-Free Quantization through Weight Equalization and Bias Correction"
(1906.04721), with means of samples: every product reads what the float model computes, rounded.
"""

from __future__ import annotations

import logging

import numpy as np
from onnx import numpy_helper

from .graph_index import GraphIndex
from .grafts import node_shifts
from .model_files import copy_of
from .quant_utils import attribute

logger = logging.getLogger("sardonyx")

_CHANNEL = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": -1}
_FEW = 64  # rows of samples below which means tell little


def _bias_of(node, index):
    """The node and the place of its inputs that hold a product's bias: an own input, or that of an Add after a MatMul."""
    if node.op_type != "MatMul":
        beta = attribute(node, "beta", 1.0) if node.op_type == "Gemm" else 1.0
        return (node, 2) if beta == 1.0 else None
    readers = index.readers.get(node.output[0], [])
    if len(readers) != 1 or readers[0].op_type != "Add" or node.output[0] in index.outputs:
        return None
    place = 1 if readers[0].input[0] == node.output[0] else 0
    return (readers[0], place) if index.is_weight(readers[0].input[place]) else None


def correct_biases(model, quantized, samples):
    """A copy of a float model whose biases make up for what a quantised model of it shifts.

    Quantise it again in the same way. Products of constant weights are corrected; biases that are computed stay.

    :param quantized: of the form QDQ, whose values have the names of the model's.
    """
    model = copy_of(model)
    index = GraphIndex(model.graph)
    axes, places = {}, {}
    for node in model.graph.node:
        if node.op_type not in _CHANNEL or node.domain not in ("", "ai.onnx") or not index.is_weight(node.input[1]):
            continue
        dims, place = index.dims(node.output[0]), _bias_of(node, index)
        if dims is None or place is None:
            continue
        channel = _CHANNEL[node.op_type] % len(dims)
        axes[node.name] = [axis for axis in range(len(dims)) if axis != channel]
        places[node.name] = place
    rows = 0

    def counted():
        nonlocal rows
        for feeds in samples:
            first = next(iter(feeds.values()))
            rows += len(first) if np.ndim(first) else 1
            yield feeds

    for name, shift in node_shifts(model, quantized, axes, counted()).items():
        _subtract(model.graph, index, *places[name], shift)
    if rows < _FEW:
        logger.warning("biases are corrected by %d rows of samples; %d or more tell better", rows, _FEW)
    return model


def _subtract(graph, index, node, place, shift) -> None:
    name = node.input[place] if len(node.input) > place else ""
    kind = numpy_helper.to_array(index.initializers[node.input[1]]).dtype if place == 2 else np.dtype(np.float32)
    if name and not index.is_weight(name):
        return
    if name:
        held = numpy_helper.to_array(index.initializers[name])
        values = (held.astype(np.float64) - shift).astype(held.dtype)
        if values.shape[-1:] != shift.shape:
            return
    else:
        values = (-shift).astype(kind)
    if name and len(index.readers[name]) == 1 and name not in index.inputs:
        index.initializers[name].CopyFrom(numpy_helper.from_array(values, name))
        return
    own = f"{node.name or node.output[0]}_bias"
    while own in index.initializers:
        own += "_"
    graph.initializer.append(numpy_helper.from_array(values, own))
    index.initializers[own] = graph.initializer[-1]
    while len(node.input) <= place:
        node.input.append("")
    node.input[place] = own
