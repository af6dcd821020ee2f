"""Prints a function for every operator of ONNX: once with all that it can have,
once with only what it must have.

    all_ops.py > all.mlir
"""

import pathlib
import sys

from onnx import defs

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "dialects" / "ONNX"))

from contrib import all_ops  # noqa: E402
from words import WORDS  # noqa: E402

DOMAINS = {
    "": "", "ai.onnx.ml": "ml.", "ai.onnx.preview.training": "training.",
    "ai.onnx.preview": "preview.", "com.microsoft": "ms.",
}  # fmt: skip
ELEMENTS = {
    "float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16",
    "string": "!onnx.string", "bool": "i1", "complex64": "complex<f32>",
    "complex128": "complex<f64>", "float8e4m3fn": "f8E4M3FN",
    "float8e4m3fnuz": "f8E4M3FNUZ", "float8e5m2": "f8E5M2",
    "float8e5m2fnuz": "f8E5M2FNUZ", "float8e8m0": "f8E8M0FNU",
    "float4e2m1": "f4E2M1FN", "float6e2m3": "f6E2M3FN", "float6e3m2": "f6E3M2FN",
}  # fmt: skip
Option = defs.OpSchema.FormalParameterOption
Kind = defs.OpSchema.AttrType
VALUES = {
    Kind.INT: "3",
    Kind.FLOAT: "0.25 : f32",
    Kind.STRING: '"text"',
    Kind.INTS: "array<i64: 1, 2>",
    Kind.FLOATS: "array<f32: 1.0, 2.0>",
    Kind.STRINGS: '["a", "b"]',
    Kind.TENSOR: "dense<1.0> : tensor<2xf32>",
    Kind.SPARSE_TENSOR: "sparse<[[1]], [2.0]> : tensor<2xf32>",
    Kind.TYPE_PROTO: "tensor<2xf32>",
}


def mlir_type(text):
    text = text.strip()
    kind, _, inner = text.partition("(")
    inner = inner[:-1]
    if kind == "tensor":
        element = ELEMENTS.get(inner)
        if element is None:
            element = inner.replace("uint", "ui").replace("int", "i")
        return f"tensor<?x{element}>"
    if kind == "map":
        key, value = (p.strip() for p in inner.split(","))
        name = lambda t: {"int64": "i64", "string": "!onnx.string"}.get(t, "")
        return f"!onnx.map<{name(key)}, {mlir_type(f'tensor({value})')}>"
    wrapper = {"seq": "seq", "optional": "opt"}[kind]
    return f"!onnx.{wrapper}<{mlir_type(inner)}>"


class Case:
    def __init__(self, schema, full, pick):
        self.schema = schema
        self.full = full
        self.types = {
            c.type_param_str: sorted(c.allowed_type_strs)[
                pick % len(c.allowed_type_strs)
            ]
            for c in schema.type_constraints
        }

    def type_of(self, parameter):
        return mlir_type(self.types.get(parameter.type_str, parameter.type_str))

    def expand(self, parameters):
        """(present, type) of each position."""
        result = []
        for p in parameters:
            if p.option == Option.Variadic:
                result += [(True, self.type_of(p))] * (2 if self.full else p.min_arity)
            else:
                here = p.option == Option.Single or self.full
                result.append((here, self.type_of(p)))
        return result

    def attributes(self):
        if self.schema.name == "Constant" and not self.schema.domain:
            return ["value = dense<1.0> : tensor<2xf32>"]
        return [
            f"{name} = {self.value(name, a)}"
            for name, a in sorted(self.schema.attributes.items())
            if a.type != Kind.GRAPH and (self.full or a.required)
        ]

    def value(self, name, attribute):
        words = WORDS.get((DOMAINS[self.schema.domain] + self.schema.name, name))
        if not words:
            return VALUES[attribute.type]
        listed = ", ".join(f'"{word}"' for word in words[:2])
        return f"[{listed}]" if attribute.type == Kind.STRINGS else f'"{words[1]}"'

    def graph(self, arguments, yields):
        """A graph that yields unknown values."""
        names = [f"%b{i}" for i in range(len(arguments))]
        text = ", ".join(f"{n}: {t}" for n, t in zip(names, arguments))
        lines = ["{"] + ([f"^bb0({text}):"] if arguments else [])
        results = [f"%y{i}" for i in range(len(yields))]
        for name, kind in zip(results, yields):
            lines.append(f'  {name} = onnx.Custom "test" "Make"() : () -> {kind}')
        types = " : " + ", ".join(yields) if yields else ""
        lines.append("  onnx.Yield " + ", ".join(results) + types)
        return "\n".join(lines + ["}"])

    def graphs(self, inputs, outputs):
        inputs = [t for here, t in inputs if here]
        outputs = [t for here, t in outputs if here]
        boolean, number = "tensor<i1>", "tensor<i64>"
        name = self.schema.name
        if name == "If":
            graph = self.graph([], outputs)
            return f" then_branch {graph} else_branch {graph}"
        if name == "Loop":
            carried = inputs[2 if self.full else 0 :]
            return " body " + self.graph([number, boolean] + carried, [boolean] + outputs)
        if name in ("Scan", "SequenceMap"):
            return " body " + self.graph(inputs, outputs)
        if name == "FlexAttention" and self.full:
            graph = self.graph(inputs[:1], outputs)
            return f" prob_mod {graph} score_mod {graph}"
        attributes = sorted(self.schema.attributes.items())
        graphs = (n for n, a in attributes if a.type == Kind.GRAPH and (self.full or a.required))
        return "".join(f" {graph} {self.graph([], [])}" for graph in graphs)

    def text(self, name):
        schema = self.schema
        inputs, outputs = self.expand(schema.inputs), self.expand(schema.outputs)
        if schema.name == "Constant" and not schema.domain:
            outputs = [(True, "tensor<2xf32>")]
        arguments = [f"%a{i}: {t}" for i, (here, t) in enumerate(inputs) if here]
        operands = [f"%a{i}" if here else "none" for i, (here, _) in enumerate(inputs)]
        while operands and operands[-1] == "none":
            operands.pop()
        while outputs and not outputs[-1][0]:
            outputs.pop()
        attributes = self.attributes()
        if schema.name == "Scan":
            attributes = ["num_scan_inputs = 1"]
        dictionary = " {" + ", ".join(attributes) + "}" if attributes else ""
        operand_types = ", ".join(t for here, t in inputs if here)
        result_types = ", ".join(t if here else "none" for here, t in outputs)
        count = sum(here for here, _ in outputs)
        results = f"%r:{count} = " if count else ""
        op = f"onnx.{DOMAINS[schema.domain]}{schema.name}"
        return (
            f"func.func @{name}({', '.join(arguments)}) {{\n"
            f"  {results}{op}({', '.join(operands)}){dictionary} : "
            f"({operand_types}) -> ({result_types}){self.graphs(inputs, outputs)}\n"
            "  return\n}\n"
        )


def main():
    schemas = [s for s in defs.get_all_schemas() if s.domain in DOMAINS]
    schemas += [op.schema for op in all_ops()]
    for schema in sorted(schemas, key=lambda s: (s.domain, s.name)):
        name = f"{DOMAINS[schema.domain].replace('.', '_')}{schema.name}"
        # Several choices of types, so that each of them occurs somewhere.
        choices = max((len(c.allowed_type_strs) for c in schema.type_constraints), default=1)
        for pick in range(choices):
            print(Case(schema, True, pick).text(f"{name}_full_{pick}"))
        print(Case(schema, False, 0).text(f"{name}_least"))
    print(f"// {len(schemas)} operators")


if __name__ == "__main__":
    main()
