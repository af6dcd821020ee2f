"""sardonyx.backend, the interface of onnx.backend."""

import numpy as np
import onnx
import pytest

import sardonyx.backend as backend


def test_prepare_and_run(model):
    proto = model("m (float[N] x, float[N] b) => (float[N] y) { y = Sub(x, b) }")
    assert backend.is_compatible(proto)
    rep = backend.prepare(proto, "CPU")
    x, b = np.array([3, 4], np.float32), np.array([1, 1], np.float32)
    (y,) = rep.run([x, b])
    np.testing.assert_array_equal(y, [2, 3])
    assert rep.run({"x": x, "b": b}).y[1] == 3
    with pytest.raises(ValueError, match="2 inputs"):
        rep.run([x])
    assert backend.run_model(proto, (x, b))[0][0] == 2


def test_inputs_of_one_value():
    """A map is the value of the only input, unless its keys are names of inputs."""
    kind = onnx.helper.make_map_type_proto(7, onnx.helper.make_tensor_type_proto(1, []))
    node = onnx.helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", int64_vocabulary=[3, 5])
    output = onnx.helper.make_tensor_value_info("y", 1, [1, 2])
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_value_info("m", kind)], [output])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("ai.onnx.ml", 1), onnx.helper.make_opsetid("", 17)])
    for value in ({5: 2.0, 3: 1.0}, {"m": {5: 2.0, 3: 1.0}}, [{5: 2.0, 3: 1.0}]):
        np.testing.assert_array_equal(backend.run(proto, value)[0], [[1, 2]])


def test_what_is_prepared_is_taken_again(model):
    rep = backend.prepare(model("m (float[N] x) => (float[N] y) { y = Neg(x) }").SerializeToString(), logid="mine", unknown=3)
    assert backend.prepare(rep) is rep and rep.session.get_session_options().logid == "mine"
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(backend.prepare(rep.session).run(x, logid="this").y, -x)


def test_devices(model):
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(NotImplementedError):
        backend.prepare(model("m (float[N] x) => (float[N] y) { y = Relu(x) }"), "CUDA")


def test_run_node():
    node = onnx.helper.make_node("Add", ["x", "y"], ["z"])
    (z,) = backend.run_node(node, [np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)])
    np.testing.assert_array_equal(z, np.full((2, 2), 2, np.float32))


def test_refuses_by_name(model):
    proto = model("m (complex64[N] x) => (int64[P, Q] y) { y = NonZero(x) }")
    with pytest.raises(NotImplementedError):
        backend.prepare(proto, "CPU")
