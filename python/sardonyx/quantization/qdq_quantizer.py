"""Static quantisation by pairs of QuantizeLinear and DequantizeLinear: which tensors get one, with which parameters.

Three steps. Operators mark tensors (`qdq_operators.py`), marks become a plan, and `qdq_editor.py` writes the plan
into the graph.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from .base_quantizer import BaseQuantizer, scales_for_bias
from .formulas import normalize_axis
from .kernel_values import WITHIN, values_within_kernels
from .model_files import needs_contrib_ops
from .names import __producer__, __version__, ms_domain
from .plan import NodePlan, Plan, TensorPlan
from .qdq_editor import QDQEditor
from .quant_types import FLOAT8_TYPES, type_name
from .quant_utils import DEQUANT_OP_NAME, QUANT_OP_NAME, tensor_proto_to_array

logger = logging.getLogger("sardonyx")


@dataclass
class _Mark:
    """What an operator asked of a tensor."""

    is_weight: bool = False
    axis: int | None = None
    shares: tuple | None = None  # (tensor, node that reads it), whose parameters are also this one's


@dataclass
class _BiasMark:
    node: str
    input: str
    weight: str
    beta: float


class QDQQuantizer(BaseQuantizer):
    """Puts a QuantizeLinear and a DequantizeLinear after tensors that operators compute, and weights in their place.

    :param tensors_range: {tensor: TensorData} of all activations.
    """

    def __init__(self, model, per_channel, reduce_range, *arguments, **keywords):
        # Releases before 1.18 had `mode, static, weight_qType, …` in this place.
        if len(arguments) == 9:
            arguments = arguments[2:]
        for name in ("mode", "static"):
            keywords.pop(name, None)
        if "input_qType" in keywords:
            keywords["activation_qType"] = keywords.pop("input_qType")
        super().__init__(model, per_channel, reduce_range, *arguments, **keywords)
        option = self.extra_options.get
        self.op_types_to_exclude_output_quantization = option("OpTypesToExcludeOutputQuantization") or []
        self.add_qdq_pair_to_weight = option("AddQDQPairToWeight", False)
        self.quantize_bias = option("QuantizeBias", True)
        self.dedicated_qdq_pair = option("DedicatedQDQPair", False)
        self.qdq_op_type_per_channel_support_to_axis = option("QDQOpTypePerChannelSupportToAxis") or {}
        self.qdq_keep_removable_activations = option("QDQKeepRemovableActivations", False)
        self.qdq_disable_weight_adjust_for_int32_bias = option("QDQDisableWeightAdjustForInt32Bias", False)
        self.block_size = option("BlockSize") or 0
        self.qdq_op_domain = ms_domain if option("UseQDQContribOps", False) else None
        types = [self.activation_qType, self.weight_qType, *self.tensor_quant_override_qtypes]
        if not self.qdq_op_domain and needs_contrib_ops(self.opset_version, types):
            logger.warning(
                "ONNX has QuantizeLinear of 16 and 4 bits from opset 21 on, and this model is of opset %d: it gets "
                "those of %s.", self.opset_version, ms_domain
            )  # fmt: skip
            self.qdq_op_domain = ms_domain
        self.tensors_to_quantize: dict[str, _Mark] = {}
        self.bias_to_quantize: dict[str, _BiasMark] = {}
        self.quantization_params = self.activation_plans()
        self.within = values_within_kernels(self.index) if option("FloatWithinKernels", False) else set()
        self.receivers: dict[str, list] = {}  # {tensor: nodes that are quantised and read it}
        self.dequantized = {
            name: node for node in self.model.nodes() if node.op_type == DEQUANT_OP_NAME for name in node.output
        }

    # What operators call.

    def _mark(self, name: str, mark: _Mark) -> None:
        if name in self.within or (name in self.tensors_to_quantize and mark.shares is None):
            return
        if self.index.element_type(name) is None:
            logger.warning("the type of tensor '%s' can't be told, and it is not quantised", name)
        elif self.index.is_float(name):
            self.tensors_to_quantize[name] = mark

    def quantize_activation_tensor(self, tensor_name):
        self._mark(tensor_name, _Mark())

    def quantize_output_same_as_input(self, output_name, input_name, node_name):
        """Has an output use the scale and zero point of the tensor that a node reads."""
        self._mark(output_name, _Mark(shares=(input_name, node_name)))

    def quantize_weight_tensor(self, tensor_name):
        self._mark(tensor_name, _Mark(is_weight=True))

    def quantize_weight_tensor_per_channel(self, tensor_name, axis):
        if self.index.is_weight(tensor_name):
            self.tensors_to_quantize[tensor_name] = _Mark(is_weight=True, axis=axis)
        elif tensor_name not in self.initializers:
            logger.warning("tensor '%s' has no channels to quantise, as it is no weight", tensor_name)

    def quantize_bias_tensor(self, node_name, bias_name, input_name, weight_name, beta=1.0):
        """Has a bias of sums, times beta, stored as i32 at the scale input's · weight's."""
        if self.tensor_quant_overrides.get(bias_name):  # then it is like any weight
            per_channel, axis = self.is_tensor_per_channel(bias_name, default_axis=0)
            self._mark(bias_name, _Mark(is_weight=True, axis=axis if per_channel else None))
            return
        if not self.index.is_weight(bias_name):
            logger.warning("bias '%s' of node '%s' is not constant and stays float", bias_name, node_name)
            return
        if bias_name in self.bias_to_quantize:
            bias_name = self._own_bias(bias_name, node_name)
        self.bias_to_quantize[bias_name] = _BiasMark(node_name, input_name, weight_name, beta)

    def stores_bias_as_integers(self, bias_name) -> bool:
        overridden = bool(self.tensor_quant_overrides.get(bias_name))
        return self.quantize_bias and not overridden and self.weight_qType not in FLOAT8_TYPES

    def _own_bias(self, bias_name, node_name):
        """Another name for a bias that two nodes read, as each has its own scale for it."""
        name = f"{bias_name}{self.model.get_largest_initializer_name_suffix(bias_name) + 1}"
        copy = TensorProto()
        copy.CopyFrom(self.initializers[bias_name])
        copy.name = name
        self.model.initializer_extend([copy])
        self.initializers[name] = self.model.initializer()[-1]
        self.model.replace_input_of_nodes(bias_name, name, {node_name})
        return name

    def is_tensor_quantized(self, tensor_name) -> bool:
        return tensor_name in self.tensors_to_quantize or tensor_name in self.bias_to_quantize

    def is_tensor_per_channel(self, tensor_name, default_axis, op_type=None):
        """(whether a weight is quantised by channels, the axis of these)."""
        planned = self.given.tensors.get(tensor_name) if self.given is not None else None
        if planned is not None and planned.role == "weight":
            return planned.axis is not None, planned.axis
        if tensor_name not in self.initializers or self.tensor_quant_overrides.has_per_tensor_overrides(tensor_name):
            return False, None
        given = self.tensor_quant_overrides.has_per_channel_overrides(tensor_name)
        if not self.per_channel and not given:
            return False, None
        axis = self.qdq_op_type_per_channel_support_to_axis.get(op_type, default_axis)
        if given:
            axis = self.tensor_quant_overrides[tensor_name][0]["axis"]
        rank = len(self.initializers[tensor_name].dims)
        valid, front = normalize_axis(axis, rank)
        if not valid:
            if given:
                logger.warning("weight '%s' of rank %d has no axis %d and gets one scale", tensor_name, rank, axis)
            return False, None
        return True, front

    def try_removing(self, node) -> bool:
        """Removes a Relu or Clip where the least and the largest quantised number do its work."""
        source, result = node.input[0], node.output[0]
        plans = self.quantization_params
        removable = self.given is not None or (
            result in plans
            and source in plans
            and not plans[result].convert
            and not plans[source].convert
            and len(self.index.readers[source]) == 1
            and source not in self.index.outputs
            and source not in self.index.inputs
        )
        if removable:
            self.tensors_to_quantize.pop(source, None)
            reason = "the range of what it makes does its work"
            self.plan.nodes[node.name or result] = NodePlan("removed", reason)
        return removable

    # From marks to a plan.

    def make_plan(self) -> Plan:
        from .registry import CreateQDQQuantizer

        self.plan = self.new_plan("QDQ")
        for node in self.model.nodes():
            if not self.should_quantize_node(node):
                if node.op_type not in (QUANT_OP_NAME, DEQUANT_OP_NAME):
                    self.plan.nodes.setdefault(node.name or node.output[0], NodePlan("float", self._reason(node)))
                continue
            CreateQDQQuantizer(self, node).quantize()
            self.plan.nodes.setdefault(
                node.name or node.output[0], NodePlan(type_name(self.activation_qType).lower())
            )
            for name in node.input:
                self.receivers.setdefault(name, []).append(node)
        if self.within:
            self._release_inner_nodes()
        tensors = self.plan.tensors
        for name, mark in self.tensors_to_quantize.items():
            if name in self.initializers:
                tensors[name] = self._weight_plan(name, mark)
        self._raise_scales_for_biases()
        for name, mark in self.tensors_to_quantize.items():
            if name not in tensors and not mark.shares and name not in self.dequantized:
                tensors[name] = self._activation(name)
        for name, mark in self.tensors_to_quantize.items():
            if mark.shares and name not in tensors:
                tensors[name] = self._sharing(name, mark)
        if self.quantize_bias:
            for name, bias in self.bias_to_quantize.items():
                if name not in tensors:
                    tensors[name] = self._bias_plan(name, bias)
        order = [*self.tensors_to_quantize, *self.bias_to_quantize]
        self.plan.tensors = {name: tensors[name] for name in order if name in tensors}
        return self.plan

    def _release_inner_nodes(self) -> None:
        """Nodes all of whose values stay float are float, too."""
        for node in self.model.nodes():
            values = [name for name in (*node.input, *node.output) if name]
            entry = self.plan.nodes.get(node.name or node.output[0])
            chosen = entry is not None and entry.precision not in ("float", "removed")
            inside = chosen and any(name in self.within for name in values)
            if inside and not any(self.is_tensor_quantized(name) for name in values):
                entry.precision, entry.reason = "float", WITHIN

    def _reason(self, node) -> str:
        if node.op_type not in self.op_types_to_quantize:
            return f"{node.op_type} is not among the operators to quantise"
        return "left out by name"

    def _weight_plan(self, name, mark) -> TensorPlan:
        # Operators of integers take one zero point for all channels, which is that of symmetric ranges.
        kind = self.weight_qType if mark.is_weight else self.activation_qType
        overridden = self.tensor_quant_overrides.get(name)
        kind = overridden[0].get("quant_type", kind) if overridden else kind
        kind = getattr(kind, "tensor_type", kind)
        by_channel = mark.axis is not None or bool(self.tensor_quant_overrides.has_per_channel_overrides(name))
        symmetric = by_channel or (self.is_weight_symmetric(kind) if mark.is_weight else self.is_activation_symmetric)
        block_size = self.block_size if mark.is_weight else 0
        return self.weight_plan(name, kind, mark.axis, symmetric, self.reduce_range, block_size)

    def _activation(self, name) -> TensorPlan:
        if name not in self.quantization_params:
            raise ValueError(
                f"Quantization parameters are not specified for param {name}: no sample of the calibration reached "
                "this tensor. Static quantisation needs the range of every tensor that a quantised node reads or makes."
            )
        return self.quantization_params[name]

    def _sharing(self, name, mark) -> TensorPlan:
        if name in self.dequantized:
            raise ValueError(f"tensor '{name}' is quantised already and can't take the scale of '{mark.shares[0]}'")
        own = self.quantization_params.get(name)
        return TensorPlan(
            "activation", shares=mark.shares,
            convert=own.convert if own else None, convert_nodes=own.convert_nodes if own else None,
        )  # fmt: skip

    def _scale_of(self, name, node) -> np.ndarray | None:
        """The scale of what a node reads; None where it is not known."""
        seen = set()
        while name not in seen:
            seen.add(name)
            if name in self.dequantized:
                scale = self.initializers.get(self.dequantized[name].input[1])
                return None if scale is None else tensor_proto_to_array(scale)
            plan = self.plan.tensors.get(name)
            if plan is None:
                break
            read = plan.for_consumer(node)
            if read.shares is None:
                return read.scale
            name, node = read.shares
        # While weights' scales are raised, activations have no plan yet.
        mark = self.tensors_to_quantize.get(name)
        if mark is not None and mark.shares:
            return self._scale_of(*mark.shares)
        return self.quantization_params[name].for_consumer(node).scale if name in self.quantization_params else None

    def _raise_scales_for_biases(self) -> None:
        if self.qdq_disable_weight_adjust_for_int32_bias:
            return
        for name, mark in self.bias_to_quantize.items():
            weight = self.plan.tensors.get(mark.weight)
            adjustable = (
                weight is not None
                and mark.input in self.tensors_to_quantize
                and weight.type in (TensorProto.INT8, TensorProto.INT16)
                and not weight.zero_point.astype(np.int32).any()
                and not weight.block
            )
            scale = self._scale_of(mark.input, mark.node) if adjustable else None
            if scale is not None:
                values = tensor_proto_to_array(self.initializers[name]) * mark.beta
                raised = scales_for_bias(values, scale, weight.scale)
                if raised is not None:
                    logger.info("the scale of weight '%s' is raised so that bias '%s' fits i32", mark.weight, name)
                    weight.scale = raised

    def _bias_plan(self, name, mark) -> TensorPlan:
        plan = TensorPlan("bias", TensorProto.INT32, node=mark.node, input=mark.input, weight=mark.weight, beta=mark.beta)
        if self.weight_qType in FLOAT8_TYPES:  # then it stays float
            plan.type = TensorProto.FLOAT
            return plan
        scales = []
        for source in (mark.input, mark.weight):
            scale = self._scale_of(source, mark.node)
            if scale is None:
                raise ValueError(f"bias '{name}' can't be quantised: '{source}' of node '{mark.node}' has no scale")
            scales.append(scale)
        bias = tensor_proto_to_array(self.initializers[name])
        plan.scale = np.asarray(scales[0] * scales[1], bias.dtype)
        if 1 < plan.scale.size < bias.size:  # a ConvTranspose's groups share the scales of a group's channels
            plan.scale = np.tile(plan.scale, bias.size // plan.scale.size)
        plan.axis = 0 if plan.scale.size > 1 else None
        return plan

    # From a plan to a graph.

    def quantize_model(self) -> onnx.ModelProto:
        plan = self.make_plan()
        QDQEditor(self.model.model, plan, self.receivers, self).apply()
        if not self.add_qdq_pair_to_weight:
            self.model.clean_initializers()
        self.model.model.producer_name, self.model.model.producer_version = __producer__, __version__
        if self.qdq_op_domain == ms_domain:
            self.model.set_opset_import(ms_domain, 1)
        return self.model.model
