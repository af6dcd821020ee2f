"""Graphs between quantised tensors, and what each of their operators computes.

The reference evaluates node by node in f32, as ONNX says; sums of products and means are added in f64 and
rounded once. With scales of few bits all products and sums are exact, and every answer has one value: results
are compared bit for bit. Functions whose last bit is a library's (APPROXIMATE) are computed in f64; there an
integer may be the other neighbour where the quotient is half way between two.
"""

import math

import numpy as np
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
F32 = np.float32
SUMS = {"Conv", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool", "ReduceMean"}
APPROXIMATE = {"Sigmoid", "Tanh", "Gelu", "Elu", "Exp", "Erf", "Softplus", "Mish", "Softmax", "Selu", "Log", "Celu"}
NEAR_HALF = 1e-3  # how near to the middle of two integers a quotient is that may be rounded to either


class Value:
    """A tensor of a graph: integers with their parameters, or, where `scale` is None, floats."""

    def __init__(self, name, shape, scale=None, zero=None):
        self.name, self.shape, self.scale, self.zero = name, tuple(shape), scale, zero


class Graph:
    """A graph that grows by nodes, with the values of one run beside it."""

    def __init__(self, rng, scales="short", pairs=True):
        self.rng, self.scales = rng, scales
        self.pairs = pairs  # whether each operator is between QuantizeLinear and DequantizeLinear
        self.nodes, self.initializers, self.inputs = [], [], []
        self.feeds, self.known = {}, {}
        self.count = 0

    def name(self, stem="t"):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, array):
        array = np.asarray(array)
        name = self.name("c")
        self.initializers.append(numpy_helper.from_array(array, name))
        self.known[name] = array
        return name

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def maybe(self, chance=0.5):
        return self.rng.random() < chance

    def node(self, op, inputs, outputs=1, **attributes):
        """Appends a node and evaluates it; returns the names of its results."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, **attributes)
        self.nodes.append(node)
        self.known.update(zip(names, step(node, [self.known.get(i) for i in inputs])))
        return names if outputs > 1 else names[0]

    # Quantised tensors

    def scale(self, about):
        """A scale near `about`."""
        about = max(float(about), 1e-6)
        if self.scales == "any":
            return F32(about * self.rng.uniform(0.8, 1.5))
        power = 2.0 ** np.floor(np.log2(about))
        if self.scales == "pow2":
            return F32(power * 2)
        return F32(power * self.rng.integers(64, 128) / 64)

    def dtype(self):
        return self.pick([np.uint8, np.int8])

    def zero(self, dtype, low=-1.0, high=1.0):
        """A zero point for floats between `low` and `high`, odd ones more often."""
        info = np.iinfo(dtype)
        low, high = min(low, 0.0), max(high, 0.0)
        at = round(info.min - low / max(high - low, 1e-9) * 255) + int(self.rng.integers(-2, 3))
        return dtype(np.clip(at | 1 if self.maybe(0.7) else at, info.min, info.max))

    def input(self, shape, dtype=None, scale=0.05):
        """Integers that the caller gives."""
        dtype = dtype or self.dtype()
        name, info = self.name("x"), np.iinfo(dtype)
        value = self.rng.integers(info.min, info.max + 1, shape).astype(dtype)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
        self.feeds[name] = self.known[name] = value
        return Value(name, shape, self.scale(scale), self.zero(dtype))

    def floats(self, value):
        """The name of the floats that a value stands for."""
        if value.scale is None:
            return value.name
        parameters = [self.constant(value.scale), self.constant(value.zero)]
        if value.zero == 0 and self.maybe(0.3):
            parameters.pop()
        return self.node("DequantizeLinear", [value.name, *parameters])

    def quantized(self, floats, like=None):
        """Integers for floats: with the parameters of `like`, or with their own."""
        x = self.known[floats]
        if like is not None and like.scale is not None:
            scale, zero = like.scale, like.zero
        else:
            finite = x[np.isfinite(x)]
            low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
            dtype = self.dtype()
            scale = self.scale((max(high, 0) - min(low, 0)) / 255)
            zero = self.zero(dtype, float(low), float(high))
        name = self.node("QuantizeLinear", [floats, self.constant(scale), self.constant(zero)])
        return Value(name, x.shape, scale, zero)

    def done(self, floats, like=None):
        """What the next operator takes: integers, or, now and then, the floats themselves."""
        if not self.pairs and self.maybe(0.25):
            return Value(floats, self.known[floats].shape)
        return self.quantized(floats, like)

    def weights(self, shape, axis, reach):
        """Dequantised constant weights and their scales, one or one for each index of `axis`."""
        dtype = self.pick([np.int8, np.int8, np.uint8])
        info = np.iinfo(dtype)
        value = self.rng.integers(max(info.min, -127), info.max + 1, shape).astype(dtype)
        count = shape[axis] if self.maybe(0.6) else 1
        scales = np.array([self.scale(reach) for _ in range(count)], F32)
        zeros = np.zeros(count, dtype) if dtype == np.int8 else self.rng.integers(100, 150, count).astype(dtype)
        if count == 1 and self.maybe():
            scales, zeros = scales[0], zeros[0]
        names = [self.constant(value), self.constant(scales), self.constant(zeros)]
        if dtype == np.int8 and self.maybe(0.3):
            names.pop()
        return self.node("DequantizeLinear", names, axis=axis), scales

    def bias(self, x, scales, count):
        """Nothing, or a bias of integers in the scale of the products."""
        if self.maybe(0.3):
            return []
        value = self.rng.integers(-1000, 1000, count).astype(np.int32)
        scales = np.asarray(F32(x.scale) * scales, F32)
        if scales.size == 1 and count > 1:
            scales = scales.reshape(())
        return [self.node("DequantizeLinear", [self.constant(value), self.constant(scales)], axis=0)]

    def model(self, outputs):
        """The model whose results are the values `outputs`, by name."""
        infos = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(self.known[name].dtype), self.known[name].shape
            )
            for name in outputs
        ]
        graph = helper.make_graph(self.nodes, "quantised", self.inputs, infos, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

    def integers(self):
        """The names of what is quantised on the way."""
        return [node.output[0] for node in self.nodes if node.op_type == "QuantizeLinear"]

    def is_exact(self):
        return not any(node.op_type in APPROXIMATE for node in self.nodes)


# The reference


def along(parameter, x, axis):
    if parameter.ndim == 0 or parameter.size == 1:
        return parameter.reshape(())
    shape = [1] * x.ndim
    shape[axis] = -1
    return parameter.reshape(shape)


def axis_of(node):
    return next((a.i for a in node.attribute if a.name == "axis"), 1)


def dequantize(node, x, scale, zero=None):
    whole = x.astype(np.int32)
    if zero is not None:
        whole = whole - along(zero, x, axis_of(node)).astype(np.int32)
    return (whole.astype(F32) * along(scale, x, axis_of(node))).astype(F32)


def quotient(node, x, scale):
    with np.errstate(all="ignore"):
        return x.astype(F32) / along(scale, x, axis_of(node))


def quantize(node, x, scale, zero):
    info = np.iinfo(zero.dtype)
    whole = np.rint(quotient(node, x, scale)) + along(zero, x, axis_of(node)).astype(F32)
    return np.clip(whole, info.min, info.max).astype(zero.dtype)


def step(node, inputs):
    """The results of a node, as arrays."""
    if node.op_type == "DequantizeLinear":
        return [dequantize(node, *inputs)]
    if node.op_type == "QuantizeLinear":
        return [quantize(node, *inputs)]
    wide = node.op_type in SUMS or node.op_type in APPROXIMATE
    feeds = {
        name: value.astype(np.float64) if wide and value.dtype == F32 else value
        for name, value in zip(node.input, inputs)
        if name
    }
    with np.errstate(all="ignore"):
        if node.op_type == "Gelu":  # a function that onnx.reference knows for models only
            (x,) = feeds.values()
            results = [x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))]
        else:
            results = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, feeds)
        return [np.asarray(r).astype(F32) if np.asarray(r).dtype == np.float64 else np.asarray(r) for r in results]


def differences(graph, answers):
    """What is wrong with `answers` (by name): a sentence, or None. Where a name's answer is known, the nodes
    after it are evaluated on that."""
    known = {name: graph.known[name] for name in [*graph.feeds, *(i.name for i in graph.initializers)]}
    for node in graph.nodes:
        inputs = [known.get(i) for i in node.input]
        for name, want in zip(node.output, step(node, inputs)):
            got = answers.get(name)
            known[name] = want if got is None else got
            if got is None:
                continue
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"{name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
            wrong = got != want
            if wrong.any() and node.op_type == "QuantizeLinear" and not graph.is_exact():
                wrong &= ~may_differ(quotient(node, *inputs[:2]), got, want)
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                made = maker(graph, node)
                return f"{name} ({made}): {wrong.sum()} of {wrong.size}, at {at} {got[at]} and not {want[at]}"
    return None


def may_differ(exact, got, want):
    """Where neighbours are both right: the quotient is nearly half way between them."""
    fraction = np.abs(exact - np.floor(exact) - 0.5)
    near = fraction < NEAR_HALF * np.maximum(1, np.abs(exact) / 64)
    return near & (np.abs(got.astype(int) - want.astype(int)) == 1)


def maker(graph, node):
    """The operators that lead to a QuantizeLinear, back to the last one."""
    by = {o: n for n in graph.nodes for o in n.output}
    ops, at = [], by.get(node.input[0])
    while at is not None and at.op_type not in ("DequantizeLinear", "QuantizeLinear"):
        ops.append(at.op_type)
        at = by.get(at.input[0])
    return " of ".join(ops) or node.op_type


# Operators: each takes a graph and a value, and gives the next value, or None where it does not fit.


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


def conv(g, x):
    if len(x.shape) != 4 or x.scale is None:
        return None
    channels = x.shape[1]
    group = g.pick([1, 1, channels])
    side = g.pick([1, 3]) if min(x.shape[2:]) >= 3 else 1
    filters = channels * g.pick([1, 2]) if group > 1 else int(g.rng.integers(1, 9))
    w, scales = g.weights((filters, channels // group, side, side), 0, 0.01)
    pad, stride = side // 2 * g.pick([0, 1]), g.pick([1, 1, 2])
    inputs = [g.floats(x), w, *g.bias(x, scales, filters)]
    y = g.node("Conv", inputs, group=group, pads=[pad] * 4, strides=[stride] * 2, kernel_shape=[side] * 2)
    return g.done(g.node("Relu", [y]) if g.maybe(0.3) else y)


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
        if op == "ReduceMean" and (x.shape[axis] > 128 or x.scale is None):
            return None
        y = g.node(op, [g.floats(x), g.constant(np.array([axis]))], keepdims=int(len(x.shape) == 1 or g.maybe()))
        return g.done(y, x if op != "ReduceMean" and g.maybe(0.7) else None)

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


def window(g, x):
    return [g.constant(np.array([0])), g.constant(np.array([max(1, x.shape[-1] - 1)])), g.constant(np.array([-1]))]


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
    "Slice": moved("Slice", window), "Flatten": moved("Flatten"), "Identity": moved("Identity"),
    "Unsqueeze": moved("Unsqueeze", lambda g, x: [g.constant(np.array([0]))], lambda x: len(x.shape) < 4),
    "Tile": moved("Tile", lambda g, x: [g.constant(np.array([1] * (len(x.shape) - 1) + [2]))],
                  lambda x: np.prod(x.shape) < 4000),
    "Expand": moved("Expand", lambda g, x: [g.constant(np.array([2, *[1] * (len(x.shape) - 1)]))],
                    lambda x: x.shape[0] == 1 and np.prod(x.shape) < 4000),
    "Gather": moved("Gather", lambda g, x: [g.constant(g.rng.integers(-x.shape[-1], x.shape[-1], 3))], axis=-1),
    "DepthToSpace": moved("DepthToSpace", fits=has_blocks, blocksize=2),
    "SpaceToDepth": moved("SpaceToDepth", fits=is_even, blocksize=2),
}  # fmt: skip
# The ones with sums, which are exact where scales have few bits.
SUMMED = {"Conv", "MatMul", "Gemm", "product", "AveragePool", "AveragePool of pads", "GlobalAveragePool", "ReduceMean"}
SHAPES = [(1, 4, 6, 6), (2, 3, 5, 7), (1, 8, 8, 8), (4, 33), (2, 3, 40), (300,), (1, 16, 12, 12)]


def first_fitting(g, x, names):
    """The value after the first operator of `names` that takes x, with its name; (None, None) without one."""
    for name in names:
        if (y := OPERATORS[name](g, x)) is not None and np.prod(y.shape) > 0:
            return y, name
    return None, None


def run(graph, outputs, options=None):
    import sardonyx

    session = sardonyx.InferenceSession(graph.model(outputs).SerializeToString(), options)
    return dict(zip(outputs, session.run(None, graph.feeds)))


def check(graph, options=None):
    """Raises where the graph is computed wrong: its last integers alone, and each of them as a result."""
    names = graph.integers()
    last = run(graph, names[-1:], options)
    if graph.is_exact():
        assert not (wrong := differences(graph, last)), wrong
    each = run(graph, names, options)
    assert not (wrong := differences(graph, each)), wrong
    name = names[-1]
    assert np.array_equal(last[name], each[name]), f"{name} hangs on which values are results"
