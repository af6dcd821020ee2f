"""Look-ups in a graph that does not change meanwhile."""

from __future__ import annotations

from onnx import GraphProto, TensorProto

from .quant_types import FLOAT_TYPES


class GraphIndex:
    """Who makes and who reads each value of a graph, its initialisers and the types of values."""

    def __init__(self, graph: GraphProto):
        self.graph = graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = {value.name: value for value in graph.input}
        self.outputs = {value.name: value for value in graph.output}
        self.producers = {name: node for node in graph.node for name in node.output if name}
        self.readers: dict[str, list] = {}
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                if name:
                    self.readers.setdefault(name, []).append(node)
        self.values = {value.name: value for value in graph.value_info}
        self.values.update(self.outputs)
        self.values.update(self.inputs)

    def element_type(self, name: str) -> int | None:
        """ONNX's number of a tensor's type; None where it is not known or the value is no tensor."""
        if name in self.initializers:
            return self.initializers[name].data_type
        value = self.values.get(name)
        if value is None or not value.type.HasField("tensor_type"):
            return None
        return value.type.tensor_type.elem_type or None

    def is_float(self, name: str) -> bool:
        return self.element_type(name) in FLOAT_TYPES

    def is_weight(self, name: str) -> bool:
        """Whether a name is an initialiser of floats."""
        return name in self.initializers and self.initializers[name].data_type in FLOAT_TYPES

    def dims(self, name: str):
        """The sizes of a value: numbers, names of open sizes, or None; None altogether where the rank is open."""
        if name in self.initializers:
            return list(self.initializers[name].dims)
        value = self.values.get(name)
        if value is None or not value.type.tensor_type.HasField("shape"):
            return None
        return [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
            for dim in value.type.tensor_type.shape.dim
        ]


def is_tensor_of(value, kinds=(TensorProto.FLOAT, TensorProto.FLOAT16)) -> bool:
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in kinds
