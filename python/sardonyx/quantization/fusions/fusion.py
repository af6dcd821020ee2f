"""What fusions have in common: they look at every node of one operator and replace what is around it."""

from __future__ import annotations

import numpy as np
import onnx

from ..onnx_model import ONNXModel
from ..quant_utils import attribute


class Fusion:
    """Replaces chains around nodes `search_op_type` by nodes `fused_op_type`; a subclass has `fuse`."""

    def __init__(self, model: ONNXModel, fused_op_type: str, search_op_type: str):
        self.model = model
        self.fused_op_type = fused_op_type
        self.search_op_type = search_op_type
        self.nodes_to_remove: list = []
        self.nodes_to_add: list = []
        self._prefix = f"{fused_op_type}_fused_{search_op_type}_"
        self._next: int | None = None

    def fuse(self, node, input_name_to_nodes, output_name_to_node):
        """Looks at one node; what is to go joins `nodes_to_remove`, what is to come `nodes_to_add`."""
        raise NotImplementedError

    def apply(self) -> bool:
        """Looks at all nodes; whether anything has changed."""
        self.readers, self.producers = self.model.input_name_to_nodes(), self.model.output_name_to_node()
        for node in list(self.model.nodes()):
            if node.op_type == self.search_op_type:
                self.fuse(node, self.readers, self.producers)
        if not self.nodes_to_add:
            return False
        self.model.remove_nodes(self.nodes_to_remove)
        self.model.add_nodes(self.nodes_to_add)
        self.model.topological_sort()
        self.model.remove_unused_constant()
        return True

    def replace(self, nodes, source_names, result, domain="", **attributes) -> bool:
        """Puts one node in the place of others, unless somebody else reads what one of these makes."""
        gone = {name for node in nodes for name in node.output} - {result}
        outputs = {value.name for value in self.model.graph().output}
        inside = [node.output[0] for node in nodes]
        for name in gone:
            if name in outputs or any(reader.output[0] not in inside for reader in self.readers.get(name, ())):
                return False
        self.nodes_to_remove.extend(nodes)
        self.nodes_to_add.append(
            onnx.helper.make_node(
                self.fused_op_type, list(source_names), [result], self.create_unique_node_name(), domain=domain,
                **attributes,
            )
        )  # fmt: skip
        return True

    def create_unique_node_name(self) -> str:
        if self._next is None:
            self._next = self.model.get_largest_node_name_suffix(self._prefix) + 1
        self._next += 1
        return f"{self._prefix}{self._next - 1}"

    def constant(self, name):
        """The number of a constant of one element, or None. A square root of one is taken for one."""
        producer = self.producers.get(name)
        if producer is not None and producer.op_type == "Sqrt":
            inner = self.constant(producer.input[0])
            return None if inner is None or inner < 0 else float(np.sqrt(inner))
        value = self.model.get_constant_value(name)
        return None if value is None or np.size(value) != 1 else float(np.squeeze(value))

    def other_input(self, node, name):
        """The input of a node of two that is not `name`."""
        if len(node.input) != 2 or name not in node.input:
            return None
        return node.input[1] if node.input[0] == name else node.input[0]

    def only_reader(self, name, op_type):
        """The one node that reads a value, if it is of that operator."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and readers[0].op_type == op_type else None

    @staticmethod
    def get_node_attribute(node, attribute_name):
        return attribute(node, attribute_name)
