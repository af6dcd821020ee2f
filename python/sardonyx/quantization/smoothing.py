"""SmoothQuant: products' inputs whose channels differ much in size are divided by factors, and weights multiplied.

Xiao, Lin, Seznec, Wu, Demouth, Han, "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language
Models" (2211.10438): of channel j, factor max|x_j|^alpha / max|w_j|^(1 - alpha).
"""

from __future__ import annotations

import copy
import logging

import numpy as np
import onnx

from .calibrate import samples_of
from .nbits.inputs import collect
from .onnx_model import remove_unused_initializers, sort_nodes
from .quant_types import FLOAT_TYPES
from .quant_utils import attributes_of

logger = logging.getLogger("sardonyx")


def samples_to_go_through_first(reader, what="SmoothQuant"):
    """Samples of a copy of the reader, which itself stays at its start; `what` goes through them once more."""
    try:
        return samples_of(copy.deepcopy(reader))
    except TypeError:
        kind = type(reader).__name__
        raise ValueError(
            f"{what} goes through the samples twice, and this {kind} can be gone through once: give a list, a "
            "folder, or a CalibrationDataReader that `copy.deepcopy` can copy"
        ) from None


def factors_of(largest, weights, alpha: float = 0.5) -> np.ndarray:
    """f32 [K]: from max|x| of each channel, [K], and weights of [K, N]. A channel without numbers but 0 has factor 1."""
    heaviest = np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0).astype(np.float64)
    largest = np.asarray(largest, np.float64)
    used = (largest > 0) & (heaviest > 0)
    factors = np.ones(len(largest))
    factors[used] = largest[used] ** alpha / heaviest[used] ** (1 - alpha)
    return np.clip(factors, 1e-5, 1e5).astype(np.float32)


def smooth(model, samples, op_types, chosen, excluded, alpha=0.5, folding=True, providers=None) -> list:
    """Changes a model in place; gives names of nodes that came in, which are to stay float.

    Factors go into the LayerNormalization that makes an input. With `folding`, inputs of other nodes stay as they
    are; without, a Mul divides them.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"'SmoothQuantAlpha' is from 0 to 1, not {alpha}")
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    groups: dict[str, list] = {}
    for node in graph.node:
        wanted = node.op_type in op_types and node.name not in excluded and (not chosen or node.name in chosen)
        weight = _weight(node, tensors)
        if wanted and weight is not None:
            groups.setdefault(node.input[0], []).append((node, weight))
    producers = {name: node for node in graph.node for name in node.output}
    foldable = {name for name, members in groups.items() if _can_fold(graph, producers.get(name), name, members, tensors)}
    if folding:
        groups = {name: members for name, members in groups.items() if name in foldable}
    if not groups:
        logger.info("SmoothQuant found no product whose input it can divide")
        return []
    sizes = {name: len(members[0][1]) for name, members in groups.items()}
    statistics = collect(model, sizes, samples, providers, gram=False)
    inserted = []
    for name, members in groups.items():
        factors = factors_of(statistics[name].largest, [weight for _, weight in members], alpha)
        for node, weight in members:
            _scale_weight(graph, node, tensors[node.input[1]], factors)
        if name in foldable:
            _divide(graph, producers[name], tensors, factors)
            continue
        kind = members[0][1].dtype
        divisor, result = f"{name}_smooth_factors", f"{name}_smooth"
        graph.initializer.append(onnx.numpy_helper.from_array((1 / factors).astype(kind), divisor))
        inserted.append(onnx.helper.make_node("Mul", [name, divisor], [result], result))
        for node, _ in members:
            node.input[0] = result
        for value in (*graph.input, *graph.value_info):
            if value.name == name:
                graph.value_info.add().CopyFrom(value)
                graph.value_info[-1].name = result
    graph.node.extend(inserted)
    sort_nodes(graph)
    remove_unused_initializers(graph)
    return [node.name for node in inserted]


def _transposed(node) -> bool:
    return node.op_type == "Gemm" and bool(attributes_of(node).get("transB"))


def _weight(node, tensors):
    """The constant weight of a product as [K, N], or None."""
    if node.op_type not in ("MatMul", "Gemm") or node.op_type == "Gemm" and attributes_of(node).get("transA"):
        return None
    tensor = tensors.get(node.input[1])
    if tensor is None or len(tensor.dims) != 2 or tensor.data_type not in FLOAT_TYPES:
        return None
    values = onnx.numpy_helper.to_array(tensor)
    return values.T if _transposed(node) else values


def _can_fold(graph, norm, name, members, tensors) -> bool:
    """Whether a LayerNormalization makes the input, which only these products read, and a Shape maybe."""
    if norm is None or norm.op_type != "LayerNormalization" or any(value.name == name for value in graph.output):
        return False
    reads = sum(list(node.input).count(name) for node in graph.node if node.op_type != "Shape")
    inner = any(name in _outer(attribute) for node in graph.node for attribute in node.attribute)
    size = len(members[0][1])
    constants = [tensors.get(each) for each in norm.input[1:] if each]
    return (
        reads == len(members) and not inner and bool(constants)
        and all(each is not None and list(each.dims) == [size] for each in constants)
    )  # fmt: skip


def _outer(attribute) -> set:
    """Names that a body reads."""
    bodies = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
    names: set[str] = set()
    for body in bodies:
        names.update(value.name for value in body.output)
        for node in body.node:
            names.update(node.input)
            for each in node.attribute:
                names |= _outer(each)
    return names


def _scale_weight(graph, node, tensor, factors) -> None:
    values = onnx.numpy_helper.to_array(tensor)
    scaled = values * (factors if _transposed(node) else factors[:, None])
    name = f"{tensor.name}_{node.name}_smooth"
    graph.initializer.append(onnx.numpy_helper.from_array(scaled.astype(values.dtype), name))
    node.input[1] = name


def _divide(graph, norm, tensors, factors) -> None:
    for place, source in enumerate(norm.input):
        if place and source:
            values = onnx.numpy_helper.to_array(tensors[source])
            name = f"{source}_{norm.output[0]}_smooth"
            graph.initializer.append(onnx.numpy_helper.from_array((values / factors).astype(values.dtype), name))
            norm.input[place] = name
