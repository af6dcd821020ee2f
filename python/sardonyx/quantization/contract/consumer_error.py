"""The error that rounding one tensor makes in what its consumers compute.

The tensor's own error says nothing: a mask of -10000 beside scores of 3 is a tensor with little noise for its power,
and a Softmax that has lost its scores. Therefore each consumer is computed twice in one run of the float model, on the
tensor and on the tensor rounded, all other inputs being float; the mean square of the difference is divided by the
variance of the result. Where a consumer only passes values on, or adds a mask, it is its own consumers that count.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..formulas import dequantize, quantize_weight
from ..graph_index import GraphIndex
from ..model_files import copy_of, tensor_proto_to_array
from .masks import JOINING, PASSING

_NUMBERS = {
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT64,
    TensorProto.INT32,
}  # fmt: skip
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


class _Shadow:
    """A float model beside which consumers are computed on rounded tensors."""

    def __init__(self, model, plan, masks):
        self.model, self.plan, self.masks = copy_of(model), plan, masks
        self.graph = self.model.graph
        self.index = GraphIndex(model.graph)
        self.new: list = []
        self.outputs: dict[str, list] = {}  # {tensor: [(name of noise, name of variance)]}
        self.variances: dict[str, tuple] = {}  # {value: (name of its f32 form, name of its variance)}
        self.count = 0
        for name, tensor in plan.tensors.items():
            if tensor.role in ("activation", "weight") and name in self.index.readers:
                rounded = self._rounded(name, tensor)
                if rounded:
                    self._consumers(name, name, rounded)
        del self.graph.output[:]
        self.names = sorted({each for pairs in self.outputs.values() for pair in pairs for each in pair})
        self.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in self.names)
        self.graph.node.extend(self.new)

    def _name(self, kind):
        self.count += 1
        return f"sardonyx_{kind}_{self.count}"

    def _add(self, op_type, inputs, **attributes):
        result = self._name(op_type)
        self.new.append(helper.make_node(op_type, inputs, [result], result, **attributes))
        return result

    def _constant(self, values):
        name = self._name("constant")
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _parameters(self, tensor):
        while tensor is not None and tensor.scale is None and tensor.shares:
            tensor = self.plan.tensors.get(tensor.shares[0])
        return tensor

    def _rounded(self, name, tensor):
        if tensor.role == "weight":
            values = tensor_proto_to_array(self.index.initializers[name])
            stored = quantize_weight(values, tensor.type, tensor.scale, tensor.zero_point, tensor.axis, tensor.block)
            back = dequantize(stored, tensor.scale, tensor.zero_point, tensor.axis, tensor.block)
            return self._constant(back.astype(values.dtype).reshape(values.shape))
        tensor = self._parameters(tensor)
        if tensor is None or tensor.scale is None:
            return None
        parameters = [self._constant(tensor.scale), self._constant(tensor.zero_point)]
        return self._add("DequantizeLinear", [self._add("QuantizeLinear", [name, *parameters]), *parameters])

    def _consumers(self, tensor, name, rounded):
        """Computes the readers of the value `name` on `rounded`, for the account of `tensor`."""
        for node in self.index.readers.get(name, []):
            if any(attribute.type in _GRAPHS for attribute in node.attribute):
                continue
            value = node.output[0]
            if self.index.element_type(value) not in _NUMBERS:
                continue
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.name = self._name(node.op_type)
            for place, source in enumerate(copy.input):
                if source == name:
                    copy.input[place] = rounded
            for place, result in enumerate(copy.output):
                if result:
                    copy.output[place] = f"{copy.name}_{place}"
            self.new.append(copy)
            passes = node.op_type in PASSING or (node.op_type in JOINING and node.name in self.masks)
            if passes and value in self.index.readers:
                self._consumers(tensor, value, copy.output[0])
                continue
            plain, variance = self._variance(value)
            changed = self._add("Cast", [copy.output[0]], to=TensorProto.FLOAT)
            difference = self._add("Sub", [changed, plain])
            noise = self._add("ReduceMean", [self._add("Mul", [difference, difference])], keepdims=0)
            self.outputs.setdefault(tensor, []).append((noise, variance))

    def _variance(self, value):
        if value not in self.variances:
            plain = self._add("Cast", [value], to=TensorProto.FLOAT)
            centred = self._add("Sub", [plain, self._add("ReduceMean", [plain], keepdims=0)])
            square = self._add("Mul", [centred, centred])
            self.variances[value] = plain, self._add("ReduceMean", [square], keepdims=0)
        return self.variances[value]


def consumer_errors(model, plan, samples, masks=()) -> dict[str, float]:
    """{tensor: noise by variance of its worst consumer} of tensors that a plan rounds; 1 is as good as lost.

    :param model: the float model, whose nodes have names and whose values have types.
    :param plan: of the form QDQ.
    :param samples: dictionaries of inputs.
    :param masks: nodes that add a mask, through which errors are looked at.
    """
    from sardonyx import InferenceSession

    shadow = _Shadow(model, plan, masks)
    if not shadow.names:
        return {}
    session = InferenceSession(shadow.model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = [entry.name for entry in session.get_inputs()]
    sums = dict.fromkeys(shadow.names, 0.0)
    for feeds in samples:
        values = session.run(shadow.names, {name: feeds[name] for name in wanted})
        for name, value in zip(shadow.names, values):
            sums[name] += float(value)
    return {
        tensor: max(_share(sums[noise], sums[variance]) for noise, variance in pairs)
        for tensor, pairs in shadow.outputs.items()
    }


def _share(noise: float, variance: float) -> float:
    if not np.isfinite(noise):
        return float("inf")
    return 0.0 if noise == 0 else noise / max(variance, 1e-30)
