"""Values whose rank only a run knows: branches of If that differ in rank, values that change it in a Loop, branches that
are wrong and not taken, and sequences that are empty at first."""

import numpy as np
import onnx
import onnxruntime
import pytest
import sardonyx
from onnx import TensorProto, helper, numpy_helper, parser

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '
F32 = np.float32


def untyped(graph, names):
    """Leaves out the shapes of these values, and those of all that graphs in it give and take, but for a Loop's number and condition,
    which onnxruntime asks for."""
    for value in [*graph.input, *graph.output]:
        if value.name in names:
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                given = {value.name for value in [*attribute.g.input, *attribute.g.output]}
                untyped(attribute.g, given - {"i", "c"})


def load(text, unranked=(), **options):
    model = parser.parse_model(HEAD + text)
    untyped(model.graph, set(unranked))
    return load_model(model, **options)


def load_model(model, **options):
    chosen = sardonyx.SessionOptions()
    chosen.cache = False
    for name, value in options.items():
        setattr(chosen, name, value)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    data = model.SerializeToString()
    theirs = onnxruntime.InferenceSession(data, quiet, providers=["CPUExecutionProvider"])
    return sardonyx.InferenceSession(data, chosen), theirs


def compare(sessions, **feeds):
    ours, theirs = (session.run(None, feeds) for session in sessions)
    for y, z in zip(ours, theirs):
        assert y.shape == z.shape and y.dtype == z.dtype
        np.testing.assert_allclose(y, z, rtol=1e-6)
    return ours


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape) - 2


# Whether the sum of x is positive decides whether it is squeezed.
SQUEEZE = """
    last = Constant <value_ints = [-1]> () zero = Constant <value_float = 0.0> ()
    sum = ReduceSum <keepdims = 0> (x) c = Greater(sum, zero)
    q = If (c) <then_branch = t () => (float[] a) { a = Squeeze(x, last) },
                else_branch = e () => (float[] b) { b = Identity(x) }>
"""


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "after",
    [
        "r = Relu(q) y = Reshape(r, last)",
        "s = Shape(q) n = Size(s) f = Cast <to = 1> (n) y = Unsqueeze(f, last)",
        "m = ReduceMean <keepdims = 0> (q) d = Sub(q, m) w = Mul(d, q) y = Reshape(w, last)",
        "h = Neg(x) k = Reshape(h, last) r = Reshape(q, last) y = Add(k, r)",
    ],
)
def test_branches_of_two_ranks(after, sign):
    sessions = load(f"(float[3,1] x) => (float[N] y) {{ {SQUEEZE} {after} }}", "y")
    compare(sessions, x=sign * (ramp(3, 1) + 2))


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_two_choices_together(signs):
    """Each of two values has one of two ranks, and one operator reads both; which ranks the sum has is known after all."""
    second = SQUEEZE.replace("(x", "(z").replace("q =", "p =").replace("sum", "total").replace("c ", "d ").replace("(c)", "(d)")
    second = second.replace("last = Constant <value_ints = [-1]> () zero = Constant <value_float = 0.0> ()", "")
    second = second.replace("float[] a", "float[] aa").replace("a = Squeeze", "aa = Squeeze")
    second = second.replace("float[] b", "float[] bb").replace("b = Identity", "bb = Identity").replace(", zero", ", zero")
    sessions = load(f"(float[1,1] x, float[1,1] z) => (float[N] y) {{ {SQUEEZE} {second} s = Add(q, p) y = Reshape(s, last) }}", "y")
    compare(sessions, x=np.full((1, 1), 3 * signs[0], F32), z=np.full((1, 1), 2 * signs[1], F32))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", ["3,1", "N,1"])
def test_result_of_two_ranks(shape, sign):
    sessions = load(f"(float[{shape}] x) => (float[] y, float[] z) {{ {SQUEEZE} y = Abs(q) z = Neg(x) }}", "yz")
    x = sign * (ramp(3, 1) + 2)
    y, z = compare(sessions, x=x)
    assert y.ndim == (1 if sign > 0 else 2) and sessions[0].get_outputs()[0].type == "tensor(float)"
    (only,) = sessions[0].run(["y"], {"x": x})
    np.testing.assert_array_equal(only, y)


def test_nested_choices():
    inner = "r = If (d) <then_branch = i () => (float[] f) { f = Squeeze(x) }, else_branch = o () => (float[] h) { h = Squeeze(x, last) }>"
    text = f"""(float[1,3,1] x, float[1] k, float[1] l) => (float[] y) {{
        last = Constant <value_ints = [-1]> () zero = Constant <value_floats = [0.0]> () c = Greater(k, zero) d = Greater(l, zero)
        q = If (c) <then_branch = t () => (float[] r) {{ {inner} }}, else_branch = e () => (float[] b) {{ b = Identity(x) }}>
        y = Exp(q)
    }}"""
    sessions = load(text, "y")
    ranks = [
        compare(sessions, x=ramp(1, 3, 1), k=np.array([k], F32), l=np.array([l], F32))[0].ndim for k in (1, -1) for l in (1, -1)
    ]
    assert ranks == [1, 2, 3, 3]


def loop(body, carried, trips="n"):
    """A Loop over `carried`, (name, initial, next), whose arguments have types but no shapes."""
    arguments = "".join(f", float[] {name}" for name, *_ in carried)
    results = "".join(f", float[] {after}" for *_, after in carried)
    outs = ", ".join(f"{name}_out" for name, *_ in carried)
    inits = ", ".join(initial for _, initial, _ in carried)
    return f'{outs} = Loop ({trips}, "", {inits}) <body = body (int64 i, bool c{arguments}) => (bool co{results}) {{ co = Identity(c) {body} }}>'


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_value_that_grows_in_a_loop(trips):
    """From rank 1 to rank 3, after which it stays."""
    text = f"(float[1] v, float[2,2,3] big, int64 n) => (float[] y, float[K] z) {{ {loop('so = Add(big, s)', [('s', 'v', 'so')])}"
    text += " last = Constant <value_ints = [-1]> () y = Neg(s_out) e = Exp(s_out) z = Reshape(e, last) }"
    model = parser.parse_model(HEAD + text.replace('""', ""))
    untyped(model.graph, {"y"})
    sessions = load_model(model)
    (y, _) = compare(sessions, v=np.ones(1, F32), big=ramp(2, 2, 3) / 10, n=np.array(trips))
    assert y.ndim == (3 if trips else 1)


def test_ranks_that_change_places():
    """Two values of rank 1 and 2, exchanged in each iteration."""
    body = "ao = Identity(b) bo = Identity(a)"
    text = f"(float[3] u, float[2,3] v, int64 n) => (float[] y) {{ {loop(body, [('a', 'u', 'ao'), ('b', 'v', 'bo')])} y = Neg(a_out) }}"
    model = parser.parse_model(HEAD + text.replace('""', ""))
    untyped(model.graph, {"y"})
    sessions = load_model(model)
    for trips in (0, 1, 2, 3):
        (y,) = compare(sessions, u=ramp(3), v=ramp(2, 3), n=np.array(trips))
        assert y.ndim == 1 + trips % 2


def test_rank_without_end_is_refused():
    body = "last = Constant <value_ints = [-1]> () so = Unsqueeze(s, last)"
    text = f"(float[3] v, int64 n) => (float[] y) {{ {loop(body, [('s', 'v', 'so')])} y = Neg(s_out) }}"
    model = parser.parse_model(HEAD + text.replace('""', ""))
    untyped(model.graph, {"y"})
    with pytest.raises(sardonyx.errors.NotImplemented):
        load_model(model)[0].run(None, {"v": ramp(3), "n": np.array(2)})


def test_branch_that_is_wrong_and_not_taken():
    """It fails when it is taken, with the name of the node."""
    text = """(float[2,3] x, float[1] k) => (float[N,M] y) {
        zero = Constant <value_floats = [0.0]> () c = Greater(k, zero)
        y = If (c) <then_branch = t () => (float[] a) { a = Neg(x) },
                    else_branch = e () => (float[] b) { s = Transpose <perm = [0, 2, 1]> (x) b = Abs(s) }>
    }"""
    model = parser.parse_model(HEAD + text)
    untyped(model.graph, {"y"})
    session = sardonyx.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": ramp(2, 3), "k": np.ones(1, F32)})[0], -ramp(2, 3))
    with pytest.raises(sardonyx.errors.InvalidArgument, match="Transpose.*: breaks a rule"):
        session.run(None, {"x": ramp(2, 3), "k": -np.ones(1, F32)})


def test_no_branch_is_right():
    text = """(float[2,3] x, float[1] k) => (float[N,M] y) {
        zero = Constant <value_floats = [0.0]> () c = Greater(k, zero)
        y = If (c) <then_branch = t () => (float[] a) { a = Transpose <perm = [0, 3, 1]> (x) },
                    else_branch = e () => (float[] b) { b = Transpose <perm = [0, 2, 1]> (x) }>
    }"""
    model = parser.parse_model(HEAD + text)
    untyped(model.graph, {"y"})
    with pytest.raises(sardonyx.errors.InvalidGraph):
        sardonyx.InferenceSession(model.SerializeToString())


def test_operator_that_fits_one_rank_only():
    """What stands after the If, too: MatMul by a matrix of three rows wants the squeezed row."""
    text = f"(float[3,1] x, float[3,2] w) => (float[N] y) {{ {SQUEEZE} y = MatMul(q, w) }}"
    model = parser.parse_model(HEAD + text)
    untyped(model.graph, {"y"})
    ours = sardonyx.InferenceSession(model.SerializeToString())
    x, w = ramp(3, 1) + 3, ramp(3, 2)
    np.testing.assert_allclose(ours.run(None, {"x": x, "w": w})[0], x[:, 0] @ w)
    with pytest.raises(sardonyx.errors.InvalidArgument, match="MatMul"):
        ours.run(None, {"x": -x, "w": w})


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("start", ["SequenceEmpty", "SequenceConstruct"])
def test_sequence_grown_in_a_loop(typed, start):
    """The rank of its tensors is that of what the body inserts."""
    n = helper.make_node

    def info(name, make, *args):
        return make(name, *args) if typed else onnx.ValueInfoProto(name=name)

    counter = helper.make_tensor_value_info, TensorProto.INT64, []
    grown = helper.make_tensor_sequence_value_info, TensorProto.FLOAT, None
    body = helper.make_graph(
        [n("Gather", ["x", "i"], ["row"]), n("Unsqueeze", ["row", "zeros"], ["r"]), n("SequenceInsert", ["s", "r"], ["s2"]),
         n("Add", ["i", "one"], ["i2"]), n("Less", ["i2", "rows"], ["more"])],
        "body",
        [helper.make_tensor_value_info("trip", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         info("i", *counter), info("s", *grown)],
        [helper.make_tensor_value_info("more", TensorProto.BOOL, []), info("i2", *counter), info("s2", *grown)],
    )  # fmt: skip
    nodes = [
        n(start, ["x"] if start == "SequenceConstruct" else [], ["s0"]), n("Loop", ["", "yes", "zero", "s0"], ["k", "all"], body=body),
        n("ConcatFromSequence", ["all"], ["y0"], axis=0), n("Relu", ["y0"], ["y"]),
    ]  # fmt: skip
    values = {"zero": np.int64(0), "zeros": np.array([0]), "one": np.int64(1), "rows": np.int64(6), "yes": np.bool_(True)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 2])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = sardonyx.InferenceSession(model.SerializeToString())
    x = ramp(6, 2)
    expected = np.maximum(np.concatenate([x, x]) if start == "SequenceConstruct" else x, 0)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_sequence_of_one_branch(sign):
    """The other branch gives an empty sequence."""
    text = """(float[2,3] x, float[1] k) => (float[N,M] y) {
        zero = Constant <value_floats = [0.0]> () c = Greater(k, zero)
        s = If (c) <then_branch = t () => (seq(float[2,3]) a) { a = SequenceConstruct(x, x) },
                    else_branch = e () => (seq(float[2,3]) b) { b = SequenceEmpty() }>
        t = SequenceInsert(s, x) y = ConcatFromSequence <axis = 0> (t)
    }"""
    model = parser.parse_model(HEAD + text)
    for attribute in model.graph.node[2].attribute:
        attribute.g.output[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    untyped(model.graph, {"y"})
    session = sardonyx.InferenceSession(model.SerializeToString())
    (y,) = session.run(None, {"x": ramp(2, 3), "k": np.array([sign], F32)})
    np.testing.assert_array_equal(y, np.concatenate([ramp(2, 3)] * (3 if sign > 0 else 1)))
