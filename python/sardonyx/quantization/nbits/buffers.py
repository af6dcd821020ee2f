"""Functions of onnxruntime's extension that write weights of few bits into arrays of the caller's."""

from __future__ import annotations

import numpy as np

from ..formulas import pack_bytes_to_4bit
from .blocks import round_to_nearest


def quantize_matmul_bits(bits, packed, weight, scales, zero_points, block_size, columns, rows, symmetric) -> None:
    """onnxruntime's `quantize_matmul_{2,4,8}bits`: fills arrays that the caller made, from a weight [rows, columns].

    `packed` is [columns, blocks, bytes of a block], `scales` [columns, blocks], `zero_points` [columns, bytes]; the
    latter are written unless `symmetric`.
    """
    blocks = round_to_nearest(np.asarray(weight)[:rows, :columns], bits, block_size, symmetric, scales.dtype)
    packed.reshape(columns, blocks.q.shape[1], -1)[...] = blocks.packed()
    scales.reshape(columns, -1)[...] = blocks.scale
    if zero_points is not None and not symmetric:
        zero_points.reshape(columns, -1)[...] = blocks.packed_zeros()


def quantize_qdq_matmul_4bits(packed, weight, scales, zero_points, block_size, columns, rows, symmetric) -> bool:
    """The same for DequantizeLinear: `packed` is [rows, columns] two a byte, `scales` and `zero_points` [blocks, columns]."""
    blocks = round_to_nearest(np.asarray(weight)[:rows, :columns], 4, block_size, symmetric, scales.dtype)
    shift = 8 if symmetric else 0
    numbers = blocks.q.reshape(columns, -1)[:, :rows].T.astype(np.int8) - shift
    packed.ravel()[...] = np.frombuffer(pack_bytes_to_4bit(np.ascontiguousarray(numbers).tobytes()), np.uint8)
    scales[...] = blocks.scale.T.reshape(scales.shape)
    if zero_points is not None and not symmetric:
        zeros = np.ascontiguousarray(blocks.zero.T.astype(np.int8)).tobytes()
        zero_points.ravel()[...] = np.frombuffer(pack_bytes_to_4bit(zeros), np.uint8)
    return not symmetric
