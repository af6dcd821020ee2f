"""Reductions of rows of all lengths on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx.parser
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(16)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("type", ["float", "float16"])
@pytest.mark.parametrize("rows", ["7", "n"])
def test_lengths(type, rows):
    """Rows of a thread, of parts of a warp, of warps and blocks, where the number of rows fills no block."""
    dtype = {"float": "f4", "float16": "f2"}[type]
    lengths = [1, 2, 3, 8, 12, 15, 16, 33, 64, 100, 130, 1000, 1030]
    feeds = {f"x{length}": RANDOM.standard_normal((7 if rows == "7" else 261 // length + 1, length)).astype(dtype) for length in lengths}
    inputs = ", ".join(f"{type}[{rows if rows == '7' else f'n{length}'}, {length}] x{length}" for length in lengths)
    outputs = ", ".join(f"{type}[a{length}, {length}] y{length}, {type}[b{length}] z{length}" for length in lengths)
    nodes = "\n".join(f"y{length} = Softmax (x{length})\n z{length} = ReduceMax <keepdims = 0> (x{length}, one)" for length in lengths)
    text = f'<ir_version: 10, opset_import: ["" : 20]>\ng ({inputs}) => ({outputs}) <int64[1] one = {{1}}> {{{nodes}}}'
    (results,) = run_on_device(onnx.parser.parse_model(text), [feeds])
    for x, y, z in zip(feeds.values(), results[::2], results[1::2], strict=True):
        np.testing.assert_allclose(y, softmax(x.astype("f8")), rtol=0, atol=2e-7 if type == "float" else 1e-3)
        np.testing.assert_array_equal(z, x.max(1))


def test_several_dimensions():
    """Rows of 2 x 3 elements, and a normalisation of rows of 6."""
    x, w, b = (RANDOM.standard_normal(shape).astype("f4") for shape in ((5, 4, 2, 3), (6,), (6,)))
    text = (
        '<ir_version: 10, opset_import: ["" : 20]>\ng (float[5, 4, 2, 3] x, float[n, 6] v, float[6] w, float[6] b) => (float[5, 4] y, float[n, 6] z) '
        "<int64[2] axes = {2, 3}> {y = ReduceSum <keepdims = 0> (x, axes)\n z = LayerNormalization (v, w, b)}"
    )
    v = x.reshape(20, 6)
    ((y, z),) = run_on_device(onnx.parser.parse_model(text), [{"x": x, "v": v, "w": w, "b": b}])
    np.testing.assert_allclose(y, x.sum((2, 3)), rtol=0, atol=1e-5)
    exact = v.astype("f8")
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(z, exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_row_behind_a_product(rows):
    """Rows that a product makes and a normalisation divides, one of them as well as several."""
    x, w = RANDOM.standard_normal((1, rows, 24)).astype("f4"), RANDOM.standard_normal((24, 64)).astype("f4")
    text = (
        f'<ir_version: 10, opset_import: ["" : 20]>\ng (float[1, {rows}, 24] x, float[24, 64] w) => (float[1, {rows}, 64] y) <float e = {{1e-5}}, int64[1] axis = {{-1}}> '
        "{p = MatMul (x, w)\n s = Mul (p, p)\n m = ReduceMean (s, axis)\n a = Add (m, e)\n r = Sqrt (a)\n y = Div (p, r)}"
    )
    ((y,),) = run_on_device(onnx.parser.parse_model(text), [{"x": x, "w": w}])
    p = x.astype("f8") @ w
    np.testing.assert_allclose(y, p / np.sqrt((p * p).mean(-1, keepdims=True) + 1e-5), rtol=0, atol=1e-5)
