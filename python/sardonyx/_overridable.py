"""Initializers that a graph also lists as inputs: a run's adapters may give them other values.

The names are read from the model's bytes alone (onnx/onnx.proto): ModelProto.ir_version is field 1 and graph 7; of GraphProto,
initializer is 5 and input 11; of TensorProto, name is 8; of ValueInfoProto, name is 1 and type 2.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

# Since this IR version a model may give an input a default.
_FIRST_IR_VERSION = 4
_VARINT, _WIDE, _BYTES, _NARROW = 0, 1, 2, 5  # protobuf's kinds of fields


def _number(data, at: int) -> tuple[int, int]:
    """A varint and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, begin, end) of the fields that are bytes; (number, value, -1) of those that are numbers."""
    while begin < end:
        key, begin = _number(data, begin)
        kind = key & 7
        if kind == _VARINT:
            value, begin = _number(data, begin)
            yield key >> 3, value, -1
        elif kind == _BYTES:
            size, begin = _number(data, begin)
            if begin + size > end:
                raise ValueError("a field reaches beyond the end")
            yield key >> 3, begin, begin + size
            begin += size
        elif kind in (_WIDE, _NARROW):
            begin += 8 if kind == _WIDE else 4
        else:
            raise ValueError("a field of no known kind")


def _text(data, place: tuple[int, int], field: int) -> str:
    for number, begin, end in _fields(data, *place):
        if number == field and end >= 0:
            return bytes(data[begin:end]).decode("utf-8", "replace")
    return ""


def _type_of(data, place: tuple[int, int]) -> tuple[int, list[int | str | None] | None]:
    """(element type, shape) of a ValueInfoProto of a tensor; 0 and None where it says nothing."""
    element_type, shape = 0, None
    for wanted in (2, 1):  # ValueInfoProto.type, TypeProto.tensor_type
        place = next(((b, e) for number, b, e in _fields(data, *place) if number == wanted and e >= 0), (0, 0))
    for number, begin, end in _fields(data, *place):
        if number == 1 and end < 0:  # elem_type
            element_type = begin
        elif number == 2 and end >= 0:  # shape
            shape = [_dim(data, (b, e)) for field, b, e in _fields(data, begin, end) if field == 1]
    return element_type, shape


def _dim(data, place: tuple[int, int]) -> int | str | None:
    for number, begin, end in _fields(data, *place):
        if number == 1 and end < 0:  # dim_value
            return begin
        if number == 2 and end > begin:  # dim_param
            return bytes(data[begin:end]).decode("utf-8", "replace")
    return None


def _read(data: Any) -> list[tuple[str, int, list[int | str | None] | None]]:
    version, graph = 0, (0, 0)
    for number, begin, end in _fields(data, 0, len(data)):
        if number == 1 and end < 0:
            version = begin
        elif number == 7 and end >= 0:
            graph = (begin, end)
    inputs, defaults = {}, set()
    for number, begin, end in _fields(data, *graph) if version >= _FIRST_IR_VERSION else ():
        if number == 11 and end >= 0:
            inputs[_text(data, (begin, end), 1)] = (begin, end)
        elif number == 5 and end >= 0:
            defaults.add(_text(data, (begin, end), 8))
    return [(name, *_type_of(data, place)) for name, place in inputs.items() if name in defaults]


def overridable(source: str | bytes) -> list[tuple[str, int, list[int | str | None] | None]]:
    """(name, element type, shape) of each initializer of a model, a path or bytes, that is also an input. What is no protobuf,
    a model's text, has none."""
    try:
        if isinstance(source, bytes):
            return _read(source)
        with open(source, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data)
    except (IndexError, OSError, ValueError):
        return []
