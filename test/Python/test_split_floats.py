"""Products of f32 as sums of three bf16 in tile registers, where the processor has AMX, against numpy."""

import numpy as np
import pytest
from numerics import OPTIONS, constant, run
from onnx import helper


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
