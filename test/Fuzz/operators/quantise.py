"""Quantisation and products of quantised tensors."""

import numpy as np


BYTES = [np.uint8, np.int8]


def scale(g, shape=(), dtype=np.float32):
    return g.hold(
        np.asarray(2.0 ** g.rng.integers(-6, 0, shape)).astype(dtype)
        if g.maybe()
        else g.data(dtype, shape, low=0.01, high=0.3),
        0.8,
        keep=True,
    )


def zero(g, dtype, shape=()):
    return g.hold(g.data(dtype, shape, low=0 if np.dtype(dtype).kind == "u" else -5, high=9), 0.8, keep=True)


def even(g, dtype):
    """For a product's result: the reference rounds halves after it added the zero point, ONNX before,
    which is the same for an even one."""
    return g.hold(
        (g.data(dtype, (), low=0 if np.dtype(dtype).kind == "u" else -3, high=4) * 2).astype(dtype), 0.8, keep=True
    )


def finite(x, *_):
    """Far from where the references' integers overflow."""
    return bool((np.abs(x.astype(np.float64)) < 1e6).all())


def blocks(g, x):
    """(shape of the parameters, attributes): for the tensor, an axis or blocks of one."""
    kind = g.rng.random()
    if kind < 0.5 or x.rank == 0 or g.opset < 13:
        return (), {}
    axis = g.int(0, x.rank - 1)
    if kind < 0.85 or g.opset < 21 or x.shape[axis] == 0:
        return (x.shape[axis],), {"axis": axis - x.rank if g.maybe(0.3) else axis}
    block = g.int(1, x.shape[axis])
    shape = list(x.shape)
    shape[axis] = -(-shape[axis] // block)
    return tuple(shape), {"axis": axis, "block_size": block}


def quantize(g):
    x = g.value(np.float32)
    to = g.pick(BYTES + ([np.int16, np.uint16] if g.opset >= 21 else []))
    shape, attributes = blocks(g, x)
    zeros = zero(g, to, shape) if to != np.uint8 or g.maybe(0.7) else None
    g.emit("QuantizeLinear", [x, scale(g, shape), zeros], valid=finite, **attributes)


def dequantize(g):
    x = g.value(g.pick(BYTES + [np.int32]))
    shape, attributes = blocks(g, x)
    zeros = zero(g, x.dtype, shape) if g.maybe(0.7) and x.dtype != np.int32 else None
    g.emit("DequantizeLinear", [x, scale(g, shape), zeros], **attributes)


def there_and_back(g):
    x = g.value(np.float32)
    to = g.pick(BYTES)
    s, z = scale(g), zero(g, to)
    (q,) = g.emit("QuantizeLinear", [x, s, z], valid=finite)
    g.emit("DequantizeLinear", [q, s, z])


def dynamic(g):
    x = g.value(np.float32, test=lambda v: 0 not in v.shape)
    g.emit("DynamicQuantizeLinear", [x], outputs=3, valid=finite)


def product(g):
    a = g.value(g.pick(BYTES), low=2, high=3)
    b = g.new(g.pick([a.dtype, np.int8, np.uint8]), (a.shape[-1], g.pick([1, 3, 8, 33])), const=0.8)
    out = a.dtype
    per_column = g.maybe(0.3)
    shape = (b.shape[1],) if per_column else ()
    g.emit(
        "QLinearMatMul",
        [a, scale(g), zero(g, a.dtype), b, scale(g, shape), zero(g, b.dtype, shape), scale(g), even(g, out)],
    )


def conv(g):
    x = g.value(g.pick(BYTES), rank=4, test=lambda v: 0 not in v.shape and max(v.shape[2:]) <= 20)
    kernel = [g.int(1, 3), g.int(1, 3)]
    filters = g.pick([1, 2, 8, 17])
    w = g.hold(g.data(np.int8 if g.maybe() else x.dtype, (filters, x.shape[1], *kernel)), 0.9)
    shape = (filters,) if g.maybe(0.4) else ()
    zeros = g.hold(np.zeros(shape, w.dtype), 1.0, keep=True)
    bias = g.hold(g.data(np.int32, (filters,), low=-100, high=100), 0.9) if g.maybe() else None
    g.emit(
        "QLinearConv",
        [x, scale(g), zero(g, x.dtype), w, scale(g, shape), zeros, scale(g), even(g, x.dtype), bias],
        pads=[g.int(0, 1) for _ in range(4)] if g.maybe() else None,
        strides=[g.int(1, 2)] * 2 if g.maybe() else None,
    )


OPERATORS = [quantize, quantize, dequantize, dequantize, there_and_back, dynamic, product, conv]
