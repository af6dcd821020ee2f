"""Operators of com.microsoft that are layers of quantised networks and of decoders."""

import numpy as np
from operators.fused import BYTES, F32, node, quantised, scale, some, zero
from references import HALF

I32 = np.dtype(np.int32)


def number(g, value, chance=0.3):
    return g.hold(np.array(value, np.int32), chance, keep=True)


def lstm(g):
    steps, batch, width, size = g.int(1, 5), g.int(1, 3), g.pick([1, 3, 8]), g.pick([1, 4, 5, 16])
    direction = g.pick(["forward", "reverse", "bidirectional"])
    ways, dtype, columns = 1 + (direction == "bidirectional"), g.pick(BYTES), g.maybe(0.4)
    shape = (ways, 4 * size) if columns else (ways,)
    # Signed weights have no zero point, and each way has one where each column has a scale.
    point = 0 if dtype == np.int8 else g.int(0, 255)
    parameters = []
    for _ in range(2):
        scales = g.hold(g.rng.uniform(0.002, 0.01, shape).astype(np.float32), 1.0, keep=True)
        parameters += [scales, g.hold(np.full(shape, point, dtype), 1.0, keep=True)]
    x = some(g, F32, (steps, batch, width))
    w, r = (g.hold(quantised(g, dtype, (ways, n, 4 * size)).array, 1.0) for n in (width, size))
    optional = [
        lambda: some(g, F32, (ways, 8 * size)),
        lambda: g.hold(g.rng.integers(0, steps + 1, batch).astype(np.int32), 0.3, keep=True),
        lambda: some(g, F32, (ways, batch, size)),
        lambda: some(g, F32, (ways, batch, size)),
        lambda: some(g, F32, (ways, 3 * size)),
    ]
    inputs = [x, w, r, *(make() if g.maybe() else None for make in optional), *parameters]
    activations = [g.pick(["Sigmoid", "Tanh", "Relu", "HardSigmoid"]) for _ in range(3 * ways)] if g.maybe(0.3) else None
    node(g, "DynamicQuantizeLSTM", inputs, [True, g.maybe(), True], hidden_size=size, direction=direction, activations=activations,
         clip=g.pick([None, None, 0.5]), input_forget=g.pick([None, 1]))  # fmt: skip


def qconv(g):
    dtype, last = g.pick(BYTES), g.int(0, 1)
    weights = np.dtype(np.int8) if dtype == np.int8 else g.pick(BYTES)
    groups, sizes = g.int(1, 2), [g.int(3, 8), g.int(3, 8)]
    channels, outputs, kernel = groups * g.int(1, 4), groups * g.int(1, 5), [g.int(1, 3), g.int(1, 3)]
    batch = g.int(1, 2)
    x = quantised(g, dtype, (batch, *sizes, channels) if last else (batch, channels, *sizes))
    w = g.hold(quantised(g, weights, (outputs, channels // groups, *kernel)).array, 1.0)
    bias = g.hold(g.rng.integers(-99, 99, outputs).astype(np.int32), 1.0) if g.maybe() else None
    point = g.hold(np.array(0, weights), 1.0, keep=True) if weights == np.int8 else zero(g, weights)
    inputs = [x, scale(g), zero(g, dtype), w, scale(g), point, scale(g), zero(g, dtype), bias]
    node(g, "QLinearConv", inputs, strides=[g.int(1, 2)] * 2, pads=[g.int(0, k - 1) for k in kernel] * 2, group=groups, channels_last=last)


def qmax(g):
    dtype, kernel = g.pick(BYTES), [g.int(1, 3), g.int(1, 3)]
    x = quantised(g, dtype, (g.int(1, 2), g.int(4, 9), g.int(4, 9), g.int(1, 5)))
    node(g, "NhwcMaxPool", [x], kernel_shape=kernel, strides=[g.int(1, 2)] * 2, pads=[g.int(0, k - 1) for k in kernel] * 2)


def qwhere(g):
    dtype, shape = g.pick(BYTES), g.shape(low=1)
    condition = g.hold(g.rng.random(g.broadcast(shape)) < 0.5, 0.2)
    x, y = quantised(g, dtype, shape), quantised(g, dtype, g.broadcast(shape))
    node(g, "QLinearWhere", [condition, x, scale(g), zero(g, dtype), y, scale(g), zero(g, dtype), scale(g), zero(g, dtype)])


def qembed(g):
    batch, length, hidden, dtype = g.int(1, 3), g.int(1, 6), g.pick([4, 8, 16]), g.pick(BYTES)

    def ids(most):
        return g.hold(g.rng.integers(0, most, (batch, length)).astype(np.int32), 0.2, keep=True)

    kinds = g.maybe()
    tables = [quantised(g, dtype, shape) for shape in [(9, hidden), (8, hidden), (2, hidden), (hidden,), (hidden,)]]
    scales, zeros = [scale(g) for _ in tables], [zero(g, dtype) for _ in tables]
    for parts in (tables, scales, zeros):
        parts[2] = parts[2] if kinds else None
    mask = ids(2) if g.maybe() else None
    node(g, "QEmbedLayerNormalization", [ids(9), ids(2) if kinds else None, *tables, mask, *scales, *zeros], 2, epsilon=1e-3)


def int16(g):
    a, b = (g.new(np.dtype(np.int16), shape, low=-3000, high=3000) for shape in [(g.int(1, 5), 7), (7, g.int(1, 5))])
    node(g, "MatMulInteger16", [a, b])


def bnb4(g):
    n, k, block = g.int(1, 9), g.int(1, 40), g.pick([16, 32, 64])
    packed = g.hold(g.rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8), 1.0)
    scales = g.hold(g.data(F32, (-(-n * k // block),), low=0.01, high=1), 1.0)
    node(g, "MatMulBnb4", [some(g, F32, (g.int(1, 5), k)), packed, scales], K=k, N=n, block_size=block, quant_type=g.int(0, 1))


def experts(g):
    rows, hidden, inner, count, bits = g.int(1, 5), g.pick([16, 32]), g.pick([16, 32]), g.int(1, 5), g.pick([2, 4, 8])
    # Of equal ones either may be taken. Of blocks of bytes onnxruntime quantizes the rows, too.
    chances = np.stack([g.rng.permutation(count) for _ in range(rows)]) * 0.7
    block = 16 if bits < 8 and g.maybe() else 0
    activation = g.pick(["relu", "gelu", "silu", "identity", "swiglu"])
    fused = 2 if activation == "swiglu" else 1
    inputs = [some(g, F32, (rows, hidden)), g.hold(chances.astype(np.float32), 0.2, keep=True)]
    zeros, has_zeros, has_bias = [], g.maybe(), g.maybe()
    for n, k in [(fused * inner, hidden), (hidden, inner)]:
        packed = g.hold(g.rng.integers(0, 256, (count, n, k * bits // 8)).astype(np.uint8), 1.0)
        scales = g.hold(g.data(F32, (count, n, k // block) if block else (count, n), low=0.001, high=0.02), 1.0)
        inputs += [packed, scales, some(g, F32, (count, n)) if has_bias else None]
        shape = (count, n, -(-(k // block) * bits // 8)) if block else (count, -(-n * bits // 8))
        zeros.append(g.hold(g.rng.integers(0, 256, shape).astype(np.uint8), 1.0) if has_zeros else None)
    inputs += [None, None, None, *zeros]
    node(g, "QMoE", inputs, k=g.int(1, count), activation_type=activation, swiglu_fusion=fused - 1, expert_weight_bits=bits, block_size=block or None,
         normalize_routing_weights=g.int(0, 1))  # fmt: skip


def decode(g):
    """DecoderMaskedMultiHeadAttention, MultiHeadAttention with a shared buffer."""
    heads, size, room, past = g.int(1, 3), g.pick([4, 8]), 7, g.int(0, 6)
    beams = g.int(1, 2)
    batch = beams * g.int(1, 2)
    one = lambda: some(g, F32, (batch, 1, heads * size))  # noqa: E731
    caches = [some(g, F32, (batch, heads, room, size)) for _ in range(2)]
    bias = some(g, F32, (3 * heads * size,)) if g.maybe() else None
    mask = g.hold((g.rng.random((batch, past + 1)) < 0.8).astype(np.int32), 0.2, keep=True) if g.maybe() else None
    added = some(g, F32, (1, heads, 1, past + 1)) if g.maybe() else None
    width, origin = None, None
    if beams > 1:
        origin = g.hold(g.rng.integers(0, beams, (batch // beams, beams, room)).astype(np.int32), 0.3, keep=True)
        width = number(g, [beams])
    if g.maybe():
        inputs = [one(), one(), one(), mask, added, *caches, number(g, [past]), width, origin, bias]
        return node(g, "DecoderMaskedMultiHeadAttention", inputs, 3, num_heads=heads, past_present_share_buffer=1)
    inputs = [one(), one(), one(), bias, mask, added, *caches, number(g, [past]), origin]
    node(g, "MultiHeadAttention", inputs, 3, num_heads=heads, unidirectional=g.int(0, 1))


def linear(g):
    batch, length, size, width, heads = g.int(1, 2), g.int(1, 5), g.pick([4, 8]), g.pick([4, 6]), g.int(1, 2)
    queries, states = heads * g.int(1, 2), heads * g.int(1, 2)
    if queries % states and states % queries:
        states = queries
    rule = g.pick(["linear", "gated", "delta", "gated_delta"])
    decay = g.hold(-np.abs(g.data(F32, (batch, length, states * g.pick([1, size])))), 0.1) if "gated" in rule else None
    rate = g.hold(g.rng.uniform(0, 1, (batch, length, g.pick([1, states]))).astype(np.float32), 0.1) if "delta" in rule else None
    past = some(g, F32, (batch, states, size, width)) if g.maybe() else None
    q, k, v = (some(g, F32, (batch, length, n)) for n in (queries * size, states * size, states * width))
    node(g, "LinearAttention", [q, k, v, past, decay, rate], 2, q_num_heads=queries, kv_num_heads=states, update_rule=rule, scale=g.pick([None, 0.5]))


def causal_conv(g):
    batch, channels, length, taps, dilation, last = g.int(1, 2), g.int(1, 5), g.int(1, 9), g.int(1, 4), g.int(1, 2), g.int(0, 1)
    state = (taps - 1) * dilation
    x = some(g, F32, (batch, length, channels) if last else (batch, channels, length))
    past = some(g, F32, (batch, state, channels) if last else (batch, channels, state)) if g.maybe() and state else None
    bias = some(g, F32, (channels,)) if g.maybe() else None
    node(g, "CausalConvWithState", [x, some(g, F32, (channels, 1, taps)), bias, past], 2, dilation=dilation, channels_last=last,
         activation=g.pick([None, "silu"]))  # fmt: skip


def gates(g):
    dtype, shape = g.pick([F32, F32, HALF]), (*g.shape(g.int(0, 2), low=1), g.pick([4, 8, 12]))
    x = g.value(dtype, shape=shape)
    op = g.pick(["GatedAdd", "GatedRMSNorm", "LinearAttentionGate"])
    if op == "GatedAdd":
        return node(g, op, [x, some(g, dtype, shape), some(g, dtype, (*shape[:-1], 1))])
    if op == "GatedRMSNorm":
        return node(g, op, [x, some(g, dtype, (4,)), some(g, dtype, shape)], activation=g.pick([None, "sigmoid"]), epsilon=1e-3)
    a, heads = some(g, dtype, (2, 3, 4)), [some(g, F32, (4,)) for _ in range(2)]
    node(g, op, [a, *heads, some(g, dtype, (2, 3, 4))], 2)


OPERATORS = [lstm, lstm, qconv, qconv, qmax, qwhere, qembed, int16, bnb4, experts, experts, decode, decode, linear, causal_conv, gates, gates]
