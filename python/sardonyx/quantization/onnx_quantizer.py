"""Quantisation by operators of integers: QLinear… with scales that calibration found, …Integer with scales of the run.

Nodes are rewritten one after the other, in the order of the graph (`qlinear_operators.py`, `integer_operators.py`);
a node that stays as it is gets its quantised inputs dequantised.
"""

from __future__ import annotations

import logging

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, TensorProto

from .base_quantizer import BaseQuantizer, quantized_bias, scales_for_bias
from .formulas import normalize_axis
from .model_files import add_infer_metadata, save_and_reload_model_with_shape_infer, tensor_proto_to_array
from .names import TENSOR_NAME_QUANT_SUFFIX, __producer__, __version__, add_dequant_suffix, add_quant_suffix, ms_domain
from .onnx_model import replace_all
from .plan import NodePlan, TensorPlan
from .quant_types import FLOAT8_TYPES, get_qrange_for_qType, type_name
from .quant_utils import (
    DEQUANT_OP_NAME,
    QUANT_OP_NAME,
    QuantizationMode,
    QuantizedValue,
    QuantizedValueType,
    attribute_to_kwarg,
    make_typed_initializer,
    quantize_onnx_initializer,
)

logger = logging.getLogger("sardonyx")
_BODY = "onnx-quantizer"  # the producer of a body that is wrapped as a model


class ONNXQuantizer(BaseQuantizer):
    """Writes nodes as operators of integers.

    :param mode: QuantizationMode.QLinearOps or IntegerOps.
    :param static: whether scales of activations come from `tensors_range`; if not, the run computes them.
    """

    def __init__(
        self, model, per_channel, reduce_range, mode, static, weight_qType, activation_qType=None, tensors_range=None,  # noqa: N803
        nodes_to_quantize=None, nodes_to_exclude=None, op_types_to_quantize=(), extra_options=None, given=None, **old,
    ):  # fmt: skip
        activation = old.get("input_qType", activation_qType)
        super().__init__(
            model, per_channel, reduce_range, weight_qType, activation, tensors_range, nodes_to_quantize,
            nodes_to_exclude, op_types_to_quantize, extra_options, given,
        )  # fmt: skip
        self.mode = QuantizationMode.from_string(mode) if isinstance(mode, str) else mode
        if not isinstance(self.mode, QuantizationMode):
            raise ValueError(f"{mode!r} is no mode of quantisation; see QuantizationMode")
        self.static = static
        if not static:
            self._split_gemms()
            self.set_model(save_and_reload_model_with_shape_infer(self.model.model))
        self.q_matmul_const_b_only = self.extra_options.get("MatMulConstBOnly", False)
        self.quantization_params = self.activation_plans()
        self.plan = self.new_plan("QOperator" if static else "dynamic")
        self.plan.tensors.update(self.quantization_params)
        self.new_nodes: list = []
        self.graph_scope = "/"
        self.quantized_value_map: dict[str, QuantizedValue] = {}
        self.generated_value_names = self.model.get_non_initializer_inputs()
        self.known_names = {name for node in self.model.nodes() for name in node.output} | set(self.value_infos)
        self.quantizing: dict[str, onnx.NodeProto] = {}  # {activation: the node that quantises it}
        self.dequantized: set[str] = set()

    def _split_gemms(self) -> None:
        """Writes Gemms that are to be quantised as MatMul and Add; their MatMul is chosen by the Gemm's name and type."""
        wanted = [node.name for node in self.model.nodes() if node.op_type == "Gemm" and self._wants_gemm(node)]
        self.model.replace_gemm_with_matmul({name for name in wanted})
        products = [name + "_MatMul" for name in wanted if name]
        if self.nodes_to_quantize:
            self.nodes_to_quantize = [*self.nodes_to_quantize, *products]
        if "MatMul" not in self.op_types_to_quantize and products:  # other products stay as they are
            others = {node.name for node in self.model.nodes() if node.op_type == "MatMul"} - set(products)
            self.op_types_to_quantize = [*self.op_types_to_quantize, "MatMul"]
            self.nodes_to_exclude = [*(self.nodes_to_exclude or []), *others]

    def _wants_gemm(self, node) -> bool:
        if self.given is not None:
            decision = self.given.nodes.get(node.name + "_MatMul")
            return decision is not None and decision.precision != "float"
        if not {"Gemm", "MatMul"} & set(self.op_types_to_quantize):
            return False
        named = not self.nodes_to_quantize or {node.name, node.name + "_MatMul"} & set(self.nodes_to_quantize)
        return bool(named) and node.name not in (self.nodes_to_exclude or [])

    # The walk.

    def quantize_model(self) -> ModelProto:
        from .registry import CreateOpQuantizer

        if any(node.op_type in (QUANT_OP_NAME, DEQUANT_OP_NAME) for node in self.model.nodes()):
            logger.warning("the model has QuantizeLinear or DequantizeLinear already: is it quantised?")
        for node in self.model.nodes():
            if self.enable_subgraph_quantization:
                node = self._with_quantized_bodies(node)  # noqa: PLW2901
            first, inputs, name = len(self.new_nodes), list(node.input), node.name or node.output[0]
            CreateOpQuantizer(self, node).quantize()
            same = any(each is node and list(each.input) == inputs for each in self.new_nodes[first:])
            self.plan.nodes[name] = NodePlan("float" if same else type_name(self.weight_qType).lower())
        for output in self.model.graph().output:
            self.dequantize(output.name)
        self._dequantize_shared_weights()
        replace_all(self.model.graph().node, self.new_nodes)
        self._finish()
        return self.model.model

    def _note(self, nodes) -> None:
        self.generated_value_names.update(name for node in nodes for name in node.output)

    def add_new_nodes(self, nodes) -> None:
        self.new_nodes.extend(nodes)
        self._note(nodes)

    def _finish(self) -> None:
        model = self.model.model
        if self.parent is None:
            _, unknown = self.model.clean_initializers()
            if unknown:
                raise RuntimeError(f"nothing makes '{sorted(unknown)[0]}', which the model reads")
        model.producer_name, model.producer_version = __producer__, __version__
        domains = {entry.domain for entry in model.opset_import}
        if ms_domain not in domains and _uses_domain(model.graph, ms_domain):
            self.model.set_opset_import(ms_domain, 1)

    def _with_quantized_bodies(self, node):
        """The node with the graphs that it holds quantised."""
        kinds = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
        if not any(entry.type in kinds for entry in node.attribute):
            return node
        arguments = {}
        for entry in node.attribute:
            if entry.type == AttributeProto.GRAPH:
                arguments[entry.name] = self._quantize_body(entry.g, f"{node.name}:{entry.name}")
            elif entry.type == AttributeProto.GRAPHS:
                bodies = enumerate(entry.graphs)
                arguments[entry.name] = [self._quantize_body(g, f"{node.name}:{entry.name}:{n}") for n, g in bodies]
            else:
                arguments.update(attribute_to_kwarg(entry))
        return onnx.helper.make_node(node.op_type, node.input, node.output, name=node.name, domain=node.domain, **arguments)

    def _quantize_body(self, body, name):
        model = onnx.helper.make_model(body, producer_name=_BODY, opset_imports=self.model.model.opset_import)
        add_infer_metadata(model)
        options = {key: value for key, value in self.extra_options.items() if key != "TensorQuantOverrides"}
        inner = ONNXQuantizer(
            model, self.per_channel, self.reduce_range, self.mode, self.static, self.weight_qType,
            self.activation_qType, self.tensors_range, self.nodes_to_quantize, self.nodes_to_exclude,
            self.op_types_to_quantize, options, self.given,
        )  # fmt: skip
        inner.parent = self
        inner.graph_scope = f"{self.graph_scope}{name}/"
        inner.quantize_model()
        self.plan.nodes.update(inner.plan.nodes)
        return inner.model.model.graph

    # Questions of operators.

    def find_initializer_in_path(self, name) -> bool:
        if name in self.initializers:
            return True
        return self.parent is not None and self.parent.find_initializer_in_path(name)

    def find_quantized_value(self, name):
        if name in self.quantized_value_map:
            return self.quantized_value_map[name]
        return self.parent.find_quantized_value(name) if self.parent is not None else None

    def is_float_tensor(self, name) -> bool:
        if name in self.initializers:
            return self.index.is_weight(name)
        if self.index.element_type(name) is not None:
            return self.index.is_float(name)
        if self.enable_subgraph_quantization and self.parent is not None:
            return self.parent.is_float_tensor(name)
        logger.warning("the type of tensor '%s' can't be told; its readers are not quantised", name)
        return False

    def get_tensor_type(self, name, mandatory=False):
        """The type of a tensor. Where it is needed and not known, it is what DefaultTensorType says."""
        kind = self.index.element_type(name)
        if kind is None and self.enable_subgraph_quantization and self.parent is not None:
            kind = self.parent.get_tensor_type(name)
        if kind is not None or not mandatory:
            return kind
        if "DefaultTensorType" in self.extra_options:
            return self.extra_options["DefaultTensorType"]
        raise RuntimeError(
            f"Unable to find data type for weight_name={name!r}: its producer, or one before it, is no operator of "
            "ONNX. extra_options={'DefaultTensorType': onnx.TensorProto.FLOAT} says what such tensors are."
        )

    # Parameters, weights and activations.

    def _add_initializer(self, tensor: TensorProto) -> None:
        if tensor.name not in self.initializers:
            self.model.initializer_extend([tensor])
            self.initializers[tensor.name] = self.model.initializer()[-1]

    def parameters(self, name, scale=None, zero_point=None):
        """Names of the scale and zero point of an activation, or None where it has no range.

        `scale` and `zero_point` stand for what calibration found.
        """
        plan = self.quantization_params.get(name)
        if plan is None:
            return None
        if scale is not None:
            zero = np.array(zero_point).astype(plan.zero_point.dtype)
            plan = TensorPlan("activation", plan.type, np.array(scale, plan.scale.dtype), zero)
        self.plan.tensors[name] = plan
        kind = TensorProto.FLOAT16 if plan.scale.dtype == np.float16 else TensorProto.FLOAT
        names = (name + "_scale", name + "_zero_point")
        self._add_initializer(make_typed_initializer(names[0], kind, plan.scale))
        self._add_initializer(make_typed_initializer(names[1], plan.type, plan.zero_point))
        return names

    def quantize_inputs(self, node, places, as_weight=False, reduce_range=False, axis=None):
        """Quantised values of some of a node's inputs; None if one is an activation without a range.

        Weights are quantised in place, with scales of channels along `axis` if that is given and per_channel set.
        Activations get a node that quantises them, which comes before all that follows.
        """
        if self.static and not all(self._can_quantize(node.input[place]) for place in places):
            return None
        kind = self.weight_qType if as_weight else self.activation_qType
        return [self._quantize_input(node.input[place], kind, reduce_range, axis, self) for place in places]

    def _can_quantize(self, name) -> bool:
        known = not name or name in self.quantization_params or self.find_quantized_value(name) is not None
        return known or self.find_initializer_in_path(name)

    def _quantize_input(self, name, kind, reduce_range, axis, asking) -> QuantizedValue:
        if not name:  # an optional input that isn't there
            return QuantizedValue("", "", "", "", QuantizedValueType.Input)
        if name in self.quantized_value_map:
            return self.quantized_value_map[name]
        if name in self.initializers:
            by_channel = self.per_channel and axis is not None
            return self.quantize_initializer(name, kind, axis if by_channel else None, reduce_range)
        if name in self.known_names or name in self.generated_value_names:
            value, nodes = self._quantize_activation(name)
            self.add_new_nodes(nodes)
            return value
        if self.parent is None:
            raise ValueError(f"nothing makes '{name}', which a node to quantise reads (in graph '{self.graph_scope}')")
        return self.parent._quantize_input(name, kind, reduce_range, axis, asking)

    def quantize_initializer(self, name, kind, axis=None, reduce_range=False) -> QuantizedValue:
        """A weight in quantised form: `<name>_quantized`, `<name>_scale`, `<name>_zero_point`."""
        if name in self.quantized_value_map:
            return self.quantized_value_map[name]
        weight = self.initializers[name]
        own = self.is_weight_symmetric(kind) if kind == self.weight_qType or axis is not None else None
        symmetric = self.is_activation_symmetric if own is None else own
        if axis is not None and not normalize_axis(axis, len(weight.dims))[0]:
            axis = None
        plan = self.weight_plan(name, kind, axis, symmetric, self.reduce_range and reduce_range)
        value = self._write_weight(name, plan)
        if plan.axis is not None:
            value.axis = plan.axis if axis is None else axis
        return value

    def _write_weight(self, name, plan) -> QuantizedValue:
        weight = self.initializers[name]
        quantized, scale, zero = name + TENSOR_NAME_QUANT_SUFFIX, name + "_scale", name + "_zero_point"
        # Beside DynamicQuantizeLinear's scales, which are of f32.
        kind = weight.data_type if self.static or self.opset_version <= 10 else TensorProto.FLOAT
        tensors = (
            quantize_onnx_initializer(weight, plan.type, plan.zero_point, plan.scale, plan.axis),
            make_typed_initializer(scale, kind, plan.scale),
            make_typed_initializer(zero, plan.type, plan.zero_point),
        )
        for tensor in tensors:
            if tensor.name in self.initializers and name in self.quantized_value_map:
                self.initializers[tensor.name].CopyFrom(tensor)
            else:
                self._add_initializer(tensor)
        self.plan.tensors[name] = plan
        value = self.quantized_value_map.get(name)
        if value is None:
            value = QuantizedValue(name, quantized, scale, zero, QuantizedValueType.Initializer)
            self.quantized_value_map[name] = value
        return value

    def _quantize_activation(self, name):
        """(the quantised value, nodes that make it)."""
        if name in self.quantizing:
            return self.quantized_value_map[name], []
        result, nodes = name + TENSOR_NAME_QUANT_SUFFIX, []
        names = self.parameters(name)
        if names is None and self.opset_version > 10 and self.activation_qType == TensorProto.UINT8:
            names = (name + "_scale", name + "_zero_point")
            source = name
            if self.get_tensor_type(name) == TensorProto.FLOAT16:  # which DynamicQuantizeLinear does not take
                source = name + "_as_float"
                nodes.append(onnx.helper.make_node("Cast", [name], [source], source, to=TensorProto.FLOAT))
            node = onnx.helper.make_node("DynamicQuantizeLinear", [source], [result, *names], add_quant_suffix(name))
        else:
            if names is None:
                names = self._computed_parameters(name, nodes)
            node = onnx.helper.make_node(QUANT_OP_NAME, [name, *names], [result], add_quant_suffix(name))
        self.quantizing[name] = node
        value = QuantizedValue(name, result, *names, QuantizedValueType.Input)
        self.quantized_value_map[name] = value
        return value, [*nodes, node]

    def _computed_parameters(self, name, nodes):
        """Adds nodes that compute a scale and zero point as DynamicQuantizeLinear does, which opset 11 brings.

        u8: scale = (max - min) / 255, zero point = floor(-min / scale). s8: scale = max|x| · 2 / 254, zero point 0.
        """
        kind = self.activation_qType
        element = self.get_tensor_type(name, mandatory=True)
        steps, zero = f"fixed_quantization_range_{type_name(kind).lower()}", "fixed_zero"

        def add(op_type, inputs, result, **arguments):
            nodes.append(onnx.helper.make_node(op_type, inputs, [result], result + "_node", **arguments))
            return result

        low = add("ReduceMin", [name], name + "_ReduceMin", keepdims=0)
        high = add("ReduceMax", [name], name + "_ReduceMax", keepdims=0)
        scale = name + "_scale"
        if kind == TensorProto.INT8:
            ends = [add("Abs", [low], low + "_Abs"), add("Abs", [high], high + "_Abs")]
            largest = add("Max", ends, name + "_Abs_Max")
            self._add_initializer(make_typed_initializer(steps, element, np.array(get_qrange_for_qType(kind) / 2)))
            self._add_initializer(make_typed_initializer("fixed_zero_zp", kind, np.array(0)))
            return add("Div", [largest, steps], scale), "fixed_zero_zp"
        self._add_initializer(make_typed_initializer(steps, element, np.array(float(get_qrange_for_qType(kind)))))
        self._add_initializer(make_typed_initializer(zero, element, np.array(0.0)))
        add("Div", [add("Sub", [high, low], scale + "_Sub"), steps], scale)
        zero_point = name + "_zero_point"
        place = add("Div", [add("Sub", [zero, low], zero_point + "_Sub"), scale], zero_point + "_Div")
        return scale, add("Cast", [add("Floor", [place], zero_point + "_Floor")], zero_point, to=kind)

    def quantize_bias(self, name, data: QuantizedValue, weight: QuantizedValue, beta=1.0) -> str:
        """A bias times beta as `<name>_quantized` of i32, at the scale data's · weight's; with floats of 8 bits it stays f32.

        Where i32 can't hold it, the weight's scale is raised and the weight rounded again.
        """
        if name in self.quantized_value_map:
            return self.quantized_value_map[name].q_name
        values = tensor_proto_to_array(self.initializers[name])
        quantized = name + TENSOR_NAME_QUANT_SUFFIX
        if self.weight_qType in FLOAT8_TYPES:
            self._add_initializer(onnx.numpy_helper.from_array(values.astype(np.float32), quantized))
            self._add_initializer(onnx.numpy_helper.from_array(np.ones(1, np.float32), quantized + "_scale"))
            zero = onnx.helper.make_tensor(quantized + "_zero_point", self.weight_qType, [1], [0.0])
            self._add_initializer(zero)
            axis, node_type = None, "Cast"
        else:
            values = (values * beta).astype(values.dtype)
            scale = self._bias_scale(name, values, data, weight)
            self._add_initializer(onnx.numpy_helper.from_array(quantized_bias(name, values, scale), quantized))
            self._add_initializer(onnx.numpy_helper.from_array(scale.reshape(-1), quantized + "_scale"))
            shape = (scale.size,) if scale.size > 1 else ()
            zero = make_typed_initializer(quantized + "_zero_point", TensorProto.INT32, np.zeros(shape, np.int32))
            self._add_initializer(zero)
            axis, node_type = (0 if scale.size > 1 else None), DEQUANT_OP_NAME
            self.plan.tensors[name] = TensorPlan(
                "bias", TensorProto.INT32, scale, axis=axis, input=data.original_name, weight=weight.original_name,
                beta=beta,
            )  # fmt: skip
        self.quantized_value_map[name] = QuantizedValue(
            name, quantized, quantized + "_scale", quantized + "_zero_point", QuantizedValueType.Initializer, axis,
            node_type=node_type,
        )  # fmt: skip
        return quantized

    def _bias_scale(self, name, values, data, weight):
        data_scale = tensor_proto_to_array(self.initializers[data.scale_name])
        plan = self.plan.tensors.get(weight.original_name)
        if plan is not None and plan.role == "weight":
            adjustable = self.weight_qType == TensorProto.INT8 and not plan.zero_point.astype(np.int32).any()
            raised = scales_for_bias(values, data_scale, plan.scale) if adjustable else None
            if raised is not None:
                logger.info("the scale of weight '%s' is raised so that bias '%s' fits i32", weight.original_name, name)
                plan.scale = raised
                self._write_weight(weight.original_name, plan)
        weight_scale = tensor_proto_to_array(self.initializers[weight.scale_name])
        return np.asarray(data_scale * weight_scale, values.dtype)

    # Results.

    def add_result(self, name, quantized, parameters) -> QuantizedValue:
        """Notes that a value is found in quantised form under another name."""
        value = QuantizedValue(name, quantized, parameters[0], parameters[1], QuantizedValueType.Input)
        self.quantized_value_map[name] = value
        return value

    def dequantize(self, name) -> None:
        """Makes a value available as floats, where it is there in quantised form only."""
        value = self.quantized_value_map.get(name)
        if value is None or name in self.generated_value_names or name in self.dequantized:
            return
        self.dequantized.add(name)
        self.add_new_nodes([self._dequantizing(name, value)])

    @staticmethod
    def _dequantizing(name, value):
        inputs = [value.q_name, value.scale_name, value.zp_name]
        return onnx.helper.make_node(DEQUANT_OP_NAME, inputs, [name], add_dequant_suffix(name), axis=value.axis)

    def _dequantize_shared_weights(self) -> None:
        """One quantised copy for all readers of a weight, also for those that read floats."""
        read = {name for node in self.new_nodes for name in node.input}
        first = []
        for name, value in self.quantized_value_map.items():
            shared = value.value_type is QuantizedValueType.Initializer and value.node_type is None and name in read
            if shared and name in self.initializers and name not in self.dequantized:
                self.dequantized.add(name)
                first.append(self._dequantizing(name, value))
        self.new_nodes[:0] = first


def _uses_domain(graph, domain: str) -> bool:
    from .onnx_model import subgraphs_of

    return any(
        node.domain == domain or any(_uses_domain(body, domain) for body in subgraphs_of(node)) for node in graph.node
    )
