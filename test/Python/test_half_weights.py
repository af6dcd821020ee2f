"""Products by weights of f16, and by weights that may be rounded to f16, against sums in f64."""

import subprocess

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import sardonyx

CPUS = ["", "skylake-avx512", "haswell", "x86-64"]


def run(text, weights, feeds, cpu, precision="f32"):
    model = onnx.parser.parse_model(text)
    for name, value in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    options = sardonyx.SessionOptions()
    options.cpu, options.precision = cpu, precision
    return sardonyx.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("rows", [1, 2, 5, 8, 9, 33, 150])
@pytest.mark.parametrize("depth, columns", [(64, 96), (107, 50), (1, 33)])
def test_rounded(depth, columns, rows, is_open, cpu):
    """With precision = "f16" weights are rounded, or nothing is; sums are those of f32."""
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    w = rng.standard_normal((depth, columns)).astype(np.float32)
    m = "m" if is_open else rows
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[{m}, {depth}] x) => (float[{m}, {columns}] y) {{ y = MatMul(x, w) }}"""
    y = run(text, {"w": w}, {"x": x}, cpu, "f16")
    wide = x.astype(np.float64)
    sums = [wide @ w, wide @ w.astype(np.float16).astype(np.float64)]
    scale = np.abs(x) @ np.abs(w) + 1
    assert min(np.abs((y - z) / scale).max() for z in sums) < 2e-6


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "transposed"])
@pytest.mark.parametrize("rows", [1, 8, 70])
def test_model_of_halves(rows, op, cpu):
    """Every f16 there is, subnormal ones among them, is what it is in f32."""
    rng = np.random.default_rng(rows)
    bits = rng.integers(0, 0x7C00, (96, 64)) | (rng.integers(0, 2, (96, 64)) << 15)
    w = bits.astype(np.uint16).view(np.float16)
    w[:, :32] *= np.float16(2.0**-10)
    x = (rng.standard_normal((rows, 96)) * 2.0**-8).astype(np.float16)
    body = {"MatMul": "y = MatMul(x, w)", "Gemm": "y = Gemm(x, w)", "transposed": "y = Gemm <transB = 1> (x, w)"}[op]
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float16[{rows}, 96] x) => (float[{rows}, 64] z) {{
            {body}
            z = Cast <to = 1> (y)
        }}"""
    weights = np.ascontiguousarray(w.T) if op == "transposed" else w
    y = run(text, {"w": weights}, {"x": x}, cpu)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    # Results are f16 before they are cast.
    near = np.abs(exact) * 2.0**-11 + np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)) * 2e-6 + 2.0**-25
    assert np.all(np.abs(y - exact) <= near)


def test_memory(tool, tmp_path):
    """Weights of f16 take no more memory than in the file."""
    w = np.random.default_rng(0).standard_normal((512, 1024)).astype(np.float16)
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float16[1, 512] x) => (float16[1, 1024] y) { y = MatMul(x, w) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    done = subprocess.run(
        [tool, "compile", tmp_path / "model.onnx", "--to", "kernels", "--cpu", "skylake-avx512"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "memref<32x512x32xf16>" in done.stdout
    assert "512x32xf32" not in done.stdout and "512x1024xf32" not in done.stdout
