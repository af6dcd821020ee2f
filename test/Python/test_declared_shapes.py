"""Shapes that a model declares of what its nodes make: hints that change no answer, whoever is wrong."""

import numpy as np
import onnxruntime as ort
import pytest
import sardonyx as sdx
from onnx import TensorProto as T
from onnx import helper, parser

f4 = np.float32
V = helper.make_tensor_value_info
ramp = np.arange(12, dtype=f4).reshape(3, 4)
holes = ramp * (ramp % 3 == 0)


def ints(*values):
    return np.array(values, np.int64)


def node(kind, *inputs, outputs=("v",), **attributes):
    return helper.make_node(kind, inputs, list(outputs), **attributes)


# Nodes that make v, the inputs by name, and a shape of the right rank that v does not have.
CASES = {
    "neg": ([node("Neg", "x")], {"x": ramp}, [1, 4]),
    "reshape": ([node("Reshape", "x", "s")], {"x": ramp, "s": ints(2, 6)}, [6, 2]),
    "reshape of the rest": ([node("Reshape", "x", "s")], {"x": ramp, "s": ints(-1, 6)}, [3, 4]),
    "expand": ([node("Expand", "x", "s")], {"x": ramp[:1], "s": ints(2, 4)}, [1, 4]),
    "expand up": ([node("Expand", "x", "s")], {"x": ramp[:1], "s": ints(2, 4)}, [5, 4]),
    "fill": ([node("ConstantOfShape", "s", value=helper.make_tensor("c", T.INT64, [1], [7]))], {"s": ints(1, 4)}, [2, 3]),
    "fill float": ([node("ConstantOfShape", "s")], {"s": ints(1, 4)}, [2, 3]),
    "range": ([node("Range", "a", "b", "c")], {"a": np.array(0), "b": np.array(5), "c": np.array(2)}, [4]),
    "nonzero": ([node("NonZero", "x")], {"x": holes}, [2, 12]),
    "compress": ([node("Compress", "x", "c", axis=0)], {"x": ramp, "c": np.array([True, False, True])}, [3, 4]),
    "unique": ([node("Unique", "x", sorted=1)], {"x": holes}, [12]),
    "topk": ([node("TopK", "x", "k", outputs=("v", "i"))], {"x": ramp, "k": ints(2)}, [3, 3]),
    "tile": ([node("Tile", "x", "r")], {"x": ramp, "r": ints(2, 1)}, [3, 4]),
    "pad": ([node("Pad", "x", "p")], {"x": ramp, "p": ints(1, 0, 0, 2)}, [3, 4]),
    "slice": ([node("Slice", "x", "a", "b")], {"x": ramp, "a": ints(1), "b": ints(3)}, [3, 4]),
    "split": ([node("Split", "x", "s", outputs=("v", "w"), axis=1)], {"x": ramp, "s": ints(1, 3)}, [3, 2]),
    "one hot": ([node("OneHot", "i", "d", "o")], {"i": ints(0, 2), "d": np.array(3), "o": np.array([0, 1], f4)}, [2, 5]),
    "resize": ([node("Resize", "x", "", "", "s", mode="nearest")], {"x": ramp, "s": ints(6, 2)}, [3, 4]),
    "squeeze": ([node("Squeeze", "x", "a")], {"x": ramp[None], "a": ints(0)}, [1, 4]),
    "concat": ([node("Compress", "x", "c", outputs=("t",), axis=0), node("Concat", "x", "t", axis=0)],
               {"x": ramp, "c": np.array([True, False, True])}, [3, 4]),
    "gather": ([node("NonZero", "x", outputs=("t",)), node("Transpose", "t", outputs=("u",)), node("GatherND", "x", "u")], {"x": holes}, [12]),
    "two of them": ([node("Reshape", "x", "s", outputs=("t",)), node("Expand", "t", "e")], {"x": ramp, "s": ints(1, 12), "e": ints(2, 12)}, [1, 6]),
}  # fmt: skip


def infos(feeds, is_open):
    for name, value in feeds.items():
        yield V(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim if is_open and value.ndim > 1 else value.shape)


def model(nodes, feeds, declared, where, is_open):
    """v as the output, in the middle, or of a branch of an If; the result is -v but for the first."""
    kind = T.INT64 if nodes[-1].op_type in ("NonZero", "Range") or any(a.name == "value" for a in nodes[-1].attribute) else T.FLOAT
    v, inputs = V("v", kind, declared), list(infos(feeds, is_open))
    negated = V("y", kind, [None] * len(declared))
    if where == "output":
        graph = helper.make_graph(nodes, "g", inputs, [v])
    elif where == "value_info":
        graph = helper.make_graph([*nodes, node("Neg", "v", outputs=("y",))], "g", inputs, [negated], value_info=[v])
    else:
        branch = helper.make_graph(nodes, "b", [], [v])
        choose = node("If", "q", outputs=("chosen",), then_branch=branch, else_branch=branch)
        graph = helper.make_graph([choose, node("Neg", "chosen", outputs=("y",))], "g", [V("q", T.BOOL, []), *inputs], [negated], value_info=[V("chosen", kind, declared)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def load(data):
    options = sdx.SessionOptions()
    options.cache = False
    return sdx.InferenceSession(data, options)


def sessions(data):
    """Ours, and onnxruntime's."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return load(data), ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("where", ["output", "value_info", "branch"])
@pytest.mark.parametrize("name", CASES)
def test_data_win(name, where):
    nodes, feeds, declared = CASES[name]
    _, theirs = sessions(model(nodes, feeds, [None] * len(declared), "output", is_open=True))
    (want,) = theirs.run(None, feeds)
    ours = load(model(nodes, feeds, declared, where, is_open=len(name) % 2 == 0))
    (got,) = ours.run(None, {**feeds, "q": np.array(True)} if where == "branch" else feeds)
    assert got.dtype == want.dtype and list(got.shape) != declared
    np.testing.assert_array_equal(got, want if where == "output" else -want)


def stale(text, capfd, *feed):
    """Runs a model of a text twice; what it writes to stderr."""
    data = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}').SerializeToString()
    ours, theirs = sessions(data)
    feeds = {a.name: v for a, v in zip(ours.get_inputs(), feed)}
    for _ in range(2):
        for got, want in zip(ours.run(None, feeds), theirs.run(None, feeds)):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    return capfd.readouterr().err


def test_a_warning_once(capfd):
    text = "(float[N, 4] x) => (float[1, 4] y, float[N, 4] z) { y = Neg(x) z = Abs(x) }"
    said = stale(text, capfd, ramp)
    assert said.count("W:sardonyx") == 1
    assert "output 'y' is declared with the shape [1, 4], but a run gave [3, 4]" in said
    assert not stale(text, capfd, ramp[:1])


def test_a_contradiction_is_told_when_loading(capfd):
    said = stale("(float[N, 4] x) => (float[N, 5] y) <float[3, 2] h> { h = Neg(x) y = Abs(h) }", capfd, ramp)
    assert "W:sardonyx:, load] output 'y' is declared with the shape [N, 5], but has [N, 4]" in said
    assert "W:sardonyx:, load] value 'h' is declared with the shape [3, 2], but has [N, 4]" in said
    assert said.count("W:sardonyx") == 2


def test_severity_and_the_cache(capfd, tmp_path):
    graph = helper.make_graph([node("Neg", "x", outputs=("y",))], "g", [V("x", T.FLOAT, ["n", 4])], [V("y", T.FLOAT, [2, 5])])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    for severity, count in ((2, 1), (2, 1), (3, 0)):
        options = sdx.SessionOptions()
        options.cache_dir, options.log_severity_level = str(tmp_path), severity
        sdx.InferenceSession(data, options)
        assert capfd.readouterr().err.count("output 'y' is declared") == count


def test_outputs_are_told_as_declared():
    for text, shape in (
        ("(float[N, 4] x) => (float[1, 4] y) { y = Neg(x) }", [1, 4]),
        ("(float[N, 4] x) => (int64[2, 7] y) { y = NonZero(x) }", [2, 7]),
        ("(float[3, 4] x) => (float[B, 4] y) { y = Neg(x) }", [3, 4]),
        ("(float[3, 4] x) => (float[9, 9] y) { y = Neg(x) }", [3, 4]),
    ):
        data = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}').SerializeToString()
        ours = load(data)
        assert ours.get_outputs()[0].shape == shape


@pytest.mark.parametrize("declared", [[4], [2, 2, 1], []])
def test_a_rank_that_is_declared_wrong(declared):
    """Of a value that inference knows, and of one that hangs on the length of a list."""
    for nodes, feeds in (
        ([node("Neg", "x")], {"x": ramp}),
        ([node("Identity", "s", outputs=("t",)), node("Reshape", "x", "t")], {"x": ramp, "s": ints(2, 6)}),
    ):
        for where in ("output", "value_info"):
            data = model(nodes, feeds, declared, where, is_open=False)
            ours = load(data)
            if where == "output":  # onnxruntime refuses to load it
                np.testing.assert_array_equal(ours.run(None, feeds)[0].ravel(), -ramp.ravel() if len(nodes) == 1 else ramp.ravel())


def loop(trips, declared):
    """Adds x up, and collects the rows that are not zero."""
    nodes = [node("Add", "a", "x", outputs=("b",)), node("Compress", "x", "m", outputs=("r",), axis=0), node("Identity", "go", outputs=("on",))]
    body = helper.make_graph(
        nodes, "body", [V("i", T.INT64, []), V("go", T.BOOL, []), V("a", T.FLOAT, declared)],
        [V("on", T.BOOL, []), V("b", T.FLOAT, declared), V("r", T.FLOAT, declared)],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "z"], ["s", "c"], body=body)], "g",
        [V("n", T.INT64, []), V("z", T.FLOAT, [None, 4]), V("x", T.FLOAT, [None, 4]), V("m", T.BOOL, [None])],
        [V("s", T.FLOAT, [7, 4]), V("c", T.FLOAT, [1, 2, 3])],
    )  # fmt: skip
    feeds = {"n": np.array(trips), "z": np.zeros((1, 4), f4), "x": ramp, "m": np.array([True, False, True])}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString(), feeds


def test_loops():
    data, feeds = loop(3, [1, 4])
    ours = load(data)
    total, rows = ours.run(None, feeds)
    np.testing.assert_array_equal(total, 3 * ramp)
    np.testing.assert_array_equal(rows, np.stack([ramp[[0, 2]]] * 3))


def test_a_loop_without_a_trip_collects_nothing_of_the_declared_size():
    data, feeds = loop(0, [5, 4])
    ours, theirs = sessions(data)
    for got, want in zip(ours.run(None, feeds), theirs.run(None, feeds)):
        assert got.shape == want.shape


def test_an_output_without_a_type():
    """Its type stands in value_info, as it does where one asks for what is in the middle of a model."""
    for info in ([], [V("v", T.FLOAT, [3, 4])], [V("v", T.FLOAT, [9, 9])]):
        graph = helper.make_graph([node("Neg", "x"), node("Exp", "v", outputs=("y",))], "g", [V("x", T.FLOAT, [3, 4])], [V("y", T.FLOAT, [3, 4])], value_info=info)
        graph.output.add(name="v")
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        ours = load(data)
        assert [o.shape for o in ours.get_outputs()] == [[3, 4]] * 2
        np.testing.assert_array_equal(ours.run(["v"], {"x": ramp})[0], -ramp)


# Names


@pytest.mark.parametrize("name", ["?", "", "*", "-1", "0", "None", "unk", "<unknown>", "NULL"])
def test_a_placeholder_is_no_name(name, capfd):
    graph = helper.make_graph([node("Add", "x", "b", outputs=("y",))], "g", [V("x", T.FLOAT, [name, name]), V("b", T.FLOAT, [name])], [V("y", T.FLOAT, [name, name])])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    ours, theirs = sessions(data)
    assert ours.get_inputs()[0].shape == theirs.get_inputs()[0].shape
    for b in (ramp[0], ramp[0, :1]):
        np.testing.assert_array_equal(ours.run(None, {"x": ramp, "b": b})[0], ramp + b)
    assert "sardonyx" not in capfd.readouterr().err


NAMED = {
    "broadcast": ("(float[N, 4] x, float[N, 4] b) => (float[N, 4] y) { y = Add(x, b) }", [ramp, ramp[:1]]),
    "both ways": ("(float[N, M] x, float[N, M] b) => (float[N, M] y) { y = Mul(x, b) }", [ramp[:, :1], ramp[:1]]),
    "chain": ("(float[N, 4] x, float[N, 4] b) => (float[N, 4] y) { a = Add(x, b) c = Mul(a, b) y = Sub(c, x) }", [ramp[:1], ramp]),
    "axes": ("(float[N, N] x) => (float[N, N] y) { t = Transpose(x) s = Shape(t) r = Reshape(x, s) y = Add(r, r) }", [ramp]),
    "reshape": ("(float[N, 4] x, float[N, 4] b) => (float[P, Q] y) { s = Shape(b) y = Expand(x, s) }", [ramp[:1], ramp]),
    "concat": ("(float[N, 4] x, float[N, 4] b) => (float[P, 4] y) { y = Concat <axis = 0> (x, b) }", [ramp, ramp[:1]]),
    "product": ("(float[N, K] x, float[K, N] b) => (float[N, N] y) { y = MatMul(x, b) }", [ramp, ramp[:1].T.copy().repeat(5, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("source", ["bytes", "file"])
@pytest.mark.parametrize("name", NAMED)
def test_sizes_of_one_name_differ(name, source, capfd, tmp_path):
    text, feed = NAMED[name]
    data = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}').SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    ours = load(data if source == "bytes" else str(tmp_path / "m.onnx"))
    _, theirs = sessions(data)
    del data
    same = [np.ones((4, 4), f4)] * len(feed)
    for arrays in (same, feed, same, feed):
        feeds = {a.name: v for a, v in zip(ours.get_inputs(), arrays)}
        np.testing.assert_allclose(ours.run(None, feeds)[0], theirs.run(None, feeds)[0], rtol=1e-6)
    said = capfd.readouterr().err
    assert said.count("dimension 'N' has different sizes") == 1 and said.count("W:sardonyx") == 1


def test_a_product_whose_inner_sizes_differ_still_fails():
    data = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[N, K] x, float[K, N] b) => (float[N, N] y) { y = MatMul(x, b) }')
    ours = load(data.SerializeToString())
    with pytest.raises(sdx.Fail, match="MatMul.*inner sizes of the operands differ: 4 and 3"):
        ours.run(None, {"x": ramp, "b": ramp})


# What has no data


def test_inputs_and_results_without_memory():
    data = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y) { y = Neg(x) }')
    ours = load(data.SerializeToString())

    class Nothing:
        def __dlpack__(self, **_):
            raise BufferError("on no device")

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(sdx.InvalidArgument, match="input 'x' is a .*Nothing that gives no data in the CPU's memory"):
        ours.run(None, {"x": Nothing()})
    with pytest.raises(sdx.InvalidArgument, match="output 'y' takes a contiguous array in the CPU's memory.* got a NoneType"):
        ours.run(None, {"x": ramp}, out={"y": None})
    with pytest.raises(sdx.InvalidArgument, match="input 'x' has the shape \\[N, 4\\]: dimension 1 must be 4, got 5"):
        ours.run(None, {"x": np.ones((2, 5), f4)})
