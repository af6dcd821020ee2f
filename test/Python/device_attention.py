"""What tests of attention on a CUDA device share: numbers, and how near results are."""

import numpy as np

RANDOM = np.random.default_rng(5)
TYPES = {"float": np.float32, "float16": np.float16}
# Results are rounded to their type; products of bf16 have 8 bits.
TOLERANCES = {"float": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


def floats(type, *shape):
    return RANDOM.standard_normal(shape).astype(TYPES.get(type, np.float32))


def check(result, expected, type):
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=TOLERANCES[type] * max(1, np.nanmax(np.abs(expected), initial=0)))
