"""Writes a model with weights inside and beside the file, or compares two.

usage: weights.py DIR | weights.py --compare A.onnx B.onnx
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(directory):
    os.makedirs(directory, exist_ok=True)
    values = np.arange(100, dtype=np.float32)
    with open(os.path.join(directory, "weights.bin"), "wb") as file:
        file.write(b"pad" + values[::-1].tobytes())
    inside = numpy_helper.from_array(values, "inside")
    outside = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[100])
    outside.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "3"), ("length", "400")):
        outside.external_data.add(key=key, value=value)
    shape = numpy_helper.from_array(np.array([10, 10]), "shape")
    nodes = [
        helper.make_node("Add", ["inside", "outside"], ["sum"]),
        helper.make_node("Reshape", ["sum", "shape"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (10, 10))
    graph = helper.make_graph(nodes, "g", [], [y], [inside, outside, shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(os.path.join(directory, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())


def compare(a, b):
    one, two = (
        {t.name: numpy_helper.to_array(t, os.path.dirname(path)) for t in model.graph.initializer}
        for path in (a, b)
        for model in [onnx.load(path, load_external_data=False)]
    )
    assert one.keys() == two.keys(), (one.keys(), two.keys())
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        compare(*sys.argv[2:])
    else:
        write(sys.argv[1])
