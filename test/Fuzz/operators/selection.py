"""Indices: gathering, scattering, compressing, one-hot."""

import numpy as np

from references import Refused


def indices(g, size, shape, dtype=None, const=0.4):
    if size == 0:
        raise Refused("nothing to select")
    array = g.rng.integers(-size, size, shape).astype(dtype or g.pick([np.int64, np.int64, np.int32]))
    return g.hold(array, const, keep=True)


def gather(g):
    x = g.value(low=1)
    axis = g.int(-x.rank, x.rank - 1)
    g.emit("Gather", [x, indices(g, x.shape[axis], g.shape(g.int(0, 2)))], axis=axis)


def gather_elements(g):
    x = g.value(low=1)
    axis = g.int(-x.rank, x.rank - 1)
    shape = [g.int(0 if g.maybe(0.1) else min(1, s), s) for s in x.shape]
    shape[axis] = g.pick([1, 2, 5, x.shape[axis]])
    g.emit("GatherElements", [x, indices(g, x.shape[axis], shape)], axis=axis)


def tuples(g, x, batch, width, shape):
    sizes = x.shape[batch : batch + width]
    if 0 in sizes:
        raise Refused("nothing to select")
    return np.stack([g.rng.integers(-s, s, shape) for s in sizes], -1).astype(np.int64)


def gather_nd(g):
    x = g.value(low=1)
    batch = g.int(0, x.rank - 1) if g.maybe(0.3) else 0
    width = g.int(1, x.rank - batch)
    at = tuples(g, x, batch, width, (*x.shape[:batch], *g.shape(g.int(0, 2))))

    def have_one_batch(x, at):
        return x.shape[:batch] == at.shape[:batch]

    g.emit("GatherND", [x, g.hold(at, 0.4, keep=True)], valid=have_one_batch, batch_dims=batch)


def scatter_elements(g):
    x = g.value(op="ScatterElements", low=1)
    axis = g.int(-x.rank, x.rank - 1)
    how = g.pick(
        [None, None, "add", "mul", "max", "min"] if g.opset >= 18 else [None, "add", "mul"] if g.opset >= 16 else [None]
    )
    shape = [g.int(min(1, s), s) for s in x.shape]
    if how is None:  # each element once: the order is not defined
        at = np.argsort(g.rng.random(x.shape), axis)[tuple(slice(s) for s in shape)]
    else:
        shape[axis] = g.pick([1, 2, 5, x.shape[axis]])
        if x.shape[axis] == 0:
            raise Refused("nothing to select")
        at = g.rng.integers(-x.shape[axis], x.shape[axis], shape)
    at = g.hold(at.astype(g.pick([np.int64, np.int64, np.int32])), 0.4, keep=True)
    g.emit("ScatterElements", [x, at, g.hold(g.data(x.dtype, at.shape), 0.3, keep=True)], axis=axis, reduction=how)


def scatter_nd(g):
    x = g.value(op="ScatterND", low=1)
    width = g.int(1, x.rank)
    how = g.pick(
        [None, None, "add", "mul", "max", "min"] if g.opset >= 18 else [None, "add", "mul"] if g.opset >= 16 else [None]
    )
    sizes = x.shape[:width]
    if 0 in sizes:
        raise Refused("nothing to select")
    if how is None:
        total = int(np.prod(sizes))
        flat = g.rng.permutation(total)[: g.int(1, min(total, 20))]
        at = np.stack(np.unravel_index(flat, sizes), -1).astype(np.int64)
    else:
        at = tuples(g, x, 0, width, (g.int(1, 20),))
    updates = g.hold(g.data(x.dtype, (*at.shape[:-1], *x.shape[width:])), 0.3, keep=True)
    g.emit("ScatterND", [x, g.hold(at, 0.4, keep=True), updates], reduction=how)


def one_hot(g):
    depth = g.int(1, 12)
    # Before opset 11 what is negative was no class; onnxruntime counts it from the end.
    at = g.hold(g.rng.integers(-depth if g.opset > 10 else 0, depth, g.shape(high=2)).astype(g.pick([np.int64, np.int32])), 0.3, keep=True)
    values = g.hold(g.data(g.pick([np.float32, np.int64, np.int32]), (2,)), 0.8, keep=True)
    count = g.hold(np.array(depth, np.int64) if g.maybe() else np.array([depth], np.int64), 0.8, keep=True)
    # onnx.reference multiplies the values by 0 and 1.
    finite = lambda at, count, values: bool(np.isfinite(values.astype(float)).all())  # noqa: E731
    g.emit("OneHot", [at, count, values], valid=finite, axis=g.int(-at.rank - 1, at.rank))


def compress(g):
    x = g.value(low=1)
    axis = None if g.maybe(0.3) else g.int(-x.rank, x.rank - 1)
    length = int(np.prod(x.shape)) if axis is None else x.shape[axis]
    g.emit("Compress", [x, g.hold(g.rng.random(g.int(0, length)) < 0.5, 0.4, keep=True)], axis=axis)


def nonzero(g):
    g.emit("NonZero", [g.value(low=1)])


OPERATORS = [
    gather,
    gather,
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    one_hot,
    compress,
    nonzero,
]
