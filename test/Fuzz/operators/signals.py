"""Fourier transforms, windows, and the newer operators on sequences of numbers."""

import numpy as np
from onnx import TensorProto

from references import Refused

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def finite(*arrays):
    return all(a.dtype.kind != "f" or bool((np.abs(a.astype(float)) < 1e4).all()) for a in arrays)


def transform(g):
    if not g.has("DFT"):
        raise Refused("DFT")
    rank = g.int(1, 3)
    shape = [g.int(1, 4) for _ in range(rank)] + [g.pick([1, 2])]
    axis = g.int(-rank - 1, rank - 1)
    axis = -2 if axis == -1 else axis
    shape[axis if axis >= 0 else axis + rank + 1] = g.pick([1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 33])
    x = g.new(g.pick([F32, F32, F64]), tuple(shape))
    inverse, onesided = g.int(0, 1), g.int(0, 1)
    if onesided and (shape[-1] == 2 or inverse):
        onesided = 0
    size = g.hold(np.array(g.pick([1, 2, 5, 8, 16, 20]), g.pick([np.int64, np.int32])), 0.7, keep=True) if g.maybe(0.3) else None
    if g.opset >= 20:
        where = g.hold(np.array(axis, np.int64), 0.7, keep=True) if g.maybe(0.7) else None
        return g.emit("DFT", [x, size, where], inverse=inverse, onesided=onesided, valid=finite)
    g.emit("DFT", [x, size], axis=axis % (rank + 1), inverse=inverse, onesided=onesided, valid=finite)


def short_time(g):
    if not g.has("STFT"):
        raise Refused("STFT")
    length, frame = g.int(8, 70), g.pick([1, 4, 5, 8, 16])
    dtype = g.pick([F32, F32, F64])
    frame = min(frame, length)
    x = g.new(dtype, (g.int(1, 2), length, 1) if g.maybe(0.8) else (g.int(1, 2), length, 2))
    step = g.hold(np.array(g.int(1, 6), np.int64), 0.7, keep=True)
    window = g.new(dtype, (frame,)) if g.maybe(0.7) else None
    size = g.hold(np.array(frame, np.int64), 0.7, keep=True) if window is None or g.maybe() else None
    g.emit("STFT", [x, step, window, size], onesided=0 if x.shape[-1] == 2 else g.pick([None, 0, 1]), valid=finite)


def mel(g):
    if not g.has("MelWeightMatrix"):
        raise Refused("MelWeightMatrix")
    rate = g.pick([8000, 16000, 44100])
    numbers = [g.int(1, 12), g.pick([8, 16, 33, 64]), rate]
    limits = [float(g.pick([0, 20, 125])), float(g.pick([rate // 2, rate // 4]))]
    inputs = [g.hold(np.array(n, np.int64), 0.5, keep=True) for n in numbers] + [g.hold(np.array(v, np.float32), 0.5, keep=True) for v in limits]
    g.emit("MelWeightMatrix", inputs, output_datatype=g.pick([None, TensorProto.FLOAT, TensorProto.DOUBLE]))


def window(g):
    op = g.pick(["HannWindow", "HammingWindow", "BlackmanWindow"])
    if not g.has(op):
        raise Refused(op)
    size = g.hold(np.array(g.pick([1, 2, 5, 16, 33]), g.pick([np.int64, np.int32])), 0.5, keep=True)
    g.emit(op, [size], periodic=g.pick([None, 0, 1]), output_datatype=g.pick([None, TensorProto.FLOAT, TensorProto.DOUBLE]),
           valid=lambda n: int(n) > 1)  # fmt: skip


def unique(g):
    x = g.new(g.pick([F32, np.int64, np.int32, np.int8, np.uint8, F64]), g.shape(low=1), low=0, high=4)
    if x.dtype.kind == "f":  # how many there are must not hang on rounding
        x = g.hold(np.round(x.array), 0.1)
    axis = g.pick([None, g.int(-x.rank, x.rank - 1)])
    outputs = [True] + [g.maybe() for _ in range(3)]
    if x.dtype in (np.dtype(np.int32), np.dtype(np.uint8)) and axis not in (None, 0, -x.rank):
        raise Refused("onnx.reference alone has these types, and mixes up axes where it does not sort")
    g.emit("Unique", [x], outputs=outputs, axis=axis, sorted=g.pick([None, 0, 1]), valid=lambda x: bool((x == x).all()))


def top(g):
    # Of a zero and what rounding leaves of one, either may be the larger.
    x = g.value(op="TopK", low=1, reuse=0.2, test=lambda v: v.kind != "node")
    axis = g.int(-x.rank, x.rank - 1)
    k = g.hold(np.array([g.int(0, x.shape[axis])], np.int64), 0.6, keep=True)
    # Which of equal ones, and where NaN stands, is for each to say.
    g.emit("TopK", [x, k], outputs=2, axis=axis, largest=g.pick([None, 0, 1]), sorted=1, valid=lambda x, k: bool((x == x).all()))


def rotary(g):
    if not g.has("RotaryEmbedding"):
        raise Refused("RotaryEmbedding")
    batch, heads, length, size = g.int(1, 2), g.int(1, 3), g.int(1, 6), g.pick([4, 8, 16])
    flat, dtype = g.maybe(), g.pick([F32, F32, np.dtype(np.float16)])
    x = g.new(dtype, (batch, length, heads * size) if flat else (batch, heads, length, size))
    rotated = g.pick([0, 0, size // 2])
    with_places = g.maybe()
    shape = (9, (rotated or size) // 2) if with_places else (batch, length, (rotated or size) // 2)
    cos, sin = (g.new(dtype, shape) for _ in range(2))
    at = g.hold(g.rng.integers(0, 9, (batch, length)), 0.3, keep=True) if with_places else None
    g.emit("RotaryEmbedding", [x, cos, sin, at], interleaved=g.pick([None, 0, 1]), num_heads=heads if flat else None, rotary_embedding_dim=rotated or None)


def scatter(g):
    """TensorScatter into a cache."""
    if not g.has("TensorScatter"):
        raise Refused("TensorScatter")
    axis = g.int(1, 2)
    shape = [g.int(1, 3) for _ in range(4)]
    shape[axis] = g.int(2, 9)
    past = g.value(g.pick([F32, np.dtype(np.float16), np.dtype(np.int64)]), shape=tuple(shape))
    given = list(shape)
    given[axis] = g.int(1, shape[axis])
    mode = g.pick([None, "linear", "circular"])
    at = None
    if g.maybe(0.8):
        most = shape[axis] - 1 if mode == "circular" else shape[axis] - given[axis]
        at = g.hold(g.rng.integers(0, most + 1, (shape[0],)), 0.3, keep=True)
    g.emit("TensorScatter", [past, g.new(past.dtype, tuple(given)), at], axis=g.pick([axis, axis - 4]), mode=mode)


def bits(g):
    if not g.has("BitCast"):
        raise Refused("BitCast")
    x = g.value(g.pick([F32, np.dtype(np.int32), np.dtype(np.uint32), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.int8)]))
    to = {4: [TensorProto.INT32, TensorProto.UINT32], 8: [TensorProto.INT64, TensorProto.UINT64], 1: [TensorProto.INT8, TensorProto.UINT8]}
    g.emit("BitCast", [x], to=g.pick(to[x.dtype.itemsize]))


def causal_conv(g):
    if not g.has("CausalConvWithState"):
        raise Refused("CausalConvWithState")
    batch, channels, length, taps = g.int(1, 2), g.int(1, 5), g.int(1, 9), g.int(1, 4)
    dtype = g.pick([F32, F32, np.dtype(np.float16)])
    x, w = g.new(dtype, (batch, channels, length)), g.new(dtype, (channels, 1, taps))
    bias = g.new(dtype, (channels,)) if g.maybe() else None
    state = g.new(dtype, (batch, channels, taps - 1)) if g.maybe() else None
    g.emit("CausalConvWithState", [x, w, bias, state], outputs=2, activation=g.pick([None, "none", "silu", "swish"]), valid=finite)


def linear_attention(g):
    if not g.has("LinearAttention"):
        raise Refused("LinearAttention")
    batch, heads, length, size, width = g.int(1, 2), g.int(1, 2), g.int(1, 5), g.pick([2, 4]), g.pick([2, 3])
    rule = g.pick(["linear", "gated", "delta", "gated_delta"])
    q, k = (g.new(F32, (batch, length, heads * size), low=-1) for _ in range(2))
    v = g.new(F32, (batch, length, heads * width))
    state = g.new(F32, (batch, heads, size, width)) if g.maybe() else None
    decay = g.new(F32, (batch, length, heads * size) if g.maybe() else (batch, length, heads), low=-1.0, high=0.0) if "gated" in rule else None
    beta = g.new(F32, (batch, length, heads), low=0.0) if "delta" in rule else None
    g.emit("LinearAttention", [q, k, v, state, decay, beta], outputs=2, update_rule=rule, q_num_heads=heads, kv_num_heads=heads, valid=finite)


def swiglu(g):
    if not g.has("SwiGLU"):
        raise Refused("SwiGLU")
    x = g.value(g.pick([F32, F32, np.dtype(np.float16)]), low=1)
    y = g.value(x.dtype, shape=x.shape)
    g.emit("SwiGLU", [x, y], alpha=g.pick([None, 1.0, 1.7]), valid=lambda x, y: x.shape == y.shape)


def attention(g):
    """With caches, lengths and all results."""
    if not g.has("Attention"):
        raise Refused("Attention")
    batch, groups, length, past, size = g.int(1, 2), g.int(1, 2), g.int(1, 5), g.int(0, 4), 4
    heads, dtype = groups * g.int(1, 2), g.pick([F32, F32, np.dtype(np.float16)])
    q, k, v = (g.new(dtype, (batch, n, length, size), low=-2, high=2) for n in (heads, groups, groups))
    caches = [g.new(dtype, (batch, groups, past, size), low=-2, high=2) for _ in range(2)]
    mask = None
    if g.maybe():
        mask = g.new(dtype, (length, length + past)) if g.maybe() else g.hold(g.rng.random((length, length + past)) < 0.8, 0.2, keep=True)
        mask.array[..., 0] = 1
    softcap = g.pick([None, 3.0])
    # The products before softcap onnx.reference, which is alone with the newest opsets, does not keep.
    modes = [1, 2, 3] if softcap and g.opset > 24 else [None, 0, 1, 2, 3]
    g.emit("Attention", [q, k, v, mask, *caches], outputs=[True, True, True, g.maybe()], is_causal=g.pick([None, 0, 1]), softcap=softcap,
           qk_matmul_output_mode=g.pick(modes), softmax_precision=g.pick([None, None, TensorProto.FLOAT]), valid=finite)  # fmt: skip


OPERATORS = [transform, transform, short_time, mel, window, unique, top, rotary, scatter, bits, causal_conv, linear_attention, swiglu, attention]
