"""Where a quantised model differs from its float model: weights and activations, tensor by tensor.

`error_report` compares two models sample by sample and keeps no tensors; the other functions are onnxruntime's, and
hold all that they collect.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import onnx

from .calibrate import CalibraterBase, samples_of
from .formulas import dequantize
from .graph_index import GraphIndex
from .model_files import load_model, load_model_with_shape_infer, save_model
from .names import (
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    TENSOR_NAME_QUANT_SUFFIX,
    add_dequant_output_suffix,
    add_quant_input_suffix,
)
from .observe import session_with_outputs
from .quant_utils import attribute

logger = logging.getLogger("sardonyx")

_SAVED = "_ReshapedSavedOutput"


def modify_model_output_intermediate_tensors(
    input_model_path, output_model_path, op_types_for_saving=None, save_as_external_data=False
) -> None:
    """Writes a model whose further outputs are the tensors of f32 and f16 that operators read or make, made flat."""
    saver = CalibraterBase(input_model_path, op_types_to_calibrate=op_types_for_saving or [])
    model = saver.model
    names, values = saver.select_tensors_to_calibrate(model)
    flat = "sardonyx_flat_shape"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1], np.int64), flat))
    for name in names:
        model.graph.node.append(onnx.helper.make_node("Reshape", [name, flat], [name + _SAVED], name + _SAVED))
        kind = values[name].type.tensor_type.elem_type
        model.graph.output.append(onnx.helper.make_tensor_value_info(name + _SAVED, kind, [None]))
    save_model(model, output_model_path, save_as_external_data)


def collect_activations(augmented_model, input_reader, session_options=None, execution_providers=None):
    """{tensor: [its numbers in each sample]} of what `modify_model_output_intermediate_tensors` wrote."""
    from sardonyx import InferenceSession

    session = InferenceSession(
        augmented_model, sess_options=session_options, providers=execution_providers or ["CPUExecutionProvider"]
    )
    names = [entry.name for entry in session.get_outputs() if entry.name.endswith(_SAVED)]
    collected: dict = {}
    for sample in samples_of(input_reader):
        for name, value in zip(names, session.run(names, sample)):
            collected.setdefault(name[: -len(_SAVED)], []).append(value)
    if not collected:
        raise RuntimeError("no data is collected: the reader gave no sample, or the model has no such outputs")
    return collected


def create_activation_matching(qdq_activations, float_activations=None):
    """{tensor: {pre_qdq, post_qdq, float}}: what went into a pair of Q and DQ, what came out, what the float model has."""
    matching = {}
    for name, values in qdq_activations.items():
        if name.endswith(QUANT_INPUT_SUFFIX):
            plain = name[: -len(QUANT_INPUT_SUFFIX)]
            before, after = values, qdq_activations.get(plain)
        else:
            suffix = next((each for each in (DEQUANT_OUTPUT_SUFFIX, DEQUANT_OUTPUT_SUFFIX + "_1") if name.endswith(each)), None)
            if suffix is None:
                continue
            plain = name[: -len(suffix)]
            before, after = qdq_activations.get(plain), values
        if before is not None and after is not None:
            matching[plain] = {"pre_qdq": before, "post_qdq": after}
    for name, match in matching.items():
        values = (float_activations or {}).get(name)
        if values is not None:
            match["float"] = values
    return matching


def create_weight_matching(float_model_path, qdq_model_path):
    """{weight: {float, dequantized}} of the weights that DequantizeLinear nodes read."""
    before = GraphIndex(load_model_with_shape_infer(Path(float_model_path)).graph)
    model = load_model_with_shape_infer(Path(qdq_model_path))
    after = GraphIndex(model.graph)
    matched = {}
    for node in model.graph.node:
        if node.op_type != DEQUANT_OP_NAME or node.input[0] not in after.initializers:
            continue
        name = node.input[0]
        plain = name[: -len(TENSOR_NAME_QUANT_SUFFIX)] if name.endswith(TENSOR_NAME_QUANT_SUFFIX) else None
        if plain not in before.initializers:
            logger.warning("'%s' is dequantised, and the float model has no weight of that name", name)
            continue
        values, scale = (onnx.numpy_helper.to_array(after.initializers[each]) for each in node.input[:2])
        zero = onnx.numpy_helper.to_array(after.initializers[node.input[2]]) if len(node.input) > 2 else np.zeros(1)
        axis = attribute(node, "axis", 1) if scale.size > 1 else None
        if axis is None:
            scale, zero = scale.reshape(()), zero.reshape(())
        matched[plain] = {
            "float": onnx.numpy_helper.to_array(before.initializers[plain]),
            # numpy gives a number, and no array, for the difference of two arrays without axes
            "dequantized": np.asarray(dequantize(values, scale, zero, axis, attribute(node, "block_size", 0))),
        }
    return matched


def _decibels(signal: float, noise: float) -> float:
    """20 log10 of a ratio of norms."""
    least = np.finfo(float).eps
    return 20 * math.log10(max(signal, least) / max(noise, least))


def compute_signal_to_quantization_noice_ratio(x, y) -> float:
    """20 log10(|x| / |x - y|) of arrays, or of lists of them, in dB."""
    first, second = ([part] if isinstance(part, (np.ndarray, np.generic)) else list(part) for part in (x, y))
    if len(first) != len(second):
        raise RuntimeError(f"{len(first)} arrays can't be compared with {len(second)}")
    left, right = (np.concatenate([part.ravel() for part in parts]) for parts in (first, second))
    return _decibels(float(np.linalg.norm(left)), float(np.linalg.norm(left - right)))


def compute_weight_error(weights_match, err_func=compute_signal_to_quantization_noice_ratio):
    """{weight: error in dB} of what `create_weight_matching` gives."""
    return {name: err_func(match["float"], match["dequantized"]) for name, match in weights_match.items()}


def compute_activation_error(activations_match, err_func=compute_signal_to_quantization_noice_ratio):
    """{tensor: {qdq_err, xmodel_err}}: of the rounding alone, and with all rounding before it, in dB."""
    errors = {}
    for name, match in activations_match.items():
        errors[name] = {"qdq_err": err_func(match["pre_qdq"], match["post_qdq"])}
        if match.get("float"):
            errors[name]["xmodel_err"] = err_func(match["float"], match["post_qdq"])
    return errors


def error_report(float_model, quantised_model, data) -> dict:
    """{tensor: {qdq_err, xmodel_err}} in dB, the worst first; no tensor is kept.

    :param float_model: a path or a ModelProto.
    :param quantised_model: the same model with pairs of QuantizeLinear and DequantizeLinear.
    :param data: samples: a reader, an iterable of dictionaries or a folder.
    """
    before, after = load_model(float_model), load_model(quantised_model)
    made = {name for node in after.graph.node for name in node.output} | {value.name for value in after.graph.input}
    known = {name for node in before.graph.node for name in node.output}
    triples = {}  # {tensor: names of what is rounded and of the result in the quantised model}
    for name in made:
        result = add_dequant_output_suffix(name)
        if result in made:
            triples[name] = (name, result)
        elif add_quant_input_suffix(name) in made:
            triples[name] = (add_quant_input_suffix(name), name)
    shared = [name for name in triples if name in known]
    sums = {name: np.zeros(4) for name in triples}
    old = _session_of(before, shared)
    new = _session_of(after, sorted({each for pair in triples.values() for each in pair}))
    for sample in samples_of(data):
        values = new(sample)
        floats = old(sample)
        for name, (source, result) in triples.items():
            given = values.get(source, sample.get(source))
            sums[name][:2] += _squares(given, values[result])
            if name in floats:
                sums[name][2:] += _squares(floats[name], values[result])
    report = {}
    for name, (signal, noise, float_signal, float_noise) in sums.items():
        report[name] = {"qdq_err": _decibels(signal**0.5, noise**0.5)}
        if name in shared:
            report[name]["xmodel_err"] = _decibels(float_signal**0.5, float_noise**0.5)
    return dict(sorted(report.items(), key=lambda entry: entry[1].get("xmodel_err", entry[1]["qdq_err"])))


def _squares(first, second):
    """(|first|², |first - second|²)."""
    left, right = (np.asarray(part, np.float64).ravel() for part in (first, second))
    return float(left @ left), float((left - right) @ (left - right))


def _session_of(model, names):
    """A function of a sample that gives {name: array} of values of a model."""
    inputs = {value.name for value in model.graph.input}
    computed = [name for name in names if name not in inputs]
    if not computed:
        return lambda sample: {}
    session = session_with_outputs(model, computed)
    wanted = [entry.name for entry in session.get_inputs()]
    return lambda sample: dict(zip(computed, session.run(computed, {name: sample[name] for name in wanted})))
