"""Reductions, softmax and its kin, cumulative sums, largest elements."""

import numpy as np
import onnx

from references import Refused

REDUCE = [f"Reduce{n}" for n in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare Max Mean Sum".split()]


def some_axes(g, rank):
    count = g.int(0, rank)
    axes = [int(a) for a in g.rng.permutation(rank)[:count]]
    return [a - rank if g.maybe(0.3) else a for a in axes]


def exact(x, *_):
    """Sums and products of integers that overflow are nobody's rule: references go by way of double."""
    if x.dtype.kind not in "iu":
        return True
    size = np.abs(x.astype(np.float64))
    return bool(size.sum() < 2**31 and (size * size).sum() < 2**31 and np.prod(np.maximum(size, 1)) < 2**31)


def exact_with_logarithm(x, *_):
    """The logarithm of 0 as an integer is nobody's rule, either."""
    return exact(x) and (x.dtype.kind not in "iu" or x.size > 0 and bool((x > 0).all()))


def exact_of_some(x, *_):
    """The mean of no integers is a division by zero."""
    return exact(x) and (x.dtype.kind not in "iu" or x.size > 0)


def no_integers(x, *_):
    """A logarithm that rounding keeps just below a whole number is one less as an integer."""
    return x.dtype.kind not in "iu"


def reduce(g):
    op = g.pick(REDUCE)
    valid = {
        "ReduceLogSum": exact_with_logarithm,
        "ReduceLogSumExp": no_integers,
        "ReduceMean": exact_of_some,
    }.get(op, exact)
    x = g.value(op=op, high=5)
    axes = some_axes(g, x.rank)
    schema = onnx.defs.get_schema(op, g.opset)
    keep = g.pick([None, 0, 1])
    if "axes" in schema.attributes:
        g.emit(op, [x], valid=valid, axes=axes or None, keepdims=keep)
    else:
        given = None if g.maybe(0.2) else g.ints(axes)
        g.emit(op, [x, given], valid=valid, keepdims=keep, noop_with_empty_axes=g.pick([None, 0, 1]))


def arg(g):
    op = g.pick(["ArgMax", "ArgMin"])
    x = g.value(op=op, low=1)
    # Of an empty tensor onnxruntime keeps the axis whatever keepdims says.
    g.emit(
        op,
        [x],
        valid=lambda v: v.size > 0 and no_nan(v),
        axis=g.int(-x.rank, x.rank - 1),
        keepdims=g.pick([None, 0, 1]),
        select_last_index=g.pick([None, 0, 1]),
    )


def no_nan(x, *_):
    return bool((x == x).all())


def softmax(g):
    op = g.pick(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    x = g.value(op=op, low=1)
    g.emit(op, [x], valid=no_nan, axis=g.pick([None, g.int(-x.rank, x.rank - 1)]))


def cumulative(g):
    op = g.pick(["CumSum", "CumSum", "CumProd"])
    if not g.has(op):
        op = "CumSum"
    x = g.value(op=op, low=1)
    axis = g.ints(g.int(-x.rank, x.rank - 1), dtype=g.pick([np.int32, np.int64]))
    # onnxruntime is wrong about both together in half precision, where the reference rounds elsewhere.
    exclusive = g.int(0, 1)
    reverse = g.int(0, 1) if x.dtype != np.float16 or not exclusive else 0
    g.emit(op, [x, axis], exclusive=exclusive, reverse=reverse)


def topk(g):
    x = g.value(op="TopK", low=1)
    axis = g.int(-x.rank, x.rank - 1)
    k = g.ints([g.int(0, x.shape[axis])] if g.maybe(0.9) else [x.shape[axis]])
    g.emit("TopK", [x, k], outputs=2, valid=no_nan, axis=axis, largest=g.int(0, 1), sorted=1)


def mean_variance(g):
    x = g.value(np.float32, low=1, test=lambda v: 0 not in v.shape)
    # Without its axes libonnx fails to infer; a row of one element has no variance.
    axes = some_axes(g, x.rank) or [0]
    if np.prod([x.shape[a] for a in axes]) < 2:
        raise Refused("one element")
    g.emit("MeanVarianceNormalization", [x], axes=axes)


OPERATORS = [reduce, reduce, reduce, reduce, arg, softmax, softmax, cumulative, topk, mean_variance]
