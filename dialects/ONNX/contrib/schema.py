"""How an operator is described.

    Contrib(
        "BiasGelu",
        "Gelu of A plus a bias for each element of the last axis.",
        types={"T": FLOATS},
        inputs="A: T, B: T",
        outputs="C: T",
        body="S = Add (A, B)  C = Gelu (S)",
    )

Parameters are `name: type`, with `?` behind the name of one that may be left out
and `*` behind one that may be there any number of times. Attributes are
`name: kind`, with ` = default`, or `?` behind the name of one that may be left
out. The body is the nodes of a function in ONNX's text syntax, or the name of a
C++ function in lib/Contrib that builds them. An operator that ONNX's operators
cannot tell has a lowering instead, and `infer`, the name of a C++ function in
lib/Contrib that infers the results' types; one with a builder may have `infer`, too.
"""

import re

from onnx import defs, helper

MS_DOMAIN = "com.microsoft"
# The version of ONNX's own domain that bodies are written for.
BODY_OPSET = 28

F32 = ["float"]
FLOATS = ["float", "float16", "bfloat16", "double"]
SHORT_FLOATS = ["float", "float16", "bfloat16"]
HALVES = ["float", "float16"]
BYTES = ["int8", "uint8"]
I32 = ["int32"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = FLOATS + INTEGERS
# What operators that only move elements take.
ELEMENTS = NUMBERS + ["bool", "string", "complex64", "complex128"]

_OPTION = {
    "": defs.OpSchema.FormalParameterOption.Single,
    "?": defs.OpSchema.FormalParameterOption.Optional,
    "*": defs.OpSchema.FormalParameterOption.Variadic,
}
_KIND = {
    "int": (defs.OpSchema.AttrType.INT, int),
    "float": (defs.OpSchema.AttrType.FLOAT, float),
    "string": (defs.OpSchema.AttrType.STRING, str),
    "ints": (defs.OpSchema.AttrType.INTS, None),
    "floats": (defs.OpSchema.AttrType.FLOATS, None),
    "strings": (defs.OpSchema.AttrType.STRINGS, None),
    "graph": (defs.OpSchema.AttrType.GRAPH, None),
}


def _parameters(text, types):
    result = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, mark, kind = re.fullmatch(r"(\w+)([?*]?): (\w+)", part).groups()
        result.append(
            defs.OpSchema.FormalParameter(
                name,
                kind if kind in types else f"tensor({kind})",
                param_option=_OPTION[mark],
                is_homogeneous=mark != "*",
            )
        )
    return result


def _attributes(text):
    result = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, mark, kind, default = re.fullmatch(
            r"(\w+)(\??): (\w+)(?: = (\S+))?", part
        ).groups()
        number, parse = _KIND[kind]
        if default is not None:
            value = helper.make_attribute(name, parse(default))
            result.append(defs.OpSchema.Attribute(name, value))
        else:
            result.append(defs.OpSchema.Attribute(name, number, required=not mark))
    return result


class Contrib:
    def __init__(
        self, name, doc, *, types, inputs, outputs, attributes="", body=None,
        builder=None, infer=None, domain=MS_DOMAIN,
    ):  # fmt: skip
        assert (body is None) or (builder is None)
        assert body or builder or infer
        self.body = body
        self.builder = builder
        self.infer = infer
        self.schema = defs.OpSchema(
            name,
            domain,
            1,
            doc,
            inputs=_parameters(inputs, types),
            outputs=_parameters(outputs, types),
            type_constraints=[
                (t, [f"tensor({e})" for e in elements], "") for t, elements in types.items()
            ],
            attributes=_attributes(attributes),
        )
