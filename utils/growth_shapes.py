"""Models that grow: for each shape of growth, a maker of models of any size n."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SHAPES = {}


def shape(n):
    """Registers a maker of models; n is the smallest size that the benchmark tries."""

    def register(make):
        SHAPES[make.__name__.replace("_", "-")] = (make, n)
        return make

    return register


class Graph:
    """Nodes, initializers, inputs and outputs in the making."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.initializers = [], [], [], []
        self.count = 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, sizes, kind=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(self.name(), kind, sizes))
        return self.inputs[-1].name

    def output(self, value, sizes, kind=FLOAT):
        self.outputs.append(helper.make_tensor_value_info(value, kind, sizes))

    def constant(self, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), self.name()))
        return self.initializers[-1].name

    def op(self, kind, *inputs, outputs=1, **attributes):
        results = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, results, **attributes))
        return results[0] if outputs == 1 else results

    def graph(self, name="growth"):
        return helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)

    def model(self):
        return helper.make_model(self.graph(), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def weights(*sizes):
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32) * np.float32(0.1)


# Many operands.


@shape(50)
def concat(n):
    g = Graph()
    g.output(g.op("Concat", *[g.input([2, 3 + i % 5]) for i in range(n)], axis=1), [2, None])
    return g.model()


@shape(50)
def concat_branches(n):
    g = Graph()
    x = g.input([4, 8])
    g.output(g.op("Concat", *[g.op("Mul", x, g.constant(weights(8))) for _ in range(n)], axis=1), [4, 8 * n])
    return g.model()


@shape(50)
def concat_open(n):
    g = Graph()
    x = g.input(["N", "C"])
    parts = [g.op("Mul", x, g.constant(np.float32(i))) for i in range(n)]
    g.output(g.op("Concat", *parts, axis=1), ["N", None])
    return g.model()


@shape(200)
def sum_inputs(n):
    g = Graph()
    g.output(g.op("Sum", *[g.input([4, 8]) for _ in range(n)]), [4, 8])
    return g.model()


@shape(100)
def max_open(n):
    g = Graph()
    g.output(g.op("Max", *[g.input(["N", 8]) for _ in range(n)]), ["N", 8])
    return g.model()


@shape(200)
def split(n):
    g = Graph()
    x = g.input([2 * n, 4])
    parts = g.op("Split", x, outputs=n, num_outputs=n)
    for part in parts[:: max(1, n // 16)]:
        g.output(g.op("Relu", part), [2, 4])
    return g.model()


@shape(100)
def split_joined(n):
    g = Graph()
    parts = g.op("Split", g.input([4, 2 * n]), outputs=n, num_outputs=n, axis=1)
    g.output(g.op("Concat", *reversed([g.op("Relu", part) for part in parts]), axis=1), [4, 2 * n])
    return g.model()


@shape(100)
def outputs(n):
    g = Graph()
    x = g.input([4, 8])
    for i in range(n):
        g.output(g.op("Mul", x, g.constant(np.float32(i))), [4, 8])
    return g.model()


@shape(100)
def inputs_and_outputs(n):
    g = Graph()
    for _ in range(n):
        g.output(g.op("Relu", g.input(["N", 8])), ["N", 8])
    return g.model()


# Chains.


@shape(300)
def elementwise_chain(n):
    g = Graph()
    x = g.input([4, 8])
    for i in range(n):
        x = g.op("Sin" if i % 3 else "Relu", x)
    g.output(x, [4, 8])
    return g.model()


@shape(300)
def elementwise_chain_open(n):
    g = Graph()
    x = g.input(["N", "M"])
    for i in range(n):
        x = g.op("Sin" if i % 3 else "Relu", x)
    g.output(x, ["N", "M"])
    return g.model()


@shape(400)
def binary_chain_open(n):
    g = Graph()
    x, y = g.input(["N", "M"]), g.input(["N", "M"])
    for i in range(n):
        x, y = g.op("Add" if i % 2 else "Mul", x, y), x
    g.output(x, ["N", "M"])
    return g.model()


@shape(100)
def product_chain(n):
    g = Graph()
    x = g.input([4, 16])
    for _ in range(n):
        x = g.op("MatMul", x, g.constant(weights(16, 16)))
    g.output(x, [4, 16])
    return g.model()


@shape(100)
def product_chain_open(n):
    g = Graph()
    x = g.input(["N", 16])
    for _ in range(n):
        x = g.op("Relu", g.op("Add", g.op("MatMul", x, g.constant(weights(16, 16))), g.constant(weights(16))))
    g.output(x, ["N", 16])
    return g.model()


@shape(50)
def convolution_chain(n):
    g = Graph()
    x = g.input([1, 8, 8, 8])
    for _ in range(n):
        x = g.op("Relu", g.op("Conv", x, g.constant(weights(8, 8, 3, 3)), pads=[1, 1, 1, 1]))
    g.output(x, [1, 8, 8, 8])
    return g.model()


@shape(50)
def convolution_chain_open(n):
    g = Graph()
    x = g.input(["N", 8, "H", "W"])
    for _ in range(n):
        x = g.op("Relu", g.op("Conv", x, g.constant(weights(8, 8, 3, 3)), pads=[1, 1, 1, 1]))
    g.output(x, ["N", 8, None, None])
    return g.model()


@shape(100)
def transpose_chain(n):
    g = Graph()
    x = g.input([4, 6, 8])
    for i in range(n):
        x = g.op("Transpose", x, perm=[1, 2, 0] if i % 2 else [0, 2, 1])
    g.output(g.op("Relu", x), [None, None, None])
    return g.model()


@shape(100)
def reshape_chain(n):
    g = Graph()
    x = g.input([4, 6, 8])
    for i in range(n):
        x = g.op("Reshape", g.op("Relu", x), g.constant(np.array([[8, 24], [4, 6, 8]][i % 2], np.int64)))
    g.output(x, None)
    return g.model()


@shape(50)
def reshape_transpose_open(n):
    g = Graph()
    x = g.input(["N", "T", 8])
    for _ in range(n):
        x = g.op("Reshape", x, g.constant(np.array([0, 0, 2, 4], np.int64)))
        x = g.op("Relu", g.op("Transpose", x, perm=[0, 2, 1, 3]))
        x = g.op("Transpose", x, perm=[0, 2, 1, 3])
        x = g.op("Reshape", x, g.constant(np.array([0, 0, -1], np.int64)))
    g.output(x, ["N", "T", 8])
    return g.model()


@shape(30)
def shape_arithmetic(n):
    g = Graph()
    x = g.input(["N", "T", "C"])
    zero, one, two = (g.constant(np.int64(i)) for i in range(3))
    axis = g.constant(np.array([0], np.int64))
    for _ in range(n):
        s = g.op("Shape", x)
        d = [g.op("Unsqueeze", g.op("Gather", s, i), axis) for i in (zero, one, two)]
        flat = g.op("Reshape", x, g.op("Concat", g.op("Mul", d[0], d[1]), d[2], axis=0))
        x = g.op("Relu", g.op("Reshape", flat, g.op("Concat", *d, axis=0)))
    g.output(x, [None, None, None])
    return g.model()


@shape(100)
def size_chain(n):
    """Sizes that depend on sizes: each padding makes the next tensor longer."""
    g = Graph()
    x = g.input(["N"])
    for _ in range(n):
        x = g.op("Pad", x, g.constant(np.array([1, 1], np.int64)))
    g.output(x, [None])
    return g.model()


@shape(50)
def scalar_chain(n):
    """Arithmetic on one number that the input decides, used once as a size."""
    g = Graph()
    x = g.input(["N"])
    size = g.op("Shape", x)
    for i in range(n):
        size = g.op("Div", g.op("Add", size, g.constant(np.array([i + 1], np.int64))), g.constant(np.array([2], np.int64)))
    g.output(g.op("Expand", g.constant(np.float32(1)), size), [None])
    return g.model()


@shape(100)
def gather_chain(n):
    g = Graph()
    x = g.input(["N", 16])
    i = g.constant(np.arange(16, dtype=np.int64)[::-1].copy())
    for _ in range(n):
        x = g.op("Gather", x, i, axis=1)
    g.output(x, ["N", 16])
    return g.model()


@shape(100)
def constants_chain(n):
    """Nothing but constants: all of it is computed once."""
    g = Graph()
    x = g.constant(weights(40))
    for _ in range(n):
        x = g.op("Add", g.op("Mul", x, g.constant(weights(40))), g.constant(weights(40)))
    g.output(g.op("Add", g.input([40]), x), [40])
    return g.model()


@shape(100)
def scatter_chain(n):
    g = Graph()
    x, i, u = g.input(["N"]), g.input(["K"], INT64), g.input(["K"])
    for _ in range(n):
        x = g.op("ScatterElements", x, i, u, axis=0)
    g.output(x, ["N"])
    return g.model()


@shape(50)
def softmax_chain(n):
    g = Graph()
    x = g.input(["N", 32])
    for _ in range(n):
        x = g.op("Softmax", g.op("LayerNormalization", x, g.constant(weights(32)), g.constant(weights(32))), axis=-1)
    g.output(x, ["N", 32])
    return g.model()


# Fan in and fan out.


@shape(100)
def slices_open(n):
    g = Graph()
    x = g.input(["N", "M"])
    one = g.constant(np.array([1], np.int64))
    for i in range(n):
        start, end = g.constant(np.array([i], np.int64)), g.constant(np.array([i + 4], np.int64))
        s = g.op("Slice", x, start, end, one)
        y = s if i == 0 else g.op("Concat", y, s, axis=0) if i % 8 == 0 else y
        if i % 8:
            g.output(g.op("Relu", s), [None, None])
    g.output(y, [None, None])
    return g.model()


@shape(100)
def fan_in_out(n):
    g = Graph()
    x = g.op("Exp", g.input(["N", 8]))
    parts = [g.op("Mul", x, g.constant(weights(8))) for _ in range(n)]
    while len(parts) > 1:
        parts = [g.op("Add", *pair) if len(pair) == 2 else pair[0] for pair in (parts[i : i + 2] for i in range(0, len(parts), 2))]
    g.output(parts[0], ["N", 8])
    return g.model()


@shape(30)
def dense_blocks(n):
    """Each layer reads what all before it made, as in DenseNet."""
    g = Graph()
    features = [g.input([1, 4, 8, 8])]
    for i in range(n):
        start = i - i % 24
        x = g.op("Concat", *features[-(i - start + 1) :], axis=1)
        channels = 4 * (i - start + 1)
        x = g.op("Conv", g.op("Relu", x), g.constant(weights(4, channels, 1, 1)))
        features.append(x)
    g.output(features[-1], [1, 4, 8, 8])
    return g.model()


@shape(40)
def residual_blocks(n):
    g = Graph()
    x = g.input(["N", 16])
    for _ in range(n):
        y = g.op("LayerNormalization", x, g.constant(weights(16)), g.constant(weights(16)))
        y = g.op("Gelu", g.op("MatMul", y, g.constant(weights(16, 32))))
        x = g.op("Add", x, g.op("MatMul", y, g.constant(weights(32, 16))))
    g.output(x, ["N", 16])
    return g.model()


@shape(8)
def shifted_windows(n):
    """Rolls by slices and concatenations, windows by reshapes and transpositions, as in Swin."""
    g = Graph()
    x = g.input([1, 16, 16, 8])
    ints = lambda *values: g.constant(np.array(values, np.int64))
    for i in range(n):
        y = x
        if i % 2:
            for axis in (1, 2):
                head = g.op("Slice", y, ints(0), ints(2), ints(axis))
                tail = g.op("Slice", y, ints(2), ints(1 << 40), ints(axis))
                y = g.op("Concat", tail, head, axis=axis)
        y = g.op("Transpose", g.op("Reshape", y, ints(1, 4, 4, 4, 4, 8)), perm=[0, 1, 3, 2, 4, 5])
        y = g.op("Reshape", y, ints(16, 16, 8))
        q, k, v = (g.op("MatMul", y, g.constant(weights(8, 8))) for _ in range(3))
        scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), axis=-1)
        y = g.op("MatMul", scores, v)
        y = g.op("Transpose", g.op("Reshape", y, ints(1, 4, 4, 4, 4, 8)), perm=[0, 1, 3, 2, 4, 5])
        x = g.op("Add", x, g.op("Reshape", y, ints(1, 16, 16, 8)))
    g.output(x, [1, 16, 16, 8])
    return g.model()


@shape(50)
def distinct_kernels(n):
    g = Graph()
    x = g.input([200])
    for i in range(n):
        part = g.op("Slice", x, g.constant(np.array([0], np.int64)), g.constant(np.array([100 + i % 97], np.int64)))
        g.output(g.op("ReduceSum", g.op("Pow", part, g.constant(np.float32(i + 2))), keepdims=1), [1])
    return g.model()


@shape(500)
def initializers(n):
    g = Graph()
    parts = [g.constant(weights(40)) for _ in range(n)]
    x = g.op("Relu", g.input([40]))
    for i, part in enumerate(parts):
        if i % 20 == 0:
            x = g.op("Add", x, part)
    g.output(x, [40])
    return g.model()


# Depth.


@shape(5)
def nested_loops(n):
    def body(depth):
        g = Graph()
        g.count = depth * 1000
        g.inputs = [
            helper.make_tensor_value_info(f"i{depth}", INT64, []),
            helper.make_tensor_value_info(f"c{depth}", BOOL, []),
            helper.make_tensor_value_info(f"x{depth}", FLOAT, [4]),
        ]
        y = g.op("Relu", f"x{depth}")
        if depth:
            trips = g.op("Constant", value=numpy_helper.from_array(np.int64(2)))
            y = g.op("Loop", trips, "", y, body=body(depth - 1))
        g.nodes.append(helper.make_node("Identity", [f"c{depth}"], [f"d{depth}"]))
        g.output(f"d{depth}", [], BOOL)
        g.output(y, [4])
        return g.graph(f"g{depth}")

    g = Graph()
    trips = g.op("Constant", value=numpy_helper.from_array(np.int64(2)))
    g.output(g.op("Loop", trips, "", g.input([4]), body=body(n - 1)), [4])
    return g.model()


@shape(5)
def nested_ifs(n):
    def branch(depth, side):
        g = Graph()
        g.count = depth * 1000 + side * 100
        y = g.op("Relu" if side else "Neg", "x")
        if depth and side:
            y = g.op("If", "c", then_branch=branch(depth - 1, 1), else_branch=branch(depth - 1, 0))
        g.output(y, ["N"])
        return g.graph(f"g{depth}_{side}")

    g = Graph()
    g.inputs = [helper.make_tensor_value_info("x", FLOAT, ["N"]), helper.make_tensor_value_info("c", BOOL, [])]
    g.count = 10**6
    g.output(g.op("If", "c", then_branch=branch(n - 1, 1), else_branch=branch(0, 0)), ["N"])
    return g.model()


@shape(20)
def many_ifs(n):
    g = Graph()
    g.inputs = [helper.make_tensor_value_info("c", BOOL, [])]
    x = g.input(["N"])
    for i in range(n):
        branches = {}
        for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
            b = Graph()
            b.count = 10**6 + i * 100 + len(branches) * 10
            b.output(b.op(op, x), ["N"])
            branches[name] = b.graph(name)
        x = g.op("If", "c", **branches)
    g.output(x, ["N"])
    return g.model()


@shape(20)
def long_loop_body(n):
    b = Graph()
    b.count = 10**6
    for name, kind, sizes in (("i", INT64, []), ("go", BOOL, []), ("s", FLOAT, [8])):
        b.inputs.append(helper.make_tensor_value_info(name, kind, sizes))
    y = "s"
    for _ in range(n):
        y = b.op("Softmax", b.op("Add", y, b.constant(weights(8))))
    b.output(b.op("Identity", "go"), [], BOOL)
    b.output(y, [8])
    g = Graph()
    g.output(g.op("Loop", g.constant(np.int64(3)), "", g.input([8]), body=b.graph("body")), [8])
    return g.model()
