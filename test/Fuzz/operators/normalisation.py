"""Normalisations."""

import numpy as np

from references import Refused

from .windows import image


def need_two(shape):
    """A row of one has no variance: any rounding counts 1 / sqrt(epsilon) times there."""
    if np.prod(shape, dtype=np.int64) < 2:
        raise Refused("one element")


def epsilon(g):
    return g.pick([None, 1e-5, 1e-3])


def parameters(g, dtype, shape, count, low=0.2, high=2):
    return [g.hold(g.data(dtype, shape, low=low, high=high), 0.8) for _ in range(count)]


def batch(g):
    x = g.value(op="BatchNormalization", low=2)
    if x.dtype.kind not in "fV":
        raise Refused("type")
    scale, variance = parameters(g, x.dtype, (x.shape[1],), 2)
    bias, mean = parameters(g, x.dtype, (x.shape[1],), 2, -1)
    g.emit("BatchNormalization", [x, scale, bias, mean, variance], epsilon=epsilon(g))


def instance(g):
    x = image(g, "InstanceNormalization", limit=100)
    need_two(x.shape[2:])
    scale, bias = parameters(g, x.dtype, (x.shape[1],), 2)
    # onnx.reference broadcasts what has not one number a channel.
    fits = lambda x, scale, bias: scale.shape == bias.shape == x.shape[1:2]  # noqa: E731
    g.emit("InstanceNormalization", [x, scale, bias], valid=fits, epsilon=epsilon(g))


def group(g):
    if g.opset < 21:
        raise Refused("its first form was withdrawn")
    x = image(g, "GroupNormalization", limit=65)
    need_two(x.shape[2:])
    groups = g.pick([d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0])
    scale, bias = parameters(g, x.dtype, (x.shape[1],), 2)
    fits = lambda x, scale, bias: scale.shape == bias.shape == x.shape[1:2]  # noqa: E731
    g.emit("GroupNormalization", [x, scale, bias], valid=fits, num_groups=groups, epsilon=epsilon(g))


def layer(g):
    op = g.pick(["LayerNormalization", "LayerNormalization", "RMSNormalization"])
    if not g.has(op):
        raise Refused(op)
    x = g.value(op=op, low=1, test=lambda v: 0 not in v.shape)
    axis = g.pick([-1, -1, g.int(-x.rank, x.rank - 1)])
    shape = x.shape[axis:]
    need_two(shape)
    scale, bias = parameters(g, x.dtype, shape, 2)
    if op == "RMSNormalization":
        return g.emit(op, [x, scale], axis=axis, epsilon=epsilon(g))
    outputs = [True, g.maybe(0.2), g.maybe(0.2)]
    while not outputs[-1]:
        outputs.pop()
    g.emit(op, [x, scale, bias if g.maybe(0.7) else None], outputs=outputs, axis=axis, epsilon=epsilon(g))


def lp(g):
    x = g.value(op="LpNormalization", low=1)
    g.emit(
        "LpNormalization",
        [x],
        valid=lambda v: bool(np.isfinite(v.astype(float)).all()),
        axis=g.int(-x.rank, x.rank - 1),
        p=g.int(1, 2),
    )


def written_out(g):
    """A layer normalisation as exporters once wrote it, which is put together again."""
    x = g.value(np.float32, low=2, test=lambda v: 0 not in v.shape)
    need_two(x.shape[-1:])
    axes = {"axes": [-1]} if g.opset < 18 else {}
    more = [] if axes else [g.hold(np.array([-1], np.int64), 1.0, keep=True)]
    (mean,) = g.emit("ReduceMean", [x, *more], keepdims=1, **axes)
    (centred,) = g.emit("Sub", [x, mean])
    (squared,) = g.emit("Pow", [centred, g.hold(np.array(2, np.float32), 1.0, keep=True)])
    (variance,) = g.emit("ReduceMean", [squared, *more], keepdims=1, **axes)
    (moved,) = g.emit("Add", [variance, g.hold(np.array(1e-5, np.float32), 1.0, keep=True)])
    (root,) = g.emit("Sqrt", [moved])
    (normal,) = g.emit("Div", [centred, root])
    scale, bias = parameters(g, x.dtype, x.shape[-1:], 2)
    (scaled,) = g.emit("Mul", [normal, scale])
    g.emit("Add", [scaled, bias])


OPERATORS = [batch, batch, instance, group, layer, layer, layer, lp, written_out]
