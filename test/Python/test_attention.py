"""Attention as one kernel of the CPU, against its definition in f64."""

import re

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from references import attention
from test_plan import pinned, run, tool

RANDOM = np.random.default_rng(7)
TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# Results are rounded to their type, and scores where a model is computed as it is written.
TOLERANCES = {"float": 3e-6, "float16": 2e-3, "bfloat16": 3e-2}
CONTRIB = ', "com.microsoft" : 1'


def floats(type, *shape):
    return RANDOM.standard_normal(shape).astype(TYPES[type])


def save(text, folder, opset=21, weights={}, contrib=False):
    header = f'<ir_version: 10, opset_import: ["" : {opset}{CONTRIB if contrib else ""}]>\n'
    model = onnx.parser.parse_model(header + text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def plans(model, *more):
    """The plan of each kernel of attention, and how many other products of what a run gives there are."""
    text = tool("plan", model, "--no-split-floats", *more)
    return re.findall(r"^[0-9a-f]{16} (#cpu.attention_plan<.*?>)", text, re.MULTILINE), len(re.findall(r"pack_rhs|_matmul", text))


def is_one_kernel(model):
    """Where keys are many, or their number is open, or queries few."""
    kernels, products = plans(model)
    return len(kernels) == 1 and products == 0


def check(result, expected, type):
    assert result.shape == expected.shape
    largest = np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=0, atol=TOLERANCES[type] * max(1, largest))


def heads(x, number):
    return x.reshape(*x.shape[:2], number, -1).swapaxes(1, 2)


def encoder(type, number, depth, b="b", s="s"):
    """Heads lie beside each other in rows of the operands; a mask of keys is added."""
    width = number * depth
    return f"""g ({type}[{b}, {s}, {width}] q, {type}[{b}, {s}, {width}] k, {type}[{b}, {s}, {width}] v, {type}[{b}, 1, 1, {s}] mask)
        => ({type}[{b}, {s}, {width}] y) <float c = {{{depth ** 0.5}}}, int64[4] split = {{0, 0, {number}, {depth}}}, int64[3] join = {{0, 0, {width}}}> {{
        d = CastLike(c, q)
        q1 = Reshape(q, split)
        k1 = Reshape(k, split)
        v1 = Reshape(v, split)
        q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
        k2 = Transpose <perm = [0, 2, 3, 1]> (k1)
        v2 = Transpose <perm = [0, 2, 1, 3]> (v1)
        s = MatMul(q2, k2)
        t = Div(s, d)
        u = Add(t, mask)
        p = Softmax <axis = -1> (u)
        o = MatMul(p, v2)
        z = Transpose <perm = [0, 2, 1, 3]> (o)
        y = Reshape(z, join)
    }}"""


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("depth", [32, 64, 80, 128, 33, 5, 1])
@pytest.mark.parametrize("is_open", [False, True])
def test_an_encoder(type, depth, is_open, tmp_path):
    batch, size, number = 2, 205, 3
    x = {name: floats(type, batch, size, number * depth) for name in "qkv"}
    mask = np.where(RANDOM.random((batch, 1, 1, size)) < 0.3, -1e4, 0).astype(TYPES[type])
    sizes = {} if is_open else {"b": batch, "s": size}
    model = save(encoder(type, number, depth, **sizes), tmp_path)
    # What multiplies bf16 at once is faster.
    if depth > 1 and type != "bfloat16":
        assert is_one_kernel(model) and "transpose" not in tool("plan", model, "--no-split-floats")
    y = run(model, {**x, "mask": mask})
    expected = attention(*(heads(x[name], number) for name in "qkv"), depth**-0.5, lambda s: s + mask.astype(np.float64))
    check(y, expected.swapaxes(1, 2).reshape(y.shape), type)


@pytest.mark.parametrize("batch, size", [(1, 7), (3, 6), (2, 200)])
def test_open_sizes_of_projections(batch, size, tmp_path):
    """Rows of all images are those of one product before they are split: their sizes are known behind it only."""
    number, depth = 2, 8
    width = number * depth
    nodes = "".join(f"{name}0 = MatMul(x, w{name})\n" for name in "qkv")
    text = encoder("float", number, depth).split("{\n", 1)[1]
    for name in "qkv":
        text = text.replace(f"Reshape({name},", f"Reshape({name}0,")
    text = text.replace("CastLike(c, q)", "CastLike(c, x)")
    model = save(
        f"""g (float[b, s, {width}] x, float[b, 1, 1, s] mask) => (float[b, s, {width}] y)
        <float c = {{{depth ** 0.5}}}, int64[4] split = {{0, 0, {number}, {depth}}}, int64[3] join = {{0, 0, {width}}},
         {", ".join(f"float[{width}, {width}] w{name}" for name in "qkv")}> {{
        {nodes}{text}""",
        tmp_path,
        weights={f"w{name}": floats("float", width, width) / 4 for name in "qkv"},
    )
    assert len(plans(model)[0]) == 1
    x = floats("float", batch, size, width)
    mask = np.where(RANDOM.random((batch, 1, 1, size)) < 0.3, -1e4, 0).astype(np.float32)
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(model).graph.initializer}
    q, k, v = (heads(x.astype(np.float64) @ weights[f"w{name}"], number) for name in "qkv")
    y = run(model, {"x": x, "mask": mask})
    expected = attention(q, k, v, depth**-0.5, lambda s: s + mask.astype(np.float64))
    check(y, expected.swapaxes(1, 2).reshape(y.shape), "float")


# Few keys, and long heads while their scores are not many times the operands, are faster as products.
@pytest.mark.parametrize("size, depth, expected", [(64, 64, False), (191, 64, False), (192, 64, True), (256, 256, False), (4096, 256, True), (8192, 520, False)])
def test_where_it_is_one_kernel(size, depth, expected, tmp_path):
    assert is_one_kernel(save(encoder("float", 2, depth, b=1, s=size), tmp_path)) == expected


def grouped(type, b, h, g, m, n, d, e, weights=""):
    """Heads of queries share keys, which the model repeats."""
    return f"""g ({type}[{b}, {h}, {m}, {d}] q, {type}[{b}, {g}, {n}, {d}] k, {type}[{b}, {g}, {n}, {e}] v,
        {type}[1, {h}, {m}, {n}] bias) => ({type}[{b}, {m}, {h}, {e}] y)
        <float scale = {{0.125}}, int64[1] at = {{2}}, int64[5] times = {{1, 1, {h // g}, 1, 1}},
         int64[4] ks = {{0, {h}, -1, {d}}}, int64[4] vs = {{0, {h}, -1, {e}}}> {{
        k1 = Unsqueeze(k, at)
        k2 = Expand(k1, times)
        k3 = Reshape(k2, ks)
        v1 = Unsqueeze(v, at)
        v2 = Expand(v1, times)
        v3 = Reshape(v2, vs)
        k4 = Transpose <perm = [0, 1, 3, 2]> (k3)
        s = MatMul(q, k4)
        f = CastLike(scale, q)
        t = Mul(s, f)
        u = Add(t, bias)
        p = Softmax <axis = -1> (u)
        o = MatMul(p, v3)
        y = Transpose <perm = [0, 2, 1, 3]> (o)
    }}"""


SIZES = [(1, 300), (3, 130), (70, 270), (16, 2), (5, 193), (300, 33), (2, 700), (400, 500)]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("queries, keys", SIZES)
@pytest.mark.parametrize("is_open", [False, True])
def test_heads_that_share_keys(type, queries, keys, is_open, tmp_path):
    batch, number, shared, depth, columns = 2, 8, 2, 64, 24
    q = floats(type, batch, number, queries, depth)
    k, v = floats(type, batch, shared, keys, depth), floats(type, batch, shared, keys, columns)
    bias = floats(type, 1, number, queries, keys)
    sizes = ("m", "n") if is_open else (queries, keys)
    model = save(grouped(type, batch, number, shared, *sizes, depth, columns), tmp_path)
    if keys >= 192 and not is_open and type != "bfloat16":
        assert is_one_kernel(model)
    y = run(model, {"q": q, "k": k, "v": v, "bias": bias})
    check(y, attention(q, k, v, 0.125, lambda s: s + bias.astype(np.float64)).swapaxes(1, 2), type)


# The operator with a cache of keys and values and open sizes: which keys a query may see follows from indices.
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("queries, past", [(1, 0), (1, 150), (9, 5), (100, 30), (5, 0), (400, 100)])
def test_the_operator_with_a_cache(type, queries, past, tmp_path):
    number, shared, depth, columns = 4, 2, 64, 48
    q = floats(type, 1, number, queries, depth)
    k, v = floats(type, 1, shared, queries, depth), floats(type, 1, shared, queries, columns)
    old_k, old_v = floats(type, 1, shared, past, depth), floats(type, 1, shared, past, columns)
    text = f"""g ({type}[1, {number}, m, {depth}] q, {type}[1, {shared}, m, {depth}] k, {type}[1, {shared}, m, {columns}] v,
        {type}[1, {shared}, p, {depth}] a, {type}[1, {shared}, p, {columns}] b)
        => ({type}[1, {number}, m, {columns}] y, {type}[1, {shared}, n, {depth}] c, {type}[1, {shared}, n, {columns}] d) {{
        y, c, d = Attention <is_causal = 1> (q, k, v, , a, b)
    }}"""
    model = save(text, tmp_path, opset=23)
    if type != "bfloat16":
        assert is_one_kernel(model)
    y = run(model, {"q": q, "k": k, "v": v, "a": old_k, "b": old_v})
    k, v = np.concatenate([old_k, k], axis=2), np.concatenate([old_v, v], axis=2)
    future = np.triu(np.ones((queries, queries + past), bool), past + 1)
    check(y, attention(q, k, v, depth**-0.5, lambda s: np.where(future, -np.inf, s)), type)


# A mask of booleans in which one query sees nothing: its row is 0 by the operator's rule.
def test_the_operator_with_a_mask(tmp_path):
    q, k, v = floats("float", 2, 3, 20, 24), floats("float", 2, 3, 201, 24), floats("float", 2, 3, 201, 24)
    mask = RANDOM.random((20, 201)) < 0.6
    mask[7] = False
    text = """g (float[2, 3, 20, 24] q, float[2, 3, 201, 24] k, float[2, 3, 201, 24] v, bool[20, 201] m) => (float[2, 3, 20, 24] y) {
        y = Attention <scale = 0.3, softcap = 2.0> (q, k, v, m)
    }"""
    model = save(text, tmp_path, opset=23)
    assert is_one_kernel(model)
    y = run(model, {"q": q, "k": k, "v": v, "m": mask})
    expected = attention(q, k, v, 0.3, lambda s: np.where(mask, 2 * np.tanh(s / 2), -np.inf))
    expected[:, :, 7] = 0
    check(y, expected, "float")


CHAIN = """g (float[{h}, {m}, {d}] q, float[{h}, {n}, {d}] k, float[{h}, {n}, {e}] v{inputs}) => (float[{h}, {m}, {e}] y) <float c = {{0.2}}{constants}> {{
    k1 = Transpose <perm = [0, 2, 1]> (k)
    s = MatMul(q, k1)
    t = Mul(s, c)
    {change}
    p = Softmax <axis = -1> (u)
    y = MatMul(p, v)
}}"""


def chain(folder, change, sizes, inputs="", constants="", weights={}):
    h, m, n, d, e = sizes
    assert n >= 192
    model = save(CHAIN.format(h=h, m=m, n=n, d=d, e=e, change=change, inputs=inputs, constants=constants), folder, weights=weights)
    assert is_one_kernel(model)
    feeds = {"q": floats("float", h, m, d), "k": floats("float", h, n, d), "v": floats("float", h, n, e)}
    return model, feeds


def result(feeds, change):
    q, k, v = (feeds[name][None] for name in "qkv")
    return attention(q, k, v, 0.2, change)[0]


# Causal, windows, and both, by a mask among the weights or by one that the model makes of indices; keys outside are not visited. The
# lowest number is not -inf: a query that sees no key sees all of them then.
@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e4])
@pytest.mark.parametrize("way", ["weights", "where", "sum"])
@pytest.mark.parametrize("window", [None, 30, 1])
@pytest.mark.parametrize("queries, keys", [(250, 250), (70, 200), (600, 600), (250, 230)])
def test_bounds(low, way, window, queries, keys, tmp_path):
    place, own = np.arange(keys), np.arange(queries)[:, None] + keys - queries
    seen = (place <= own) & (place > own - (window or keys))
    sizes = (2, queries, keys, 32, 16)
    made = f"""place = Range(zero, keys, one)
        own = Range(first, keys, one)
        column = Unsqueeze(own, axis)
        past = Greater(place, column)
        begin = Sub(column, window)
        before = LessOrEqual(place, begin)
        hidden = Or(past, before)"""
    constants = f""", float low = {{{low}}}, float none = {{0}}, int64 zero = {{0}}, int64 one = {{1}}, int64 keys = {{{keys}}}, int64 first = {{{keys - queries}}},
        int64 window = {{{window or keys}}}, int64[1] axis = {{1}}"""
    change = {"weights": "u = Where(hidden, low, t)", "where": made + "\nu = Where(hidden, low, t)",
              "sum": made + "\nbias = Where(hidden, low, none)\nu = Add(t, bias)"}[way]
    model, feeds = chain(tmp_path, change, sizes, constants=constants, weights={"hidden": ~seen} if way == "weights" else {})
    expected = result(feeds, lambda s: np.where(seen, s, low + (s if way == "sum" else 0)))
    # Sums of -10000 and others have a thousandth.
    rounded = low == -1e4 and way == "sum" and not seen.any(axis=1).all()
    check(run(model, feeds), expected, "float16" if rounded else "float")


# A finite lowest score, and queries of which all keys that they might see are hidden by another mask: the others count then.
@pytest.mark.parametrize("low, others", [(np.finfo(np.float32).min, np.finfo(np.float32).min), (-1e4, -np.inf), (-np.inf, -1e4)])
def test_all_keys_within_bounds_are_hidden(low, others, tmp_path):
    size = 200
    weights = {"hidden": np.triu(np.ones((size, size), bool), 1)}
    model, feeds = chain(tmp_path, "a = Where(hidden, low, t)\nu = Where(pad, others, a)", (2, size, size, 16, 16), inputs=f", bool[1, 1, {size}] pad",
                         constants=f", float low = {{{low}}}, float others = {{{others}}}", weights=weights)
    feeds["pad"] = np.arange(size)[None, None] < 90
    expected = result(feeds, lambda s: np.where(feeds["pad"], others, np.where(weights["hidden"], low, s)))
    check(run(model, feeds), expected, "float")


def test_slopes_and_caps(tmp_path):
    """ALiBi, a bias by the distance of keys, and a cap of scores."""
    sizes = (4, 230, 230, 64, 64)
    slopes = (2.0 ** -np.arange(1, 5)).astype(np.float32).reshape(4, 1, 1)
    distance = -np.abs(np.arange(230)[:, None] - np.arange(230)).astype(np.float32)
    change = "w = Div(t, cap)\nx = Tanh(w)\ny0 = Mul(x, cap)\nb = Mul(slopes, distance)\nu = Add(y0, b)"
    model, feeds = chain(tmp_path, change, sizes, constants=", float cap = {3}", inputs=", float[4, 1, 1] slopes, float[230, 230] distance")
    feeds |= {"slopes": slopes, "distance": distance}
    check(run(model, feeds), result(feeds, lambda s: 3 * np.tanh(s / 3) + slopes.astype(np.float64) * distance), "float")


# What follows in the kernel, and a mask whose keys do not follow each other.
def test_a_mask_of_columns(tmp_path):
    model, feeds = chain(tmp_path, "m1 = Transpose <perm = [0, 2, 1]> (m)\nu = Add(t, m1)", (2, 37, 245, 20, 30), inputs=", float[2, 245, 37] m")
    feeds["m"] = floats("float", 2, 245, 37)
    check(run(model, feeds), result(feeds, lambda s: s + feeds["m"].swapaxes(1, 2)), "float")


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_without_a_number(threads, tmp_path):
    """A query whose scores are all -inf has what its softmax has; infinite and missing numbers stay what they are."""
    sizes = (2, 9, 200, 16, 40)
    model, feeds = chain(tmp_path, "u = Add(m, t)", sizes, inputs=", float[9, 200] m")
    mask = np.zeros((9, 200), np.float32)
    mask[3] = mask[5, 10:] = mask[6, :199] = mask[8, :100] = -np.inf
    mask[1, 150] = np.inf
    mask[2, 7] = np.nan
    feeds["m"] = mask
    y = run(model, feeds)
    assert np.isnan(y[:, [1, 2, 3]]).all()
    expected = result(feeds, lambda s: s + mask)
    keep = [0, 4, 5, 6, 7, 8]
    check(y[:, keep], expected[:, keep], "float")


@pytest.mark.parametrize("keys", [0, 1, 65])
@pytest.mark.parametrize("queries", [1, 0, 20])
def test_open_sizes_may_be_small(queries, keys, tmp_path):
    text = """g (float[h, m, 64] q, float[h, 64, n] k, float[h, n, 64] v) => (float[h, m, 64] y) {
        s = MatMul(q, k)
        p = Softmax <axis = -1> (s)
        y = MatMul(p, v)
    }"""
    model = save(text, tmp_path)
    q, k, v = floats("float", 2, queries, 64) / 8, floats("float", 2, 64, keys), floats("float", 2, keys, 64)
    y = run(model, {"q": q, "k": k, "v": v})
    check(y, np.nan_to_num(attention(q[None], k.swapaxes(1, 2)[None], v[None], 1)[0]), "float")


# Any sizes of tiles give the same; what fits no tile is refused.
@pytest.mark.parametrize("plan", ["queries = 24, rows = 24, keys = 32", "queries = 96, rows = 48, keys = 64", "queries = 480, rows = 120, keys = 256"])
def test_plans_that_fit_give_the_same(plan, tmp_path):
    batch, size, number, depth = 1, 150, 2, 40
    x = {name: floats("float", batch, size, number * depth) for name in "qkv"}
    mask = np.where(RANDOM.random((batch, 1, 1, size)) < 0.3, -1e4, 0).astype(np.float32)
    model = save(encoder("float", number, depth), tmp_path)
    given = pinned(tmp_path, f"* #cpu.attention_plan<{plan}>\n")
    assert plans(model, "--plan", given)[0] == [f"#cpu.attention_plan<{plan}>"]
    y = run(model, {**x, "mask": mask}, given, split_floats=False)
    expected = attention(*(heads(x[name], number) for name in "qkv"), depth**-0.5, lambda s: s + mask)
    check(y, expected.swapaxes(1, 2).reshape(y.shape), "float")


def test_probabilities_that_are_needed(tmp_path):
    text = """g (float[2, 9, 16] q, float[2, 16, 200] k, float[2, 200, 16] v) => (float[2, 9, 16] y, float[2, 9, 200] p) {
        s = MatMul(q, k)
        p = Softmax <axis = -1> (s)
        y = MatMul(p, v)
    }"""
    assert plans(save(text, tmp_path))[0] == []
