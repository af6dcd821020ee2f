"""Programs on elements (gathers, scatters, selections, running sums) that several tasks share, against ONNX's reference."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import sardonyx as sdx

RNG = np.random.default_rng(7)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integers(below, *shape):
    return RNG.integers(0, below, shape)


def build(nodes, feeds, result, is_open, constants=None, opset=20):
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [f"{name}{i}" for i in range(value.ndim)] if is_open else value.shape)
        for name, value in feeds.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", result, None)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run(model, feeds, threads):
    options = sdx.SessionOptions()
    options.intra_op_num_threads = threads
    return sdx.InferenceSession(model.SerializeToString(), options).run(None, feeds)[0]


def node(op, names, **attributes):
    return [helper.make_node(op, names, ["y"], **attributes)]


MASK = RNG.random((3, 5000)) < 0.4
CASES = {
    "gather": (node("Gather", ["x", "i"]), {"x": floats(50, 700), "i": integers(50, 40)}),
    "gather along an inner axis": (node("Gather", ["x", "i"], axis=1), {"x": floats(6, 50, 30), "i": integers(50, 4, 5)}),
    "rows of ScatterElements": (
        node("ScatterElements", ["x", "i", "u"], axis=1, reduction="add"),
        {"x": floats(9, 20, 3), "i": integers(20, 7, 30, 3), "u": floats(7, 30, 3)},
    ),
    "columns of ScatterElements": (
        node("ScatterElements", ["x", "i", "u"], axis=0, reduction="add"),
        {"x": floats(9, 300), "i": integers(9, 20, 290), "u": floats(20, 290)},
    ),
    "slices of ScatterND in their order": (node("ScatterND", ["x", "i", "u"]), {"x": floats(9, 200, 2), "i": integers(9, 40, 1), "u": floats(40, 200, 2)}),
    "sums of ScatterND": (node("ScatterND", ["x", "i", "u"], reduction="add"), {"x": floats(9, 200), "i": integers(9, 40, 1), "u": floats(40, 200)}),
    "elements of ScatterND": (node("ScatterND", ["x", "i", "u"], reduction="max"), {"x": floats(9, 20), "i": integers(9, 70, 2), "u": floats(70)}),
    "running sums of rows": (node("CumSum", ["x", "axis"]), {"x": floats(3, 70)}),
    "running sums of columns": (node("CumSum", ["x", "axis"], exclusive=1), {"x": floats(3, 70, 200)}),
    "running sums from the end": (node("CumSum", ["x", "axis"], reverse=1, exclusive=1), {"x": floats(3, 70, 200)}),
    "determinants": (node("Det", ["x"]), {"x": floats(2, 3, 6, 6)}),
    "positions in many ranges": (node("NonZero", ["x"]), {"x": MASK}),
    "positions in one dimension": (node("NonZero", ["x"]), {"x": MASK.reshape(-1)}),
    "positions behind a dimension of one": (node("NonZero", ["x"]), {"x": MASK.reshape(1, 1, -1, 3)}),
    "selected elements": (node("Compress", ["x", "c"]), {"x": floats(3, 5000), "c": MASK.reshape(-1)}),
    "selected rows": (node("Compress", ["x", "c"], axis=0), {"x": floats(5000, 9), "c": MASK[0]}),
    "nothing selected": (node("Compress", ["x", "c"], axis=1), {"x": floats(3, 20), "c": np.zeros(20, bool)}),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_tasks(case, is_open, threads):
    nodes, feeds = CASES[case]
    constants = {"axis": np.int64(1)} if nodes[0].op_type == "CumSum" else {}
    model = build(nodes, feeds, TensorProto.INT64 if nodes[0].op_type == "NonZero" else TensorProto.FLOAT, is_open, constants)
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_allclose(run(model, feeds, threads), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums_of_nothing(axis):
    feeds = {"x": np.zeros((0, 4) if axis == 0 else (4, 0), np.float32)}
    model = build(node("CumSum", ["x", "axis"]), feeds, TensorProto.FLOAT, True, {"axis": np.int64(axis)})
    assert run(model, feeds, 2).shape == feeds["x"].shape


@pytest.mark.parametrize("reads_before", [False, True])
def test_a_loop_updates_what_it_carries(reads_before):
    """The state is updated in place, unless the body also reads what it was."""
    body = [
        helper.make_node("Identity", ["go_in"], ["go"]),
        helper.make_node("Reshape", ["trip", "tuple"], ["at"]),
        helper.make_node("ScatterND", ["state", "at", "u"], ["next"]),
    ]
    if reads_before:
        body[-1].output[0] = "written"
        body.append(helper.make_node("Add", ["written", "state"], ["next"]))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        body,
        "body",
        [info("trip", TensorProto.INT64, []), info("go_in", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, [8, 5])],
        [info("go", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [8, 5])],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["z"], body=graph), helper.make_node("Add", ["z", "x"], ["y"])]
    feeds = {"x": floats(8, 5), "u": floats(1, 5)}
    model = build(nodes, feeds, TensorProto.FLOAT, False, {"n": np.int64(6), "tuple": np.array([1, 1])})
    kept = feeds["x"].copy()
    result = run(model, feeds, 2)
    np.testing.assert_array_equal(feeds["x"], kept)
    state = kept.copy()
    for trip in range(6):
        written = state.copy()
        written[trip] = feeds["u"][0]
        state = written + state if reads_before else written
    np.testing.assert_allclose(result, state + kept, rtol=1e-5, atol=1e-5)
