"""Scales and zero points that are searched for, with or without what the products' inputs look like.

`importance` is E[x²] of each of the K inputs, f32 [K]; without it all count alike.
"""

from __future__ import annotations

import numpy as np

from .blocks import Blocks, as_blocks, finish, parameters, round_blocks

_STEPS = 20


def _weights_of_blocks(importance, rows: int, block_size: int) -> np.ndarray:
    """Importance as [1, blocks, block_size]; what fills up the last block counts nothing."""
    full = np.ones(rows, np.float32) if importance is None else np.asarray(importance, np.float32)
    full = np.pad(full, (0, -rows % block_size))
    return full.reshape(1, -1, block_size)


def search_scales(weight, bits, block_size, symmetric, importance=None, dtype=np.float32) -> Blocks:
    """Tries `_STEPS` scales around that of the range, and solves each for the best scale and zero point.

    Minimises Σ E[x²] · (w - s · (q - z))² of each block, as llama.cpp's k-quants do: q is rounded at a tried scale,
    then s (and z) follow by least squares for that q.
    """
    blocks = as_blocks(weight, block_size)
    counts = _weights_of_blocks(importance, weight.shape[0], block_size)
    counts = counts + 1e-6 * (counts.mean() or 1.0)
    first, middle = scale, zero = parameters(blocks, bits, symmetric)
    best = _error(blocks, scale, zero, bits, counts)
    for step in range(_STEPS):
        q = round_blocks(blocks, first * (0.72 + 0.02 * step), middle, bits).astype(np.float32)
        tried, tried_zero = _least_squares(blocks, q, counts, middle, symmetric, bits)
        error = _error(blocks, tried, tried_zero, bits, counts)
        better = error < best
        scale, zero = np.where(better, tried, scale), np.where(better, tried_zero, zero)
        best = np.where(better, error, best)
    return finish(blocks, scale, zero, bits, weight.shape[0], dtype)


def _least_squares(blocks, q, counts, zero, symmetric, bits):
    """(scale, zero point) that fit w best for given integers; zero points are rounded."""
    if symmetric:
        centred = q - zero[..., None]
        below = (counts * centred * centred).sum(-1)
        scale = (counts * centred * blocks).sum(-1) / np.where(below == 0, 1, below)
        return scale, zero
    total = counts.sum(-1)
    mean_q, mean_w = (counts * q).sum(-1) / total, (counts * blocks).sum(-1) / total
    spread = (counts * (q - mean_q[..., None]) ** 2).sum(-1)
    slope = (counts * (q - mean_q[..., None]) * (blocks - mean_w[..., None])).sum(-1)
    scale = slope / np.where(spread == 0, 1, spread)
    safe = np.where(scale == 0, 1, scale)
    return scale, np.clip(np.rint(mean_q - mean_w / safe), 0, 2**bits - 1).astype(np.float32)


def _error(blocks, scale, zero, bits, counts):
    q = round_blocks(blocks, scale, zero, bits).astype(np.float32)
    return (counts * (blocks - (q - zero[..., None]) * scale[..., None]) ** 2).sum(-1)


def half_quadratic(weight, bits, block_size, power=0.7, steps=20, dtype=np.float32) -> Blocks:
    """Zero points, as floats, that make |w - ŵ|^power least: half-quadratic quantisation.

    After Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (Mobius Labs, 2023). e is
    w - ŵ with small differences shrunk to none; zero points follow from w - e; the weight of the shrinking grows.
    """
    blocks = as_blocks(weight, block_size)
    low, high = blocks.min(-1), blocks.max(-1)
    span = np.where(high == low, 2**bits - 1, high - low)
    inverse = np.minimum((2**bits - 1) / span, 2e4).astype(np.float32)
    zero = np.rint(-low * inverse)
    best, found = np.inf, zero
    beta, growth = 10.0, 1.01
    for _ in range(steps):
        q = np.clip(np.rint(blocks * inverse[..., None] + zero[..., None]), 0, 2**bits - 1)
        difference = blocks - (q - zero[..., None]) / inverse[..., None]
        error = float(np.abs(difference).mean())
        if error >= best:
            break
        best, found = error, zero
        size = np.abs(difference)
        kept = np.sign(difference) * np.maximum(size - (size + 1e-8) ** (power - 1) / beta, 0)
        zero = (q - (blocks - kept) * inverse[..., None]).mean(-1)
        beta *= growth
    return finish(blocks, 1 / inverse, found.astype(dtype).astype(np.float32), bits, weight.shape[0], dtype)
