"""Writes what each op of contrib/ is made of, as rows of an X macro."""

from contrib import all_ops
from contrib.schema import BODY_OPSET


def emit():
    lines = [f"CONTRIB_OPSET({BODY_OPSET})"]
    for op in all_ops():
        key = f'"{op.schema.domain}", "{op.schema.name}"'
        if op.builder:
            lines.append(f"CONTRIB_BUILDER({key}, {op.builder})")
        else:
            lines.append(f'CONTRIB_TEXT({key}, R"body({op.body})body")')
    return "\n".join(lines) + "\n"
