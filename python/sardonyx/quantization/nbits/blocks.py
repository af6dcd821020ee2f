"""Blocks of weights as unsigned integers of few bits: w = scale · (q - zero point).

A weight of a product is [K, N] with N columns of results; blocks are of `block_size` numbers of a column along K. All
functions work on [N, blocks, block_size], the last block of a column filled up with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formulas import pack_bits


@dataclass
class Blocks:
    """A weight in quantised form. Zero points are integers, or floats where a method (HQQ) finds them so."""

    q: np.ndarray  # u8 [N, blocks, block_size]
    scale: np.ndarray  # f32 [N, blocks]
    zero: np.ndarray  # f32 [N, blocks]
    bits: int
    rows: int  # K

    def values(self) -> np.ndarray:
        """What the integers stand for, f32 [K, N]."""
        values = (self.q.astype(np.float32) - self.zero[..., None]) * self.scale[..., None]
        return values.reshape(len(values), -1)[:, : self.rows].T

    def packed(self) -> np.ndarray:
        """u8 [N, blocks, bytes of a block], the first number of a byte lowest."""
        return pack_bits(self.q, self.bits)

    def packed_zeros(self) -> np.ndarray:
        """u8 [N, bytes of a column's zero points]; what fills up a byte is the middle of the range."""
        each = 8 // self.bits
        missing = -self.zero.shape[1] % each
        zeros = np.pad(self.zero, ((0, 0), (0, missing)), constant_values=2 ** (self.bits - 1))
        return pack_bits(np.rint(zeros).astype(np.uint8), self.bits)


def as_blocks(weight: np.ndarray, block_size: int) -> np.ndarray:
    """[K, N] as f32 [N, blocks, block_size]."""
    columns = np.ascontiguousarray(weight.T, np.float32)
    missing = -columns.shape[1] % block_size
    if missing:
        columns = np.pad(columns, ((0, 0), (0, missing)))
    return columns.reshape(len(columns), -1, block_size)


def parameters(blocks: np.ndarray, bits: int, symmetric: bool):
    """(scales, zero points) of blocks [..., block_size], both [...].

    Symmetric: the number furthest from zero becomes -2^(bits-1), whatever its sign, and the zero point is the middle.
    Otherwise the range of the block, widened to hold zero, covers all 2^bits numbers.
    """
    if symmetric:
        place = np.abs(blocks).argmax(axis=-1)
        furthest = np.take_along_axis(blocks, place[..., None], -1)[..., 0]
        middle = 2 ** (bits - 1)
        return furthest / -middle, np.full(furthest.shape, middle, np.float32)
    low = np.minimum(blocks.min(axis=-1), 0)
    high = np.maximum(blocks.max(axis=-1), 0)
    scale = (high - low) / (2**bits - 1)
    zero = np.where(scale == 0, 0, -low / np.where(scale == 0, 1, scale))
    return scale, np.clip(np.rint(zero), 0, 2**bits - 1).astype(np.float32)


def round_blocks(blocks: np.ndarray, scale: np.ndarray, zero: np.ndarray, bits: int) -> np.ndarray:
    """u8 of blocks, given their scales and zero points."""
    inverse = np.where(scale == 0, 0, 1 / np.where(scale == 0, 1, scale))
    scaled = blocks * inverse[..., None] + zero[..., None]
    return np.clip(np.rint(scaled), 0, 2**bits - 1).astype(np.uint8)


def round_to_nearest(weight: np.ndarray, bits: int, block_size: int, symmetric: bool, dtype=np.float32) -> Blocks:
    """[K, N] rounded to the nearest numbers, with scales as `dtype` holds them."""
    blocks = as_blocks(weight, block_size)
    scale, zero = parameters(blocks, bits, symmetric)
    return finish(blocks, scale, zero, bits, weight.shape[0], dtype)


def finish(blocks, scale, zero, bits, rows, dtype=np.float32) -> Blocks:
    scale = scale.astype(dtype).astype(np.float32)
    return Blocks(round_blocks(blocks, scale, zero, bits), scale, zero.astype(np.float32), bits, rows)
