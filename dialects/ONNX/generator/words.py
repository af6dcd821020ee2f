"""Writes the words of string attributes as rows of an X macro."""

from onnx import defs

from words import WORDS

from .ods import quote

_TEXT = (defs.OpSchema.AttrType.STRING, defs.OpSchema.AttrType.STRINGS)


def emit(ops):
    known = {(op.mnemonic, a.name) for op in ops for a in op.attributes if a.type in _TEXT}
    if unknown := sorted(set(WORDS) - known):
        raise SystemExit(f"words.py names attributes that there are not: {unknown}")
    return "".join(
        f'WORDS("onnx.{op}", "{attribute}", {", ".join(map(quote, words))})\n'
        for (op, attribute), words in sorted(WORDS.items())
    )
