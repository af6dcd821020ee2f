"""Models of f32 as models of 16-bit floats, and back.

Every node gets one type for its floats: the 16-bit one, or f32 where it is blocked, where its operator does not take
16 bits, or where one of its weights leaves their range. Between nodes of two types there is a Cast, one for each value
and type. Values are told apart by their types, never by names; bodies of If, Loop and Scan are converted, too.
"""

from __future__ import annotations

import logging
import os

import ml_dtypes
import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

from .._suggest import unknown
from .calibrate import samples_of
from .half_ranges import out_of_range
from .model_files import infer_types, load_model, name_nodes
from .onnx_model import sort_nodes, subgraphs_of
from .options import check_nodes
from .quant_utils import attribute

logger = logging.getLogger("sardonyx")

# Operators that stay f32 unless callers say otherwise: those of machine learning, and those that count, compare or
# measure with numbers that 16 bits don't hold.
DEFAULT_OP_BLOCK_LIST = [
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer", "Imputer",
    "LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "RandomUniformLike",
    "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble",
    "ZipMap", "NonMaxSuppression", "TopK", "RoiAlign", "Range", "CumSum", "Min", "Max", "Upsample",
]  # fmt: skip
# Inputs that are f32 whatever the node's type is, by operator.
ALWAYS_FLOAT_INPUTS = {"Resize": [2], "GroupNorm": [1, 2], "SkipGroupNorm": [1, 2]}

_TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT}
_SUFFIXES = {kind: name for name, kind in _TYPES.items()}
_DTYPES = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
}
_ONNX_NAMES = {
    TensorProto.FLOAT: "tensor(float)", TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)",
}  # fmt: skip
# Attributes that name the type of a node's output.
_TYPE_ATTRIBUTES = {
    "Cast": "to", "EyeLike": "dtype", "Multinomial": "dtype", "RandomNormal": "dtype", "RandomNormalLike": "dtype",
    "RandomUniform": "dtype", "RandomUniformLike": "dtype", "Bernoulli": "dtype", "SequenceEmpty": "dtype",
}  # fmt: skip
_FLOAT_BY_DEFAULT = ("RandomNormal", "RandomUniform", "SequenceEmpty")  # where that attribute is missing


def convert_np_to_float16(np_array, min_positive_val=5.96e-08, max_finite_val=65504.0):
    """f32 as f16: numbers nearer to 0 than `min_positive_val` become that, beyond `max_finite_val` that; of either sign."""
    size = np.abs(np_array)
    moved = np.where((size > 0) & (size < min_positive_val), np.copysign(min_positive_val, np_array), np_array)
    far = (size > max_finite_val) & np.isfinite(np_array)
    return np.where(far, np.copysign(max_finite_val, np_array), moved).astype(np.float16)


def float_to_float16_max_diff(tensor, min_positive_val=5.96e-08, max_finite_val=65504.0):
    """The largest difference that f16 makes to an initialiser of f32."""
    if not isinstance(tensor, TensorProto):
        raise ValueError(f"a tensor is a TensorProto, not a {type(tensor).__name__}")
    if tensor.data_type != TensorProto.FLOAT:
        raise ValueError(f"tensor '{tensor.name}' is not of f32")
    values = onnx.numpy_helper.to_array(tensor)
    halves = convert_np_to_float16(values, min_positive_val, max_finite_val).astype(np.float32)
    return np.abs(values - halves).max(initial=0)


def convert_float_to_float16(
    model, min_positive_val=5.96e-08, max_finite_val=65504.0, keep_io_types=False, disable_shape_infer=False,
    op_block_list=None, node_block_list=None, force_fp16_initializers=False, force_fp16_inputs=None,
    use_bfloat16_as_blocked_nodes_dtype=False,
) -> ModelProto:  # fmt: skip
    """A copy of a model with f16 in the place of f32.

    :param model: a path or a ModelProto, which is not changed.
    :param max_finite_val: weights beyond it stay f32, and so do the nodes that read them; nothing is clipped.
    :param keep_io_types: whether inputs and outputs stay f32, or the names of those that do.
    :param disable_shape_infer: take the types that the model holds for those of all values.
    :param op_block_list: operators that stay f32 (DEFAULT_OP_BLOCK_LIST).
    :param node_block_list: names or patterns of nodes that stay f32.
    :param force_fp16_initializers: store weights of nodes of f32 in f16, too.
    :param force_fp16_inputs: {operator: [inputs]} of ALWAYS_FLOAT_INPUTS that become f16.
    :param use_bfloat16_as_blocked_nodes_dtype: nodes that are blocked compute in bf16 instead of f32.
    """
    if min_positive_val < 5.96e-08 or max_finite_val > 65504.0:
        raise ValueError("f16 has positive numbers from 5.96e-08 to 65504")
    model = load_model(model)
    if not disable_shape_infer:
        infer_types(model)
    blocked = set(DEFAULT_OP_BLOCK_LIST if op_block_list is None else op_block_list)
    names = set(check_nodes(node_block_list, model, "node_block_list"))
    converter = _Converter(
        model, TensorProto.FLOAT, TensorProto.FLOAT16, blocked, names,
        TensorProto.BFLOAT16 if use_bfloat16_as_blocked_nodes_dtype else TensorProto.FLOAT,
        least=min_positive_val, largest=max_finite_val, force_weights=force_fp16_initializers,
        force_inputs=force_fp16_inputs or {},
    )  # fmt: skip
    return converter.convert(keep_io_types)


def convert_precision(
    model, to, keep_io_types=True, op_block_list=None, node_block_list=None, data=None, max_error=None, min_speedup=None,
    **bounds,
):  # fmt: skip
    """A copy of a model with its floats in "f16" or "bf16"; "f32" takes a model of either back.

    Inputs and outputs keep their types unless `keep_io_types` is false, or a list of those that do. Other arguments are
    those of `convert_float_to_float16`.

    With `data`, samples as for `quantize`, nodes that read or make numbers which f16 doesn't hold stay f32; with "auto"
    they become bf16, and all others f16. With `max_error` or `min_speedup` the samples judge, too: what comes is the
    `Result` of `quantize`, whose further arguments (`metric`, `holdout`, `output`, …) are taken, or Refused is raised.
    """
    if to not in (*_TYPES, "auto"):
        raise ValueError(unknown("type", to, (*_TYPES, "auto"), "convert_precision"))
    if max_error is not None or min_speedup is not None:
        return _convert_within(model, to, keep_io_types, op_block_list, node_block_list, data, max_error, min_speedup, bounds)
    if bounds:
        raise TypeError(f"'{next(iter(bounds))}' goes with max_error or min_speedup")
    if to == "auto" and data is None:
        raise ValueError("\"auto\" tells by samples what f16 holds: give data")
    model = infer_types(load_model(model))
    name_nodes(model)
    names = set(check_nodes(node_block_list, model, "node_block_list"))
    if to == "f32":
        for source in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
            model = _Converter(model, source, TensorProto.FLOAT, set(), names, source).convert(keep_io_types)
        return model
    outside: dict[str, str] = {}
    if data is not None and to != "bf16":
        outside = {name: why for name, why in out_of_range(model, list(samples_of(data))).items() if name not in names}
        for name, why in outside.items():
            logger.warning("node '%s' is not of f16: %s", name, why)
    blocked = set(DEFAULT_OP_BLOCK_LIST if op_block_list is None else op_block_list)
    kind = TensorProto.FLOAT16 if to == "auto" else _TYPES[to]
    others = dict.fromkeys(outside, TensorProto.BFLOAT16 if to == "auto" else TensorProto.FLOAT)
    return _Converter(
        model, TensorProto.FLOAT, kind, blocked, names, TensorProto.FLOAT,
        largest=float(ml_dtypes.finfo(_DTYPES[kind]).max), others=others,
    ).convert(keep_io_types)  # fmt: skip


def _convert_within(model, to, keep_io_types, op_block_list, node_block_list, data, max_error, min_speedup, bounds):
    from .contract import quantize_within

    if to == "f32" or data is None:
        raise ValueError("bounds of a conversion need data, and a type other than f32")
    if keep_io_types is not True or op_block_list is not None:
        raise ValueError("a conversion with bounds keeps the types of inputs and outputs, and finds what stays f32 itself")
    precision = "halves" if to == "auto" else to
    return quantize_within(
        model, data, max_error, min_speedup=min_speedup, precision=precision, keep_float=node_block_list, **bounds
    )


class _Scope:
    """The types of the values of a graph, before and after, its weights, and the graphs around it."""

    def __init__(self, outer=None):
        self.outer = outer
        self.weights: dict[str, TensorProto] = {}
        self.wanted: dict[str, set] = {}  # {weight: types in which it is read, also by bodies}
        self.casts: dict[tuple, str] = {}  # {(value, type): its name in that type}
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}

    def find(self, table: str, name: str):
        scope = self
        while scope is not None:
            if name in getattr(scope, table):
                return getattr(scope, table)[name]
            scope = scope.outer
        return None

    def owner_of(self, name: str):
        """The graph that has a weight of this name; None where it is none."""
        scope = self
        while scope is not None and name not in scope.weights:
            scope = scope.outer
        return scope


def _with_bodies(nodes):
    """Nodes, and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for body in subgraphs_of(node):
            yield from _with_bodies(body.node)


class _Converter:
    """Writes values of type `source` as `target`, but around blocked nodes, which have `blocked_type`."""

    def __init__(
        self, model, source, target, op_types, names, blocked_type, least=0.0, largest=np.inf, force_weights=False,
        force_inputs=None, others=None,
    ):  # fmt: skip
        self.others = others or {}  # {node: type} of some nodes
        self.model, self.source, self.target, self.blocked_type = model, source, target, blocked_type
        self.op_types, self.names = op_types, names
        self.least, self.largest = least, largest
        self.force_weights, self.force_inputs = force_weights, force_inputs or {}
        self.versions = {entry.domain or "": entry.version for entry in model.opset_import}
        self.functions = {(function.domain, function.name) for function in model.functions}
        self.taken = set()

    def convert(self, keep_io_types) -> ModelProto:
        graph = self.model.graph
        self.taken = {name for node in _with_bodies(graph.node) for name in (*node.input, *node.output)}
        ends = [value.name for value in (*graph.input, *graph.output)]
        if isinstance(keep_io_types, (list, tuple, set)):
            for name in keep_io_types:
                if name not in ends:
                    raise ValueError(unknown("input or output", name, ends))
            kept = set(keep_io_types)
        else:
            kept = set(ends) if keep_io_types else set()
        self._convert_graph(graph, _Scope(), kept)
        return self.model

    def _convert_graph(self, graph: GraphProto, scope: _Scope, kept: set) -> None:
        self._read_types(graph, scope)
        weights = scope.weights = {tensor.name: tensor for tensor in graph.initializer}
        for value in graph.input:
            if self._is_source(scope, value.name) and value.name not in weights:
                scope.after[value.name] = self.source if value.name in kept else self.target
                value.type.tensor_type.elem_type = scope.after[value.name]
        for name in weights:
            scope.after[name] = scope.before[name]
        nodes: list = []
        scope.wanted = {name: set() for name in weights}
        for node in graph.node:
            kind = self._type_of(node, scope)
            for body in subgraphs_of(node):
                self._convert_graph(body, _Scope(scope), set())
            self._set_attributes(node, kind)
            for place, name in enumerate(node.input):
                if not name or not self._is_source(scope, name):
                    continue
                needed = self._needed(node, place, kind)
                owner = scope.owner_of(name)
                if owner is not None:
                    owner.wanted[name].add(needed)
                if scope.find("after", name) != needed:
                    node.input[place] = self._cast(name, needed, owner or scope, None if owner else nodes)
            for name in node.output:
                if name and self._is_source(scope, name):
                    scope.after[name] = kind
            nodes.append(node)
        for value in graph.output:
            owner = scope.owner_of(value.name)
            if owner is not None:
                owner.wanted[value.name].add(owner.before[value.name])
        self._store_weights(graph, scope, nodes)
        self._finish_outputs(graph, scope, kept, nodes)
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
        stored = {tensor.name: tensor.data_type for tensor in graph.initializer}
        for value in graph.value_info:
            if value.name in stored and self._is_source(scope, value.name):
                value.type.tensor_type.elem_type = stored[value.name]
            elif self._is_source(scope, value.name) and value.name in scope.after:
                value.type.tensor_type.elem_type = scope.after[value.name]
        sort_nodes(graph)

    def _read_types(self, graph, scope) -> None:
        for value in (*graph.value_info, *graph.output, *graph.input):
            if value.type.HasField("tensor_type"):
                scope.before[value.name] = value.type.tensor_type.elem_type
        for tensor in graph.initializer:
            scope.before[tensor.name] = tensor.data_type

    def _is_source(self, scope, name) -> bool:
        return scope.find("before", name) == self.source

    def _type_of(self, node, scope) -> int:
        """The type of a node's floats."""
        if node.op_type in self.op_types or node.name in self.names:
            return self.blocked_type
        if node.name in self.others:
            kind = self.others[node.name]
            return kind if self._takes(node, scope, kind) else self.source
        if (node.domain, node.op_type) in self.functions or not self._takes(node, scope, self.target):
            return self.source
        for place, name in enumerate(node.input):
            owner = scope.owner_of(name)
            tensor = None if owner is None else owner.weights[name]
            if tensor is None or tensor.data_type != self.source or self._needed(node, place, self.target) != self.target:
                continue
            values = np.abs(onnx.numpy_helper.to_array(tensor).astype(np.float32))
            if np.any(values[np.isfinite(values)] > self.largest):
                logger.warning(
                    "weight '%s' holds numbers beyond %g: it and '%s' stay %s", name, self.largest,
                    node.name or node.output[0], _SUFFIXES[self.source],
                )  # fmt: skip
                return self.source
        return self.target

    def _takes(self, node, scope, kind) -> bool:
        """Whether an operator of ONNX takes a type wherever the node has the old one."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            schema = onnx.defs.get_schema(node.op_type, self.versions.get(domain, 1), domain)
        except onnx.defs.SchemaError:
            return True  # an operator of somebody else's
        for formals, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
            for place, name in enumerate(names):
                if not formals or not name or not self._is_source(scope, name):
                    continue
                always = formals is schema.inputs and self._needed(node, place, self.target) != self.target
                if not always and _ONNX_NAMES[kind] not in formals[min(place, len(formals) - 1)].types:
                    return False
        return True

    def _needed(self, node, place, kind) -> int:
        """The type in which a node of type `kind` reads one of its inputs."""
        places = ALWAYS_FLOAT_INPUTS.get(node.op_type, [])
        if node.op_type == "Resize" and self.versions.get("", 11) <= 10:
            places = [1]
        if kind == self.target and place in places and place not in self.force_inputs.get(node.op_type, []):
            return TensorProto.FLOAT
        return kind

    def _set_attributes(self, node, kind) -> None:
        """Types and constants that a node holds."""
        name = _TYPE_ATTRIBUTES.get(node.op_type)
        if name is not None and kind != self.source:
            found = next((entry for entry in node.attribute if entry.name == name), None)
            if found is not None and found.i == self.source:
                found.i = kind
            elif found is None and node.op_type in _FLOAT_BY_DEFAULT and self.source == TensorProto.FLOAT:
                node.attribute.append(onnx.helper.make_attribute(name, kind))
        if node.op_type == "ConstantOfShape" and attribute(node, "value") is None and self.source == TensorProto.FLOAT:
            if kind != self.source:
                value = onnx.numpy_helper.from_array(np.zeros(1, _DTYPES[kind]))
                node.attribute.append(onnx.helper.make_attribute("value", value))
        for entry in node.attribute:
            if entry.type == AttributeProto.TENSOR and entry.t.data_type == self.source and kind != self.source:
                entry.t.CopyFrom(self._converted(entry.t, kind))
        if node.op_type == "Constant" and kind != self.source and self.source == TensorProto.FLOAT:
            value = attribute(node, "value_float", attribute(node, "value_floats"))
            if value is not None:
                array = onnx.numpy_helper.from_array(np.array(value, _DTYPES[kind]))
                del node.attribute[:]
                node.attribute.append(onnx.helper.make_attribute("value", array))

    def _converted(self, tensor, kind) -> TensorProto:
        values = onnx.numpy_helper.to_array(tensor)
        if kind == TensorProto.FLOAT16 and self.source == TensorProto.FLOAT and self.least:
            numbers = convert_np_to_float16(values, self.least, np.inf)
        else:
            numbers = values.astype(_DTYPES[kind])
        return onnx.numpy_helper.from_array(numbers, tensor.name)

    def _fresh(self, name) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _cast(self, name, kind, scope, nodes) -> str:
        """The name of a value in another type. Weights get no node for it (`nodes` is None): they are stored in it."""
        if (name, kind) not in scope.casts:
            result = scope.casts[name, kind] = self._fresh(f"{name}_to_{_SUFFIXES[kind]}")
            if nodes is not None:
                nodes.append(onnx.helper.make_node("Cast", [name], [result], result, to=kind))
        return scope.casts[name, kind]

    def _store_weights(self, graph, scope, nodes) -> None:
        """Stores weights in the types in which they are read; under their own names where that is one type."""
        casts = scope.casts
        for name, kinds in scope.wanted.items():
            tensor = scope.weights[name]
            others = kinds - {self.source}
            if not others and not (self.force_weights and tensor.data_type == self.source and kinds):
                continue
            if self.force_weights and self.source in kinds:  # one copy, and a Cast back
                casts.setdefault((name, self.source), self._fresh(f"{name}_to_{_SUFFIXES[self.source]}"))
                back = casts[name, self.source]
                for node in _with_bodies(nodes):
                    for place, each in enumerate(node.input):
                        if each == name:
                            node.input[place] = back
                        elif each == casts.get((name, self.target)):
                            node.input[place] = name
                nodes.insert(0, onnx.helper.make_node("Cast", [name], [back], back, to=self.source))
                tensor.CopyFrom(self._converted(tensor, self.target))
                continue
            if len(kinds) == 1:
                (kind,) = others
                for node in _with_bodies(nodes):
                    for place, each in enumerate(node.input):
                        if each == casts[name, kind]:
                            node.input[place] = name
                tensor.CopyFrom(self._converted(tensor, kind))
                continue
            for kind in others:
                copy = self._converted(tensor, kind)
                copy.name = casts[name, kind]
                graph.initializer.append(copy)

    def _finish_outputs(self, graph, scope, kept, nodes) -> None:
        for value in graph.output:
            name = value.name
            if not self._is_source(scope, name):
                continue
            wanted = self.source if name in kept else self.target
            made = scope.find("after", name)
            value.type.tensor_type.elem_type = wanted
            if made == wanted or made is None:
                continue
            producer = next((node for node in nodes if name in node.output), None)
            inner = self._fresh(f"{name}_as_{_SUFFIXES[made]}")
            if producer is None:  # an input or initialiser that is an output
                value.type.tensor_type.elem_type = made
                continue
            for node in nodes:
                for names in (node.input, node.output):
                    for place, each in enumerate(names):
                        if each == name:
                            names[place] = inner
            nodes.append(onnx.helper.make_node("Cast", [inner], [name], f"{name}_from_{_SUFFIXES[made]}", to=wanted))
            scope.after[inner] = made


def main(arguments=None) -> None:
    import argparse

    parser = argparse.ArgumentParser(description="Writes a model with its floats in another precision.")
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--to", choices=sorted(_TYPES), default="f16")
    parser.add_argument("--convert-io", action="store_true", help="inputs and outputs, too")
    parser.add_argument("--keep", nargs="+", default=None, metavar="NODE", help="names or patterns of nodes that stay f32")
    given = parser.parse_args(arguments)
    from .model_files import save_model

    model = convert_precision(given.input, given.to, not given.convert_io, node_block_list=given.keep)
    save_model(model, os.fspath(given.output))


if __name__ == "__main__":
    main()
