"""Every operator, and every pair of operators, between quantised tensors, bit for bit (quantized_graphs.py)."""

import numpy as np
import onnx
import pytest
import quantized_graphs as q
import quantized_operators as operators
from numerics import OPTIONS, vectors  # noqa: F401
from onnx import helper

import sardonyx as sdx


def start(seed, scales, name):
    """A graph and its value after the operator `name`, of a shape that it takes."""
    for shape in operators.SHAPES:
        graph = q.Graph(np.random.default_rng(seed), scales)
        value = operators.OPERATORS[name](graph, graph.input(shape))
        if value is not None:
            return graph, value
    raise AssertionError(f"no shape fits {name}")


@pytest.mark.parametrize("scales", ["pow2", "short"])
@pytest.mark.parametrize("name", operators.OPERATORS)
def test_operator(name, scales):
    """Of 256 values and more; ties are many where scales are powers of two."""
    graph, _ = start(sum(map(ord, name)), scales, name)
    q.check(graph, OPTIONS)


@pytest.mark.parametrize("name", operators.OPERATORS)
def test_pairs(name):
    """Every third operator behind one, in one model: each with inputs and parameters of its own, at one width of
    vectors. The fuzzer makes all pairs."""
    widths, place = ["", "haswell", "x86-64"], list(operators.OPERATORS).index(name)
    if OPTIONS.cpu != widths[place % len(widths)]:
        pytest.skip("at another width")
    rng = np.random.default_rng(sum(map(ord, name)))
    graph = q.Graph(rng, "pow2")
    ends = []
    for second in list(operators.OPERATORS)[place // 3 % 3 :: 3]:
        for shape in operators.SHAPES:
            value = operators.OPERATORS[name](graph, graph.input(shape))
            if value is not None and (value := operators.OPERATORS[second](graph, value)) is not None:
                ends.append(value.name)
                break
    assert len(ends) > 15
    wrong = q.differences(graph, q.run(graph, ends, OPTIONS))
    if wrong and not graph.is_exact():  # of neighbours that are both right, it may have taken the other one
        wrong = q.differences(graph, q.run(graph, graph.integers(), OPTIONS))
    assert not wrong, wrong


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_positions_are_those_of_the_integers(dtype):
    """Nothing is a tie that is none, nor the other way round."""
    graph = q.Graph(np.random.default_rng(7), "any")
    x = graph.input((5, 40), dtype)
    value = graph.feeds[x.name]
    value[:, 3:9] = value.max(1, keepdims=True)
    nodes = [
        helper.make_node("DequantizeLinear", [x.name, graph.constant(x.scale), graph.constant(x.zero)], ["f"]),
        helper.make_node("ArgMax", ["f"], ["first"], axis=1, keepdims=0),
        helper.make_node("ArgMin", ["f"], ["last"], axis=1, keepdims=0, select_last_index=1),
        helper.make_node("TopK", ["f", graph.constant(np.array([7]))], ["v", "i"], axis=1),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("first", "last", "v", "i")]
    model = helper.make_model(
        helper.make_graph(nodes, "positions", graph.inputs, outputs, graph.initializers),
        opset_imports=[helper.make_opsetid("", q.OPSET)],
        ir_version=10,
    )
    first, last, most, places = sdx.InferenceSession(model.SerializeToString(), OPTIONS).run(None, graph.feeds)
    assert np.array_equal(first, value.argmax(1))
    assert np.array_equal(last, 39 - value[:, ::-1].argmin(1))
    order = np.argsort(-value.astype(int), axis=1, kind="stable")[:, :7]
    assert np.array_equal(places, order)
    chosen = np.take_along_axis(value, order, 1)
    assert np.array_equal(most, (chosen.astype(int) - int(x.zero)).astype(np.float32) * x.scale)


def test_the_reference_sees_a_wrong_answer():
    graph, value = start(3, "short", "Add")
    right = {value.name: graph.known[value.name]}
    assert q.differences(graph, right) is None
    wrong = right[value.name].copy()
    wrong.flat[7] += 1
    assert "Add" in q.differences(graph, {value.name: wrong})
