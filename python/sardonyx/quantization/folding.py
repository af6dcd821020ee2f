"""Rewrites of a model before quantisation: what depends on constants only is computed, normalisations join convolutions."""

from __future__ import annotations

import logging

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from .graph_index import GraphIndex
from .onnx_model import outer_names, remove_unused_initializers, replace_all, subgraphs_of
from .quant_utils import attribute

logger = logging.getLogger("sardonyx")

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
# Bytes by which computed constants may exceed what they are computed of.
_LARGEST_GROWTH = 1024


def replace_upsample(model: ModelProto) -> None:
    """Writes Upsample, which ended with opset 9, as Resize of opset 10, which has the same inputs."""
    version = next(entry for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if not any(node.op_type == "Upsample" for node in model.graph.node):
        return
    if version.version < 9:
        for node in model.graph.node:
            if node.op_type == "Upsample":
                name = (node.name or node.output[0]) + "_scales"
                scales = np.array(attribute(node, "scales"), np.float32)
                model.graph.initializer.append(onnx.numpy_helper.from_array(scales, name))
                node.input.append(name)
                replace_all(node.attribute, [entry for entry in node.attribute if entry.name != "scales"])
    for node in model.graph.node:
        if node.op_type == "Upsample":
            node.op_type = "Resize"
    version.version = max(version.version, 10)


def fold_constants(model: ModelProto) -> int:
    """Computes nodes all of whose inputs are constants; gives how many. Weights that are quantised stay weights."""
    graph = model.graph
    constant = {tensor.name for tensor in graph.initializer} - {value.name for value in graph.input}
    foldable: list = []
    made: set[str] = set()
    for node in graph.node:
        inputs = {name for name in node.input if name}
        for body in subgraphs_of(node):
            inputs |= outer_names(body)
        plain = node.op_type not in _RANDOM and node.domain in ("", "ai.onnx") and not any(subgraphs_of(node))
        if plain and node.op_type not in ("QuantizeLinear", "DequantizeLinear") and inputs <= constant | made:
            foldable.append(node)
            made.update(node.output)
    if not foldable:
        return 0
    folded = {id(node) for node in foldable}
    rest = [node for node in graph.node if id(node) not in folded]
    wanted = {name for node in rest for name in node.input} | {value.name for value in graph.output}
    for node in rest:
        for body in subgraphs_of(node):
            wanted |= outer_names(body)
    values = _compute(model, foldable, sorted(made & wanted - {""}))
    if values is None:
        return 0
    outputs = {value.name for value in graph.output}
    if outputs & set(values):  # an output is made by a node, not by an initialiser
        return 0
    replace_all(graph.node, rest)
    for name, value in values.items():
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    remove_unused_initializers(graph)
    return len(foldable)


def _compute(model: ModelProto, nodes, names):
    """{name: array} of values that nodes make of constants, or None where they can't be computed."""
    from sardonyx import InferenceSession

    if not names:
        return {}
    part = ModelProto()
    part.ir_version = model.ir_version
    part.opset_import.extend(model.opset_import)
    part.graph.name = "constants"
    part.graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    part.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in read)
    known = GraphIndex(model.graph).values
    for name in names:
        part.graph.output.add(name=name)
        if name in known:
            part.graph.output[-1].CopyFrom(known[name])
    try:
        session = InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
        values = dict(zip(names, session.run(names, {})))
    except Exception as error:  # a constant that can't be computed here is no fault of the model's
        logger.warning("constants are not folded: %s", error)
        return None
    if not all(isinstance(value, np.ndarray) for value in values.values()):
        return None
    before = sum(len(tensor.raw_data) or tensor.ByteSize() for tensor in part.graph.initializer)
    after = sum(value.nbytes for value in values.values())
    return values if after <= before + _LARGEST_GROWTH else None


def fold_batch_norms(model: ModelProto) -> int:
    """Takes BatchNormalizations into the weights of the convolution or Gemm before them; gives how many.

    y = (x - mean) / sqrt(var + e) · gain + bias is w' = w · k, b' = (b - mean) · k + bias with k = gain / sqrt(var + e).
    """
    index = GraphIndex(model.graph)
    removed = set()
    for norm in model.graph.node:
        if norm.op_type != "BatchNormalization" or len([name for name in norm.output if name]) > 1:
            continue
        product = index.producers.get(norm.input[0])
        if product is None or not _takes(product, norm, index) or attribute(norm, "training_mode", 0):
            continue
        _fold(model.graph, index, product, norm)
        removed.add(norm.output[0])
    if removed:
        kept = [node for node in model.graph.node if node.op_type != "BatchNormalization" or node.output[0] not in removed]
        replace_all(model.graph.node, kept)
        remove_unused_initializers(model.graph)
    return len(removed)


def _takes(product, norm, index) -> bool:
    if product.op_type not in ("Conv", "ConvTranspose", "Gemm") or product.domain not in ("", "ai.onnx"):
        return False
    if product.op_type == "ConvTranspose" and attribute(product, "group", 1) != 1:
        return False
    weights = [product.input[1], *norm.input[1:5]] + [name for name in product.input[2:3] if name]
    alone = len(index.readers.get(product.output[0], ())) == 1 and product.output[0] not in index.outputs
    constant = all(name in index.initializers and name not in index.inputs for name in weights)
    kinds = {index.initializers[name].data_type for name in weights} if constant else set()
    plain = product.op_type != "Gemm" or attribute(product, "beta", 1.0) == 1.0
    return alone and constant and kinds == {TensorProto.FLOAT} and plain


def _fold(graph, index, product, norm) -> None:
    def numbers(name):
        return onnx.numpy_helper.to_array(index.initializers[name]).astype(np.float64)

    gain, bias, mean, variance = (numbers(name) for name in norm.input[1:5])
    factor = gain / np.sqrt(variance + attribute(norm, "epsilon", 1e-5))
    weight = numbers(product.input[1])
    axis = {"Conv": 0, "ConvTranspose": 1}.get(product.op_type, 0 if attribute(product, "transB", 0) else 1)
    shape = [1] * weight.ndim
    shape[axis] = -1
    old = numbers(product.input[2]) if len(product.input) > 2 and product.input[2] else 0.0
    values = (weight * factor.reshape(shape), (old - mean) * factor + bias)
    names = []
    for place, value in enumerate(values, 1):
        old_name = product.input[place] if len(product.input) > place and product.input[place] else ""
        shared = not old_name or len(index.readers.get(old_name, ())) > 1
        name = old_name if not shared else f"{norm.output[0]}_{'weight' if place == 1 else 'bias'}"
        tensor = onnx.numpy_helper.from_array(value.astype(np.float32), name)
        if shared:
            graph.initializer.append(tensor)
        else:
            index.initializers[name].CopyFrom(tensor)
        names.append(name)
    inputs = [product.input[0], *names]
    del product.input[:]
    product.input.extend(inputs)
    product.output[0] = norm.output[0]


def remove_identities(model: ModelProto) -> int:
    """Removes Identity nodes, and Dropout where it does nothing; gives how many."""
    graph = model.graph
    outputs = {value.name for value in graph.output}
    bodies = {name for node in graph.node for body in subgraphs_of(node) for name in outer_names(body)}
    renamed: dict[str, str] = {}
    kept = []
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = renamed.get(name, name)
        moves = node.op_type == "Identity" and not node.domain
        if moves and node.output[0] not in outputs and node.output[0] not in bodies:
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    if renamed:
        replace_all(graph.node, kept)
    return len(renamed)
