"""Rows that are computed side by side: numbers of them that leave some over, and too few for several at a time."""

import numpy as np
import pytest
from graphs import load, run

GRAPH = """(float[{shape}] x) => (float[{shape}] a, float[{shape}] b, float[{column}] c, float[{column}] d) {{
  a = Softmax <axis = -1> (x)
  b = LogSoftmax <axis = -1> (x)
  c = ReduceLogSumExp <axes = [2], keepdims = 0> (x)
  d = ReduceMax <axes = [2], keepdims = 0> (x)
}}"""


def expect(x):
    wide = x.astype(np.float64)
    highest = wide.max(-1, keepdims=True)
    shifted = wide - highest
    total = np.exp(shifted).sum(-1, keepdims=True)
    return np.exp(shifted) / total, shifted - np.log(total), (np.log(total) + highest)[..., 0], highest[..., 0]


def check(session, x):
    for name, y, expected in zip("abcd", run(session, x), expect(x)):
        np.testing.assert_allclose(y, expected, rtol=3e-6, atol=2e-6, err_msg=f"{name} {x.shape}")


@pytest.fixture(scope="module")
def open_session():
    return load(GRAPH.format(shape="n, h, w", column="n, h"), opset=13)


@pytest.mark.parametrize("width", [1, 5, 16, 33, 128, 515])
@pytest.mark.parametrize("rows", [(1, 1), (1, 3), (2, 31), (1, 64), (9, 7), (3, 22), (67, 3)])
def test_rows_of_open_sizes(open_session, rows, width):
    check(open_session, np.random.default_rng(width).normal(size=(*rows, width), scale=4).astype(np.float32))


@pytest.mark.parametrize("shape", [(1, 64, 10), (1, 67, 128), (3, 33, 48), (2, 128, 500)])
def test_rows_of_fixed_sizes(shape):
    session = load(GRAPH.format(shape=", ".join(map(str, shape)), column=f"{shape[0]}, {shape[1]}"), opset=13)
    check(session, np.random.default_rng(0).normal(size=shape, scale=4).astype(np.float32))


@pytest.mark.parametrize("width", [2, 130])
def test_rows_that_need_scratch(width):
    """The first result is read by others when the second is made."""
    session = load("(float[n, w] x) => (float[n, w] a, float[n, w] b) {\n a = Softmax (x)\n b = Softmax (a)\n}")
    for rows in (3, 64, 131):
        x = np.random.default_rng(rows).normal(size=(rows, width), scale=4).astype(np.float32)
        a, b = run(session, x)
        np.testing.assert_allclose(a, expect(x)[0], rtol=3e-6, atol=1e-7)
        np.testing.assert_allclose(b, expect(expect(x)[0])[0], rtol=3e-6, atol=1e-7)


def test_a_row_spoils_no_other(open_session):
    """NaN, infinity and what is masked out stay in their rows."""
    x = np.random.default_rng(1).normal(size=(1, 70, 40)).astype(np.float32)
    x[0, 1, 3], x[0, 2, 5], x[0, 3, 1:], x[0, 68, 0] = np.nan, np.inf, -np.inf, np.nan
    y = run(open_session, x)[0]
    assert np.isnan(y[0, [1, 2, 68]]).all()
    assert y[0, 3, 0] == 1 and not y[0, 3, 1:].any()
    whole = [0, *range(4, 68), 69]
    np.testing.assert_allclose(y[:, whole], expect(x[:, whole])[0], rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("is_open", [False, True])
def test_extremes_of_rows_with_nan(is_open, dtype):
    """A single NaN, wherever it is, is the result of its row, and of no other; zeros of either sign are zeros."""
    for rows, width in ((70, 49), (3, 1000), (9, 7), (70, 64)):
        shape = "n, w" if is_open else f"{rows}, {width}"
        session = load(f"({dtype}[{shape}] x) => ({dtype}[m] a, {dtype}[m] b) {{\n a = ReduceMax <axes = [1], keepdims = 0> (x)\n b = ReduceMin <axes = [1], keepdims = 0> (x)\n}}", opset=13)
        x = np.random.default_rng(width).normal(size=(rows, width)).astype("f4" if dtype == "float" else "f8")
        x[1] = np.where(np.arange(width) % 2, 0.0, -0.0)
        for row in range(2, rows, 3):
            x[row, 5 * row % width] = np.nan
        a, b = run(session, x)
        np.testing.assert_array_equal(a, x.max(1))
        np.testing.assert_array_equal(b, x.min(1))


@pytest.mark.parametrize("rows", [1, 3, 63, 64, 66, 131])
def test_largest_of_open_rows(rows):
    """One vector at a time where rows are side by side, several where they are alone."""
    session = load("(float[n, w] x) => (float[n] y) { y = ReduceMax <axes = [1], keepdims = 0> (x) }", opset=13)
    for width in (1, 7, 16, 49, 64, 100, 256, 257, 1000):
        x = np.random.default_rng(width).normal(size=(rows, width)).astype(np.float32)
        x[rows // 2, width // 3] = np.nan
        np.testing.assert_array_equal(run(session, x)[0], x.max(1))
