"""Models of a node or two on a CUDA device, which libsdx-fakecuda.so stands for, against ONNX's reference."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx.parser
import onnx.reference
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
RANDOM = np.random.default_rng(3)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(low, high, *shape):
    return RANDOM.integers(low, high, shape)


def run(text, inputs, folder):
    """What the tool gives for a model on the device: its outputs, or what it says."""
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + text)
    onnx.save(model, folder / "model.onnx")
    command = [BUILD / "bin" / "sardonyx", "run", folder / "model.onnx", "--device", "cuda", "-q", "--no-cache", "-o", folder]
    for name, array in inputs.items():
        np.save(folder / f"in_{name}.npy", array)
        command += ["-i", f"{name}={folder / f'in_{name}.npy'}"]
    driver = str(BUILD / "lib" / "libsdx-fakecuda.so")
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SARDONYX_CUDA_DRIVER": driver})
    if done.returncode:
        return model, done.stderr
    return model, [np.load(folder / f"{output.name}.npy") for output in model.graph.output]


MODELS = {
    # More kernels than a thread compiles at a time, some with memory that blocks share.
    "many_kernels": (
        "g (float[n, 64] x, float[64, 48] a, float[48, 96] b, float[96, 33] c) => (float[n, 33] y, float[n, 33] z, float[33, n] t) {"
        "one = Constant <value_int = 1> ()\n p = MatMul (x, a)\n s = Softmax (p)\n q = MatMul (s, b)\n r = Softmax <axis = 0> (q)\n"
        "y = MatMul (r, c)\n z = CumSum (y, one)\n t = Transpose (y)}",
        {"x": floats(5, 64), "a": floats(64, 48), "b": floats(48, 96), "c": floats(96, 33)},
    ),
    "conv": (
        "g (float[n, 6, h, w] x, float[8, 3, 3, 2] k, float[8] b) => (float[n, 8, p, q] y) {"
        "y = Conv <group = 2, strides = [2, 1], pads = [1, 0, 2, 1], dilations = [1, 2]> (x, k, b)}",
        {"x": floats(2, 6, 11, 9), "k": floats(8, 3, 3, 2), "b": floats(8)},
    ),
    "conv_of_open_filters": ("g (float[n, c, h, w] x, float[o, c, 3, 2] k) => (float[n, o, p, q] y) {y = Conv <kernel_shape = [3, 2]> (x, k)}", {"x": floats(2, 5, 9, 8), "k": floats(13, 5, 3, 2)}),
    "depthwise": (
        "g (float[1, 5, 7, h] x, float[5, 1, 3, 3] k) => (float[1, 5, p, q] y) {c = Conv <group = 5, pads = [1, 1, 1, 1]> (x, k)\n y = Relu(c)}",
        {"x": floats(1, 5, 7, 8), "k": floats(5, 1, 3, 3)},
    ),
    "conv_1d_f64": ("g (double[n, 2, l] x, double[3, 2, 4] k) => (double[n, 3, m] y) {y = Conv(x, k)}", {"x": floats(2, 2, 20).astype("f8"), "k": floats(3, 2, 4).astype("f8")}),
    "conv_transpose": (
        "g (float[1, 4, h, w] x, float[4, 3, 3, 3] k) => (float[1, 3, p, q] y) {y = ConvTranspose <strides = [2, 2], pads = [1, 1, 0, 0]> (x, k)}",
        {"x": floats(1, 4, 5, 6), "k": floats(4, 3, 3, 3)},
    ),
    "max_pool": (
        "g (float[n, 3, h, w] x) => (float[n, 3, p, q] y, int64[n, 3, p, q] i) {y, i = MaxPool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 1, 1, 0]> (x)}",
        {"x": floats(2, 3, 9, 10)},
    ),
    "average_pool": (
        "g (float[n, 3, h, w] x) => (float[n, 3, p, q] y) {y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1> (x)}",
        {"x": floats(2, 3, 8, 10)},
    ),
    "matmul": ("g (float[b, m, k] x, float[b, k, n] w) => (float[b, m, n] y) {y = MatMul(x, w)}", {"x": floats(3, 33, 17), "w": floats(3, 17, 40)}),
    "matmul_of_nothing": ("g (float[m, k] x, float[k, n] w) => (float[m, n] y) {y = MatMul(x, w)}", {"x": floats(4, 0), "w": floats(0, 5)}),
    "gemm": (
        "g (float[k, m] x, float[n, k] w, float[n] c) => (float[m, n] y) {y = Gemm <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (x, w, c)}",
        {"x": floats(19, 6), "w": floats(11, 19), "c": floats(11)},
    ),
    "integer_product": ("g (uint8[m, k] x, int8[k, n] w) => (int32[m, n] y) {y = MatMulInteger(x, w)}", {"x": integers(0, 256, 7, 30).astype("u1"), "w": integers(-128, 128, 30, 9).astype("i1")}),
    "einsum": ("g (float[a, b, c] x, float[c, d, b] w) => (float[d, a] y) {y = Einsum <equation = \"abc,cdb->da\"> (x, w)}", {"x": floats(3, 4, 5), "w": floats(5, 6, 4)}),
    "softmax": ("g (float[n, c, h] x) => (float[n, c, h] y) {y = Softmax <axis = 1> (x)}", {"x": floats(3, 70, 5)}),
    "log_softmax": ("g (double[n, c] x) => (double[n, c] y) {y = LogSoftmax <axis = -1> (x)}", {"x": floats(9, 300).astype("f8")}),
    "layer_normalization": ("g (float[n, c] x, float[c] s, float[c] b) => (float[n, c] y) {y = LayerNormalization(x, s, b)}", {"x": floats(6, 100), "s": floats(100), "b": floats(100)}),
    "arg_max": ("g (float[n, c] x) => (int64[n] y, int64[1, c] z) {y = ArgMax <axis = 1, keepdims = 0> (x)\n z = ArgMin <axis = 0, select_last_index = 1> (x)}", {"x": integers(0, 5, 20, 31).astype("f4")}),
    "reductions": (
        "g (float[n, c, h] x) => (float[n, 1, h] a, float[c] b, float[1, 1, 1] d, float[n, c, 1] e)"
        "<int64[1] one = {1}, int64[2] two = {0, 2}, int64[1] last = {2}> {a = ReduceProd(x, one)\n b = ReduceMax <keepdims = 0> (x, two)\n d = ReduceL2(x)\n e = ReduceLogSumExp(x, last)}",
        {"x": floats(4, 9, 13)},
    ),
    "mean_of_integers": ("g (int32[n, c] x) => (int32[n, 1] y) <int64[1] a = {1}> {y = ReduceSum(x, a)}", {"x": integers(-99, 99, 5, 400).astype("i4")}),
    "transpose": ("g (int8[a, b, c, d] x) => (int8[c, a, d, b] y) {y = Transpose <perm = [2, 0, 3, 1]> (x)}", {"x": integers(-9, 9, 3, 5, 4, 6).astype("i1")}),
    "gather": ("g (float[n, c] x, int64[i, j] at) => (float[n, i, j] y) {y = Gather <axis = 1> (x, at)}", {"x": floats(3, 8), "at": integers(-8, 8, 2, 5)}),
    "gather_elements": ("g (float[n, c] x, int64[m, c] at) => (float[m, c] y) {y = GatherElements <axis = 0> (x, at)}", {"x": floats(7, 8), "at": integers(-7, 7, 4, 8)}),
    "gather_nd": ("g (float[n, c, d] x, int64[m, 2] at) => (float[m, d] y) {y = GatherND(x, at)}", {"x": floats(4, 5, 3), "at": integers(0, 4, 9, 2)}),
    "scatter_elements": (
        "g (float[n, c] x, int64[n, m] at, float[n, m] v) => (float[n, c] y) {y = ScatterElements <axis = 1, reduction = \"add\"> (x, at, v)}",
        {"x": floats(5, 8), "at": integers(-8, 8, 5, 20), "v": floats(5, 20)},
    ),
    "scatter_nd": ("g (float[n, c] x, int64[m, 1] at, float[m, c] v) => (float[n, c] y) {y = ScatterND(x, at, v)}", {"x": floats(9, 4), "at": np.array([[3], [0], [8]]), "v": floats(3, 4)}),
    "top_k": ("g (float[n, c] x, int64[1] k) => (float[n, m] v, int64[n, m] i) {v, i = TopK <axis = -1> (x, k)}", {"x": floats(6, 50), "k": np.array([7])}),
    "cumulative_sum": ("g (double[n, c] x, int64 a) => (double[n, c] y) {y = CumSum <exclusive = 1, reverse = 1> (x, a)}", {"x": floats(5, 40).astype("f8"), "a": np.array(1)}),
    "non_zero": ("g (float[n, c] x) => (int64[2, m] y) {y = NonZero(x)}", {"x": integers(0, 2, 9, 11).astype("f4")}),
    "compress": ("g (float[n, c] x, bool[m] b) => (float[p, c] y) {y = Compress <axis = 0> (x, b)}", {"x": floats(6, 3), "b": np.array([1, 0, 1, 1, 0], bool)}),
    "unique": ("g (int64[n] x) => (int64[m] y, int64[m] i, int64[n] j, int64[m] c) {y, i, j, c = Unique(x)}", {"x": integers(0, 9, 60)}),
    "slice_pad_concat": (
        "g (float[n, c] x) => (float[p, q] y) <int64[2] s = {1, -1}, int64[2] e = {1000, -1000}, int64[2] a = {0, 1}, int64[2] d = {2, -3}, int64[4] p = {1, 0, 0, 2}>"
        "{z = Slice(x, s, e, a, d)\n w = Pad(z, p)\n y = Concat <axis = 0> (w, w)}",
        {"x": floats(8, 10)},
    ),
    "resize": ("g (float[1, 2, h, w] x) => (float[1, 2, p, q] y) <float[4] s = {1.0, 1.0, 2.5, 0.6}> {y = Resize <mode = \"linear\"> (x, , s)}", {"x": floats(1, 2, 6, 10)}),
    "where_and_casts": (
        "g (float[n, c] x, float16[c] h) => (int8[n, c] y, bool[n, c] b) {w = Cast <to = 1> (h)\n b = Less(x, w)\n z = Where(b, x, w)\n t = Mul(z, z)\n y = Cast <to = 3> (t)}",
        {"x": floats(6, 7), "h": floats(7).astype("f2")},
    ),
    "functions": (
        "g (float[n] x) => (float[n] y, double[n] z) {a = Sin(x)\n b = Erf(a)\n c = Tanh(b)\n d = Exp(c)\n y = Pow(d, x)\n e = Cast <to = 11> (x)\n f = Cos(e)\n z = Atan(f)}",
        {"x": floats(300)},
    ),
    "one_hot": ("g (int64[n] x, int64 d, float[2] v) => (float[n, m] y) {y = OneHot(x, d, v)}", {"x": integers(-5, 5, 9), "d": np.array(5), "v": np.array([0.5, 2], "f4")}),
    "lstm": (
        "g (float[s, b, 4] x, float[1, 12, 4] w, float[1, 12, 3] r) => (float[s, 1, b, 3] y) {y = LSTM <hidden_size = 3> (x, w, r)}",
        {"x": floats(5, 2, 4), "w": floats(1, 12, 4), "r": floats(1, 12, 3)},
    ),
    "nothing": ("g (float[n, c] x) => (float[n] y, float[n, c] z) <int64[1] a = {1}> {y = ReduceSum <keepdims = 0> (x, a)\n z = Exp(x)}", {"x": floats(0, 3)}),
}


@pytest.mark.parametrize("name", MODELS)
def test_open_sizes(name, tmp_path):
    text, inputs = MODELS[name]
    model, results = run(text, inputs, tmp_path)
    assert isinstance(results, list), results
    for result, expected in zip(results, onnx.reference.ReferenceEvaluator(model).run(None, inputs), strict=True):
        assert result.dtype == expected.dtype and result.shape == expected.shape
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(result, expected)


def test_an_index_out_of_range_fails_the_run(tmp_path):
    text, inputs = MODELS["gather"]
    inputs = {**inputs, "at": np.array([[3, -9]])}
    _, said = run(text, inputs, tmp_path)
    assert "(Gather): index -9 is out of range for a dimension of size 8" in said
