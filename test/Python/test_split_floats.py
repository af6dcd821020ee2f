"""Products and convolutions of f32 as sums of bf16 in tile registers, where the processor has AMX, against numpy."""

import numpy as np
import pytest
from numerics import OPTIONS, constant, run
from onnx import helper
from references import convolve


@pytest.fixture(autouse=True)
def split_floats(monkeypatch):
    """Products go by parts, where the processor has AMX."""
    monkeypatch.setattr(OPTIONS, "split_floats", True)


SPECIAL = {
    "finite": lambda a, b: None,
    "infinite": lambda a, b: (a[..., 5, 7:8].fill(np.inf), a[..., -1, :1].fill(-np.inf)),
    "infinite weight": lambda a, b: b[-1:, -1].fill(np.inf),
    "nan": lambda a, b: a[..., 20, -1:].fill(np.nan),
    "tiny": lambda a, b: np.multiply(a, np.float32(1e-37), out=a),
    "tiny row": lambda a, b: np.multiply(a[..., 3, :], np.float32(1e-30), out=a[..., 3, :]),
    "tiny column": lambda a, b: np.multiply(b[:, -2], np.float32(1e-36), out=b[:, -2]),
    "zero row": lambda a, b: a[..., 1, :].fill(0),
}


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("m, k, n", [(32, 32, 256), (50, 40, 300), (131, 768, 257), (300, 3000, 260)])
@pytest.mark.parametrize("kind", ["weights", "batched", "open"])
def test_products_by_parts(kind, m, k, n, special):
    rng = np.random.default_rng(k)
    batch = [2] if kind == "batched" else []
    a = rng.standard_normal((*batch, m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    SPECIAL[special](a, b)
    c = rng.standard_normal(n).astype(np.float32) * np.float32(1e-36 if "tiny" in special else 1)
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"]), helper.make_node("Add", ["t", "c"], ["y"])]
    constants, feeds, shapes = [constant("c", c, c.dtype)], {"a": a}, {"a": a.shape}
    if kind == "open":
        feeds, shapes = {"a": a, "b": b}, {}
    else:
        constants.append(constant("b", b, b.dtype))
    (y,) = run(nodes, feeds, ["y"], shapes, 21, constants)
    with np.errstate(invalid="ignore"):
        x, w = a.astype(np.float64), b.astype(np.float64)
        expected, scale = x @ w + c, np.abs(x) @ np.abs(w) + np.abs(c)
    rest = np.isfinite(expected)
    np.testing.assert_array_equal(y[~rest], expected[~rest].astype(np.float32))
    assert (np.abs(y[rest] - expected[rest]) <= 2e-6 * scale[rest] + 1e-44).all()


@pytest.mark.parametrize("m, k, n", [(64, 0, 300), (0, 64, 300), (64, 64, 0), (1, 64, 300), (33, 1, 300)])
def test_small_products_of_open_sizes(m, k, n):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    (y,) = run([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    np.testing.assert_allclose(y, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


SPECIAL_PICTURES = {
    "finite": lambda x, w: None,
    "infinite": lambda x, w: x[:, 3, ..., -1:].fill(np.inf),
    "infinite weight": lambda x, w: w[-1:, 5].fill(-np.inf),
    "nan": lambda x, w: x[:, -1, ..., 0].fill(np.nan),
    "large": lambda x, w: np.multiply(w[3], np.float32(2.0**112), out=w[3]),
    "tiny": lambda x, w: np.multiply(x, np.float32(1e-30), out=x),
    "tiny weights": lambda x, w: np.multiply(w[7], np.float32(1e-30), out=w[7]),
    "tiny place": lambda x, w: np.multiply(x[..., -1], np.float32(1e-37), out=x[..., -1]),
    "zeros": lambda x, w: (x[..., 1:].fill(0), w[:5].fill(0)),
}

CONVOLUTIONS = {
    "plain": ((2, 64, 14, 14), (96, 64, 1, 1), {}),
    "positions for no register": ((1, 256, 7, 7), (160, 256, 1, 1), {}),
    "half a panel": ((1, 96, 4, 4), (64, 96, 1, 1), {}),
    "channels for no step": ((1, 78, 11, 13), (130, 78, 1, 1), {}),
    "strides": ((1, 64, 30, 30), (70, 64, 3, 4), {"strides": [2, 2]}),
    "pads": ((1, 64, 9, 20), (64, 64, 3, 5), {"pads": [2, 0, 1, 3], "dilations": [1, 2]}),
    "groups": ((1, 192, 12, 12), (288, 64, 1, 1), {"groups": 3}),
    "ranges of channels": ((1, 1024, 8, 14), (72, 1024, 3, 3), {"strides": [1, 2]}),
    "a line": ((1, 64, 300), (64, 64, 4), {"pads": [3, 0]}),
    "a volume": ((1, 64, 5, 6, 7), (64, 64, 2, 3, 1), {}),
}


@pytest.mark.parametrize("special", SPECIAL_PICTURES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_by_parts(monkeypatch, name, special):
    monkeypatch.setattr(OPTIONS, "numerics", "fast")
    pictures, filters, attributes = CONVOLUTIONS[name]
    rng = np.random.default_rng(len(name))
    x, w = rng.standard_normal(pictures).astype(np.float32), rng.standard_normal(filters).astype(np.float32)
    SPECIAL_PICTURES[special](x, w)
    bias = np.float32(1e-36 if "tiny" in special else 1) * rng.standard_normal(filters[0]).astype(np.float32)
    pads = [(taps - 1) // 2 for taps in filters[2:]] * 2
    attributes = {"pads": pads, **attributes}
    names = {"groups": "group"}
    node = helper.make_node("Conv", ["x", "w", "b"], ["c"], **{names.get(k, k): v for k, v in attributes.items()})
    constants = [constant("w", w, w.dtype), constant("b", bias, bias.dtype)]
    (y,) = run([node, helper.make_node("Neg", ["c"], ["y"])], {"x": x}, ["y"], {"x": x.shape}, 21, constants)
    column = bias.astype(np.float64).reshape(-1, *[1] * (x.ndim - 2))
    with np.errstate(invalid="ignore"):
        expected = -(convolve(x, w, **attributes) + column)
        scale = convolve(np.abs(x), np.abs(w), **attributes) + np.abs(column)
    rest = np.isfinite(expected) & (np.abs(expected) < np.finfo(np.float32).max)
    np.testing.assert_array_equal(y[~rest], expected[~rest].astype(np.float32))
    assert (np.abs(y[rest] - expected[rest]) <= 1e-5 * scale[rest] + 1e-44).all()
