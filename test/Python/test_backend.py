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
