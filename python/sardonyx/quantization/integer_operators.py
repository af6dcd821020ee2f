"""Operators that compute on quantised numbers with scales that each run finds: MatMulInteger, ConvInteger and others."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from .names import ms_domain
from .qlinear_operators import QOpMatMul, QuantOperatorBase
from .quant_utils import attributes_of, find_by_name


class _Integer(QuantOperatorBase):
    """x, w → product of integers → Cast → · (x's scale · w's scale); scales are of f32, and f16 is cast to in the end."""

    def write_integer(self, data, weight, op_type, result, **attributes):
        node, quantizer = self.node, self.quantizer
        kind = quantizer.get_tensor_type(node.output[0], mandatory=True)
        computed = kind if quantizer.opset_version <= 10 else TensorProto.FLOAT
        product = node.output[0] + "_output_quantized"
        inputs = [data.q_name, weight.q_name, data.zp_name, weight.zp_name]
        name = self.new_name
        scales = name + "_scales_mul" if name else f"{data.scale_name}_{weight.scale_name}_mul"
        nodes = [
            onnx.helper.make_node(op_type, inputs, [product], name, **attributes),
            onnx.helper.make_node("Cast", [product], [product + "_cast_output"], product + "_cast", to=computed),
        ]
        if find_by_name(scales, quantizer.new_nodes) is None:
            nodes.append(onnx.helper.make_node("Mul", [data.scale_name, weight.scale_name], [scales + ":0"], scales))
        last = name + "_output_scale_mul" if name else ""
        scaled = result if kind == computed else result + "_as_float"
        nodes.append(onnx.helper.make_node("Mul", [product + "_cast_output", scales + ":0"], [scaled], last))
        if scaled != result:
            nodes.append(onnx.helper.make_node("Cast", [scaled], [result], scaled + "_cast", to=kind))
        quantizer.add_new_nodes(nodes)


class MatMulInteger(QOpMatMul, _Integer):
    def quantize(self):
        data = self.quantizer.quantize_inputs(self.node, [0])[0]
        weight = self.weight(reduce_range=True, axis=-1)[0]
        self.write_integer(data, weight, "MatMulInteger", self.node.output[0])


class ConvInteger(_Integer):
    def quantize(self):
        node, quantizer = self.node, self.quantizer
        data, weight = (quantizer.quantize_inputs(node, [place], as_weight=bool(place), reduce_range=True)[0] for place in (0, 1))
        biased = len(node.input) == 3 and node.input[2]
        result = node.output[0] + "quant_scaled_output" if biased else node.output[0]
        self.write_integer(data, weight, "ConvInteger", result, **attributes_of(node))
        if biased:
            self._add_bias(result)

    def _add_bias(self, scaled):
        """Adds the bias of channels, as [1, channels, 1, …]."""
        node, quantizer = self.node, self.quantizer
        rank = len(quantizer.initializers[node.input[1]].dims)
        shape, turned = node.output[0] + "_bias_reshape_shape", node.output[0] + "_bias_reshape_output"
        sizes = np.array([1, -1] + [1] * (rank - 2), np.int64)
        quantizer._add_initializer(onnx.numpy_helper.from_array(sizes, shape))
        quantizer.add_new_nodes([
            onnx.helper.make_node("Reshape", [node.input[2], shape], [turned], turned),
            onnx.helper.make_node("Add", [scaled, turned], [node.output[0]], node.output[0] + "_bias_add"),
        ])  # fmt: skip


class AttentionQuant(QuantOperatorBase):
    """com.microsoft's Attention as QAttention, which has one size for queries, keys and values."""

    def should_quantize(self):
        return self.quantizer.should_quantize_node(self.node)

    def quantize(self):
        node, quantizer = self.node, self.quantizer
        if any(entry.name == "qkv_hidden_sizes" for entry in node.attribute):
            return super().quantize()
        data = quantizer.quantize_inputs(node, [0])
        weight = None if data is None else quantizer.quantize_inputs(node, [1], True, reduce_range=True, axis=-1)
        if weight is None:
            return super().quantize()
        values = data + weight
        rest = [node.input[place] if len(node.input) > place else "" for place in (3, 4)]
        inputs = [value.q_name for value in values] + [node.input[2]] + [value.scale_name for value in values]
        inputs += [rest[0]] + [value.zp_name for value in values] + [rest[1]]
        attention = onnx.helper.make_node(
            "QAttention", inputs, node.output, self.new_name, domain=ms_domain, **attributes_of(node)
        )
        quantizer.add_new_nodes([attention])
        return None


class LSTMQuant(QuantOperatorBase):
    """LSTM as DynamicQuantizeLSTM, whose weights are of s8 and turned: [directions, input or hidden, 4 · hidden]."""

    def quantize(self):
        node, quantizer = self.node, self.quantizer
        names = node.input[1:3]
        usable = all(quantizer.index.is_weight(name) and len(quantizer.initializers[name].dims) == 3 for name in names)
        if not usable:
            return super().quantize()
        values = [self._weight(name) for name in names]
        optional = [node.input[place] if len(node.input) > place else "" for place in range(3, 8)]
        inputs = [node.input[0], *(value.q_name for value in values), *optional]
        inputs += [name for value in values for name in (value.scale_name, value.zp_name)]
        attributes = attributes_of(node, "layout")
        quantizer.dequantize(node.input[0])
        lstm = onnx.helper.make_node("DynamicQuantizeLSTM", inputs, node.output, self.new_name, domain=ms_domain, **attributes)
        quantizer.add_new_nodes([lstm])
        return None

    def _weight(self, name):
        """Scales are of directions, or of directions and rows; weights are turned once they are rounded."""
        quantizer = self.quantizer
        if name in quantizer.quantized_value_map:
            return quantizer.quantized_value_map[name]
        weight = quantizer.initializers[name]
        directions, rows, _ = weight.dims
        if quantizer.per_channel:
            weight.dims[:] = [directions * rows, weight.dims[2]]
        value = quantizer.quantize_initializer(name, TensorProto.INT8, 0, reduce_range=True)
        numbers = quantizer.initializers[value.q_name]
        turned = onnx.numpy_helper.to_array(numbers).reshape(directions, rows, -1).transpose(0, 2, 1)
        numbers.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(turned), value.q_name))
        if quantizer.per_channel:
            for part in (value.scale_name, value.zp_name):
                quantizer.initializers[part].dims[:] = [directions, rows]
        return value


INTEGER_OPERATORS = {"Conv": ConvInteger, "MatMul": MatMulInteger, "Attention": AttentionQuant, "LSTM": LSTMQuant}
