"""Products of one to four rows on a device, which read the right-hand side without tiles."""

import numpy as np
import pytest
from device_models import run_on_device
from onnx import TensorProto, numpy_helper, parser

TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": None}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("rows, depth, columns", [(1, 96, 256), (2, 7, 40), (3, 300, 33), (4, 1, 8), (1, 0, 16), (4, 1030, 5), (1, 513, 4352)])
def test_product(kind, rows, depth, columns):
    rng = np.random.default_rng(rows + depth + columns)
    w, c = rng.standard_normal((depth, columns)).astype(np.float32), rng.standard_normal(columns).astype(np.float32)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    # Numbers that all types have.
    w, c, x = (np.round(values * 8).astype(np.float32) / 8 for values in (w, c, x))
    casts = f"a = Cast<to = {TensorProto.DataType.Value(kind.upper())}>(x)  b = Cast<to = {TensorProto.DataType.Value(kind.upper())}>(w)"
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[{rows},{depth}] x) => (float[{rows},{columns}] y) {{ {casts} '
        "p = MatMul(a, b)  q = Cast<to = 1>(p)  r = Add(q, c)  y = Relu(r) }"
    )
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(c, "c")])
    ((y,),) = run_on_device(model, [{"x": x}])
    exact = x.astype(np.float64) @ w.astype(np.float64)
    tolerance = {"float": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}[kind]
    np.testing.assert_allclose(y, np.maximum(exact + c, 0), rtol=0, atol=tolerance * max(1, np.abs(exact).max(initial=0)))
