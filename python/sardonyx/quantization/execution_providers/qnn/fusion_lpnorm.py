"""x / max(‖x‖₂, e) over the last axis as LpNormalization."""

from __future__ import annotations

import numpy as np

from ...fusions import Fusion


class FusionLpNormalization(Fusion):
    def __init__(self, model, epsilon: float = 1e-12):
        super().__init__(model, "LpNormalization", "ReduceL2")
        self.epsilon = epsilon

    def fuse(self, node, input_name_to_nodes, output_name_to_node):
        root = node.input[0]
        clip = self.only_reader(node.output[0], "Clip")
        expand = self.only_reader(clip.output[0], "Expand") if clip is not None else None
        division = self.only_reader(expand.output[0], "Div") if expand is not None else None
        if division is None or list(division.input) != [root, expand.output[0]]:
            return
        if self.get_node_attribute(node, "keepdims") == 0 or not self._is_over_last(node):
            return
        least, largest = (self._limit(clip, name, place) for name, place in (("min", 1), ("max", 2)))
        if largest is None and least is not None and abs(least - self.epsilon) < 1e-13:
            self.replace([node, clip, expand, division], [root], division.output[0], p=2, axis=-1)

    def _limit(self, clip, name, place):
        value = self.get_node_attribute(clip, name)
        if value is None and len(clip.input) > place and clip.input[place]:
            value = self.model.get_constant_value(clip.input[place])
        return None if value is None else float(np.squeeze(value))

    def _is_over_last(self, node) -> bool:
        axes = self.get_node_attribute(node, "axes")
        if axes is None and len(node.input) > 1:
            axes = self.model.get_constant_value(node.input[1])
        kind = self.model.get_tensor_type(node.input[0])
        if axes is None or np.size(axes) != 1 or kind is None:
            return False
        return int(np.ravel(axes)[0]) in (-1, len(kind.shape.dim) - 1)
