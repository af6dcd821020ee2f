"""Gradient of a few nodes of other families, against central differences."""

import copy

import numpy as np
from onnx import helper

from graphs import grow, reads
from references import Refused, is_float

from . import contractions, elementwise, movement, normalisation, reductions, selection, shapes, windows
from .training import TRAINING

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
FAMILIES = [elementwise, elementwise, movement, normalisation, reductions, selection, shapes, windows, contractions]
# These are computed in single precision by onnx.reference, which leaves no digits to a difference.
SINGLE = {"LayerNormalization", "RMSNormalization", "GroupNormalization", "Gelu", "Erf"}
# What onnx.reference has its own idea of, unless onnxruntime shares it.
DOUBTED = {"MaxPool", "AveragePool", "LpPool", "LpNormalization"}
MOST = 60  # elements of what a slope is asked for


def makers(g):
    """Mostly of one family."""
    chosen = g.pick(FAMILIES).OPERATORS
    return [*chosen, *elementwise.OPERATORS] if g.maybe() else list(chosen)


def body(g):
    """A small graph in double precision."""
    inner = copy.copy(g)
    inner.values, inner.steps = {}, []
    inner.only, inner.strict, inner.sizes = F64, True, [1, 1, 2, 2, 3, 3, 4]
    grow(inner, makers(g), g.int(1, 4))
    g.count = inner.count
    if not inner.steps:
        raise Refused("nothing to differentiate")
    return inner


def gradient(g):
    inner = body(g)
    nodes = [node for step in inner.steps for node in step.nodes]
    y = inner.values[inner.steps[-1].outputs[0]]
    needed, kept = {y.name}, []
    for node in reversed(nodes):
        if needed & set(node.output):
            needed |= set(reads(node))
            kept.insert(0, node)
    if SINGLE & {node.op_type for node in kept}:
        raise Refused("single precision")
    if any(step.lenient and DOUBTED & {node.op_type for node in step.nodes} for step in inner.steps):
        raise Refused("nobody to ask")
    floats = [v for v in inner.values.values() if v.name in needed and v.kind != "node" and is_float(v.dtype) and v.dtype.itemsize == 8]
    if y.dtype != F64 or not floats or not y.array.size:
        raise Refused("nothing to differentiate")
    if any(not np.isfinite(inner.values[n].array.astype(float)).all() for n in needed if n in inner.values and is_float(inner.values[n].dtype)):
        raise Refused("no slope")
    others = [v for v in inner.values.values() if v.name in needed and v.kind == "input" and v not in floats]
    order = [floats[int(i)] for i in g.rng.permutation(len(floats))]
    count = g.int(1, min(3, len(order)))
    xs, zs = order[:count], [v for v in order[count:] if v.kind == "input" or g.maybe(0.3)] + others
    if sum(x.array.size for x in xs) > MOST:
        raise Refused("large")
    for value in inner.values.values():
        if value.kind != "node":
            g.values[value.name] = value
    g.count += count
    outputs = [f"v{g.count - i}" if g.maybe(0.9) or i == 0 else "" for i in range(count)]
    # Now and then at another point than where y itself is computed.
    at = [g.new(F64, v.shape) if v in floats and g.maybe(0.1) else v for v in [*xs, *zs]]
    last = helper.make_node("Gradient", [v.name for v in at], outputs, domain=TRAINING, xs=[x.name for x in xs], y=y.name,
                            **({"zs": [z.name for z in zs]} if zs else {}))  # fmt: skip
    g.add([*kept, last], None, [name for name in outputs if name] + [y.name] * g.maybe(0.3))


OPERATORS = [gradient]
