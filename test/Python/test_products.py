"""Matrix products of f32, bf16 and 8-bit integers against numpy."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from numerics import OPTIONS, constant, run, vectors  # noqa: F401
from onnx import helper

import sardonyx as sdx


@pytest.mark.parametrize("rows", [1, 7, 31, 32, 70, 130, 600])
@pytest.mark.parametrize("depth, columns", [(256, 512), (250, 520), (1024, 130), (3, 20000)])
@pytest.mark.parametrize("open_rows", [False, True])
def test_product_with_large_weights(rows, depth, columns, open_rows):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    w = (rng.standard_normal((depth, columns)) / np.sqrt(depth)).astype(np.float32)
    shapes = {} if open_rows else {"x": x.shape}
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    (y,) = run([node], {"x": x}, ["y"], shapes, initializers=[constant("w", w, np.float32)])
    np.testing.assert_allclose(y, x.astype(np.float64) @ w, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("batch, rows, heads, size", [(1, 128, 12, 64), (2, 17, 3, 20), (3, 33, 1, 7), (1, 1, 4, 32), (2, 9, 5, 1), (0, 9, 2, 8), (2, 0, 2, 8)])
@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("keys", ["0231", "0213 and 0132"])
def test_heads_beside_each_other(batch, rows, heads, size, open_sizes, keys, monkeypatch):
    """Keys and values are packed from rows [heads, size of a head]."""
    monkeypatch.setattr(OPTIONS, "check_bounds", True)
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((batch, rows, heads * size)).astype(np.float32) for _ in "qkv")
    nodes = [helper.make_node("Reshape", [name, "split"], [f"{name}4"]) for name in "qkv"]
    nodes += [helper.make_node("Transpose", [f"{name}4"], [f"{name}t"], perm=[0, 2, 1, 3]) for name in "qv"]
    if keys == "0231":
        nodes.append(helper.make_node("Transpose", ["k4"], ["kt"], perm=[0, 2, 3, 1]))
    else:
        nodes += [helper.make_node("Transpose", ["k4"], ["k1"], perm=[0, 2, 1, 3]), helper.make_node("Transpose", ["k1"], ["kt"], perm=[0, 1, 3, 2])]
    nodes += [helper.make_node("MatMul", ["qt", "kt"], ["s"]), helper.make_node("MatMul", ["s", "vt"], ["y"])]
    split = constant("split", [batch, rows, heads, size] if 0 in (batch, rows) else [0, 0, heads, size])
    shapes = {name: ["b", "s", heads * size] if open_sizes else q.shape for name in "qkv"}
    (y,) = run(nodes, {"q": q, "k": k, "v": v}, ["y"], shapes, initializers=[split])
    q, k, v = (a.astype(np.float64).reshape(batch, rows, heads, size).transpose(0, 2, 1, 3) for a in (q, k, v))
    np.testing.assert_allclose(y, q @ k.swapaxes(2, 3) @ v, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("signed", ["uu", "ui", "iu", "ii"])
@pytest.mark.parametrize("zeros", ["none", "one", "each"])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (8, 64, 32), (17, 130, 33), (5, 3, 100), (64, 257, 40), (49, 138, 70), (103, 192, 32)])
def test_products_of_bytes(m, k, n, zeros, signed):
    rng = np.random.default_rng(k)

    def draw(kind, shape):
        return rng.integers(0, 256, shape, np.uint8) if kind == "u" else rng.integers(-128, 128, shape, np.int8)

    a, b = draw(signed[0], (2, m, k)), draw(signed[1], (k, n))
    a[0], b[:, 0] = np.iinfo(a.dtype).max, np.iinfo(b.dtype).min  # the largest sums
    za, zb = draw(signed[0], (m, 1) if zeros == "each" else ()), draw(signed[1], (n,) if zeros == "each" else ())
    inputs, initializers = ["a", "b"], [constant("b", b, b.dtype)]
    if zeros == "none":
        za, zb = 0, 0
    else:
        inputs += ["za", "zb"]
        initializers += [constant("za", za, a.dtype), constant("zb", zb, b.dtype)]
    node = helper.make_node("MatMulInteger", inputs, ["y"])
    shapes = {"a": [2, "m", "k" if m == 3 else k]} if m % 2 else {"a": [2, m, k]}
    (y,) = run([node], {"a": a}, ["y"], shapes, 21, initializers)
    np.testing.assert_array_equal(y, (a.astype(np.int32) - za) @ (b.astype(np.int32) - zb))


def draw_bf16(rng, *shape):
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("op", ["MatMul", "Gemm", "batch"])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (1, 64, 40), (3, 5, 7), (17, 131, 33), (49, 138, 70), (103, 192, 32)])
def test_products_of_bf16(m, k, n, weights, op):
    rng = np.random.default_rng(k)
    batch = [2] if op == "batch" else []
    a, b = draw_bf16(rng, *batch, m, k), draw_bf16(rng, *batch, *((n, k) if op == "Gemm" else (k, n)))
    node = helper.make_node("Gemm" if op == "Gemm" else "MatMul", ["a", "b"], ["y"])
    if op == "Gemm":
        node.attribute.append(helper.make_attribute("transB", 1))
    feeds = {"a": a} if weights else {"a": a, "b": b}
    shapes = {"a": [*batch, "m" if m % 2 else m, "k" if m == 3 else k]} | ({} if weights else {"b": b.shape})
    (y,) = run([node], feeds, ["y"], shapes, 21, [constant("b", b, b.dtype)] if weights else [])
    x, w = a.astype(np.float64), b.astype(np.float64)
    w = w.T if op == "Gemm" else w
    assert y.dtype == a.dtype
    assert (np.abs(y.astype(np.float64) - x @ w) <= 2**-8 * (np.abs(x) @ np.abs(w))).all()


def test_products_of_bf16_read_no_value_past_an_odd_depth():
    rng = np.random.default_rng(0)
    a, b = draw_bf16(rng, 3, 131), draw_bf16(rng, 131, 40)
    a[1, 0] = np.inf  # which is next to the last value of the row before
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    (y,) = run([node], {"a": a}, ["y"], {"a": a.shape}, 21, [constant("b", b, b.dtype)])
    assert np.isfinite(y[[0, 2]].astype(np.float32)).all() and not np.isfinite(y[1].astype(np.float32)).any()


def test_products_of_bytes_at_any_level_of_optimisation():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (64, 200), np.uint8), rng.integers(-128, 128, (200, 40), np.int8)
    x = helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, a.shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [constant("b", b, np.int8)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    for level in range(4):
        options = sdx._sardonyx.Options()
        options.cpu, options.opt_level, options.cache = OPTIONS.cpu, level, False
        (y,) = sdx._sardonyx.load_bytes(model.SerializeToString(), options).run([(0, a)])
        np.testing.assert_array_equal(y, a.astype(np.int32) @ b)


def test_products_of_bytes_check_an_open_depth():
    weights = constant("w", np.ones((8, 4)), np.int8)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    with pytest.raises(sdx.errors.Fail, match="inner sizes of the operands differ"):
        run([node], {"x": np.ones((2, 7), np.uint8)}, ["y"], {"x": ["m", "k"]}, 21, [weights])


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "transposed Gemm"])
@pytest.mark.parametrize("signed", [False, True])
def test_products_of_what_was_dequantised(op, per_column, signed):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 70)).astype(np.float32)
    w = rng.integers(-128, 128, (70, 40), np.int8)
    scale = rng.uniform(0.01, 0.02, 40 if per_column else ()).astype(np.float32)
    zero = rng.integers(-5, 5, 40 if per_column else (), np.int8)
    bias = rng.standard_normal(40).astype(np.float32)
    kind = np.int8 if signed else np.uint8
    transposed = op.startswith("transposed")
    product = {
        "MatMul": helper.make_node("MatMul", ["d", "e"], ["y"]),
        "Gemm": helper.make_node("Gemm", ["d", "e", "bias"], ["y"], transB=int(transposed)),
    }[op.split()[-1]]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["e"], axis=0 if transposed else 1),
        product,
    ]
    zx = 3 if signed else 130
    initializers = [
        constant("sx", 0.03, np.float32),
        constant("zx", zx, kind),
        constant("w", w.T if transposed else w, np.int8),
        constant("sw", scale, np.float32),
        constant("zw", zero, np.int8),
        constant("bias", bias, np.float32),
    ]
    (y,) = run(nodes, {"x": x}, ["y"], {"x": x.shape}, 21, initializers)
    limits = np.iinfo(kind)
    q = np.clip(np.rint(x / np.float32(0.03)) + zx, limits.min, limits.max) - zx
    wanted = (q.astype(np.float64) * np.float32(0.03)) @ ((w.astype(np.float64) - zero) * scale)
    if op != "MatMul":
        wanted = wanted + bias
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [33025, 33026, 70000])
@pytest.mark.parametrize(
    "ta, tb, op", [(np.uint8, np.int8, "MatMul"), (np.int8, np.int8, "Gemm"), (np.uint8, np.uint8, "MatMul")]
)
def test_long_sums_of_what_was_dequantised(k, ta, tb, op):
    """From 33026 products of differences of bytes on a sum need not be an int32."""
    a, b = np.full((2, k), np.iinfo(ta).max, ta), np.full((k, 3), np.iinfo(tb).max, tb)
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "s", "za"], ["ad"]),
        helper.make_node("DequantizeLinear", ["b", "s", "zb"], ["bd"]),
        helper.make_node(op, ["ad", "bd"], ["y"]),
    ]
    inits = [constant("b", b, tb), constant("s", 1.0, np.float32)]
    inits += [constant("za", np.iinfo(ta).min, ta), constant("zb", np.iinfo(tb).min, tb)]
    [got] = run(nodes, {"a": a}, ["y"], {"a": a.shape}, 19, inits)
    np.testing.assert_allclose(got, np.full((2, 3), k * 255.0 * 255), rtol=1e-4)


@pytest.mark.parametrize("kind", ["float64", "int64", "int32"])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_products_without_packed_weights(kind, open_sizes):
    """Tiles of sums in registers: of rows and columns that fill none, of batches, and of a transposed side."""
    rng = np.random.default_rng(5)
    dtype = np.dtype(kind)
    for left, right in [((4, 3), (3, 5)), ((8, 64), (64, 24)), ((17, 30), (30, 51)), ((64, 33), (33, 128)), ((3, 9, 7), (3, 7, 40)), ((300, 5), (5, 33)), ((1, 20), (20, 30)), ((5, 1), (1, 9))]:
        x, w, c = (np.round(rng.standard_normal(s) * 9, 3).astype(dtype) for s in (left, right, (right[-1],)))
        for is_transposed in (False, True):
            given = np.ascontiguousarray(np.swapaxes(w, -1, -2)) if is_transposed else w
            axes = [1, 0] if w.ndim == 2 else [0, 2, 1]
            nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=axes)] if is_transposed else []
            nodes += [helper.make_node("MatMul", ["x", "t" if is_transposed else "w"], ["p"]), helper.make_node("Add", ["p", "c"], ["y"])]
            feeds = {"x": x, "w": given, "c": c}
            shapes = {} if open_sizes else {name: a.shape for name, a in feeds.items()}
            (y,) = run(nodes, feeds, ["y"], shapes)
            np.testing.assert_allclose(y, x @ w + c, rtol=1e-12, atol=1e-9)
