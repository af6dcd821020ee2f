"""A model that is edited: its nodes, initialisers and the edges between them."""

from __future__ import annotations

import heapq

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from .model_files import save_model
from .quant_types import FLOAT8_TYPES
from .quant_utils import attribute, find_by_name


def subgraphs_of(node: NodeProto):
    """The graphs that a node holds as attributes."""
    for entry in node.attribute:
        if entry.type == AttributeProto.GRAPH:
            yield entry.g
        elif entry.type == AttributeProto.GRAPHS:
            yield from entry.graphs


def remove_unused_initializers(graph: GraphProto) -> set:
    """Removes initialisers that no node and no output reads, or that a node makes as well; gives what is read from
    outside of the graph."""
    read = {name for node in graph.node for name in node.input if name} | {output.name for output in graph.output}
    for node in graph.node:
        for body in subgraphs_of(node):
            read |= remove_unused_initializers(body)
    computed = {name for node in graph.node for name in node.output}  # instead of an initialiser of that name
    kept = [tensor for tensor in graph.initializer if tensor.name in read - computed]
    if len(kept) != len(graph.initializer):
        dropped = {tensor.name for tensor in graph.initializer} - {tensor.name for tensor in kept}
        replace_all(graph.initializer, kept)
        replace_all(graph.input, [value for value in graph.input if value.name not in dropped])
    made = {name for node in graph.node for name in node.output}
    made.update(tensor.name for tensor in graph.initializer)
    made.update(tensor.values.name for tensor in graph.sparse_initializer)
    made.update(value.name for value in graph.input)
    return read - made


def replace_all(field, messages) -> None:
    """Makes a repeated field of messages hold these, some of which may be its own."""
    copies = [type(message)() for message in messages]
    for copy, message in zip(copies, messages):
        copy.CopyFrom(message)
    del field[:]
    field.extend(copies)


def sort_nodes(graph: GraphProto) -> None:
    """Orders nodes so that each follows those whose results it reads; nodes that may go anywhere keep their order."""
    producers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    waiting = []
    readers: list[list[int]] = [[] for _ in graph.node]
    for index, node in enumerate(graph.node):
        names = set(node.input)
        for body in subgraphs_of(node):
            names |= outer_names(body)
        needed = {producers[name] for name in names if name in producers} - {index}
        waiting.append(len(needed))
        for producer in needed:
            readers[producer].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(order) != len(graph.node):
        stuck = next(node.name for index, node in enumerate(graph.node) if waiting[index])
        raise ValueError(f"the graph has a cycle through node '{stuck}'")
    if order != list(range(len(order))):
        replace_all(graph.node, [graph.node[index] for index in order])


def sort_breadth_first(graph: GraphProto) -> None:
    """See `ONNXModel.topological_sort`."""
    waiting = [sum(1 for name in node.input if name) for node in graph.node]
    readers: dict[str, list] = {}
    for index, node in enumerate(graph.node):
        for name in node.input:
            readers.setdefault(name, []).append(index)
    order = [index for index, count in enumerate(waiting) if not count]

    def make(name):
        for index in readers.get(name, ()) if name else ():
            waiting[index] -= 1
            if not waiting[index]:
                order.append(index)

    for name in sorted({tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}):
        make(name)
    place = 0
    while place < len(order):
        for name in graph.node[order[place]].output:
            make(name)
        place += 1
    if len(order) != len(graph.node):  # bodies, or names that nothing makes, stand in the way
        sort_nodes(graph)
    else:
        replace_all(graph.node, [graph.node[index] for index in order])


def outer_names(graph: GraphProto) -> set:
    """Names that a graph's nodes read, and those of graphs within, and that the graph does not make."""
    read = {name for node in graph.node for name in node.input if name} | {output.name for output in graph.output}
    for node in graph.node:
        for body in subgraphs_of(node):
            read |= outer_names(body)
    made = {name for node in graph.node for name in node.output}
    made.update(tensor.name for tensor in graph.initializer)
    made.update(value.name for value in graph.input)
    return read - made


class ONNXModel:
    """A ModelProto with look-ups and edits. Look-ups walk the graph; `graph_index.GraphIndex` is for many of them."""

    def __init__(self, model: ModelProto):
        self.model = model

    def nodes(self):
        return self.model.graph.node

    def initializer(self):
        return self.model.graph.initializer

    def graph(self):
        return self.model.graph

    def ir_version(self):
        return self.model.ir_version

    def opset_import(self):
        return self.model.opset_import

    def set_opset_import(self, domain, version):
        for entry in self.model.opset_import:
            if entry.domain == domain:
                entry.version = version
                return
        self.model.opset_import.add(domain=domain, version=version)

    def initializer_extend(self, inits):
        for tensor in inits:
            self.model.graph.initializer.append(self._check_init(tensor))

    def add_initializer(self, tensor):
        """Adds an initialiser, unless there is one of its name."""
        if find_by_name(tensor.name, self.model.graph.initializer) is None:
            self.initializer_extend([tensor])

    def get_initializer(self, name):
        return find_by_name(name, self.model.graph.initializer)

    def get_initializer_name_set(self):
        return {tensor.name for tensor in self.model.graph.initializer}

    def remove_initializer(self, tensor):
        if tensor in self.model.graph.initializer:
            self.model.graph.initializer.remove(tensor)
            value = self.find_graph_input(tensor.name)
            if value is not None:
                self.model.graph.input.remove(value)

    def remove_initializers(self, init_to_remove):
        for tensor in init_to_remove:
            self.remove_initializer(tensor)

    def remove_node(self, node):
        if node in self.model.graph.node:
            self.model.graph.node.remove(node)

    def remove_nodes(self, nodes_to_remove):
        for node in nodes_to_remove:
            self.remove_node(node)

    def add_node(self, node):
        self.model.graph.node.append(node)

    def add_nodes(self, nodes_to_add):
        self.model.graph.node.extend(nodes_to_add)

    def find_graph_input(self, input_name):
        return find_by_name(input_name, self.model.graph.input)

    def find_graph_output(self, output_name):
        return find_by_name(output_name, self.model.graph.output)

    def is_graph_input(self, tensor_name):
        return self.find_graph_input(tensor_name) is not None

    def is_graph_output(self, output_name):
        return self.find_graph_output(output_name) is not None

    def get_non_initializer_inputs(self):
        weights = self.get_initializer_name_set()
        return {value.name for value in self.model.graph.input if value.name not in weights}

    def get_tensor_type(self, tensor_name):
        """The TypeProto.Tensor of a value, or None."""
        graph = self.model.graph
        for values in (graph.value_info, graph.input, graph.output):
            value = find_by_name(tensor_name, values)
            if value is not None:
                return value.type.tensor_type
        return None

    def get_constant_value(self, output_name):
        """The numbers of an initialiser or of a node Constant, or None."""
        tensor = self.get_initializer(output_name)
        if tensor is None:
            for node in self.model.graph.node:
                if node.op_type == "Constant" and node.output[0] == output_name:
                    tensor = attribute(node, "value")
        return None if tensor is None else onnx.numpy_helper.to_array(tensor)

    def input_name_to_nodes(self):
        readers: dict[str, list] = {}
        for node in self.model.graph.node:
            for name in node.input:
                if name:
                    readers.setdefault(name, []).append(node)
        return readers

    def output_name_to_node(self):
        return {name: node for node in self.model.graph.node for name in node.output if name}

    def get_children(self, node, input_name_to_nodes=None):
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        return [reader for name in node.output for reader in readers.get(name, ())]

    def get_parents(self, node, output_name_to_node=None):
        producers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return [producers[name] for name in node.input if name in producers]

    def get_parent(self, node, idx, output_name_to_node=None):
        producers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return producers.get(node.input[idx]) if idx < len(node.input) else None

    def find_node_by_name(self, node_name, new_nodes_list, graph):
        return find_by_name(node_name, [*graph.node, *new_nodes_list])

    def find_nodes_by_initializer(self, graph, initializer):
        return [node for node in graph.node for name in node.input if name == initializer.name]

    @staticmethod
    def _largest_suffix(items, prefix):
        rests = (item.name[len(prefix) :] for item in items if item.name.startswith(prefix))
        return max((int(rest) for rest in rests if rest.isdigit()), default=-1)

    def get_largest_node_name_suffix(self, node_name_prefix):
        """The largest number that follows a prefix in the names of nodes, or -1."""
        return self._largest_suffix(self.model.graph.node, node_name_prefix)

    def get_largest_initializer_name_suffix(self, initializer_name_prefix):
        return self._largest_suffix(self.model.graph.initializer, initializer_name_prefix)

    @staticmethod
    def replace_node_input(node, old_input_name, new_input_name):
        for index, name in enumerate(node.input):
            if name == old_input_name:
                node.input[index] = new_input_name

    @staticmethod
    def replace_node_output(node, old_output_name, new_output_name):
        for index, name in enumerate(node.output):
            if name == old_output_name:
                node.output[index] = new_output_name

    def replace_input_of_all_nodes(self, old_input_name, new_input_name):
        for node in self.model.graph.node:
            self.replace_node_input(node, old_input_name, new_input_name)

    def replace_input_of_nodes(self, old_input_name, new_input_name, node_names_set):
        for node in self.model.graph.node:
            if node.name in node_names_set:
                self.replace_node_input(node, old_input_name, new_input_name)

    def replace_output_of_all_nodes(self, old_output_name, new_output_name):
        for node in self.model.graph.node:
            self.replace_node_output(node, old_output_name, new_output_name)

    def replace_output_of_nodes(self, old_output_name, new_output_name, node_names_set):
        for node in self.model.graph.node:
            if node.name in node_names_set:
                self.replace_node_output(node, old_output_name, new_output_name)

    def remove_unused_constant(self):
        """Removes nodes Constant and initialisers that nothing reads."""
        read = {name for node in self.nodes() for name in node.input} | {output.name for output in self.graph().output}
        for node in self.nodes():
            for body in subgraphs_of(node):
                read |= outer_names(body)
        self.remove_nodes([node for node in self.nodes() if node.op_type == "Constant" and node.output[0] not in read])
        remove_unused_initializers(self.graph())

    def clean_initializers(self):
        """Removes unused initialisers; gives the graph and the names that it reads and doesn't make."""
        return self.graph(), remove_unused_initializers(self.graph())

    def topological_sort(self):
        """Orders nodes breadth first: those without inputs, then readers of initialisers and inputs by these' names,
        then readers of results; see `sort_nodes` for the order that changes least."""
        sort_breadth_first(self.graph())

    def replace_gemm_with_matmul(self, names=None):
        """Writes each Gemm that is a product and a sum as MatMul `<name>_MatMul` and Add `<name>_Add`; with `names`
        only those of this graph that are called so."""
        replace_gemms(self.graph(), [], names)

    def save_model_to_file(self, output_path, use_external_data_format=False):
        """Writes the model in topological order, its weights to `<path>.data` if asked."""
        sort_nodes(self.graph())
        for tensor in self.initializer():
            self._check_init(tensor)
        save_model(self.model, output_path, use_external_data_format)

    @staticmethod
    def _check_init(tensor: TensorProto) -> TensorProto:
        if tensor.data_type in FLOAT8_TYPES and tensor.raw_data:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            if np.isnan(values).any():
                raise ValueError(f"initialiser '{tensor.name}' holds NaN")
        return tensor


def replace_gemms(graph: GraphProto, outer: list, names=None) -> None:
    """See `ONNXModel.replace_gemm_with_matmul`; `outer` are the graphs around this one."""
    nodes = []
    for node in graph.node:
        for body in subgraphs_of(node):
            replace_gemms(body, [graph, *outer])
        plain = attribute(node, "alpha", 1.0) == attribute(node, "beta", 1.0) == 1.0
        named = names is None or node.name in names
        if node.op_type == "Gemm" and named and plain and not attribute(node, "transA", 0):
            nodes.extend(_product_and_sum(node, [graph, *outer]))
        else:
            nodes.append(node)
    replace_all(graph.node, nodes)


def _product_and_sum(node: NodeProto, graphs: list):
    right = node.input[1]
    if attribute(node, "transB", 0):
        found = next(((graph, tensor) for graph in graphs for tensor in graph.initializer if tensor.name == right), None)
        if found is not None and sum(name == right for graph in graphs for each in graph.node for name in each.input) == 1:
            graph, tensor = found
            turned = onnx.numpy_helper.from_array(np.ascontiguousarray(onnx.numpy_helper.to_array(tensor).T), right)
            tensor.CopyFrom(turned)
            value = find_by_name(right, graph.input)
            if value is not None:
                graph.input.remove(value)
        elif found is not None:  # others read it as it is
            graph, tensor = found
            right += "_Transposed"
            if find_by_name(right, graph.initializer) is None:
                values = np.ascontiguousarray(onnx.numpy_helper.to_array(tensor).T)
                graph.initializer.append(onnx.numpy_helper.from_array(values, right))
        else:
            right += "_Transposed"
            name = node.name + "_Transpose" if node.name else ""
            yield onnx.helper.make_node("Transpose", [node.input[1]], [right], name)
    biased = len(node.input) > 2 and node.input[2]
    product = node.output[0] + ("_MatMul" if biased else "")
    name = node.name + "_MatMul" if node.name else ""
    yield onnx.helper.make_node("MatMul", [node.input[0], right], [product], name)
    if biased:
        name = node.name + "_Add" if node.name else ""
        yield onnx.helper.make_node("Add", [product, node.input[2]], node.output, name)
