"""Products of two tensors of bytes that are both computed, in batches, against sums of whole numbers."""

import numpy as np
import pytest
from numerics import OPTIONS, constant, vectors  # noqa: F401
from numerics import run as run_nodes
from onnx import helper

F32 = np.float32
TYPES = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.uint8), (np.int8, np.int8)]
IDS = [f"{a.__name__}-{b.__name__}" for a, b in TYPES]
# Rows, values of k and columns: few and many, none that fills a tile and all that do.
SIZES = [(1, 1, 1), (3, 5, 7), (1, 64, 33), (17, 64, 40), (40, 67, 64), (70, 130, 35), (33, 256, 16), (16, 31, 96), (2, 0, 3)]


@pytest.fixture(autouse=True, params=["", "cascadelake", "x86-64-v3", "x86-64"], ids=["native", "vnni", "256-bits", "128-bits"])
def vectors(request, monkeypatch):  # noqa: F811
    """Tile registers where they are, and without them, and integers of 16 bits."""
    if request.param == "cascadelake" and "avx512_vnni" not in open("/proc/cpuinfo").read():
        pytest.skip("the processor lacks the instructions")
    monkeypatch.setattr(OPTIONS, "cpu", request.param)


def numbers(rng, shape, dtype):
    """The largest and the smallest ones more often than others."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max + 1, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([info.min, info.max], shape), values).astype(dtype)


def exact(a, a_zero, b, b_zero):
    return (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)


def zeros_of(dtype):
    """Zero points that leave out corrections, and others."""
    middle = 0 if dtype == np.int8 else 128
    return [None, middle, np.iinfo(dtype).min, np.iinfo(dtype).max, middle + 3]


def multiply(a_shape, b_shape, zeros, is_open=True):
    """Checks the products of all types at once; `zeros` gives the zero points of a type, or None."""
    rng = np.random.default_rng(sum(a_shape))
    feeds = {f"{x}{t.__name__}": numbers(rng, shape, t) for x, shape in (("a", a_shape), ("b", b_shape)) for t in (np.uint8, np.int8)}
    nodes, initializers, wants = [], [], []
    for i, (left, right) in enumerate(TYPES):
        inputs, known = [f"a{left.__name__}", f"b{right.__name__}"], []
        for side, dtype in enumerate((left, right)):
            zero = zeros(rng, dtype)
            known.append(int(zero or 0))
            inputs.append("" if zero is None else f"z{i}{side}")
            if zero is not None:
                initializers.append(constant(inputs[-1], zero, dtype))
        wants.append(exact(feeds[inputs[0]], known[0], feeds[inputs[1]], known[1]))
        while not inputs[-1]:
            inputs.pop()
        nodes.append(helper.make_node("MatMulInteger", inputs, [f"y{i}"]))
    shapes = None if is_open else {name: value.shape for name, value in feeds.items()}
    results = run_nodes(nodes, feeds, [f"y{i}" for i in range(len(TYPES))], shapes, initializers=initializers)
    for got, want in zip(results, wants):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("m, k, n", SIZES)
def test_matmul_integer(m, k, n, is_open):
    multiply((2, 3, m, k), (2, 3, k, n), lambda rng, dtype: rng.choice(zeros_of(dtype)), is_open)


@pytest.mark.parametrize(
    "a_shape, b_shape",
    [((4, 5, 6), (6, 7)), ((5, 6), (4, 6, 7)), ((2, 1, 5, 6), (3, 6, 7)), ((2, 3, 5, 6), (1, 1, 6, 7)), ((1, 5, 6), (2, 6, 7))],
)
def test_batches_are_broadcast(a_shape, b_shape):
    multiply(a_shape, b_shape, lambda rng, dtype: 7)


@pytest.mark.parametrize("types", TYPES, ids=IDS)
def test_zero_points_of_rows_and_columns(types):
    """Those that the run knows."""
    rng = np.random.default_rng(2)
    a, b = numbers(rng, (2, 9, 70), types[0]), numbers(rng, (2, 70, 37), types[1])
    a_zero, b_zero = numbers(rng, 9, types[0]), numbers(rng, 37, types[1])
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    (y,) = run_nodes([node], {"a": a, "b": b, "za": a_zero, "zb": b_zero}, ["y"])
    np.testing.assert_array_equal(y, exact(a, a_zero[:, None].astype(int), b, b_zero.astype(int)))


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("depth", [64, 80, 33, 6])
@pytest.mark.parametrize("types", TYPES[:2], ids=IDS[:2])
def test_heads_beside_each_other(types, depth, is_open):
    """Keys and values of an attention: rows of several heads, whose columns or rows are those of a matrix."""
    rng = np.random.default_rng(depth)
    q, k, v = (numbers(rng, (2, 37, 3, depth), t) for t in (types[0], types[1], types[1]))
    p = numbers(rng, (2, 3, 37, 37), np.uint8)
    zeros = [constant("zq", 3, types[0]), constant("zk", 5, types[1]), constant("zp", 0, np.uint8)]
    nodes = [
        helper.make_node("Transpose", ["q"], ["tq"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["k"], ["tk"], perm=[0, 2, 3, 1]),
        helper.make_node("Transpose", ["v"], ["tv"], perm=[0, 2, 1, 3]),
        helper.make_node("MatMulInteger", ["tq", "tk", "zq", "zk"], ["scores"]),
        helper.make_node("MatMulInteger", ["p", "tv", "zp", "zk"], ["y"]),
    ]
    feeds = {"q": q, "k": k, "v": v, "p": p}
    shapes = None if is_open else {name: value.shape for name, value in feeds.items()}
    scores, y = run_nodes(nodes, feeds, ["scores", "y"], shapes, initializers=zeros)
    np.testing.assert_array_equal(scores, exact(q.transpose(0, 2, 1, 3), 3, k.transpose(0, 2, 3, 1), 5))
    np.testing.assert_array_equal(y, exact(p, 0, v.transpose(0, 2, 1, 3), 5))


@pytest.mark.parametrize("types", TYPES, ids=IDS)
def test_qlinear_matmul(types):
    rng = np.random.default_rng(4)
    a, b = numbers(rng, (3, 21, 65), types[0]), numbers(rng, (3, 65, 34), types[1])
    names = [constant("sa", 0.5, F32), constant("za", 3, types[0]), constant("sb", 0.25, F32), constant("zb", 120, types[1])]
    names += [constant("sy", 16.0, F32), constant("zy", 11, np.uint8)]
    node = helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])
    (y,) = run_nodes([node], {"a": a, "b": b}, ["y"], initializers=names)
    want = np.rint(exact(a, 3, b, 120) * 0.125 / 16) + 11
    np.testing.assert_array_equal(y, np.clip(want, 0, 255))


def test_dynamically_quantised():
    """Both sides by their own ranges."""
    rng = np.random.default_rng(5)
    feeds = {"a": rng.standard_normal((2, 19, 66)).astype(F32), "b": rng.standard_normal((2, 66, 45)).astype(F32)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["a"], ["qa", "sa", "za"]),
        helper.make_node("DynamicQuantizeLinear", ["b"], ["qb", "sb", "zb"]),
        helper.make_node("MatMulInteger", ["qa", "qb", "za", "zb"], ["y"]),
    ]
    qa, za, qb, zb, y = run_nodes(nodes, feeds, ["qa", "za", "qb", "zb", "y"])
    np.testing.assert_array_equal(y, exact(qa, int(za), qb, int(zb)))


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
def test_between_quantised_tensors(is_open):
    """Scores, softmax and what it weighs, each as the floats of its own bytes."""
    rng = np.random.default_rng(6)
    q, k, v = (rng.integers(0, 256, (2, 3, 70, 64)).astype(np.uint8) for _ in range(3))
    mask = np.where(rng.random((2, 1, 1, 70)) < 0.2, -8, 0).astype(F32)
    parameters = {"q": (2.0**-6, 121), "k": (2.0**-6, 131), "v": (2.0**-7, 126), "s": (0.125, 127), "p": (2.0**-8, 0)}
    parameters["y"] = (2.0**-8, 129)
    initializers = []
    for name, (scale, zero) in parameters.items():
        initializers += [constant(f"s{name}", scale, F32), constant(f"z{name}", zero, np.uint8)]

    def floats(x, of):
        return helper.make_node("DequantizeLinear", [x, f"s{of}", f"z{of}"], [f"{x}_f"])

    def bytes_of(x, of):
        return helper.make_node("QuantizeLinear", [x, f"s{of}", f"z{of}"], [f"{x}_q"])

    nodes = [floats("q", "q"), floats("k", "k"), floats("v", "v")]
    nodes += [
        helper.make_node("Transpose", ["k_f"], ["kt"], perm=[0, 1, 3, 2]),
        bytes_of("kt", "k"), floats("kt_q", "k"),
        helper.make_node("MatMul", ["q_f", "kt_q_f"], ["s"]),
        bytes_of("s", "s"), floats("s_q", "s"),
        helper.make_node("Add", ["s_q_f", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        bytes_of("p", "p"), floats("p_q", "p"),
        helper.make_node("MatMul", ["p_q_f", "v_f"], ["y"]),
        bytes_of("y", "y"),
    ]  # fmt: skip
    feeds = {"q": q, "k": k, "v": v, "mask": mask}
    shapes = None if is_open else {name: value.shape for name, value in feeds.items()}
    s, p, y = run_nodes(nodes, feeds, ["s_q", "p_q", "y_q"], shapes, initializers=initializers)

    def quantised(x, of):
        scale, zero = parameters[of]
        return np.clip(np.rint(x / scale) + zero, 0, 255)

    np.testing.assert_array_equal(s, quantised(exact(q, 121, k.swapaxes(2, 3), 131) * 2.0**-12, "s"))
    scores = (s.astype(float) - 127) * 0.125 + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    exactly = e / e.sum(-1, keepdims=True) * 256
    assert np.all(np.abs(p - np.clip(exactly, 0, 255)) <= 0.5 + 1e-3)
    np.testing.assert_array_equal(y, quantised(exact(p, 0, v, 126) * 2.0**-15, "y"))
    alone = run_nodes(nodes, feeds, ["y_q"], shapes, initializers=initializers)[0]
    np.testing.assert_array_equal(alone, y)
