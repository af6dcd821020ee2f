"""Quantisation of whole models: `quantize_static`, `quantize_dynamic`, and `quantize` by a configuration."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from onnx import ModelProto, TensorProto, external_data_helper

from .._suggest import unknown
from .bias_correction import correct_biases
from .calibrate import CalibrationMethod, create_calibrator, load_tensors_data, save_tensors_data
from .configs import (  # noqa: F401
    CALIBRATION_OPTIONS,
    HISTOGRAM_OPTIONS,
    DynamicQuantConfig,
    QuantConfig,
    StaticQuantConfig,
    get_qdq_config,
)
from .model_files import (
    add_infer_metadata,
    constants_to_initializers,
    copy_of,
    infer_types,
    load_model,
    model_has_pre_process_metadata,
    name_nodes,
    update_opset_version,
)
from .onnx_quantizer import ONNXQuantizer
from .onnx_model import sort_nodes
from .options import check_extra_options, check_nodes, check_op_types
from .qdq_quantizer import QDQQuantizer
from .plan import Plan
from .quant_types import FLOAT8_TYPES, QuantFormat, QuantizationMode, QuantType, as_tensor_type, type_name
from .registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry
from .smoothing import samples_to_go_through_first, smooth

logger = logging.getLogger("sardonyx")


def _as_type(kind) -> QuantType:
    return QuantType.from_string(kind) if isinstance(kind, str) else kind


def check_static_quant_arguments(quant_format, activation_type, weight_type) -> None:
    """Refuses pairs of types that no kernel has."""
    activation, weight = as_tensor_type(activation_type), as_tensor_type(weight_type)
    if activation == TensorProto.INT8 and weight == TensorProto.UINT8:
        raise ValueError("activations of QInt8 need weights of QInt8: there is no product of s8 by u8")
    if (activation in FLOAT8_TYPES) != (weight in FLOAT8_TYPES):
        kinds = f"{type_name(activation)} and {type_name(weight)}"
        raise ValueError(f"floats of 8 bits are for activations and weights, not for one of them: {kinds}")
    if {activation, weight} & {TensorProto.INT16, TensorProto.UINT16} and quant_format is not QuantFormat.QDQ:
        raise ValueError("types of 16 bits need quant_format=QuantFormat.QDQ: no operator of integers takes them")


def _prepare(model_input, op_types, known, nodes_to_quantize, nodes_to_exclude):
    """A model to be changed, with names, types and shapes; operators and nodes to quantise, as checked lists."""
    model = load_model(model_input)
    constants_to_initializers(model)
    name_nodes(model)
    infer_types(model)
    add_infer_metadata(model)
    if not model_has_pre_process_metadata(model):
        logger.info("quant_pre_process before quantisation folds constants and BatchNormalizations")
    op_types = check_op_types(op_types, known, model) if op_types else sorted(known)
    chosen = check_nodes(nodes_to_quantize, model, "nodes_to_quantize")
    excluded = check_nodes(nodes_to_exclude, model, "nodes_to_exclude")
    return model, op_types, chosen, excluded


def _finish(quantizer, model_output, external_data):
    """Writes the quantised model, or gives it where there is no path."""
    quantizer.plan.write_metadata(quantizer.model.model)
    sort_nodes(quantizer.model.graph())
    if model_output is None:
        return quantizer.model.model
    quantizer.model.save_model_to_file(os.fspath(model_output), external_data)
    return None


def quantize_static(
    model_input, model_output, calibration_data_reader=None, quant_format=QuantFormat.QDQ, op_types_to_quantize=None,
    per_channel=False, reduce_range=False, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
    nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
    calibrate_method=CalibrationMethod.MinMax, calibration_providers=None, extra_options=None,
    calibration_cache_path=None,
):  # fmt: skip
    """Quantises activations and weights, with scales that come from running the model on samples.

    :param model_input: a path or a ModelProto, which is not changed.
    :param model_output: a path; None gives the model as a ModelProto.
    :param calibration_data_reader: samples: a CalibrationDataReader, an iterable of {input: array}, or a folder.
    :param quant_format: QDQ writes pairs of QuantizeLinear and DequantizeLinear, QOperator operators of integers.
    :param op_types_to_quantize: operators; by default all that can be.
    :param per_channel: weights have a scale for each output channel.
    :param reduce_range: weights of 7 bits, for kernels whose 16-bit sums overflow; Sardonyx's don't.
    :param nodes_to_quantize: names of nodes, or patterns as `/encoder/*`; by default all.
    :param nodes_to_exclude: names or patterns of nodes that stay float.
    :param use_external_data_format: weights go to `<model_output>.data`; always so for 2 GB or more.
    :param extra_options: see `options.EXTRA_OPTIONS`.
    :param calibration_cache_path: a file of ranges, which is read if it exists and written if not.
    """
    quant_format = QuantFormat.from_string(quant_format)
    activation_type, weight_type = _as_type(activation_type), _as_type(weight_type)
    check_static_quant_arguments(quant_format, activation_type, weight_type)
    if as_tensor_type(activation_type) in FLOAT8_TYPES and calibrate_method is not CalibrationMethod.Distribution:
        raise ValueError("floats of 8 bits need calibrate_method=CalibrationMethod.Distribution")
    extra_options = check_extra_options(extra_options)
    known = set(QDQRegistry) | set(QLinearOpsRegistry)
    model, op_types, chosen, excluded = _prepare(
        model_input, op_types_to_quantize, known, nodes_to_quantize, nodes_to_exclude
    )
    if extra_options.get("SmoothQuant"):
        if calibration_data_reader is None:
            raise ValueError("SmoothQuant needs a calibration_data_reader")
        excluded = [*excluded, *smooth(
            model, samples_to_go_through_first(calibration_data_reader), op_types, chosen, excluded,
            extra_options.get("SmoothQuantAlpha", 0.5), extra_options.get("SmoothQuantFolding", True),
            calibration_providers,
        )]  # fmt: skip
    model = update_opset_version(
        model, weight_type, activation_type, extra_options.get("TensorQuantOverrides"),
        extra_options.get("BlockSize") or 0,
        channels=quant_format is QuantFormat.QDQ and (per_channel or _overrides_channels(extra_options)),
    )  # fmt: skip
    again = None
    if extra_options.get("BiasCorrection") and calibration_data_reader is not None:
        again = samples_to_go_through_first(calibration_data_reader, "BiasCorrection")
    ranges = _cached_ranges(calibration_cache_path, calibrate_method, bool(extra_options.get("SmoothQuant")))
    if ranges is None:
        ranges = _calibrate(
            model, calibration_data_reader, op_types, calibrate_method, calibration_providers, extra_options
        )
        if calibration_cache_path is not None:
            save_tensors_data(ranges, calibration_cache_path, smooth_quant=bool(extra_options.get("SmoothQuant")))
    if extra_options.get("BiasCorrection"):
        if calibration_data_reader is None:
            raise ValueError("BiasCorrection needs a calibration_data_reader")
        rounding = QDQQuantizer(
            copy_of(model), per_channel, reduce_range, weight_type, activation_type, ranges, chosen, excluded, op_types,
            extra_options,
        )  # fmt: skip
        rounding.quantize_model()
        model = correct_biases(model, _finish(rounding, None, False), again)
    if quant_format is QuantFormat.QOperator:
        quantizer = ONNXQuantizer(
            model, per_channel, reduce_range, QuantizationMode.QLinearOps, True, weight_type, activation_type, ranges,
            chosen, excluded, op_types, extra_options,
        )  # fmt: skip
    else:
        quantizer = QDQQuantizer(
            model, per_channel, reduce_range, weight_type, activation_type, ranges, chosen, excluded, op_types,
            extra_options,
        )  # fmt: skip
    quantizer.quantize_model()
    return _finish(quantizer, model_output, use_external_data_format)


def _cached_ranges(path, method, smooth_quant):
    """Ranges of a file, or None where there is none that fits."""
    if path is None or not Path(path).exists():
        return None
    ranges = load_tensors_data(path)
    cached = bool(json.loads(Path(path).read_text()).get("smooth_quant", False))
    if cached != smooth_quant:
        logger.warning(
            "The ranges in '%s' were found with smooth_quant=%s, and this run has smooth_quant=%s: they are found again.",
            path, cached, smooth_quant,
        )  # fmt: skip
        return None
    if ranges.calibration_method != method:
        raise ValueError(
            f"the ranges in '{path}' were found by {ranges.calibration_method}, not by {method}: give that method or "
            "remove the file"
        )
    return ranges


def _calibrate(model, reader, op_types, method, providers, extra_options):
    if reader is None:
        raise ValueError("Either calibration_data_reader or an existing calibration_cache_path must be provided.")
    options = {name: extra_options[key] for name, key in CALIBRATION_OPTIONS.items() if key in extra_options}
    options.update({name: extra_options[name] for name in HISTOGRAM_OPTIONS if name in extra_options})
    calibrater = create_calibrator(model, op_types, calibrate_method=method, providers=providers, extra_options=options)
    stride = extra_options.get("CalibStridedMinMax")
    if not stride:
        calibrater.collect_data(reader)
        return calibrater.compute_data()
    count = len(reader)
    if count % stride:
        raise ValueError(f"{count} samples can't be taken {stride} at a time, as 'CalibStridedMinMax' asks")
    for start in range(0, count, stride):
        reader.set_range(start_index=start, end_index=start + stride)
        calibrater.collect_data(reader)
    return calibrater.compute_data()


def quantize_dynamic(
    model_input, model_output, op_types_to_quantize=None, per_channel=False, reduce_range=False,
    weight_type=QuantType.QInt8, nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
    extra_options=None,
):  # fmt: skip
    """Quantises weights; activations get u8 and a scale in each run. No samples are needed.

    See `quantize_static` for the arguments. MatMulConstBOnly is on by default.
    """
    extra_options = {"MatMulConstBOnly": True, **check_extra_options(extra_options)}
    model, op_types, chosen, excluded = _prepare(
        model_input, op_types_to_quantize, {*IntegerOpsRegistry, "Gemm"}, nodes_to_quantize, nodes_to_exclude
    )
    model = update_opset_version(model, _as_type(weight_type))
    quantizer = ONNXQuantizer(
        model, per_channel, reduce_range, QuantizationMode.IntegerOps, False, _as_type(weight_type), QuantType.QUInt8,
        None, chosen, excluded, op_types, extra_options,
    )  # fmt: skip
    quantizer.quantize_model()
    return _finish(quantizer, model_output, use_external_data_format)


def _overrides_channels(extra_options) -> bool:
    overrides = extra_options.get("TensorQuantOverrides") or {}
    return any("axis" in each for entries in overrides.values() for each in entries)


def apply_plan(model_input, model_output, plan):
    """Quantises a model as a plan says, without samples. `plan` is a Plan or the path of a file of one."""
    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    model, _, _, _ = _prepare(model_input, None, (), None, None)
    known = {name for node in model.graph.node for name in (*node.input, *node.output)}
    for name in plan.tensors:
        if name not in known and plan.format == "QDQ" and plan.tensors[name].role != "bias":
            raise ValueError(unknown("tensor", name, sorted(known)) + ", which the plan names")
    types = [TensorProto.DataType.Value(plan.settings[name]) for name in ("weight_type", "activation_type")]
    options = dict(plan.settings["options"])
    channels = plan.format == "QDQ" and any(tensor.axis is not None for tensor in plan.tensors.values())
    model = update_opset_version(model, *types, block_size=options.get("BlockSize") or 0, channels=channels)
    per_channel = plan.settings["per_channel"]
    if plan.format == "QDQ":
        quantizer = QDQQuantizer(model, per_channel, False, *types, {}, None, None, (), options, given=plan)
    else:
        static = plan.format == "QOperator"
        mode = QuantizationMode.QLinearOps if static else QuantizationMode.IntegerOps
        quantizer = ONNXQuantizer(
            model, per_channel, False, mode, static, *types, {} if static else None, None, None, (), options, given=plan
        )
    quantizer.quantize_model()
    return _finish(quantizer, model_output, False)


_STATIC = (
    "calibrate_method", "quant_format", "activation_type", "calibration_providers",
)  # fmt: skip
_BOTH = (
    "weight_type", "op_types_to_quantize", "nodes_to_quantize", "nodes_to_exclude", "per_channel", "reduce_range",
    "use_external_data_format", "extra_options",
)  # fmt: skip


def quantize(*arguments, **keywords):
    """Quantises within measured bounds, or by a configuration as in onnxruntime.

    `quantize(model, data, max_error=0.01, metric="top1", min_speedup=1.2, …)` is `contract.quantize_within`;
    `quantize(model_input, model_output, quant_config)` takes a StaticQuantConfig, a DynamicQuantConfig or a
    configuration of weights of few bits. The latter is meant where there is a configuration.
    """
    if "max_error" in keywords or ("quant_config" not in keywords and len(arguments) < 3):
        from .contract import quantize_within

        return quantize_within(*arguments, **keywords)
    return _quantize_by_configuration(*arguments, **keywords)


def _quantize_by_configuration(model_input, model_output, quant_config):
    from .matmul_nbits_quantizer import MatMulNBitsQuantizer, WeightOnlyQuantConfig

    arguments = {name: getattr(quant_config, name, None) for name in _BOTH}
    if isinstance(quant_config, StaticQuantConfig):
        arguments.update({name: getattr(quant_config, name) for name in _STATIC})
        return quantize_static(model_input, model_output, quant_config.calibration_data_reader, **arguments)
    if isinstance(quant_config, DynamicQuantConfig):
        return quantize_dynamic(model_input, model_output, **arguments)
    if isinstance(quant_config, WeightOnlyQuantConfig):
        model = load_model(model_input)
        external = any(external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)
        quantizer = MatMulNBitsQuantizer(model, algo_config=quant_config)
        quantizer.process()
        if model_output is None:
            return quantizer.model.model
        quantizer.model.save_model_to_file(os.fspath(model_output), external or not isinstance(model_input, ModelProto))
        return None
    raise TypeError(
        f"a configuration is a StaticQuantConfig, a DynamicQuantConfig or a WeightOnlyQuantConfig, not a "
        f"{type(quant_config).__name__}"
    )
