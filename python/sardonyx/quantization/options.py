"""Checks of what callers ask for: options, operators, nodes. A name that is not known is refused with the nearest."""

from __future__ import annotations

import fnmatch
import logging

from .._suggest import close_to

logger = logging.getLogger("sardonyx")

# Keys of `extra_options`, and what they are for.
EXTRA_OPTIONS = {
    "ActivationSymmetric": "ranges of activations as wide below zero as above",
    "ActivationRestrictedAsymmetric": "zero points of u8 activations are 0 or 128",
    "WeightSymmetric": "ranges of weights as wide below zero as above; by default those of signed types",
    "EnableSubgraph": "quantise the bodies of If, Loop and Scan too (dynamic)",
    "ForceQuantizeNoInputCheck": "operators that move numbers are quantised even if their input is not",
    "MatMulConstBOnly": "of MatMul only those by weights; by default in dynamic quantisation",
    "AddQDQPairToWeight": "weights stay float, before a QuantizeLinear",
    "OpTypesToExcludeOutputQuantization": "operators whose outputs stay float",
    "DedicatedQDQPair": "a pair of QuantizeLinear and DequantizeLinear for every reader",
    "QDQOpTypePerChannelSupportToAxis": "{operator: axis of its weight's channels}",
    "CalibTensorRangeSymmetric": "calibration's ranges as wide below zero as above",
    "CalibMovingAverage": "means of the samples' ends instead of the furthest",
    "CalibMovingAverageConstant": "how far later collections move them (.01)",
    "CalibMaxIntermediateOutputs": "taken and not needed: calibration keeps no outputs",
    "CalibStridedMinMax": "samples of a reader to collect at a time",
    "CalibPercentile": "share of numbers that a range holds, in % (99.999)",
    "FloatWithinKernels": "values between a product and the elementwise operators after it stay float (QDQ)",
    "QuantizeBias": "biases as i32 (QDQ); by default",
    "SmoothQuant": "move outliers of activations into weights first",
    "SmoothQuantAlpha": "how much of them, from 0 to 1 (.5)",
    "SmoothQuantFolding": "into the node before, where it can hold them",
    "BiasCorrection": "biases that take back what rounding shifts, by the samples",
    "UseQDQContribOps": "QuantizeLinear and DequantizeLinear of com.microsoft",
    "MinimumRealRange": "the least difference of a range's ends",
    "TensorQuantOverrides": "{tensor: [{quant_type, scale and zero_point, …}]}",
    "QDQKeepRemovableActivations": "Relu and Clip stay",
    "QDQDisableWeightAdjustForInt32Bias": "scales of weights stay where a bias leaves i32",
    "BlockSize": "numbers of a weight of rank 2 that share a scale, along its axis (opset 21)",
    "DefaultTensorType": "the type of tensors whose type can't be told",
    "extra.Sigmoid.nnapi": "Sigmoid's output at scale 1/256",
    "num_bins": "bins of histograms (2048)",
    "num_quantized_bins": "levels that Entropy rounds to (128)",
    "scenario": "what Distribution takes the deviation of: numbers (same) or their cube roots (p3)",
}


def _nearest(name, known) -> str:
    like = close_to(name, known)
    return f"; nearest: '{like}'" if like else ""


def check_extra_options(options) -> dict:
    """A copy of `extra_options`, all of whose keys are known."""
    options = dict(options or {})
    for name in options:
        if name not in EXTRA_OPTIONS:
            raise ValueError(f"'extra_options' has no key '{name}'{_nearest(name, EXTRA_OPTIONS)}")
    return options


def check_op_types(op_types, known, model) -> list:
    """`op_types`, each of which some model can have: one that is neither known here nor in the model is refused."""
    present = {node.op_type for node in model.graph.node}
    for name in op_types:
        if name not in known and name not in present:
            nearest = _nearest(name, present | set(known))
            raise ValueError(f"'op_types_to_quantize' names '{name}', which is no operator of the model{nearest}")
    return list(op_types)


def all_nodes(graph):
    from .onnx_model import subgraphs_of

    for node in graph.node:
        yield node
        for body in subgraphs_of(node):
            yield from all_nodes(body)


def check_nodes(names, model, argument: str) -> list:
    """Names of nodes with patterns (`/encoder/*`) resolved, and operators to all of their nodes; a name that fits no
    node is refused."""
    nodes = [node for node in all_nodes(model.graph) if node.name]
    known = [node.name for node in nodes]
    present = set(known)
    found = []
    for name in names or ():
        if name in present:
            found.append(name)
            continue
        fitting = [node.name for node in nodes if node.op_type == name]
        if any(sign in name for sign in "*?["):
            fitting = fnmatch.filter(known, name)
        if not fitting:
            raise ValueError(f"'{argument}' names '{name}', which is no node{_nearest(name, known)}")
        found.extend(fitting)
    return list(dict.fromkeys(found))
