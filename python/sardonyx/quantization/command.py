"""`sardonyx quantize MODEL -o OUTPUT`: models made smaller, by samples or without."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx

from .arguments import Parser, check_files
from .calibrate import CalibrationMethod
from .contract import Refused, quantize_within
from .contract.metrics import METRICS
from .contract.result import as_json
from .contract.samples import with_labels
from .data_folders import FolderDataReader
from .equalization import equalize
from .float16 import convert_precision
from .kernel_values import WITHIN
from .matmul_nbits_quantizer import _METHODS, MatMulNBitsQuantizer, config_of
from .model_files import load_model, save_model, size_of
from .plan import METADATA_KEY
from .quant_types import QuantFormat, QuantType
from .quantize import apply_plan, quantize_dynamic, quantize_static
from .shape_inference import quant_pre_process

_PRECISIONS = ("int8", "int8-dynamic", "int2", "int3", "int4", "f16", "bf16", "halves", "f32", "auto")
REFUSALS = (ValueError, TypeError, RuntimeError, OSError, NotImplementedError, ImportError)


def add_bounds(group) -> None:
    """The arguments of a loop with a contract."""
    group.add_argument("--max-error", metavar="E", help="how much worse the metric may get: 0.01, or 1%% of the float model's")
    group.add_argument("--metric", metavar="NAME", help=f"{', '.join(METRICS)}, or FILE.py:FUNCTION")
    group.add_argument("--labels", metavar="FILE.npy", help="what outputs should be; else they are compared with the float model's")
    group.add_argument("--min-speedup", type=float, metavar="X", help="how many times faster the model must be here")
    group.add_argument("--holdout", type=float, default=0.2, help="share of the samples that judge and don't find ranges (0.2)")
    group.add_argument("--report", metavar="FILE", help="write what was tried and measured, as JSON")
    group.add_argument("--html", metavar="FILE", help="write the report as a page: layers with errors and times, what was tried")
    group.add_argument("--threads", type=int, help="of the sessions that are timed")
    group.add_argument("--time-limit", type=float, default=600, metavar="SECONDS", help="after which nothing more is tried (600)")
    group.add_argument("--max-size", type=int, metavar="BYTES")
    group.add_argument("--seed", type=int, default=0, help="of the choice of samples that judge (0)")


def _parser():
    parser = Parser(
        "sardonyx quantize", "Writes a model with smaller numbers: weights and activations, or weights only.",
        "sardonyx quantize model.onnx -o small.onnx --data feeds",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("-o", "--output", help="where the quantised model goes")
    parser.add_argument(
        "--precision", choices=_PRECISIONS, default="int8", metavar="KIND",
        help="int8: with samples; int8-dynamic: scales of each run; int2 to int4: weights of MatMul; f16, bf16, "
        "f32; halves: f16, and bf16 where samples leave its range; auto: the fastest within bounds",
    )  # fmt: skip
    parser.add_argument("--data", metavar="FOLDER", help="samples: .npz files of inputs, or test_data_set_* folders")
    parser.add_argument("--plan", metavar="FILE", help="quantise as this plan says; no samples are needed")
    parser.add_argument("--save-plan", metavar="FILE", help="write what was decided")
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done; write nothing")
    parser.add_argument("--no-preprocess", action="store_true", help="don't fold constants and BatchNormalizations first")
    parser.add_argument(
        "--equalize", action="store_true", help="first even out channels between layers; floats stay the same"
    )
    group = parser.add_argument_group("int8")
    group.add_argument(
        "--smooth", action="store_true", help="first move outliers of channels from activations into weights"
    )
    group.add_argument("--format", choices=["QDQ", "QOperator"], default="QDQ")
    group.add_argument("--activations", choices=["QUInt8", "QInt8", "QInt16", "QUInt16"], default="QUInt8")
    group.add_argument("--weights", choices=["QInt8", "QUInt8", "QInt16"], default="QInt8")
    group.add_argument("--per-tensor", action="store_true", help="one scale a weight instead of one an output channel")
    methods = [method.name for method in CalibrationMethod if method is not CalibrationMethod.Distribution]
    group.add_argument("--calibration", choices=methods, default="MinMax")
    group.add_argument("--correct-biases", action="store_true", help="biases take back what rounding shifts")
    group.add_argument("--op-types", nargs="+", metavar="OP", help="operators to quantise")
    group.add_argument("--include", nargs="+", metavar="NODE", help="names or patterns of nodes to quantise")
    group.add_argument("--exclude", nargs="+", metavar="NODE", help="names or patterns of nodes that stay float")
    group.add_argument(
        "--target", choices=["sardonyx", "onnxruntime"], default="sardonyx",
        help="which runtime's kernels round where they read and write; the model runs in both",
    )  # fmt: skip
    group = parser.add_argument_group("int2, int3, int4")
    group.add_argument("--method", choices=sorted(_METHODS), default="default", help="gptq and awq need --data")
    group.add_argument("--block-size", type=int, default=32, help="numbers that share a scale (32)")
    group.add_argument("--symmetric", action="store_true", help="without zero points")
    group = parser.add_argument_group("bounds", "int8 as far as samples and this machine allow; exit code 3 where they don't")
    add_bounds(group)
    return parser


# Choices that bounds make, or that they don't go with.
_NOT_WITH_BOUNDS = (
    "plan", "no_preprocess", "smooth", "format", "activations", "weights", "per_tensor", "op_types", "include",
)  # fmt: skip
_ONLY_WITH_BOUNDS = ("metric", "labels", "min_speedup", "holdout", "report", "html", "threads", "time_limit", "max_size", "seed")


def _check_bounds(parser, given):
    for name in _ONLY_WITH_BOUNDS if given.max_error is None else _NOT_WITH_BOUNDS:
        if getattr(given, name) != parser.get_default(name):
            flag = "--" + name.replace("_", "-")
            parser.error(f"{flag} needs --max-error" if given.max_error is None else f"{flag} doesn't go with --max-error")


def metric_of_argument(text):
    """A metric's name, or the function that FILE.py:FUNCTION names."""
    if text is None or ":" not in text:
        return text
    path, _, name = text.rpartition(":")
    spec = importlib.util.spec_from_file_location("sardonyx_metric", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--metric FILE.py:FUNCTION names a file of Python, not '{path}'")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, name, None)):
        raise ValueError(f"'{path}' has no function '{name}'")
    return getattr(module, name)


def _within_bounds(given):
    """The Result of --max-error; the model is written by it."""
    if not given.data:
        raise ValueError("--max-error needs samples: --data FOLDER")
    model = _prepared(given) if given.equalize else load_model(given.model)
    data = reader_of(given, model)
    if given.labels:
        data = with_labels(data, np.load(given.labels))
    return quantize_within(
        model, data, given.max_error if given.max_error.endswith("%") else float(given.max_error), metric_of_argument(given.metric),
        given.min_speedup, None if given.dry_run else given.output, given.precision, given.holdout, given.exclude,
        given.threads, given.time_limit, max_size=given.max_size, seed=given.seed,
        target=given.target, calibration=CalibrationMethod[given.calibration], correct_biases=given.correct_biases,
    )  # fmt: skip


def reader_of(given, model):
    weights = {tensor.name for tensor in model.graph.initializer}
    return FolderDataReader(given.data, [value.name for value in model.graph.input if value.name not in weights])


def _prepared(given):
    model = load_model(given.model) if given.no_preprocess else quant_pre_process(given.model)
    return equalize(model) if given.equalize else model


def _quantized(given):
    """The quantised model of the arguments."""
    if given.plan:
        return apply_plan(_prepared(given), None, given.plan)
    if given.precision == "auto":
        raise ValueError("precision auto needs bounds: --max-error")
    if given.precision in ("f16", "bf16", "halves", "f32"):
        to = "auto" if given.precision == "halves" else given.precision
        data = reader_of(given, load_model(given.model)) if given.data else None
        return convert_precision(given.model, to, node_block_list=given.exclude, data=data)
    model = _prepared(given)
    if given.precision == "int8":
        if not given.data:
            raise ValueError("precision int8 needs samples: --data FOLDER, or int8-dynamic, which needs none")
        return quantize_static(
            model, None, reader_of(given, model), QuantFormat.from_string(given.format), given.op_types,
            not given.per_tensor, activation_type=QuantType.from_string(given.activations),
            weight_type=QuantType.from_string(given.weights), nodes_to_quantize=given.include,
            nodes_to_exclude=given.exclude, calibrate_method=CalibrationMethod[given.calibration],
            extra_options={
                "SmoothQuant": given.smooth, "BiasCorrection": given.correct_biases,
                "FloatWithinKernels": given.target == "sardonyx",
            },
        )  # fmt: skip
    if given.precision == "int8-dynamic":
        return quantize_dynamic(
            model, None, given.op_types, not given.per_tensor, weight_type=QuantType.from_string(given.weights),
            nodes_to_quantize=given.include, nodes_to_exclude=given.exclude,
        )  # fmt: skip
    bits = int(given.precision[3:])
    samples = reader_of(given, model) if given.data else None
    config = config_of(given.method, bits, given.block_size, given.symmetric, samples=samples)
    quantizer = MatMulNBitsQuantizer(
        model, bits, given.block_size, given.symmetric, nodes_to_exclude=given.exclude, algo_config=config
    )
    quantizer.process()
    return quantizer.model.model


def _report(given, model) -> str:
    before = size_of(onnx.load(given.model))
    after = size_of(model)
    lines = [f"{given.model}: {before:,} bytes; quantised: {after:,} bytes ({after / before:.2f})"]
    data = next((entry.value for entry in model.metadata_props if entry.key == METADATA_KEY), None)
    if data is None:
        return lines[0]
    nodes = json.loads(data)["nodes"]
    counts: dict = {}
    for node in nodes.values():
        counts[node["precision"]] = counts.get(node["precision"], 0) + 1
    lines.append("nodes: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    floats = [(name, node.get("reason", "")) for name, node in nodes.items() if node["precision"] == "float"]
    kept = [(name, reason) for name, reason in floats if reason != WITHIN]
    width = max((len(name) for name, _ in kept), default=0)
    lines += [f"  float: {name:{width}}  {reason}".rstrip() for name, reason in kept]
    return "\n".join(lines)


def main(arguments=None) -> int:
    """0: written; 2: something that was asked for can't be done, which a sentence tells; 3: bounds can't be held."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.output and not given.dry_run:
        parser.error("-o says where the quantised model goes (or --dry-run that it goes nowhere)")
    _check_bounds(parser, given)
    try:
        check_files(given)
        if given.max_error is not None:
            return _bounded(given)
        model = _quantized(given)
        print(_report(given, model))
        if given.save_plan:
            _save_plan(model, given.save_plan)
        if not given.dry_run:
            save_model(model, os.fspath(given.output))
    except REFUSALS as error:
        print(f"sardonyx quantize: {error}", file=sys.stderr)
        return 2
    return 0


def _bounded(given) -> int:
    return tell("quantize", given, lambda: _within_bounds(given))


def tell(name, given, work) -> int:
    """Prints and writes what comes of a loop with a contract: its Result, or its refusal."""
    try:
        result = work()
    except Refused as refusal:
        print(f"sardonyx {name}: {refusal}", file=sys.stderr)
        if given.report:
            Path(given.report).write_text(as_json(refusal.report))
        return 3
    print(result.table())
    if getattr(given, "save_plan", None):
        result.plan.save(given.save_plan)
    if given.html:
        result.to_html(given.html)
    if given.report:
        result.save_report(given.report)
    return 0


def _save_plan(model, path) -> None:
    from .plan import Plan

    plan = Plan.of_model(model)
    if plan is None:
        raise ValueError("--save-plan is for precision int8 and int8-dynamic, which have plans")
    plan.save(Path(path))
