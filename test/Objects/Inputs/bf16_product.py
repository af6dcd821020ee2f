"""Writes a product of bf16 with weights, too many for a text, to the file given."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

weights = (np.arange(256 * 1024).reshape(256, 1024) % 0x3F80).astype(np.uint16)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "product",
    [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [512, 256])],
    [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [512, 1024])],
    [helper.make_tensor("w", TensorProto.BFLOAT16, weights.shape, weights.tobytes(), raw=True)],
)
opset = helper.make_opsetid("", 21)
onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=10), sys.argv[1])
