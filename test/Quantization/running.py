"""Runs models three ways: by Sardonyx, by onnxruntime, and by ONNX's reference of its operators in numpy."""

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import sardonyx


def ours(model, feeds):
    return sardonyx.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def peers(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def reference(model, feeds):
    """ONNX's own evaluation; QuantizeLinear is there from opset 19 on, which changes none of the operators used here."""
    newer = onnx.ModelProto()
    newer.CopyFrom(model)
    for entry in newer.opset_import:
        if not entry.domain:
            entry.version = max(entry.version, 19)
    return ReferenceEvaluator(newer).run(None, feeds)


def check(model, full=True):
    """Whether a model follows ONNX's rules; operators of com.microsoft have none there."""
    own = [node for node in model.graph.node if node.domain == "com.microsoft"]
    onnx.checker.check_model(model, full_check=full and not own)


def decibels(expected, found):
    """Signal to noise: 10 log10 of the ratio of mean squares."""
    noise = np.mean((np.asarray(expected, np.float64) - found) ** 2)
    return 10 * np.log10(np.mean(np.asarray(expected, np.float64) ** 2) / max(noise, 1e-30))


def weights(model):
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def op_types(model):
    return [node.op_type for node in model.graph.node]
