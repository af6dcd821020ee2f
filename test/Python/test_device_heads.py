"""Products of a token whose queries and keys are rotated, and whose keys and values come behind those of before, on a CUDA device, which
libsdx-fakecuda.so stands for, against numpy in f64."""

import numpy as np
import pytest
from device_models import run_and_count
from onnx import numpy_helper, parser

TOLERANCE = {"f32": 1e-5, "f16": 4e-3}
HEADS, SHARED = 4, 2


def rotate(x, cos, sin, interleaved):
    """RotaryEmbedding of [..., depth], by cosines and sines of half as many angles as elements turn."""
    turned = 2 * cos.shape[-1]
    x, rest = x[..., :turned], x[..., turned:]
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    a, b = a * cos - b * sin, b * cos + a * sin
    x = np.stack([a, b], axis=-1).reshape(x.shape) if interleaved else np.concatenate([a, b], axis=-1)
    return np.concatenate([x, rest], axis=-1)


def written(name, heads, kind, interleaved, turned):
    """The text that rotates {name}p, [batch, tokens, heads * depth], to {name}, [batch, heads, tokens, depth]."""
    split = f"{name}r = Reshape({name}{{}}, {name}shape)  {name}{{}} = Transpose<perm = [0, 2, 1, 3]>({name}r)"
    settings = f"num_heads = {heads}, interleaved = {int(interleaved)}, rotary_embedding_dim = {turned}"
    if kind == "onnx":
        return f"{name}e = RotaryEmbedding<{settings}>({name}p, cosines, sines, pos)  " + split.format("e", "")
    if kind == "onnx4d":
        settings = settings.split(", ", 1)[1]
        return split.format("p", "t") + f"  {name} = RotaryEmbedding<{settings}>({name}t, cosines, sines, pos)"
    if kind == "microsoft":
        return f"{name}e = com.microsoft.RotaryEmbedding<{settings}>({name}p, pos, cosines, sines)  " + split.format("e", "")
    # What exporters write: x cos + (-b, a) sin.
    return (
        split.format("p", "t") + f"""  {name}a = Slice({name}t, zero, mid, axis)  {name}b = Slice({name}t, mid, end, axis)  {name}n = Neg({name}b)
        {name}h = Concat<axis = 3>({name}n, {name}a)  {name}c = Mul({name}t, cos)  {name}s = Mul({name}h, sin)  {name} = Add({name}c, {name}s)"""
    )


def run(kind="written", batch=1, tokens=1, inner=40, depth=16, past=9, turned=None, interleaved=False, precision="f32", bias=False, transposed=False, first=False, also="", outputs=""):
    rng = np.random.default_rng(61)
    turned = turned or depth
    sizes = {"q": HEADS, "k": SHARED, "v": SHARED}
    product = "Gemm<transB = 1>(x, w{0})" if transposed else "MatMul(x, w{0})"
    text, arrays = "", {}
    for name, heads in sizes.items():
        w = rng.standard_normal((inner, heads * depth)).astype("f4") / np.float32(np.sqrt(inner))
        arrays[f"w{name}"] = np.ascontiguousarray(w.T) if transposed else w
        arrays[f"{name}shape"] = np.array([batch, tokens, heads, depth])
        text += f"{name}m = {product.format(name)}  "
        if bias:
            arrays[f"b{name}"] = rng.standard_normal(heads * depth).astype("f4")
            text += f"{name}m2 = Add({name}m, b{name})  "
        arrays[f"{name}flat"] = np.array([batch, tokens, heads * depth])
        text += f"{name}p = Reshape({name}m{'2' if bias else ''}, {name}flat)  "
    text += written("q", HEADS, kind, interleaved, turned) + "  " + written("k", SHARED, kind, interleaved, turned)
    text += "  vr = Reshape(vp, vshape)  v = Transpose<perm = [0, 2, 1, 3]>(vr)  "
    text += "ck = Concat<axis = 2>(k, pk)  cv = Concat<axis = 2>(v, pv)" if first else "ck = Concat<axis = 2>(pk, k)  cv = Concat<axis = 2>(pv, v)"
    angles = np.outer(np.arange(32), 0.7 ** np.arange(turned // 2)).astype("f4")
    pos = rng.integers(0, 32, (batch, tokens))
    cos, sin = np.cos(angles)[pos], np.sin(angles)[pos]
    arrays |= {"zero": np.array([0]), "mid": np.array([depth // 2]), "end": np.array([depth]), "axis": np.array([3])}
    arrays |= {"cosines": np.cos(angles), "sines": np.sin(angles)}
    cache = f"float[{batch},{SHARED},{past},{depth}]"
    present = f"float[{batch},{SHARED},{past + tokens},{depth}]"
    rows = f"{batch * tokens},{inner}" if transposed else f"{batch},{tokens},{inner}"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> m (float[{rows}] x, int64[{batch},{tokens}] pos, '
        f"float[{batch},1,{tokens},{depth}] cos, float[{batch},1,{tokens},{depth}] sin, {cache} pk, {cache} pv) "
        f"=> (float[{batch},{HEADS},{tokens},{depth}] q, {present} ck, {present} cv{outputs}) {{ {text}  {also} }}"
    )
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = rng.standard_normal(tuple(int(size) for size in rows.split(","))).astype("f4")
    feeds = {name: rng.standard_normal((batch, SHARED, past, depth)).astype("f4") for name in ("pk", "pv")}
    feeds |= {"x": x, "pos": pos}
    for name, values in (("cos", cos), ("sin", sin)):  # of what turns as a whole
        feeds[name] = np.resize(np.concatenate([values, values], axis=-1), (batch, 1, tokens, depth))
    (given,), use = run_and_count(model, [{name: feeds[name] for name in (value.name for value in model.graph.input)}], precision=precision)
    heads = {}
    for name, count in sizes.items():
        w = arrays[f"w{name}"].astype("f8")
        whole = x.reshape(batch, tokens, inner).astype("f8") @ (w.T if transposed else w) + (arrays[f"b{name}"] if bias else 0)
        heads[name] = whole.reshape(batch, tokens, count, depth).transpose(0, 2, 1, 3)
    q, k = (rotate(heads[name], cos[:, None].astype("f8"), sin[:, None].astype("f8"), interleaved) for name in "qk")
    order = slice(None, None, -1 if first else 1)
    expected = [q, np.concatenate([feeds["pk"], k][order], axis=2), np.concatenate([feeds["pv"], heads["v"]][order], axis=2)]
    for value, right in zip(given, expected):
        np.testing.assert_allclose(value, right, rtol=0, atol=TOLERANCE[precision] * np.abs(right).max())
    return use["kernels"] - (precision == "f16"), given  # x is rounded before


KINDS = [("written", False), ("onnx", False), ("onnx", True), ("onnx4d", False), ("onnx4d", True), ("microsoft", False), ("microsoft", True)]


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("kind, interleaved", KINDS)
@pytest.mark.parametrize("depth", [16, 64, 96, 128])
def test_a_token_takes_one_kernel(kind, interleaved, depth, precision):
    """Blocks have whole heads, or halves of two runs of neighbours."""
    assert run(kind, interleaved=interleaved, depth=depth, precision=precision)[0] == 1


@pytest.mark.parametrize("kind", ["written", "onnx", "microsoft"])
@pytest.mark.parametrize("batch", [2, 4])
def test_a_token_of_several(kind, batch):
    assert run(kind, batch=batch)[0] == 1


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("depth", [16, 64])
def test_biases_and_turned_weights(depth, transposed, precision):
    assert run("onnx", bias=True, transposed=transposed, depth=depth, precision=precision)[0] == 1


@pytest.mark.parametrize("kind", ["onnx", "microsoft"])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [32, 16])
def test_a_part_of_the_head_turns(kind, interleaved, turned):
    assert run(kind, depth=64, turned=turned, interleaved=interleaved)[0] == 1


def test_the_newest_comes_first():
    assert run(first=True)[0] == 1
    assert run("onnx", first=True, past=1)[0] == 1


@pytest.mark.parametrize("kind, settings", [("written", {"depth": 40}), ("written", {"depth": 14}), ("onnx", {"depth": 64, "turned": 24}), ("onnx", {"depth": 80})])
@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_heads_that_fit_no_block(kind, settings, precision):
    """Blocks of columns that pairs would be cut by: other kernels compute the same."""
    run(kind, precision=precision, **settings)


@pytest.mark.parametrize("kind", ["written", "onnx", "microsoft"])
@pytest.mark.parametrize("batch, tokens", [(1, 2), (2, 2), (1, 4), (1, 7)])
def test_several_tokens(kind, batch, tokens):
    """Tokens lie behind each other in the product, and heads in the cache."""
    run(kind, batch=batch, tokens=tokens)


def test_a_product_that_others_read():
    """What else reads the keys before they turn gets them."""
    kernels, given = run(also="z = Relu(km)", outputs=f", float[1,1,{SHARED * 16}] z")
    assert kernels > 1 and (given[3] >= 0).all()


def test_an_open_cache():
    rng = np.random.default_rng(5)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[1,1,24] x, float[1,2,n,16] past) => (float[1,2,m,16] y) '
        "{ p = MatMul(x, w)  r = Reshape(p, shape)  t = Transpose<perm = [0, 2, 1, 3]>(r)  y = Concat<axis = 2>(past, t) }"
    )
    w = rng.standard_normal((24, 32)).astype("f4")
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array([1, 1, 2, 16]), "shape")])
    feeds = [{"x": rng.standard_normal((1, 1, 24)).astype("f4"), "past": rng.standard_normal((1, 2, n, 16)).astype("f4")} for n in (0, 1, 20)]
    results, _ = run_and_count(model, feeds, precision="f32")
    for feed, (y,) in zip(feeds, results, strict=True):
        new = (feed["x"].astype("f8") @ w).reshape(1, 2, 1, 16)
        np.testing.assert_allclose(y, np.concatenate([feed["past"], new], axis=2), rtol=0, atol=1e-5 * np.abs(new).max())
