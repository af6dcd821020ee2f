"""Operators as they were before opset 13: what are inputs now were attributes, and other rules held."""

import numpy as np
from onnx import TensorProto, helper

from references import Refused

from . import elementwise, movement, reductions, windows
from .control import Body, info

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def until(g, opset):
    if g.opset > opset:
        raise Refused("not in this form any more")


def floats(g, **limits):
    return g.value(g.pick([F32, F32, F32, F64]), **limits)


def axes_of(g, rank, least=1):
    chosen = [int(a) for a in g.rng.permutation(rank)[: g.int(least, rank)]]
    return [a - rank if g.opset >= 11 and g.maybe(0.3) else a for a in chosen]


def upsample(g):
    """Its scales are an input from opset 9 on; of opset 10 it is deprecated."""
    until(g, 9)
    x = g.value(F32, rank=g.pick([2, 3, 4, 4, 4]), test=lambda v: 0 not in v.shape and max(v.shape) < 20)
    mode = g.pick([None, "nearest", "nearest", "linear"])
    if mode == "linear" and x.rank not in (2, 4):
        mode = "nearest"
    first = x.rank - 2 if mode == "linear" else g.pick([0, max(0, x.rank - 2)])
    scales = [g.pick([1.0, 2.0, 3.0, 1.5]) if i >= first else 1.0 for i in range(x.rank)]
    # Of a weight of zero and an infinity ours makes NaN.
    valid = lambda x, *_: bool(np.isfinite(x).all())  # noqa: E731
    if g.opset < 9:
        return g.emit("Upsample", [x], scales=scales, mode=mode, valid=valid)
    g.emit("Upsample", [x, g.hold(np.array(scales, np.float32), 0.7, keep=True)], mode=mode, valid=valid)


def resize(g):
    """As it was in opset 10, which knew one way to place pixels."""
    if g.opset != 10:
        raise Refused("not in this form")
    x = g.value(F32, rank=4, test=lambda v: 0 not in v.shape and max(v.shape) < 20)
    scales = [1.0, 1.0, g.pick([0.5, 1.0, 2.0, 3.0]), g.pick([0.5, 1.0, 2.0, 3.0])]
    g.emit("Resize", [x, g.hold(np.array(scales, np.float32), 0.7, keep=True)], mode=g.pick([None, "nearest", "linear"]),
           valid=lambda x, *_: bool(np.isfinite(x).all()))  # fmt: skip


def scatter(g):
    until(g, 10)
    x = g.value(low=1, high=3, test=lambda v: 0 not in v.shape)
    axis = g.int(0, x.rank - 1)
    shape = [g.int(1, s) for s in x.shape]
    # Which of two for one place stays is nobody's rule.
    at = np.argsort(g.rng.random((*shape[:axis], x.shape[axis], *shape[axis + 1 :])), axis).take(range(shape[axis]), axis)
    g.emit("Scatter", [x, g.hold(at.astype(g.pick([np.int64, np.int32])), 0.3, keep=True), g.new(x.dtype, shape)], axis=axis)


def softmax(g):
    """Over all axes from this one on."""
    x = floats(g, low=1, test=lambda v: 0 not in v.shape)
    axis = g.int(-x.rank if g.opset >= 11 else 0, x.rank - 1)
    g.emit(g.pick(["Softmax", "LogSoftmax", "Hardmax"]), [x], axis=axis if x.rank < 2 or g.maybe(0.8) else None, valid=lambda x: bool(np.isfinite(x).all()))


def squeeze(g):
    x = g.value(low=1)
    ones = [i for i, s in enumerate(x.shape) if s == 1]
    g.emit("Squeeze", [x], axes=[a for a in ones if g.maybe(0.7)] or None)


def unsqueeze(g):
    x = g.value(high=3)
    count = g.int(1, 2)
    g.emit("Unsqueeze", [x], axes=[int(a) for a in sorted(g.rng.permutation(x.rank + count)[:count])])


def split(g):
    x = g.value(low=1)
    axis, parts = g.int(0, x.rank - 1), g.int(1, 4)
    total = x.shape[axis]
    if total % parts:
        cuts = sorted(g.int(0, total) for _ in range(parts - 1))
        return g.emit("Split", [x], outputs=parts, axis=axis, split=[b - a for a, b in zip([0, *cuts], [*cuts, total])])
    g.emit("Split", [x], outputs=parts, axis=axis)


def reduce(g):
    op = g.pick(reductions.REDUCE)
    x = floats(g, high=5)
    g.emit(op, [x], axes=axes_of(g, x.rank) if x.rank and g.maybe(0.8) else None, keepdims=g.pick([None, 0, 1]))


def slices(g):
    until(g, 9)
    x = g.value(low=1)
    axes = [int(a) for a in g.rng.permutation(x.rank)[: g.int(1, x.rank)]]
    pairs = [sorted(g.int(0, x.shape[a] + 1) for _ in range(2)) for a in axes]
    starts, ends = ([p[i] - (x.shape[a] if g.maybe(0.2) else 0) for p, a in zip(pairs, axes)] for i in range(2))
    if axes == list(range(len(axes))) and g.maybe():
        axes = None
    g.emit("Slice", [x], starts=starts, ends=ends, axes=axes)


def clip(g):
    until(g, 10)
    low, high = sorted(float(np.float32(v)) for v in g.rng.uniform(-2, 2, 2))
    g.emit("Clip", [floats(g)], min=low if g.maybe(0.7) else None, max=high if g.maybe(0.7) else None)


def pad(g):
    until(g, 10)
    x = floats(g, low=1)
    mode = g.pick([None, "constant", "reflect", "edge"])
    counts = [g.int(-1 if g.maybe(0.1) else 0, 3) if mode in (None, "constant") else min(g.int(0, 3), max(0, s - 1)) for s in x.shape * 2]
    g.emit("Pad", [x], pads=counts, mode=mode, value=g.pick([None, 1.5]) if mode in (None, "constant") else None)


def top(g):
    until(g, 9)
    x = floats(g, low=1, test=lambda v: 0 not in v.shape)
    axis = g.int(0, x.rank - 1)
    g.emit("TopK", [x], outputs=2, axis=axis, k=g.int(1, x.shape[axis]), valid=lambda x: bool((x == x).all()) and np.unique(x).size == x.size)


def dropout(g):
    g.emit("Dropout", [floats(g)], ratio=g.pick([None, 0.5]))


def batch(g):
    x = floats(g, low=2, test=lambda v: 0 not in v.shape)
    more = [g.new(x.dtype, x.shape[1:2], const=0.8, low=0.2, high=2.0) for _ in range(4)]
    g.emit("BatchNormalization", [x, *more], epsilon=g.pick([None, 1e-3]))


def gemm(g):
    """Which needed its C, and to which sizes it broadcast."""
    m, k, n = (g.int(1, 17) for _ in range(3))
    ta, tb = g.int(0, 1), g.int(0, 1)
    a, b = g.new(F32, (k, m) if ta else (m, k)), g.new(F32, (n, k) if tb else (k, n))
    g.emit("Gemm", [a, b, g.new(F32, g.broadcast((m, n)))], transA=ta, transB=tb, alpha=g.pick([None, 0.5]), beta=g.pick([None, 2.0]))


def scan(g):
    """As it was in opset 8: with a batch, and lengths of its own for each sequence."""
    if g.opset != 8:
        raise Refused("not in this form")
    count, length = g.int(1, 3), g.int(1, 5)
    shape = g.shape(g.int(0, 2))
    state, xs = g.new(F32, (count, *shape)), g.new(F32, (count, length, *shape))
    body = Body(g, "s")
    before, element = body.name(), body.name()
    after = body.chain(before, [element])
    out = body.chain(after, [element], 1)
    typed = lambda name: info(name, shape=list(shape), dtype=TensorProto.FLOAT)  # noqa: E731
    graph = helper.make_graph(body.nodes, "body", [typed(before), typed(element)], [typed(after), typed(out)])
    lengths = g.hold(g.rng.integers(1, length + 1, count), 0.3, keep=True) if g.maybe(0.4) else None
    g.emit("Scan", [lengths, state, xs], outputs=2, body=graph, num_scan_inputs=1, directions=g.pick([None, [0], [1]]))


def cast(g):
    x = g.value(high=3)
    g.emit("Cast", [x], to=g.pick([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.INT32]),
           valid=lambda x: x.dtype.kind != "f" or bool((np.abs(x) < 1000).all()))  # fmt: skip


def unchanged(g):
    """An operator whose form is that of now, in an old model."""
    g.pick([elementwise.unary, elementwise.binary, elementwise.parametric, elementwise.variadic, movement.transpose, movement.concat,
            movement.expand, windows.conv, windows.pool, windows.global_pool])(g)  # fmt: skip


OPERATORS = [upsample, upsample, resize, scatter, scatter, softmax, softmax, squeeze, unsqueeze, split, reduce, reduce, slices, slices, clip, pad, pad,
             top, dropout, batch, gemm, scan, cast, unchanged, unchanged, unchanged]  # fmt: skip
