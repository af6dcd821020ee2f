"""Arrays of any library, in and out.

The extension reads whatever has the buffer protocol or DLPack. numpy has no
bfloat16, float8 or four-bit types of its own and exports those of ml_dtypes by
neither; they pass as their bits, with the element type beside them.
"""

from __future__ import annotations

import ctypes
import math
import numbers
from collections.abc import Mapping

import numpy as np

from ._runtime import DeviceTensor
from .errors import InvalidArgument

# onnx.TensorProto.DataType by the name of the numpy dtype.
_NATIVE = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15,
}  # fmt: skip
_EXTENDED = {
    "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
    "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
    "float6_e2m3fn": 27, "float6_e3m2fn": 28,
}  # fmt: skip
_NAMES = {number: name for name, number in {**_NATIVE, **_EXTENDED}.items()}
_BY_DTYPE = {np.dtype(name): number for name, number in _NATIVE.items()}
_dtypes: dict[int, np.dtype] = {number: dtype for dtype, number in _BY_DTYPE.items()}


def dtype_of(element_type: int) -> np.dtype:
    """The numpy dtype of an ONNX element type; ml_dtypes has those that numpy lacks."""
    dtype = _dtypes.get(element_type)
    if dtype is None:
        name = _NAMES.get(element_type)
        if name is None:
            raise TypeError(f"element type {element_type} has no numpy dtype")
        import ml_dtypes

        dtype = _dtypes[element_type] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def element_type_of(dtype: np.dtype) -> int:
    """The ONNX element type of a numpy dtype, 0 if there is none."""
    return _BY_DTYPE.get(dtype) or _EXTENDED.get(dtype.name, 0)


def memory_at(pointer: int, element_type, shape) -> np.ndarray:
    """The caller's memory as an array. `element_type` is ONNX's number or what numpy takes for a dtype."""
    dtype = dtype_of(element_type) if isinstance(element_type, int) else np.dtype(element_type)
    shape = tuple(shape)
    size = dtype.itemsize * math.prod(shape)
    if size == 0:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype).reshape(shape)


def _bits(array: np.ndarray) -> np.ndarray:
    """The same memory as unsigned integers."""
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


_STRING = 8


def _as_strings(value, name: str):
    """(8, bytes as a list, shape) for the extension, of str or of UTF-8 in bytes."""
    array = np.asarray(value)
    # numpy.void: bytes of one length, whose zeros at the end count.
    is_void = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize
    if array.dtype.kind not in "UOST" and array.size and not is_void:
        raise InvalidArgument(f"input '{name}' has the element type string, got an array of {array.dtype}")
    texts = []
    for text in array.ravel().tolist():
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogateescape")
        if not isinstance(text, bytes):
            raise InvalidArgument(f"input '{name}' is of strings, got {text!r}")
        texts.append(text)
    return _STRING, texts, array.shape


def _as_column(values: list, name: str, element_type: int, what: str):
    """A list of keys or values of a map as a tensor for the extension."""
    kinds: dict[int, tuple[type, ...]] = {_STRING: (str, bytes), 7: (numbers.Integral,)}
    kind = kinds.get(element_type, (numbers.Real,))
    type_name = {_STRING: "string", 7: "int64", 11: "double"}.get(element_type, "float")
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidArgument(f"input '{name}' is a map with {what}s of {type_name}, got the {what} {value!r}")
    try:
        dtype = object if element_type == _STRING else dtype_of(element_type)
        return as_input(np.array(values, dtype), name, element_type)
    except OverflowError:
        raise InvalidArgument(f"input '{name}' is a map with {what}s of {type_name}, got one that is too large") from None


def as_map(value, name: str, key_type: int, item_type: int):
    """(keys, values) of a mapping for the extension."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"input '{name}' is a map, got {type(value).__name__}")
    keys = _as_column(list(value.keys()), name, key_type, "key")
    return keys, _as_column(list(value.values()), name, item_type, "value")


def as_value(value, name: str, item_type: int, is_sequence: bool, key_type: int = 0):
    """A sequence, a map, or what an optional holds, for the extension: a list, a pair, a tensor or None."""
    if value is None:
        return None
    if not is_sequence:
        return as_map(value, name, key_type, item_type) if key_type else as_input(value, name, item_type)
    if not isinstance(value, (list, tuple)) and not (isinstance(value, np.ndarray) and value.ndim > 0):
        raise InvalidArgument(f"input '{name}' is a sequence, got {type(value).__name__}")
    if key_type:
        return [as_map(item, name, key_type, item_type) for item in value]
    return [as_input(item, name, item_type) for item in value]


def as_input(value, name: str, element_type: int):
    """(element type, array) for the extension, which finds out by itself what lies on a device; copies only what is not
    contiguous."""
    if element_type == _STRING:
        return _as_strings(value, name)
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        if element_type == 9 and callable(getattr(value, "data_type", None)):
            # onnxruntime's, which exports booleans as bytes.
            from ._values import OrtValue

            return 9, OrtValue.from_dlpack(value).numpy()
        # torch refuses to export what it would differentiate.
        value = value.detach() if getattr(value, "requires_grad", False) else value
        return 0, value
    elif isinstance(value, DeviceTensor) or hasattr(value, "__cuda_array_interface__"):
        return 0, value
    else:
        try:
            # Lists and numbers have no type of their own.
            dtype = None if isinstance(value, np.generic) else dtype_of(element_type)
            array = np.asarray(value, dtype)
        except (TypeError, ValueError) as problem:
            raise InvalidArgument(f"input '{name}' is no tensor: {problem}") from None
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        # ascontiguousarray would make a scalar one-dimensional.
        array = np.array(array, array.dtype.newbyteorder("="), order="C", copy=True)
    number = _BY_DTYPE.get(array.dtype)
    if number is not None:
        return number, array
    number = _EXTENDED.get(array.dtype.name)
    if number is None:
        raise InvalidArgument(f"input '{name}' has the dtype {array.dtype}, which no ONNX tensor has")
    return number, _bits(array)


def as_memory(value, name: str):
    """(element type, array) for a result that goes to the caller's array; None where it goes
    there by way of an array of its own."""
    if isinstance(value, int):  # the number of a device
        return value
    if not isinstance(value, np.ndarray):
        return 0, value
    if not value.flags.writeable:
        raise InvalidArgument(f"the array for output '{name}' must be writable")
    if not (value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative):
        return None
    number = element_type_of(value.dtype)
    return number, value if number in _dtypes and number < 16 else _bits(value)


def copy_to(target: np.ndarray, result: np.ndarray, name: str) -> np.ndarray:
    """Writes a result to the caller's array of any layout."""
    if target.dtype.newbyteorder("=") != result.dtype:
        raise InvalidArgument(f"output '{name}' has the dtype {result.dtype}, got an array of {target.dtype}")
    if target.shape != result.shape:
        raise InvalidArgument(
            f"output '{name}': the caller's memory has shape {list(target.shape)}, the model gives {list(result.shape)}"
        )
    np.copyto(target, result)
    return target


def check_apart(out: Mapping) -> None:
    """Refuses arrays for outputs that share memory. The extension checks those that are
    contiguous, and of the others only whoever looks at each element can tell."""
    arrays = [(name, value) for name, value in out.items() if isinstance(value, np.ndarray)]
    if all(value.flags.c_contiguous for _, value in arrays):
        return
    for i, (name, value) in enumerate(arrays):
        for other, array in arrays[:i]:
            try:
                shared = np.shares_memory(value, array, max_work=10**6)  # type: ignore[arg-type]  # numpy's stub lacks limits
            except np.exceptions.TooHardError:
                shared = True
            if shared:
                raise InvalidArgument(f"outputs '{other}' and '{name}' were given memory that overlaps")


def from_output(array, element_type: int):
    """A result with the dtype that it has in ONNX; strings are objects, a sequence is a list."""
    if isinstance(array, list):
        return [from_output(item, element_type) for item in array]
    if array is None or isinstance(array, DeviceTensor):
        return array
    if element_type == _STRING:
        texts, shape = array
        result = np.empty(len(texts), dtype=object)
        result[:] = texts
        return result.reshape(shape)
    return array if element_type < 16 else array.view(dtype_of(element_type))
