"""Kernels of few rows on a CUDA device that compute more than a product: the two products of a gated unit, and normalised rows. The
device is libsdx-fakecuda.so, the reference numpy in f64."""

import numpy as np
import pytest
from device_models import run_and_count
from onnx import TensorProto, helper, numpy_helper, parser
from test_device_packed_weights import pack

RANDOM = np.random.default_rng(23)
EPSILON = 1e-5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalize(x, gamma, beta=None):
    """A LayerNormalization, or without `beta` an RMSNormalization, in f64."""
    x = x.astype(np.float64)
    if beta is None:
        return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + EPSILON) * gamma
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, -1, keepdims=True) + EPSILON) * gamma + beta


RMS = f"""sq = Mul(x, x)  mean = ReduceMean<axes = [-1]>(sq)  e = Add(mean, epsilon)  r = Sqrt(e)  i = Div(one, r)  s = Mul(x, i)  n = Mul(s, gamma)"""
LAYER = f"n = LayerNormalization<epsilon = {EPSILON}>(x, gamma, beta)"


def compare(y, expected, tolerance):
    np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1e-3))


@pytest.mark.parametrize("norm", ["rms", "layer", "none"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows, depth, columns", [(1, 64, 96), (2, 300, 40), (3, 7, 5), (4, 1030, 33), (1, 2048, 24)])
@pytest.mark.parametrize("precision", ["f32", "f16", "bf16"])
def test_gated_unit(norm, transposed, rows, depth, columns, precision):
    """silu(n v) * (n w + c), where n are the rows or what normalises them: one kernel, but for the rows' rounding."""
    shape = (columns, depth) if transposed else (depth, columns)
    weights = {name: (RANDOM.standard_normal(shape) / np.sqrt(depth)).astype("f4") for name in "vw"}
    weights |= {"gamma": RANDOM.uniform(0.5, 2, depth).astype("f4"), "beta": RANDOM.standard_normal(depth).astype("f4"), "c": RANDOM.standard_normal(columns).astype("f4")}
    before = {"rms": RMS, "layer": LAYER, "none": "n = Identity(x)"}[norm]
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[{rows},{depth}] x) => (float[{rows},{columns}] y) <float epsilon = {{{EPSILON}}}, float one = {{1}}> {{ {before}'
        f"  g = Gemm<transB = {int(transposed)}>(n, v)  h = Sigmoid(g)  k = Mul(g, h)  u = Gemm<transB = {int(transposed)}>(n, w, c)  y = Mul(k, u) }}"
    )
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    x = (RANDOM.standard_normal((rows, depth)) + 1).astype("f4")
    ((y,),), use = run_and_count(model, [{"x": x}], precision=precision)
    n = x if norm == "none" else normalize(x, weights["gamma"], weights["beta"] if norm == "layer" else None)
    product = lambda w: n.astype(np.float64) @ (weights[w].T if transposed else weights[w])
    gate = product("v")
    compare(y, gate * sigmoid(gate) * (product("w") + weights["c"]), {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}[precision])
    assert use["kernels"] <= (2 if norm == "none" and precision != "f32" else 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("bits, block, columns, depth", [(4, 32, 96, 256), (8, 16, 20, 100), (2, 16, 33, 500)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_packed_weights(rows, bits, block, columns, depth, dtype):
    """The same by weights of a few bits, and what the rows and the gate are read by besides."""
    blocks, kind = -(-depth // block), TensorProto.FLOAT if dtype == np.float32 else TensorProto.FLOAT16
    tensors, exact = {"gamma": RANDOM.uniform(0.5, 2, depth).astype(dtype), "e": np.array(EPSILON, dtype), "one": np.array(1, dtype)}, {}
    for name in "vw":
        numbers = RANDOM.integers(0, 2**bits, (columns, blocks, block), dtype=np.uint8)
        scales = (RANDOM.standard_normal((columns, blocks)) * 1.6 / 2**bits).astype(dtype)  # within f16
        tensors |= {name: pack(numbers, bits), f"{name}s": scales.reshape(-1)}
        exact[name] = ((numbers - 2.0 ** (bits - 1)) * scales.astype(np.float64)[..., None]).reshape(columns, -1)[:, :depth].T
    form = {"domain": "com.microsoft", "N": columns, "K": depth, "bits": bits, "block_size": block}
    nodes = [
        helper.make_node("SimplifiedLayerNormalization", ["x", "gamma"], ["n"], epsilon=EPSILON, axis=-1),
        helper.make_node("MatMulNBits", ["n", "v", "vs"], ["g"], **form),
        helper.make_node("Sigmoid", ["g"], ["h"]),
        helper.make_node("Mul", ["g", "h"], ["k"]),
        helper.make_node("MatMulNBits", ["n", "w", "ws"], ["u"], **form),
        helper.make_node("Mul", ["k", "u"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, [rows, depth])],
        [helper.make_tensor_value_info("y", kind, [rows, columns])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    x = RANDOM.standard_normal((rows, depth)).astype(dtype)
    ((y,),), use = run_and_count(model, [{"x": x}])
    n = normalize(x, tensors["gamma"].astype(np.float64))
    gate = n @ exact["v"]
    compare(y, gate * sigmoid(gate) * (n @ exact["w"]), 1e-5 if dtype == np.float32 else 8e-3)
    assert use["kernels"] == 1


def test_rows_that_others_read():
    """A result of the model, and a product of other rows, keep the kernels of what they read."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[2,32] x, float[2,32] z) => (float[2,32] n, float[2,24] y) {{ {LAYER}'
        "  g = MatMul(n, v)  u = MatMul(z, w)  y = Mul(g, u) }"
    )
    weights = {"v": RANDOM.standard_normal((32, 24)), "w": RANDOM.standard_normal((32, 24)), "gamma": RANDOM.uniform(0.5, 2, 32), "beta": RANDOM.standard_normal(32)}
    weights = {name: array.astype("f4") for name, array in weights.items()}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    x, z = RANDOM.standard_normal((2, 2, 32)).astype("f4")
    ((n, y),), use = run_and_count(model, [{"x": x, "z": z}])
    rows = normalize(x, weights["gamma"], weights["beta"])
    compare(n, rows, 1e-5)
    compare(y, (rows @ weights["v"]) * (z.astype(np.float64) @ weights["w"]), 1e-5)
    assert use["kernels"] == 3
