"""Operators of com.microsoft."""

import numpy as np
from onnx import TensorProto, helper

from references import HALF, Refused

MS = "com.microsoft"
F32 = np.dtype(np.float32)
TYPES = [F32, F32, F32, HALF]
BYTES = [np.dtype(np.int8), np.dtype(np.uint8)]


def some(g, dtype, shape, **limits):
    return g.new(dtype, shape, const=0.3, **limits)


def finite(*arrays):
    """And of a size that half precision holds through a few products."""
    return all(a.dtype.kind != "f" or bool((np.abs(a.astype(float)) < 50).all()) for a in arrays)


def node(g, op, inputs, outputs=1, **attributes):
    return g.emit(op, inputs, outputs=outputs, domain=MS, valid=attributes.pop("valid", finite), **attributes)


def activation(g):
    x = g.value(g.pick(TYPES), low=1)
    op = g.pick(["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
    if op == "QuickGelu":
        return node(g, op, [x], alpha=g.pick([None, 1.0, 1.5]))
    if op == "Gelu":
        return node(g, op, [x])
    bias = some(g, x.dtype, x.shape[-1:]) if op == "BiasGelu" or g.maybe() else None
    node(g, op, [x, bias])


def matmul(g):
    """FusedMatMul of transposed operands."""
    dtype = g.pick([F32, F32, HALF, np.float64])
    rank = g.pick([2, 2, 3, 4])
    batch, (m, k, n) = g.shape(rank - 2), (g.size() for _ in range(3))
    if np.prod([*batch, m, k, n], dtype=float) > 1e6:
        raise Refused("large")
    ta, tb, ba, bb = g.int(0, 1), g.int(0, 1), 0, 0
    if rank > 2 and g.maybe(0.3):
        ba, bb = g.int(0, 1), g.int(0, 1)

    def operand(rows, columns, turned, moved):
        if moved:
            shape = (rows, *batch, columns) if not turned else (columns, *batch, rows)
            if turned:  # the batch lies between: [k, batch, m] as its transposed
                shape = (columns, *batch, rows)
            return some(g, dtype, shape)
        return some(g, dtype, (*batch, *((columns, rows) if turned else (rows, columns))))

    node(g, "FusedMatMul", [operand(m, k, ta, ba), operand(k, n, tb, bb)], alpha=g.pick([None, 0.5, -2.0]), transA=ta, transB=tb,
         transBatchA=ba, transBatchB=bb)  # fmt: skip


def transposed(g):
    """TransposeMatMul."""
    ta, tb, batch = g.int(0, 1), g.int(0, 1), g.shape(g.int(0, 2))
    m, k, n = (g.size() for _ in range(3))
    if np.prod([*batch, m, k, n], dtype=float) > 1e6:
        raise Refused("large")
    a, b = some(g, F32, (*batch, *((k, m) if ta else (m, k)))), some(g, F32, (*batch, *((n, k) if tb else (k, n))))
    node(g, "TransposeMatMul", [a, b], alpha=g.pick([None, 0.5, -2.0]), transA=ta, transB=tb)


def simplified(g):
    """SimplifiedLayerNormalization, which onnxruntime's transformers have in ONNX's own domain."""
    x = g.value(g.pick(TYPES), low=1, test=lambda v: 0 not in v.shape)
    axis = g.pick([None, -1, g.int(-x.rank, x.rank - 1)])
    scale = some(g, x.dtype, x.shape[-1 if axis is None else axis :])
    g.emit("SimplifiedLayerNormalization", [x, scale], foreign=True, axis=axis, epsilon=g.pick([None, 1e-3]), valid=finite)


def gemm(g):
    m, k, n = (g.size() for _ in range(3))
    ta, tb = g.int(0, 1), g.int(0, 1)
    a, b = some(g, F32, (k, m) if ta else (m, k)), some(g, F32, (n, k) if tb else (k, n))
    c = some(g, F32, g.broadcast((m, n))) if g.maybe(0.6) else None
    kind = g.pick([None, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"])
    more = {"activation_alpha": 0.2} if kind in ("LeakyRelu", "HardSigmoid") else {}
    more |= {"activation_beta": 0.5} if kind == "HardSigmoid" else {}
    node(g, "FusedGemm", [a, b, c], transA=ta, transB=tb, alpha=g.pick([None, 0.5]), beta=g.pick([None, 2.0]), activation=kind,
         valid=lambda *arrays: finite(*arrays) and 0 not in arrays[0].shape, **more)  # fmt: skip  (of no depth onnxruntime forgets beta)


def conv(g):
    channels, spatial = g.int(1, 6), g.int(1, 2)
    x = some(g, F32, (g.int(1, 2), channels, *(g.int(3, 12) for _ in range(spatial))))
    groups = g.pick([1, channels])
    kernel = [g.int(1, 3) for _ in range(spatial)]
    w = some(g, F32, (groups * g.int(1, 4), channels // groups, *kernel))
    b = some(g, F32, (w.shape[0],)) if g.maybe() else None
    pads = [g.int(0, k - 1) for k in kernel] * 2
    strides = [g.int(1, 2) for _ in kernel]
    sizes = [(s + 2 * p - k) // t + 1 for s, p, k, t in zip(x.shape[2:], pads, kernel, strides)]
    z = some(g, F32, (x.shape[0], w.shape[0], *sizes)) if g.maybe(0.4) else None
    kind, params = g.pick([(None, None), ("Relu", None), ("Clip", [0.0, 1.0]), ("LeakyRelu", [0.2]), ("Tanh", None), ("Sigmoid", None),
                           ("HardSigmoid", [0.2, 0.5])])  # fmt: skip
    node(g, "FusedConv", [x, w, b, z], kernel_shape=kernel, pads=pads, strides=strides, group=groups, activation=kind, activation_params=params)


def skip_norm(g):
    simple = g.maybe()
    x = g.value(g.pick(TYPES), rank=g.pick([2, 3, 3]))
    if not x.shape[-1]:
        raise Refused("no row")
    skip = some(g, x.dtype, x.shape if g.maybe(0.7) or x.rank < 3 else g.pick([(1, *x.shape[1:]), x.shape[1:]]))
    width = x.shape[-1:]
    gamma, beta, bias = (some(g, x.dtype, width) for _ in range(3))
    inputs = [x, skip, gamma] + ([] if simple else [beta if g.maybe() else None]) + [bias if g.maybe() else None]
    if x.shape[-1] < 2:
        raise Refused("no variance")
    outputs = [True, False, False, True] if g.maybe() else 1
    node(g, "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization", inputs, outputs, epsilon=g.pick([None, 1e-3]))


def embed(g):
    batch, length, hidden = g.int(1, 3), g.int(1, 6), g.pick([4, 8, 16])
    ids = g.hold(g.rng.integers(0, 9, (batch, length)).astype(np.int32), 0.2, keep=True)
    segments = g.hold(g.rng.integers(0, 2, (batch, length)).astype(np.int32), 0.2, keep=True) if g.maybe(0.7) else None
    words, positions, kinds = (some(g, F32, (n, hidden)) for n in (9, 8, 2))
    gamma, beta = some(g, F32, (hidden,)), some(g, F32, (hidden,))
    mask = g.hold((g.rng.random((batch, length)) < 0.8).astype(np.int32), 0.2, keep=True) if g.maybe() else None
    places = g.hold(g.rng.integers(0, 8, (batch, length)).astype(np.int32), 0.2, keep=True) if g.maybe(0.4) else None
    node(g, "EmbedLayerNormalization", [ids, segments, words, positions, kinds if segments else None, gamma, beta, mask, places],
         [True, True, g.maybe()] if mask else 1, epsilon=1e-5, mask_index_type=g.pick([None, 0, 1]) if mask else None)  # fmt: skip


def rotary(g):
    batch, heads, length, size = g.int(1, 2), g.int(1, 3), g.int(1, 6), g.pick([4, 8, 16])
    flat, most = g.maybe(0.6), 12
    dtype = g.pick(TYPES)
    x = some(g, dtype, (batch, length, heads * size) if flat else (batch, heads, length, size))
    rotated = size // 2 if g.maybe(0.3) else 0
    angles = g.rng.uniform(-3, 3, (most, (rotated or size) // 2))
    cos, sin = (g.hold(f(angles).astype(dtype), 0.7, keep=True) for f in (np.cos, np.sin))
    at = np.array([g.int(0, most - length)]) if g.maybe() else g.rng.integers(0, most, (batch, length))
    needs = rotated or flat and g.maybe()
    node(g, "RotaryEmbedding", [x, g.hold(at.astype(np.int64), 0.3, keep=True), cos, sin], interleaved=g.int(0, 1),
         num_heads=heads if needs else None, rotary_embedding_dim=rotated or None)  # fmt: skip


def gather_blocks(g):
    kind = g.pick([TensorProto.INT4, TensorProto.UINT4, TensorProto.UINT8])
    block, rows, columns = 16, g.int(1, 6), 16 * g.int(1, 3)
    bits = 4
    blocks = columns // block
    low, high = (-8, 7) if kind == TensorProto.INT4 else (0, 15)
    array = g.rng.integers(low, high + 1, (rows, columns))
    zeros = g.rng.integers(low, high + 1, (rows, blocks))
    at = g.hold(g.rng.integers(0, rows, g.shape(g.int(0, 2))).astype(g.pick([np.int64, np.int32])), 0.3, keep=True)
    scales = some(g, g.pick([F32, F32, HALF]), (rows, blocks))
    with_zeros = g.maybe()
    axis = g.pick([None, 0])
    if kind == TensorProto.UINT8:
        if with_zeros and blocks % 2:
            raise Refused("half a byte")
        packed = (array[:, ::2] | array[:, 1::2] << 4).astype(np.uint8)
        zero = g.hold((zeros[:, ::2] | zeros[:, 1::2] << 4).astype(np.uint8), 1.0) if with_zeros else None
        return node(g, "GatherBlockQuantized", [g.hold(packed, 1.0), at, scales, zero], block_size=block, bits=bits, gather_axis=axis, quantize_axis=1)
    # Nibbles are constants of the step: no binding takes them.
    raw = [helper.make_tensor("t", kind, a.shape, a.reshape(-1).tolist()) for a in (array, zeros)]
    g.count += 3
    names = [f"v{g.count - i}" for i in range(3)]
    nodes = [helper.make_node("Constant", [], [name], value=t) for name, t in zip(names, raw)]
    inputs = [names[0], at.name, scales.name] + [names[1]] * with_zeros
    nodes.append(helper.make_node("GatherBlockQuantized", inputs, [names[2]], domain=MS, block_size=block, gather_axis=axis or 0, quantize_axis=1))
    if g.opset < 21:
        raise Refused("nibbles")
    g.add(nodes if with_zeros else [nodes[0], nodes[2]], None, [names[2]])


def nbits(g):
    rows, k, n, block = g.int(1, 5), g.pick([16, 32, 40, 64]), g.int(1, 9), g.pick([16, 32])
    bits = g.pick([4, 4, 8, 2])
    blocks, per = -(-k // block), 8 // bits
    a = some(g, F32, (*g.shape(g.int(0, 1), low=1), rows, k))
    b = g.hold(g.rng.integers(0, 256, (n, blocks, block // per)).astype(np.uint8), 1.0)
    scales = g.hold(g.data(F32, (n, blocks), low=0.01, high=0.1), 1.0)
    zeros = None
    if g.maybe():
        zeros = g.hold(g.rng.integers(0, 256, (n, -(-blocks // per))).astype(np.uint8), 1.0)
    bias = some(g, F32, (n,)) if g.maybe(0.3) else None
    node(g, "MatMulNBits", [a, b, scales, zeros, None, bias], K=k, N=n, bits=bits, block_size=block)


# ---------------------------------------------------------------- quantised


def scale(g):
    return g.hold(np.array(g.rng.uniform(0.01, 0.1), np.float32), 0.8, keep=True)


def zero(g, dtype, shape=()):
    return g.hold(g.data(dtype, shape, low=0, high=20), 0.8, keep=True)


def quantised(g, dtype, shape):
    """Signed bytes are of 7 bits: without VNNI onnxruntime adds products of two by unsigned ones in 16 bits."""
    info = np.iinfo(dtype)
    share = 2 if dtype == np.int8 else 1
    return g.hold(g.rng.integers(info.min // share, (info.max + 1) // share, shape).astype(dtype), 0.2)


def qbinary(g):
    dtype, shape = g.pick(BYTES), g.shape(low=1)
    a, b = quantised(g, dtype, shape), quantised(g, dtype, g.broadcast(shape))
    node(g, g.pick(["QLinearAdd", "QLinearMul"]), [a, scale(g), zero(g, dtype), b, scale(g), zero(g, dtype), scale(g), zero(g, dtype)])


def qunary(g):
    dtype = g.pick(BYTES)
    x = quantised(g, dtype, g.shape(low=1))
    op = g.pick(["QLinearSigmoid", "QLinearLeakyRelu"])
    node(g, op, [x, scale(g), zero(g, dtype), scale(g), zero(g, dtype)], alpha=g.pick([0.2, 0.01]) if op == "QLinearLeakyRelu" else None)


def qconcat(g):
    dtype, shape = g.pick(BYTES), list(g.shape(low=1, high=3))
    axis, inputs = g.int(0, len(shape) - 1), []
    for _ in range(g.int(1, 4)):
        shape[axis] = g.int(1, 5)
        inputs += [quantised(g, dtype, shape), scale(g), zero(g, dtype)]
    node(g, "QLinearConcat", [scale(g), zero(g, dtype), *inputs], axis=axis)


def qpool(g):
    dtype, last = g.pick(BYTES), g.int(0, 1)
    sizes = [g.int(4, 9), g.int(4, 9)]
    x = quantised(g, dtype, (g.int(1, 2), *sizes, g.int(1, 5)) if last else (g.int(1, 2), g.int(1, 5), *sizes))
    args = [x, scale(g), zero(g, dtype), scale(g), zero(g, dtype)]
    if g.maybe():
        return node(g, "QLinearGlobalAveragePool", args, channels_last=last)
    kernel = [g.int(1, 3), g.int(1, 3)]

    def fits(x, *_):
        """Where no window fits ONNX has an empty result, onnxruntime one of a window."""
        return all(size >= k for size, k in zip(x.shape[1:] if last else x.shape[2:], kernel))

    node(g, "QLinearAveragePool", args, valid=fits, kernel_shape=kernel, strides=[g.int(1, 2)] * 2, pads=[g.int(0, k - 1) for k in kernel] * 2,
         count_include_pad=g.int(0, 1), channels_last=last)  # fmt: skip


def qsoftmax(g):
    dtype = g.pick(BYTES)
    x = quantised(g, dtype, g.shape(low=1, high=3))
    axis = g.int(-x.rank, x.rank - 1)
    out = g.hold(np.array(1 / 255, np.float32), 1.0, keep=True)
    node(g, "QLinearSoftmax", [x, scale(g), zero(g, dtype), out, g.hold(np.array(np.iinfo(dtype).min, dtype), 1.0, keep=True)], axis=axis, opset=g.pick([12, 13]),
         valid=lambda x, *_: x.shape[axis] > 1)  # fmt: skip  (of one number onnxruntime makes 0)


def qmatmul(g):
    """MatMulIntegerToFloat and DynamicQuantizeMatMul."""
    m, k, n = g.int(1, 9), g.size() or 1, g.int(1, 17)
    b_type = g.pick(BYTES)
    wide = g.maybe()
    b, b_scale = quantised(g, b_type, (k, n)), g.hold(g.data(F32, (n,) if wide else (), low=0.01, high=0.1), 0.8, keep=True)
    b_zero = zero(g, b_type, (n,) if wide else ()) if g.maybe() else None
    bias = some(g, F32, (n,)) if g.maybe() else None
    if g.maybe():
        return node(g, "DynamicQuantizeMatMul", [some(g, F32, (m, k)), b, b_scale, b_zero, bias])
    a_type = g.pick(BYTES)
    node(g, "MatMulIntegerToFloat", [quantised(g, a_type, (m, k)), b, scale(g), b_scale, zero(g, a_type) if g.maybe() else None, b_zero, bias])


def qgemm(g):
    m, k, n = g.int(1, 9), g.int(1, 33), g.int(1, 17)
    at, bt, ta, tb = g.pick(BYTES), g.pick(BYTES), g.int(0, 1), g.int(0, 1)
    a, b = quantised(g, at, (k, m) if ta else (m, k)), quantised(g, bt, (n, k) if tb else (k, n))
    c = g.hold(g.data(np.int32, g.broadcast((m, n)), low=-200, high=200), 0.5) if g.maybe() else None
    out = [scale(g), zero(g, at)] if g.maybe() else []
    node(g, "QGemm", [a, scale(g), zero(g, at), b, scale(g), zero(g, bt), c, *out], transA=ta, transB=tb, alpha=g.pick([None, 0.5]))


def quantise(g):
    if g.maybe():
        x = g.value(F32, low=1)
        dtype = g.pick([*BYTES, np.dtype(np.int16), np.dtype(np.uint16)])
        return node(g, "QuantizeLinear", [x, scale(g), zero(g, dtype)])
    dtype = g.pick([*BYTES, np.dtype(np.int16), np.dtype(np.uint16)])
    node(g, "DequantizeLinear", [quantised(g, dtype, g.shape(low=1)), scale(g), zero(g, dtype)])


# ---------------------------------------------------------------- attention


def lengths(g, batch, most):
    return g.rng.integers(1, most + 1, (batch,)).astype(np.int32)


def attention(g):
    batch, length, heads, size = g.int(1, 3), g.int(1, 6), g.int(1, 3), g.pick([2, 4, 8])
    hidden, width = heads * size, g.int(1, 9)
    x, w = some(g, F32, (batch, length, width)), some(g, F32, (width, 3 * hidden))
    bias = some(g, F32, (3 * hidden,))
    past = g.int(0, 4) if g.maybe(0.3) else None
    total = length + (past or 0)
    mask = None
    if g.maybe(0.5):
        mask = g.pick([lengths(g, batch, total), (g.rng.random((batch, total)) < 0.8).astype(np.int32), (g.rng.random((batch, length, total)) < 0.8).astype(np.int32)])
        mask.reshape(batch, -1)[:, 0] = 1
        mask = g.hold(mask, 0.2, keep=True)
    cache = some(g, F32, (2, batch, heads, past, size)) if past is not None else None
    extra = some(g, F32, (g.pick([1, batch]), heads, length, total)) if g.maybe(0.3) else None
    node(g, "Attention", [x, w, bias, mask, cache, extra], [True, True] if past is not None else 1, num_heads=heads, unidirectional=g.int(0, 1),
         scale=g.pick([None, 0.3]))  # fmt: skip


def multi_head(g):
    batch, length, heads, size = g.int(1, 3), g.int(1, 6), g.int(1, 3), g.pick([4, 8])
    hidden, keys = heads * size, g.pick([length, g.int(1, 9)])
    form = g.pick(["plain", "plain", "packed kv", "packed qkv", "cross"])
    q = some(g, F32, (batch, length, hidden))
    k = v = None
    if form == "plain":
        k, v = some(g, F32, (batch, keys, hidden)), some(g, F32, (batch, keys, hidden))
    elif form == "packed kv":
        k = some(g, F32, (batch, keys, heads, 2, size))
    elif form == "packed qkv":
        q, keys = some(g, F32, (batch, length, heads, 3, size)), length
    else:
        k, v = some(g, F32, (batch, heads, keys, size)), some(g, F32, (batch, heads, keys, size))
    bias = some(g, F32, (3 * hidden,)) if g.maybe(0.3) and form in ("plain", "packed qkv") else None
    past = g.int(0, 4) if form == "plain" and g.maybe(0.3) else None
    total = keys + (past or 0)
    mask = None
    if g.maybe(0.4):
        mask = g.pick([lengths(g, batch, total), (g.rng.random((batch, total)) < 0.8).astype(np.int32)])
        mask.reshape(batch, -1)[:, 0] = 1
        mask = g.hold(mask, 0.2, keep=True)
    extra = some(g, F32, (g.pick([1, batch]), g.pick([1, heads]), length, total)) if g.maybe(0.3) else None
    caches = [some(g, F32, (batch, heads, past, size)) for _ in range(2)] if past is not None else [None, None]
    node(g, "MultiHeadAttention", [q, k, v, bias, mask, extra, *caches], [True] * 3 if past is not None else 1, num_heads=heads, scale=g.pick([None, 0.3]),
         unidirectional=g.pick([None, 0, 1]))  # fmt: skip


def grouped(g):
    batch, size, groups = g.int(1, 3), 16, g.int(1, 2)
    heads = groups * g.int(1, 3)
    prompt = g.maybe()
    length = g.int(1, 6) if prompt else 1
    past = 0 if prompt else g.int(1, 6)
    most = length + past
    q = some(g, F32, (batch, length, heads * size))
    k, v = (some(g, F32, (batch, length, groups * size)) for _ in range(2))
    caches = [some(g, F32, (batch, groups, past, size)) for _ in range(2)] if past or g.maybe(0.3) else [None, None]
    lens = np.full(batch, most - 1, np.int32)
    if not prompt:
        lens = g.rng.integers(0, most, (batch,)).astype(np.int32)
    lens, total = g.hold(lens, 0.1, keep=True), g.hold(np.array(most, np.int32), 0.5, keep=True)
    angles = g.rng.uniform(-3, 3, (16, size // 2))
    tables = [g.hold(f(angles).astype(np.float32), 0.8, keep=True) for f in (np.cos, np.sin)] if g.maybe() else [None, None]
    quantized = {}
    if bits := g.pick([None, None, 8, 4]):
        dtype, numbers = (np.int8, (-128, 128)) if bits == 8 else (np.uint8, (0, 256))
        held = (g.rng.integers(*numbers, (batch, groups, past, size * bits // 8)).astype(dtype) for _ in range(2))
        caches = [g.hold(cache, 0.2, keep=True) for cache in held]
        kind = g.pick(["PER_TENSOR", "PER_CHANNEL"])
        shape = (1,) if kind == "PER_TENSOR" else (1, groups, 1, size)
        scales = [g.hold((g.rng.uniform(1, 3, shape) / 2**bits).astype(np.float32), 0.7, keep=True) for _ in range(2)]
        quantized = dict(k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits)
    inputs = [q, k, v, *caches, lens, total, *tables]
    if g.maybe(0.2):
        inputs = [some(g, F32, (batch, length, (heads + 2 * groups) * size)), None, None, *inputs[3:]]
    if quantized:
        inputs += [None, None, None, *scales]
    # What lies behind the last token of a cache is anything; without the results for them onnxruntime reads astray.
    node(g, "GroupQueryAttention", inputs, [True] * 3, only=1, num_heads=heads, kv_num_heads=groups, scale=g.pick([None, 0.3]), local_window_size=g.pick([None, None, 3]),
         softcap=g.pick([None, None, 5.0]), do_rotary=1 if tables[0] else None, rotary_interleaved=g.int(0, 1) if tables[0] else None,
         **quantized)  # fmt: skip


def experts(g):
    rows, hidden, inner, count = g.int(1, 5), g.pick([4, 8]), g.pick([4, 8]), g.int(1, 5)
    # Of equal ones either may be taken.
    chances = np.stack([g.rng.permutation(count) for _ in range(rows)]) * 0.7
    x, router = some(g, F32, (rows, hidden)), g.hold(chances.astype(np.float32), 0.2, keep=True)
    first, second = some(g, F32, (count, inner, hidden)), some(g, F32, (count, hidden, inner))
    biases = [some(g, F32, (count, inner)), some(g, F32, (count, hidden))] if g.maybe() else [None, None]
    node(g, "MoE", [x, router, first, biases[0], second, biases[1]], k=g.int(1, count), activation_type=g.pick(["relu", "gelu", "silu", "identity"]),
         normalize_routing_weights=g.int(0, 1))  # fmt: skip


def qattention(g):
    batch, length, heads, size, width = g.int(1, 2), g.int(1, 5), g.int(1, 2), g.pick([4, 8]), g.int(1, 9)
    hidden, wt = heads * size, g.pick(BYTES)
    x, w = quantised(g, np.dtype(np.uint8), (batch, length, width)), quantised(g, wt, (width, 3 * hidden))
    mask = g.hold(lengths(g, batch, length), 0.2, keep=True) if g.maybe() else None
    node(g, "QAttention", [x, w, some(g, F32, (3 * hidden,)), scale(g), scale(g), mask, zero(g, np.uint8), zero(g, wt)], num_heads=heads, unidirectional=g.int(0, 1))


OPERATORS = [activation, activation, matmul, transposed, simplified, gemm, conv, skip_norm, skip_norm, embed, rotary, rotary, gather_blocks, gather_blocks, nbits, nbits,
             qbinary, qbinary, qunary, qconcat, qpool, qsoftmax, qmatmul, qgemm, quantise, attention, attention, multi_head, multi_head,
             grouped, grouped, experts, qattention]  # fmt: skip
