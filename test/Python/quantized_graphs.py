"""Graphs between quantised tensors, and what each of their operators computes.

The reference evaluates node by node in f32, as ONNX says; sums of products and means are added in f64 and
rounded once. With scales of few bits all products and sums of 8 bits are exact, and every answer has one value:
results are compared bit for bit. Functions whose last bit is a library's (APPROXIMATE), operators that are defined
on integers with scales (QLINEAR) and numbers of 16 bits are computed in f64; there an integer may be the other
neighbour where the quotient is half way between two.
"""

import math

import numpy as np
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
F32 = np.float32
CONTRIB = "com.microsoft"
SUMS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool", "ReduceMean"}
APPROXIMATE = {
    "Sigmoid", "Tanh", "Gelu", "Elu", "Exp", "Erf", "Softplus", "Mish", "Softmax", "Selu", "Log", "Celu", "Sqrt",
    "InstanceNormalization", "LayerNormalization", "LpPool", "Mean", "ReduceL2", "ReduceSum", "Resize",
    "Sum",
}
NEAR_HALF = 1e-3  # how near to the middle of two integers a quotient is that may be rounded to either


class Value:
    """A tensor of a graph: integers with their parameters, or, where `scale` is None, floats."""

    def __init__(self, name, shape, scale=None, zero=None):
        self.name, self.shape, self.scale, self.zero = name, tuple(shape), scale, zero


class Graph:
    """A graph that grows by nodes, with the values of one run beside it."""

    def __init__(self, rng, scales="short", pairs=True, types=(np.uint8, np.int8), is_open=False):
        self.rng, self.scales, self.types = rng, scales, types
        self.pairs = pairs  # whether each operator is between QuantizeLinear and DequantizeLinear
        self.is_open = is_open  # whether sizes of inputs are left open
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

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        """Appends a node and evaluates it; returns the names of its results."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, domain=domain, **attributes)
        self.known.update(zip(names, step(node, [self.known.get(i) for i in inputs])))
        self.nodes.append(node)
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
        return self.pick(self.types)

    def zero(self, dtype, low=-1.0, high=1.0):
        """A zero point for floats between `low` and `high`, odd ones more often."""
        info = np.iinfo(dtype)
        low, high = min(low, 0.0), max(high, 0.0)
        at = round(info.min - low / max(high - low, 1e-9) * (info.max - info.min)) + int(self.rng.integers(-2, 3))
        return dtype(np.clip(at | 1 if self.maybe(0.7) else at, info.min, info.max))

    def input(self, shape, dtype=None, scale=0.05):
        """Integers that the caller gives."""
        dtype = dtype or self.dtype()
        name, info = self.name("x"), np.iinfo(dtype)
        value = self.rng.integers(info.min, info.max + 1, shape).astype(dtype)
        self.give(name, value)
        return Value(name, shape, self.scale(scale * 255 / (info.max - info.min)), self.zero(dtype))

    def give(self, name, value):
        """Makes `value` an input."""
        sizes = [f"{name}_{i}" if self.is_open and self.maybe(0.7) else n for i, n in enumerate(value.shape)]
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), sizes))
        self.feeds[name] = self.known[name] = value

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
            scale, zero = self.parameters(x)
        name = self.node("QuantizeLinear", [floats, self.constant(scale), self.constant(zero)])
        return Value(name, x.shape, scale, zero)

    def parameters(self, x):
        """A scale and a zero point for floats."""
        finite = x[np.isfinite(x)]
        low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
        dtype = self.dtype()
        info = np.iinfo(dtype)
        scale = self.scale((max(high, 0) - min(low, 0)) / (info.max - info.min))
        return scale, self.zero(dtype, float(low), float(high))

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
                name,
                helper.np_dtype_to_tensor_dtype(self.known[name].dtype),
                None if self.is_open else self.known[name].shape,
            )
            for name in outputs
        ]
        graph = helper.make_graph(self.nodes, "quantised", self.inputs, infos, self.initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def integers(self):
        """The names of what is quantised on the way."""
        return [node.output[0] for node in self.nodes if node.op_type == "QuantizeLinear" or node.op_type in QLINEAR]

    def is_exact(self):
        return not any(self.is_rounded(node) for node in self.nodes)

    def is_rounded(self, node):
        """Whether what a node computes may differ in the last bits."""
        is_wide = any(np.dtype(t).itemsize > 1 for t in self.types)
        return is_wide or is_approximate(node) or node.op_type in QLINEAR


# The reference


def is_approximate(node):
    is_copy = node.op_type == "Resize" and any(a.name == "mode" and a.s == b"nearest" for a in node.attribute)
    return node.op_type in APPROXIMATE and not is_copy


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


def exactly(x, scale, zero, axis=0):
    """What integers stand for, in f64."""
    return (x.astype(np.float64) - along(zero, x, axis)) * along(scale, x, axis).astype(np.float64)


def evaluate(op, inputs, **attributes):
    names = [f"i{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["o"], **attributes)
    return ReferenceEvaluator(node, opsets={"": OPSET}).run(None, dict(zip(names, inputs)))[0]


def of_convolution(a, x, xs, xz, w, ws, wz, ys, yz, bias=None):
    x, w_ = exactly(x, xs, xz), exactly(w, ws, wz)
    if last := a.pop("channels_last", 0):
        x = np.moveaxis(x, -1, 1)
    given = [] if bias is None else [bias * (np.float64(xs) * ws.astype(np.float64)).reshape(-1) + np.zeros(len(w))]
    y = evaluate("Conv", [x, w_, *given], **a)
    return np.moveaxis(y, 1, -1) if last else y, ys, yz


def of_product(a, x, xs, xz, w, ws, wz, ys, yz):
    return exactly(x, xs, xz) @ exactly(w, ws, wz, w.ndim - 1), ys, yz


def of_gemm(a, x, xs, xz, w, ws, wz, c, ys, yz):
    x, w = exactly(x, xs, xz), exactly(w, ws, wz, 0 if a.get("transB") else 1)
    x, w = x.T if a.get("transA") else x, w.T if a.get("transB") else w
    return a.get("alpha", 1.0) * (x @ w + (0 if c is None else c * (np.float64(xs) * ws.astype(np.float64)))), ys, yz


def of_pool(op):
    def compute(a, x, xs, xz, ys, yz):
        x = exactly(x, xs, xz)
        last = a.pop("channels_last", 0)
        y = evaluate(op, [np.moveaxis(x, -1, 1) if last else x], **a)
        return np.moveaxis(y, 1, -1) if last else y, ys, yz

    return compute


def of_pair(function):
    return lambda a, x, xs, xz, y, ys, yz, zs, zz: (function(exactly(x, xs, xz), exactly(y, ys, yz)), zs, zz)


def of_one(function):
    return lambda a, x, xs, xz, ys, yz: (function(a, exactly(x, xs, xz)), ys, yz)


def of_parts(a, ys, yz, *parts):
    return np.concatenate([exactly(*parts[i : i + 3]) for i in range(0, len(parts), 3)], a["axis"]), ys, yz


def of_choice(a, condition, x, xs, xz, y, ys, yz, zs, zz):
    return np.where(condition, exactly(x, xs, xz), exactly(y, ys, yz)), zs, zz


def softmax(a, x):
    e = np.exp(x - x.max(a["axis"], keepdims=True))
    return e / e.sum(a["axis"], keepdims=True)


# The operators that are defined on integers: from attributes and inputs to numbers, and their scale and zero point.
QLINEAR = {
    "QLinearConv": of_convolution, "QLinearMatMul": of_product, "QGemm": of_gemm,
    "QLinearAdd": of_pair(np.add), "QLinearMul": of_pair(np.multiply), "QLinearWhere": of_choice,
    "QLinearSigmoid": of_one(lambda a, x: 1 / (1 + np.exp(-x))),
    "QLinearLeakyRelu": of_one(lambda a, x: np.where(x < 0, a["alpha"] * x, x)),
    "QLinearSoftmax": of_one(softmax), "QLinearConcat": of_parts,
    "QLinearReduceMean": of_one(lambda a, x: x.mean(tuple(a["axes"]), keepdims=bool(a["keepdims"]))),
    "QLinearAveragePool": of_pool("AveragePool"), "QLinearGlobalAveragePool": of_pool("GlobalAveragePool"),
}  # fmt: skip


def rounded(node, inputs):
    """What a node that makes integers rounds, and its zero point."""
    if node.op_type == "QuantizeLinear":
        return quotient(node, *inputs[:2]), inputs[2]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    value, scale, zero = QLINEAR[node.op_type](attributes, *inputs)
    return value / scale, zero


def step(node, inputs):
    """The results of a node, as arrays."""
    if node.op_type == "DequantizeLinear":
        return [dequantize(node, *inputs)]
    if node.op_type == "QuantizeLinear":
        return [quantize(node, *inputs)]
    if node.op_type in QLINEAR:
        whole, zero = rounded(node, inputs)
        info = np.iinfo(zero.dtype)
        return [np.clip(np.rint(whole) + zero.astype(float), info.min, info.max).astype(zero.dtype)]
    wide = node.op_type in SUMS or is_approximate(node)
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
    loose = set()  # what approximations lead to
    known = {name: graph.known[name] for name in [*graph.feeds, *(i.name for i in graph.initializers)]}
    for node in graph.nodes:
        inputs = [known.get(i) for i in node.input]
        is_loose = graph.is_rounded(node) or not loose.isdisjoint(node.input)
        for name, want in zip(node.output, step(node, inputs)):
            got = answers.get(name)
            known[name] = want if got is None else got
            if got is None:
                loose.update([name] if is_loose else [])
                continue
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"{name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
            wrong = got != want
            if wrong.any() and is_loose and name in graph.integers():
                wrong &= ~may_differ(rounded(node, inputs)[0], got, want)
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
