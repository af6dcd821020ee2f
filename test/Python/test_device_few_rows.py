"""Products of one to four rows on a device, which read the right-hand side without tiles, where their number is open as well."""

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


def product(x, w, transposed):
    return np.matmul(x.astype(np.float64), (np.swapaxes(w, -1, -2) if transposed else w).astype(np.float64))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("depth, columns", [(96, 256), (7, 40), (300, 33), (1024, 520), (1, 8), (20, 5)])
def test_open_number_of_rows(kind, transposed, depth, columns):
    """The host chooses among kernels for one row, for a few, and for tiles."""
    rng = np.random.default_rng(depth + columns)
    w = np.round(rng.standard_normal((columns, depth) if transposed else (depth, columns)) * 8).astype(np.float32) / 8
    c = rng.standard_normal(columns).astype(np.float32)
    number = TensorProto.DataType.Value(kind.upper())
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[n,{depth}] x) => (float[n,{columns}] y) {{ a = Cast<to = {number}>(x)  b = Cast<to = {number}>(w) '
        f"p = Gemm<transB = {int(transposed)}>(a, b)  q = Cast<to = 1>(p)  r = Add(q, c)  y = Relu(r) }}"
    )
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(c, "c")])
    feeds = [np.round(rng.standard_normal((rows, depth)) * 8).astype(np.float32) / 8 for rows in (1, 3, 4, 0, 2, 9)]
    tolerance = {"float": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}[kind]
    for x, (y,) in zip(feeds, run_on_device(model, [{"x": x} for x in feeds]), strict=True):
        exact = product(x, w, transposed)
        np.testing.assert_allclose(y, np.maximum(exact + c, 0), rtol=0, atol=tolerance * max(1, np.abs(exact).max(initial=0)))


@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [1, 3, None])
@pytest.mark.parametrize("is_shared", [False, True])
def test_batches(kind, transposed, rows, is_shared):
    rng = np.random.default_rng(17)
    batches, depth, columns = 5, 72, 44
    right = (columns, depth) if transposed else (depth, columns)
    right = right if is_shared else (batches, *right)
    numbers = [np.round(rng.standard_normal(shape) * 8).astype(TYPES[kind]) / TYPES[kind](8) for shape in ((batches, rows or 2, depth), right)]
    turn = f"t = Transpose<perm = [{'1, 0' if is_shared else '0, 2, 1'}]>(w)" if transposed else "t = Identity(w)"
    sizes = ", ".join(str(size) for size in right)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m ({kind}[{batches},{rows or "m"},{depth}] x, {kind}[{sizes}] w) => (float[a,b,c] y) '
        f"{{ {turn}  p = MatMul(x, t)  y = Cast<to = 1>(p) }}"
    )
    ((y,),) = run_on_device(model, [dict(zip("xw", numbers))])
    exact = product(*numbers, transposed)
    np.testing.assert_allclose(y, exact, rtol=0, atol=(1e-5 if kind == "float" else 2e-3) * np.abs(exact).max())
