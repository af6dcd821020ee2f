"""Unary, binary and variadic operators on elements."""

import numpy as np

from references import EPSILON, Refused

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Identity IsInf IsNaN Log Neg Not
 Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Mish HardSwish BitwiseNot""".split()
# With attributes, and the range that these are drawn from.
PARAMETRIC = {
    "Celu": {"alpha": (0.1, 2)},
    "Elu": {"alpha": (0.1, 2)},
    "HardSigmoid": {"alpha": (0.1, 1), "beta": (0, 1)},
    "LeakyRelu": {"alpha": (-0.5, 0.5)},
    "Selu": {"alpha": (0.5, 2), "gamma": (0.5, 2)},
    "Shrink": {"lambd": (0, 1), "bias": (-1, 1)},
    "ThresholdedRelu": {"alpha": (0, 1)},
    "Swish": {"alpha": (0.5, 2)},
}
BINARY = """Add Sub Mul Add Sub Mul Div And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual
 Less LessOrEqual PRelu""".split()
VARIADIC = ["Max", "Min", "Mean", "Sum"]


def pair(g, op, **limits):
    """Two inputs of one type that broadcast."""
    a = g.value(op=op)
    b = g.value(a.dtype, test=lambda v: broadcasts(a.shape, v.shape), reuse=0.5) if g.maybe(0.5) else None
    if b is None:
        b = g.new(a.dtype, g.broadcast(a.shape), **limits)
    return (b, a) if g.maybe(0.3) else (a, b)


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(a[::-1], b[::-1]))


def unary(g):
    op = g.pick(UNARY)
    g.emit(op, [g.value(op=op)])


def isinf(g):
    g.emit("IsInf", [g.value(op="IsInf")], detect_negative=g.int(0, 1), detect_positive=g.int(0, 1))


def parametric(g):
    op = g.pick(list(PARAMETRIC))
    attributes = {k: float(np.float32(g.rng.uniform(*r))) for k, r in PARAMETRIC[op].items() if g.maybe(0.7)}
    g.emit(op, [g.value(op=op)], **attributes)


def gelu(g):
    g.emit("Gelu", [g.value(op="Gelu")], approximate=g.pick(["none", "tanh"]))


def binary(g):
    op = g.pick(BINARY)
    if op == "Div":
        return division(g)
    a, b = pair(g, op)
    if op == "PRelu" and a.rank < b.rank:
        a, b = b, a
    g.emit(op, [a, b], valid=keeps_first if op == "PRelu" else None)


def keeps_first(a, b):
    """Whether they broadcast to the shape of the first: references take any."""
    return broadcasts(a.shape, b.shape) and np.broadcast_shapes(a.shape, b.shape) == a.shape


def no_zero(a, b):
    lowest = a.dtype.kind == "i" and (a == np.iinfo(a.dtype).min).any() and (b == -1).any()
    return a.dtype.kind in "fV" or a.dtype in EPSILON or bool((b != 0).all() and not lowest)


def division(g):
    a = g.value(op="Div")
    if a.dtype.kind in "iu":
        b = g.new(a.dtype, g.broadcast(a.shape), low=1, high=9)
    else:
        a, b = pair(g, "Div")
    g.emit("Div", [a, b], valid=no_zero)


def modulo(g):
    a = g.value(op="Mod")
    real = a.dtype in EPSILON
    b = g.new(a.dtype, g.broadcast(a.shape), low=1, high=5)
    g.emit("Mod", [a, b], valid=no_zero, fmod=1 if real else g.int(0, 1))


def power(g):
    a = g.value(op="Pow")
    if a.dtype.kind in "iu":
        b = g.new(g.pick([np.int64, np.int32]), g.broadcast(a.shape), low=0, high=3)
    else:
        b = g.new(g.pick([a.dtype, a.dtype, np.int64, np.float32]), g.broadcast(a.shape), low=-2, high=3)
    g.emit("Pow", [a, b], valid=no_overflow)


def no_overflow(base, exponent):
    """Of integers: the C library's rounding and wrapping are nobody's rule."""
    if base.dtype in EPSILON:
        return True
    try:
        np.broadcast_shapes(base.shape, exponent.shape)
    except ValueError:
        return True  # the references refuse it
    info = np.iinfo(base.dtype)
    with np.errstate(all="ignore"):
        result = np.power(base.astype(np.float64), exponent.astype(np.float64))
    return bool((exponent >= 0).all() and np.isfinite(result).all() and (np.abs(result) < min(info.max, 2.0**50)).all())


def shift(g):
    a = g.value(op="BitShift")
    b = g.new(a.dtype, g.broadcast(a.shape), low=0, high=a.dtype.itemsize * 8 - 1)
    g.emit(
        "BitShift",
        [a, b],
        valid=lambda x, s: bool((s < x.dtype.itemsize * 8).all()),
        direction=g.pick(["LEFT", "RIGHT"]),
    )


def variadic(g):
    op = g.pick(VARIADIC)
    first = g.value(op=op)
    rest = [
        g.new(first.dtype, g.broadcast(first.shape)) if g.maybe() else g.value(first.dtype, shape=first.shape)
        for _ in range(g.int(0, 4))
    ]
    g.emit(op, [first, *rest])


def clip(g):
    x = g.value(op="Clip")
    if g.opset < 11:
        raise Refused("Clip by attributes")
    low, high = sorted(g.data(x.dtype, (2,), low=0 if x.dtype.kind == "u" else -2, high=3).astype(np.float64))
    bounds = [g.hold(np.array(v, x.dtype), 0.7, keep=True) if g.maybe(0.75) else None for v in (low, high)]
    g.emit("Clip", [x, *bounds])


def where(g):
    condition = g.value(bool)
    dtype = g.dtype("Where", 1)
    a, b = (g.new(dtype, g.broadcast(condition.shape)) for _ in range(2))
    if g.maybe(0.4):
        a = g.value(dtype, test=lambda v: broadcasts(v.shape, condition.shape) and broadcasts(v.shape, b.shape))
    g.emit("Where", [condition, a, b])


def dropout(g):
    x = g.value(op="Dropout")
    inputs = [x]
    if g.maybe():
        inputs.append(g.hold(np.array(0.3, np.float32), 1.0))
    g.emit("Dropout", inputs, outputs=[True, g.maybe()])


OPERATORS = [unary, unary, unary, unary, parametric, parametric, isinf, gelu, binary, binary, binary, binary,
             division, modulo, power, shift, variadic, clip, where, dropout]  # fmt: skip
