"""Operators that users bring along: docs/howto/CustomOps.md."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from . import _sardonyx
from ._arrays import dtype_of, element_type_of
from .errors import InvalidArgument

_STRING = 8


class TensorType(NamedTuple):
    """What is known of an input or a result: its dtype (`object` for strings, None where it is not
    known) and its shape, whose items are sizes, or None for one that only a run knows; the shape
    itself is None where the rank is not known."""

    dtype: np.dtype | None
    shape: tuple | None


def _dtype(element_type: int):
    if element_type == _STRING:
        return np.dtype(object)
    return dtype_of(element_type) if element_type else None


def _element_type(dtype) -> int:
    dtype = np.dtype(dtype)
    if dtype.kind in "OU":
        return _STRING
    number = element_type_of(dtype)
    if not number:
        raise TypeError(f"no ONNX tensor has the dtype {dtype}")
    return number


def _array(tensor):
    """What the extension gives for a tensor, as an array of its own."""
    if tensor is None:
        return None
    element_type, shape, data = tensor
    if element_type == _STRING:
        array = np.empty(len(data), dtype=object)
        array[:] = data
        return array.reshape(shape)
    return np.frombuffer(data, dtype_of(element_type)).reshape(shape)


def _attributes(given: dict) -> dict:
    return {name: _array(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _texts(array: np.ndarray) -> list[bytes]:
    texts = []
    for text in array.ravel().tolist():
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogateescape")
        if not isinstance(text, bytes):
            raise TypeError(f"a result of strings holds {text!r}")
        texts.append(text)
    return texts


def _result(value):
    """A result for the extension. Its dtype is the function's business: none is converted."""
    array = np.asarray(value)
    element_type = _element_type(array.dtype)
    if element_type == _STRING:
        return element_type, list(array.shape), _texts(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return element_type, list(array.shape), array.tobytes()


def _as_list(given, present: list[bool], what: str) -> list:
    """Results as a list with an entry for each of the node's."""
    given = list(given) if isinstance(given, (tuple, list)) and not isinstance(given, TensorType) else [given]
    if len(given) < len(present):
        raise ValueError(f"{what} {len(given)} for the node's {len(present)} results")
    return given[: len(present)]


def _caller(function):
    def call(inputs, attributes, present):
        results = function(*map(_array, inputs), **_attributes(attributes))
        results = _as_list(results, present, "it returned")
        return [_result(value) if there else None for value, there in zip(results, present)]

    return call


def _shape_function(infer):
    def call(types, attributes, present):
        if infer is None:
            return [None] * len(present)
        types = [None if t is None else TensorType(_dtype(t[0]), t[1]) for t in types]
        results = _as_list(infer(*types, **_attributes(attributes)), present, "it told the types of")
        return [_type(value) if there else None for value, there in zip(results, present)]

    return call


def _type(value):
    if value is None:
        return None
    if not isinstance(value, TensorType):
        raise TypeError(f"the type of a result is a TensorType, not {value!r}")
    dtype, shape = value
    sizes = None if shape is None else [-1 if size is None else int(size) for size in shape]
    return 0 if dtype is None else _element_type(dtype), sizes


class CustomOps:
    """Operators beyond ONNX's own: those of `SessionOptions.custom_ops` are for the sessions with these
    options, those that `sardonyx.register_custom_op` and its like register for all that are loaded later.
    """

    def __init__(self):
        self._native = _sardonyx.CustomOps()
        self._is_empty = True

    def register_op(self, domain: str, name: str, function, infer=None, *, since_version: int = 1, stateful: bool = False):
        """An operator that is a Python function.

        `function` takes an array for each input (None for one that is left out) and the attributes by
        name, and returns an array, or a tuple of them. `infer` takes a `TensorType` in the place of each
        array and returns those of the results; without it the model has to declare them. A `stateful`
        function is called in each run, whether or not anybody reads the results.
        """
        if not callable(function) or not (infer is None or callable(infer)):
            raise InvalidArgument(f"'{name}' is registered with what cannot be called")
        self._native.add_python(
            domain, name, since_version, _caller(function), _shape_function(infer), bool(stateful)
        )
        self._is_empty = False

    def register_library(self, path) -> None:
        """The operators of a shared library, made with sardonyx-c/CustomOps.h. Its code runs in this
        process."""
        self._native.add_library(os.fspath(path))
        self._is_empty = False

    def register_functions(self, source) -> None:
        """Operators that are ONNX functions: a FunctionProto, a ModelProto with functions, their text
        or bytes, or the path of a file with either."""
        if hasattr(source, "SerializeToString"):
            source = source.SerializeToString()
        if isinstance(source, str) and source.lstrip().startswith("<"):
            source = source.encode()
        if isinstance(source, bytes):
            self._native.add_functions(source)
        else:
            self._native.add_functions_file(os.fspath(source))
        self._is_empty = False

    def register_mlir(self, source) -> None:
        """Operators that are func.func of MLIR on tensors, as text or the path of a file."""
        if isinstance(source, str) and "func.func" in source:
            self._native.add_mlir(source)
        else:
            self._native.add_mlir_file(os.fspath(source))
        self._is_empty = False


_everywhere = CustomOps()


def register_custom_op(domain: str, name: str, function, infer=None, *, since_version: int = 1, stateful: bool = False):
    """CustomOps.register_op for all sessions that are loaded from now on."""
    _everywhere.register_op(domain, name, function, infer, since_version=since_version, stateful=stateful)


def register_custom_ops_library(path) -> None:
    """CustomOps.register_library for all sessions that are loaded from now on."""
    _everywhere.register_library(path)


def register_custom_functions(source) -> None:
    """CustomOps.register_functions for all sessions that are loaded from now on."""
    _everywhere.register_functions(source)


def register_custom_mlir(source) -> None:
    """CustomOps.register_mlir for all sessions that are loaded from now on."""
    _everywhere.register_mlir(source)


def clear_custom_ops() -> None:
    """Forgets all operators that were registered for all sessions; those that are loaded keep theirs."""
    _everywhere._native = _sardonyx.CustomOps()


def together(own: CustomOps) -> _sardonyx.CustomOps:
    """What sessions with `own` find; own ones count before those of all sessions."""
    result = _sardonyx.CustomOps()
    result.add_all(_everywhere._native)
    result.add_all(own._native)
    return result
