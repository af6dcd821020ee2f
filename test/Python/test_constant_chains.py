"""Operators on small tensors that are known when a model is compiled: they fold, to what onnxruntime computes, and what
hangs on them (shapes, ranks, branches) is known."""

import numpy as np
import onnxruntime
import pytest
import sardonyx
from onnx import TensorProto, helper, numpy_helper

I64, I32, F32 = np.int64, np.int32, np.float32
SMALL = np.arange(-4, 8, dtype=I64).reshape(3, 4)
CUBE = np.arange(24, dtype=I32).reshape(2, 3, 4)

# Operator, attributes, inputs; opset 21.
FOLDED = [
    ("Slice", {}, [SMALL, np.array([-1]), np.array([-(2**63) + 1]), np.array([0]), np.array([-1])]),
    ("Slice", {}, [CUBE, np.array([5, -3]), np.array([-9, 99]), np.array([2, 1]), np.array([-2, 2])]),
    ("Slice", {}, [SMALL, np.array([2]), np.array([1]), np.array([1])]),
    ("Slice", {}, [SMALL, np.array([0], I32), np.array([2**31 - 1], I32), np.array([-1], I32), np.array([2**31 - 1], I32)]),
    ("Transpose", {}, [CUBE]),
    ("Transpose", {"perm": [1, 2, 0]}, [CUBE]),
    ("Gather", {"axis": -1}, [CUBE, np.array([[0, -1], [2, 1]])]),
    ("Gather", {}, [SMALL, np.array(-2)]),
    ("GatherElements", {"axis": 1}, [SMALL, np.array([[0, -1], [3, 2]])]),
    ("GatherND", {}, [CUBE, np.array([[0, 1], [-1, 2]])]),
    ("GatherND", {"batch_dims": 1}, [CUBE, np.array([[1], [-1]])]),
    ("ScatterElements", {"axis": 1}, [SMALL, np.array([[1, -1]]), np.array([[70, 80]])]),
    ("ScatterElements", {"axis": 0, "reduction": "add"}, [SMALL, np.array([[1, 2], [1, 2]]), np.array([[7, 8], [9, 1]])]),
    ("ScatterElements", {"axis": 0, "reduction": "max"}, [SMALL, np.array([[1, 2], [1, 2]]), np.array([[7, -8], [9, 1]])]),
    ("ScatterND", {}, [SMALL, np.array([[1], [-1]]), np.array([[9, 9, 9, 9], [5, 6, 7, 8]])]),
    ("ScatterND", {"reduction": "min"}, [SMALL, np.array([[1, 1], [1, 1]]), np.array([3, -9])]),
    ("Concat", {"axis": 1}, [SMALL, SMALL[:, :1]]),
    ("Tile", {}, [SMALL, np.array([2, 3])]),
    ("Expand", {}, [SMALL[:, :1], np.array([2, 1, 4])]),
    ("Reshape", {}, [CUBE, np.array([0, -1])]),
    ("Flatten", {"axis": 2}, [CUBE]),
    ("Pad", {}, [SMALL, np.array([1, -1, 0, 2]), np.array(7)]),
    ("Pad", {}, [SMALL, np.array([0, 3]), np.array(7), np.array([-1])]),
    ("Trilu", {"upper": 0}, [SMALL, np.array(1)]),
    ("Compress", {"axis": 1}, [SMALL, np.array([True, False, True])]),
    ("Compress", {}, [SMALL, np.array([False, True, False, False, True])]),
    ("NonZero", {}, [SMALL]),
    ("OneHot", {"axis": 0}, [np.array([1, -1, 9]), np.array(3), np.array([-5, 5])]),
    ("ConstantOfShape", {"value": numpy_helper.from_array(np.array([3], I32))}, [np.array([2, 2])]),
    ("ConstantOfShape", {}, [np.array([2, 2])]),
    ("Range", {}, [np.array(7), np.array(-4), np.array(-3)]),
    ("Shape", {"start": -2}, [CUBE]),
    ("Size", {}, [CUBE]),
    ("Mod", {}, [SMALL, np.array(3)]),
    ("Mod", {}, [SMALL, np.array(-3)]),
    ("Mod", {"fmod": 1}, [SMALL, np.array(-3)]),
    ("Mod", {}, [SMALL.astype(I32), np.array(5, I32)]),
    ("Div", {}, [SMALL, np.array(-3)]),
    ("Div", {}, [SMALL, np.array([-1, 1, 2, -2])]),
    ("Add", {}, [SMALL, SMALL[:, :1]]),
    ("Sub", {}, [SMALL[:1], SMALL[:, :1]]),
    ("Mul", {}, [SMALL, SMALL]),
    ("Pow", {}, [SMALL, np.array(3)]),
    ("Pow", {}, [SMALL, np.array(2, F32)]),
    ("Pow", {}, [SMALL.astype(F32), np.array(2)]),
    ("Max", {}, [SMALL, np.array(2), SMALL[:, :1]]),
    ("Min", {}, [SMALL, np.array(2)]),
    ("Sum", {}, [SMALL.astype(F32), np.array(2, F32)]),
    ("Neg", {}, [SMALL]),
    ("Abs", {}, [SMALL]),
    ("Sign", {}, [SMALL]),
    ("Clip", {}, [SMALL, np.array(-2), np.array(3)]),
    ("Relu", {}, [SMALL.astype(I32)]),
    ("Equal", {}, [SMALL, SMALL[:1]]),
    ("Less", {}, [SMALL, np.array(2)]),
    ("GreaterOrEqual", {}, [SMALL.astype(F32), np.array(2, F32)]),
    ("And", {}, [SMALL > 0, SMALL[:1] < 0]),
    ("Xor", {}, [SMALL > 0, SMALL[:1] < 0]),
    ("Not", {}, [SMALL > 0]),
    ("Where", {}, [SMALL[:, :1] > 0, SMALL, np.array(99)]),
    ("BitwiseAnd", {}, [SMALL, np.array(6)]),
    ("BitwiseXor", {}, [SMALL.astype(np.uint8), np.array(255, np.uint8)]),
    ("BitwiseNot", {}, [SMALL.astype(np.uint8)]),
    ("BitwiseNot", {}, [SMALL]),
    ("BitShift", {"direction": "RIGHT"}, [np.array([255, 8], np.uint8), np.array([1, 3], np.uint8)]),
    ("BitShift", {"direction": "LEFT"}, [np.array([15, 8], np.uint32), np.array([1, 3], np.uint32)]),
    ("Cast", {"to": TensorProto.INT8}, [np.array([200, -129, 127, 2**40 + 5])]),
    ("Cast", {"to": TensorProto.UINT8}, [np.array([200, -1, 300])]),
    ("Cast", {"to": TensorProto.BOOL}, [np.array([0.0, -0.0, 0.5, np.nan], F32)]),
    ("Cast", {"to": TensorProto.INT64}, [np.array([-1.9, 1.9, 3e9], F32)]),
    ("Cast", {"to": TensorProto.FLOAT}, [np.array([2**24 + 1, 2**24 + 3, -(2**53) - 1, 2**63 - 513])]),
    ("Cast", {"to": TensorProto.FLOAT16}, [np.array([2049, 65519, 65520, 1], I32)]),
    ("CastLike", {}, [np.array([1.5, -2.5], F32), np.array(0)]),
    ("Floor", {}, [np.array([-1.5, 1.5, -0.0], F32)]),
    ("Ceil", {}, [np.array([-1.5, 1.5], F32)]),
    ("Round", {}, [np.array([-1.5, 0.5, 2.5, 2.6], F32)]),
    ("Sqrt", {}, [np.array([2, 9], F32)]),
    ("Reciprocal", {}, [np.array([3, -7], F32)]),
    ("Div", {}, [np.array([1, 2, 7], F32), np.array(3, F32)]),
    ("IsNaN", {}, [np.array([1, np.nan], F32)]),
    ("CumSum", {"exclusive": 1, "reverse": 1}, [SMALL, np.array(1)]),
    ("CumSum", {}, [SMALL, np.array(-2)]),
    ("ReduceSum", {"keepdims": 0}, [CUBE, np.array([1, -1])]),
    ("ReduceSum", {}, [CUBE]),
    ("ReduceProd", {"keepdims": 0}, [SMALL[:, 1:3], np.array([0])]),
    ("ReduceMax", {"keepdims": 0}, [SMALL, np.array([1])]),
    ("ReduceMin", {}, [SMALL, np.array([0])]),
    ("ReduceL1", {"keepdims": 0}, [SMALL.astype(I32), np.array([0])]),
    ("ReduceSumSquare", {"keepdims": 0}, [SMALL.astype(I32), np.array([0])]),
    ("ArgMax", {"axis": 1, "keepdims": 0}, [np.array([[1, 3, 3], [2, 2, 0]])]),
    ("ArgMin", {"axis": 0, "select_last_index": 1}, [np.array([[1, 3, 3], [1, 2, 0]])]),
]  # fmt: skip


def tensor(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def value_info(name, elements=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, elements, shape)


def branch(node, output, initializers=()):
    return helper.make_graph([node], output, [], [value_info(output)], list(initializers))


def make(nodes, inputs, outputs, initializers=(), opset=21):
    graph = helper.make_graph(nodes, "chain", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def load(model):
    options = sardonyx.SessionOptions()
    options.cache = False
    return sardonyx.InferenceSession(model.SerializeToString(), options)


def reference(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def test_every_operator_folds_to_what_it_computes():
    """All in one model, whose outputs are all constants then."""
    nodes, outputs, initializers = [], [], []
    for number, (operator, attributes, inputs) in enumerate(FOLDED):
        names = [f"in{number}_{i}" for i in range(len(inputs))]
        initializers += [tensor(name, value) for name, value in zip(names, inputs)]
        nodes.append(helper.make_node(operator, names, [f"out{number}"], **attributes))
        outputs.append(onnx_untyped(f"out{number}"))
    model = make(nodes, [value_info("unused", shape=[1])], outputs, initializers)
    text = sardonyx.compile(model, to="onnx")
    kept = {line.split("onnx.")[1].split("(")[0] for line in text.splitlines() if " = onnx." in line} - {"Constant"}
    assert not kept
    feeds = {"unused": np.zeros(1, F32)}
    for row, ours, theirs in zip(FOLDED, load(model).run(None, feeds), reference(model, feeds)):
        assert ours.dtype == theirs.dtype, row
        np.testing.assert_array_equal(ours, theirs, err_msg=str(row))


def onnx_untyped(name):
    info = helper.make_empty_tensor_value_info(name)
    info.ClearField("type")
    return info


# What ONNX leaves open is left to the run.
OPEN = [
    ("Div", {}, [np.array([1, 2]), np.array([0, 1])]),
    ("Mod", {}, [np.array([1, 2]), np.array([0, 1])]),
    ("Div", {}, [np.array([-(2**63)]), np.array([-1])]),
    ("Add", {}, [np.array([2**63 - 1]), np.array([1])]),
    ("Mul", {}, [np.array([2**20], I32), np.array([2**20], I32)]),
    ("Sub", {}, [np.array([3], np.uint8), np.array([5], np.uint8)]),
    ("Pow", {}, [np.array([2]), np.array([-1])]),
    ("Cast", {"to": TensorProto.INT32}, [np.array([3e9, np.nan], F32)]),
    ("ScatterElements", {}, [np.array([1, 2]), np.array([0, 0]), np.array([5, 6])]),
    ("BitShift", {"direction": "LEFT"}, [np.array([1], np.uint8), np.array([8], np.uint8)]),
]  # fmt: skip


@pytest.mark.parametrize("operator, attributes, inputs", OPEN)
def test_what_is_open_stays(operator, attributes, inputs):
    names = [f"in{i}" for i in range(len(inputs))]
    model = make(
        [helper.make_node(operator, names, ["y"], **attributes)],
        [],
        [onnx_untyped("y")],
        [tensor(name, value) for name, value in zip(names, inputs)],
    )
    assert f"onnx.{operator}(" in sardonyx.compile(model, to="onnx")


def pad_chain(pads, rank):
    """torch.onnx's form of F.pad: pads of the last dimensions first, as ONNX wants them."""
    n = helper.make_node
    nodes = [
        n("Constant", [], ["given"], value_ints=list(pads)),
        n("Constant", [], ["missing"], value_ints=[2 * rank - len(pads)]),
        n("ConstantOfShape", ["missing"], ["zeros"], value=tensor("", np.array([0]))),
        n("Concat", ["given", "zeros"], ["all"], axis=0),
        n("Reshape", ["all", "pairs"], ["square"]),
        n("Slice", ["square", "last", "end", "first", "last"], ["turned"]),
        n("Transpose", ["turned"], ["columns"], perm=[1, 0]),
        n("Reshape", ["columns", "last"], ["row"]),
        n("Cast", ["row"], ["pads"], to=TensorProto.INT64),
        n("Pad", ["x", "pads"], ["padded"]),
    ]
    initializers = [tensor("pairs", [-1, 2]), tensor("end", [-(2**63) + 1]), tensor("first", [0]), tensor("last", [-1])]
    return nodes, initializers


def test_pads_of_torch_are_known():
    nodes, initializers = pad_chain([1, 2, 3, 4], 4)
    model = make(nodes, [value_info("x", shape=["n", 3, 8, 9])], [value_info("padded")], initializers)
    assert "tensor<?x3x15x12xf32>" in sardonyx.compile(model, to="onnx")
    x = np.ones((2, 3, 8, 9), F32)
    (y,) = load(model).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (0, 0), (3, 4), (1, 2)]))


@pytest.mark.parametrize("width", [1, 2])
def test_squeeze_after_pads(width):
    """A branch that hangs on the sizes after them is decided; its operators need not fit the other rank."""
    nodes, initializers = pad_chain([0, 0], 2)
    n = helper.make_node
    nodes += [
        n("Shape", ["padded"], ["sizes"]),
        n("Gather", ["sizes", "last"], ["width"]),
        n("Equal", ["width", "one"], ["isOne"]),
        n("If", ["isOne"], ["q"], then_branch=branch(n("Squeeze", ["padded", "last"], ["a"]), "a"),
          else_branch=branch(n("Identity", ["padded"], ["b"]), "b")),
        n("Abs", ["q"], ["y"]),
    ]  # fmt: skip
    model = make(nodes, [value_info("x", shape=[3, width])], [value_info("y")], [*initializers, tensor("one", [1])])
    assert "onnx.If" not in sardonyx.compile(model, to="onnx")
    x = -np.arange(3 * width, dtype=F32).reshape(3, width)
    (y,) = load(model).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.abs(x if width > 1 else x[:, 0]))


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_rank_asked_for(cast, shape):
    """onnxscript's functions ask whether something is a scalar: If(Size(Shape(x)) == CastLike(0, ...))."""
    n = helper.make_node
    nodes = [n("Shape", ["x"], ["sizes"]), n("Size", ["sizes"], ["rank"])]
    nodes += [n("CastLike", ["zero", "rank"], ["limit"]) if cast else n("Identity", ["zero"], ["limit"])]
    nodes += [
        n("Equal", ["rank", "limit"], ["c"]),
        n("If", ["c"], ["v"], then_branch=branch(n("Unsqueeze", ["x", "axis"], ["a"]), "a"),
          else_branch=branch(n("Identity", ["x"], ["b"]), "b")),
        n("ReduceL2", ["v"], ["y"], keepdims=0),
    ]  # fmt: skip
    model = make(nodes, [value_info("x", shape=shape)], [value_info("y")], [tensor("zero", np.int32(0) if cast else 0), tensor("axis", [0])])
    (y,) = load(model).run(None, {"x": np.full(shape, 3, F32)})
    np.testing.assert_allclose(y, np.linalg.norm(np.full(shape, 3.0).ravel()), rtol=1e-6)


def test_branch_in_a_loop_is_decided():
    n = helper.make_node
    body = helper.make_graph(
        [n("Shape", ["s"], ["sizes"]), n("Size", ["sizes"], ["rank"]), n("Equal", ["rank", "one"], ["c"]),
         n("If", ["c"], ["t"], then_branch=branch(n("Identity", ["s"], ["a"]), "a"),
           else_branch=branch(n("Squeeze", ["s", "last"], ["b"]), "b")),
         n("Add", ["t", "t"], ["next"]), n("Identity", ["go"], ["on"])],
        "body",
        [value_info("i", TensorProto.INT64, []), value_info("go", TensorProto.BOOL, []), value_info("s")],
        [value_info("on", TensorProto.BOOL, []), value_info("next")],
    )  # fmt: skip
    model = make([n("Loop", ["trips", "", "x"], ["y"], body=body)], [value_info("x", shape=[3])], [value_info("y")],
                 [tensor("trips", 3), tensor("one", 1), tensor("last", [-1])])  # fmt: skip
    (y,) = load(model).run(None, {"x": np.ones(3, F32)})
    np.testing.assert_array_equal(y, np.full(3, 8, F32))


def test_resize_by_computed_scales():
    """F.interpolate to a size: scales are quotients of sizes."""
    n = helper.make_node
    nodes = [
        n("Shape", ["x"], ["sizes"], start=2), n("Cast", ["sizes"], ["now"], to=TensorProto.FLOAT),
        n("Mul", ["now", "factor"], ["wide"]), n("Floor", ["wide"], ["whole"]), n("Div", ["whole", "now"], ["ratio"]),
        n("Concat", ["ones", "ratio"], ["scales"], axis=0), n("Resize", ["x", "", "scales"], ["y"]),
    ]  # fmt: skip
    model = make(nodes, [value_info("x", shape=[1, 1, 4, 6])], [value_info("y")], [tensor("factor", F32(1.5)), tensor("ones", np.ones(2, F32))])
    assert "tensor<1x1x6x9xf32>" in sardonyx.compile(model, to="onnx")
    x = np.arange(24, dtype=F32).reshape(1, 1, 4, 6)
    np.testing.assert_array_equal(load(model).run(None, {"x": x})[0], reference(model, {"x": x})[0])
