"""Gradient: central differences of onnx's reference implementation, in double, are the reference."""

import numpy as np
import onnx
import pytest
from graphs import make, run
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

import sardonyx as sdx

TRAINING = "ai.onnx.preview.training"
OPSETS = [helper.make_opsetid("", 22), helper.make_opsetid(TRAINING, 1)]
DOUBLE = TensorProto.DOUBLE


def model(text, xs, zs, y="y", shapes=None, kind=DOUBLE, given=None, opsets=OPSETS):
    """`text`: nodes that make y of xs and zs, which are arrays by name. `given`: names of Gradient's inputs."""
    graph = parser.parse_graph(f"g () => () {{ {text} }}")
    values = {**xs, **zs}
    for name, value in values.items():
        known = helper.np_dtype_to_tensor_dtype(value.dtype)
        shape = (shapes or {}).get(name, value.shape)
        graph.input.append(helper.make_tensor_value_info(name, known, shape))
    graph.output.append(helper.make_tensor_value_info(y, kind, None))
    forward = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    both = onnx.ModelProto()
    both.CopyFrom(forward)
    both.graph.node.append(
        helper.make_node("Gradient", given or list(values), [f"d{x}" for x in xs], name="grad", domain=TRAINING,
                         xs=list(xs), y=y, **({"zs": list(zs)} if zs else {}))  # fmt: skip
    )
    for name, value in xs.items():
        shape = (shapes or {}).get(name, value.shape)
        both.graph.output.append(helper.make_tensor_value_info(f"d{name}", kind, shape))
    return forward, both


def differences(function, values, name, step=1e-6):
    """d sum(function) / d values[name]."""
    result = np.zeros_like(values[name])
    for at in np.ndindex(result.shape):
        ends = []
        for sign in (1, -1):
            moved = {k: v.copy() for k, v in values.items()}
            moved[name][at] += sign * step
            ends.append(np.sum(function(moved)))
        result[at] = (ends[0] - ends[1]) / (2 * step)
    return result


def check(text, xs, zs=None, tolerance=2e-6, own=False, **options):
    zs = zs or {}
    forward, both = model(text, xs, zs, **options)
    if own:  # what the reference cannot do
        session = make(forward)
        function = lambda v: run(session, *v.values())[0]  # noqa: E731
    else:
        reference = ReferenceEvaluator(forward)
        function = lambda v: reference.run(None, v)[0]  # noqa: E731
    values = {**xs, **zs}
    y, *gradients = run(make(both), *values.values())
    np.testing.assert_allclose(y, function(values), rtol=1e-6, atol=1e-7)
    for name, gradient in zip(xs, gradients):
        want = differences(function, values, name)
        assert gradient.shape == want.shape
        np.testing.assert_allclose(gradient, want, rtol=tolerance, atol=tolerance, err_msg=name)
    return gradients


def noise(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def test_names_of_sizes_prove_nothing():
    for names in (["?", "?"], ["N", "N"]):
        check("y = Div(a, b)", {"b": noise(3, 1, low=0.5), "a": noise(3, 3)}, shapes={"a": names, "b": ["M", names[1]]})


# Operators that keep the shape, by the numbers that they are defined for.
UNARY = {
    "steps": (
        ["Abs", "Ceil", "Celu<alpha = 0.7>", "Elu<alpha = 1.3>", "Floor", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
         "LeakyRelu<alpha = 0.1>", "Relu", "Round", "Selu", "Sign", "ThresholdedRelu<alpha = 0.4>"], -2, 2),
    "smooth": (
        ["Asinh", "Atan", "Cos", "Cosh", "Exp", "LogSoftmax<axis = 1>", "Mish", "Neg", "Sigmoid", "Sin", "Sinh", "Softmax",
         "Softmax<axis = 0>", "Softplus", "Softsign", "Tanh"], -2, 2),
    "rounded by the reference": (["Erf", "Gelu", 'Gelu<approximate = "tanh">'], -2, 2),
    "inside": (["Acos", "Asin", "Atanh", "Tan"], -0.9, 0.9),
    "positive": (["Log", "Reciprocal", "Sqrt"], 0.1, 2),
    "outside": (["Acosh"], 1.1, 2),
}  # fmt: skip


def weighted_sum(terms):
    """The sum of these values, the first size of `w` many, each with weights of its own."""
    text = ""
    for i, term in enumerate(terms):
        text += f" i{i} = Constant<value_int = {i}>() w{i} = Gather<axis = 0>(w, i{i}) h{i} = {term} p{i} = Mul(h{i}, w{i})"
    return text + f" y = Sum({', '.join(f'p{i}' for i in range(len(terms)))})"


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    ops, low, high = UNARY[name]
    w = noise(len(ops), 2, 3, 4, seed=1)
    text = weighted_sum([f"{op}(x)" for op in ops])
    check(text, {"x": noise(2, 3, 4, low=low, high=high)}, {"w": w}, own="rounded" in name)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "Transpose<perm = [1, 2, 3, 0]>", "Transpose", "Flatten<axis = 2>",
                                "DepthToSpace<blocksize = 2>", "SpaceToDepth<blocksize = 2>"])  # fmt: skip
def test_other_shapes(op):
    check(f"h = {op}(x) y = Mul(h, h)", {"x": noise(2, 4, 4, 2)}, tolerance=1e-5)


@pytest.mark.parametrize("left, right", [((2, 3), (2, 3)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (4,)), ((2, 1, 2), (1,))])
def test_broadcasting(left, right):
    a, b = noise(*left, low=0.3), noise(*right, seed=1, low=0.5)
    ops = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Pow"]
    w = noise(len(ops), *np.broadcast_shapes(left, right), seed=2)
    text = weighted_sum([f"{op}(a, b)" for op in ops])
    check(text, {"a": a, "b": b}, {"w": w})
    # Of open sizes: what is repeated is known at run time only.
    shapes = {"a": [f"a{i}" for i in range(len(left))], "b": [f"b{i}" for i in range(len(right))]}
    check(weighted_sum(["Mul(a, b)", "Max(a, b)"]), {"a": a, "b": b}, {"w": w[:2]}, shapes=shapes)


def test_three_inputs():
    a, b, c = noise(2, 3), noise(3, seed=1), noise(2, 1, seed=2)
    for op in ("Max", "Min", "Sum"):
        check(f"y = {op}(a, b, c)", {"a": a, "b": b, "c": c})
    check("y = Mean(a, d)", {"a": a, "d": noise(2, 3, seed=3)})
    condition = np.array([[True, False, True]])
    check("y = Where(c, a, b)", {"a": a, "b": b}, {"c": condition})
    check("y = PRelu(a, b)", {"a": a, "b": b})
    low, high = np.array(-0.5), np.array(0.8)
    check("h = Clip(a, l, u) y = Mul(h, h)", {"a": a, "l": low, "u": high})
    check("y = Clip(a, l)", {"a": a, "l": low})
    check("y = Clip(a, , u)", {"a": a, "u": high})


def test_pow_at_zero():
    x = np.array([0.0, 0.0, 0.0, 2.0, -3.0])
    p = np.array([0, 1, 2, 3, 2])
    (dx,) = run(make(model("y = Pow(x, p)", {"x": x}, {"p": p})[1]), x, p)[1:]
    np.testing.assert_allclose(dx, [0, 1, 0, 12, -6])


@pytest.mark.parametrize("left, right", [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)),
                                         ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (1, 2, 3, 2)), ((3,), (2, 3, 2))])  # fmt: skip
def test_matmul(left, right):
    a, b = noise(*left), noise(*right, seed=1)
    check("h = MatMul(a, b) y = Mul(h, h)", {"a": a, "b": b}, tolerance=2e-5)
    if len(left) + len(right) < 6:
        return
    shapes = {"a": [f"a{i}" for i in range(len(left))], "b": [f"b{i}" for i in range(len(right))]}
    check("h = MatMul(a, b) y = Mul(h, h)", {"a": a, "b": b}, tolerance=2e-5, shapes=shapes)


@pytest.mark.parametrize("flips", range(4))
def test_gemm(flips):
    a = noise(3, 2) if flips & 1 else noise(2, 3)
    b = noise(4, 3, seed=1) if flips & 2 else noise(3, 4, seed=1)
    tag = f"transA = {flips & 1}, transB = {flips >> 1}, alpha = 0.7, beta = 1.5"
    check(f"h = Gemm<{tag}>(a, b, c) y = Mul(h, h)", {"a": a, "b": b, "c": noise(4, seed=2)}, tolerance=2e-5)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij, bkj -> bik", "ij,j->i", "i,j->ij", "ijk,k->j", "ij,ij->"])
def test_einsum(equation):
    left, right = equation.replace(" ", "").split("->")[0].split(",")
    sizes = {"b": 2, "i": 3, "j": 4, "k": 2}
    a, b = (noise(*[sizes[label] for label in part], seed=i) for i, part in enumerate((left, right)))
    check(f'h = Einsum<equation = "{equation}">(a, b) y = Mul(h, h)', {"a": a, "b": b}, tolerance=1e-4)


@pytest.mark.parametrize("op", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
def test_reductions(op):
    text, sums = "", []
    for keeps in (0, 1):
        for i, axes in enumerate([None, [1], [0, -1]]):
            k = f"{keeps}{i}"
            given = "" if axes is None else f", a{k}"
            text += f"a{k} = Constant<value_ints = {axes}>() " if axes else ""
            text += f"h{k} = Reduce{op}<keepdims = {keeps}>(x{given}) q{k} = Mul(h{k}, h{k}) s{k} = ReduceSum<keepdims = 0>(q{k}) "
            sums.append(f"s{k}")
    text += f"n = Reduce{op}<noop_with_empty_axes = 1>(x) t = Sum({', '.join(sums)}) y = Add(n, t)"
    check(text, {"x": noise(2, 3, 4, low=0.2)}, tolerance=1e-4)


def test_product_of_zeros():
    x = np.array([[2.0, 3, 4], [2, 0, 4], [0, 0, 5]])
    check("a = Constant<value_ints = [1]>() y = ReduceProd(x, a)", {"x": x})


MOVES = {
    "slice": "s = Constant<value_ints = [3, 0]>() e = Constant<value_ints = [-9, 4]>() "
    "a = Constant<value_ints = [1, 2]>() t = Constant<value_ints = [-2, 3]>() h = Slice(x, s, e, a, t)",
    "gather": "i = Constant<value_ints = [2, 0, 2, -1]>() h = Gather<axis = 1>(x, i)",
    "tile": "r = Constant<value_ints = [1, 2, 3]>() h = Tile(x, r)",
    "expand": "s = Constant<value_ints = [2, 1, 1, 1]>() h = Expand(x, s)",
    "reshape": "s = Constant<value_ints = [4, -1]>() h = Reshape(x, s)",
    "squeeze": "a = Constant<value_ints = [1]>() u = Unsqueeze(x, a) h = Squeeze(u, a)",
    "concat": "h = Concat<axis = -1>(x, x, x)",
    "split": "a, h = Split<axis = 1, num_outputs = 2>(x)",
    "pad": "p = Constant<value_ints = [0, 1, 1, 2, 0, 1]>() h = Pad(x, p)",
    "reflect": 'p = Constant<value_ints = [0, 1, 2, 0, 2, 1]>() h = Pad<mode = "reflect">(x, p)',
    "edge": 'p = Constant<value_ints = [1, 1, 0, 0, 2, 1]>() h = Pad<mode = "edge">(x, p)',
    "trilu": "h = Trilu<upper = 0>(x)",
    "cumsum": "a = Constant<value_int = 1>() h = CumSum<exclusive = 1>(x, a)",
    "topk": "k = Constant<value_ints = [2]>() h, i = TopK<axis = 1>(x, k)",
    "compress": "b = Constant<value_ints = [1, 0, 1, 1]>() c = Cast<to = 9>(b) h = Compress<axis = 2>(x, c)",
    "cast": "i = Cast<to = 1>(x) d = Cast<to = 11>(i) h = Mul(x, x)",
    "shape": "s = Shape(x) d = Cast<to = 11>(s) t = ReduceSum(d) h = Mul(x, t)",
}


@pytest.mark.parametrize("name", MOVES)
def test_movement(name):
    check(MOVES[name] + " y = Mul(h, h)", {"x": noise(2, 3, 4)}, tolerance=1e-5)


def test_pad_value():
    text = "p = Constant<value_ints = [1, 0, 0, 2]>() h = Pad(x, p, v) y = Mul(h, h)"
    check(text, {"x": noise(2, 3), "v": np.array(0.7)}, tolerance=1e-5)


def test_pad_of_nothing():
    check("p = Constant<value_ints = [1, 0, 0, 2]>() h = Pad(x, p) y = Mul(h, h)", {"x": np.zeros((3, 0))})
    check("p = Constant<value_ints = [3, 2]>() y = CenterCropPad(x, p)", {"x": np.zeros((5, 0))})


def test_crops_and_pads():
    """Of a negative border nothing comes back."""
    text = "p = Constant<value_ints = [-1, 2, 1, -2]>() h = Pad(x, p, v) y = Mul(h, h)"
    check(text, {"x": noise(3, 4), "v": noise()}, own=True)


@pytest.mark.parametrize("of", ["x, s", "s, x"])
def test_mod(of):
    check(f"h = Mod<fmod = 1>({of}) y = Mul(h, h)", {"x": noise(3, 4, low=0.6, high=1.9), "s": noise(4, low=0.3, high=0.5)})


@pytest.mark.parametrize("step", [0.5, -0.75])
def test_range(step):
    """The steps are of the first and the distance; where it ends moves nothing."""
    xs = {"start": np.array(0.25), "limit": np.array(8 * step + 0.1), "step": np.array(step)}
    gradients = check("h = Range(start, limit, step) y = Mul(h, h)", xs)
    assert gradients[1] == 0


def test_names_in_refusals():
    """What an operator consists of goes by the operator's own name."""
    _, both = model("h = CenterCropPad(x, p) y = Mul(h, h)", {"x": noise(3, 4)}, {"p": np.array([2, 2])}, shapes={"p": [None]})
    try:
        make(both)
    except sdx.NotImplemented as refusal:
        assert "sdx." not in str(refusal)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatters(reduction):
    x, u = noise(4, 3), noise(2, 3, seed=1)
    i = np.array([[1, 0, 3], [2, 1, 0]])
    check(f'h = ScatterElements<axis = 0, reduction = "{reduction}">(x, i, u) y = Mul(h, h)', {"x": x, "u": u}, {"i": i}, 1e-5)
    j = np.array([[3], [1]])
    check(f'h = ScatterND<reduction = "{reduction}">(x, j, u) y = Mul(h, h)', {"x": x, "u": u}, {"j": j}, 1e-5)
    check("h = GatherElements(x, i) y = Mul(h, h)", {"x": x}, {"i": i}, 1e-5)
    check("h = GatherND(x, j) y = Mul(h, h)", {"x": x}, {"j": j}, 1e-5)


WINDOWS = [
    ("", (2, 2, 5), (3, 2, 2), 3),
    ("strides = [2], pads = [1, 2], dilations = [2]", (1, 2, 9), (2, 2, 3), 2),
    ("group = 2, strides = [2, 1], pads = [1, 0, 0, 2]", (2, 4, 5, 4), (6, 2, 3, 2), 6),
    ("strides = [3, 3]", (1, 1, 8, 7), (2, 1, 2, 3), 2),
]


@pytest.mark.parametrize("tag, image, weights, channels", WINDOWS)
def test_conv(tag, image, weights, channels):
    xs = {"x": noise(*image), "w": noise(*weights, seed=1), "b": noise(channels, seed=2)}
    check(f"h = Conv<{tag}>(x, w, b) y = Mul(h, h)".replace("<>", ""), xs, tolerance=1e-4)


def test_conv_transpose():
    xs = {"x": noise(2, 4, 3, 2), "w": noise(4, 3, 2, 3, seed=1), "b": noise(6, seed=2)}
    for tag in ("group = 2, strides = [2, 3], pads = [1, 0, 0, 1], output_padding = [1, 2]",):
        check(f"h = ConvTranspose<{tag}>(x, w, b) y = Mul(h, h)", xs, tolerance=1e-4, own=True)
    xs["b"] = noise(3, seed=2)
    check("h = ConvTranspose<strides = [2, 1], pads = [1, 0, 0, 1]>(x, w, b) y = Mul(h, h)", xs, tolerance=1e-4)


POOLS = [
    "MaxPool<kernel_shape = [2, 3]>",
    "MaxPool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1]>",
    "MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>",
    "AveragePool<kernel_shape = [2, 3]>",
    "AveragePool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1]>",
    "AveragePool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1], count_include_pad = 1>",
    "AveragePool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>",
    "AveragePool<kernel_shape = [3, 3], strides = [3, 2], pads = [1, 0, 1, 1], ceil_mode = 1, count_include_pad = 1>",
    "GlobalMaxPool",
]


@pytest.mark.parametrize("op", POOLS)
def test_pools(op):
    # The reference reduces too much for GlobalMaxPool, and counts otherwise where it rounds up.
    own = op.startswith("Global") or "ceil_mode" in op
    check(f"h = {op}(x) y = Mul(h, h)", {"x": noise(2, 2, 5, 5)}, tolerance=1e-4, own=own)


def test_normalizations():
    x, scale, bias = noise(2, 3, 4), noise(3, seed=1), noise(3, seed=2)
    mean, var = noise(3, seed=3), abs(noise(3, seed=4)) + 0.2
    stats = {"mean": mean, "var": var}
    check("h = BatchNormalization(x, s, b, mean, var) y = Mul(h, h)", {"x": x, "s": scale, "b": bias, **stats}, tolerance=1e-4)
    check("h = InstanceNormalization(x, s, b) y = Exp(h)", {"x": x, "s": scale, "b": bias}, tolerance=1e-4)
    check("h = LpNormalization<axis = 1, p = 1>(x) g = LpNormalization(h) y = Exp(g)", {"x": x}, tolerance=1e-4, own=True)
    s, b = noise(4, seed=1), noise(4, seed=2)
    latest = [helper.make_opsetid("", 23), OPSETS[1]]
    check("h = RMSNormalization(x, s) y = Exp(h)", {"x": x, "s": s}, tolerance=1e-4, own=True, opsets=latest)
    check("h = LayerNormalization(x, s, b) y = Exp(h)", {"x": x, "s": s, "b": b}, tolerance=1e-3)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    x, labels, weights = noise(4, 3), np.array([0, 2, 1, 2]), noise(3, seed=1, low=0.5)
    for weight in ("", ", w") if reduction == "mean" else ("",):
        zs = {"l": labels, **({"w": weights} if weight else {})}
        tag = f'reduction = "{reduction}", ignore_index = 1'
        check(f"y = SoftmaxCrossEntropyLoss<{tag}>(x, l{weight})", {"x": x}, zs)
        check(f"h = LogSoftmax(x) y = NegativeLogLikelihoodLoss<{tag}>(h, l{weight})", {"x": x}, zs)


def test_network():
    """A little of everything, in single precision, as it would be trained."""
    xs = {"w": noise(4, 2, 3, 3), "b": noise(4, seed=1), "m": noise(16, 3, seed=2)}
    zs = {"x": noise(2, 2, 6, 6, seed=3), "l": np.array([2, 0])}
    text = (
        "c = Conv<pads = [1, 1, 1, 1]>(x, w, b) r = Relu(c) p = MaxPool<kernel_shape = [3, 3], strides = [3, 3]>(r) "
        "f = Flatten(p) o = MatMul(f, m) y = SoftmaxCrossEntropyLoss(o, l)"
    )
    want = check(text, xs, zs, tolerance=1e-4)
    single = {k: v.astype(np.float32) for k, v in xs.items()}
    zs["x"] = zs["x"].astype(np.float32)
    got = run(make(model(text, single, zs, kind=TensorProto.FLOAT)[1]), *single.values(), *zs.values())[1:]
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_of_intermediate_values_elsewhere():
    """The function of xs is evaluated at Gradient's inputs, which may be others."""
    x, h = noise(3), noise(3, seed=1)
    _, both = model("h = Exp(x) y = Mul(h, h)", {"h": h}, {})
    both.graph.input[0].name = "x"
    both.graph.input.append(helper.make_tensor_value_info("other", DOUBLE, [3]))
    both.graph.node[-1].input[0] = "other"
    session = make(both)
    y, dh = session.run(None, {"x": x, "other": h})
    np.testing.assert_allclose(y, np.exp(2 * x))
    np.testing.assert_allclose(dh, 2 * h)
    # The same value for two variables.
    _, both = model("y = Mul(a, b)", {"a": x, "b": x}, {}, given=["a", "a"])
    _, da, db = make(both).run(None, {"a": x, "b": h})
    np.testing.assert_allclose([da, db], [x, x])


def test_what_has_no_influence():
    x, z = noise(3), noise(2, seed=1)
    _, both = model("y = Exp(x)", {"x": x, "z": z}, {})
    _, dx, dz = run(make(both), x, z)
    np.testing.assert_allclose(dx, np.exp(x))
    np.testing.assert_array_equal(dz, [0, 0])
    both.graph.node[-1].output[0] = ""
    del both.graph.output[1]
    np.testing.assert_array_equal(run(make(both), x, z)[1], [0, 0])


@pytest.mark.parametrize("text, second", [("h = Mul(x, x) y = Mul(x, h)", lambda x: 6 * x), ("y = Sin(x)", lambda x: -np.sin(x)),
                                          ("h = Exp(x) y = Tanh(h)", None), ("y = Softmax(x)", None)])  # fmt: skip
def test_second_derivative(text, second):
    x, w = noise(4), noise(4, seed=1)
    _, both = model(text + " o = Mul(y, w)", {"x": x}, {"w": w}, y="o")
    both.graph.node.append(
        helper.make_node("Gradient", ["x", "w"], ["ddx"], name="again", domain=TRAINING, xs=["x"], zs=["w"], y="dx")
    )
    both.graph.output.append(helper.make_tensor_value_info("ddx", DOUBLE, [4]))
    session = make(both)
    ddx = run(session, x, w)[2]
    want = differences(lambda v: run(session, v["x"], w)[1], {"x": x}, "x")
    np.testing.assert_allclose(ddx, want, rtol=1e-5, atol=1e-7)
    if second:
        np.testing.assert_allclose(ddx, w * second(x), rtol=1e-12)


def refused(text, xs, zs, why, error=sdx.errors.InvalidGraph, change=None):
    _, both = model(text, xs, zs)
    if change:
        change(both.graph.node[-1])
    with pytest.raises(error, match=why):
        make(both)


def test_refusals():
    x = {"x": noise(3, 3)}

    def attribute(name, value):
        def change(node):
            kept = [a for a in node.attribute if a.name != name]
            del node.attribute[:]
            node.attribute.extend(kept + [helper.make_attribute(name, value)])

        return change

    unsupported = sdx.errors.NotImplemented

    def without_z(node):
        node.input.pop()
        kept = [a for a in node.attribute if a.name != "zs"]
        del node.attribute[:]
        node.attribute.extend(kept)

    refused("y = Det(x)", x, {}, r"\(Det\): its derivative, which Gradient 'grad' needs, is not supported", unsupported)
    refused("y = Mul(x, z)", x, {"z": noise(3)}, "also a function of 'z'", change=without_z)
    refused("y = Exp(x)", x, {}, "'nothing' in 'y' is the result of no node", change=attribute("y", "nothing"))
    refused("y = Exp(x)", x, {}, "'nothing', which is no value of the graph", change=attribute("xs", ["nothing"]))
    refused("y = Exp(x)", x, {}, "has 1 inputs for the 2 names", change=attribute("xs", ["x", "y"]))
    refused("i = Cast<to = 7>(x) y = Exp(x)", x, {}, "'i' in 'y' is no tensor of floats", change=attribute("y", "i"))
    refused("y = Dropout(x, r, t)", x, {"r": np.float32(0.5), "t": np.array(True)}, "derivative is not supported: .* random numbers", unsupported)
