"""The error that each node of a changed model makes by itself: it reads what the float model's makes.

Nodes of the changed model that compute a value of the float model are put beside that model, back to where they read
values of it again, whatever they are: MatMulInteger and its Casts, MatMulNBits, products of f16. Both results are
compared in one run; the mean square of the difference is divided by the variance of the float result.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .graph_index import GraphIndex
from .model_files import copy_of, infer_types
from .onnx_model import subgraphs_of

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


class _Grafts:
    """A float model with nodes of a changed one beside it.

    :param axes: {node: axes over which the mean of the difference is asked for}; without, errors are.
    """

    def __init__(self, model, changed, names, axes=None):
        self.axes = axes
        self.model = copy_of(model)
        self.graph = self.model.graph
        self.index = GraphIndex(self.graph)
        self.changed = GraphIndex(infer_types(copy_of(changed)).graph)
        self.named = {node.name: node for node in self.changed.graph.node}
        self.new: list = []
        self.done: dict[str, str] = {}
        self.outputs: dict[str, tuple] = {}  # {node: (noise, variance)}
        domains = {entry.domain for entry in self.model.opset_import}
        self.model.opset_import.extend(entry for entry in changed.opset_import if entry.domain not in domains)
        for entry in self.model.opset_import:
            theirs = next((each.version for each in changed.opset_import if each.domain == entry.domain), entry.version)
            entry.version = max(entry.version, theirs)
        self.version = next(entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx"))
        for node in list(self.graph.node):
            if node.name in names and not any(subgraphs_of(node)):
                self._compare(node)
        del self.graph.output[:]
        self.wanted = sorted({each for pair in self.outputs.values() for each in pair})
        shape = [] if axes is None else [None]
        self.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in self.wanted)
        self.graph.node.extend(self.new)

    def _add(self, op_type, inputs, **attributes) -> str:
        result = f"sardonyx_graft_{len(self.new)}"
        self.new.append(helper.make_node(op_type, inputs, [result], result, **attributes))
        return result

    def _compare(self, node) -> None:
        value = next((name for name in node.output if name), "")
        maker = self.named.get(node.name)
        if maker is None or maker.op_type != node.op_type:  # a node may lend its output's name to the one before it
            maker = self.changed.producers.get(value)
        if maker is None or not self.index.is_float(value) or any(subgraphs_of(maker)):
            return
        self.done = {}
        found = self._made(maker, maker.output[list(node.output).index(value)] if maker.op_type == node.op_type else value)
        if found is None:
            return
        plain, other = (self._add("Cast", [name], to=TensorProto.FLOAT) for name in (value, found))
        difference = self._add("Sub", [other, plain])
        if self.axes is not None:
            self.outputs[node.name] = (self._mean(difference, self.axes[node.name]),)
            return
        noise = self._mean(self._add("Mul", [difference, difference]))
        centred = self._add("Sub", [plain, self._mean(plain)])
        self.outputs[node.name] = noise, self._mean(self._add("Mul", [centred, centred]))

    def _mean(self, name, axes=None) -> str:
        """The mean over some axes, or all."""
        if axes is None:
            return self._add("ReduceMean", [name], keepdims=0)
        if self.version < 18:
            return self._add("ReduceMean", [name], keepdims=0, axes=axes)
        constant = f"sardonyx_axes_{len(self.new)}"
        self.graph.initializer.append(numpy_helper.from_array(np.array(axes, np.int64), constant))
        return self._add("ReduceMean", [name, constant], keepdims=0)

    def _made(self, maker, value):
        """The name of a value as the changed model makes it of values of the float model."""
        copy = onnx.NodeProto()
        copy.CopyFrom(maker)
        inputs = [self._read(name) for name in maker.input]
        if None in inputs:
            return None
        copy.name = f"sardonyx_graft_{len(self.new)}"
        del copy.input[:]
        copy.input.extend(inputs)
        for place, name in enumerate(maker.output):
            if name:
                copy.output[place] = f"{copy.name}_{place}"
                self.done[name] = copy.output[place]
        self.new.append(copy)
        return self.done[value]

    def _read(self, name):
        if not name or name in self.done:
            return self.done.get(name, "")
        if name in self.changed.initializers:
            mine = f"sardonyx_changed_{name}"
            if mine not in self.index.initializers:
                tensor = self.graph.initializer.add()
                tensor.CopyFrom(self.changed.initializers[name])
                tensor.name = mine
                self.index.initializers[mine] = tensor
            return mine
        if name in self.index.producers or name in self.index.inputs:
            kind = self.changed.element_type(name)
            mine = self.index.element_type(name)
            if kind in _FLOATS and mine in _FLOATS and kind != mine:
                self.done[name] = self._add("Cast", [name], to=kind)
                return self.done[name]
            return name
        maker = self.changed.producers.get(name)
        return None if maker is None or any(subgraphs_of(maker)) else self._made(maker, name)


def node_errors(model, changed, names, samples) -> dict[str, float]:
    """{node: noise by variance of what it computes} of nodes that a changed model computes otherwise; 1 is as good as lost.

    :param model: the float model, whose nodes have names and whose values have types.
    :param names: of nodes of `model`.
    """
    grafts = _Grafts(model, changed, set(names))
    sums, _ = _sums(grafts, samples)
    return {
        name: float("inf") if not np.isfinite(sums[noise]) else sums[noise] / max(sums[variance], 1e-30)
        for name, (noise, variance) in grafts.outputs.items()
    }


def node_shifts(model, changed, axes, samples) -> dict[str, np.ndarray]:
    """{node: mean difference of each channel} that a changed model makes to what nodes compute.

    :param axes: {node: all axes of its output but that of the channels}.
    """
    grafts = _Grafts(model, changed, set(axes), axes)
    sums, count = _sums(grafts, samples)
    return {name: sums[shift] / count for name, (shift,) in grafts.outputs.items()}


def _sums(grafts, samples):
    """({output: sum over all samples}, number of samples)."""
    from sardonyx import InferenceSession

    sums: dict = dict.fromkeys(grafts.wanted, 0.0)
    count = 0
    if grafts.wanted:
        session = InferenceSession(grafts.model.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted = [entry.name for entry in session.get_inputs()]
        for feeds in samples:
            count += 1
            for name, value in zip(grafts.wanted, session.run(grafts.wanted, {key: feeds[key] for key in wanted})):
                sums[name] = sums[name] + value.astype(np.float64)
    return sums, count
