"""A configuration of static quantisation for Qualcomm's QNN, which wants certain types and scales."""

from __future__ import annotations

import copy
import logging

import numpy as np
from onnx import ModelProto, external_data_helper

from ...calibrate import CalibrationMethod
from ...configs import StaticQuantConfig
from ...model_files import MODEL_SIZE_THRESHOLD, get_opset_version, load_model, needs_contrib_ops
from ...quant_types import QuantType
from ...tensor_quant_overrides import TensorQuantOverridesHelper
from .mixed_precision_overrides_utils import MixedPrecisionTensorQuantOverridesFixer

logger = logging.getLogger("sardonyx")

_BYTES = (QuantType.QInt8, QuantType.QUInt8)
_WORDS = (QuantType.QInt16, QuantType.QUInt16)
# Scales and zero points of what these operators make in 16 bits.
_FIXED = {
    ("Sigmoid", QuantType.QUInt16): (1 / 65536, np.uint16(0)),
    ("Sigmoid", QuantType.QInt16): (1 / 32768, np.int16(0)),
    ("Tanh", QuantType.QUInt16): (1 / 32768, np.uint16(32768)),
    ("Tanh", QuantType.QInt16): (1 / 32768, np.int16(0)),
}


def get_qnn_qdq_config(
    model_input, calibration_data_reader, calibrate_method=CalibrationMethod.MinMax, activation_type=QuantType.QUInt8,
    weight_type=QuantType.QUInt8, per_channel=False, init_overrides=None, add_qtype_converts=True,
    activation_symmetric=False, weight_symmetric=None, keep_removable_activations=False, stride=None,
    calibration_providers=None, op_types_to_quantize=None, nodes_to_exclude=None,
) -> StaticQuantConfig:  # fmt: skip
    """A StaticQuantConfig of all operators but Cast.

    `init_overrides` are TensorQuantOverrides, of which a copy is completed: with `add_qtype_converts` by conversions
    around tensors of other types, by bytes for weights beside activations of 16 bits, and by QNN's own scales of
    Sigmoid and Tanh in 16 bits. Other arguments are those of `quantize_static`.
    """
    if weight_symmetric is None:
        weight_symmetric = weight_type in (QuantType.QInt8, QuantType.QInt16)
    model = model_input if isinstance(model_input, ModelProto) else load_model(model_input, external_data=False)
    overrides = TensorQuantOverridesHelper(copy.deepcopy(init_overrides or {}))
    if not overrides.empty() and add_qtype_converts:
        fixer = MixedPrecisionTensorQuantOverridesFixer.create_from_model(overrides, model, activation_type)
        fixer.apply(activation_type, activation_symmetric)
    weights = {tensor.name for tensor in model.graph.initializer}
    op_types = set()
    for node in model.graph.node:
        listed = not op_types_to_quantize or node.op_type in op_types_to_quantize
        if not listed or node.name in (nodes_to_exclude or ()):
            continue
        op_types.add(node.op_type)
        if node.op_type in ("Sigmoid", "Tanh"):
            _fix_scale(node, overrides, activation_type)
        elif node.op_type == "MatMul" and per_channel:
            for name in node.input:
                if name in weights and name not in overrides:
                    overrides[name] = [{"quant_type": weight_type, "symmetric": weight_symmetric}]
        elif node.op_type in ("MatMul", "LayerNormalization") and not per_channel and weight_type in _BYTES:
            _use_bytes_for_weight(node, overrides, weights, activation_type, weight_type, weight_symmetric)
    options = {
        "MinimumRealRange": 0.0001,
        "DedicatedQDQPair": False,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "TensorQuantOverrides": overrides.get_dict(),
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "CalibStridedMinMax": stride,
    }
    if needs_contrib_ops(get_opset_version(model), [activation_type, weight_type, *overrides.get_quant_types()]):
        options["UseQDQContribOps"] = True
    external = any(external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method=calibrate_method,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=op_types_to_quantize or sorted(op_types - {"Cast"}),
        nodes_to_exclude=nodes_to_exclude,
        per_channel=per_channel,
        use_external_data_format=external or model.ByteSize() >= MODEL_SIZE_THRESHOLD,
        calibration_providers=calibration_providers,
        extra_options=options,
    )


def _fix_scale(node, overrides, activation_type) -> None:
    kind = overrides.get_node_output_qtype_info(node.output[0], activation_type).quant_type
    if (node.op_type, kind) in _FIXED:
        scale, zero = _FIXED[node.op_type, kind]
        values = {"quant_type": kind, "scale": np.array(scale, np.float32), "zero_point": np.array(zero)}
        overrides.update_tensor_overrides(node.output[0], values)


def _use_bytes_for_weight(node, overrides, weights, activation_type, weight_type, symmetric) -> None:
    """Has a weight stored in bytes beside an activation of 16 bits, where it would be of the activation's type."""
    wide, weight = False, None
    for name in [each for each in node.input[:2] if each]:
        is_weight = name in weights
        info = overrides.get_node_input_qtype_info(name, node.name, None if is_weight else activation_type)
        if info.axis is not None or (is_weight and info.quant_type == weight_type and info.symmetric == symmetric):
            return
        if is_weight:
            weight = name
        else:
            wide = wide or info.quant_type in _WORDS
    if wide and weight is not None:
        values = {"quant_type": weight_type, "symmetric": symmetric}
        if not overrides.update_tensor_overrides(weight, values, overwrite=False):
            logger.warning("weight '%s' of '%s' keeps the type that its overrides name", weight, node.name)
