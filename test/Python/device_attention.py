"""What tests of attention on a CUDA device share: numbers, their attention by definition in f64, and how near results are."""

import numpy as np

RANDOM = np.random.default_rng(5)
TYPES = {"float": np.float32, "float16": np.float16}
# Results are rounded to their type; products of bf16 have 8 bits.
TOLERANCES = {"float": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


def floats(type, *shape):
    return RANDOM.standard_normal(shape).astype(TYPES.get(type, np.float32))


def attention(q, k, v, scale, change=lambda scores: scores):
    """q is [B,H,M,D], k [B,K,N,D], v [B,K,N,E]; H is a multiple of K. Everything in f64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = change(q @ k.swapaxes(2, 3) * scale)
    with np.errstate(invalid="ignore"):
        terms = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        return terms / terms.sum(axis=-1, keepdims=True) @ v


def check(result, expected, type):
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=TOLERANCES[type] * max(1, np.nanmax(np.abs(expected), initial=0)))
