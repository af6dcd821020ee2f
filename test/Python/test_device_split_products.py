"""Products by weights that lie side by side, whose result is read in parts, on a CUDA device, which libsdx-fakecuda.so stands for,
against numpy in f64."""

import numpy as np
import pytest
from device_models import run_and_count
from onnx import numpy_helper, parser

TOLERANCE = {"f32": 1e-5, "f16": 4e-3}
# How the result [rows, 3 * 64] is cut into three of [rows, 64], and those that read them.
CUTS = {
    "split": "a, b, c = Split<axis = 1, num_outputs = 3>(q)",
    "transposed": "r = Reshape(q, parts)  t = Transpose<perm = [1, 0, 2]>(r)  a_, b_, c_ = Split<axis = 0, num_outputs = 3>(t)  "
    "a = Reshape(a_, part)  b = Reshape(b_, part)  c = Reshape(c_, part)",
    "gathered": "r = Reshape(q, parts)  t = Transpose<perm = [1, 0, 2]>(r)  a = Gather<axis = 0>(t, i0)  b = Gather<axis = 0>(t, i1)  "
    "c = Gather<axis = 0>(t, i2)",
    # Parts that are none, or are not all.
    "overlapping": "a = Slice(q, s0, s1, ax)  b = Slice(q, s0, s1, ax)  c = Slice(q, s2, s3, ax)",
    "shifted": "a = Slice(q, s0, s1, ax)  b = Slice(q, s32, s96, ax)  c = Slice(q, s2, s3, ax)",
    "unread": "a = Slice(q, s0, s1, ax)  b = Slice(q, s0, s1, ax)  c = Slice(q, s1, s2, ax)",
    "rows": "a, b, c = Split<axis = 1, num_outputs = 3>(q)  h = Slice(q, s0, s1, first)  z = ReduceSum(h)",
    "steps": "a = Slice(q, s0, s3, ax, three)  b = Slice(q, s64, s3, ax, two)  c = Slice(q, s2, s3, ax)",
}


def cut_by_numpy(q, cut):
    if cut in ("overlapping", "unread"):
        return q[:, :64], q[:, :64], q[:, 128:] if cut == "overlapping" else q[:, 64:128]
    if cut == "shifted":
        return q[:, :64], q[:, 32:96], q[:, 128:]
    return (q[:, ::3], q[:, 64::2], q[:, 128:]) if cut == "steps" else np.split(q, 3, axis=1)


def run(rows, cut, precision, transposed=False, bias=True, is_open=False):
    rng = np.random.default_rng(43)
    product = "p = Gemm<transB = 1>(x, w)" if transposed else "p = MatMul(x, w)"
    text = f"{product}  q = {'Add(p, bias)' if bias else 'Identity(p)'}  {CUTS[cut]}  d = MatMul(a, v)  e = Mul(b, d)  y = Add(c, e)"
    size = "n" if is_open else rows
    more = ", float[1, 1] z" if cut == "rows" else ""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> m (float[{size},96] x) => (float[{size},64] y{more}) {{ {text} }}')
    w = rng.standard_normal((96, 192)).astype("f4") / 8
    arrays = {
        "w": np.ascontiguousarray(w.T) if transposed else w,
        "bias": rng.standard_normal(192).astype("f4"),
        "v": rng.standard_normal((64, 64)).astype("f4") / 8,
        "parts": np.array([-1, 3, 64]),
        "part": np.array([-1, 64]),
    }
    arrays |= {f"i{i}": np.array(i) for i in range(3)} | {f"s{at}": np.array([at]) for at in (32, 64, 96)}
    arrays |= {f"s{i}": np.array([64 * i]) for i in range(4)} | {"ax": np.array([1]), "first": np.array([0]), "two": np.array([2]), "three": np.array([3])}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = rng.standard_normal((rows, 96)).astype("f4")
    (given,), use = run_and_count(model, [{"x": x}], precision=precision)
    q = x.astype("f8") @ w.astype("f8") + (arrays["bias"] if bias else 0)
    a, b, c = cut_by_numpy(q, cut)
    expected = c + b * (a @ arrays["v"].astype("f8"))
    np.testing.assert_allclose(given[0], expected, rtol=0, atol=TOLERANCE[precision] * np.abs(expected).max())
    return use["kernels"]


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [40, 3, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("cut", ["split", "transposed", "gathered"])
def test_three_parts(cut, bias, rows, transposed, precision):
    """One launch of three products, and one of what reads them; x is rounded before."""
    kernels = run(rows, cut, precision, transposed, bias)
    assert kernels <= (2 if precision == "f32" else 3)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("tokens, batch", [(40, 1), (1, 1), (20, 2)])
def test_tokens_before_the_batch(tokens, batch, precision):
    """As torch's MultiheadAttention has it: biases are added to [tokens, batch, 3 * 64]."""
    rng = np.random.default_rng(45)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> m (float[{tokens},{batch},96] x) => (float[{tokens},{batch},64] y) {{ p = MatMul(x, w)  q = Add(p, bias) '
        "r = Reshape(q, parts)  u = Unsqueeze(r, zero)  t = Transpose<perm = [3, 1, 2, 0, 4]>(u)  s = Squeeze(t, behind) "
        "a = Gather<axis = 0>(s, i0)  b = Gather<axis = 0>(s, i1)  c = Gather<axis = 0>(s, i2)  d = MatMul(a, v)  e = Mul(b, d)  y = Add(c, e) }"
    )
    w, bias, v = (rng.standard_normal(shape).astype("f4") / 8 for shape in ((96, 192), (192,), (64, 64)))
    arrays = {"w": w, "bias": bias, "v": v, "parts": np.array([tokens, batch, 3, 64]), "zero": np.array([0]), "behind": np.array([3])}
    arrays |= {f"i{i}": np.array(i) for i in range(3)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = rng.standard_normal((tokens, batch, 96)).astype("f4")
    ((given,),), use = run_and_count(model, [{"x": x}], precision=precision)
    a, b, c = np.split(x.astype("f8") @ w + bias, 3, axis=2)
    expected = c + b * (a @ v.astype("f8"))
    np.testing.assert_allclose(given, expected, rtol=0, atol=TOLERANCE[precision] * np.abs(expected).max())
    assert use["kernels"] <= (2 if precision == "f32" else 3)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("rows", [40, 1])
@pytest.mark.parametrize("cut", ["overlapping", "shifted", "unread", "rows", "steps"])
def test_parts_that_are_not_all(cut, rows, precision):
    run(rows, cut, precision)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("cut", ["split", "transposed", "gathered"])
def test_open_rows(cut, precision):
    run(21, cut, precision, is_open=True)


def attend(batch, tokens, shared, precision, is_open=False):
    """Attention of four heads, `shared` of which have keys, by one product, as exporters write it: its result and its kernels."""
    rng = np.random.default_rng(44)
    heads, depth = 4, 32
    size = "n" if is_open else batch
    if shared == heads:
        text = """r = Reshape(b, s5)  t = Transpose<perm = [2, 0, 3, 1, 4]>(r)  q_, k_, v_ = Split<axis = 0, num_outputs = 3>(t)
            q = Squeeze(q_, zero)  k = Squeeze(k_, zero)  v = Squeeze(v_, zero)"""
    else:
        text = "q_, k_, v_ = Split<axis = 2>(b, sizes)  " + "  ".join(f"{n}r = Reshape({n}_, {n}shape)  {n}t = Transpose<perm = [0, 2, 1, 3]>({n}r)" for n in "qkv")
        text += "  q = Identity(qt)" + "".join(f"  {n}u = Unsqueeze({n}t, two)  {n}x = Expand({n}u, wide)  {n} = Reshape({n}x, whole)" for n in "kv")
    text = f"""p = MatMul(x, w)  b = Add(bias, p)  {text}  ky = Transpose<perm = [0, 1, 3, 2]>(k)  qs = Mul(q, scale)  s = MatMul(qs, ky)
        e = Softmax<axis = -1>(s)  a = MatMul(e, v)  at = Transpose<perm = [0, 2, 1, 3]>(a)  y = Reshape(at, flat)"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> m (float[{size},{tokens},48] x) => (float[{size},{tokens},{heads * depth}] y) {{ {text} }}')
    columns = (heads + 2 * shared) * depth
    arrays = {
        "w": rng.standard_normal((48, columns)).astype("f4") / 8,
        "bias": rng.standard_normal(columns).astype("f4"),
        "scale": np.array(depth**-0.5, "f4"),
        "s5": np.array([-1, tokens, 3, heads, depth]),
        "sizes": np.array([heads * depth, shared * depth, shared * depth]),
        "qshape": np.array([-1, tokens, heads, depth]),
        "kshape": np.array([-1, tokens, shared, depth]),
        "vshape": np.array([-1, tokens, shared, depth]),
        "wide": np.array([1, 1, heads // shared, 1, 1]),
        "whole": np.array([-1, heads, tokens, depth]),
        "flat": np.array([-1, tokens, heads * depth]),
        "zero": np.array([0]),
        "two": np.array([2]),
    }
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = rng.standard_normal((batch, tokens, 48)).astype("f4")
    ((given,),), use = run_and_count(model, [{"x": x}], precision=precision)
    whole = x.astype("f8") @ arrays["w"] + arrays["bias"]
    q, k, v = np.split(whole, [heads * depth, (heads + shared) * depth], axis=2)
    q, k, v = (part.reshape(batch, tokens, -1, depth).transpose(0, 2, 1, 3) for part in (q, k, v))
    k, v = (np.repeat(part, heads // shared, axis=1) for part in (k, v))
    scores = np.exp(q @ k.swapaxes(2, 3) * depth**-0.5)
    expected = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, -1)
    np.testing.assert_allclose(given, expected, rtol=0, atol=TOLERANCE[precision] * np.abs(expected).max())
    return use["kernels"]


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("batch, tokens", [(1, 20), (2, 20), (3, 1)])
@pytest.mark.parametrize("shared", [4, 2])
def test_attention(shared, batch, tokens, precision):
    """Where heads have keys of their own, nothing moves between the products, which start together, and attention; in f16 x is
    rounded first."""
    kernels = attend(batch, tokens, shared, precision)
    assert shared != 4 or kernels == (2 if precision == "f32" else 3)


@pytest.mark.parametrize("shared", [4, 2])
def test_attention_of_an_open_batch(shared):
    attend(2, 20, shared, "f16", is_open=True)
