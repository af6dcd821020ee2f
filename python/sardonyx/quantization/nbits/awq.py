"""AWQ: weights whose inputs are large are made larger before they are rounded, and their inputs smaller.

Lin, Tang, Tang, Yang, Dang, Han, "AWQ: Activation-aware Weight Quantization for LLM Compression and Acceleration"
(2306.00978). Errors are those of the products' results, tr(ΔWᵀ G ΔW) with G = XᵀX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Blocks, as_blocks, parameters, round_blocks, round_to_nearest

_STEPS = 20
_SHARES = np.linspace(1.0, 0.5, 11)  # of a block's range that are tried


def output_error(weight, rounded, gram) -> float:
    """tr(ΔWᵀ G ΔW) of [K, N] and what it was rounded to."""
    difference = np.asarray(weight, np.float64) - rounded
    return float(np.einsum("kn,kn->", difference, np.asarray(gram, np.float64) @ difference))


def find_scales(weights, gram, mean, bits, block_size, symmetric):
    """Factors of the K inputs, f32 [K], that make the error of all `weights` of one input least; None: none does.

    `mean` is the mean of |x| of each input, f32 [K]. Factors are mean^a, for a from 0 to 1, with geometric mean 1.
    """
    def error(factors):
        total = 0.0
        for weight in weights:
            scaled = weight * factors[:, None]
            rounded = round_to_nearest(scaled, bits, block_size, symmetric).values() / factors[:, None]
            total += output_error(weight, rounded, gram)
        return total

    safe = np.maximum(np.asarray(mean, np.float64), 1e-6 * max(float(np.max(mean)), 1e-12))
    plain = error(np.ones(len(safe)))
    best, found = plain, None
    for step in range(1, _STEPS + 1):
        factors = safe ** (step / _STEPS)
        factors = factors / np.exp(np.log(factors).mean())
        factors = np.clip(factors, 1e-4, 1e4)
        now = error(factors)
        if now < best:
            best, found = now, factors
    if found is None or best > 0.98 * plain:  # not worth what the inputs' factors cost
        return None
    return found.astype(np.float32)


def round_clipped(weight, gram, bits, block_size, symmetric, dtype=np.float32) -> Blocks:
    """[K, N] rounded with ranges narrowed where that makes the error of the block's part of the results less."""
    blocks = as_blocks(weight, block_size)  # [N, blocks, block_size]
    rows = weight.shape[0]
    padded = np.zeros((blocks.shape[1] * block_size,) * 2)
    padded[:rows, :rows] = gram
    parts = np.stack([
        padded[start : start + block_size, start : start + block_size]
        for start in range(0, len(padded), block_size)
    ])  # fmt: skip
    best = np.full(blocks.shape[:2], np.inf)
    found_scale: Any = None
    found_zero: Any = None
    for share in _SHARES:
        scale, zero = parameters(blocks * share, bits, symmetric)
        scale = scale.astype(dtype).astype(np.float32)
        q = round_blocks(blocks, scale, zero, bits).astype(np.float32)
        difference = (blocks - (q - zero[..., None]) * scale[..., None]).astype(np.float64)
        error = np.einsum("nbk,bkl,nbl->nb", difference, parts, difference, optimize=True)
        better = error < best
        best = np.where(better, error, best)
        found_scale = scale if found_scale is None else np.where(better, scale, found_scale)
        found_zero = zero if found_zero is None else np.where(better, zero, found_zero)
    return Blocks(round_blocks(blocks, found_scale, found_zero, bits), found_scale, found_zero, bits, rows)
