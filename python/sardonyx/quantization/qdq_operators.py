"""What each operator asks of the tensors around it, where quantisation is by pairs of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import logging

import numpy as np

from .quant_types import FLOAT8_TYPES
from .quant_utils import attribute

logger = logging.getLogger("sardonyx")


class QDQOperatorBase:
    """Any operator: all of its inputs and outputs are activations."""

    def __init__(self, onnx_quantizer, onnx_node):
        self.quantizer = onnx_quantizer
        self.node = onnx_node
        self.disable_qdq_for_node_output = onnx_node.op_type in onnx_quantizer.op_types_to_exclude_output_quantization

    def quantize(self):
        for name in self.node.input:
            if name:
                self.quantizer.quantize_activation_tensor(name)
        self.quantize_outputs()

    def quantize_outputs(self):
        if not self.disable_qdq_for_node_output:
            for name in self.node.output:
                if name:
                    self.quantizer.quantize_activation_tensor(name)

    def outputs_like(self, source):
        """Outputs take the scale and zero point of an input."""
        if not self.disable_qdq_for_node_output:
            for name in self.node.output:
                if name:
                    self.quantizer.quantize_output_same_as_input(name, source, self.node.name)

    def quantize_weight(self, place, default_axis, op_type=None):
        name = self.node.input[place]
        by_channel, axis = self.quantizer.is_tensor_per_channel(name, default_axis, op_type)
        if by_channel:
            self.quantizer.quantize_weight_tensor_per_channel(name, axis)
        else:
            self.quantizer.quantize_weight_tensor(name)

    def quantize_bias(self, beta=1.0):
        data, weight, bias = self.node.input[:3]
        self.quantizer.quantize_bias_tensor(self.node.name, bias, data, weight, beta)


class QDQConv(QDQOperatorBase):
    """Conv, whose weight has output channels first, and ConvTranspose, which has them second."""

    def quantize(self):
        self.quantizer.quantize_activation_tensor(self.node.input[0])
        self.quantize_outputs()
        self.quantize_weight(1, default_axis=0 if self.node.op_type == "Conv" else 1)
        if len(self.node.input) == 3 and self.node.input[2]:
            self.quantize_bias()


class QDQGemm(QDQOperatorBase):
    def quantize(self):
        node = self.node
        self.quantizer.quantize_activation_tensor(node.input[0])
        self.quantize_outputs()
        self.quantize_weight(1, default_axis=0 if attribute(node, "transB", 0) else 1)
        if len(node.input) < 3 or not node.input[2]:
            return
        if not self.quantizer.is_input_a_initializer(node.input[2]):
            logger.warning("the bias of '%s' is not constant and stays float", node.name)
            return
        self.quantize_bias(attribute(node, "beta", 1.0))
        if self.quantizer.stores_bias_as_integers(node.input[2]):
            for entry in node.attribute:  # it is in the bias now
                if entry.name == "beta":
                    entry.f = 1.0


class QDQMatMul(QDQOperatorBase):
    def quantize(self):
        for place, name in enumerate(self.node.input):
            if self.quantizer.is_input_a_initializer(name):
                self.quantize_weight(place, default_axis=1, op_type=self.node.op_type)
            else:
                self.quantizer.quantize_activation_tensor(name)
        self.quantize_outputs()


class QDQNormalization(QDQOperatorBase):
    def quantize(self):
        node = self.node
        if node.input[0] in self.quantizer.within:
            self.quantize_outputs()
            return
        self.quantizer.quantize_activation_tensor(node.input[0])
        if self.quantizer.is_input_a_initializer(node.input[1]):
            self.quantize_weight(1, default_axis=1, op_type=node.op_type)
        else:
            self.quantizer.quantize_activation_tensor(node.input[1])
        if len(node.input) > 2 and node.input[2]:
            self.quantize_bias()
        self.quantize_outputs()


class QDQDirect8BitOp(QDQOperatorBase):
    """What moves numbers or picks among them: quantised if its input is."""

    def quantize(self):
        source = self.node.input[0]
        if self.quantizer.force_quantize_no_input_check:
            self.quantizer.quantize_activation_tensor(source)
        elif not self.quantizer.is_tensor_quantized(source):
            return
        if not self.disable_qdq_for_node_output:
            self.quantizer.quantize_output_same_as_input(self.node.output[0], source, self.node.name)


class QDQMaxPool(QDQDirect8BitOp):
    """MaxPool, which takes bytes from opset 12 on, and no floats of 8 bits."""

    def quantize(self):
        if self.quantizer.opset_version >= 12 and self.quantizer.activation_qType not in FLOAT8_TYPES:
            super().quantize()


class QDQResize(QDQDirect8BitOp):
    def quantize(self):
        if self.quantizer.opset_version >= 11:
            super().quantize()


class QDQSplit(QDQOperatorBase):
    def quantize(self):
        source = self.node.input[0]
        if not self.quantizer.is_tensor_quantized(source):
            self.quantizer.quantize_activation_tensor(source)
        self.outputs_like(source)


class QDQGather(QDQOperatorBase):
    """Gather and GatherElements: quantised if the data is a weight or quantised."""

    def quantize(self):
        quantizer, source = self.quantizer, self.node.input[0]
        if quantizer.is_valid_quantize_weight(source) or quantizer.force_quantize_no_input_check:
            quantizer.quantize_activation_tensor(source)
        elif not quantizer.is_tensor_quantized(source):
            return
        quantizer.quantize_output_same_as_input(self.node.output[0], source, self.node.name)


class QDQPad(QDQOperatorBase):
    def quantize(self):
        for name in self.node.input:
            if name:
                self.quantizer.quantize_activation_tensor(name)
        if self._pads_with_what_input_holds():
            self.outputs_like(self.node.input[0])
        else:
            self.quantize_outputs()

    def _pads_with_what_input_holds(self) -> bool:
        mode = attribute(self.node, "mode", b"constant")
        if mode != b"constant":
            return mode in (b"reflect", b"edge", b"wrap")
        if self.quantizer.opset_version < 11:
            value = attribute(self.node, "value", 0.0)
        elif len(self.node.input) > 2 and self.node.input[2]:
            value = self.quantizer.model.get_constant_value(self.node.input[2])
        else:
            value = 0.0
        return value is not None and float(np.squeeze(value)) == 0  # every range holds zero


class QDQWhere(QDQOperatorBase):
    def quantize(self):
        quantizer, sources = self.quantizer, self.node.input[1:3]
        if quantizer.force_quantize_no_input_check:
            for name in sources:
                if not quantizer.is_tensor_quantized(name):
                    quantizer.quantize_activation_tensor(name)
        elif not all(quantizer.is_tensor_quantized(name) for name in sources):
            return
        self.quantize_outputs()


class QDQRemovableActivation(QDQOperatorBase):
    """Relu and Clip: removed where activations are asymmetric, as then the range of their output does their work."""

    def quantize(self):
        quantizer, node = self.quantizer, self.node
        if not quantizer.is_tensor_quantized(node.input[0]):
            return
        keep = quantizer.is_activation_symmetric or quantizer.qdq_keep_removable_activations
        if quantizer.given is not None:
            keep = quantizer.given.nodes[node.name or node.output[0]].precision != "removed"
        if keep or not quantizer.try_removing(node):
            quantizer.quantize_activation_tensor(node.input[0])
        if not self.disable_qdq_for_node_output:
            quantizer.quantize_activation_tensor(node.output[0])


QDQ_OPERATORS = {
    "Conv": QDQConv,
    "ConvTranspose": QDQConv,
    "Gemm": QDQGemm,
    "Clip": QDQRemovableActivation,
    "Relu": QDQRemovableActivation,
    "Reshape": QDQDirect8BitOp,
    "Transpose": QDQDirect8BitOp,
    "Squeeze": QDQDirect8BitOp,
    "Unsqueeze": QDQDirect8BitOp,
    "Flatten": QDQDirect8BitOp,
    "Resize": QDQResize,
    "MaxPool": QDQMaxPool,
    "AveragePool": QDQDirect8BitOp,
    "Slice": QDQDirect8BitOp,
    "Pad": QDQPad,
    "MatMul": QDQMatMul,
    "Split": QDQSplit,
    "Gather": QDQGather,
    "GatherElements": QDQGather,
    "Where": QDQWhere,
    "InstanceNormalization": QDQNormalization,
    "LayerNormalization": QDQNormalization,
    "BatchNormalization": QDQNormalization,
    "TopK": QDQDirect8BitOp,
    "CumSum": QDQOperatorBase,
}
