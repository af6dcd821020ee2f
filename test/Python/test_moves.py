"""What only copies, repeats or fills: long rows are left to memcpy and memset, be their sizes known or open."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import sardonyx

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}

EXPANDED = [
    ((1, 8, 1, 128, 64), (1, 8, 4, 128, 64)),
    ((2, 3, 1, 70, 33), (2, 3, 5, 70, 33)),
    ((1, 40000), (3, 40000)),
    ((5, 1, 9000), (5, 3, 9000)),
    ((300, 1), (300, 200)),
    ((1, 1, 300), (50, 40, 300)),
    ((2, 1, 3, 1, 5000), (2, 4, 3, 2, 5000)),
    ((2, 4096, 1), (2, 4096, 2)),
    ((7, 8192), (1, 8192)),
    ((1, 1), (1, 1)),
    ((0, 1, 9000), (0, 4, 9000)),
    ((3, 1, 0), (3, 4, 0)),
]


def run(node, inputs, outputs, feeds, threads, constants=()):
    graph = helper.make_graph([node], "moves", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    session = sardonyx.InferenceSession(model.SerializeToString(), options)
    return [session.run(None, feed)[0] for feed in feeds]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_expand(dtype, is_open, threads):
    rng = np.random.default_rng(3)
    node = helper.make_node("Expand", ["x", "s"], ["y"])
    output = helper.make_tensor_value_info("y", TYPES[dtype], None)
    ranks = {}
    for shape, wanted in EXPANDED:
        x = rng.integers(0, 100, shape).astype(dtype)
        ranks.setdefault(x.ndim, []).append({"x": x, "s": np.array(wanted)})
    for rank, feeds in ranks.items():
        if is_open:
            inputs = [helper.make_tensor_value_info("x", TYPES[dtype], [f"x{i}" for i in range(rank)]), helper.make_tensor_value_info("s", TensorProto.INT64, [rank])]
            results = run(node, inputs, [output], feeds, threads)
        else:
            results = []
            for feed in feeds:
                inputs = [helper.make_tensor_value_info("x", TYPES[dtype], feed["x"].shape)]
                constant = helper.make_tensor("s", TensorProto.INT64, [rank], feed["s"])
                results += run(node, inputs, [output], [{"x": feed["x"]}], threads, [constant])
        for feed, y in zip(feeds, results, strict=True):
            np.testing.assert_array_equal(y, feed["x"] * np.ones(feed["s"], dtype))


@pytest.mark.parametrize("value", [np.float32(0), np.float32(-0.0), np.float32(1), np.int32(-1), np.int64(0x0101010101010101), np.uint8(7), np.bool_(True), np.float16(0)], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_fill(value, threads):
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(value.dtype), [1], [value]))
    inputs = [helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(value.dtype), None)
    shapes = [(1000, 1000), (1, 1), (3, 5000), (0, 7), (1, 40001), (8193, 1)]
    for shape, y in zip(shapes, run(node, inputs, [output], [{"s": np.array(shape)} for shape in shapes], threads), strict=True):
        expected = np.full(shape, value)
        assert y.dtype == expected.dtype and y.tobytes() == expected.tobytes()
