"""Precisions in which every node is by itself: bytes with the ranges of each run, weights of 4 bits, floats of 16 bits."""

from __future__ import annotations

from onnx import TensorProto

from ..calibrate import CalibrationMethod
from ..float16 import DEFAULT_OP_BLOCK_LIST, convert_precision
from ..grafts import node_errors
from ..half_ranges import out_of_range
from ..matmul_nbits_quantizer import MatMulNBitsQuantizer, config_of
from ..model_files import copy_of, infer_types, name_nodes
from ..onnx_model import remove_unused_initializers
from ..options import check_nodes
from ..plan import NodePlan, Plan
from ..quant_types import QuantType
from ..quantize import quantize_dynamic
from ..shape_inference import quant_pre_process
from .regions import PRODUCTS, Region

PRECISIONS = ("int8", "int8-dynamic", "int4", "f16", "bf16")
_BLOCK = 32  # numbers of weights of 4 bits that share a scale


class Nodewise:
    """A model of which some nodes stay float, and what the others make of it. See `regions.Int8Quantization`."""

    name = ""

    def __init__(self, model, samples, keep_float=None):
        self.model = quant_pre_process(model)
        name_nodes(self.model)
        self.samples = samples
        kept = check_nodes(keep_float, self.model, "keep_float")
        self.fixed = {**self.fixed_nodes(), **dict.fromkeys(kept, "keep_float")}

    def fixed_nodes(self) -> dict:
        return {}

    def candidates(self) -> list:
        return [node.name for node in self.model.graph.node if node.op_type in PRODUCTS]

    def made(self, floats):
        raise NotImplementedError

    def quantized(self, floats):
        """(model, plan) with the nodes of {node: reason} in float."""
        model = self.made(sorted(floats))
        changed = self.changed_nodes(model)
        plan = Plan(self.name, settings={"precision": self.name})
        for name in self.candidates():
            plan.nodes[name] = NodePlan(self.name if name in changed else "float", floats.get(name, ""))
        return model, plan

    def changed_nodes(self, model) -> set:
        """Names of nodes whose results another model computes otherwise."""
        after = {name: node for node in model.graph.node for name in node.output}
        return {node.name for node in self.model.graph.node if node.output and after.get(node.output[0]) != node}

    def regions(self, plan) -> list[Region]:
        changed = [name for name, node in plan.nodes.items() if node.precision != "float"]
        errors = node_errors(self.model, self.made(sorted(self.fixed)), changed, self.samples)
        found = [Region([name], frozenset([name]), errors.get(name, 0.0)) for name in changed]
        return sorted(found, key=lambda region: -region.error)


class Dynamic(Nodewise):
    name = "int8-dynamic"

    def made(self, floats):
        return quantize_dynamic(
            self.model, None, per_channel=True, weight_type=QuantType.QInt8, nodes_to_exclude=floats,
            op_types_to_quantize=["Conv", "MatMul", "Gemm"],
        )  # fmt: skip


class FewBits(Nodewise):
    """Weights are rounded once, by GPTQ; nodes that stay float have theirs back."""

    name = "int4"

    def candidates(self):
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return [node.name for node in self.model.graph.node if node.op_type == "MatMul" and node.input[1] in weights]

    def __init__(self, *given):
        super().__init__(*given)
        config = config_of("gptq", 4, _BLOCK, False, samples=iter(self.samples))
        quantizer = MatMulNBitsQuantizer(copy_of(self.model), 4, _BLOCK, False, algo_config=config)
        quantizer.process()
        self.whole = quantizer.model.model

    def made(self, floats):
        model = copy_of(self.whole)
        before = {node.output[0]: node for node in self.model.graph.node if node.name in set(floats)}
        held = {tensor.name for tensor in model.graph.initializer}
        weights = {tensor.name: tensor for tensor in self.model.graph.initializer}
        for node in model.graph.node:
            old = before.get(node.output[0])
            if old is not None and node != old:
                node.CopyFrom(old)
                model.graph.initializer.extend(weights[name] for name in old.input if name in weights and name not in held)
                held.update(old.input)
        remove_unused_initializers(model.graph)
        return model


class Halves(Nodewise):
    """Floats of 16 bits. Nodes whose numbers leave the range of f16 stay f32, or are bf16 in "halves"."""

    def __init__(self, model, samples, keep_float=None, to="f16"):
        self.name = to
        super().__init__(model, samples, keep_float)
        named = {value.name: value.type.tensor_type.elem_type for value in infer_types(copy_of(self.model)).graph.value_info}
        named.update({value.name: value.type.tensor_type.elem_type for value in self.model.graph.output})
        self.kinds = named

    def fixed_nodes(self):
        return out_of_range(self.model, self.samples) if self.name == "f16" else {}

    def candidates(self):
        return [
            node.name for node in self.model.graph.node
            if node.op_type not in DEFAULT_OP_BLOCK_LIST and node.output and self.kinds.get(node.output[0]) == TensorProto.FLOAT
        ]  # fmt: skip

    def changed_nodes(self, model) -> set:
        after = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
        makers = {name: node for node in model.graph.node for name in node.output}
        found = set()
        for node in self.model.graph.node:
            maker = makers.get(node.output[0])
            cast = maker is not None and maker.op_type == "Cast" and node.op_type != "Cast"
            if cast or after.get(node.output[0], TensorProto.FLOAT) != TensorProto.FLOAT:
                found.add(node.name)
        return found

    def made(self, floats):
        if self.name == "halves":
            return convert_precision(self.model, "auto", True, node_block_list=floats, data=self.samples)
        return convert_precision(self.model, self.name, True, node_block_list=floats)


def precision_of(name, model, samples, keep_float, calibration=None, correct=False, options=None):
    """What makes models of a precision by its name. The last three are those of int8."""
    from .regions import Int8Quantization

    if name in ("f16", "bf16", "halves"):
        return Halves(model, samples, keep_float, name)
    if name == "int8":
        return Int8Quantization(
            model, samples, keep_float, True, calibration or CalibrationMethod.MinMax, correct, options
        )
    return {"int8-dynamic": Dynamic, "int4": FewBits}[name](model, samples, keep_float)
