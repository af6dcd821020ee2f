"""Scales, zero points and rounding: real = scale * (quantised - zero point).

Every formula works on whole arrays, so that all channels or blocks of a weight are one computation.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .quant_types import (
    FLOAT8_TYPES,
    ONNX_INT_TYPE_RANGE,
    ONNX_TYPE_TO_NP_TYPE,
    get_qmin_qmax_for_qType,
    type_name,
)


def scales_and_zero_points(rmin, rmax, qmin, qmax, symmetric=False, min_real_range=None):
    """Scales and zero points with which [rmin, rmax], widened to hold zero, covers [qmin, qmax].

    `rmin` and `rmax` are arrays of one shape and of the tensor's type, f32 or f16; results have that shape. A range
    narrower than the type's least normal number gets scale 1 and zero point 0. `symmetric` makes both ends equally
    far from zero; zero points are then the middle of [qmin, qmax]. `min_real_range` is the least difference of
    the ends.
    """
    if qmin > 0 or qmax < 0:
        raise ValueError(f"a range of quantised numbers must hold zero, unlike [{qmin}, {qmax}]")
    dtype = rmax.dtype
    low = np.minimum(rmin, np.zeros((), rmin.dtype))
    high = np.maximum(rmax, np.zeros((), dtype))
    if min_real_range is not None:
        high = np.maximum(high, low + np.asarray(min_real_range, low.dtype))
    if symmetric:
        high = np.maximum(np.abs(low), np.abs(high))
        low = -high
    # In f64: the difference of two finite ends may exceed their own type.
    scale = (high.astype(np.float64) - low.astype(np.float64)) / (float(qmax) - float(qmin))
    if not np.isfinite(scale).all():
        raise ValueError(f"a range must be of finite numbers, unlike [{np.min(low)}, {np.max(high)}]")
    empty = scale < np.finfo(dtype).tiny
    if symmetric:
        zero = np.full(scale.shape, np.round((float(qmin) + float(qmax)) / 2))
    else:
        zero = np.round(float(qmin) - low / np.where(empty, 1, scale))
    zero = np.where(empty, 0, zero).astype(qmin.dtype)
    return np.where(empty, 1, scale).astype(dtype), zero


def compute_scale_zp(rmin, rmax, qmin, qmax, symmetric=False, min_real_range=None):
    """[zero point, scale] of a range; see `scales_and_zero_points`."""
    rmin, rmax, qmin, qmax = (np.asarray(end) for end in (rmin, rmax, qmin, qmax))
    scale, zero = scales_and_zero_points(rmin, rmax, qmin, qmax, symmetric, min_real_range)
    return [np.asarray(zero), np.asarray(scale)]


def snap_zero_point_to_uint8(rmin, rmax, qmin=0, qmax=255, min_real_range=None):
    """(zero point, scale) of a u8 range whose zero point is `qmin`, or the middle where `rmin` is negative.

    The scale is the least that clips neither end.
    """
    qmin, qmax = int(qmin), int(qmax)
    middle = (qmin + qmax + 1) // 2
    least = 0.0 if min_real_range is None else float(min_real_range)
    low, high = min(float(np.squeeze(rmin)), 0.0), max(float(np.squeeze(rmax)), 0.0)
    if least > 0:
        high = max(high, low + least)
    zero = qmin if low >= 0 else middle
    if low == high:  # both are zero
        scale = 1.0 / max(1, qmax - qmin)
    else:
        scale = max(-low / (zero - qmin) if low < 0 else 0.0, high / (qmax - zero))
    scale = max(scale, least / (qmax - qmin))
    return np.array(zero, np.uint8), np.array(scale, np.float32)


def finite_float8_values(kind: int) -> np.ndarray:
    values = np.arange(256, dtype=np.uint8).view(ONNX_TYPE_TO_NP_TYPE[kind]).astype(np.float32)
    return values[np.isfinite(values)]


def compute_scale_zp_float8(element_type, std):
    """[zero point, scale] of a float of 8 bits for numbers of standard deviation `std`.

    The scale takes that to the standard deviation of all finite numbers of the type.
    """
    if element_type not in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
        raise ValueError(f"{type_name(element_type)} is no float of 8 bits that can be quantised to")
    std = np.asarray(std)
    scale = std / np.std(finite_float8_values(element_type))
    return [np.zeros((), ONNX_TYPE_TO_NP_TYPE[element_type]), np.array(scale, std.dtype)]


def round_to(kind: int, values: np.ndarray, scale, zero_point, low=None, high=None) -> np.ndarray:
    """`values` as numbers of a type: rounded half to even and clipped; scales and zero points are broadcast."""
    if kind not in ONNX_TYPE_TO_NP_TYPE:
        raise ValueError(f"{kind} is no type that can be quantised to")
    dtype = ONNX_TYPE_TO_NP_TYPE[kind]
    if kind in FLOAT8_TYPES:
        if np.any(np.asarray(zero_point).astype(np.float32)):
            raise NotImplementedError(f"{type_name(kind)} takes no zero point but 0")
        largest = finite_float8_values(kind).max()
        scaled = values.astype(np.float32) / np.asarray(scale, np.float32)
        return np.clip(scaled, -largest, largest).astype(dtype)
    first, last = (float(end) for end in ONNX_INT_TYPE_RANGE[kind])
    first = first if low is None else max(first, float(low))
    last = last if high is None else min(last, float(high))
    rounded = np.asarray(values.astype(np.float32) / scale)
    np.rint(rounded, out=rounded)
    rounded += np.asarray(zero_point).astype(rounded.dtype)
    return np.clip(rounded, first, last, out=rounded).astype(dtype)


def quantize_nparray(qType, arr, scale, zero_point, low=None, high=None):  # noqa: N803
    """`arr` as numbers of a type; see `round_to`."""
    return np.asarray(round_to(qType, np.asarray(arr), scale, zero_point, low, high))


def compute_data_quant_params(
    data, quant_type, symmetric, reduce_range=False, min_real_range=None, rmin_override=None, rmax_override=None
):
    """(zero point, scale) of all of `data` together; the overrides stand for its least and largest number."""
    if not isinstance(data, np.ndarray):
        raise TypeError(f"a weight must be an array, not {type(data).__name__}")
    zero, scale = axis_parameters(
        data.reshape(1, -1), 0, quant_type, symmetric, reduce_range, min_real_range, [(rmin_override, rmax_override)]
    )
    return zero[0], scale[0]


def axis_parameters(data, axis, quant_type, symmetric, reduce_range=False, min_real_range=None, ranges=()):
    """(zero points, scales), both of shape [channels], of the slices of `data` along `axis`.

    `ranges` holds a pair (least, largest) for the first channels, or one for all of them; None is the data's own.
    """
    rows = np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)
    if quant_type in FLOAT8_TYPES:
        if reduce_range:
            raise ValueError("'reduce_range' is for integers, not for floats of 8 bits")
        deviation = np.std(rows, axis=1) if rows.size else np.ones(len(rows), data.dtype)
        zero, scale = compute_scale_zp_float8(quant_type, deviation)
        return np.broadcast_to(zero, scale.shape).copy(), scale
    low, high = (rows.min(axis=1), rows.max(axis=1)) if rows.shape[1] else (np.zeros(len(rows), data.dtype),) * 2
    for ends, index in ((low, 0), (high, 1)):
        given = [pair[index] for pair in ranges]
        if len(given) == 1:
            given *= len(ends)
        for channel, end in enumerate(given):
            if end is not None:
                ends[channel] = end
    qmin, qmax = get_qmin_qmax_for_qType(quant_type, reduce_range, symmetric=symmetric)
    scale, zero = scales_and_zero_points(low, high, qmin, qmax, symmetric, min_real_range)
    return zero, scale


def compute_scale_zp_blocked(weight, quant_type, axis, block_size, symmetric):
    """(zero points, scales) of blocks of `block_size` numbers along `axis` of a weight of rank 2.

    Both have the weight's shape with ceil(size / block_size) in the place of `axis`, as opset 21 has it.
    """
    if weight.ndim != 2:
        raise NotImplementedError(f"blocks are for weights of rank 2, and this one has the shape {list(weight.shape)}")
    blocks = split_into_blocks(weight, axis, block_size)
    qmin, qmax = get_qmin_qmax_for_qType(quant_type, reduce_range=False, symmetric=symmetric)
    low, high = blocks.min(axis=1), blocks.max(axis=1)
    scale, zero = scales_and_zero_points(low, high, qmin, qmax, symmetric)
    return np.moveaxis(zero, 0, axis), np.moveaxis(scale, 0, axis)


def split_into_blocks(weight: np.ndarray, axis: int, block_size: int) -> np.ndarray:
    """`weight` of rank 2 as [blocks, block_size, others], the last block filled up with zeros."""
    rows = np.moveaxis(weight, axis, 0)
    missing = -len(rows) % block_size
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, rows.shape[1]), rows.dtype)])
    return rows.reshape(-1, block_size, rows.shape[1])


def quantize_data(
    data, qType, symmetric, reduce_range=False, min_real_range=None, rmin_override=None, rmax_override=None  # noqa: N803
):
    """(zero point, scale, quantised) of `data`."""
    zero, scale = compute_data_quant_params(
        data, qType, symmetric, reduce_range, min_real_range, rmin_override, rmax_override
    )
    return zero, scale, round_to(qType, data, scale, zero)


def quantize_weight(values, kind, scale, zero_point, axis=None, block_size=0):
    """A weight as numbers of a type, with one scale, a scale for every slice along `axis` or for every block there."""
    if axis is None:
        return round_to(kind, values, scale, zero_point)
    if block_size:
        count = values.shape[axis]
        scale, zero_point = (np.repeat(part, block_size, axis).take(range(count), axis) for part in (scale, zero_point))
    else:
        shape = [1] * values.ndim
        shape[axis] = -1
        scale, zero_point = np.reshape(scale, shape), np.reshape(zero_point, shape)
    return round_to(kind, values, scale, zero_point)


def dequantize(values, scale, zero_point, axis=None, block_size=0) -> np.ndarray:
    """What `quantize_weight` rounded, in f32."""
    scale, zero_point = (np.asarray(part).astype(np.float32) for part in (scale, zero_point))
    if axis is not None and block_size:
        count = values.shape[axis]
        scale, zero_point = (np.repeat(part, block_size, axis).take(range(count), axis) for part in (scale, zero_point))
    elif axis is not None:
        shape = [1] * values.ndim
        shape[axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    return (values.astype(np.float32) - zero_point) * scale


def pack_bytes_to_4bit(src_8bit: bytes) -> bytearray:
    """The low halves of bytes, two a byte, the first of them below."""
    halves = np.frombuffer(src_8bit, np.uint8) & 0xF
    if len(halves) % 2:
        halves = np.append(halves, np.uint8(0))
    return bytearray((halves[0::2] | halves[1::2] << 4).tobytes())


def pack_bits(values: np.ndarray, bits: int) -> np.ndarray:
    """Unsigned numbers below 2^bits along the last axis, as many a byte as fit, the first of them lowest."""
    values = np.asarray(values, np.uint8)
    each = 8 // bits
    missing = -values.shape[-1] % each
    if missing:
        values = np.concatenate([values, np.zeros((*values.shape[:-1], missing), np.uint8)], axis=-1)
    parts = values.reshape(*values.shape[:-1], -1, each)
    packed = np.zeros(parts.shape[:-1], np.uint8)
    for place in range(each):
        packed |= parts[..., place] << np.uint8(bits * place)
    return packed


def unpack_bits(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first `count` numbers along the last axis of what `pack_bits` packed."""
    shifts = np.arange(0, 8 - 8 % bits, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1)[..., :count]


def normalize_axis(axis: int, rank: int):
    """(whether `axis` is one of `rank` axes, that axis counted from the front)."""
    front = axis + rank if axis < 0 else axis
    return 0 <= front < rank, front
