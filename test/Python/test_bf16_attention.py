"""Attention whose operands may be rounded to bf16, against its definition in f64: the tests of f32, and what is particular to it."""

from pathlib import Path

import numpy as np
import pytest
import sardonyx
import test_attention
from test_attention import (  # noqa: F401
    attention,
    encoder,
    floats,
    heads,
    save,
    test_a_mask_of_columns,
    test_all_keys_within_bounds_are_hidden,
    test_an_encoder,
    test_bounds,
    test_heads_that_share_keys,
    test_open_sizes_may_be_small,
    test_open_sizes_of_projections,
    test_rows_without_a_number,
    test_slopes_and_caps,
    test_the_operator_with_a_cache,
    test_the_operator_with_a_mask,
)
from test_plan import tool


def run(model, feeds, plan=None):
    options = sardonyx.SessionOptions()
    options.cache = False
    options.precision = "bf16"
    if plan is not None:
        options.plan = plan
    return sardonyx.InferenceSession(str(model), options).run(None, feeds)[0]


def check(result, expected, type):
    """A score is off by some 2^-9 of its terms, an exponential by that share of the score, and by 2^-9 itself."""
    assert result.shape == expected.shape
    largest = np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=4e-2 * max(1, largest))


@pytest.fixture(autouse=True)
def rounded(monkeypatch):
    monkeypatch.setattr(test_attention, "run", run)
    monkeypatch.setattr(test_attention, "check", check)
    monkeypatch.setattr(test_attention, "is_one_kernel", lambda model: True)
    monkeypatch.setattr(test_attention, "plans", lambda model: ([None], 0))
    monkeypatch.setattr(test_attention, "tool", lambda *_: "")


def round_to_bf16(x):
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


# Of operands that are bf16 already what is left are the rounded probabilities: of sums of many 2^-9 of the largest value at most.
@pytest.mark.parametrize("queries, keys, depth", [(64, 256, 64), (1, 300, 64), (1100, 700, 64), (47, 333, 24), (9, 65, 80)])
def test_sums_are_of_f32(queries, keys, depth, tmp_path):
    text = f"""g (float[2, {queries}, {depth}] q, float[2, {depth}, {keys}] k, float[2, {keys}, {depth}] v) => (float[2, {queries}, {depth}] y) {{
        s = MatMul(q, k)
        p = Softmax <axis = -1> (s)
        y = MatMul(p, v)
    }}"""
    q, k, v = (round_to_bf16(floats("float", 2, *shape)) for shape in [(queries, depth), (depth, keys), (keys, depth)])
    y = run(save(text, tmp_path), {"q": q / 8, "k": k, "v": v})
    expected = attention(q[None] / 8, k.swapaxes(1, 2)[None], v[None], 1)[0]
    np.testing.assert_allclose(y, expected, rtol=0, atol=2**-8 * np.abs(v).max())


def test_it_is_rounded(tmp_path):
    """Numbers between two of bf16 become one of them where the processor multiplies these, whether kernels make them or callers."""
    model = save(encoder("float", 2, 64, b=1, s=256), tmp_path)
    x = {name: floats("float", 1, 256, 128) for name in "qkv"} | {"mask": np.zeros((1, 1, 1, 256), np.float32)}
    y = run(model, x)
    expected = attention(*(heads(x[name], 2) for name in "qkv"), 64**-0.5).swapaxes(1, 2).reshape(y.shape)
    error = np.abs(y - expected).max()
    assert error < 2e-2
    if "avx512_bf16" in Path("/proc/cpuinfo").read_text():
        assert error > 1e-5
        assert "#cpu.attention_plan<" in tool("plan", model, "--precision", "bf16")
