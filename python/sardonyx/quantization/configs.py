"""Configurations of quantisation: arguments of `quantize_static` and `quantize_dynamic` as objects."""

from __future__ import annotations

import copy

from onnx import ModelProto, external_data_helper

from .calibrate import CalibrationMethod
from .model_files import MODEL_SIZE_THRESHOLD, get_opset_version, load_model, needed_opset, needs_contrib_ops
from .quant_types import QuantFormat, QuantType
from .tensor_quant_overrides import TensorQuantOverridesHelper

# Arguments of calibraters, and the `extra_options` that stand for them.
CALIBRATION_OPTIONS = {
    "symmetric": "CalibTensorRangeSymmetric",
    "moving_average": "CalibMovingAverage",
    "averaging_constant": "CalibMovingAverageConstant",
    "max_intermediate_outputs": "CalibMaxIntermediateOutputs",
    "percentile": "CalibPercentile",
}
HISTOGRAM_OPTIONS = ("num_bins", "num_quantized_bins", "scenario")  # which have the same names there


class QuantConfig:
    """What both configurations have; see `quantize_static` for the arguments."""

    def __init__(
        self, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=None,
        nodes_to_quantize=None, nodes_to_exclude=None, per_channel=False, reduce_range=False,
        use_external_data_format=False,
    ):  # fmt: skip
        self.activation_type = activation_type
        self.weight_type = weight_type
        self.op_types_to_quantize = op_types_to_quantize or []
        self.nodes_to_quantize = nodes_to_quantize or []
        self.nodes_to_exclude = nodes_to_exclude or []
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format


class StaticQuantConfig(QuantConfig):
    """Arguments of `quantize_static`."""

    def __init__(
        self, calibration_data_reader, calibrate_method=CalibrationMethod.MinMax, quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8, op_types_to_quantize=None,
        nodes_to_quantize=None, nodes_to_exclude=None, per_channel=False, reduce_range=False,
        use_external_data_format=False, calibration_providers=None, extra_options=None,
    ):  # fmt: skip
        super().__init__(
            activation_type, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
            reduce_range, use_external_data_format,
        )  # fmt: skip
        self.calibration_data_reader = calibration_data_reader
        self.calibrate_method = calibrate_method
        self.quant_format = quant_format
        self.calibration_providers = calibration_providers
        self.extra_options = extra_options or {}


class DynamicQuantConfig(QuantConfig):
    """Arguments of `quantize_dynamic`."""

    def __init__(
        self, weight_type=QuantType.QInt8, op_types_to_quantize=None, nodes_to_quantize=None, nodes_to_exclude=None,
        per_channel=False, reduce_range=False, use_external_data_format=False, extra_options=None,
    ):  # fmt: skip
        super().__init__(
            QuantType.QUInt8, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
            reduce_range, use_external_data_format,
        )  # fmt: skip
        self.extra_options = extra_options or {}


def get_qdq_config(
    model_input, calibration_data_reader, calibrate_method=CalibrationMethod.MinMax, calibrate_args=None,
    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, activation_symmetric=False, weight_symmetric=None,
    per_channel=False, reduce_range=False, keep_removable_activations=False, min_real_range=None,
    tensor_quant_overrides=None, calibration_providers=None, op_types_to_quantize=None, nodes_to_exclude=None,
    extra_options=None,
) -> StaticQuantConfig:  # fmt: skip
    """A configuration that quantises all of a model: every operator but Cast, QuantizeLinear and DequantizeLinear.

    `nodes_to_exclude` is a list of names, or a function of (model, node) that tells whether a node is left out.
    `calibrate_args` are arguments of the calibrater. See `quantize_static` for the others.
    """
    model = model_input if isinstance(model_input, ModelProto) else load_model(model_input, external_data=False)
    overrides = TensorQuantOverridesHelper(copy.deepcopy(tensor_quant_overrides or {}))
    excluded = set() if callable(nodes_to_exclude) else set(nodes_to_exclude or ())
    op_types = set()
    for node in model.graph.node:
        if op_types_to_quantize and node.op_type not in op_types_to_quantize or node.name in excluded:
            continue
        if callable(nodes_to_exclude) and nodes_to_exclude(model, node):
            excluded.add(node.name)
        else:
            op_types.add(node.op_type)

    options = {
        "MinimumRealRange": min_real_range,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "ForceQuantizeNoInputCheck": True,
        "TensorQuantOverrides": overrides.get_dict(),
    }
    for name, value in (calibrate_args or {}).items():
        if name in CALIBRATION_OPTIONS:
            options[CALIBRATION_OPTIONS[name]] = value
    version = needed_opset(get_opset_version(model), weight_type, activation_type, overrides.get_dict())
    if needs_contrib_ops(version, [activation_type, weight_type, *overrides.get_quant_types()]):
        options["UseQDQContribOps"] = True
    options.update(extra_options or {})
    external = any(external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method=calibrate_method,
        quant_format=QuantFormat.QDQ,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=op_types_to_quantize or sorted(op_types - {"Cast", "DequantizeLinear", "QuantizeLinear"}),
        nodes_to_exclude=sorted(excluded),
        per_channel=per_channel,
        reduce_range=reduce_range,
        use_external_data_format=external or model.ByteSize() >= MODEL_SIZE_THRESHOLD,
        calibration_providers=calibration_providers,
        extra_options=options,
    )
