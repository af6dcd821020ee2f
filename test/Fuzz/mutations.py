"""Changes of a model that leave it nearly a model: nodes, attributes, types, sizes, constants."""

import copy

import numpy as np
import onnx
from onnx import AttributeProto, helper

INTEGERS = [0, 1, -1, 2, 3, 5, 7, 8, 16, 17, 64, 100, 127, 128, 255, 256, 1024, 65536]
INTEGERS += [2**31 - 1, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1e30, -1e-30, float("inf"), float("nan")]
STRINGS = (
    b"""SAME_UPPER SAME_LOWER VALID linear cubic edge reflect wrap add max DCR ij,jk->ik ...ij->...ji
 bidirectional reverse tf_crop_and_resize %s\xff""".split()
    + [b""]
)
OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
# Of com.microsoft, whose schemas onnx does not know.
KNOWN = "num_heads kv_num_heads unidirectional block_size bits K N k axis rotary_embedding_dim do_rotary local_window_size qkv_hidden_sizes".split()


class Mutator:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))] if len(items) else None

    def maybe(self, p=0.5):
        return self.rng.random() < p

    def integer(self):
        return int(self.rng.integers(-3, 9)) if self.maybe(0.4) else self.pick(INTEGERS)

    def mutate(self, model):
        model = copy.deepcopy(model)
        for _ in range(int(self.rng.integers(1, 4))):
            graphs = [model.graph]
            for graph in graphs:
                graphs += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
            graph = model.graph if self.maybe(0.6) else self.pick(graphs)
            common = [self.node, self.attribute] * 3 + [self.type] * 2
            self.pick([*common, self.tensor, self.lists, self.version])(model, graph)
        return model

    def names(self, graph):
        names = [v.name for v in graph.input] + [t.name for t in graph.initializer]
        return names + [name for node in graph.node for name in node.output if name]

    def name(self, graph):
        return self.pick(["", "nowhere"]) if self.maybe(0.05) else self.pick(self.names(graph)) or ""

    def node(self, model, graph):
        node = self.pick(graph.node)
        if node is None:
            return
        kind = self.rng.integers(7)
        if kind == 0 and len(graph.node) > 1:
            graph.node.remove(node)
        elif kind == 1:
            node.op_type = self.pick(OPERATORS)
        elif kind == 2:  # a reader of some values, and a result
            count = int(self.rng.integers(1, 4))
            made = f"made{len(graph.node)}"
            graph.node.append(helper.make_node(self.pick(OPERATORS), [self.name(graph) for _ in range(count)], [made]))
            graph.output.append(onnx.ValueInfoProto(name=made))
        elif kind == 3 and node.input:
            node.input[int(self.rng.integers(len(node.input)))] = self.name(graph)
        elif kind == 4:
            node.input.append(self.name(graph))
        elif kind == 5 and node.input:
            node.input.pop()
        elif kind == 6:
            if len(node.output) > 1 and self.maybe():
                node.output.pop()
            else:
                node.output.append(f"more{len(graph.node)}")

    def attribute(self, model, graph):
        node = self.pick(graph.node)
        if node is None:
            return
        attribute = self.pick(node.attribute)
        if attribute is None or self.maybe(0.3):
            try:
                schema = onnx.defs.get_schema(node.op_type, node.domain)
            except onnx.defs.SchemaError:
                if node.domain == "com.microsoft":
                    node.attribute.append(helper.make_attribute(self.pick(KNOWN), self.integer()))
                return
            known = self.pick(sorted(schema.attributes))
            if known is None:
                return
            attribute = node.attribute.add(name=known, type=schema.attributes[known].type.value)
        elif self.maybe(0.1):
            node.attribute.remove(attribute)
            return
        if attribute.type == AttributeProto.INT:
            attribute.i = self.integer()
        elif attribute.type == AttributeProto.FLOAT:
            attribute.f = self.pick(FLOATS)
        elif attribute.type == AttributeProto.STRING:
            attribute.s = self.pick(STRINGS)
        elif attribute.type == AttributeProto.INTS:
            if attribute.ints and self.maybe(0.7):
                attribute.ints[int(self.rng.integers(len(attribute.ints)))] = self.integer()
            elif attribute.ints and self.maybe():
                attribute.ints.pop()
            else:
                attribute.ints.append(self.integer())
        elif attribute.type in (AttributeProto.FLOATS, AttributeProto.STRINGS):
            self.list(attribute)
        elif attribute.HasField("t"):
            self.change(attribute.t)

    def list(self, attribute):
        """Another element, one more, one less, or none."""
        numbers = attribute.type == AttributeProto.FLOATS
        values = attribute.floats if numbers else attribute.strings
        value = self.pick(FLOATS if numbers else STRINGS)
        kind = self.rng.integers(5)
        if kind == 0 or not values:
            values.append(value)
        elif kind == 1:
            values.pop()
        elif kind == 2 and self.maybe(0.3):
            del values[:]
        else:
            values[int(self.rng.integers(len(values)))] = value

    def tensor(self, model, graph):
        tensor = self.pick(graph.initializer)
        if tensor is not None:
            self.change(tensor)
        elif graph.input:  # an input becomes a constant
            value = self.pick(graph.input)
            sizes = [d.dim_value for d in value.type.tensor_type.shape.dim]
            if 0 <= np.prod(sizes, dtype=object) < 10000:
                try:
                    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                    array = self.rng.integers(-3, 9, sizes).astype(dtype)
                    graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
                except (TypeError, KeyError, ValueError, NotImplementedError):
                    pass

    def change(self, tensor):
        kind = self.rng.integers(5)
        if kind == 0:
            tensor.data_type = int(self.rng.integers(27))
        elif kind == 1:
            tensor.dims.append(self.integer())
        elif kind == 2 and tensor.dims:
            tensor.dims[int(self.rng.integers(len(tensor.dims)))] = self.integer()
        elif kind == 3 and tensor.data_type == onnx.TensorProto.INT64:
            try:
                array = onnx.numpy_helper.to_array(tensor).copy() if self.sound(tensor) else None
            except ValueError:  # changed before
                array = None
            if array is not None and array.size:
                array.reshape(-1)[int(self.rng.integers(array.size))] = self.integer()
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        elif kind == 3 and tensor.data_type == onnx.TensorProto.STRING:
            tensor.string_data.append(self.pick(STRINGS))
            if self.maybe():
                del tensor.string_data[0]
        elif kind == 4 and self.maybe(0.3):
            tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]

    def sound(self, tensor):
        try:
            onnx.checker.check_tensor(tensor)
            return True
        except Exception:  # the checker has several
            return False

    def type(self, model, graph):
        value = self.pick([*graph.input, *graph.input, *graph.output])
        if value is None:
            return
        tensor = value.type.tensor_type
        if self.maybe(0.25):
            tensor.elem_type = int(self.rng.integers(1, 24))
        elif self.maybe(0.2):
            if tensor.shape.dim and self.maybe():
                tensor.shape.dim.pop()
            else:
                tensor.shape.dim.add().dim_value = int(self.rng.integers(0, 5))
        elif tensor.shape.dim:
            dim = self.pick(tensor.shape.dim)
            if self.maybe():
                dim.dim_param = self.pick(["A", "B", "C", "N"])
            elif self.maybe(0.2):
                dim.ClearField("value")
            else:
                dim.dim_value = int(self.rng.integers(0, 9)) if self.maybe(0.8) else self.integer()

    def lists(self, model, graph):
        kind = self.rng.integers(4)
        if kind == 0 and len(graph.input) > 1:
            graph.input.remove(self.pick(graph.input))
        elif kind == 1:
            graph.output.append(onnx.ValueInfoProto(name=self.name(graph)))
        elif kind == 2 and len(graph.output) > 1:
            graph.output.remove(self.pick(graph.output))
        elif kind == 3 and graph.initializer:
            graph.initializer.remove(self.pick(graph.initializer))

    def version(self, model, graph):
        for entry in model.opset_import:
            if entry.domain == "":
                entry.version = int(self.rng.integers(7, 28))
