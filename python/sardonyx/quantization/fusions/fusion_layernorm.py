"""(x - mean) / √(mean of squares + e) · gain + bias as LayerNormalization, over the last axis."""

from __future__ import annotations

import numpy as np

from .fusion import Fusion


class FusionLayerNormalization(Fusion):
    def __init__(self, model):
        super().__init__(model, "LayerNormalization", "ReduceMean")

    def fuse(self, node, input_name_to_nodes, output_name_to_node):
        root = node.input[0]
        subtractions = input_name_to_nodes.get(node.output[0], [])
        plain = all(each.op_type == "Sub" and list(each.input) == [root, node.output[0]] for each in subtractions)
        if not subtractions or not plain or not self._is_over_last(node):
            return
        divisions = [
            reader
            for each in subtractions
            for reader in input_name_to_nodes.get(each.output[0], ())
            if reader.op_type == "Div" and reader.input[0] == each.output[0]
        ]
        if len(divisions) != 1:
            return
        deviation = self._deviation(divisions[0], [each.output[0] for each in subtractions])
        if deviation is None:
            return
        epsilon, chain = deviation
        scaled = self.only_reader(divisions[0].output[0], "Mul")
        shifted = self.only_reader(scaled.output[0], "Add") if scaled is not None else None
        if shifted is None:
            return
        gain = self.other_input(scaled, divisions[0].output[0])
        bias = self.other_input(shifted, scaled.output[0])
        vectors = [self.model.get_constant_value(name) for name in (gain, bias)]
        if any(vector is None or vector.ndim != 1 for vector in vectors):
            return
        nodes = [node, *subtractions, *chain, divisions[0], scaled, shifted]
        self.replace(nodes, [root, gain, bias], shifted.output[0], epsilon=epsilon)

    def _is_over_last(self, node) -> bool:
        axes = self.get_node_attribute(node, "axes")
        if axes is None and len(node.input) > 1:
            axes = self.model.get_constant_value(node.input[1])
        if axes is None or np.size(axes) != 1:
            return False
        axis = int(np.ravel(axes)[0])
        kind = self.model.get_tensor_type(node.input[0])
        rank = len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None
        return axis == -1 or (rank is not None and axis == rank - 1)

    def _deviation(self, division, differences):
        """(e, nodes) of √(mean(d²) + e), where d is one of `differences`; None where the divisor is something else."""
        chain = []

        def step(name, op_type):
            node = self.producers.get(name)
            if node is None or node.op_type != op_type:
                return None
            chain.append(node)
            return node

        root = step(division.input[1], "Sqrt")
        total = step(root.input[0], "Add") if root is not None else None
        if total is None:
            return None
        mean = step(total.input[0], "ReduceMean")
        epsilon = self.constant(total.input[1])
        if mean is None:
            mean = step(total.input[1], "ReduceMean")
            epsilon = self.constant(total.input[0])
        if mean is None or epsilon is None or not 0 < epsilon <= 1e-4 or not self._is_over_last(mean):
            return None
        square = step(mean.input[0], "Pow") or step(mean.input[0], "Mul")
        if square is None:
            return None
        squared = self.constant(square.input[1]) == 2 if square.op_type == "Pow" else square.input[0] == square.input[1]
        source = square.input[0]
        cast = self.producers.get(source)
        if cast is not None and cast.op_type == "Cast":
            chain.append(cast)
            source = cast.input[0]
        return (epsilon, chain) if squared and source in differences else None
