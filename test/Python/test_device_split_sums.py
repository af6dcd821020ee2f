"""Products whose sums blocks share on a CUDA device, before kernels of rows that add them up. The device is libsdx-fakecuda.so, of
a compute capability without clusters, the reference numpy in f64."""

import numpy as np
import pytest
from device_sums import EPSILON, compare, normalize, run_rows, softmax

RANDOM = np.random.default_rng(31)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("SARDONYX_FAKECUDA_SM", "80")


@pytest.mark.parametrize("precision", ["f32", "tf32", "f16", "bf16"])
@pytest.mark.parametrize("rows, depth, columns", [(40, 1024, 96), (128, 2048, 64), (17, 768, 300), (33, 640, 7)])
@pytest.mark.parametrize("keeps", [False, True])
def test_residual_and_normalization(rows, depth, columns, precision, keeps):
    """With a bias and a residual, which a later operation may read, too."""
    text = f"p = MatMul(x, w)  q = Add(p, b)  s = Add(q, r)  n = LayerNormalization<epsilon = {EPSILON}>(s, gamma, beta)"
    (given,), exact, kernels = run_rows(RANDOM, rows, depth, columns, text, ["n", "s"] if keeps else ["n"], precision)
    total = exact["x"] @ exact["w"] + exact["b"] + exact["r"]
    compare(given[0], normalize(total, exact["gamma"], exact["beta"]), precision)
    if keeps:
        compare(given[1], total, precision)
    # Operands of 16 bits are rounded first.
    assert kernels == (2 if "32" in precision else 3)


@pytest.mark.parametrize("rows, depth, columns", [(40, 1024, 96), (64, 4096, 1000)])
def test_softmax(rows, depth, columns):
    (given,), exact, kernels = run_rows(RANDOM, rows, depth, columns, "p = MatMul(x, w)  q = Add(p, b)  y = Softmax(q)", ["y"], "f32")
    compare(given[0], softmax(exact["x"] @ exact["w"] + exact["b"]), "f32")
    assert kernels == 2


def test_a_reader_before_the_rows():
    """Rows of something that is made of the product's result have that between them."""
    text = "p = MatMul(x, w)  t = Transpose<perm = [1, 0]>(p)  u = MatMul(p, t)  s = ReduceSum<keepdims = 1>(u)  q = Mul(p, s)  y = Softmax(q)"
    (given,), exact, _ = run_rows(RANDOM, 40, 1024, 96, text, ["y"], "f32")
    p = exact["x"] @ exact["w"]
    compare(given[0], softmax(p * (p @ p.T).sum()), "f32")
