"""What runs see of tensors, beside what the tensors hold, and that looking changes nothing."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import InvalidArgument

KINDS = "range|moments|bits"


def load(model, observe=None, threads=2):
    options = SessionOptions()
    options.observe, options.intra_op_num_threads = observe, threads
    return InferenceSession(model, options)


def bins_of(values):
    plain = np.ascontiguousarray(values, np.float32).ravel()
    return np.bincount(plain.view(np.uint32) >> 18, minlength=2**14)


def below(bins):
    """How many numbers are below each edge, from the least to the largest; zeros of either sign are one bin."""
    positive, negative = bins[: 2**13].copy(), bins[2**13 :].copy()
    positive[0] += negative[0]
    return np.cumsum(np.concatenate([negative[:0:-1], positive]))


def float_names(model):
    """All results of nodes of the main graph that are floats, and the inputs."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    kinds = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
    values = [*inferred.input, *inferred.value_info, *inferred.output]
    return [value.name for value in values if value.type.tensor_type.elem_type in kinds]


def with_outputs(model, names):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    known = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    for name in names:
        if name not in known and name not in inputs:
            model.graph.output.add().name = name
    return model


def check(model, feeds, kinds=KINDS, names=None, threads=2, rtol=1e-4):
    """Observes all floats on all `feeds` and compares them with outputs of the model."""
    names = names or float_names(model)
    plain, session = load(model, threads=threads), load(model, dict.fromkeys(names, kinds), threads)
    whole = load(with_outputs(model, names), threads=threads)
    outputs = [output.name for output in whole.get_outputs()]
    seen = {name: [] for name in names}
    for feed in feeds:
        for mine, theirs in zip(session.run(None, feed), plain.run(None, feed)):
            np.testing.assert_array_equal(mine.view(np.uint8), theirs.view(np.uint8))
        values = dict(zip(outputs, whole.run(None, feed))) | feed
        for name in names:
            seen[name].append(np.asarray(values[name], np.float64).ravel())
    found = session.take_observations()
    assert list(found) == sorted(names)
    for name in names:
        values = np.concatenate(seen[name])
        numbers = found[name]
        scale = max(1e-30, np.abs(values).max(initial=0)) * rtol
        assert numbers["count"] == values.size, name
        assert numbers["nans"] == numbers["infinities"] == 0
        if values.size:
            np.testing.assert_allclose([numbers["min"], numbers["max"]], [values.min(), values.max()], atol=scale, rtol=0)
        np.testing.assert_allclose(numbers["sum"], values.sum(), atol=scale * max(values.size, 1) / 4, rtol=1e-5)
        np.testing.assert_allclose(numbers["square_sum"], (values**2).sum(), rtol=10 * rtol)
        exact = bins_of(values)
        assert numbers["bins"].sum() == values.size
        # Numbers that differ by their last bit may lie to either side of an edge.
        moved = np.abs(below(numbers["bins"]) - below(exact)).max(initial=0)
        assert moved <= 0.01 * values.size + 2, name
    for numbers in session.take_observations().values():
        assert numbers["count"] == 0 and not numbers["bins"].any() and numbers["min"] == np.inf
    return found


@pytest.fixture
def random():
    return np.random.default_rng(0)


def network(random, dtype=np.float32, size="N", ending=True):
    """Convolutions of many forms, with everything that goes into their kernels, pools, a product and a softmax."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights, nodes = {}, []

    def weight(name, *shape, scale=0.2):
        weights[name] = (random.normal(0, scale, shape)).astype(dtype)
        return name

    def conv(x, y, filters, channels, window, group=1, stride=1):
        pad = window // 2
        inputs = [x, weight(y + "_w", filters, channels // group, window, window), weight(y + "_b", filters)]
        nodes.append(
            helper.make_node("Conv", inputs, [y], name=y, group=group, pads=[pad] * 4, strides=[stride] * 2)
        )

    def node(kind, inputs, y, **attributes):
        nodes.append(helper.make_node(kind, inputs, [y], name=y, **attributes))

    conv("x", "c0", 16, 3, 7, stride=2)
    node("Relu", ["c0"], "r0")
    node("MaxPool", ["r0"], "p0", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    conv("p0", "c1", 24, 16, 1)
    node("Relu", ["c1"], "r1")
    conv("r1", "c2", 24, 24, 3)
    node("Sigmoid", ["c2"], "g2")
    node("Mul", ["c2", "g2"], "m2")
    conv("m2", "c3", 24, 24, 3, group=24)
    node("Relu", ["c3"], "r3")
    conv("r3", "c4", 24, 24, 1)
    node("Add", ["c4", "r1"], "a4")
    node("Relu", ["a4"], "r4")
    conv("r4", "c5", 40, 24, 3, stride=2)
    node("Transpose", ["c5"], "t5", perm=[0, 2, 3, 1])
    node("ReduceMean", ["c5"], "m5", axes=[2, 3], keepdims=0)
    if ending:
        node("Gemm", ["m5", weight("fc_w", 40, 50), weight("fc_b", 50)], "f")
        node("Softmax", ["f"], "y", axis=-1)
    out = "y" if ending else "m5"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, [size, 3, 45, 37])],
        [helper.make_tensor_value_info(out, kind, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_convolutional_network(random, threads):
    feeds = [{"x": random.normal(0, 1, (size, 3, 45, 37)).astype(np.float32)} for size in (1, 2, 0, 5)]
    check(network(random), feeds, threads=threads)


def test_fixed_sizes(random):
    feeds = [{"x": random.normal(0, 1, (2, 3, 45, 37)).astype(np.float32)} for _ in range(3)]
    check(network(random, size=2), feeds)


def test_half_floats(random):
    feeds = [{"x": random.normal(0, 1, (2, 3, 45, 37)).astype(np.float16)} for _ in range(2)]
    check(network(random, np.float16), feeds, rtol=2e-2)


def transformer(random, dims=("B", "S"), width=32, heads=4, kind=TensorProto.FLOAT):
    weights, nodes = {}, []

    def weight(name, *shape):
        weights[name] = helper.make_tensor(name, kind, shape, random.normal(0, 0.2, shape).ravel())
        return name

    def node(op, inputs, y, **attributes):
        nodes.append(helper.make_node(op, inputs, [y], name=y, **attributes))

    weights["split"] = numpy_helper.from_array(np.array([0, 0, heads, width // heads], np.int64), "split")
    weights["join"] = numpy_helper.from_array(np.array([0, 0, width], np.int64), "join")
    weights["root"] = helper.make_tensor("root", kind, [], [(width // heads) ** 0.5])
    for name in "qkv":
        node("MatMul", ["x", weight(name + "_w", width, width)], name + "_m")
        node("Add", [name + "_m", weight(name + "_b", width)], name + "_a")
        node("Reshape", [name + "_a", "split"], name + "_s")
        node("Transpose", [name + "_s"], name, perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])
    node("MatMul", ["q", "k"], "scores")
    node("Div", ["scores", "root"], "scaled")
    node("Softmax", ["scaled"], "shares", axis=-1)
    node("MatMul", ["shares", "v"], "mixed")
    node("Transpose", ["mixed"], "swapped", perm=[0, 2, 1, 3])
    node("Reshape", ["swapped", "join"], "joined")
    node("MatMul", ["joined", weight("o_w", width, width)], "o")
    node("Add", ["o", "x"], "sum")
    node("LayerNormalization", ["sum", weight("n_w", width), weight("n_b", width)], "norm", axis=-1)
    node("MatMul", ["norm", weight("u_w", width, 4 * width)], "up")
    node("Gelu", ["up"], "gelu")
    node("MatMul", ["gelu", weight("d_w", 4 * width, width)], "down")
    node("Add", ["down", "norm"], "y")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, [*dims, width])],
        [helper.make_tensor_value_info("y", kind, None)], list(weights.values()),
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_transformer(random, threads):
    feeds = [{"x": random.normal(0, 1, (batch, length, 32)).astype(np.float32)} for batch, length in ((1, 7), (2, 33))]
    check(transformer(random), feeds, threads=threads)


def test_brain_floats(random):
    import ml_dtypes

    feeds = [{"x": random.normal(0, 1, (2, 9, 32)).astype(ml_dtypes.bfloat16)}]
    model = transformer(random, kind=TensorProto.BFLOAT16)
    names = ["q_m", "q_a", "down", "y", "norm"]
    session = load(model, dict.fromkeys(names, KINDS))
    values = dict(zip(names, load(with_outputs(model, names)).run(names, feeds[0])))
    session.run(None, feeds[0])
    for name, numbers in session.take_observations().items():
        plain = np.asarray(values[name]).astype(np.float64)
        assert numbers["count"] == plain.size
        np.testing.assert_allclose([numbers["min"], numbers["max"]], [plain.min(), plain.max()], rtol=0.05, atol=0.05)


def test_channels_and_products(random, model):
    text = "m (float[B, S, 6] x) => (float[B, S, 5] y) { t = Tanh(x) y = MatMul(t, w) }"
    made = model(text)
    made.graph.initializer.append(numpy_helper.from_array(random.normal(0, 1, (6, 5)).astype(np.float32), "w"))
    session = load(made, {"t": ["gram", ("channels", -1), "range"], "x": [("channels", 1)]})
    arrays = [random.normal(0, 1, (batch, 4, 6)).astype(np.float32) for batch in (1, 3, 700)]
    for array in arrays:
        session.run(None, {"x": array})
    found = session.take_observations()
    rows = np.tanh(np.concatenate(arrays).reshape(-1, 6).astype(np.float64))
    np.testing.assert_allclose(found["t"]["gram"], rows.T @ rows, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found["t"]["channel_max"], rows.max(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found["t"]["channel_min"], rows.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found["t"]["channel_absolute_sum"], np.abs(rows).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found["t"]["channel_square_sum"], (rows**2).sum(axis=0), rtol=1e-5)
    assert found["t"]["channel_count"] == len(rows) and found["t"]["count"] == rows.size
    inputs = np.concatenate(arrays)
    np.testing.assert_array_equal(found["x"]["channel_max"], inputs.max(axis=(0, 2)))
    assert found["x"]["channel_count"] == inputs.size // 4


def test_channels_in_the_middle(random, model):
    session = load(model("m (float[N, 3, 5, 7] x) => (float[N, 3, 5, 7] y) { y = Neg(x) }"), {"y": "channels"})
    array = random.normal(0, 1, (900, 3, 5, 7)).astype(np.float32)
    session.run(None, {"x": array})
    found = session.take_observations()["y"]
    np.testing.assert_array_equal(found["channel_min"], (-array).min(axis=(0, 2, 3)))
    np.testing.assert_allclose(found["channel_square_sum"], (array.astype(np.float64) ** 2).sum(axis=(0, 2, 3)), rtol=1e-9)


def test_another_number_of_channels_fails_the_run(model):
    session = load(model("m (float[N] x) => (float[N] y) { y = Neg(x) }"), {"y": [("channels", 0)]})
    session.run(None, {"x": np.ones(3, np.float32)})
    with pytest.raises(Exception, match="has 4 channels, and had another number of them before"):
        session.run(None, {"x": np.ones(4, np.float32)})


def test_what_is_folded_or_composed(random, model):
    """A constant's node, a BatchNormalization that goes into the weights, a Gelu of five nodes, an Identity."""
    text = """m (float[1, 2, 6, 6] x) => (float[1, 4, 6, 6] y) {
      two = Constant<value = float {2.0}>() k = Sqrt(two) c = Conv<pads = [1, 1, 1, 1]>(x, w)
      n = BatchNormalization(c, v, v, v, v) d = Div(n, k) e = Erf(d) p = Add(e, one) q = Mul(n, p) h = Mul(q, half)
      y = Identity(h) }"""
    made = model(text)
    for name, value in {
        "w": random.normal(0, 1, (4, 2, 3, 3)), "v": np.array([1, 2, 0.5, 3]), "one": np.array(1), "half": np.array(0.5)
    }.items():  # fmt: skip
        made.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    feeds = [{"x": random.normal(0, 1, (1, 2, 6, 6)).astype(np.float32)} for _ in range(2)]
    found = check(made, feeds, names=["x", "k", "c", "n", "d", "e", "p", "q", "h", "y"])
    assert found["k"]["min"] == found["k"]["max"] == pytest.approx(2**0.5) and found["k"]["count"] == 2


def test_functions(model):
    text = """m (float[N] x) => (float[N] y) { y = local.f(x) }
    <domain: "local", opset_import: ["" : 17]> f (a) => (c) { b = Neg(a) c = Abs(b) }"""
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n{text}')
    session = load(made, {"y": "range"})
    session.run(None, {"x": np.array([-3, 2], np.float32)})
    assert session.take_observations()["y"]["max"] == 3


def test_nan_and_infinities(model):
    session = load(model("m (float[N] x) => (float[N] y) { y = Sqrt(x) }"), {"x": "range", "y": "range"})
    session.run(None, {"x": np.full(100, 4, np.float32)})
    assert session.find_non_finite() == []
    session.run(None, {"x": np.array([4, -1, np.inf, 9] + [-1] * 50, np.float32)})
    assert session.find_non_finite() == ["x", "y"]
    found = session.take_observations()
    assert (found["y"]["nans"], found["y"]["infinities"]) == (51, 1)
    assert (found["x"]["nans"], found["x"]["infinities"]) == (0, 1)
    assert found["y"]["min"] == 2 and found["y"]["max"] == np.inf
    assert session.find_non_finite() == []


def test_threads_at_a_time(random, model):
    from concurrent.futures import ThreadPoolExecutor

    session = load(network(random), {"c2": KINDS, "r4": KINDS})
    feeds = [{"x": random.normal(0, 1, (1, 3, 45, 37)).astype(np.float32)} for _ in range(8)]
    for feed in feeds:
        session.run(None, feed)
    one = session.take_observations()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda feed: session.run(None, feed), feeds))
    many = session.take_observations()
    for name in one:
        np.testing.assert_array_equal(one[name]["bins"], many[name]["bins"])
        assert (one[name]["count"], one[name]["max"]) == (many[name]["count"], many[name]["max"])


def test_doubles(model):
    session = load(model("m (double[N] x) => (double[N] y) { y = Neg(x) }"), {"y": KINDS})
    session.run(None, {"x": np.array([1 + 1e-12, -3])})
    found = session.take_observations()["y"]
    assert found["min"] == -1 - 1e-12 and found["max"] == 3 and found["bins"].sum() == 2


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        ({"yy": "range"}, r"the model has no tensor 'yy'; it has .*did you mean y"),
        ({"s": "range"}, "tensor 's' cannot be observed: floats of 16, 32 and 64 bits can be"),
        ({"x": "mean"}, "what is observed of 'x' must be 'range', 'moments'.*got 'mean'"),
        ({"x": []}, "nothing is to be observed of 'x'"),
        ({"x": [("channels", 2)]}, "tensor 'x' cannot be observed: it has no axis 2"),
    ],
)
def test_refusals(model, observe, message):
    made = model("m (float[N, 3] x) => (float[N, 3] y, int64[2] s) { y = Neg(x) s = Shape(x) }")
    with pytest.raises(InvalidArgument, match=message):
        load(made, observe)
