"""Writes what each op of contrib/ is made of, as rows of an X macro. Whoever includes
them defines what it wants of the macros."""

from contrib import all_ops
from contrib.schema import BODY_OPSET

MACROS = {"CONTRIB_OPSET": "version", "CONTRIB_BUILDER": "builder", "CONTRIB_INFER": "infer",
          "CONTRIB_OP": "domain, op, text, builder, infer"}  # fmt: skip


def emit():
    lines = []
    for name, arguments in MACROS.items():
        lines += [f"#ifndef {name}", f"#define {name}({arguments})", "#endif"]
    lines.append(f"CONTRIB_OPSET({BODY_OPSET})")
    ops = all_ops()
    for name in sorted({op.builder for op in ops if op.builder}):
        lines.append(f"CONTRIB_BUILDER({name})")
    for name in sorted({op.infer for op in ops if op.infer}):
        lines.append(f"CONTRIB_INFER({name})")
    for op in ops:
        text = f'R"body({op.body})body"' if op.body else "nullptr"
        functions = f"{op.builder or 'nullptr'}, {op.infer or 'nullptr'}"
        lines.append(f'CONTRIB_OP("{op.schema.domain}", "{op.schema.name}", {text}, {functions})')
    lines += [f"#undef {name}" for name in MACROS]
    return "\n".join(lines) + "\n"
