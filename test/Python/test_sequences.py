"""Sequences and optionals: Python's lists and None are the reference."""

import numpy as np
import pytest
from graphs import load, make, run
from onnx import TensorProto, helper, parser

import sardonyx as sdx


def tensors(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def same(got, want):
    assert isinstance(got, list) and len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


INSERT = "(seq(float[n, m]) s, float[a, b] x, int64 p) => (seq(float[k, l]) t, int64 c) { t = SequenceInsert(s, x, p) c = SequenceLength(t) }"


def test_insert_anywhere():
    session = load(INSERT)
    items = tensors(1, (2, 3), (0, 5), (1, 1))
    new = tensors(2, (4, 2))[0]
    for position in range(-3, 4):
        got, count = run(session, items, new, np.array(position, np.int64))
        want = list(items)
        want.insert(position if position >= 0 else position + 3, new)
        same(got, want)
        assert count == 4
    for position in (4, -4):
        with pytest.raises(sdx.Fail, match="node 't' .SequenceInsert.: position -?4 is not in a sequence of 3"):
            run(session, items, new, np.array(position, np.int64))
    same(run(session, [], new, np.array(0, np.int64))[0], [new])


def test_erase_and_at():
    session = load(
        "(seq(float[n]) s, int64 p) => (seq(float[k]) t, seq(float[l]) u, float[m] x)"
        " { t = SequenceErase(s, p) u = SequenceErase(s) x = SequenceAt(s, p) }"
    )
    items = tensors(3, (2,), (3,), (0,))
    for position in range(-3, 3):
        t, u, x = run(session, items, np.array(position, np.int64))
        want = list(items)
        np.testing.assert_array_equal(x, want.pop(position))
        same(t, want)
        same(u, items[:-1])
    with pytest.raises(sdx.Fail, match="position 0 is not in a sequence of 0"):
        run(session, [], np.array(0, np.int64))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new_axis", [0, 1])
def test_concat_from_sequence(axis, new_axis):
    out = "float[a, b, c]" if new_axis else "float[a, b]"
    session = load(f"(seq(float[n, m]) s) => ({out} y) {{ y = ConcatFromSequence<axis = {axis}, new_axis = {new_axis}>(s) }}")
    shapes = [(2, 3)] * 3
    if not new_axis:
        shapes = [(2 + (i if axis == 0 else 0), 3 + (0 if axis == 0 else i)) for i in range(3)]
    items = tensors(4, *shapes)
    join = np.stack if new_axis else np.concatenate
    np.testing.assert_array_equal(run(session, items)[0], join(items, axis))
    with pytest.raises(sdx.Fail, match="the sequence is empty"):
        run(session, [])
    with pytest.raises(sdx.Fail, match="do not fit together"):
        run(session, tensors(5, (2, 3), (5, 7)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split_to_sequence(axis):
    x = tensors(6, (4, 5))[0]
    graph = "(float[n, m] x{}) => (seq(float[{}]) s) {{{{ s = SplitToSequence<axis = {}{}>(x{}) }}}}"
    each = load(graph.format("", "a", axis, ", keepdims = 0", "").replace("{{", "{").replace("}}", "}"))
    same(run(each, x)[0], [np.take(x, i, axis) for i in range(x.shape[axis])])
    kept = load(graph.format("", "a, b", axis, "", "").replace("{{", "{").replace("}}", "}"))
    same(run(kept, x)[0], np.split(x, x.shape[axis], axis))
    by_size = load(graph.format(", int64 p", "a, b", axis, "", ", p").replace("{{", "{").replace("}}", "}"))
    same(run(by_size, x, np.array(3, np.int64))[0], np.split(x, [3], axis))
    with pytest.raises(sdx.Fail, match="'split' must be positive, got 0"):
        run(by_size, x, np.array(0, np.int64))
    by_list = load(graph.format(", int64[k] p", "a, b", axis, "", ", p").replace("{{", "{").replace("}}", "}"))
    rest = x.shape[axis] - 3
    same(run(by_list, x, np.array([1, 0, 2, rest], np.int64))[0], np.split(x, [1, 1, 3], axis))
    with pytest.raises(sdx.Fail, match="the sizes in 'split' do not make"):
        run(by_list, x, np.array([1, 1], np.int64))


def test_sequences_of_other_types():
    for type, items in {
        "int64": [np.arange(3), np.arange(0)],
        "bool": [np.array([True, False])],
        "double": [np.ones(2)],
        "float16": [np.ones(2, np.float16)],
    }.items():
        session = load(f"(seq({type}[n]) s, {type}[m] x) => (seq({type}[k]) t) {{ t = SequenceInsert(s, x) }}")
        same(run(session, items, items[0])[0], items + [items[0]])
    session = load("(seq(string[n]) s, string[m] x) => (seq(string[k]) t) { t = SequenceInsert(s, x) }")
    got = run(session, [["a", "☃"], []], ["b"])[0]
    assert [item.tolist() for item in got] == [["a", "☃"], [], ["b"]]


LOOP = """(int64 n, float[m] x) => (seq(float[k]) s, float[a, b] scan) {
  true = Constant<value = bool {1}>()
  start = SequenceEmpty()
  s, scan = Loop(n, true, start) <body = body (int64 i, bool c, seq(float[k]) s_in) => (bool c_out, seq(float[l]) s_out, float[q] part) {
    c_out = Identity(c)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    last = Unsqueeze(i, zero)
    part = Slice(x, zero, last, zero)
    s_out = SequenceInsert(s_in, part)
    }>
}"""


def test_loop_carries_a_sequence():
    graph = LOOP.replace(", float[a, b] scan)", ")").replace("s, scan = Loop", "s = Loop").replace(", float[q] part)", ")")
    x = tensors(7, (10,))[0]
    session = load(graph)
    for trips in (0, 1, 7):
        same(run(session, np.array(trips, np.int64), x)[0], [x[:i] for i in range(trips)])


def test_loop_scans_elements_of_open_size():
    graph = """(int64 n, float[m] x) => (float[a, b] scan, float[c] last) {
      true = Constant<value = bool {1}>()
      last, scan = Loop(n, true, x) <body = body (int64 i, bool c, float[m] v) => (bool c_out, float[m] v_out, float[q] part) {
        c_out = Identity(c)
        v_out = Add(v, v)
        part = Identity(v_out)
        }>
    }"""
    session = load(graph)
    x = tensors(8, (5,))[0]
    for trips in (1, 4):
        scan, last = run(session, np.array(trips, np.int64), x)
        np.testing.assert_array_equal(scan, np.stack([x * 2 ** (i + 1) for i in range(trips)]))
        np.testing.assert_array_equal(last, x * 2**trips)
    scan, _ = run(session, np.array(0, np.int64), x)
    assert scan.size == 0 and scan.ndim == 2


def test_loop_scans_without_a_trip_count():
    graph = """(float[2] x, float limit) => (float[a, 2] scan) {
      true = Constant<value = bool {1}>()
      last, scan = Loop(, true, x) <body = body (int64 i, bool c, float[2] v) => (bool c_out, float[2] v_out, float[2] part) {
        v_out = Add(v, v)
        axes = Constant<value_ints = [0]>()
        sum = ReduceSum<keepdims = 0>(v_out, axes)
        c_out = Less(sum, limit)
        part = Identity(v_out)
        }>
    }"""
    got = run(load(graph), np.array([1, 2], np.float32), np.float32(50))[0]
    np.testing.assert_array_equal(got, np.array([[2, 4], [4, 8], [8, 16], [16, 32], [32, 64]], np.float32)[: len(got)])
    assert got[-1].sum() >= 50 > got[-2].sum()


def test_if_with_sequences():
    graph = """(bool c, float[n] x, float[m] y) => (seq(float[k]) s) {
      s = If(c) <then_branch = a () => (seq(float[k]) t) { t = SequenceConstruct(x, y) },
                 else_branch = b () => (seq(float[k]) e) { e = SequenceConstruct(y) }>
    }"""
    session = load(graph)
    x, y = tensors(9, (2,), (3,))
    same(run(session, np.array(True), x, y)[0], [x, y])
    same(run(session, np.array(False), x, y)[0], [y])


def optional_model(element, output, nodes):
    optional = helper.make_optional_type_proto(element)
    graph = helper.make_graph(nodes, "g", [helper.make_value_info("o", optional)], [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_optionals():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    sequence = helper.make_sequence_type_proto(tensor)
    x = tensors(10, (3,))[0]
    for element, value in ((tensor, x), (sequence, [x, x[:1]])):
        has = make(optional_model(element, helper.make_tensor_value_info("h", TensorProto.BOOL, []), [helper.make_node("OptionalHasElement", ["o"], ["h"])]))
        assert run(has, value)[0] and not run(has, None)[0]
        get = make(optional_model(element, helper.make_value_info("v", element), [helper.make_node("OptionalGetElement", ["o"], ["v"], name="get")]))
        got = run(get, value)[0]
        if element is tensor:
            np.testing.assert_array_equal(got, x)
        else:
            same(got, value)
        with pytest.raises(sdx.Fail, match="node 'get' .OptionalGetElement.: the optional holds no value"):
            run(get, None)
        same_again = make(optional_model(element, helper.make_value_info("p", helper.make_optional_type_proto(element)), [helper.make_node("Identity", ["o"], ["p"])]))
        assert run(same_again, None)[0] is None
        assert run(same_again, value)[0] is not None


def test_results_outlive_the_session_and_later_runs():
    session = load("(float[n] x) => (seq(float[k]) s) { s = SequenceConstruct(x, x) }")
    first, second = tensors(11, (1000,), (1000,))
    kept = run(session, first)[0]
    run(session, second)
    del session
    same(kept, [first, first])


def test_wrong_inputs():
    session = load("(seq(float[n]) s, int64 p) => (float[m] x) { x = SequenceAt(s, p) }")
    zero = np.array(0, np.int64)
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    with pytest.raises(sdx.InvalidArgument, match="input 's' at position 0 holds a tensor of float, got int64"):
        run(session, [np.arange(3)], zero)
    with pytest.raises(sdx.InvalidArgument, match=r"holds a tensor of the shape \[\?\], got \[1, 1\]"):
        run(session, [np.ones((1, 1), np.float32)], zero)
    with pytest.raises(sdx.InvalidArgument, match="input 's' is a sequence, got float"):
        run(session, 1.0, zero)
    with pytest.raises(sdx.InvalidArgument, match="got nothing"):
        run(session, None, zero)


def test_a_long_loop_that_grows_a_sequence():
    graph = """(int64 n, float[2] x) => (int64 count) {
      true = Constant<value = bool {1}>()
      start = SequenceEmpty()
      s = Loop(n, true, start) <body = body (int64 i, bool c, seq(float[2]) s_in) => (bool c_out, seq(float[2]) s_out) {
        c_out = Identity(c)
        s_out = SequenceInsert(s_in, x)
        }>
      count = SequenceLength(s)
    }"""
    assert run(load(graph), np.array(20000, np.int64), np.ones(2, np.float32))[0] == 20000


def test_tensors_of_one_sequence_differ_in_rank():
    """A constant position tells the rank; the items keep theirs in any case."""
    session = load(
        """(float[n] x, float[n, m] y, float z) => (float[a] u, float[b, c] v, seq(float[]) s, int64 length) {
          zero = Constant<value_int = 0>()
          last = Constant<value_int = -1>()
          xy = SequenceConstruct(x, y)
          s = SequenceInsert(xy, z, zero)
          rest = SequenceErase(s, zero)
          x_again = SequenceAt(rest, zero)
          y_again = SequenceAt(s, last)
          u = Neg(x_again)
          v = Add(y_again, x)
          length = SequenceLength(s)
        }"""
    )
    x, y, z = tensors(12, (3,), (3, 3), ())
    u, v, s, length = run(session, x, y, z)
    np.testing.assert_array_equal(u, -x)
    np.testing.assert_array_equal(v, y + x)
    same(s, [z, x, y])
    assert length == 3


def any_rank(nodes):
    """A graph whose sequence and result have no rank."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> m (seq(float[]) s, int64 p) => (float[] z) {{ {nodes} z = Neg(y) }}')


@pytest.mark.parametrize("node", ["y = SequenceAt(s, p)", "q = SequenceErase(s, p) y = ConcatFromSequence<axis = 0, new_axis = 1>(q)"])
def test_sequences_of_any_rank_are_compiled_for_the_rank_that_arrives(node):
    session = make(any_rank(node))
    for seed, shape in enumerate([(2, 3), (4,), (), (1, 2, 3), (5, 1)]):
        items = tensors(seed, shape, shape)
        got = run(session, items, np.array(1, np.int64))[0]
        np.testing.assert_array_equal(got, -items[1] if "SequenceAt" in node else -items[:1][0][None])
    with pytest.raises(sdx.NotImplemented, match="of unknown rank|rank of the sequence's tensors is not known"):
        run(session, tensors(9, (2,), (2, 3)), np.array(1, np.int64))


def test_optionals_of_any_rank():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [helper.make_node("OptionalGetElement", ["o"], ["v"]), helper.make_node("Neg", ["v"], ["n"])]
    session = make(optional_model(tensor, helper.make_value_info("n", tensor), nodes))
    for x in tensors(13, (3,), (2, 2), ()):
        np.testing.assert_array_equal(run(session, x)[0], -x)
