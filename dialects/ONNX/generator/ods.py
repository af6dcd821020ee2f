"""Writes the ops as ODS records."""

import re
import struct

import numpy as np
from onnx import AttributeProto, defs

from . import facts, traits

A = defs.OpSchema.AttrType
ATTRIBUTE = {
    A.INT: "SI64Attr",
    A.FLOAT: "F32Attr",
    A.STRING: "StrAttr",
    A.INTS: "DenseI64ArrayAttr",
    A.FLOATS: "DenseF32ArrayAttr",
    A.STRINGS: "StrArrayAttr",
    A.TENSOR: "ElementsAttr",
    A.SPARSE_TENSOR: "ElementsAttr",
    A.TYPE_PROTO: "TypeAttr",
}


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def code_block(text):
    """A TableGen block string; its end mark may not occur in it."""
    return "[{" + text.replace("}]", "} ]") + "}]"


def default_of(attribute):
    """C++ text of the attribute's default, None where it has none."""
    proto = attribute.default_value
    if not proto.name:
        return None
    if proto.type == AttributeProto.INT:
        return str(proto.i)
    if proto.type == AttributeProto.FLOAT:
        # The shortest text that reads back as the same float.
        text = np.format_float_scientific(np.float32(proto.f), unique=True, trim="0")
        assert struct.pack("f", float(text)) == struct.pack("f", proto.f)
        return text + "f"
    if proto.type == AttributeProto.STRING:
        return proto.s.decode()
    if proto.type == AttributeProto.INTS:
        return "{" + ", ".join(map(str, proto.ints)) + "}"
    # A default list of strings has no ODS form; readers of such an attribute
    # (RNN's activations) know what absence means.
    return None


def attribute_constraint(attribute):
    constraint = ATTRIBUTE[attribute.type]
    default = default_of(attribute)
    if default is not None:
        if attribute.type == A.STRING:
            return f"DefaultValuedStrAttr<{constraint}, {quote(default)}>"
        return f"DefaultValuedAttr<{constraint}, {quote(default)}>"
    return constraint if attribute.required else f"OptionalAttr<{constraint}>"


def value_constraint(param):
    base = f"ONNX_Value<{quote(param.types.summary())}>"
    if param.option == "Single":
        return base
    return f"{param.option}<{base}>"


def clean(doc):
    """The schema's Markdown, flush left and without its trailing blanks."""
    lines = [line.rstrip() for line in (doc or "").strip().splitlines()]
    indents = [len(s) - len(s.lstrip()) for s in lines[1:] if s.strip()]
    cut = min(indents, default=0)
    return "\n".join(lines[:1] + [line[cut:] for line in lines[1:]])


def summary_of(op):
    text = " ".join(clean(op.schema.doc).split("\n\n")[0].split())
    first = re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(".:;")
    if len(first) > 100:
        first = first[:97].rsplit(" ", 1)[0] + " ..."
    return first or f"ONNX {op.op_type}"


def description_of(op):
    domain = op.domain or "ai.onnx"
    parts = [f"{op.op_type} of {domain}, version {op.since}.", clean(op.schema.doc)]
    rows = []
    for kind, params in (("operand", op.inputs), ("result", op.outputs)):
        for p in params:
            text = " ".join(p.description.split())
            rows.append(f"- {kind} `{p.name}` ({p.option.lower()}): {text}")
    for a in op.attributes + op.regions:
        rows.append(f"- attribute `{a.name}`: " + " ".join(a.description.split()))
    return "\n\n".join(parts + ["\n".join(rows)])


def emit_op(op, index):
    traits_text = ", ".join(op.traits())
    lines = [f'def ONNX_{op.class_name} : ONNX_SchemaOp<"{op.mnemonic}", {index}, [{traits_text}]> {{']
    lines.append(f"  let summary = {quote(summary_of(op))};")
    lines.append(f"  let description = {code_block(description_of(op))};")
    arguments = [f"{value_constraint(p)}:${p.name}" for p in op.inputs]
    arguments += [f"{attribute_constraint(a)}:${a.name}" for a in op.attributes]
    lines.append("  let arguments = (ins " + ",\n    ".join(arguments) + ");")
    results = [f"{value_constraint(p)}:${p.name}" for p in op.outputs]
    lines.append("  let results = (outs " + ",\n    ".join(results) + ");")
    if op.regions:
        # A graph that may be left out is an empty region then.
        regions = [
            f"{'SizedRegion' if a.required else 'MaxSizedRegion'}<1>:${a.name}"
            for a in op.regions
        ]
        lines.append("  let regions = (region " + ", ".join(regions) + ");")
    if op.mnemonic in traits.FOLDERS:
        lines.append("  let hasFolder = 1;")
    if op.mnemonic in traits.CANONICALIZERS:
        lines.append("  let hasCanonicalizer = 1;")
    if op.mnemonic in traits.VERIFIERS:
        lines.append("  let hasVerifier = 1;")
    lines.append("}")
    return "\n".join(lines) + "\n"


def emit(ops):
    return facts.emit_ods() + "\n" + "\n".join(emit_op(op, i) for i, op in enumerate(ops))
