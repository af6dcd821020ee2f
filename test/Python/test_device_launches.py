"""How many kernels a run starts on a CUDA device, which libsdx-fakecuda.so stands for, and that they compute the same."""

import numpy as np
import onnxruntime
import pytest
from device_models import run_and_count
from onnx import numpy_helper, parser

RANDOM = np.random.default_rng(47)


def run(text, feeds, weights, precision="f32", tolerance=1e-5):
    """The kernels of a run of a graph, whose results are those of onnxruntime."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    for name, shape in weights.items():
        value = (RANDOM.standard_normal(shape) / np.sqrt(shape[0])).astype("f4")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    (results,), use = run_and_count(model, [feeds], precision=precision)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for given, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(given, right, rtol=0, atol=tolerance * np.abs(right).max(initial=1))
    return use["kernels"]


def draw(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_products_of_one_activation(rows, precision):
    """Queries, keys and values: of equal kernels, and one of another size that has blocks as large."""
    text = f"""m (float[{rows},64] x) => (float[{rows},96] q, float[{rows},96] k, float[{rows},32] v, float[{rows},96] s) {{
        q = MatMul(x, a)  k0 = MatMul(x, b)  k = Relu(k0)  v = MatMul(x, c)  s = Add(q, k) }}"""
    weights = {"a": (64, 96), "b": (64, 96), "c": (64, 32)}
    tolerance = 1e-5 if precision == "f32" else 2e-3
    kernels = run(text, {"x": draw(rows, 64)}, weights, precision, tolerance)
    # With f16 x is rounded first.
    assert kernels <= (2 if precision == "f32" else 3)


def test_an_open_number_of_rows():
    """Of forms that the host chooses from as well, each step of them."""
    text = "m (float[n,64] x) => (float[n,96] q, float[n,96] k) { q = MatMul(x, a)  k = MatMul(x, b) }"
    for rows in (1, 4, 30):
        assert run(text, {"x": draw(rows, 64)}, {"a": (64, 96), "b": (64, 96)}) == 1


def test_what_depends_is_not_merged():
    """Products one after the other, and one that waits for another's memory."""
    text = """m (float[8,64] x) => (float[8,64] z) {
        a = MatMul(x, v)  b = MatMul(a, v)  c = MatMul(b, v)  z = MatMul(c, w) }"""
    assert run(text, {"x": draw(8, 64)}, {"v": (64, 64), "w": (64, 64)}) == 4


def test_rotations_and_caches():
    """Queries and keys are rotated by halves, and keys and values come behind those of before."""
    text = """m (float[1,4,1,16] q, float[1,2,1,16] k, float[1,2,1,16] v, float[1,2,9,16] pk, float[1,2,9,16] pv, float[1,16] c, float[1,16] s)
        => (float[1,4,1,16] rq, float[1,2,10,16] ck, float[1,2,10,16] cv) <int64[1] zero = {0}, int64[1] mid = {8}, int64[1] end = {16}, int64[1] axis = {3}> {
        q1 = Slice(q, zero, mid, axis)  q2 = Slice(q, mid, end, axis)  nq = Neg(q2)  hq = Concat<axis = 3>(nq, q1)
        q3 = Mul(q, c)  q4 = Mul(hq, s)  rq = Add(q3, q4)
        k1 = Slice(k, zero, mid, axis)  k2 = Slice(k, mid, end, axis)  nk = Neg(k2)  hk = Concat<axis = 3>(nk, k1)
        k3 = Mul(k, c)  k4 = Mul(hk, s)  rk = Add(k3, k4)
        ck = Concat<axis = 2>(pk, rk)  cv = Concat<axis = 2>(pv, v) }"""
    feeds = {"q": draw(1, 4, 1, 16), "k": draw(1, 2, 1, 16), "v": draw(1, 2, 1, 16), "pk": draw(1, 2, 9, 16), "pv": draw(1, 2, 9, 16)}
    assert run(text, {**feeds, "c": draw(1, 16), "s": draw(1, 16)}, {}) == 1


def test_parts_and_padding():
    """Parts along several axes, of numbers of other types, and zeros around a part."""
    text = """m (float[3,5] x, float[3,2] y, float[2,7] z) => (float[5,7] a, float[7,9] b) <int64[4] pads = {1, 0, 1, 2}> {
        t = Concat<axis = 1>(x, y)  u = Relu(t)  a = Concat<axis = 0>(u, z)  b = Pad(a, pads) }"""
    assert run(text, {"x": draw(3, 5), "y": draw(3, 2), "z": draw(2, 7)}, {}) <= 2


def normalize(x, weight, name):
    """What exporters write for an RMSNormalization."""
    return f"""{name}s = Mul({x}, {x})  {name}m = ReduceMean<axes = [-1]>({name}s)  {name}e = Add({name}m, epsilon)  {name}r = Sqrt({name}e)
        {name}i = Div(one, {name}r)  {name}n = Mul({x}, {name}i)  {name} = Mul({name}n, {weight})"""


def rotate(x, name):
    return f"""{name}a = Slice({x}, zero, mid, axis)  {name}b = Slice({x}, mid, end, axis)  {name}n = Neg({name}b)
        {name}h = Concat<axis = 3>({name}n, {name}a)  {name}c = Mul({x}, cos)  {name}d = Mul({name}h, sin)  {name} = Add({name}c, {name}d)"""


def decoder_layer(i, x):
    """A layer of a decoder for one token: 4 heads of 16, 2 of which share keys; its result is `x{i}`."""
    w = f"w{i}"
    return f"""{normalize(x, f"{w}n", f"n{i}")}
        q{i}p = MatMul(n{i}, {w}q)  q{i}r = Reshape(q{i}p, heads)  q{i}t = Transpose<perm = [0, 2, 1, 3]>(q{i}r)  {rotate(f"q{i}t", f"q{i}")}
        k{i}p = MatMul(n{i}, {w}k)  k{i}r = Reshape(k{i}p, shared)  k{i}t = Transpose<perm = [0, 2, 1, 3]>(k{i}r)  {rotate(f"k{i}t", f"k{i}")}
        v{i}p = MatMul(n{i}, {w}v)  v{i}r = Reshape(v{i}p, shared)  v{i} = Transpose<perm = [0, 2, 1, 3]>(v{i}r)
        ck{i} = Concat<axis = 2>(pk{i}, k{i})  cv{i} = Concat<axis = 2>(pv{i}, v{i})
        k{i}u = Unsqueeze(ck{i}, two)  k{i}x = Expand(k{i}u, wide)  k{i}y = Reshape(k{i}x, whole)  k{i}z = Transpose<perm = [0, 1, 3, 2]>(k{i}y)
        v{i}u = Unsqueeze(cv{i}, two)  v{i}x = Expand(v{i}u, wide)  v{i}y = Reshape(v{i}x, whole)
        s{i}a = MatMul(q{i}, k{i}z)  s{i}b = Mul(s{i}a, scale)  s{i}c = Add(s{i}b, mask)  s{i} = Softmax<axis = -1>(s{i}c)
        o{i}a = MatMul(s{i}, v{i}y)  o{i}b = Transpose<perm = [0, 2, 1, 3]>(o{i}a)  o{i}c = Reshape(o{i}b, flat)  o{i}d = MatMul(o{i}c, {w}o)
        y{i} = Add({x}, o{i}d)  {normalize(f"y{i}", f"{w}m", f"m{i}")}
        g{i}a = MatMul(m{i}, {w}g)  g{i}b = Sigmoid(g{i}a)  g{i}c = Mul(g{i}a, g{i}b)  u{i} = MatMul(m{i}, {w}u)  g{i} = Mul(g{i}c, u{i})
        d{i} = MatMul(g{i}, {w}d)  x{i} = Add(y{i}, d{i})"""


def count_decoder(layers, precision):
    keys, feeds, weights = 11, {"x": draw(1, 1, 64), "cos": draw(1, 1, 1, 16), "sin": draw(1, 1, 1, 16), "mask": draw(1, 1, 1, 11)}, {}
    inputs, outputs, body, x = "float[1,1,64] x, float[1,1,1,16] cos, float[1,1,1,16] sin, float[1,1,1,11] mask", "float[1,1,64] y", "", "x"
    for i in range(layers):
        for part in ("pk", "pv"):
            feeds[f"{part}{i}"] = draw(1, 2, keys - 1, 16)
            inputs += f", float[1,2,{keys - 1},16] {part}{i}"
        outputs += f", float[1,2,{keys},16] ck{i}, float[1,2,{keys},16] cv{i}"
        sizes = {"n": (64,), "m": (64,), "q": (64, 64), "k": (64, 32), "v": (64, 32), "o": (64, 64), "g": (64, 96), "u": (64, 96), "d": (96, 64)}
        weights |= {f"w{i}{name}": shape for name, shape in sizes.items()}
        body += decoder_layer(i, x)
        x = f"x{i}"
    constants = """float epsilon = {1e-5}, float one = {1}, float scale = {0.25}, int64[1] zero = {0}, int64[1] mid = {8}, int64[1] end = {16}, int64[1] axis = {3}, int64[1] two = {2},
        int64[4] heads = {1, 1, 4, 16}, int64[4] shared = {1, 1, 2, 16}, int64[5] wide = {1, 2, 2, 11, 16}, int64[4] whole = {1, 4, 11, 16}, int64[3] flat = {1, 1, 64}"""
    return run(f"m ({inputs}) => ({outputs}) <{constants}> {{ {body} y = Identity({x}) }}", feeds, weights, precision, 1e-5 if precision == "f32" else 1e-2)


@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_a_layer_of_a_decoder(precision):
    """Products for attention with a normalisation, rotations and caches, attention, a product, those of the gated unit with the other
    normalisation, and one more."""
    assert count_decoder(2, precision) - count_decoder(1, precision) == 5


def encoder_layer(i, x):
    w = f"w{i}"
    heads = "\n".join(
        f"{p}{i}p = MatMul({x}, {w}{p})  {p}{i}b = Add({p}{i}p, {w}{p}b)  {p}{i}r = Reshape({p}{i}b, heads)  {p}{i} = Transpose<perm = {perm}>({p}{i}r)"
        for p, perm in (("q", "[0, 2, 1, 3]"), ("k", "[0, 2, 3, 1]"), ("v", "[0, 2, 1, 3]"))
    )
    return f"""{heads}
        s{i}a = MatMul(q{i}, k{i})  s{i}b = Mul(s{i}a, scale)  s{i} = Softmax<axis = -1>(s{i}b)
        o{i}a = MatMul(s{i}, v{i})  o{i}b = Transpose<perm = [0, 2, 1, 3]>(o{i}a)  o{i}c = Reshape(o{i}b, flat)  o{i}d = MatMul(o{i}c, {w}o)  o{i}e = Add(o{i}d, {w}ob)
        y{i} = Add(o{i}e, {x})  n{i} = LayerNormalization(y{i}, {w}n, {w}nb)
        u{i}a = MatMul(n{i}, {w}u)  u{i}b = Add(u{i}a, {w}ub)  u{i} = Relu(u{i}b)  d{i}a = MatMul(u{i}, {w}d)  d{i}b = Add(d{i}a, {w}db)
        z{i} = Add(d{i}b, n{i})  x{i} = LayerNormalization(z{i}, {w}m, {w}mb)"""


def count_encoder(layers, precision):
    weights, body, x = {}, "", "x"
    for i in range(layers):
        sizes = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "o": (32, 32), "u": (32, 64), "d": (64, 32)}
        weights |= {f"w{i}{name}": shape for name, shape in sizes.items()}
        weights |= {f"w{i}{name}b": shape[1:] for name, shape in sizes.items()}
        weights |= {f"w{i}{name}": (32,) for name in ("n", "nb", "m", "mb")}
        body += encoder_layer(i, x)
        x = f"x{i}"
    constants = "float scale = {0.25}, int64[4] heads = {1, 20, 2, 16}, int64[3] flat = {1, 20, 32}"
    return run(f"m (float[1,20,32] x) => (float[1,20,32] y) <{constants}> {{ {body} y = Identity({x}) }}", {"x": draw(1, 20, 32)}, weights, precision, 1e-5 if precision == "f32" else 1e-2)


@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_a_layer_of_an_encoder(precision):
    """The products for attention, attention, and two times a product or two and a normalisation."""
    assert count_encoder(2, precision) - count_encoder(1, precision) == 7
