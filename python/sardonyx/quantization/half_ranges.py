"""Which nodes of a model leave the range of f16, by samples."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .graph_index import GraphIndex
from .model_files import copy_of, infer_types
from .observe import session_with_outputs

LARGEST = 65504.0
_LEAST = 6e-8  # numbers nearer to 0 are 0 in f16
_TINY = 0.01  # share of numbers that may become 0
_ROOM = 2.0  # other inputs than the samples may be larger
_AT_A_TIME = 32  # values that one session gives
# Operators that sum squares of what they read.
_SQUARES = {
    "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LpNormalization", "LRN",
    "ReduceL2", "ReduceSumSquare", "MeanVarianceNormalization",
}  # fmt: skip


class _Seen:
    """The largest |x| of a value, and how many of its numbers are too small for f16; infinities are what they are."""

    def __init__(self):
        self.largest, self.tiny, self.count = 0.0, 0, 0

    def add(self, values) -> None:
        sizes = np.abs(values[np.isfinite(values) & (values != 0)])
        self.largest = max(self.largest, float(sizes.max(initial=0)))
        self.tiny += int((sizes < _LEAST).sum())
        self.count += sizes.size


def out_of_range(model, samples) -> dict[str, str]:
    """{node: reason} of nodes that read or make numbers which f16 doesn't hold.

    :param model: whose nodes have names.
    :param samples: a list of feeds.
    """
    index = GraphIndex(infer_types(copy_of(model)).graph)
    names = [name for name in (*index.inputs, *index.producers) if index.element_type(name) == TensorProto.FLOAT]
    seen = {name: _Seen() for name in names}
    made = [name for name in names if name in index.producers]
    for name in set(names) - set(made):
        for feeds in samples:
            if name in feeds:
                seen[name].add(np.asarray(feeds[name], np.float32))
    for start in range(0, len(made), _AT_A_TIME):
        part = made[start : start + _AT_A_TIME]
        session = session_with_outputs(model, part)
        wanted = [entry.name for entry in session.get_inputs()]
        for feeds in samples:
            for name, value in zip(part, session.run(part, {key: feeds[key] for key in wanted})):
                seen[name].add(value)
    found: dict[str, str] = {}
    for node in model.graph.node:
        for name in (*node.output, *node.input):
            reason = _reason(name, seen.get(name), node.op_type in _SQUARES and name in node.input)
            if reason:
                found.setdefault(node.name, reason)
    return found


def _reason(name, seen, squared) -> str:
    if seen is None or not seen.count:
        return ""
    largest = seen.largest**2 if squared else seen.largest
    if largest * _ROOM > LARGEST:
        return f"'{name}'{' squared' if squared else ''} reaches {largest:.3g}, and f16 65504"
    share = seen.tiny / seen.count
    return f"{100 * share:.2g} % of '{name}' are below what f16 holds" if share > _TINY else ""
