"""Shapes as views and as numbers."""

import numpy as np
from onnx import numpy_helper

from references import Refused


def reshape(g):
    x = g.value()
    shape = regroup(g, x.shape)
    zero = g.int(0, 1) if g.opset >= 14 and 0 in x.shape else None
    if shape and g.maybe(0.4) and 0 not in x.shape:
        shape[g.int(0, len(shape) - 1)] = -1
    if g.maybe(0.2) and len(shape) == x.rank and 0 not in x.shape:
        shape = [0 if s == t else s for s, t in zip(shape, x.shape)]
    g.emit("Reshape", [x, g.ints(shape)], allowzero=zero)


def regroup(g, shape):
    """Factors of the sizes, put together anew."""
    factors = []
    for size in shape:
        if size == 0:
            return list(shape)
        for prime in (2, 3, 5, 7, 11, 31):
            while size % prime == 0 and g.maybe(0.6):
                factors.append(prime)
                size //= prime
        factors.append(size)
    result = []
    for factor in factors:
        if result and g.maybe(0.6) or factor == 1 and g.maybe(0.3):
            result[-1:] = [result[-1] * factor] if result else []
        else:
            result.append(factor)
    if np.prod(result, dtype=np.int64) != np.prod(shape, dtype=np.int64):
        return list(shape)
    return [int(s) for s in result]


def flatten(g):
    x = g.value()
    g.emit("Flatten", [x], axis=g.pick([None, g.int(-x.rank, x.rank)]))


def squeeze(g):
    x = g.value()
    ones = [i for i, s in enumerate(x.shape) if s == 1]
    if ones and g.maybe(0.7):
        chosen = [o - x.rank if g.maybe(0.3) else o for o in ones if g.maybe(0.7)]
        g.emit("Squeeze", [x, g.ints(chosen)] if chosen else [x])
    else:
        g.emit("Squeeze", [x])


def unsqueeze(g):
    x = g.value(high=3)
    count = g.int(1, 2)
    axes = [int(a) for a in g.rng.permutation(x.rank + count)[:count]]
    g.emit("Unsqueeze", [x, g.ints([a - x.rank - count if g.maybe(0.3) else a for a in axes])])


def shape_of(g):
    x = g.value()
    if g.opset >= 15 and g.maybe():
        g.emit(
            "Shape", [x], start=g.int(-x.rank - 1, x.rank), end=g.int(-x.rank - 1, x.rank + 1) if g.maybe() else None
        )
    else:
        g.emit(g.pick(["Shape", "Shape", "Size"]), [x])


def reshape_by_shape(g):
    """What exporters write: sizes taken from a shape, put together with constants."""
    x = g.value(low=2)
    (shape,) = g.emit("Shape", [x])
    (first,) = g.emit("Gather", [shape, g.hold(np.array(0, np.int64), 1.0, keep=True)], axis=0)
    (first,) = g.emit("Unsqueeze", [first, g.hold(np.array([0], np.int64), 1.0, keep=True)])
    parts = [first, g.hold(np.array([-1], np.int64), 1.0, keep=True)]
    if g.maybe() and x.shape[-1]:
        (last,) = g.emit("Slice", [shape, *(g.hold(np.array([n], np.int64), 1.0, keep=True) for n in (-1, 2**31))])
        parts.append(last)
    (wanted,) = g.emit("Concat", parts, axis=0)
    if 0 in x.shape:
        raise Refused("empty")
    g.emit("Reshape", [x, wanted])


def expand_by_shape(g):
    x = g.value(low=1)
    like = g.new(x.dtype, g.broadcast(x.shape))
    (shape,) = g.emit("Shape", [x])
    g.emit("Expand", [like, shape])


def fill(g):
    shape = g.ints(g.shape(high=3), const=0.6)
    dtype = g.dtype()
    value = numpy_helper.from_array(g.data(dtype, (1,)), "v") if g.maybe(0.8) else None
    g.emit("ConstantOfShape", [shape], value=value)


def constant(g):
    g.emit("Constant", [], value=numpy_helper.from_array(g.data(g.dtype(), g.shape(high=3)), "v"))


def ranges(g):
    dtype = g.pick([np.int64, np.int64, np.int32, np.float32, np.float64])
    start, step = g.int(-5, 5), g.pick([1, 1, 2, 3, -1, -2])
    stop = start + step * g.int(0, 20) + g.int(0, 1)
    g.emit("Range", [g.hold(np.array(v, dtype), 0.6, keep=True) for v in (start, stop, step)])


def eye(g):
    x = g.value(rank=2, op="EyeLike")
    g.emit("EyeLike", [x], k=g.int(-2, 2), dtype=g.pick([None, 1, 7]))


OPERATORS = [
    reshape,
    reshape,
    reshape,
    flatten,
    squeeze,
    unsqueeze,
    shape_of,
    reshape_by_shape,
    expand_by_shape,
    fill,
    constant,
    ranges,
    eye,
]
