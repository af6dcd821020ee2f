"""Which operators are quantised, and how, in each of the three forms."""

from __future__ import annotations

from .integer_operators import INTEGER_OPERATORS
from .qdq_operators import QDQ_OPERATORS, QDQOperatorBase
from .qlinear_operators import COMMON_OPERATORS, QLINEAR_OPERATORS, QuantOperatorBase
from .quant_types import QuantizationMode

CommonOpsRegistry = dict(COMMON_OPERATORS)
IntegerOpsRegistry = {**INTEGER_OPERATORS, **COMMON_OPERATORS}
QLinearOpsRegistry = {**QLINEAR_OPERATORS, **COMMON_OPERATORS}
QDQRegistry = dict(QDQ_OPERATORS)


def CreateDefaultOpQuantizer(onnx_quantizer, node):  # noqa: N802
    """One that leaves a node as it is."""
    return QuantOperatorBase(onnx_quantizer, node)


def CreateOpQuantizer(onnx_quantizer, node):  # noqa: N802
    """One that writes a node as an operator of integers, or leaves it as it is."""
    integers = onnx_quantizer.mode == QuantizationMode.IntegerOps
    registry = IntegerOpsRegistry if integers else QLinearOpsRegistry
    if node.op_type in registry:
        quantizer = registry[node.op_type](onnx_quantizer, node)
        if quantizer.should_quantize():
            return quantizer
    return QuantOperatorBase(onnx_quantizer, node)


def CreateQDQQuantizer(onnx_quantizer, node):  # noqa: N802
    """One that marks the tensors around a node for pairs of QuantizeLinear and DequantizeLinear."""
    return QDQRegistry.get(node.op_type, QDQOperatorBase)(onnx_quantizer, node)
