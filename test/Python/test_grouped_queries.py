"""Attention whose heads of queries share heads of keys and values, with a cache of these, against numpy."""

import numpy as np
import pytest
from graphs import load, run

OPEN = ("b", "t", "p")


def attention(sizes, times, transposed_first):
    b, t, p = sizes
    total = p + t if isinstance(p, int) else "s"
    keys = ("kt = Transpose <perm = [0, 1, 3, 2]> (k) ku = Unsqueeze (kt, two) ke = Expand (ku, times) "
            "kr = Reshape (ke, wide)" if transposed_first else
            "ku = Unsqueeze (k, two) ke = Expand (ku, times) kh = Reshape (ke, heads) kr = Transpose <perm = [0, 1, 3, 2]> (kh)")
    return load(f"""(float[{b}, {2 * times}, {t}, 64] q, float[{b}, 2, {p}, 64] pk, float[{b}, 2, {p}, 64] pv,
        float[{b}, 2, {t}, 64] nk, float[{b}, 2, {t}, 64] nv)
        => (float[{b}, {2 * times}, {t}, 64] y, float[{b}, 2, {total}, 64] k, float[{b}, 2, {total}, 64] v)
        <int64[1] two = {{2}}, int64[5] times = {{1, 1, {times}, 1, 1}}, int64[4] heads = {{0, {2 * times}, -1, 64}},
         int64[4] wide = {{0, {2 * times}, 64, -1}}> {{
        k = Concat <axis = 2> (pk, nk) v = Concat <axis = 2> (pv, nv)
        {keys}
        vu = Unsqueeze (v, two) ve = Expand (vu, times) vr = Reshape (ve, heads)
        s = MatMul (q, kr) w = Softmax <axis = -1> (s) y = MatMul (w, vr) }}""")


def reference(q, k, v, times):
    k, v = (np.repeat(x.astype(np.float64), times, axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3)
    w = np.exp(s - s.max(-1, keepdims=True))
    return (w / w.sum(-1, keepdims=True)) @ v


def check(session, rng, b, t, p, times):
    draw = lambda heads, length: rng.standard_normal((b, heads, length, 64)).astype(np.float32)  # noqa: E731
    q, pk, pv, nk, nv = draw(2 * times, t) / 8, draw(2, p), draw(2, p), draw(2, t), draw(2, t)
    y, k, v = run(session, q, pk, pv, nk, nv)
    np.testing.assert_array_equal(k, np.concatenate([pk, nk], 2))
    np.testing.assert_array_equal(v, np.concatenate([pv, nv], 2))
    if y.size:
        np.testing.assert_allclose(y, reference(q, k, v, times), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("transposed_first", [False, True])
@pytest.mark.parametrize("b, t, p, times", [(1, 1, 256, 4), (2, 3, 40, 2), (1, 9, 0, 3), (3, 1, 17, 16)])
def test_known_sizes(b, t, p, times, transposed_first):
    check(attention((b, t, p), times, transposed_first), np.random.default_rng(t), b, t, p, times)


@pytest.mark.parametrize("transposed_first", [False, True])
def test_open_sizes(transposed_first):
    session = attention(OPEN, 4, transposed_first)
    rng = np.random.default_rng(0)
    for b, t, p in [(1, 1, 256), (2, 5, 31), (1, 40, 0), (2, 1, 1)]:
        check(session, rng, b, t, p, 4)


@pytest.mark.parametrize("batch", [1, "b"])
def test_some_sizes_are_open(batch):
    """Batches that are known of some operands only."""
    session = attention((batch, "t", "p"), 3, False)
    check(session, np.random.default_rng(1), 1, 2, 30, 3)
