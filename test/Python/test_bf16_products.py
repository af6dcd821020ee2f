"""Products whose operands may be rounded to bf16, against sums of the rounded operands in f64."""

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
import sardonyx


# Rows that fill no tile register are among the last sixteen; others, and an odd depth, are added on vectors.
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 15, 16, 17, 31, 33, 47, 77, 197])
@pytest.mark.parametrize("depth, columns", [(64, 96), (107, 50), (768, 256)])
def test_rows(rows, depth, columns, is_open, tmp_path):
    rng = np.random.default_rng(rows)
    x, r = (rng.standard_normal((rows, size)).astype(np.float32) for size in (depth, columns))
    w = rng.standard_normal((depth, columns)).astype(np.float32)
    m = "m" if is_open else rows
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[{m}, {depth}] x, float[{m}, {columns}] r) => (float[{m}, {columns}] y) {{
            p = MatMul(x, w)
            y = Add(p, r)
        }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    options = sardonyx.SessionOptions()
    options.cache = False
    options.precision = "bf16"
    y = sardonyx.InferenceSession(str(tmp_path / "model.onnx"), options).run(None, {"x": x, "r": r})[0]
    short = [a.astype(ml_dtypes.bfloat16).astype(np.float64) for a in (x, w)]
    exact, rounded = x.astype(np.float64) @ w + r, short[0] @ short[1] + r
    scale = np.abs(x) @ np.abs(w) + 1
    # Where nothing multiplies bf16 they are not rounded.
    assert min(np.abs((y - z) / scale).max() for z in (exact, rounded)) < 2e-6
