"""Static quantisation as a command: `python -m sardonyx.quantization.static_quantize_runner -i MODEL -o OUTPUT`.

Samples are the folders test_data_set_* beside the model.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import onnx

from .calibrate import CalibrationMethod
from .configs import StaticQuantConfig
from .data_folders import FolderDataReader
from .quant_types import QuantFormat, QuantType
from .quantize import quantize

_TYPES = ("qint8", "quint8", "qint16", "quint16", "qint4", "quint4", "qfloat8e4m3fn")
# Flags that set an extra option to true.
_FLAGS = {
    "enable_subgraph": "EnableSubgraph",
    "force_quantize_no_input_check": "ForceQuantizeNoInputCheck",
    "matmul_const_b_only": "MatMulConstBOnly",
    "add_qdq_pair_to_weight": "AddQDQPairToWeight",
    "dedicated_qdq_pair": "DedicatedQDQPair",
    "calib_tensor_range_symmetric": "CalibTensorRangeSymmetric",
    "calib_moving_average": "CalibMovingAverage",
    "use_qdq_contrib_ops": "UseQDQContribOps",
    "qdq_keep_removable_activations": "QDQKeepRemovableActivations",
    "qdq_disable_weight_adjust_for_int32_bias": "QDQDisableWeightAdjustForInt32Bias",
}


def parse_arguments():
    from .options import EXTRA_OPTIONS

    parser = argparse.ArgumentParser(description="Quantises a model, with the samples in test_data_set_* beside it.")
    parser.add_argument("-i", "--input_model_path", required=True)
    parser.add_argument("-o", "--output_quantized_model_path", required=True)
    parser.add_argument("--activation_type", choices=_TYPES, default="quint8")
    parser.add_argument("--weight_type", choices=_TYPES, default="qint8")
    for flag, option in _FLAGS.items():
        parser.add_argument(f"--{flag}", action="store_true", help=EXTRA_OPTIONS[option])
    parser.add_argument("--op_types_to_exclude_output_quantization", nargs="+", default=[], metavar="OP_TYPE")
    methods = [method.name.lower() for method in CalibrationMethod]
    parser.add_argument("--calibration_method", default="minmax", choices=methods)
    parser.add_argument("--quant_format", default="qdq", choices=["qdq", "qoperator"])
    parser.add_argument("--disable_quantize_bias", action="store_true", help="biases stay float")
    parser.add_argument(
        "--minimum_real_range", type=float, default=0.0001, help="the least difference of a range's ends (0.0001)"
    )
    parser.add_argument("--per_channel", action="store_true", help="weights have a scale for each output channel")
    parser.add_argument("--nodes_to_quantize", nargs="+", metavar="NODE")
    parser.add_argument("--nodes_to_exclude", nargs="+", metavar="NODE")
    parser.add_argument(
        "--op_per_channel_axis", nargs=2, action="append", default=[], metavar=("OP_TYPE", "AXIS"),
        help="the axis of channels of an operator's weight",
    )  # fmt: skip
    parser.add_argument("--tensor_quant_overrides", metavar="FILE", help="a file of JSON: {tensor: [{scale, zero_point}]}")
    return parser.parse_args()


def get_tensor_quant_overrides(file):
    """TensorQuantOverrides of a file, with arrays for scales and zero points and types by their names."""
    if not file:
        return {}
    overrides = json.loads(Path(file).read_text())
    for entries in overrides.values():
        for entry in entries:
            if "scale" in entry:
                entry["scale"] = np.array(entry["scale"], np.float32)
            if "zero_point" in entry:
                entry["zero_point"] = np.array(entry["zero_point"])
            if "quant_type" in entry:
                entry["quant_type"] = QuantType.from_string(entry["quant_type"])
    return overrides


def main() -> None:
    given = parse_arguments()
    model = onnx.load(given.input_model_path, load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in weights]
    options = {option: getattr(given, flag) for flag, option in _FLAGS.items()}
    options.update(
        OpTypesToExcludeOutputQuantization=given.op_types_to_exclude_output_quantization,
        QDQOpTypePerChannelSupportToAxis={op_type: int(axis) for op_type, axis in given.op_per_channel_axis},
        QuantizeBias=not given.disable_quantize_bias,
        MinimumRealRange=given.minimum_real_range,
        TensorQuantOverrides=get_tensor_quant_overrides(given.tensor_quant_overrides),
    )
    methods = {method.name.lower(): method for method in CalibrationMethod}
    config = StaticQuantConfig(
        FolderDataReader(Path(given.input_model_path).parent, names),
        calibrate_method=methods[given.calibration_method],
        quant_format=QuantFormat.from_string(given.quant_format),
        activation_type=QuantType.from_string(given.activation_type),
        weight_type=QuantType.from_string(given.weight_type),
        nodes_to_quantize=given.nodes_to_quantize,
        nodes_to_exclude=given.nodes_to_exclude,
        per_channel=given.per_channel,
        extra_options=options,
    )
    quantize(given.input_model_path, given.output_quantized_model_path, config)


if __name__ == "__main__":
    main()
