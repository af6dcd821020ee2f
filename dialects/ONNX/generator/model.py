"""The view of ONNX's schemas that both emitters share."""

import re

import onnx
from onnx import defs

from contrib import all_ops
from contrib.schema import MS_DOMAIN
from facts import DRAWS_NUMBERS, FACTS

from . import traits

DOMAIN_PREFIX = {
    "": "",
    "ai.onnx.ml": "ml",
    "ai.onnx.preview.training": "training",
    "ai.onnx.preview": "preview",
    MS_DOMAIN: "ms",
}
CLASS_PREFIX = {
    "": "", "ml": "ML", "training": "Training", "preview": "Preview", "ms": "MS",
}  # fmt: skip

# TensorProto.DataType of each element type that a type string can name.
ELEMENT_TYPES = {
    name.lower(): number
    for name, number in onnx.TensorProto.DataType.items()
    if name != "UNDEFINED"
}
MLIR_NAMES = {
    "float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16",
    "string": "!onnx.string", "bool": "i1",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float8e4m3fn": "f8E4M3FN", "float8e4m3fnuz": "f8E4M3FNUZ",
    "float8e5m2": "f8E5M2", "float8e5m2fnuz": "f8E5M2FNUZ",
    "float8e8m0": "f8E8M0FNU", "float4e2m1": "f4E2M1FN",
    "float6e2m3": "f6E2M3FN", "float6e3m2": "f6E3M2FN",
}  # fmt: skip
MAP_VALUES = {"string": 0, "float": 1, "int64": 2, "double": 3}

OPTION = {
    defs.OpSchema.FormalParameterOption.Single: "Single",
    defs.OpSchema.FormalParameterOption.Optional: "Optional",
    defs.OpSchema.FormalParameterOption.Variadic: "Variadic",
}


def mlir_element(name):
    if name in MLIR_NAMES:
        return MLIR_NAMES[name]
    return name.replace("uint", "ui").replace("int", "i")


class TypeSet:
    """The types that one type parameter allows, as bit sets."""

    def __init__(self, name, type_strings):
        self.name = name
        self.strings = sorted(type_strings)
        self.bits = dict(tensor=0, seq=0, opt=0, optseq=0, map=0, seqmap=0)
        for text in self.strings:
            self._add(text.replace(" ", ""))

    def _add(self, text):
        kind = ""
        while True:
            if m := re.fullmatch(r"(seq|optional)\((.*)\)", text):
                kind += {"seq": "seq", "optional": "opt"}[m[1]]
                text = m[2]
            elif m := re.fullmatch(r"map\((\w+),(\w+)\)", text):
                key = {"int64": 0, "string": 4}[m[1]]
                self.bits[kind + "map"] |= 1 << (key + MAP_VALUES[m[2]])
                return
            elif m := re.fullmatch(r"tensor\((\w+)\)", text):
                self.bits[kind or "tensor"] |= 1 << ELEMENT_TYPES[m[1]]
                return
            else:
                raise ValueError(f"unknown type string {text!r}")

    def summary(self):
        """A phrase for the documentation."""
        groups = []
        elements = []
        for text in self.strings:
            if m := re.fullmatch(r"tensor\((\w+)\)", text):
                elements.append(mlir_element(m[1]))
        if elements:
            groups.append("tensor of " + ", ".join(elements))
        if self.bits["seq"] or self.bits["seqmap"]:
            groups.append("sequence")
        if self.bits["opt"] or self.bits["optseq"]:
            groups.append("optional")
        if self.bits["map"]:
            groups.append("map")
        return " or ".join(groups)


class Param:
    def __init__(self, formal, type_index, types):
        self.name = formal.name
        self.option = OPTION[formal.option]
        self.type_index = type_index
        self.types = types
        self.homogeneous = formal.is_homogeneous
        self.min_arity = formal.min_arity if self.option == "Variadic" else 0
        self.description = formal.description


class Op:
    """One op in its latest version, with the names it has in MLIR."""

    def __init__(self, schema):
        self.schema = schema
        self.domain = schema.domain
        self.op_type = schema.name
        self.since = schema.since_version
        self.deprecated = schema.deprecated
        prefix = DOMAIN_PREFIX[schema.domain]
        self.mnemonic = f"{prefix}.{schema.name}" if prefix else schema.name
        self.class_name = CLASS_PREFIX[prefix] + schema.name + "Op"
        self.type_sets = []
        declared = {c.type_param_str: c for c in schema.type_constraints}
        self._type_index = {}
        self._declared = declared
        self.inputs = [self._param(p) for p in schema.inputs]
        self.outputs = [self._param(p) for p in schema.outputs]
        # Names order the attributes, graphs become regions.
        attributes = [schema.attributes[n] for n in sorted(schema.attributes)]
        graph = defs.OpSchema.AttrType.GRAPH
        self.attributes = [a for a in attributes if a.type != graph]
        self.regions = [a for a in attributes if a.type == graph]
        if self.op_type == "If":  # then before else, as everybody reads it
            self.regions.reverse()
        taken = {p.name for p in self.inputs} | set(schema.attributes)
        for out in self.outputs:
            if out.name in taken:
                out.name += "_out"

    def _param(self, formal):
        text = formal.type_str
        if text not in self._type_index:
            self._type_index[text] = len(self.type_sets)
            if text in self._declared:
                strings = self._declared[text].allowed_type_strs
                self.type_sets.append(TypeSet(text, strings))
            else:
                self.type_sets.append(TypeSet("", [text]))
        index = self._type_index[text]
        return Param(formal, index, self.type_sets[index])

    def traits(self):
        result = list(traits.EXTRA_TRAITS.get(self.mnemonic, []))
        if self.mnemonic in traits.REGION_TRAITS:
            result += traits.REGION_TRAITS[self.mnemonic]
        elif self.mnemonic not in DRAWS_NUMBERS.ops:
            result.append("Pure")
        result += [f"ONNX_{fact.name}" for fact in FACTS if self.mnemonic in fact.ops]
        many = lambda params: sum(p.option != "Single" for p in params) >= 2
        if many(self.inputs):
            result.append("AttrSizedOperandSegments")
        if many(self.outputs):
            result.append("AttrSizedResultSegments")
        return result


def check_names(ops):
    """Fails where a table names an op that there is not."""
    known = {op.mnemonic for op in ops}
    tables = {fact.name: fact.ops for fact in FACTS} | traits.TABLES
    for table, names in tables.items():
        if unknown := sorted(set(names) - known):
            raise SystemExit(f"{table} names operators that there are not: {', '.join(unknown)}")


def latest_ops():
    """All ops of the domains above, in the order of domain and name."""
    schemas = [s for s in defs.get_all_schemas() if s.domain in DOMAIN_PREFIX]
    ops = [Op(s) for s in schemas + [op.schema for op in all_ops()]]
    check_names(ops)
    return sorted(ops, key=lambda op: (op.domain, op.op_type))
