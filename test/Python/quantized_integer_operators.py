"""Operators that are defined on quantised tensors, as QLinearConv is; quantized_operators.py tells what each takes and gives."""

import numpy as np
from quantized_graphs import CONTRIB, F32, Value


def window(g, x, w):
    """Attributes of a convolution of x by filters of the shape w."""
    rank, sides = len(x.shape) - 2, w[2:]
    dilations = [g.pick([1, 1, 2]) if (side - 1) * 2 < size else 1 for side, size in zip(sides, x.shape[2:])]
    given = dict(strides=[g.pick([1, 1, 2]) for _ in range(rank)], dilations=dilations)
    if g.maybe(0.2) and all(d == 1 for d in dilations):
        return given | dict(auto_pad=g.pick(["SAME_UPPER", "SAME_LOWER"]))
    return given | dict(pads=[g.pick([0, side // 2]) for side in sides * 2])


def filters(g, x):
    """The shape of filters for x, and their groups."""
    channels = x.shape[1]
    group = g.pick([1, 1, channels, 2 if channels % 2 == 0 else 1])
    side = [g.pick([1, 3, 2]) if size >= 3 else 1 for size in x.shape[2:]]
    count = group * g.pick([1, 2]) if group > 1 else int(g.rng.integers(1, 9))
    return (count, channels // group, *side), group


def is_convolved(x):
    return 3 <= len(x.shape) <= 5 and x.scale is not None and x.zero.dtype.itemsize == 1


def given(g, x):
    """A quantised tensor as three inputs."""
    return [x.name, g.constant(x.scale), g.constant(x.zero)]


def is_bytes(x):
    return x.scale is not None and x.zero.dtype.itemsize == 1


def defined(g, op, inputs, numbers, result, domain=CONTRIB, **attributes):
    """A node whose result stands for about `numbers`; `result` is the place of its scale and zero point."""
    scale, zero = g.parameters(F32(numbers))
    inputs = [*inputs[:result], g.constant(scale), g.constant(zero), *inputs[result:]]
    name = g.node(op, inputs, domain=domain, **attributes)
    return Value(name, g.known[name].shape, scale, zero)


def like_input(g, x, like=None):
    """Another tensor, of the type of x."""
    return g.input(like or x.shape, x.zero.dtype.type)


def q_conv(g, x):
    if not is_convolved(x):
        return None
    shape, group = filters(g, x)
    dtype = g.pick([np.int8, np.uint8]) if x.zero.dtype == np.uint8 else np.int8
    info = np.iinfo(dtype)
    w = g.rng.integers(info.min, info.max + 1, shape).astype(dtype)
    count = shape[0] if g.maybe() else 1
    scales = np.array([g.scale(0.01) for _ in range(count)], F32)
    zeros = np.full(count, 0 if dtype == np.int8 else 125, dtype)
    if count == 1:
        scales, zeros = scales[0], zeros[0]
    bias = [g.constant(g.rng.integers(-1000, 1000, shape[0]).astype(np.int32))] if g.maybe() else []
    with_type(g, x)
    inputs = [*given(g, x), g.constant(w), g.constant(scales), g.constant(zeros), *bias]
    y = defined(g, "QLinearConv", inputs, [-20.0, 20], 6, "", group=group, **window(g, x, shape))
    g.types = g.all_types
    return y


def with_type(g, x):
    """Has results of the type of x until `all_types` are allowed again."""
    g.all_types, g.types = getattr(g, "all_types", g.types), (x.zero.dtype.type,)


def of_type(make):
    """Of bytes, with results of the same type."""

    def same(g, x):
        if not is_bytes(x) or np.prod(x.shape) == 0:
            return None
        with_type(g, x)
        try:
            return make(g, x)
        finally:
            g.types = g.all_types

    return same


def q_matmul(g, x):
    if len(x.shape) < 2 or x.shape[-1] > 512:
        return None
    n, dtype = int(g.rng.integers(1, 20)), x.zero.dtype.type
    info = np.iinfo(dtype)
    w = g.rng.integers(info.min, info.max + 1, (x.shape[-1], n)).astype(dtype)
    w = [g.constant(w), g.constant(g.scale(0.01)), g.constant(dtype(3))]
    return defined(g, "QLinearMatMul", [*given(g, x), *w], [-20.0, 20], 6, "")


def q_product(g, x):
    """QLinearMatMul of two tensors that are no constants."""
    if len(x.shape) < 2 or x.shape[-1] > 512:
        return None
    other = g.input((*x.shape[:-2], x.shape[-1], int(g.rng.integers(1, 40))), g.pick([np.uint8, np.int8]), scale=0.02)
    return defined(g, "QLinearMatMul", [*given(g, x), *given(g, other)], [-20.0, 20], 6, "")


def q_gemm(g, x):
    if len(x.shape) != 2 or x.shape[-1] > 512:
        return None
    n, dtype, turn = int(g.rng.integers(1, 20)), x.zero.dtype.type, int(g.maybe())
    w = g.rng.integers(0, 127, (n, x.shape[1]) if turn else (x.shape[1], n)).astype(dtype)
    w = [g.constant(w), g.constant(g.scale(0.01)), g.constant(dtype(60))]
    bias = g.constant(g.rng.integers(-1000, 1000, n).astype(np.int32)) if g.maybe() else ""
    return defined(g, "QGemm", [*given(g, x), *w, bias], [-20.0, 20], 7, transB=turn)


def q_binary(op, about):
    def make(g, x):
        return defined(g, op, [*given(g, x), *given(g, like_input(g, x))], about, 6)

    return make


def q_unary(op, about, **attributes):
    return lambda g, x: defined(g, op, given(g, x), about, 3, **attributes)


def q_where(g, x):
    condition = g.constant(g.rng.random(x.shape) < 0.5)
    return defined(g, "QLinearWhere", [condition, *given(g, x), *given(g, like_input(g, x))], [-6.0, 6], 7)


def q_concat(g, x):
    inputs = [*given(g, x), *given(g, like_input(g, x))]
    return defined(g, "QLinearConcat", inputs, [-6.0, 6], 0, axis=int(g.rng.integers(len(x.shape))))


def q_pool(op, **attributes):
    def make(g, x):
        if len(x.shape) != 4 or min(x.shape[2:]) < 3 or x.shape[2] * x.shape[3] > 128:
            return None
        return defined(g, op, given(g, x), [-4.0, 4], 3, **attributes)

    return make


def q_mean(g, x):
    axes = [int(g.rng.integers(len(x.shape)))]
    return defined(g, "QLinearReduceMean", given(g, x), [-4.0, 4], 3, axes=axes, keepdims=int(len(x.shape) == 1))


OPERATORS = {
    "QLinearConv": q_conv, "QLinearMatMul": of_type(q_matmul), "QLinearMatMul of two": of_type(q_product), "QGemm": of_type(q_gemm),
    "QLinearAdd": of_type(q_binary("QLinearAdd", [-8.0, 8])), "QLinearMul": of_type(q_binary("QLinearMul", [-20.0, 20])),
    "QLinearSigmoid": of_type(q_unary("QLinearSigmoid", [0.0, 1])),
    "QLinearLeakyRelu": of_type(q_unary("QLinearLeakyRelu", [-1.0, 6], alpha=0.25)),
    "QLinearSoftmax": of_type(q_unary("QLinearSoftmax", [0.0, 0.5], axis=-1, opset=13)),
    "QLinearWhere": of_type(q_where), "QLinearConcat": of_type(q_concat), "QLinearReduceMean": of_type(q_mean),
    "QLinearAveragePool": of_type(q_pool("QLinearAveragePool", kernel_shape=[2, 3], pads=[1, 1, 0, 1])),
    "QLinearAveragePool last": of_type(q_pool("QLinearAveragePool", kernel_shape=[2, 2], strides=[2, 1], channels_last=1)),
    "QLinearGlobalAveragePool": of_type(q_pool("QLinearGlobalAveragePool", channels_last=0)),
}  # fmt: skip
