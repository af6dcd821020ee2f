"""Types that quantisation stores numbers in, their ranges, and the switches of onnxruntime's tools."""

from __future__ import annotations

from enum import Enum

import ml_dtypes
import numpy as np
from onnx import TensorProto

from .._suggest import unknown

FLOAT8_TYPES = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
)
# What ONNX's QuantizeLinear takes from opset 21 on only; before, com.microsoft's own does.
OPSET_21_TYPES: tuple[int, ...] = (TensorProto.INT16, TensorProto.UINT16, TensorProto.INT4, TensorProto.UINT4)
FLOAT_TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16)

_INTEGERS: dict[int, np.dtype] = {
    TensorProto.INT8: np.dtype("int8"),
    TensorProto.UINT8: np.dtype("uint8"),
    TensorProto.INT16: np.dtype("int16"),
    TensorProto.UINT16: np.dtype("uint16"),
    TensorProto.INT4: np.dtype(ml_dtypes.int4),
    TensorProto.UINT4: np.dtype(ml_dtypes.uint4),
}
_RANGES: dict[int, tuple] = {
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
}
_REDUCED = {
    TensorProto.INT8: (-64, 64),
    TensorProto.UINT8: (0, 127),
    TensorProto.INT16: (-16384, 16384),
    TensorProto.UINT16: (0, 32767),
    TensorProto.INT4: (-4, 3),
    TensorProto.UINT4: (0, 7),
}
_SYMMETRIC = {TensorProto.INT8: (-127, 127), TensorProto.INT16: (-32767, 32767)}
if hasattr(TensorProto, "INT2") and hasattr(ml_dtypes, "int2"):  # from onnx 1.20 on
    _INTEGERS[TensorProto.INT2] = np.dtype(ml_dtypes.int2)
    _INTEGERS[TensorProto.UINT2] = np.dtype(ml_dtypes.uint2)
    _RANGES[TensorProto.INT2], _RANGES[TensorProto.UINT2] = (-2, 1), (0, 3)
    OPSET_21_TYPES = (*OPSET_21_TYPES, TensorProto.INT2, TensorProto.UINT2)


def _as_arrays(ranges: dict) -> dict:
    return {kind: tuple(np.array(end, _INTEGERS[kind]) for end in ends) for kind, ends in ranges.items()}


ONNX_INT_TYPE_RANGE = _as_arrays(_RANGES)
ONNX_INT_TYPE_SYMMETRIC_RANGE = _as_arrays(_SYMMETRIC)
ONNX_INT_TYPE_REDUCED_RANGE = _as_arrays(_REDUCED)
ONNX_TYPE_TO_NP_TYPE: dict[int, np.dtype] = {
    **_INTEGERS,
    TensorProto.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    TensorProto.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
}
SIGNED_TYPES = tuple(
    kind for kind, dtype in ONNX_TYPE_TO_NP_TYPE.items() if kind in FLOAT8_TYPES or _RANGES[kind][0] < 0
)


def type_name(kind: int) -> str:
    return TensorProto.DataType.Name(kind)


class _Named(Enum):
    """An enumeration whose members can also be given as text."""

    def __str__(self):
        return self.name

    @classmethod
    def from_string(cls, text: str):
        """The member of that name, in any case of its letters."""
        if isinstance(text, cls):
            return text
        for member in cls:
            if member.name.lower() == str(text).lower():
                return member
        raise ValueError(unknown("member", text, [member.name for member in cls], cls.__name__))


class QuantizationMode(_Named):
    """How operators of integers are written: with scales that the run computes, or that calibration found."""

    IntegerOps = 0
    QLinearOps = 1


class QuantizedValueType(_Named):
    Input = 0
    Initializer = 1


class QuantFormat(_Named):
    QOperator = 0
    QDQ = 1


class QuantType(_Named):
    """A type of quantised numbers."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6
    QInt2 = 7
    QUInt2 = 8
    QFLOAT8E5M2 = 9

    @property
    def tensor_type(self) -> int:
        """ONNX's number of the type."""
        name = self.name[1:].upper()
        kind = getattr(TensorProto, name, None)
        if kind is None:
            raise ValueError(f"this release of onnx has no type {name}, which {self.name} needs")
        return kind


def as_tensor_type(kind) -> int:
    """ONNX's number of a QuantType, of its name, or of that number itself."""
    if isinstance(kind, str):
        kind = QuantType.from_string(kind)
    return getattr(kind, "tensor_type", kind)


def get_qmin_qmax_for_qType(qType, reduce_range=False, symmetric=False):  # noqa: N802, N803
    """The least and the largest number of a type, as arrays of that type.

    `reduce_range` takes a bit from them; `symmetric` leaves out the least number of signed types of 8 and 16 bits.
    """
    if qType in FLOAT8_TYPES:
        raise NotImplementedError(f"{type_name(qType)} has no range of integers")
    table = ONNX_INT_TYPE_RANGE
    if reduce_range:
        table = ONNX_INT_TYPE_REDUCED_RANGE
    elif symmetric and qType in ONNX_INT_TYPE_SYMMETRIC_RANGE:
        table = ONNX_INT_TYPE_SYMMETRIC_RANGE
    if qType not in table:
        known = ", ".join(type_name(kind) for kind in table)
        raise ValueError(f"{qType} is no type that can be quantised to; these are: {known}")
    return table[qType]


def get_qrange_for_qType(qType, reduce_range=False, symmetric=False):  # noqa: N802, N803
    """How far the least and the largest number of a type are apart."""
    low, high = get_qmin_qmax_for_qType(qType, reduce_range, symmetric=symmetric)
    return int(high) - int(low)
