"""Tensors without elements, with sizes that the model tells and with sizes that only a run tells."""

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx

f32 = np.float32


def run(node, feeds, open_sizes, opset=17, initializers=()):
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(a.dtype),
            [f"{name}{d}" for d in range(a.ndim)] if open_sizes else a.shape,
        )
        for name, a in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads, options.check_bounds = False, 1, True
    return sdx.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def array(*shape, dtype=f32):
    return np.arange(1, 1 + np.prod(shape), dtype=dtype).reshape(shape)


OPEN = pytest.mark.parametrize("open_sizes", [False, True])


@OPEN
@pytest.mark.parametrize("m, k, n", [(2, 0, 3), (0, 4, 3), (2, 4, 0), (0, 0, 0), (1, 0, 40), (0, 0, 5), (40, 0, 1)])
@pytest.mark.parametrize("batch", [None, 0, 1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_products(m, k, n, batch, dtype, open_sizes):
    lead = [] if batch is None else [batch]
    a, b = array(*lead, m, k, dtype=dtype), array(*lead, k, n, dtype=dtype)
    (y,) = run(helper.make_node("MatMul", ["a", "b"], ["y"]), {"a": a, "b": b}, open_sizes)
    np.testing.assert_array_equal(y, a @ b)


@OPEN
@pytest.mark.parametrize("m, k, n", [(2, 0, 3), (0, 4, 3), (2, 4, 0)])
def test_gemm(m, k, n, open_sizes):
    a, b, c = array(m, k), array(k, n), array(n)
    (y,) = run(helper.make_node("Gemm", ["a", "b", "c"], ["y"], alpha=2.0), {"a": a, "b": b, "c": c}, open_sizes)
    np.testing.assert_array_equal(y, 2 * (a @ b) + c)


@OPEN
@pytest.mark.parametrize("m, k, n", [(2, 0, 3), (0, 4, 3), (2, 4, 0), (2, 1, 0)])
def test_integer_products(m, k, n, open_sizes):
    a, b = array(m, k, dtype=np.uint8), array(k, n, dtype=np.uint8)
    (y,) = run(helper.make_node("MatMulInteger", ["a", "b"], ["y"]), {"a": a, "b": b}, open_sizes)
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32))
    weights = onnx.numpy_helper.from_array(b, "b")
    (y,) = run(helper.make_node("MatMulInteger", ["a", "b"], ["y"]), {"a": a}, open_sizes, initializers=[weights])
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32))


@OPEN
@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 0, 8, 8), (2, 3, 0, 8)])
def test_convolutions(shape, open_sizes):
    x, w = array(*shape), array(4, shape[1], 1, 1)
    weights = onnx.numpy_helper.from_array(w, "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1], pads=[0, 0, 0, 0])
    if shape[1] == 0:
        try:
            (y,) = run(node, {"x": x}, open_sizes, initializers=[weights])
        except sdx.InvalidGraph:
            return
        np.testing.assert_array_equal(y, np.zeros((shape[0], 4) + shape[2:], f32))
        return
    (y,) = run(node, {"x": x}, open_sizes, initializers=[weights])
    assert y.shape == (shape[0], 4) + shape[2:]


@OPEN
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 0, 8, 8)])
def test_pools(kind, shape, open_sizes):
    (y,) = run(helper.make_node(kind, ["x"], ["y"], kernel_shape=[2, 2]), {"x": array(*shape)}, open_sizes)
    assert y.shape == shape[:2] + (7, 7)


@OPEN
@pytest.mark.parametrize("name, least", [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceSumSquare", 0), ("ReduceL1", 0)])
@pytest.mark.parametrize("shape, axis", [((2, 0), 1), ((0, 3), 0), ((0, 3), 1), ((2, 0, 3), 1), ((2, 0, 3), 2)])
def test_reductions(name, least, shape, axis, open_sizes):
    axes = onnx.numpy_helper.from_array(np.array([axis]), "axes")
    node = helper.make_node(name, ["x", "axes"], ["y"], keepdims=0)
    (y,) = run(node, {"x": array(*shape)}, open_sizes, opset=18, initializers=[axes])
    np.testing.assert_array_equal(y, np.full(shape[:axis] + shape[axis + 1 :], least, f32))


@OPEN
@pytest.mark.parametrize("name, least", [("ReduceMax", -np.inf), ("ReduceMin", np.inf)])
def test_extremes_of_nothing(name, least, open_sizes):
    axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
    node = helper.make_node(name, ["x", "axes"], ["y"], keepdims=0)
    (y,) = run(node, {"x": array(2, 0)}, open_sizes, opset=20, initializers=[axes])
    np.testing.assert_array_equal(y, np.full(2, least, f32))


@OPEN
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Relu", "Exp", "Identity", "Transpose", "Hardmax"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_elementwise(name, shape, open_sizes):
    (y,) = run(helper.make_node(name, ["x"], ["y"]), {"x": array(*shape)}, open_sizes)
    assert y.shape == (shape[::-1] if name == "Transpose" else shape)


@OPEN
@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)])
def test_normalizations(shape, open_sizes):
    one = onnx.numpy_helper.from_array(np.ones(4, f32), "s")
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"])
    (y,) = run(node, {"x": array(*shape)}, open_sizes, initializers=[one])
    assert y.shape == shape


@OPEN
@pytest.mark.parametrize("a, b, axis", [((0, 3), (0, 2), 1), ((0, 3), (2, 3), 0), ((2, 0), (2, 3), 1), ((2, 0), (3, 0), 0)])
def test_concat(a, b, axis, open_sizes):
    a, b = array(*a), array(*b)
    (y,) = run(helper.make_node("Concat", ["a", "b"], ["y"], axis=axis), {"a": a, "b": b}, open_sizes)
    np.testing.assert_array_equal(y, np.concatenate([a, b], axis))


@OPEN
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_pad(shape, open_sizes):
    pads = onnx.numpy_helper.from_array(np.array([1, 0, 1, 2]), "p")
    (y,) = run(helper.make_node("Pad", ["x", "p"], ["y"]), {"x": array(*shape)}, open_sizes, initializers=[pads])
    np.testing.assert_array_equal(y, np.zeros((shape[0] + 2, shape[1] + 2), f32))


@OPEN
@pytest.mark.parametrize("shape, indices, axis", [((3, 0), [1, 2], 0), ((0, 3), [1], 1), ((4, 3), [], 0)])
def test_gather(shape, indices, axis, open_sizes):
    x, indices = array(*shape), np.array(indices, np.int64)
    (y,) = run(helper.make_node("Gather", ["x", "i"], ["y"], axis=axis), {"x": x, "i": indices}, open_sizes)
    np.testing.assert_array_equal(y, np.take(x, indices, axis))
