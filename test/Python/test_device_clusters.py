"""Products whose rows clusters of blocks reduce on a CUDA device of compute capability 9.0, which libsdx-fakecuda.so stands for,
against numpy in f64."""

import numpy as np
import pytest
from device_sums import EPSILON, compare, normalize, run_rows, softmax

RANDOM = np.random.default_rng(41)


@pytest.mark.parametrize(
    "rows, depth, columns, precision",
    [(128, 768, 768, "f16"), (40, 512, 96, "bf16"), (17, 300, 1000, "f16"), (33, 640, 200, "tf32"), (100, 96, 2040, "f16"), (32, 512, 640, "bf16")],
)  # fmt: skip
@pytest.mark.parametrize("keeps", [False, True])
def test_residual_and_normalization(rows, depth, columns, precision, keeps):
    """With a bias and a residual, which a later operation may read, too. Rows and columns are not always whole tiles."""
    text = f"p = MatMul(x, w)  q = Add(p, b)  s = Add(q, r)  n = LayerNormalization<epsilon = {EPSILON}>(s, gamma, beta)"
    (given,), exact, kernels = run_rows(RANDOM, rows, depth, columns, text, ["n", "s"] if keeps else ["n"], precision)
    total = exact["x"] @ exact["w"] + exact["b"] + exact["r"]
    compare(given[0], normalize(total, exact["gamma"], exact["beta"]), precision)
    if keeps:
        compare(given[1], total, precision)
    # Operands of 16 bits are rounded first.
    assert kernels == (1 if precision == "tf32" else 2)


def test_softmax_has_the_same_bits_each_time():
    given, exact, kernels = run_rows(RANDOM, 40, 1024, 96, "p = MatMul(x, w)  q = Add(p, b)  y = Softmax(q)", ["y"], "tf32", runs=2)
    compare(given[0][0], softmax(exact["x"] @ exact["w"] + exact["b"]), "tf32")
    np.testing.assert_array_equal(given[0][0], given[1][0])
    assert kernels == 1


@pytest.mark.parametrize(
    "text, compute",
    [
        # Of a row of the result there are several.
        ("p = MatMul(x, w)  q = Reshape(p, parts)  e = Softmax(q)  y = Reshape(e, all)", lambda p: softmax(p.reshape(40, 4, 24)).reshape(40, 96)),
        # A row of the softmax is a column of the result.
        ("p = MatMul(x, w)  q = Softmax<axis = 0>(p)  y = Add(q, p)", lambda p: softmax(p.T).T + p),
        # Elements of other rows are read, too.
        ("p = MatMul(x, w)  t = ReduceSum<keepdims = 1>(p, first)  q = Add(p, t)  y = Softmax(q)", lambda p: softmax(p + p.sum(0, keepdims=True))),
    ],
)  # fmt: skip
def test_other_reductions_have_kernels_of_their_own(text, compute):
    text = "parts = Constant<value_ints = [40, 4, 24]>()  all = Constant<value_ints = [40, 96]>()  first = Constant<value_ints = [0]>()  " + text
    (given,), exact, kernels = run_rows(RANDOM, 40, 512, 96, text, ["y"], "tf32")
    compare(given[0], compute(exact["x"] @ exact["w"]), "tf32")
    assert kernels > 1


@pytest.mark.parametrize("precision", ["tf32", "f16", "bf16"])
def test_a_deep_product_is_shared_by_more_blocks(precision):
    """Eight blocks would read all of the weights for a few rows."""
    text = f"p = MatMul(x, w)  n = LayerNormalization<epsilon = {EPSILON}>(p, gamma, beta)"
    (given,), exact, kernels = run_rows(RANDOM, 40, 8192, 96, text, ["n"], precision)
    compare(given[0], normalize(exact["x"] @ exact["w"], exact["gamma"], exact["beta"]), precision)
    assert kernels == (2 if precision == "tf32" else 3)
