"""What quantisers of either form share: options, ranges, and the parameters that follow from them."""

from __future__ import annotations

import logging

import numpy as np
from onnx import TensorProto

from .formulas import (
    axis_parameters,
    compute_data_quant_params,
    compute_scale_zp,
    compute_scale_zp_blocked,
    compute_scale_zp_float8,
    normalize_axis,
    snap_zero_point_to_uint8,
)
from .graph_index import GraphIndex
from .model_files import (
    get_opset_version,
    model_has_infer_metadata,
    save_and_reload_model_with_shape_infer,
    tensor_proto_to_array,
)
from .onnx_model import ONNXModel
from .plan import Plan, TensorPlan
from .quant_types import (
    FLOAT8_TYPES,
    ONNX_TYPE_TO_NP_TYPE,
    SIGNED_TYPES,
    as_tensor_type,
    get_qmin_qmax_for_qType,
    type_name,
)
from .quant_utils import DEQUANT_OP_NAME, QUANT_OP_NAME
from .tensor_data import TensorData
from .tensor_quant_overrides import TensorQuantOverridesHelper

logger = logging.getLogger("sardonyx")

# Options that say how a graph is written, beside what each tensor becomes.
GRAPH_OPTIONS = (
    "AddQDQPairToWeight", "BlockSize", "DedicatedQDQPair", "DefaultTensorType", "EnableSubgraph",
    "FloatWithinKernels", "ForceQuantizeNoInputCheck", "MatMulConstBOnly", "OpTypesToExcludeOutputQuantization", "QuantizeBias",
    "QDQKeepRemovableActivations", "UseQDQContribOps", "ActivationSymmetric",
)  # fmt: skip


class QuantizationParams:
    """A scale, zero point and type by their names, as onnxruntime's tools hold them."""

    def __init__(self, **data):
        self.data = data

    def get(self, key, default_value=None):
        return self.data.get(key, default_value)

    def __iter__(self):
        yield from self.data

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        self.data[key] = value

    def __len__(self):
        return len(self.data)


class BaseQuantizer:
    """Options and ranges of a quantisation of one model; `quantize_model` of a subclass edits that model.

    :param tensors_range: {tensor: TensorData}, or None where scales are computed at run time.
    :param nodes_to_quantize: names of nodes; none means all of `op_types_to_quantize`.
    :param given: a Plan that decides in the place of ranges, operators and names.
    """

    def __init__(
        self, model, per_channel, reduce_range, weight_qType, activation_qType, tensors_range, nodes_to_quantize,  # noqa: N803
        nodes_to_exclude, op_types_to_quantize, extra_options=None, given=None,
    ):  # fmt: skip
        self.given = given
        if not model_has_infer_metadata(model):
            model = save_and_reload_model_with_shape_infer(model)
        self.set_model(model)
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.extra_options = extra_options or {}
        option = self.extra_options.get
        self.enable_subgraph_quantization = bool(option("EnableSubgraph", False))
        self.force_quantize_no_input_check = bool(option("ForceQuantizeNoInputCheck", False))
        self._is_weight_symmetric = option("WeightSymmetric")
        self.is_activation_symmetric = option("ActivationSymmetric", False)
        self.is_activation_restricted_asymmetric = option("ActivationRestrictedAsymmetric", False)
        self.min_real_range = option("MinimumRealRange")
        self.activation_qType = as_tensor_type(activation_qType)
        self.weight_qType = as_tensor_type(weight_qType)
        self.parent = None
        if tensors_range is not None:
            for name in tensors_range:
                if not isinstance(tensors_range[name], TensorData):
                    kind = type(tensors_range[name]).__name__
                    raise TypeError(f"the range of tensor '{name}' is of type {kind}; it must be a TensorData")
            tensors_range = {name: tensors_range[name] for name in tensors_range}  # its entries are changed below
        self.tensors_range = tensors_range
        self.nodes_to_quantize = nodes_to_quantize
        self.nodes_to_exclude = nodes_to_exclude
        self.op_types_to_quantize = op_types_to_quantize
        self.tensor_quant_overrides = TensorQuantOverridesHelper(option("TensorQuantOverrides") or {})
        valid, sentence = self.tensor_quant_overrides.is_valid(
            self.initializers, self.value_infos.keys(), activation_qType
        )
        if not valid:
            raise ValueError(sentence)
        self.tensor_quant_override_qtypes = self.tensor_quant_overrides.get_quant_types()
        self.plan = Plan()

    def new_plan(self, form: str) -> Plan:
        """A plan without tensors and nodes, whose settings are those of this quantiser."""
        options = {name: value for name, value in self.extra_options.items() if name in GRAPH_OPTIONS}
        return Plan(form, settings={
            "activation_type": type_name(self.activation_qType),
            "weight_type": type_name(self.weight_qType),
            "per_channel": bool(self.per_channel),
            "options": options,
        })  # fmt: skip

    def set_model(self, model) -> None:
        self.model = ONNXModel(model)
        self.opset_version = get_opset_version(model)
        self.index = GraphIndex(model.graph)
        self.value_infos, self.initializers = self.index.values, self.index.initializers

    def is_weight_symmetric(self, weight_quant_type) -> bool:
        """What WeightSymmetric says, or else whether the type is signed."""
        return weight_quant_type in SIGNED_TYPES if self._is_weight_symmetric is None else self._is_weight_symmetric

    def is_input_a_initializer(self, input_name) -> bool:
        return input_name in self.initializers

    def is_per_channel(self) -> bool:
        return self.per_channel

    def is_valid_quantize_weight(self, weight_name) -> bool:
        """Whether a name is a weight of floats, of this graph or of one around it."""
        if weight_name in self.initializers:
            return self.index.is_weight(weight_name)
        if self.enable_subgraph_quantization and self.parent is not None:
            return self.parent.is_valid_quantize_weight(weight_name)
        return False

    def should_quantize_node(self, node) -> bool:
        if self.given is not None:
            decision = self.given.nodes.get(node.name or node.output[0])
            return decision is not None and decision.precision != "float"
        if self.nodes_to_quantize and node.name not in self.nodes_to_quantize:
            return False
        if node.op_type not in self.op_types_to_quantize or node.op_type in (DEQUANT_OP_NAME, QUANT_OP_NAME):
            return False
        return not self.nodes_to_exclude or node.name not in self.nodes_to_exclude

    def adjust_tensor_ranges(self) -> None:
        """Gives what Clip and Relu read the range of what they make, and what Softmax makes the range 0 to 1."""
        for node in self.model.nodes():
            if node.op_type not in ("Clip", "Relu", "Softmax") or not self.should_quantize_node(node):
                continue
            source, result = node.input[0], node.output[0]
            if node.op_type == "Softmax":
                self.tensors_range[result] = TensorData(lowest=np.float32(0), highest=np.float32(1))
            elif len(self.index.readers[source]) == 1 and source in self.tensors_range and result in self.tensors_range:
                self.tensors_range[source] = self.tensors_range[result]

    def activation_plan(self, name: str, data: TensorData, overrides: dict) -> TensorPlan:
        """Scale and zero point of an activation, from its range or from what overrides say."""
        kind = as_tensor_type(overrides.get("quant_type", self.activation_qType))
        if "scale" in overrides and "zero_point" in overrides:
            scale = np.asarray(overrides["scale"])
            scale = scale if scale.dtype in (np.float32, np.float16) else scale.astype(np.float32)
            zero = np.asarray(overrides["zero_point"]).astype(ONNX_TYPE_TO_NP_TYPE[kind])
        elif kind in FLOAT8_TYPES:
            zero, scale = compute_scale_zp_float8(kind, data.avg_std[1])
        else:
            symmetric = overrides.get("symmetric", self.is_activation_symmetric)
            qmin, qmax = get_qmin_qmax_for_qType(kind, overrides.get("reduce_range", False), symmetric=symmetric)
            low, high = (np.asarray(end) for end in self._range_of(name, data, overrides))
            if self.is_activation_restricted_asymmetric and kind == TensorProto.UINT8 and not symmetric:
                zero, scale = snap_zero_point_to_uint8(low, high, qmin, qmax, self.min_real_range)
            else:
                zero, scale = compute_scale_zp(low, high, qmin, qmax, symmetric, self.min_real_range)
        return TensorPlan("activation", kind, np.squeeze(scale), np.squeeze(zero))

    @staticmethod
    def _range_of(name, data, overrides):
        ends = []
        for key, attribute in (("rmin", "lowest"), ("rmax", "highest")):
            end = overrides.get(key)
            end = getattr(data, attribute, None) if end is None else end
            if end is None:
                raise ValueError(f"tensor '{name}' has no range: its TensorData has no '{attribute}'")
            kind = getattr(getattr(data, attribute, end), "dtype", None)
            end = np.asarray(end, kind if kind in (np.float32, np.float16) else np.float32)
            if end.size != 1:
                raise ValueError(f"tensor '{name}' has {end.size} ranges, of channels; activations take one for the whole")
            ends.append(end)
        return ends

    def activation_plans(self) -> dict:
        """A plan for each tensor that has a range, as {tensor: TensorPlan}."""
        if self.given is not None:
            plans = self.given.tensors.items()
            return {name: plan for name, plan in plans if plan.role == "activation" and plan.scale is not None}
        if self.tensors_range is None:
            return {}
        self.adjust_tensor_ranges()
        plans = {}
        for name, data in self.tensors_range.items():
            overrides = self.tensor_quant_overrides.get_per_tensor_overrides(name, default_val={}) or {}
            plans[name] = self.activation_plan(name, data, overrides)
            if "convert" in overrides:
                plans[name].convert = self.activation_plan(name, data, overrides["convert"])
                plans[name].convert_nodes = overrides["convert"].get("recv_nodes")
        return plans

    def weight_plan(self, name: str, kind: int, axis, symmetric: bool, reduce_range: bool, block_size=0) -> TensorPlan:
        """Scale and zero point of a weight: for the whole (`axis` None), its channels or its blocks along `axis`.

        `kind`, `axis`, `symmetric` and `reduce_range` are defaults, over which TensorQuantOverrides go.
        """
        planned = self.given.tensors.get(name) if self.given is not None else None
        if planned is not None and planned.role == "weight" and planned.scale is not None:
            return planned
        values = tensor_proto_to_array(self.initializers[name])
        overrides = self.tensor_quant_overrides.get(name) or [{}]
        first = overrides[0]
        kind = as_tensor_type(first.get("quant_type", kind))
        axis = first.get("axis", axis)
        if axis is not None:
            valid, front = normalize_axis(axis, values.ndim)
            if not valid:
                raise ValueError(f"weight '{name}' of rank {values.ndim} has no axis {axis} to quantise along")
            axis = front
        if self.tensor_quant_overrides.overrides_scale_zp(name):
            scales, zeros = ([entry[key] for entry in overrides] for key in ("scale", "zero_point"))
            scale = np.array(scales if axis is not None else scales[0], values.dtype)
            zero = np.array(zeros if axis is not None else zeros[0]).astype(ONNX_TYPE_TO_NP_TYPE[kind])
            if axis is not None and len(scale) == 1:
                scale, zero = np.repeat(scale, values.shape[axis]), np.repeat(zero, values.shape[axis])
            return TensorPlan("weight", kind, scale, zero, axis)
        symmetric = first.get("symmetric", symmetric)
        reduce_range = first.get("reduce_range", reduce_range)
        if block_size:
            axis = 0 if axis is None else axis
            zero, scale = compute_scale_zp_blocked(values, kind, axis, block_size, symmetric)
        elif axis is None:
            zero, scale = compute_data_quant_params(
                values, kind, symmetric, reduce_range, self.min_real_range, first.get("rmin"), first.get("rmax")
            )
        else:
            ranges = [(entry.get("rmin"), entry.get("rmax")) for entry in overrides]
            zero, scale = axis_parameters(values, axis, kind, symmetric, reduce_range, self.min_real_range, ranges)
        return TensorPlan("weight", kind, scale, zero, axis, block_size)


_BIAS_STEPS = float(np.iinfo(np.int32).max) - float(np.iinfo(np.int32).min + 1)


def scales_for_bias(bias: np.ndarray, input_scale, weight_scale: np.ndarray):
    """Weight's scales raised where bias / (input's scale · weight's scale) would leave the range of i32; None: nowhere.

    `weight_scale` is one scale, or one for each of the bias' numbers.
    """
    largest = np.abs(bias.astype(np.float64)).ravel()
    if weight_scale.size == 1:
        largest = largest.max(initial=0.0)
    elif largest.size == 1:
        largest = np.repeat(largest, weight_scale.size)
    elif largest.size != weight_scale.size:
        return None
    least = 1.0001 * 2 * largest.reshape(weight_scale.shape) / _BIAS_STEPS
    scale = float(np.asarray(input_scale).item()) * weight_scale.astype(np.float64)
    small = (scale < least) & (scale > 0)
    if not small.any():
        return None
    raised = weight_scale.astype(np.float64) * np.where(small, least / np.where(scale > 0, scale, 1), 1)
    return np.where(small, raised, weight_scale).astype(weight_scale.dtype)


def quantized_bias(name: str, bias: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """bias / scale as i32. `scale` is one number, or one for each of the bias'."""
    rounded = np.rint(bias.astype(np.float64) / np.asarray(scale, np.float64).reshape(-1 if np.ndim(scale) else ()))
    limits = np.iinfo(np.int32)
    if np.any(rounded < limits.min) or np.any(rounded > limits.max):
        logger.warning("bias '%s' leaves the range of i32 at its scale and is clipped", name)
    return np.clip(rounded, limits.min, limits.max).astype(np.int32)
