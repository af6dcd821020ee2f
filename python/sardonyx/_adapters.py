"""Adapters of low rank (LoRA): tensors that a run takes in the place of a model's inputs with defaults.

The files are onnxruntime's, FlatBuffers of the schema `onnxruntime.adapters.Adapter`
(onnxruntime/lora/adapter_format/adapter_schema.fbs):

    table Parameter { name: string; dims: [int64]; data_type: int32; raw_data: [uint8] (force_align: 8); }
    table Adapter { format_version: int; adapter_version: int; model_version: int; parameters: [Parameter]; }
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence

import numpy as np

from ._arrays import _bits, dtype_of
from ._values import OrtValue, type_name
from .errors import Fail, NoSuchFile

_FORMAT_VERSION = 1
_MARK = b"TORT"
_VTABLE = (12, 20, 4, 8, 12, 16)  # of both tables, which have four fields of four bytes each
_STRING = 8


def _write(adapter_version: int, model_version: int, parameters: dict[str, OrtValue]) -> bytearray:
    """The file of an adapter."""
    out = bytearray(struct.pack("<I4s6H", 0, _MARK, *_VTABLE))

    def align(to: int, rest: int = 0) -> None:
        out.extend(bytes((rest - len(out)) % to))

    def table() -> int:
        align(4)
        at = len(out)
        out.extend(struct.pack("<i16x", at - 8))
        return at

    def refer(at: int) -> None:
        struct.pack_into("<I", out, at, len(out) - at)

    root = table()
    struct.pack_into("<I", out, 0, root)
    struct.pack_into("<3i", out, root + 4, _FORMAT_VERSION, adapter_version, model_version)
    refer(root + 16)
    items = len(out) + 4
    out.extend(struct.pack(f"<I{4 * len(parameters)}x", len(parameters)))
    for i, (name, value) in enumerate(parameters.items()):
        at = table()
        struct.pack_into("<I", out, items + 4 * i, at - items - 4 * i)
        text = name.encode()
        refer(at + 4)
        out.extend(struct.pack("<I", len(text)) + text + b"\0")
        shape = value.shape()
        align(8, 4)
        refer(at + 8)
        out.extend(struct.pack(f"<I{len(shape)}q", len(shape), *shape))
        struct.pack_into("<i", out, at + 12, value.element_type())
        array = value.numpy()
        align(8, 4)
        refer(at + 16)
        out.extend(struct.pack("<I", array.nbytes))
        out.extend((array if value.element_type() < 16 else _bits(array)).tobytes())
        if len(out) >= 2**31:
            raise Fail("an adapter holds at most 2 GiB")
    return out


class _Reader:
    """Fields of tables in a file. Raises `struct.error` or `ValueError` for what lies outside of it."""

    def __init__(self, data: bytes):
        self.data = data

    def number(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError("an offset is negative")
        return struct.unpack_from("<" + form, self.data, at)[0]

    def field(self, table: int, number: int) -> int:
        """Where a field of a table lies, 0 where it has none."""
        entry = 4 + 2 * number
        vtable = table - self.number("i", table)
        offset = self.number("H", vtable + entry) if entry < self.number("H", vtable) else 0
        return table + offset if offset else 0

    def integer(self, table: int, number: int) -> int:
        at = self.field(table, number)
        return self.number("i", at) if at else 0

    def target(self, at: int) -> int:
        return at + self.number("I", at)

    def vector(self, table: int, number: int, size: int) -> tuple[int, int]:
        """(where the first item lies, how many there are) of a field; items of so many bytes."""
        at = self.field(table, number)
        if not at:
            return 0, 0
        at = self.target(at)
        count = self.number("I", at)
        if at + 4 + count * size > len(self.data):
            raise ValueError("a list reaches beyond the end")
        return at + 4, count

    def parameter(self, table: int) -> tuple[str, OrtValue]:
        begin, length = self.vector(table, 0, 1)
        name = self.data[begin : begin + length].decode()
        begin, rank = self.vector(table, 1, 8)
        shape = struct.unpack_from(f"<{rank}q", self.data, begin)
        element_type = self.integer(table, 2)
        if element_type == _STRING:
            raise ValueError(f"parameter '{name}' is of strings")
        try:
            dtype = dtype_of(element_type)
        except TypeError as problem:
            raise ValueError(f"parameter '{name}': {problem}") from None
        begin, size = self.vector(table, 3, 1)
        if any(dim < 0 for dim in shape) or math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"parameter '{name}' has {size} bytes and the shape {list(shape)} of {type_name(element_type)}")
        return name, OrtValue(np.frombuffer(self.data, dtype, math.prod(shape), begin).reshape(shape))


def _read(path) -> tuple[int, int, int, dict[str, OrtValue]]:
    """(format version, adapter version, model version, parameters) of a file."""
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise NoSuchFile(f"'{path}' cannot be read: {problem.strerror}") from None
    if data[4:8] != _MARK:
        raise Fail(f"'{path}' is no adapter: it does not begin as onnxruntime's do")
    reader = _Reader(data)
    try:
        root = reader.target(0)
        versions = [reader.integer(root, i) for i in range(3)]
        if versions[0] != _FORMAT_VERSION:
            raise Fail(f"'{path}' is an adapter of version {versions[0]} of the format; only {_FORMAT_VERSION} is supported")
        begin, count = reader.vector(root, 3, 4)
        parameters = dict(reader.parameter(reader.target(begin + 4 * i)) for i in range(count))
    except (struct.error, ValueError) as problem:
        raise Fail(f"'{path}' is a damaged adapter: {problem}") from None
    return versions[0], versions[1], versions[2], parameters


class AdapterFormat:
    """An adapter as a file of onnxruntime's holds it: tensors by name, and two numbers of the caller's."""

    def __init__(self):
        self._format, self._version, self._model = _FORMAT_VERSION, 0, 0
        self._parameters: dict[str, OrtValue] = {}

    @staticmethod
    def read_adapter(file_path) -> AdapterFormat:
        """Reads a file; raises `NoSuchFile` or `Fail` for what is none."""
        adapter = AdapterFormat()
        adapter._format, adapter._version, adapter._model, adapter._parameters = _read(file_path)
        return adapter

    def export_adapter(self, file_path) -> None:
        """Writes a file."""
        data = _write(self._version, self._model, self._parameters)
        try:
            with open(os.fspath(file_path), "wb") as file:
                file.write(data)
        except OSError as problem:
            raise Fail(f"'{os.fspath(file_path)}' cannot be written: {problem.strerror}") from None

    def get_format_version(self) -> int:
        """The version of the format of files: 1."""
        return self._format

    def set_adapter_version(self, adapter_version: int) -> None:
        """Keeps a number of the caller's for the adapter, of 32 bits."""
        self._version = adapter_version

    def get_adapter_version(self) -> int:
        """The number that the caller gave the adapter."""
        return self._version

    def set_model_version(self, model_version: int) -> None:
        """Keeps a number of the caller's for the model, of 32 bits."""
        self._model = model_version

    def get_model_version(self) -> int:
        """The number that the caller gave the model."""
        return self._model

    def set_parameters(self, params: dict[str, OrtValue]) -> None:
        """Takes tensors by the names of the inputs that they are for. Raises `Fail` for what is no tensor of numbers, and
        for scalars, which onnxruntime does not read back."""
        for name, value in params.items():
            if not isinstance(value, OrtValue) or not value.is_tensor() or value.element_type() in (0, _STRING):
                raise Fail(f"parameter '{name}' of an adapter must be an OrtValue with a tensor of numbers")
            if not value.shape():
                raise Fail(f"parameter '{name}' of an adapter must have at least one dimension")
        self._parameters = dict(params)

    def get_parameters(self) -> dict[str, OrtValue]:
        """The tensors by name."""
        return dict(self._parameters)


def parameters_of(adapters: Sequence[LoraAdapter]) -> dict[str, OrtValue]:
    """The tensors of several adapters by name, of which the last one that has a name counts."""
    together: dict[str, OrtValue] = {}
    for adapter in adapters:
        together.update(adapter._parameters)
    return together


class LoraAdapter:
    """An adapter for runs: `RunOptions.add_active_adapter` has them take its tensors."""

    def __init__(self):
        self._parameters: dict[str, OrtValue] = {}

    def Load(self, file_path) -> None:  # noqa: N802 (onnxruntime's name)
        """Reads a file of onnxruntime's; raises `NoSuchFile` or `Fail` for what is none."""
        self._parameters = _read(file_path)[3]
