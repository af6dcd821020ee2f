"""Products whose sums blocks share on a CUDA device, before kernels of rows that add them up. The device is libsdx-fakecuda.so, of
a compute capability without clusters, the reference numpy in f64."""

import numpy as np
import pytest
from device_models import run_and_count
from onnx import numpy_helper, parser

RANDOM = np.random.default_rng(31)
EPSILON = 1e-5


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("SARDONYX_FAKECUDA_SM", "80")


def normalize(x, gamma, beta):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, -1, keepdims=True) + EPSILON) * gamma + beta


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run(rows, depth, columns, text, results, precision):
    weights = {
        "w": RANDOM.standard_normal((depth, columns)) / np.sqrt(depth),
        "b": RANDOM.standard_normal(columns),
        "gamma": RANDOM.uniform(0.5, 2, columns),
        "beta": RANDOM.standard_normal(columns),
    }
    weights = {name: array.astype("f4") for name, array in weights.items()}
    outputs = ", ".join(f"float[{rows},{columns}] {name}" for name in results)
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m (float[{rows},{depth}] x, float[{rows},{columns}] r) => ({outputs}) {{ {text} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    feeds = {"x": RANDOM.standard_normal((rows, depth)).astype("f4"), "r": RANDOM.standard_normal((rows, columns)).astype("f4")}
    (given,), use = run_and_count(model, [feeds], precision=precision)
    exact = {name: array.astype(np.float64) for name, array in {**feeds, **weights}.items()}
    return given, exact, use["kernels"]


def compare(given, expected, precision):
    tolerance = {"f32": 1e-5, "tf32": 4e-3, "f16": 4e-3, "bf16": 3e-2}[precision]
    np.testing.assert_allclose(given, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("precision", ["f32", "tf32", "f16", "bf16"])
@pytest.mark.parametrize("rows, depth, columns", [(40, 1024, 96), (128, 2048, 64), (17, 768, 300), (33, 640, 7)])
@pytest.mark.parametrize("keeps", [False, True])
def test_residual_and_normalization(rows, depth, columns, precision, keeps):
    """With a bias and a residual, which a later operation may read, too."""
    text = f"p = MatMul(x, w)  q = Add(p, b)  s = Add(q, r)  n = LayerNormalization<epsilon = {EPSILON}>(s, gamma, beta)"
    given, exact, kernels = run(rows, depth, columns, text, ["n", "s"] if keeps else ["n"], precision)
    total = exact["x"] @ exact["w"] + exact["b"] + exact["r"]
    compare(given[0], normalize(total, exact["gamma"], exact["beta"]), precision)
    if keeps:
        compare(given[1], total, precision)
    # Operands of 16 bits are rounded first.
    assert kernels == (2 if "32" in precision else 3)


@pytest.mark.parametrize("rows, depth, columns", [(40, 1024, 96), (64, 4096, 1000)])
def test_softmax(rows, depth, columns):
    given, exact, kernels = run(rows, depth, columns, "p = MatMul(x, w)  q = Add(p, b)  y = Softmax(q)", ["y"], "f32")
    compare(given[0], softmax(exact["x"] @ exact["w"] + exact["b"]), "f32")
    assert kernels == 2


def test_a_reader_before_the_rows():
    """Rows of something that is made of the product's result have that between them."""
    text = "p = MatMul(x, w)  t = Transpose<perm = [1, 0]>(p)  u = MatMul(p, t)  s = ReduceSum<keepdims = 1>(u)  q = Mul(p, s)  y = Softmax(q)"
    given, exact, _ = run(40, 1024, 96, text, ["y"], "f32")
    p = exact["x"] @ exact["w"]
    compare(given[0], softmax(p * (p @ p.T).sum()), "f32")
