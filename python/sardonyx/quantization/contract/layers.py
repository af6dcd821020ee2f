"""What the report tells of each layer: precision, error, time before and after, bytes, and why it is so."""

from __future__ import annotations

import numpy as np

from ..formulas import get_qmin_qmax_for_qType
from ..graph_index import GraphIndex
from ..observe import SessionObserver
from ..shape_inference import quant_pre_process
from .layer_times import layer_times

_BINS = 48
_HISTOGRAMS = 8  # tensors, those with the largest errors


def layers_of(result) -> list[dict]:
    """A row for each node that the model as it was or the changed one spends time in, in the order of the graph.

    Times are µs of kernels, medians of some runs; None where a node has no kernel of its own.
    """
    before, after = (layer_times(model, result.samples, result.threads) for model in (result.original, result.model))
    nodes = result.report.get("nodes", {})
    graph = result.original.graph
    sizes = _bytes(result.original), _bytes(result.model)
    whole = sum(before.values()) or 1.0
    rows = []
    for node in graph.node:
        decided = nodes.get(node.name, {})
        timed = node.name in before or node.name in after
        if not timed and decided.get("error") is None and node.name not in result.report.get("float", {}):
            continue
        rows.append({
            "layer": node.name, "op": node.op_type, "precision": decided.get("precision", ""),
            "error": decided.get("error"), "before_us": before.get(node.name), "after_us": after.get(node.name),
            "share": before.get(node.name, 0.0) / whole, "bytes_before": sizes[0].get(node.name, 0),
            "bytes_after": sizes[1].get(node.name, 0), "reason": decided.get("reason", ""),
        })  # fmt: skip
    return rows


def _bytes(model) -> dict:
    """{node: bytes of the initialisers that it reads, also through nodes that only it reads}."""
    index = GraphIndex(model.graph)
    tensors = dict(index.initializers)
    tensors.update(
        (node.output[0], entry.t) for node in model.graph.node if node.op_type == "Constant"
        for entry in node.attribute if entry.HasField("t")
    )
    sizes = {name: int(np.prod(tensor.dims)) * _width(tensor) for name, tensor in tensors.items()}
    found = {}
    for node in model.graph.node:
        total = 0.0
        for name in node.input:
            total += sizes.get(name, 0)
            maker = index.producers.get(name)
            if maker is not None and maker.op_type == "DequantizeLinear":
                total += sum(sizes.get(each, 0) for each in maker.input)
        found[node.name] = int(total)
    return found


def _width(tensor) -> float:
    bits = {1: 32, 10: 16, 16: 16, 2: 8, 3: 8, 6: 32, 7: 64, 11: 64, 4: 16, 5: 16, 21: 4, 22: 4, 17: 8, 19: 8, 9: 8}
    return bits.get(tensor.data_type, 32) / 8


def histograms_of(result) -> dict[str, dict]:
    """{tensor: counts, ends and thresholds} of the rounded tensors whose errors are largest; none without their ranges."""
    plan = result.plan
    if plan is None:
        return {}
    ranges = {}
    for name, tensor in plan.tensors.items():
        if tensor.role == "activation" and tensor.scale is not None and np.size(tensor.scale) == 1:
            least, largest = get_qmin_qmax_for_qType(tensor.type)
            zero, scale = float(tensor.zero_point), float(tensor.scale)
            ranges[name] = (float(least) - zero) * scale, (float(largest) - zero) * scale
    errors = result.report.get("errors", {})
    model = quant_pre_process(result.original)
    index = GraphIndex(model.graph)
    ranges = {name: ends for name, ends in ranges.items() if name in index.producers or name in index.inputs}
    names = sorted(ranges, key=lambda name: -(errors.get(name) or 0.0))[:_HISTOGRAMS]
    if not names:
        return {}
    observer = SessionObserver(model, names, bits=True)
    for feeds in result.samples:
        observer.run(feeds)
    found = {}
    for name, seen in observer.take().items():
        low, high = (float(end) for end in seen.ends())
        if seen.bins is not None and low < high:
            counts, _ = seen.linear(_BINS, low, high)
            found[name] = {"low": low, "high": high, "counts": [int(each) for each in counts], "range": ranges[name]}
    return found
