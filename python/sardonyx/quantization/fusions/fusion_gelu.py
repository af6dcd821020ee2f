"""x · 0.5 · (1 + erf(x / √2)) as com.microsoft's Gelu, in whatever order its three factors are multiplied."""

from __future__ import annotations

from ..names import ms_domain
from .fusion import Fusion


class FusionGelu(Fusion):
    def __init__(self, model):
        super().__init__(model, "Gelu", "Erf")

    def fuse(self, node, input_name_to_nodes, output_name_to_node):
        scaled = output_name_to_node.get(node.input[0])
        root = self._root(scaled)
        plus = self.only_reader(node.output[0], "Add")
        if root is None or plus is None or self.constant(self.other_input(plus, node.output[0])) != 1:
            return
        first = self.only_reader(plus.output[0], "Mul")
        if first is None:
            return
        chain = [scaled, node, plus, first]
        factor = self.other_input(first, plus.output[0])
        before = output_name_to_node.get(factor)
        if before is not None and before.op_type == "Mul" and root in before.input:  # (x · 0.5) · sum
            if self.constant(self.other_input(before, root)) != 0.5:
                return
            chain.append(before)
            result = first.output[0]
        else:  # (sum · 0.5) · x, or (sum · x) · 0.5
            second = self.only_reader(first.output[0], "Mul")
            if second is None:
                return
            last = self.other_input(second, first.output[0])
            halves = self.constant(factor) == 0.5 and last == root
            if not halves and not (factor == root and self.constant(last) == 0.5):
                return
            chain.append(second)
            result = second.output[0]
        if self.replace(chain, [root], result, ms_domain):
            self.model.set_opset_import(ms_domain, 1)

    def _root(self, scaled):
        """x of x / √2 or x · √½."""
        if scaled is None or scaled.op_type not in ("Div", "Mul"):
            return None
        pairs = [(scaled.input[0], scaled.input[1])]
        if scaled.op_type == "Mul":
            pairs.append((scaled.input[1], scaled.input[0]))
        wanted = 2**0.5 if scaled.op_type == "Div" else 0.5**0.5
        for root, factor in pairs:
            value = self.constant(factor)
            if value is not None and abs(value - wanted) < 1e-3:
                return root
        return None
