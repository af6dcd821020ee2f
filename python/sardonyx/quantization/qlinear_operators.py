"""Operators that compute on quantised numbers with given scales: QLinearConv, QLinearMatMul, com.microsoft's others."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from .formulas import quantize_nparray
from .names import TENSOR_NAME_QUANT_SUFFIX, ms_domain
from .quant_types import FLOAT8_TYPES
from .quant_utils import attribute, attributes_of, make_quantized_initializer, tensor_proto_to_array


class QuantOperatorBase:
    """A node that stays as it is: its quantised inputs are dequantised."""

    def __init__(self, onnx_quantizer, onnx_node):
        self.quantizer = onnx_quantizer
        self.node = onnx_node

    def should_quantize(self) -> bool:
        return self.quantizer.should_quantize_node(self.node) and self.quantizer.is_float_tensor(self.node.input[0])

    def quantize(self):
        for name in self.node.input:
            self.quantizer.dequantize(name)
        self.quantizer.add_new_nodes([self.node])

    @property
    def new_name(self) -> str:
        return self.node.name + "_quant" if self.node.name else ""

    def emit(self, op_type, inputs, domain="", but=(), **attributes):
        """Adds a node of another operator in the place of this one, whose output is `<output>_quantized`."""
        result = self.node.output[0] + TENSOR_NAME_QUANT_SUFFIX
        node = onnx.helper.make_node(
            op_type, inputs, [result], self.new_name, domain=domain, **attributes_of(self.node, *but), **attributes
        )
        self.quantizer.add_new_nodes([node])
        return result


def triple(value) -> list:
    return [value.q_name, value.scale_name, value.zp_name]


class _QLinear(QuantOperatorBase):
    """An operator of quantised inputs and one quantised output; without ranges of these it stays as it is."""

    def places(self):
        return [0]

    def output_parameters(self):
        return self.quantizer.parameters(self.node.output[0])

    def inputs(self):
        return self.quantizer.quantize_inputs(self.node, self.places())

    def quantize(self):
        if self.node.output[0] not in self.quantizer.quantization_params:
            return super().quantize()
        values = self.inputs()
        if values is None:
            return super().quantize()
        parameters = self.output_parameters()
        self.quantizer.add_result(self.node.output[0], self.write(values, parameters), parameters)
        return None

    def write(self, values, parameters) -> str:
        inputs = [name for value in values for name in triple(value)]
        return self.emit("QLinear" + self.node.op_type, [*inputs, *parameters], ms_domain)


class QLinearBinaryOp(_QLinear):
    def places(self):
        return [0, 1]


class QLinearPool(_QLinear):
    pass


class QLinearSoftmax(_QLinear):
    def output_parameters(self):
        zero = -128 if self.quantizer.activation_qType == TensorProto.INT8 else 0
        return self.quantizer.parameters(self.node.output[0], 1 / 256, zero)  # results are from 0 to 1

    def write(self, values, parameters):
        inputs = [*triple(values[0]), *parameters]
        return self.emit("QLinearSoftmax", inputs, ms_domain, opset=self.quantizer.opset_version)


class QLinearActivation(_QLinear):
    """Sigmoid and LeakyRelu; Clip and Relu vanish into the range of what they make."""

    def output_parameters(self):
        if self.node.op_type == "Sigmoid" and self.quantizer.extra_options.get("extra.Sigmoid.nnapi"):
            return self.quantizer.parameters(self.node.output[0], 1 / 256, 0)
        return super().output_parameters()

    def quantize(self):
        node, quantizer = self.node, self.quantizer
        if node.op_type not in ("Clip", "Relu"):
            return super().quantize()
        value = quantizer.quantized_value_map.get(node.input[0])
        if value is None or quantizer.is_activation_symmetric:
            return QuantOperatorBase.quantize(self)
        quantizer.quantized_value_map[node.output[0]] = value
        return None


class QLinearConcat(_QLinear):
    def places(self):
        return range(len(self.node.input))

    def write(self, values, parameters):
        inputs = [name for value in values for name in triple(value)]
        return self.emit("QLinearConcat", [*parameters, *inputs], ms_domain)


class QLinearWhere(_QLinear):
    def should_quantize(self):
        return self.quantizer.should_quantize_node(self.node)

    def places(self):
        return [1, 2]

    def quantize(self):
        if self.quantizer.force_quantize_no_input_check:
            return super().quantize()
        return QuantOperatorBase.quantize(self)

    def write(self, values, parameters):
        inputs = [name for value in values for name in triple(value)]
        return self.emit("QLinearWhere", [self.node.input[0], *inputs, *parameters], ms_domain)


class QGlobalAveragePool(QuantOperatorBase):
    """Quantised if its input is; without a range of its own it has its input's."""

    def quantize(self):
        node, quantizer = self.node, self.quantizer
        value = quantizer.quantized_value_map.get(node.input[0])
        if value is None:
            return super().quantize()
        parameters = quantizer.parameters(node.output[0]) or (value.scale_name, value.zp_name)
        result = self.emit("QLinearGlobalAveragePool", [*triple(value), *parameters], ms_domain, channels_last=0)
        quantizer.add_result(node.output[0], result, parameters)
        return None


class QLinearConv(_QLinear):
    """Conv with one scale, or with one for each output channel: then weights are always s8."""

    def inputs(self):
        quantizer, node = self.quantizer, self.node
        if len(node.input) == 3 and node.input[2] and not quantizer.is_valid_quantize_weight(node.input[2]):
            return None
        data = quantizer.quantize_inputs(node, [0])
        if data is None:
            return None
        if not quantizer.find_initializer_in_path(node.input[1]):
            weight = quantizer.quantize_inputs(node, [1], as_weight=True)
            return None if weight is None else data + weight
        if quantizer.per_channel and quantizer.is_input_a_initializer(node.input[1]):
            return [*data, quantizer.quantize_initializer(node.input[1], TensorProto.INT8, 0, reduce_range=True)]
        return data + quantizer.quantize_inputs(node, [1], as_weight=True, reduce_range=quantizer.reduce_range)

    def write(self, values, parameters):
        inputs = [*triple(values[0]), *triple(values[1]), *parameters]
        if len(self.node.input) == 3 and self.node.input[2]:
            if self.quantizer.weight_qType in FLOAT8_TYPES:
                raise ValueError("Conv can't be quantised to floats of 8 bits: its bias would have to be of integers")
            inputs.append(self.quantizer.quantize_bias(self.node.input[2], *values))
        return self.emit("QLinearConv", inputs)


class QOpMatMul(_QLinear):
    """What products by weights have in common: which of them are quantised."""

    def should_quantize(self):
        quantizer, (left, right) = self.quantizer, self.node.input[:2]
        if not quantizer.should_quantize_node(self.node):
            return False
        if not quantizer.is_float_tensor(right) and not quantizer.is_float_tensor(left):
            return False
        return not quantizer.q_matmul_const_b_only or quantizer.find_initializer_in_path(right)

    def weight(self, reduce_range, axis=None):
        return self.quantizer.quantize_inputs(self.node, [1], as_weight=True, reduce_range=reduce_range, axis=axis)


class QLinearMatMul(QOpMatMul):
    def inputs(self):
        data = self.quantizer.quantize_inputs(self.node, [0])
        weight = None if data is None else self.weight(reduce_range=True, axis=-1)
        return None if weight is None else data + weight

    def write(self, values, parameters):
        domain = ms_domain if self.quantizer.weight_qType in FLOAT8_TYPES else ""
        return self.emit("QLinearMatMul", [*triple(values[0]), *triple(values[1]), *parameters], domain)


class QLinearGemm(QOpMatMul):
    def get_factor(self):
        """QGemm has no beta, and multiplies all sums by alpha, the bias too."""
        alpha = attribute(self.node, "alpha", 1.0)
        return attribute(self.node, "beta", 1.0) / (alpha or 1.0)

    def inputs(self):
        quantizer, node = self.quantizer, self.node
        if len(node.input) == 3 and node.input[2] and not quantizer.is_input_a_initializer(node.input[2]):
            return None
        data = quantizer.quantize_inputs(node, [0])
        if data is None:
            return None
        if quantizer.per_channel and quantizer.is_input_a_initializer(node.input[1]):
            axis = 0 if attribute(node, "transB", 0) else 1
            weight = quantizer.quantize_initializer(node.input[1], quantizer.weight_qType, axis, reduce_range=True)
            return [*data, weight]
        weight = self.weight(quantizer.reduce_range)
        return None if weight is None else data + weight

    def write(self, values, parameters):
        bias = ""
        if len(self.node.input) == 3 and self.node.input[2]:
            bias = self.quantizer.quantize_bias(self.node.input[2], *values, self.get_factor())
        inputs = [*triple(values[0]), *triple(values[1]), bias, *parameters]
        return self.emit("QGemm", inputs, ms_domain, but=("beta",))


class Direct8BitOp(QuantOperatorBase):
    """What moves numbers: it does the same to quantised ones, if its input is quantised."""

    def quantize(self):
        quantizer, node = self.quantizer, self.node
        if quantizer.force_quantize_no_input_check:
            values = quantizer.quantize_inputs(node, [0])
            if values is None:
                return super().quantize()
            value = values[0]
        else:
            value = quantizer.find_quantized_value(node.input[0])
            if value is None:
                quantizer.add_new_nodes([node])
                return None
        self.pass_on(value)
        return None

    def pass_on(self, value):
        """Has the node read a quantised value and make `<output>_quantized` of the same scale."""
        node = self.node
        result = node.output[0]
        node.input[0], node.output[0] = value.q_name, result + TENSOR_NAME_QUANT_SUFFIX
        self.quantizer.add_result(result, node.output[0], (value.scale_name, value.zp_name))
        self.quantizer.add_new_nodes([node])


class QMaxPool(Direct8BitOp):
    def quantize(self):
        if self.quantizer.opset_version < 12 or self.quantizer.activation_qType in FLOAT8_TYPES:
            return QuantOperatorBase.quantize(self)
        return super().quantize()


class QResize(Direct8BitOp):
    def quantize(self):
        return super().quantize() if self.quantizer.opset_version >= 11 else QuantOperatorBase.quantize(self)


class QArgMax(QuantOperatorBase):
    """ArgMax finds the same place among quantised numbers."""

    def quantize(self):
        value = self.quantizer.find_quantized_value(self.node.input[0])
        if value is not None:
            self.node.input[0] = value.q_name
        self.quantizer.add_new_nodes([self.node])


class QSplit(QuantOperatorBase):
    def quantize(self):
        quantizer, node = self.quantizer, self.node
        values = quantizer.quantize_inputs(node, [0])
        if values is None:
            return super().quantize()
        results = [name + "quantized" for name in node.output]
        for name, result in zip(node.output, results):
            quantizer.add_result(name, result, (values[0].scale_name, values[0].zp_name))
        inputs = [values[0].q_name, *node.input[1:]]
        split = onnx.helper.make_node(node.op_type, inputs, results, self.new_name, **attributes_of(node))
        quantizer.add_new_nodes([split])
        return None


class QPad(QuantOperatorBase):
    """Pad of a quantised input: it pads with the quantised constant, which of 0 is the zero point."""

    def quantize(self):
        quantizer, node = self.quantizer, self.node
        value = quantizer.quantized_value_map.get(node.input[0])
        if quantizer.opset_version < 11 or value is None:
            return super().quantize()
        if attribute(node, "mode", b"constant") == b"constant":
            if len(node.input) > 2 and node.input[2]:
                constant = self._quantized_constant(value)
                if constant is None:
                    return super().quantize()
                node.input[2] = constant
            elif len(node.input) == 2:
                node.input.append(value.zp_name)
            else:
                node.input[2] = value.zp_name
        Direct8BitOp.pass_on(self, value)
        return None

    def _quantized_constant(self, value):
        quantizer, name = self.quantizer, self.node.input[2]
        tensors = [quantizer.initializers.get(each) for each in (value.scale_name, value.zp_name)]
        if None in tensors:
            return None
        result = name + TENSOR_NAME_QUANT_SUFFIX
        if name in quantizer.initializers:
            scale, zero = (onnx.numpy_helper.to_array(tensor) for tensor in tensors)
            constant = tensor_proto_to_array(quantizer.initializers[name])
            numbers = quantize_nparray(tensors[1].data_type, constant, scale.reshape(()), zero.reshape(()))
            quantizer._add_initializer(make_quantized_initializer(result, tensors[1].data_type, numbers, constant.shape))
        else:
            inputs = [name, value.scale_name, value.zp_name]
            quantizer.add_new_nodes([onnx.helper.make_node("QuantizeLinear", inputs, [result], name + "_QuantizeLinear")])
        return result


class GatherQuant(Direct8BitOp):
    """Gather of the rows of a weight."""

    def should_quantize(self):
        quantizer = self.quantizer
        return quantizer.should_quantize_node(self.node) and quantizer.is_valid_quantize_weight(self.node.input[0])

    def quantize(self):
        self.pass_on(self.quantizer.quantize_inputs(self.node, [0])[0])


class EmbedLayerNormalizationQuant(QuantOperatorBase):
    """EmbedLayerNormalization, whose tables and vectors become bytes; inputs 0 and 1 are integers."""

    def should_quantize(self):
        return self.quantizer.should_quantize_node(self.node)

    def quantize(self):
        node, quantizer = self.node, self.quantizer
        values = quantizer.quantize_inputs(node, range(2, 7)) if len(node.output) <= 2 else None
        if values is None:
            return super().quantize()
        mask = node.input[7] if len(node.input) > 7 else ""
        inputs = [*node.input[:2], *(value.q_name for value in values), mask]
        inputs += [value.scale_name for value in values] + [value.zp_name for value in values]
        quantized = onnx.helper.make_node(
            "QEmbedLayerNormalization", inputs, node.output, self.new_name, domain=ms_domain, **attributes_of(node)
        )
        quantizer.add_new_nodes([quantized])
        return None


COMMON_OPERATORS = {
    "Gather": GatherQuant,
    "Transpose": Direct8BitOp,
    "EmbedLayerNormalization": EmbedLayerNormalizationQuant,
}
QLINEAR_OPERATORS = {
    "ArgMax": QArgMax,
    "Conv": QLinearConv,
    "Gemm": QLinearGemm,
    "MatMul": QLinearMatMul,
    "Add": QLinearBinaryOp,
    "Mul": QLinearBinaryOp,
    "Relu": QLinearActivation,
    "Clip": QLinearActivation,
    "LeakyRelu": QLinearActivation,
    "Sigmoid": QLinearActivation,
    "MaxPool": QMaxPool,
    "GlobalAveragePool": QGlobalAveragePool,
    "Split": QSplit,
    "Pad": QPad,
    "Reshape": Direct8BitOp,
    "Squeeze": Direct8BitOp,
    "Unsqueeze": Direct8BitOp,
    "Flatten": Direct8BitOp,
    "Resize": QResize,
    "AveragePool": QLinearPool,
    "Concat": QLinearConcat,
    "Softmax": QLinearSoftmax,
    "Where": QLinearWhere,
}
