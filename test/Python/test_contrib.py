"""The operators of domain com.microsoft against numpy. Sizes are fixed where a tensor is of f16 or int8, else open: a form
that is tested for both types is tested for both kinds of sizes."""

import math

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float16])
RNG = np.random.default_rng(7)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def bytes_(*shape, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model(op, feeds, outputs, constants=(), is_open=False, domain="com.microsoft", **attributes):
    names = [name if value is not None else "" for name, value in feeds.items()]
    while not names[-1]:
        names.pop()
    feeds = {name: np.asarray(value) for name, value in feeds.items() if value is not None}
    node = helper.make_node(op, names, outputs, name="n", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(value.dtype),
                [f"{name}{d}" for d in range(value.ndim)] if is_open else value.shape,
            )
            for name, value in feeds.items()
            if name not in constants
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        [numpy_helper.from_array(feeds[name], name) for name in constants if name in feeds],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(op, feeds, wanted, constants=(), tolerance=None, valid=None, **rest):
    """Runs one node and compares its outputs by name; those that `wanted` maps to None are left out. `valid` tells
    which elements of an output are specified."""
    outputs = [f"out_{name}" if value is not None else "" for name, value in wanted.items()]
    given = {k: np.asarray(v) for k, v in feeds.items() if v is not None and k not in constants}
    types = {np.asarray(v).dtype for v in feeds.values()}
    is_open = not types & {np.dtype(np.float16), np.dtype(np.int8)}
    session = sdx.InferenceSession(model(op, feeds, outputs, constants, is_open, **rest).SerializeToString())
    results = session.run(None, given)
    for got, (name, value) in zip(results, [w for w in wanted.items() if w[1] is not None]):
        value = np.asarray(value)
        assert got.shape == value.shape
        if valid and name in valid:
            got, value = (np.where(valid[name], v, 0) for v in (got, value))
        if got.dtype.kind in "iu":
            # A tie may go either way where the reference rounds another float.
            assert np.abs(got.astype(int) - value.astype(int)).max(initial=0) <= 1
            continue
        limit = max(tolerance or 2e-5, 5e-3 if np.dtype(np.float16) in types else 0)
        scale = max(1, np.abs(value.astype(float)).max(initial=0))
        np.testing.assert_allclose(got.astype(float), value.astype(float), rtol=limit, atol=limit * scale)


def refused(why, op, feeds, outputs, error=NotImplementedError, **rest):
    with pytest.raises(error, match=why):
        sdx.InferenceSession(model(op, feeds, outputs, **rest).SerializeToString())


def wide(*values):
    return [None if v is None else v.astype(np.float64) for v in values]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))) / 2


def fast_gelu(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@DTYPES
@pytest.mark.parametrize("shape", [(3, 17), (1, 1), (2, 1, 5), (0, 4)])
def test_activations(dtype, shape):
    x, bias = floats(*shape, dtype=dtype), floats(shape[-1], dtype=dtype)
    wx, wb = wide(x, bias)
    check("Gelu", {"X": x}, {"Y": gelu(wx)})
    check("BiasGelu", {"A": x, "B": bias}, {"C": gelu(wx + wb)})
    check("FastGelu", {"X": x}, {"Y": fast_gelu(wx)})
    check("FastGelu", {"X": x, "bias": bias}, {"Y": fast_gelu(wx + wb)})
    check("QuickGelu", {"X": x}, {"Y": wx * sigmoid(1.5 * wx)}, alpha=1.5)


def layer_norm(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon)
    return (x - mean) * inverse * gamma + (0 if beta is None else beta), mean, inverse


def rms_norm(x, gamma, epsilon):
    inverse = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
    return x * inverse * gamma, inverse


@DTYPES
@pytest.mark.parametrize("skip_shape, has_bias", [((2, 3, 16), True), ((1, 3, 16), False), ((3, 16), True)])
def test_skip_layer_normalization(dtype, skip_shape, has_bias):
    x, skip, gamma, beta = (floats(*s, dtype=dtype) for s in [(2, 3, 16), skip_shape, (16,), (16,)])
    bias = floats(16, dtype=dtype) if has_bias else None
    wx, ws, wg, wb = wide(x, skip, gamma, beta)
    total = wx + ws + (bias.astype(float) if has_bias else 0)
    for given in (None, beta):
        y, mean, inverse = layer_norm(total, wg, None if given is None else wb, 1e-3)
        feeds = {"input": x, "skip": skip, "gamma": gamma, "beta": given, "bias": bias}
        wanted = {"y": y, "mean": mean, "inverse": inverse, "sum": total}
        check("SkipLayerNormalization", feeds, wanted, epsilon=1e-3)
    y, inverse = rms_norm(total, wg, 1e-3)
    feeds = {"input": x, "skip": skip, "gamma": gamma, "bias": bias}
    wanted = {"y": y, "mean": None, "inverse": inverse, "sum": total}
    check("SkipSimplifiedLayerNormalization", feeds, wanted, epsilon=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_simplified_layer_normalization_of_onnx_s_own_domain(dtype):
    x, scale = floats(2, 3, 17, dtype=dtype), floats(17, dtype=dtype)
    y, inverse = rms_norm(*wide(x, scale), 1e-5)
    check("SimplifiedLayerNormalization", {"X": x, "scale": scale}, {"Y": y, "inverse": inverse}, domain="")


@pytest.mark.parametrize("dtype, trans", [(np.float32, (1, 0)), (np.float16, (0, 1)), (np.float32, (1, 1))])
@pytest.mark.parametrize("batch", [(0, 0), (1, 0), (1, 1)])
def test_fused_matmul(dtype, trans, batch):
    a, b = floats(2, 3, 4, 5, dtype=dtype), floats(2, 3, 5, 6, dtype=dtype)
    product = 0.5 * (a.astype(float) @ b.astype(float))

    def stored(x, is_transposed, is_batched):
        if is_transposed:
            x = x.swapaxes(-1, -2)
        return np.ascontiguousarray(x.transpose(2, 0, 1, 3) if is_batched else x)

    feeds = {"A": stored(a, trans[0], batch[0]), "B": stored(b, trans[1], batch[1])}
    attributes = dict(transA=trans[0], transB=trans[1], transBatchA=batch[0], transBatchB=batch[1])
    check("FusedMatMul", feeds, {"Y": product}, alpha=0.5, **attributes)


def test_products_of_vectors_are_not_transposed():
    a, b = floats(5), floats(5, 6)
    check("FusedMatMul", {"A": a, "B": b}, {"Y": a @ b}, transA=1, tolerance=1e-4)
    check("TransposeMatMul", {"A": b, "B": a}, {"Y": b.T @ a}, transA=1, tolerance=1e-4)


ACTIVATIONS = {
    "Relu": ((), lambda x: np.maximum(x, 0)),
    "Sigmoid": ((), sigmoid),
    "Tanh": ((), np.tanh),
    "LeakyRelu": ((0.3,), lambda x: np.where(x < 0, 0.3 * x, x)),
    "HardSigmoid": ((0.3, 0.4), lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_products(activation):
    params, function = ACTIVATIONS[activation]
    a, b, c = floats(4, 5), floats(6, 5), floats(6)
    named = {f"activation_{n}": p for n, p in zip(("alpha", "beta"), params)}
    wanted = function(0.5 * (a @ b.T) + 2 * c)
    check("FusedGemm", {"A": a, "B": b, "C": c}, {"Y": wanted}, transB=1, alpha=0.5, beta=2.0, activation=activation, **named)
    x, w, bias, z = floats(1, 4, 5, 5), floats(6, 4, 1, 1), floats(6), floats(1, 6, 5, 5)
    total = np.einsum("nchw,mc->nmhw", x, w[:, :, 0, 0]) + bias[:, None, None]
    rest = {"activation_params": list(params)} if params else {}
    feeds = {"X": x, "W": w, "B": bias}
    check("FusedConv", feeds, {"Y": function(total)}, ("W", "B"), activation=activation, **rest)
    check("FusedConv", feeds | {"Z": z}, {"Y": function(total + z)}, ("W", "B"), activation=activation, **rest)


def test_convolution_that_is_clipped():
    x, w = floats(1, 2, 4, 4), floats(3, 2, 1, 1)
    total = np.einsum("nchw,mc->nmhw", x, w[:, :, 0, 0])
    wanted = {"Y": np.clip(total, -0.5, 0.5)}
    check("FusedConv", {"X": x, "W": w}, wanted, ("W",), activation="Clip", activation_params=[-0.5, 0.5])


@DTYPES
@pytest.mark.parametrize("has_segments, positions", [(False, None), (True, (2, 4)), (True, (1, 4))])
def test_embed_layer_normalization(dtype, has_segments, positions):
    ids = RNG.integers(0, 5, (2, 4)).astype(np.int32)
    segments = RNG.integers(0, 2, (2, 4)).astype(np.int32) if has_segments else None
    word, place, part = (floats(n, 8, dtype=dtype) for n in (5, 6, 2))
    gamma, beta = floats(8, dtype=dtype), floats(8, dtype=dtype)
    places = None if positions is None else RNG.integers(0, 6, positions).astype(np.int32)
    mask = RNG.integers(0, 2, (2, 4)).astype(np.int32)
    total = word.astype(float)[ids] + place.astype(float)[np.arange(4) if places is None else places]
    if has_segments:
        total = total + part.astype(float)[segments]
    y = layer_norm(total, *wide(gamma, beta), 1e-12)[0]
    feeds = {
        "ids": ids, "segments": segments, "word": word, "place": place, "part": part if has_segments else None,
        "gamma": gamma, "beta": beta, "mask": mask, "places": places,
    }  # fmt: skip
    check("EmbedLayerNormalization", feeds, {"y": y, "lengths": mask.sum(1), "sum": total}, tolerance=5e-3)
    feeds["mask"] = None
    check("EmbedLayerNormalization", feeds, {"y": y, "lengths": np.zeros(2)}, tolerance=5e-3)


def rotated(x, cosines, sines, positions, interleaved=False):
    """Of [B, heads, S, size]."""
    half = cosines.shape[1]
    c, s = (t.astype(float)[positions][:, None] for t in (cosines, sines))
    y = x.astype(float).copy()
    parts = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    a, b = (x[..., part].astype(float) for part in parts)
    y[..., parts[0]], y[..., parts[1]] = a * c - b * s, a * s + b * c
    return y


def split(x, heads):
    b, s, h = x.shape
    return x.reshape(b, s, heads, h // heads).transpose(0, 2, 1, 3)


def merge(x):
    b, n, s, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, n * d)


@DTYPES
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(dtype, interleaved):
    x, angles = floats(2, 3, 16, dtype=dtype), floats(9, 4)
    c, s = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    ids = RNG.integers(0, 9, (2, 3))
    feeds = {"x": x, "ids": ids, "c": c, "s": s}
    wanted = {"y": merge(rotated(split(x, 2), c, s, ids, interleaved))}
    check("RotaryEmbedding", feeds, wanted, interleaved=interleaved, num_heads=2)
    offset = {"y": merge(rotated(split(x, 2), c, s, np.arange(3)[None] + 4, interleaved))}
    feeds["ids"] = np.array([4])
    check("RotaryEmbedding", feeds, offset, interleaved=interleaved, num_heads=2)
    feeds.update(x=np.ascontiguousarray(split(x, 2)), ids=ids)
    check("RotaryEmbedding", feeds, {"y": split(wanted["y"], 2)}, interleaved=interleaved)
    feeds = {"x": x, "ids": ids, "c": c[:, :2], "s": s[:, :2]}
    part = {"y": merge(rotated(split(x, 2), c[:, :2], s[:, :2], ids, interleaved))}
    check("RotaryEmbedding", feeds, part, interleaved=interleaved, num_heads=2, rotary_embedding_dim=4)


def attended(q, k, v, bias=0.0, scale=None, softcap=0.0, sink=None):
    """Of [B, heads, S, size]; keys may have fewer heads."""
    q, k, v = wide(q, k, v)
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = scores + bias
    if sink is not None:
        column = np.broadcast_to(np.reshape(sink, (1, -1, 1, 1)), (*scores.shape[:3], 1))
        return softmax(np.concatenate([scores, column], -1))[..., :-1] @ v
    return softmax(scores) @ v


def causal(s, t, past=0):
    """The last query sees all keys, whatever their number."""
    seen = np.arange(t)[None] <= np.arange(s)[:, None] + past
    return np.where(seen | (np.arange(s)[:, None] == s - 1), 0, -1e30)


def padded(keep):
    return np.where(keep, 0, -10000.0)


@DTYPES
def test_multi_head_attention_forms(dtype):
    q, k, v = (floats(3, n, 8, dtype=dtype) for n in (5, 7, 7))
    bias = floats(24, dtype=dtype)
    plain = merge(attended(*(split(x, 2) for x in (q, k, v))))
    check("MultiHeadAttention", {"q": q, "k": k, "v": v}, {"y": plain}, num_heads=2)
    biased = [split(x + b, 2) for x, b in zip((q, k, v), np.split(bias, 3))]
    wanted = {"y": merge(attended(*biased, causal(5, 7), 0.3)), "k": biased[1], "v": biased[2]}
    check("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": bias}, wanted, num_heads=2, unidirectional=1, scale=0.3)
    heads = {"q": q, "k": np.ascontiguousarray(split(k, 2)), "v": np.ascontiguousarray(split(v, 2))}
    check("MultiHeadAttention", heads, {"y": plain}, num_heads=2)
    both = np.stack([k.reshape(3, 7, 2, 4), v.reshape(3, 7, 2, 4)], 3)
    check("MultiHeadAttention", {"q": q, "kv": both}, {"y": plain}, num_heads=2)
    packed = np.stack([x.reshape(3, 7, 2, 4) for x in (k, k, v)], 3)
    wanted = {"y": merge(attended(*(split(x, 2) for x in (k, k, v))))}
    check("MultiHeadAttention", {"qkv": packed}, wanted, num_heads=2)


def test_multi_head_attention_masks():
    q, k, v = (floats(3, 5, 8) for _ in range(3))
    lengths = np.array([4, 5, 2], np.int32)
    rows = (np.arange(5)[None] < lengths[:, None]).astype(np.int32)
    each = RNG.integers(0, 2, (3, 5, 5)).astype(np.int32)
    each[..., 0] = 1
    heads = [split(x, 2) for x in (q, k, v)]
    for mask, keep in ((lengths, rows[:, None, None]), (rows, rows[:, None, None]), (each, each[:, None])):
        feeds = {"q": q, "k": k, "v": v, "b": None, "mask": mask}
        check("MultiHeadAttention", feeds, {"y": merge(attended(*heads, padded(keep)))}, num_heads=2)
    for shape in ((3, 2, 5, 5), (1, 1, 5, 5)):
        extra = floats(*shape)
        feeds = {"q": q, "k": k, "v": v, "b": None, "mask": rows, "extra": extra}
        total = extra + padded(rows[:, None, None]) + causal(5, 5)
        check("MultiHeadAttention", feeds, {"y": merge(attended(*heads, total))}, num_heads=2, unidirectional=1)


@DTYPES
def test_multi_head_attention_with_a_past(dtype):
    q, k, v = (floats(3, 2, 8, dtype=dtype) for _ in range(3))
    past = [floats(3, 2, 4, 4, dtype=dtype) for _ in range(2)]
    k2, v2 = (np.concatenate([p, split(x, 2)], 2) for p, x in zip(past, (k, v)))
    feeds = {"q": q, "k": k, "v": v, "b": None, "m": None, "a": None, "pk": past[0], "pv": past[1]}
    wanted = {"y": merge(attended(split(q, 2), k2, v2, causal(2, 6, 4))), "k": k2, "v": v2}
    check("MultiHeadAttention", feeds, wanted, num_heads=2, unidirectional=1)


@DTYPES
def test_attention(dtype):
    x, w, b = floats(3, 5, 6, dtype=dtype), floats(6, 28, dtype=dtype), floats(28, dtype=dtype)
    q, k, v = np.split(x.astype(float) @ w.astype(float) + b, [8, 16], -1)
    heads = [split(y, 2) for y in (q, k, v)]
    rows = np.array([[1, 1, 1, 1, 0], [1] * 5, [0, 1, 1, 0, 0]], np.int32)
    each = RNG.integers(0, 2, (3, 5, 5)).astype(np.int32)
    each[..., 0] = 1
    ends, starts = np.array([4, 5, 3], np.int32), np.array([0, 0, 1], np.int32)
    upto = np.arange(5)[None] < ends[:, None]
    masks = [
        (None, np.ones((1, 1, 1, 5))),
        (ends, upto[:, None, None]),
        (np.concatenate([ends, starts]), rows[:, None, None]),
        (rows, rows[:, None, None]),
        (each, each[:, None]),
    ]
    for mask, keep in masks if dtype == np.float32 else masks[2:3]:
        feeds = {"x": x, "w": w, "b": b, "mask": mask}
        wanted = {"y": merge(attended(*heads, padded(keep)))}
        check("Attention", feeds, wanted, ("w", "b"), num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    past = floats(2, 3, 2, 4, 4, dtype=dtype)
    w, b = w[:, :24], b[:24]
    q, k, v = (split(y, 2) for y in np.split(x.astype(float) @ w.astype(float) + b, 3, -1))
    k, v = (np.concatenate([p, y], 2) for p, y in zip(past, (k, v)))
    feeds = {"x": x, "w": w, "b": b, "mask": None, "past": past}
    wanted = {"y": merge(attended(q, k, v, causal(5, 9, 4))), "present": np.stack([k, v])}
    check("Attention", feeds, wanted, ("w", "b"), num_heads=2, unidirectional=1)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("is_open", [False, True])
def test_attention_masks_of_other_lengths(batch, is_open):
    """Ends, or ends and starts; the third form of onnxruntime's is not supported."""
    feeds = {"x": floats(batch, 5, 8), "w": floats(8, 24), "b": floats(24)}
    for length in (3 * batch + 2, 2 * batch + 1, 3 * batch):
        feeds["mask"] = np.ones(length, np.int32)
        with pytest.raises((sdx.NotImplemented, sdx.Fail), match="Attention"):
            proto = model("Attention", feeds, ["y"], (), is_open, num_heads=2)
            sdx.InferenceSession(proto.SerializeToString()).run(None, feeds)


def group_query(dtype, batch, length, past, lengths=None, room=None, packed=False, size=8, window=0, **rest):
    """Checks one call; `lengths` are the tokens of each batch with those of this call."""
    heads, groups = 4, 2
    room = past if room is None else room
    total = past + length
    lengths = np.array([total] * batch if lengths is None else lengths, np.int32)
    q, k, v = (floats(batch, length, n * size, dtype=dtype) for n in (heads, groups, groups))
    cache = [floats(batch, groups, room, size, dtype=dtype) for _ in range(2)]
    before = np.zeros(batch, int) if past == 0 else lengths - length
    at = before[:, None] + np.arange(length)
    feeds = {
        "q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k, "v": None if packed else v,
        "pk": cache[0], "pv": cache[1], "last": lengths - 1, "total": np.array(total, np.int32),
    }  # fmt: skip
    qh, kh, vh = split(q, heads), split(k, groups), split(v, groups)
    if rest.get("do_rotary"):
        angles = floats(32, rest.pop("half", size // 2))
        feeds.update(c=np.cos(angles).astype(dtype), s=np.sin(angles).astype(dtype))
        turn = lambda x: rotated(x, feeds["c"], feeds["s"], at, rest.get("rotary_interleaved"))
        qh, kh = turn(qh), turn(kh)
    places = max(room, total)
    present = [np.zeros((batch, groups, places, size)) for _ in range(2)]
    for p, c, new in zip(present, cache, (kh, vh)):
        p[:, :, :room] = c
        for b in range(batch):
            p[b, :, before[b] : before[b] + length] = new[b]
    place = np.arange(places)
    keep = place <= at[..., None]
    if window:
        keep &= place > at[..., None] - window
        rest["local_window_size"] = window
    y = attended(qh, *present, np.where(keep, 0, -1e30)[:, None], rest.get("scale"), rest.get("softcap", 0.0))
    wanted = {"y": merge(y), "k": present[0], "v": present[1]}
    filled = (place < lengths[:, None])[:, None, :, None]
    rest["valid"] = {"k": filled, "v": filled}
    check("GroupQueryAttention", feeds, wanted, num_heads=heads, kv_num_heads=groups, **rest)


@DTYPES
def test_group_query_attention(dtype):
    group_query(dtype, 1, 1, 5, packed=True)
    group_query(dtype, 2, 4, 0, lengths=[4, 2])
    group_query(dtype, 3, 1, 5, lengths=[6, 3, 4])
    if dtype == np.float16:
        return
    group_query(dtype, 2, 1, 5, lengths=[6, 3], room=12)
    group_query(dtype, 1, 3, 5, do_rotary=1, packed=True)
    group_query(dtype, 2, 1, 5, lengths=[6, 4], do_rotary=1, rotary_interleaved=1)
    group_query(dtype, 2, 4, 0, do_rotary=1, half=2)
    group_query(dtype, 1, 1, 9, window=3)
    group_query(dtype, 2, 4, 0, softcap=2.0, scale=0.7)


def test_group_query_attention_with_sinks_and_norms():
    q, k, v, sink = floats(1, 3, 16), floats(1, 3, 8), floats(1, 3, 8), floats(4)
    feeds = {
        "q": q, "k": k, "v": v, "pk": None, "pv": None, "last": np.array([2], np.int32), "total": np.array(3, np.int32),
    }  # fmt: skip
    heads = split(q, 4), split(k, 2), split(v, 2), causal(3, 3)
    smooth = {"y": merge(attended(*heads, sink=np.zeros(4)))}
    check("GroupQueryAttention", feeds, smooth, num_heads=4, kv_num_heads=2, smooth_softmax=1)
    feeds.update(c=None, s=None, ids=None, bias=None, sink=sink)
    check("GroupQueryAttention", feeds, {"y": merge(attended(*heads, sink=sink))}, num_heads=4, kv_num_heads=2)
    qw, kw = floats(4), floats(4)
    feeds.update(sink=None, ks=None, vs=None, qw=qw, kw=kw)
    heads = rms_norm(heads[0], qw, 1e-6)[0], rms_norm(heads[1], kw, 1e-6)[0], *heads[2:]
    check("GroupQueryAttention", feeds, {"y": merge(attended(*heads))}, num_heads=4, kv_num_heads=2)


def unpacked(data, bits):
    per = 8 // bits
    parts = [(data >> (bits * i)) & (2**bits - 1) for i in range(per)]
    return np.stack(parts, -1).reshape(*data.shape[:-1], data.shape[-1] * per).astype(float)


def nbits(bits, rows, k, n, block, zeros, dtype=np.float32):
    """Feeds of a MatMulNBits, what it gives, and its attributes."""
    blocks = -(-k // block)
    a, data = floats(*rows, k, dtype=dtype), bytes_(n, blocks, block * bits // 8)
    scales, bias = floats(n, blocks, dtype=dtype) / dtype(2**bits), floats(n, dtype=dtype)
    zero, given = np.full((n, blocks), 2.0 ** (bits - 1)), None
    if zeros == "packed":
        given = bytes_(n, -(-blocks * bits // 8))
        zero = unpacked(given, bits)[:, :blocks]
    elif zeros == "floats":
        given = floats(n, blocks, dtype=dtype)
        zero = given.astype(float)
    weights = ((unpacked(data, bits) - zero[..., None]) * scales.astype(float)[..., None]).reshape(n, -1)[:, :k]
    wanted = {"Y": a.astype(float) @ weights.T + bias}
    feeds = {"A": a, "B": data, "scales": scales, "zeros": given, "order": None, "bias": bias}
    return feeds, wanted, dict(K=k, N=n, bits=bits, block_size=block)


@DTYPES
@pytest.mark.parametrize(
    "bits, k, zeros", [(2, 40, "packed"), (4, 32, None), (4, 40, "packed"), (4, 32, "floats"), (8, 40, "packed")]
)
def test_matmul_nbits(dtype, bits, k, zeros):
    feeds, wanted, attributes = nbits(bits, (2, 3), k, 5, 16, zeros, dtype)
    check("MatMulNBits", feeds, wanted, ("B", "scales", "zeros", "bias"), **attributes)


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
def test_matmul_nbits_shapes(cpu):
    """Few rows and many, columns that fill no panel, a last block that is not full; weights that are inputs of runs."""
    cases = [(4, (), 100, 70, 32, "packed"), (4, (1,), 64, 129, 16, None), (2, (3,), 72, 33, 24, "floats"), (8, (5,), 7, 64, 3, None)]
    cases += [(4, (41,), 130, 100, 128, "packed"), (2, (2, 20), 64, 31, 64, None), (8, (1,), 33, 200, 16, "packed"), (4, (0, 3), 32, 8, 32, None)]
    options = sdx.SessionOptions()
    options.cpu = cpu
    for *case, zeros in cases:
        feeds, wanted, attributes = nbits(*case, zeros)
        for constants in (("B", "scales", "zeros", "bias"), ()):
            given = {k: v for k, v in feeds.items() if v is not None and k not in constants}
            for is_open in (False, True):
                proto = model("MatMulNBits", feeds, ["Y"], constants, is_open, **attributes)
                (y,) = sdx.InferenceSession(proto.SerializeToString(), options).run(None, given)
                np.testing.assert_allclose(y, wanted["Y"], rtol=2e-5, atol=2e-5 * max(1, np.abs(wanted["Y"]).max(initial=0)))


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint4", "int4", "uint2", "int2"])
def test_dequantized_weights(kind):
    """Products with dequantised weights of a few bits read them packed, however they are scaled and laid out."""
    bits, signed = int(kind[-1]), kind[0] == "i"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    onnx_type = getattr(onnx.TensorProto, kind.upper())
    k, n = 48, 21
    # (has zero points, block or 0 for one scale a column or None for one in all, how the product takes its weights)
    cases = [(True, 16, "matmul"), (False, 0, "matmul"), (True, None, "transpose"), (True, 16, "transposed gemm"), (False, 24, "gemm"), (True, 0, "transposed gemm")]
    for has_zero, block, form in cases:
        is_transposed = "transpose" in form
        along = 1 if is_transposed else 0
        q = RNG.integers(low, high, (k, n))
        groups = (k // block if block else 1, n if block is not None else 1)
        scale, zero = floats(*groups).astype(np.float32), RNG.integers(low, high, groups)
        spread = lambda v: np.repeat(np.broadcast_to(v, (groups[0], n)), k // groups[0], 0)  # noqa: E731
        weights = (q - (spread(zero) if has_zero else 0)) * spread(scale)
        place = lambda v: v if block and not is_transposed else v.T if block else v.reshape(-1) if block == 0 else v.reshape(())  # noqa: E731
        tensors = [
            helper.make_tensor("q", onnx_type, q.T.shape if is_transposed else q.shape, (q.T if is_transposed else q).flatten().tolist()),
            numpy_helper.from_array(np.ascontiguousarray(place(scale)), "s"),
        ]
        if has_zero:
            tensors.append(helper.make_tensor("z", onnx_type, place(zero).shape, place(zero).flatten().tolist()))
        bias, x = floats(n).astype(np.float32), floats(3, k).astype(np.float32)
        axis = along if block else 1 - along
        nodes = [helper.make_node("DequantizeLinear", ["q", "s"] + ["z"] * has_zero, ["w"], axis=axis, block_size=block or 0)]
        if form == "transpose":
            nodes.append(helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]))
        if "gemm" in form:
            tensors.append(numpy_helper.from_array(bias, "c"))
            nodes.append(helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=int(is_transposed)))
        else:
            nodes.append(helper.make_node("MatMul", ["x", "t" if is_transposed else "w"], ["y"]))
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["m", k])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            tensors,
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13).SerializeToString()
        assert "sdx.dequant_matmul" in sdx.compile(proto, to="linalg"), (has_zero, block, form)
        (y,) = sdx.InferenceSession(proto).run(None, {"x": x})
        want = x @ weights + (bias if "gemm" in form else 0)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


def test_matmul_nbits_refusals():
    feeds, _, attributes = nbits(4, (2,), 32, 5, 16, "packed")
    constants = ("B", "scales", "zeros")
    for key, value, why in [("bits", 3, "3 bits"), ("K", 33, "K says"), ("N", 6, "other sizes"), ("block_size", 32, "other sizes"), ("N", 0, "cannot be")]:
        refused(why, "MatMulNBits", feeds, ["Y"], (sdx.NotImplemented, sdx.Fail), constants=constants, **{**attributes, key: value})
    refused("g_idx", "MatMulNBits", {**feeds, "order": np.zeros(32, np.int32)}, ["Y"], constants=constants, **attributes)


def test_gather_block_quantized():
    data, scales, zeros = bytes_(6, 16), floats(6, 2), bytes_(6, 1)
    rows = np.array([[0, 3], [5, -1]])
    numbers, zero = unpacked(data, 4), unpacked(zeros, 4)
    values = (numbers - zero.repeat(16, 1)) * scales.repeat(16, 1)
    feeds = {"data": data, "rows": rows, "scales": scales, "zeros": zeros}
    check("GatherBlockQuantized", feeds, {"y": values[rows]}, ("data", "scales", "zeros"), block_size=16)
    values = (data.astype(float) - 128) * scales.repeat(8, 1)
    feeds = {"data": data, "rows": np.array(2, np.int32), "scales": scales}
    check("GatherBlockQuantized", feeds, {"y": values[2]}, ("data",), block_size=8, bits=8, quantize_axis=-1)


def quantized(x, scale, zero, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)


BYTES = pytest.mark.parametrize("dtype", [np.uint8, np.int8])
SCALE = np.float32(0.02)


@pytest.mark.parametrize(
    "dtype, weights, is_column", [(np.uint8, np.uint8, True), (np.int8, np.int8, False), (np.uint8, np.int8, True)]
)
def test_integer_products(dtype, weights, is_column):
    a, b = bytes_(2, 4, 5, dtype=dtype), bytes_(5, 6, dtype=weights)
    az, bz = np.array(3, dtype), bytes_(6, dtype=weights) if is_column else np.array(5, weights)
    bs = np.abs(floats(6)) if is_column else np.array(0.1, np.float32)
    bias = floats(6)
    sums = (a.astype(int) - 3) @ (b.astype(int) - bz.astype(int))
    feeds = {"A": a, "B": b, "as": SCALE, "bs": bs, "az": az, "bz": bz, "bias": bias}
    constants = ("B", "bs", "bz", "bias")
    check("MatMulIntegerToFloat", feeds, {"Y": sums * SCALE * bs + bias}, constants, tolerance=1e-4)
    c = RNG.integers(-1000, 1000, 6).astype(np.int32)
    feeds = {"A": a[0].T, "as": SCALE, "az": az, "B": b.T, "bs": bs, "bz": bz, "C": c}
    y = (sums[0] + c) * SCALE * bs * 0.5
    check("QGemm", feeds, {"Y": y}, ("B",), tolerance=1e-4, transA=1, transB=1, alpha=0.5)
    feeds.update(ys=np.float32(0.3), yz=np.array(7, dtype))
    check("QGemm", feeds, {"Y": quantized(y, 0.3, 7, dtype)}, ("B",), transA=1, transB=1, alpha=0.5)
    x = floats(2, 4, 5)
    scale = np.float32((max(x.max(), 0) - min(x.min(), 0)) / 255)
    zero = np.clip(np.rint(-min(x.min(), 0) / scale), 0, 255)
    sums = (quantized(x, scale, zero).astype(int) - int(zero)) @ (b.astype(int) - bz.astype(int))
    feeds = {"A": x, "B": b, "bs": bs, "bz": bz, "bias": bias}
    check("DynamicQuantizeMatMul", feeds, {"Y": sums * scale * bs + bias}, ("B", "bs", "bz"), tolerance=1e-3)


@BYTES
@pytest.mark.parametrize("has_zeros", [False, True])
def test_quantized_elementwise(dtype, has_zeros):
    a, b = bytes_(2, 3, 7, dtype=dtype), bytes_(3, 7, dtype=dtype)
    z = [int(n) if has_zeros else 0 for n in RNG.integers(0, 100, 3)]
    az, bz, cz = (np.array(n, dtype) if has_zeros else None for n in z)
    wa, wb = (a.astype(float) - z[0]) * 0.03, (b.astype(float) - z[1]) * 0.05
    scales = [np.float32(s) for s in (0.03, 0.05, 0.09)]
    feeds = {"A": a, "as": scales[0], "az": az, "B": b, "bs": scales[1], "bz": bz, "cs": scales[2], "cz": cz}
    check("QLinearAdd", feeds, {"C": quantized(wa + wb, 0.09, z[2], dtype)})
    check("QLinearMul", feeds, {"C": quantized(wa * wb, 0.09, z[2], dtype)})
    feeds = {"X": a, "xs": scales[0], "xz": az, "ys": np.float32(0.01), "yz": cz}
    check("QLinearSigmoid", feeds, {"Y": quantized(sigmoid(wa), 0.01, z[2], dtype)})
    leaky = np.where(wa < 0, 0.1 * wa, wa)
    check("QLinearLeakyRelu", feeds, {"Y": quantized(leaky, 0.01, z[2], dtype)}, alpha=0.1)


@BYTES
def test_quantized_parts_and_pools(dtype):
    zero = np.array(5, dtype)
    x = bytes_(2, 4, 6, 6, dtype=dtype)
    real = (x.astype(float) - 5) * 0.03
    feeds = {"ys": SCALE, "yz": zero, "x0": x, "s0": np.float32(0.03), "z0": zero, "x1": x, "s1": SCALE, "z1": zero}
    parts = np.concatenate([real, (x.astype(float) - 5) * 0.02], 1)
    check("QLinearConcat", feeds, {"Y": quantized(parts, 0.02, 5, dtype)}, axis=1)
    pooled = real.reshape(2, 4, 3, 2, 3, 2).mean((3, 5))
    whole = real.mean((2, 3), keepdims=True)
    for last in (0, 1):
        order = (lambda v: np.ascontiguousarray(v.transpose(0, 2, 3, 1))) if last else (lambda v: v)
        feeds = {"X": order(x), "xs": np.float32(0.03), "xz": zero, "ys": SCALE, "yz": zero}
        wanted = {"Y": quantized(order(pooled), 0.02, 5, dtype)}
        check("QLinearAveragePool", feeds, wanted, kernel_shape=[2, 2], strides=[2, 2], channels_last=last)
        check("QLinearGlobalAveragePool", feeds, {"Y": quantized(order(whole), 0.02, 5, dtype)}, channels_last=last)
    lowest = np.iinfo(dtype).min
    feeds = {"X": x, "xs": np.float32(0.03), "xz": zero, "ys": np.float32(1 / 256), "yz": np.array(lowest, dtype)}
    new = quantized(softmax(real, 1), 1 / 256, lowest, dtype)
    old = quantized(softmax(real.reshape(8, 36)).reshape(x.shape), 1 / 256, lowest, dtype)
    check("QLinearSoftmax", feeds, {"Y": new}, opset=13, axis=1)
    check("QLinearSoftmax", feeds, {"Y": old}, opset=12, axis=2)
    bare = quantized(softmax(x.astype(float) * 0.03, 1), 1 / 256, lowest, dtype)
    check("QLinearSoftmax", feeds | {"xz": None}, {"Y": bare}, opset=13, axis=1)


@pytest.mark.parametrize("is_column", [False, True])
def test_quantized_attention(is_column):
    x, w, bias = bytes_(3, 5, 6), bytes_(6, 24, dtype=np.int8), floats(24)
    scale = np.abs(floats(24)) * np.float32(0.02) if is_column else np.float32(0.02)
    zero = bytes_(24, dtype=np.int8) if is_column else np.array(4, np.int8)
    sums = (x.astype(int) - 9) @ (w.astype(int) - zero.astype(int))
    q, k, v = (split(y, 2) for y in np.split(sums * scale * 0.01 + bias, 3, -1))
    lengths = np.array([4, 5, 2], np.int32)
    keep = np.arange(5)[None] < lengths[:, None]
    feeds = {
        "x": x, "w": w, "bias": bias, "xs": np.float32(0.01), "ws": scale, "mask": lengths,
        "xz": np.array(9, np.uint8), "wz": zero,
    }  # fmt: skip
    wanted = {"y": merge(attended(q, k, v, padded(keep[:, None, None])))}
    check("QAttention", feeds, wanted, ("w", "ws", "wz", "bias"), tolerance=1e-3, num_heads=2)


def test_quantization_to_short_integers():
    x = floats(3, 4)
    check("QuantizeLinear", {"x": x, "s": SCALE, "z": np.array(7, np.int16)}, {"y": quantized(x, SCALE, 7, np.int16)})
    q, s = bytes_(3, 4, dtype=np.uint16), floats(4)
    check("DequantizeLinear", {"x": q, "s": s}, {"y": q * s}, axis=1)


@pytest.mark.parametrize("normalize", [0, 1])
def test_mixture_of_experts(normalize):
    x, logits = floats(2, 3, 8), floats(6, 4)
    w1, b1, w2, b2 = (0.3 * floats(*s) for s in [(4, 12, 8), (4, 12), (4, 8, 12), (4, 8)])
    rows = x.reshape(6, 8)
    inner = np.maximum(np.einsum("th,eih->eti", rows, w1) + b1[:, None], 0)
    each = np.einsum("eti,ehi->teh", inner, w2) + b2
    share = softmax(logits)
    share[share < np.sort(share, -1)[:, -2:-1]] = 0
    if normalize:
        share = share / share.sum(-1, keepdims=True)
    feeds = {"x": x, "r": logits, "w1": w1, "b1": b1, "w2": w2, "b2": b2}
    wanted = {"y": (each * share[..., None]).sum(1).reshape(x.shape)}
    check("MoE", feeds, wanted, k=2, normalize_routing_weights=normalize, tolerance=1e-4)


@pytest.mark.parametrize("rows", [1, 5])
def test_experts_that_no_row_takes_are_not_computed(rows):
    x, logits = floats(rows, 8), floats(rows, 4)
    logits[:, 2] = -9
    w1, w2 = 0.3 * floats(4, 12, 8), 0.3 * floats(4, 8, 12)
    share = softmax(logits)
    share[share < np.sort(share, -1)[:, -2:-1]] = 0
    each = np.einsum("eti,ehi->teh", np.maximum(np.einsum("th,eih->eti", x, w1), 0), w2)
    w1[2] = np.nan
    feeds = {"x": x, "r": logits, "w1": w1, "b1": None, "w2": w2}
    check("MoE", feeds, {"y": (each * share[..., None]).sum(1)}, ["w1", "w2"], k=2, tolerance=1e-4)


def test_what_a_body_does_not_honour_is_refused_by_name():
    x = floats(1, 2, 8)
    feeds = {"x": x, "ids": np.array([0]), "c": floats(4, 2), "s": floats(4, 2)}
    refused("is_packed_batching", "RotaryEmbedding", feeds, ["y"], num_heads=2, is_packed_batching=1)
    feeds = {"x": floats(2, 2), "w": floats(2, 2)}
    refused("activation 'Foo'", "FusedGemm", feeds, ["y"], activation="Foo")
    refused("Rfft of domain .com.microsoft.", "Rfft", {"x": x}, ["y"])


def test_a_model_s_own_function_wins():
    x = floats(2, 3)
    proto = model("Gelu", {"X": x}, ["Y"])
    body = [helper.make_node("Neg", ["X"], ["Y"])]
    function = helper.make_function("com.microsoft", "Gelu", ["X"], ["Y"], body, [helper.make_opsetid("", 17)])
    proto.functions.append(function)
    (y,) = sdx.InferenceSession(proto.SerializeToString()).run(None, {"X": x})
    np.testing.assert_array_equal(y, -x)


def test_nothing_at_all():
    """Of no indices, no rows and no tokens nothing is made, of the right shape."""
    data, scales = bytes_(3, 24), floats(3, 3)
    wanted = {"y": np.zeros((0, 48), np.float32)}
    feeds = {"data": data, "at": np.zeros(0, np.int32), "scales": scales}
    check("GatherBlockQuantized", feeds, wanted, ("data",), block_size=16, quantize_axis=1)
    fixed = feeds | {"scales": scales.astype(np.float16)}
    check("GatherBlockQuantized", fixed, wanted, ("data",), block_size=16, quantize_axis=1)
    for dtype in (np.float32, np.float16):
        q, k = (np.zeros(s, dtype) for s in [(2, 0, 8), (2, 3, 8)])
        check("MultiHeadAttention", {"q": q, "k": k, "v": k}, {"y": q}, num_heads=2)
