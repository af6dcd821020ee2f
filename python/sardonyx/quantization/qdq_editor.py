"""Writes a plan into a graph as pairs of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto

from .base_quantizer import quantized_bias
from .graph_index import GraphIndex
from .names import (
    DEQUANT_OP_NAME,
    QUANT_OP_NAME,
    TENSOR_NAME_QUANT_SUFFIX,
    add_dequant_output_suffix,
    add_dequant_suffix,
    add_quant_input_suffix,
    add_quant_output_suffix,
    add_quant_suffix,
)
from .onnx_model import replace_all
from .plan import Plan, TensorPlan
from .quant_utils import make_typed_initializer, quantize_onnx_initializer, tensor_proto_to_array


class QDQEditor:
    """Applies a plan to a model, in place.

    :param receivers: {tensor: nodes that are quantised and read it}, for DedicatedQDQPair and converted types.
    :param options: an object with `dedicated_qdq_pair`, `add_qdq_pair_to_weight`, `qdq_op_domain`, `weight_qType`.
    """

    def __init__(self, model: ModelProto, plan: Plan, receivers: dict, options):
        self.graph, self.plan, self.receivers, self.options = model.graph, plan, receivers, options
        self.index = GraphIndex(model.graph)
        self.weight_nodes: list[NodeProto] = []  # which depend on no others and come first
        self.new_nodes: list[NodeProto] = []
        self.new_initializers: dict[str, TensorProto] = {}
        self.gone: set[str] = set()  # initialisers that nothing reads any more
        self.reads: dict[str, str] = {}  # {tensor: what all its readers read instead}
        self.node_reads: dict[tuple, str] = {}  # {(node's name, tensor): what that node reads instead}
        self.makes: dict[str, str] = {}  # {tensor: what its producer makes instead}
        self.parameters: dict[str, tuple] = {}  # {tensor: names of its scale and zero point}

    def apply(self) -> None:
        self._remove_activations()
        shared = []
        for name, tensor in self.plan.tensors.items():
            if tensor.role == "bias":
                self._bias(name, tensor)
            elif name in self.index.initializers:
                self._weight(name, tensor)
            elif tensor.shares:
                shared.append((name, tensor))
            else:
                self.parameters[name] = self._add_parameters(name, tensor)
                self._activation(name, tensor)
        while shared:
            later = [entry for entry in shared if not self._share(*entry)]
            if len(later) == len(shared):
                name, tensor = later[0]
                raise ValueError(f"tensor '{name}' takes the scale of '{tensor.shares[0]}', which has none")
            shared = later
        self._write()

    def _remove_activations(self) -> None:
        """Takes out nodes that a plan calls removed; their inputs' producers make their outputs."""
        self.kept = []
        for node in self.graph.node:
            decision = self.plan.nodes.get(node.name or node.output[0])
            if decision is None or decision.precision != "removed":
                self.kept.append(node)
                continue
            producer = self.index.producers[node.input[0]]
            for place, name in enumerate(producer.output):
                if name == node.input[0]:
                    producer.output[place] = node.output[0]
            self.index.producers[node.output[0]] = producer

    # Nodes and initialisers.

    def _add_parameters(self, name: str, tensor: TensorPlan, suffix: str = "") -> tuple:
        scale, zero = f"{name}_scale{suffix}", f"{name}_zero_point{suffix}"
        kind = TensorProto.FLOAT16 if tensor.scale.dtype == np.float16 else TensorProto.FLOAT
        self._add(make_typed_initializer(zero, tensor.type, tensor.zero_point))
        self._add(make_typed_initializer(scale, kind, tensor.scale))
        return scale, zero

    def _add(self, tensor: TensorProto) -> None:
        if tensor.name not in self.index.initializers or tensor.name in self.gone:
            self.new_initializers.setdefault(tensor.name, tensor)

    def _node(self, kind: str, source: str, parameters: tuple, result: str, name: str, axis=None, block=0) -> None:
        extra = {"block_size": block} if block else {}
        node = onnx.helper.make_node(
            kind, [source, *parameters], [result], name, axis=axis, domain=self.options.qdq_op_domain, **extra
        )
        constant = kind == DEQUANT_OP_NAME and source in self.new_initializers
        (self.weight_nodes if constant else self.new_nodes).append(node)

    def _pair(self, source, result, name, parameters, suffix="", axis=None, block=0) -> None:
        """source → QuantizeLinear → DequantizeLinear → result, named after the tensor `name`."""
        between = add_quant_output_suffix(name) + suffix
        self._node(QUANT_OP_NAME, source, parameters, between, add_quant_suffix(name) + suffix, axis, block)
        self._node(DEQUANT_OP_NAME, between, parameters, result, add_dequant_suffix(name) + suffix, axis, block)

    # Tensors.

    def _weight(self, name: str, tensor: TensorPlan) -> None:
        parameters = self.parameters[name] = self._add_parameters(name, tensor)
        result = self.reads[name] = add_dequant_output_suffix(name)
        if self.options.add_qdq_pair_to_weight:
            self._pair(name, result, name, parameters, axis=tensor.axis, block=tensor.block)
            return
        weight = quantize_onnx_initializer(
            self.index.initializers[name], tensor.type, tensor.zero_point, tensor.scale, tensor.axis,
            block_size=tensor.block,
        )  # fmt: skip
        self._add(weight)
        self._node(DEQUANT_OP_NAME, weight.name, parameters, result, add_dequant_suffix(name), tensor.axis, tensor.block)

    def _bias(self, name: str, tensor: TensorPlan) -> None:
        """`<bias>_quantized` of i32 → DequantizeLinear → `<bias>`; with weights of floats of 8 bits a Cast."""
        values = tensor_proto_to_array(self.index.initializers[name])
        quantized = name + TENSOR_NAME_QUANT_SUFFIX
        self.gone.add(name)
        if tensor.scale is None:
            self._add(onnx.numpy_helper.from_array(values.astype(np.float32), quantized))
            kind = self.index.initializers[name].data_type
            self.new_nodes.append(onnx.helper.make_node("Cast", [quantized], [name], add_dequant_suffix(name), to=kind))
            return
        if tensor.beta != 1:
            values = (values * tensor.beta).astype(values.dtype)
        scale, zero = quantized + "_scale", quantized + "_zero_point"
        self._add(onnx.numpy_helper.from_array(quantized_bias(name, values, tensor.scale), quantized))
        self._add(onnx.numpy_helper.from_array(tensor.scale.reshape(-1), scale))
        if tensor.scale.size > 1:
            self._add(onnx.numpy_helper.from_array(np.zeros(tensor.scale.size, np.int32), zero))
        else:
            self._add(make_typed_initializer(zero, TensorProto.INT32, np.zeros((), np.int32)))
        self._node(DEQUANT_OP_NAME, quantized, (scale, zero), name, add_dequant_suffix(name), tensor.axis)

    def _share(self, name: str, tensor: TensorPlan) -> bool:
        """Has a tensor use another's parameters, as soon as these are there."""
        source, node = tensor.shares
        if source in self.parameters:
            provider = self.plan.tensors[source]
            converted = provider.convert is not None and provider.for_consumer(node) is provider.convert
            self.parameters[name] = self.parameters[f"{source}\0convert" if converted else source]
        else:
            producer = self.index.producers.get(source)
            if producer is None or producer.op_type != DEQUANT_OP_NAME:
                return False
            self.parameters[name] = tuple(producer.input[1:3])
        self._activation(name, tensor)
        return True

    def _activation(self, name: str, tensor: TensorPlan) -> None:
        receivers = self.receivers.get(name, [])
        dedicated = self.options.dedicated_qdq_pair and len(receivers) > 1
        if tensor.convert is not None:
            if dedicated:
                raise ValueError(f"tensor '{name}' is converted, which DedicatedQDQPair does not go with")
            self._converted(name, tensor)
        elif dedicated:
            for index, node in enumerate(receivers, 1):
                result = f"{add_dequant_output_suffix(name)}_{index}"
                self._pair(name, result, name, self.parameters[name], f"_{index}")
                self.node_reads[node.name or node.output[0], name] = result
        elif name in self.index.outputs:
            source = self.makes[name] = add_quant_input_suffix(name)
            self._pair(source, name, name, self.parameters[name])
        else:
            result = self.reads[name] = add_dequant_output_suffix(name)
            self._pair(name, result, name, self.parameters[name])

    def _converted(self, name: str, tensor: TensorPlan) -> None:
        """A tensor that some of its readers, or all, read in a second type.

            all:  t → Q1 → DQ1 → Q2 → DQ2 → readers
            some: t → Q1 → DQ1 → readers of the first type
                        └→ DQ1' → Q2 → DQ2 → readers of the second

        DQ1' has one reader, so that a compiler may merge it with Q2. A graph's output is the value of the first
        type, unless all readers take the second.
        """
        first = self.parameters[name]
        second = self.parameters[f"{name}\0convert"] = self._add_parameters(name, tensor.convert, "_convert")
        readers = {node.name or node.output[0] for node in self.receivers.get(name, [])}
        takers = readers if tensor.convert_nodes is None else set(tensor.convert_nodes)
        everyone = len(takers) == len(readers)
        is_output = name in self.index.outputs
        converted = f"{name}_convert"

        source = name
        if is_output:
            source = self.makes[name] = add_quant_input_suffix(name)
        between = add_quant_output_suffix(name)
        self._node(QUANT_OP_NAME, source, first, between, add_quant_suffix(name))
        result = name if is_output and not everyone else add_dequant_output_suffix(name)
        self._node(DEQUANT_OP_NAME, between, first, result, add_dequant_suffix(name))
        for node in readers - takers:
            if result != name:
                self.node_reads[node, name] = result
        if not everyone:
            result = add_quant_input_suffix(converted)
            self._node(DEQUANT_OP_NAME, between, first, result, add_dequant_suffix(f"{converted}_clone"))
        last = name if is_output and everyone else add_dequant_output_suffix(converted)
        between = add_quant_output_suffix(converted)
        self._node(QUANT_OP_NAME, result, second, between, add_quant_suffix(converted))
        self._node(DEQUANT_OP_NAME, between, second, last, add_dequant_suffix(converted))
        for node in takers:
            if last != name:
                self.node_reads[node, name] = last

    def _write(self) -> None:
        """Gives nodes their new inputs and outputs, and the graph its new nodes and initialisers."""
        for node in self.kept:
            key = node.name or node.output[0]
            for place, name in enumerate(node.input):
                new = self.node_reads.get((key, name), self.reads.get(name))
                if new is not None:
                    node.input[place] = new
            for place, name in enumerate(node.output):
                if name in self.makes:
                    node.output[place] = self.makes[name]
        replace_all(self.graph.node, [*self.weight_nodes, *self.kept, *self.new_nodes])
        if self.gone:
            replace_all(self.graph.initializer, [each for each in self.graph.initializer if each.name not in self.gone])
            replace_all(self.graph.input, [each for each in self.graph.input if each.name not in self.gone])
        self.graph.initializer.extend(self.new_initializers.values())

