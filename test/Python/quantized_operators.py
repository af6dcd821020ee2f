"""Operators between quantised tensors: each takes a graph and a value (quantized_graphs.py), and gives the next
value, or None where it does not fit."""

import numpy as np

from quantized_graphs import F32
from quantized_integer_operators import OPERATORS as ON_INTEGERS
from quantized_integer_operators import filters, is_convolved, window


def unary(op, **attributes):
    def make(g, x):
        return g.done(g.node(op, [g.floats(x)], **attributes))

    return make


def clip(g, x):
    low, high = sorted(g.rng.uniform(-3, 6, 2).astype(F32))
    bounds = [g.constant(low), g.constant(high)]
    if g.maybe(0.3):
        bounds[0] = ""
    return g.done(g.node("Clip", [g.floats(x), *bounds]), x if g.maybe() else None)


def relu(g, x):
    return g.done(g.node("Relu", [g.floats(x)]), x if g.maybe() else None)


def root(g, x):
    return g.done(g.node("Sqrt", [g.node("Abs", [g.floats(x)])]))


def inverse(g, x):
    """Infinite ones are quantised."""
    return g.quantized(g.node("Reciprocal", [g.floats(x)]))


def with_scalar(op):
    def make(g, x):
        factor = g.constant(F32(g.rng.integers(1, 64) / 16))
        operands = [g.floats(x), factor]
        return g.done(g.node(op, operands[::-1] if g.maybe() and op != "Div" else operands))

    return make


def swish(g, x):
    floats = g.floats(x)
    gate = g.done(g.node("Sigmoid", [floats]))
    return g.done(g.node("Mul", [floats, g.floats(gate)]))


def binary(op):
    def make(g, x):
        other = g.input(x.shape, scale=0.04) if g.maybe(0.8) else x
        return g.done(g.node(op, [g.floats(x), g.floats(other)]), x if g.maybe(0.4) else None)

    return make


def convolve(g, x):
    """The floats that a convolution makes."""
    shape, group = filters(g, x)
    w, scales = g.weights(shape, 0, 0.01)
    bias = g.bias(x, scales, shape[0])
    if bias and g.maybe(0.3):
        bias = [g.constant(F32(g.rng.integers(-64, 64, shape[0])) / 16)]
    return g.node("Conv", [g.floats(x), w, *bias], group=group, **window(g, x, shape))


def conv(g, x):
    if not is_convolved(x):
        return None
    y = convolve(g, x)
    return g.done(g.node("Relu", [y]) if g.maybe(0.3) else y)


def residual(g, x):
    """What is added to a convolution is quantised, its result is not."""
    if not is_convolved(x):
        return None
    y = convolve(g, x)
    other = g.input(g.known[y].shape)
    total = g.node("Add", [y, g.floats(other)][:: g.pick([1, -1])])
    return g.done(g.node("Relu", [total]) if g.maybe() else total)


def excite(g, x):
    """The mean of a channel decides by how much it is multiplied."""
    if len(x.shape) != 4 or x.scale is None or x.shape[2] * x.shape[3] > 128:
        return None
    mean = g.quantized(g.node("GlobalAveragePool", [g.floats(x)]))
    w, scales = g.weights((x.shape[1], x.shape[1], 1, 1), 0, 0.01)
    gate = g.quantized(g.node("Conv", [g.floats(mean), w, *g.bias(mean, scales, x.shape[1])]))
    gate = g.quantized(g.node("HardSigmoid", [g.floats(gate)], alpha=0.25, beta=0.5))
    return g.done(g.node("Mul", [g.floats(x), g.floats(gate)]))


def turned(g, x):
    """A transposed convolution."""
    if len(x.shape) != 4 or x.scale is None or x.zero.dtype.itemsize > 1 or np.prod(x.shape) > 2000:
        return None
    side, count = g.pick([2, 4]), int(g.rng.integers(1, 6))
    w, scales = g.weights((x.shape[1], count, side, side), 1, 0.01)
    given = dict(strides=[2, 2], pads=[g.pick([0, 1]) for _ in range(4)] if side == 4 else [0] * 4)
    return g.done(g.node("ConvTranspose", [g.floats(x), w, *g.bias(x, scales, count)], **given))


def matmul(g, x):
    if len(x.shape) < 2 or x.scale is None or x.shape[-1] > 512:
        return None
    w, _ = g.weights((x.shape[-1], int(g.rng.integers(1, 20))), 1, 0.01)
    return g.done(g.node("MatMul", [g.floats(x), w]))


def gemm(g, x):
    if len(x.shape) != 2 or x.scale is None or x.shape[-1] > 512:
        return None
    n, turned = int(g.rng.integers(1, 20)), int(g.maybe())
    shape = (n, x.shape[1]) if turned else (x.shape[1], n)
    w, scales = g.weights(shape, 1 - turned, 0.01)
    return g.done(g.node("Gemm", [g.floats(x), w, *g.bias(x, scales, n)], transB=turned))


def product(g, x):
    """Of two tensors that are no constants."""
    if len(x.shape) < 2 or x.scale is None or x.shape[-1] > 512:
        return None
    other = g.input((*x.shape[:-2], x.shape[-1], 5), scale=0.02)
    return g.done(g.node("MatMul", [g.floats(x), g.floats(other)]))


def pool(op, **attributes):
    def make(g, x):
        if len(x.shape) != 4 or min(x.shape[2:]) < 3 or (op == "AveragePool" and x.scale is None):
            return None
        pads = g.pick([0, 1])
        y = g.node(op, [g.floats(x)], kernel_shape=[3, 3], strides=[g.pick([1, 2])] * 2, pads=[pads] * 4, **attributes)
        return g.done(y, x if g.maybe(0.6) else None)

    return make


def of_image(op, **attributes):
    def make(g, x):
        if len(x.shape) != 4 or x.shape[2] * x.shape[3] > 128 or x.scale is None:
            return None
        return g.done(g.node(op, [g.floats(x)], **attributes))

    return make


def reduce(op):
    def make(g, x):
        axis = int(g.rng.integers(len(x.shape)))
        if op not in ("ReduceMax", "ReduceMin") and (x.shape[axis] > 128 or x.scale is None):
            return None
        if op == "ReduceL2" and x.scale > 1e15:  # squares leave the range of f32, in which the reference is not
            return None
        y = g.node(op, [g.floats(x), g.constant(np.array([axis]))], keepdims=int(len(x.shape) == 1 or g.maybe()))
        return g.done(y, x if op in ("ReduceMax", "ReduceMin") and g.maybe(0.7) else None)

    return make


def moved(op, inputs=lambda g, x: [], fits=lambda x: True, **attributes):
    """`attributes` may be functions of the graph and the value."""

    def make(g, x):
        if not fits(x) or np.prod(x.shape) == 0:
            return None
        given = {k: a(g, x) if callable(a) else a for k, a in attributes.items()}
        y = g.node(op, [g.floats(x), *inputs(g, x)], **given)
        return g.done(y, x if g.maybe(0.7) else None)

    return make


def concat(g, x):
    axis = int(g.rng.integers(len(x.shape)))
    other = g.input(x.shape)
    if g.maybe() and x.scale is not None and g.known[other.name].dtype == x.zero.dtype:
        other.scale, other.zero = x.scale, x.zero
    return g.done(g.node("Concat", [g.floats(x), g.floats(other)], axis=axis), x if g.maybe() else None)


def split(g, x):
    axis = int(np.argmax(x.shape))
    if x.shape[axis] < 2:
        return None
    first, second = g.node("Split", [g.floats(x)], outputs=2, axis=axis, num_outputs=2)
    g.done(second, x)
    return g.done(first, x)


def pad(g, x):
    amounts = g.rng.integers(0, 3, 2 * len(x.shape))
    mode = g.pick(["constant", "constant", "edge"])
    inputs = [g.constant(amounts)]
    if mode == "constant" and g.maybe():
        inputs.append(g.constant(F32(g.pick([0.0, 0.3, -1.0]))))
    if np.prod(np.array(x.shape) + 4) > 20000:
        return None
    return g.done(g.node("Pad", [g.floats(x), *inputs], mode=mode), x if g.maybe(0.7) else None)


def resize(g, x):
    if len(x.shape) != 4 or np.prod(x.shape) > 4000:
        return None
    scales = g.constant(np.array([1, 1, 2, 2], F32))
    y = g.node("Resize", [g.floats(x), "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
               nearest_mode="floor")  # fmt: skip
    return g.done(y, x if g.maybe(0.7) else None)


def is_image(x):
    return len(x.shape) == 4


def has_blocks(x):
    return is_image(x) and x.shape[1] % 4 == 0


def is_even(x):
    return is_image(x) and x.shape[2] % 2 == x.shape[3] % 2 == 0


def rows(g, x):
    return [g.constant(np.array([x.shape[0], -1]))]


def most(g, x):
    return [g.constant(np.array([0])), g.constant(np.array([max(1, x.shape[-1] - 1)])), g.constant(np.array([-1]))]


def broadcast(op):
    def make(g, x):
        shape = [n if g.maybe(0.4) else 1 for n in x.shape]
        if g.maybe(0.3):
            other = g.constant(F32(g.rng.integers(1, 64, shape)) / 16)
        else:
            other = g.floats(g.input(shape, scale=0.04))
        return g.done(g.node(op, [g.floats(x), other][:: g.pick([1, -1])]))

    return make


def prelu(g, x):
    slopes = [x.shape[1], *[1] * (len(x.shape) - 2)] if len(x.shape) > 1 and g.maybe(0.7) else []
    return g.done(g.node("PRelu", [g.floats(x), g.constant(F32(g.rng.integers(-16, 32, slopes)) / 32)]))


def chosen(g, x):
    other = g.input(x.shape)
    condition = g.constant(g.rng.random(x.shape) < 0.5)
    return g.done(g.node("Where", [condition, g.floats(x), g.floats(other)]), x if g.maybe() else None)


def normalized(op):
    def make(g, x):
        if len(x.shape) < 3 or x.scale is None or np.prod(x.shape[2:]) > 600:
            return None
        size = x.shape[-1] if op == "LayerNormalization" else x.shape[1]
        given = [g.constant(F32(g.rng.uniform(0.5, 2, size))), g.constant(F32(g.rng.uniform(-1, 1, size)))]
        if op == "BatchNormalization":
            given += [g.constant(F32(g.rng.uniform(-1, 1, size))), g.constant(F32(g.rng.uniform(0.5, 2, size)))]
        return g.done(g.node(op, [g.floats(x), *given]))

    return make


def variadic(op, count=3):
    def make(g, x):
        return g.done(g.node(op, [g.floats(x), *(g.floats(g.input(x.shape)) for _ in range(count - 1))]))

    return make


def parts(g, x):
    """Three parts of known sizes, of which two go on, each in its way."""
    axis = int(np.argmax(x.shape))
    size = x.shape[axis]
    if size < 3:
        return None
    sizes = g.constant(np.array([1, size // 2, size - 1 - size // 2]))
    a, b, c = g.node("Split", [g.floats(x), sizes], outputs=3, axis=axis)
    relu = g.quantized(g.node("Relu", [b]), x)
    whole = [g.floats(g.quantized(c)), g.floats(relu), g.floats(g.quantized(a, x))]
    return g.done(g.node("Concat", whole, axis=axis), x if g.maybe() else None)


def shuffle(g, x):
    """Channels of two groups change places in turn."""
    if len(x.shape) != 4 or x.shape[1] % 2:
        return None
    n, c, h, w = x.shape
    y = g.node("Reshape", [g.floats(x), g.constant(np.array([n, 2, c // 2, h, w]))])
    y = g.node("Transpose", [y], perm=[0, 2, 1, 3, 4])
    return g.done(g.node("Reshape", [y, g.constant(np.array([n, c, h, w]))]), x)


def focus(g, x):
    """Every other row and column as channels."""
    if len(x.shape) != 4 or x.shape[2] % 2 or x.shape[3] % 2:
        return None
    floats = g.floats(x)
    whole = []
    for i, j in [(0, 0), (1, 0), (0, 1), (1, 1)]:
        ends, axes, steps = g.constant(np.array([99, 99])), g.constant(np.array([2, 3])), g.constant(np.array([2, 2]))
        whole.append(g.node("Slice", [floats, g.constant(np.array([i, j])), ends, axes, steps]))
    return g.done(g.node("Concat", whole, axis=1), x if g.maybe() else None)


def backwards(g, x):
    last = g.constant(np.array([-1]))
    return g.done(g.node("Slice", [g.floats(x), last, g.constant(np.array([-999])), last, last]), x)


def resized(g, x):
    """Between neighbours."""
    if len(x.shape) != 4 or np.prod(x.shape) > 4000 or min(x.shape[2:]) < 2:
        return None
    scales = g.constant(np.array([1, 1, g.pick([2, 1.5, 0.5]), 2], F32))
    mode = g.pick(["half_pixel", "asymmetric", "align_corners"])
    return g.done(g.node("Resize", [g.floats(x), "", scales], mode="linear", coordinate_transformation_mode=mode))


def shrunk(g, x):
    if len(x.shape) != 4 or np.prod(x.shape) == 0:
        return None
    sizes = g.constant(np.array([*x.shape[:2], max(1, x.shape[2] - 2), x.shape[3] + 3]))
    y = g.node("Resize", [g.floats(x), "", "", sizes], mode="nearest", coordinate_transformation_mode="half_pixel",
               nearest_mode=g.pick(["round_prefer_floor", "ceil", "floor"]))  # fmt: skip
    return g.done(y, x)


def per_channel(g, x):
    """A scale for each channel, through something that leaves channels where they are or moves them."""
    if len(x.shape) < 2 or np.prod(x.shape) == 0:
        return None
    rank = len(x.shape)
    axis = int(g.rng.integers(rank))
    dtype = g.dtype()
    reach = np.abs(g.known[floats := g.floats(x)]).max() / np.iinfo(dtype).max
    scales = g.constant(np.array([g.scale(reach) for _ in range(x.shape[axis])], F32))
    zeros = g.constant(np.array([g.zero(dtype, -1, 1) for _ in range(x.shape[axis])], dtype))
    perm = [int(i) for i in g.rng.permutation(rank)]
    kind = g.pick(["Transpose", "Relu", "Identity", "Slice", "MaxPool"])
    y = g.node("DequantizeLinear", [g.node("QuantizeLinear", [floats, scales, zeros], axis=axis), scales, zeros], axis=axis)
    if kind == "Transpose":
        y, axis = g.node("Transpose", [y], perm=perm), perm.index(axis)
    elif kind == "Slice":
        y = g.node("Slice", [y, *most(g, x)])
    elif kind == "MaxPool" and rank == 4:
        y = g.node("MaxPool", [y], kernel_shape=[1, 1], strides=[1, 2])
    elif kind == "Relu":
        y = g.node("Relu", [y])
    if g.known[y].shape[axis] == x.shape[perm[axis] if kind == "Transpose" else axis] and g.maybe():
        y = g.node("QuantizeLinear", [y, scales, zeros], axis=axis)
        y = g.node("DequantizeLinear", [y, scales, zeros], axis=axis)
    return g.done(y)


def dynamic(g, x):
    """A product of what is quantised by its own range, or its convolution."""
    if np.prod(x.shape) == 0 or len(x.shape) < 2 or x.shape[-1] > 512:
        return None
    y, scale, zero = g.node("DynamicQuantizeLinear", [g.floats(x)], outputs=3)
    dtype = g.pick([np.int8, np.uint8])
    info = np.iinfo(dtype)
    if len(x.shape) == 4 and g.maybe():
        shape, group = filters(g, x)
        w = g.constant(g.rng.integers(info.min, info.max + 1, shape).astype(dtype))
        total = g.node("ConvInteger", [y, w, zero], group=group, **window(g, x, shape))
    else:
        w = g.constant(g.rng.integers(info.min, info.max + 1, (x.shape[-1], 7)).astype(dtype))
        total = g.node("MatMulInteger", [y, w, zero, g.constant(dtype(g.rng.integers(-3, 4) + (info.max + info.min) // 2))])
    factor = g.node("Mul", [scale, g.constant(F32(2.0**-7))])
    return g.done(g.node("Mul", [g.node("Cast", [total], to=1), factor]))


def attend(g, x):
    """Scores of rows, and what they choose."""
    if len(x.shape) < 2 or x.scale is None or max(x.shape[-2:]) > 64 or np.prod(x.shape) == 0:
        return None
    keys, values = g.input(x.shape, scale=0.02), g.input(x.shape, scale=0.02)
    turn = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
    scores = g.quantized(g.node("MatMul", [g.floats(x), g.node("Transpose", [g.floats(keys)], perm=turn)]))
    weights = g.quantized(g.node("Softmax", [g.node("Mul", [g.floats(scores), g.constant(F32(0.125))])], axis=-1))
    return g.done(g.node("MatMul", [g.floats(weights), g.floats(values)]))


def attend_heads(g, x):
    """Attention whose heads lie beside each other in rows, with a mask."""
    if len(x.shape) != 3 or x.scale is None or x.shape[2] % 2 or x.shape[1] > 64 or np.prod(x.shape) == 0:
        return None
    n, rows, size = x.shape
    heads = g.pick([h for h in (1, 2, 4) if size % h == 0])
    split = g.constant(np.array([n, rows, heads, size // heads]))

    def of_heads(value, order):
        y = g.quantized(g.node("Reshape", [g.floats(value), split]), value)
        return g.floats(g.quantized(g.node("Transpose", [g.floats(y)], perm=order), y))

    keys, values = g.input(x.shape, scale=0.02), g.input(x.shape, scale=0.02)
    scores = g.quantized(g.node("MatMul", [of_heads(x, [0, 2, 1, 3]), of_heads(keys, [0, 2, 3, 1])]))
    floats = g.floats(scores)
    if g.maybe():
        floats = g.floats(g.quantized(g.node("Mul", [floats, g.constant(F32(0.125))])))
    if g.maybe():
        mask = g.constant(F32(np.where(g.rng.random((g.pick([1, n]), 1, 1, rows)) < 0.3, -4, 0)))
        floats = g.node("Add", [floats, mask])
        floats = g.floats(g.quantized(floats)) if g.maybe() else floats
    weights = g.quantized(g.node("Softmax", [floats], axis=-1))
    y = g.quantized(g.node("MatMul", [g.floats(weights), of_heads(values, [0, 2, 1, 3])]))
    y = g.quantized(g.node("Transpose", [g.floats(y)], perm=[0, 2, 1, 3]), y)
    return g.done(g.node("Reshape", [g.floats(y), g.constant(np.array([n, rows, size]))]), y)


def turned_product(g, x):
    """Of two tensors that are no constants, the second one transposed; its batches are broadcast now and then."""
    if len(x.shape) < 2 or x.scale is None or x.shape[-1] > 512:
        return None
    rank, columns = len(x.shape), int(g.rng.integers(1, 70))
    lead = [n if g.maybe(0.7) else 1 for n in x.shape[:-2]]
    other = g.input((*lead, columns, x.shape[-1]), scale=0.02)
    turn = [*range(rank - 2), rank - 1, rank - 2]
    return g.done(g.node("MatMul", [g.floats(x), g.node("Transpose", [g.floats(other)], perm=turn)]))


def dynamic_product(g, x):
    """A product of two tensors that are quantised by their own ranges."""
    if np.prod(x.shape) == 0 or len(x.shape) < 2 or x.shape[-1] > 512:
        return None
    other = g.input((*x.shape[:-2], x.shape[-1], int(g.rng.integers(1, 40))), scale=0.02)
    (a, sa, za), (b, sb, zb) = (g.node("DynamicQuantizeLinear", [g.floats(v)], outputs=3) for v in (x, other))
    total = g.node("Cast", [g.node("MatMulInteger", [a, b, za, zb])], to=1)
    return g.done(g.node("Mul", [total, g.node("Mul", [sa, sb])]))


def from_floats(g, x):
    """A product by weights that are quantised from floats when the model is run."""
    if len(x.shape) < 2 or x.scale is None or x.shape[-1] > 512:
        return None
    n = int(g.rng.integers(1, 20))
    w = g.constant(F32(g.rng.integers(-127, 128, (x.shape[-1], n))) * F32(2.0**-7))
    scales = g.constant(np.array([g.scale(0.01) for _ in range(n)], F32))
    zeros = g.constant(np.zeros(n, np.int8))
    q = g.node("QuantizeLinear", [w, scales, zeros], axis=1)
    return g.done(g.node("MatMul", [g.floats(x), g.node("DequantizeLinear", [q, scales, zeros], axis=1)]))


OPERATORS = {
    "Relu": relu, "Clip": clip, "LeakyRelu": unary("LeakyRelu", alpha=0.25), "Abs": unary("Abs"), "Neg": unary("Neg"),
    "HardSigmoid": unary("HardSigmoid", alpha=0.25, beta=0.5), "HardSwish": unary("HardSwish"),
    "Sigmoid": unary("Sigmoid"), "Tanh": unary("Tanh"), "Gelu": unary("Gelu"), "Elu": unary("Elu"),
    "Exp": unary("Exp"), "Erf": unary("Erf"), "Softplus": unary("Softplus"), "Mish": unary("Mish"),
    "Softmax": unary("Softmax", axis=-1), "Swish": swish,
    "Add scalar": with_scalar("Add"), "Mul scalar": with_scalar("Mul"), "Div scalar": with_scalar("Div"),
    "Add": binary("Add"), "Sub": binary("Sub"), "Mul": binary("Mul"), "Max": binary("Max"), "Min": binary("Min"),
    "Conv": conv, "MatMul": matmul, "Gemm": gemm, "product": product,
    "MaxPool": pool("MaxPool"), "AveragePool": pool("AveragePool"),
    "AveragePool of pads": pool("AveragePool", count_include_pad=1),
    "GlobalAveragePool": of_image("GlobalAveragePool"),
    "ReduceMean": reduce("ReduceMean"), "ReduceMax": reduce("ReduceMax"), "ReduceMin": reduce("ReduceMin"),
    "Concat": concat, "Split": split, "Pad": pad, "Resize": resize, "Reshape": moved("Reshape", rows),
    "Transpose": moved("Transpose", perm=lambda g, x: [int(i) for i in g.rng.permutation(len(x.shape))]),
    "Slice": moved("Slice", most), "Flatten": moved("Flatten"), "Identity": moved("Identity"),
    "Unsqueeze": moved("Unsqueeze", lambda g, x: [g.constant(np.array([0]))], lambda x: len(x.shape) < 4),
    "Tile": moved("Tile", lambda g, x: [g.constant(np.array([1] * (len(x.shape) - 1) + [2]))],
                  lambda x: np.prod(x.shape) < 4000),
    "Expand": moved("Expand", lambda g, x: [g.constant(np.array([2, *[1] * (len(x.shape) - 1)]))],
                    lambda x: x.shape[0] == 1 and np.prod(x.shape) < 4000),
    "Gather": moved("Gather", lambda g, x: [g.constant(g.rng.integers(-x.shape[-1], x.shape[-1], 3))], axis=-1),
    "DepthToSpace": moved("DepthToSpace", fits=has_blocks, blocksize=2),
    "SpaceToDepth": moved("SpaceToDepth", fits=is_even, blocksize=2),
    "PRelu": prelu, "Where": chosen, "Sqrt": root, "Floor": unary("Floor"), "Round": unary("Round"),
    "Sign": unary("Sign"), "Selu": unary("Selu"), "Celu": unary("Celu"), "Reciprocal": inverse,
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=0.5), "Sum": variadic("Sum"), "Mean": variadic("Mean"),
    "Add of broadcast": broadcast("Add"), "Mul of broadcast": broadcast("Mul"), "Sub of broadcast": broadcast("Sub"),
    "LayerNormalization": normalized("LayerNormalization"),
    "InstanceNormalization": normalized("InstanceNormalization"),
    "BatchNormalization": normalized("BatchNormalization"), "Softmax of channels": unary("Softmax", axis=0),
    "GlobalMaxPool": of_image("GlobalMaxPool"), "ReduceSum": reduce("ReduceSum"), "ReduceL2": reduce("ReduceL2"),
    "residual": residual, "excite": excite, "ConvTranspose": turned, "parts": parts, "shuffle": shuffle, "focus": focus,
    "backwards": backwards, "Resize linear": resized, "Resize sizes": shrunk, "per channel": per_channel,
    "dynamic": dynamic, "attend": attend, "attend heads": attend_heads,
    "turned product": turned_product, "dynamic product": dynamic_product, "weights from floats": from_floats,
    **ON_INTEGERS,
}  # fmt: skip
# The ones with sums, which are exact where scales have few bits.
SUMMED = {"Conv", "ConvTranspose", "MatMul", "Gemm", "product", "turned product", "attend heads", "AveragePool",
          "AveragePool of pads", "GlobalAveragePool", "ReduceMean", "residual",
          "excite", "weights from floats"}
SHAPES = [(1, 4, 6, 6), (2, 3, 5, 7), (1, 8, 8, 8), (4, 33), (2, 3, 40), (300,), (1, 16, 12, 12), (1, 4, 3, 5, 4)]


def first_fitting(g, x, names):
    """The value after the first operator of `names` that takes x, with its name; (None, None) without one. Of tensors
    without elements the reference refuses some."""
    is_empty = np.prod(x.shape) == 0
    for name in names:
        try:
            y = OPERATORS[name](g, x)
        except Exception:
            if not is_empty:
                raise
            continue
        if y is not None and (is_empty or np.prod(y.shape) > 0):
            return y, name
    return None, None
