"""GPTQ: each number is rounded so that the numbers after it can make up for its error.

Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers" (2210.17323). `gram` is G = XᵀX of the product's inputs, f32 or f64 [K, K].
"""

from __future__ import annotations

import numpy as np

from .blocks import Blocks, as_blocks, parameters, round_blocks

_LAZY = 128  # columns whose updates of the columns behind them are one product


def inverse_factor(gram: np.ndarray, damping: float) -> np.ndarray:
    """U, upper triangular, with UᵀU = (G + λI)⁻¹; λ is `damping` of the mean of G's diagonal, or what it takes."""
    gram = np.array(gram, np.float64)
    diagonal = np.einsum("ii->i", gram)
    diagonal[diagonal == 0] = diagonal.mean() or 1.0  # inputs that are always zero
    mean = diagonal.mean()
    while True:
        damped = gram.copy()
        np.einsum("ii->i", damped)[:] += damping * mean
        try:
            lower = np.linalg.cholesky(np.linalg.inv(damped))
        except np.linalg.LinAlgError:
            damping = max(10 * damping, 1e-4)
            continue
        return np.ascontiguousarray(lower.T)


def quantize(
    weight, gram, bits, block_size, symmetric, damping=0.01, order_by_activation=False, search_range=False,
    dtype=np.float32,
) -> Blocks:  # fmt: skip
    """[K, N] in blocks, rounded in the order of K or, with `order_by_activation`, of G's diagonal, largest first.

    Scales of a block are those of its numbers as they are when its turn comes; in another order than K's those of the
    weight itself. `search_range` narrows ranges where that makes the squared error less.
    """
    rows, count = weight.shape
    columns = as_blocks(weight, block_size).reshape(count, -1)[:, :rows].astype(np.float64)  # [N, K]
    order = np.argsort(-np.diag(gram), kind="stable") if order_by_activation else np.arange(rows)
    blocks = -(-rows // block_size)
    scale, zero = np.zeros((count, blocks), np.float32), np.zeros((count, blocks), np.float32)
    if order_by_activation:
        scale, zero = _block_parameters(as_blocks(weight, block_size), bits, symmetric, search_range, dtype)
    factor = inverse_factor(np.asarray(gram)[np.ix_(order, order)], damping)
    left = columns[:, order]
    q = np.zeros((count, rows), np.uint8)
    for start in range(0, rows, _LAZY):
        end = min(start + _LAZY, rows)
        errors = np.zeros((count, end - start))
        for place in range(start, end):
            column = order[place]
            block = column // block_size
            if not order_by_activation and column % block_size == 0:
                last = min(place + block_size, rows)
                now = left[:, place:last].copy()
                if last > end:  # columns behind this lazy part have not had its updates yet
                    now[:, end - place :] -= errors[:, : place - start] @ factor[start:place, end:last]
                now = np.pad(now, ((0, 0), (0, block_size - now.shape[1])))[:, None].astype(np.float32)
                new_scale, new_zero = _block_parameters(now, bits, symmetric, search_range, dtype)
                scale[:, block], zero[:, block] = new_scale[:, 0], new_zero[:, 0]
            value = left[:, place]
            rounded = round_blocks(value[:, None], scale[:, block], zero[:, block], bits)[:, 0]
            q[:, column] = rounded
            error = (value - (rounded.astype(np.float64) - zero[:, block]) * scale[:, block]) / factor[place, place]
            left[:, place + 1 : end] -= error[:, None] * factor[place, place + 1 : end]
            errors[:, place - start] = error
        left[:, end:] -= errors @ factor[start:end, end:]
    padded = np.pad(q, ((0, 0), (0, blocks * block_size - rows)))
    return Blocks(padded.reshape(count, blocks, block_size), scale, zero, bits, rows)


def _block_parameters(blocks, bits, symmetric, search_range, dtype):
    scale, zero = parameters(blocks, bits, symmetric)
    if search_range:
        best = np.full(scale.shape, np.inf)
        found = scale, zero
        for share in np.linspace(1, 0.6, 21):
            tried, tried_zero = parameters(blocks * share, bits, symmetric)
            q = round_blocks(blocks, tried, tried_zero, bits).astype(np.float32)
            error = ((blocks - (q - tried_zero[..., None]) * tried[..., None]) ** 2).sum(-1)
            better = error < best
            best = np.where(better, error, best)
            found = np.where(better, tried, found[0]), np.where(better, tried_zero, found[1])
        scale, zero = found
    return scale.astype(dtype).astype(np.float32), zero.astype(np.float32)
