"""What onnxruntime's callers expect beside runs: values, options, initializers, and the page that compares."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import sardonyx as sdx
from sardonyx import _run_options

ROOT = Path(__file__).resolve().parents[2]
MODEL = """<ir_version: 10, opset_import: ["" : 21]> m (float[n, 4] x) => (float[n, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] b = {1, 1, 1}> {
    p = MatMul (x, w)
    y = Add (p, b)
}"""
X = np.arange(8, dtype=np.float32).reshape(2, 4)
W = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


def model(text=MODEL):
    return parser.parse_model(text).SerializeToString()


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch):
    monkeypatch.setattr(_run_options, "_told", set())


def test_page_is_current():
    subprocess.run([sys.executable, ROOT / "utils" / "python_api.py", "--check"], check=True)


# Values.


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool", "complex64", ml_dtypes.bfloat16])
def test_dlpack_there_and_back(dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    value = sdx.OrtValue.ortvalue_from_numpy(array)
    assert value.__dlpack_device__() == (1, 0)
    again = sdx.OrtValue.from_dlpack(value.__dlpack__())  # a bare capsule
    assert again.numpy().dtype == array.dtype and again.data_ptr() == array.ctypes.data
    np.testing.assert_array_equal(again.numpy(), array)
    if dtype != ml_dtypes.bfloat16:
        assert np.from_dlpack(value).ctypes.data == array.ctypes.data
    # Each understands the other's; onnxruntime's knows neither DLPack's booleans nor complex numbers.
    if dtype not in ("bool", "complex64"):
        theirs = onnxruntime.OrtValue.from_dlpack(value.__dlpack__())
        assert theirs.data_ptr() == array.ctypes.data
        assert sdx.OrtValue.from_dlpack(theirs).data_ptr() == array.ctypes.data


def test_dlpack_outlives_its_source():
    array = np.arange(1000.0)
    value = sdx.OrtValue.from_dlpack(sdx.OrtValue.from_dlpack(array))
    del array
    np.testing.assert_array_equal(value.numpy(), np.arange(1000.0))


def test_dlpack_of_what_has_none():
    with pytest.raises(TypeError):
        sdx.OrtValue.from_dlpack(np.arange(12).reshape(3, 4)[:, ::2])
    with pytest.raises(TypeError):
        sdx.OrtValue.from_dlpack("text")


def test_update_inplace():
    array = np.zeros((2, 4), np.float32)
    value = sdx.OrtValue.ortvalue_from_numpy(array)
    place = value.data_ptr()
    value.update_inplace(X)
    np.testing.assert_array_equal(array, X)
    value.update_inplace(sdx.OrtValue.ortvalue_from_numpy(np.asfortranarray(2 * X)))
    np.testing.assert_array_equal(array, 2 * X)
    assert value.data_ptr() == place == array.ctypes.data
    for wrong in (X[:1], X.astype(np.float64)):
        with pytest.raises(sdx.InvalidArgument, match="cannot be updated"):
            value.update_inplace(wrong)
    with pytest.raises(TypeError):
        value.update_inplace([1, 2])


def test_values_of_other_kinds():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = sdx.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.element_type() == 16 and value.data_type() == "tensor(bfloat16)"
    np.testing.assert_array_equal(value.numpy().astype(np.float32), [1, 2])
    texts = sdx.OrtValue.ortvalue_from_numpy(np.array(["a", "b"]))
    assert texts.data_type() == "tensor(string)" and texts.element_type() == TensorProto.STRING
    sequence = """<ir_version: 10, opset_import: ["" : 21]> m (float[n] a, float[n] b) => (seq(float[n]) s) { s = SequenceConstruct (a, b) }"""
    (value,) = sdx.InferenceSession(model(sequence)).run_with_ort_values(
        None, {name: sdx.OrtValue.ortvalue_from_numpy(X[0]) for name in "ab"}
    )
    assert value.is_tensor_sequence() and not value.is_tensor() and value.data_type() == "seq(tensor(float))"
    with pytest.raises(sdx.InvalidArgument, match="no numpy array"):
        value.numpy()
    with pytest.raises(sdx.InvalidArgument, match="device 'cuda:0'"):
        sdx.OrtValue.ortvalue_from_numpy(X, "cuda")


def test_sparse_tensors_as_onnxruntime_has_them():
    values, flat = np.array([1, 2, 3], np.float32), np.array([0, 5, 8])
    for package in (sdx, onnxruntime):
        device = package.OrtDevice.make("cpu", 0)
        coo = package.SparseTensor.sparse_coo_from_numpy([3, 3], values, flat, device)
        assert list(coo.dense_shape()) == [3, 3] and coo.data_type() == "sparse_tensor(float)"
        np.testing.assert_array_equal(coo.values(), values)
        np.testing.assert_array_equal(coo.as_coo_view().indices(), flat)
        assert int(coo.format()) == 1 if package is sdx else "COO" in str(coo.format())
        inner, outer = np.array([0, 2, 1]), np.array([0, 1, 2, 3])
        csr = package.SparseTensor.sparse_csr_from_numpy([3, 3], values, inner, outer, device)
        np.testing.assert_array_equal(csr.as_csrc_view().inner(), inner)
        np.testing.assert_array_equal(csr.as_csrc_view().outer(), outer)
        value = package.OrtValue.ort_value_from_sparse_tensor(csr)
        assert value.is_sparse_tensor() and not value.is_tensor()
    sparse = sdx.OrtValue.ort_value_from_sparse_tensor(sdx.SparseTensor.sparse_coo_from_numpy([3, 3], values, flat))
    with pytest.raises(sdx.InvalidArgument, match="sparse"):
        sdx.InferenceSession(model()).run_with_ort_values(None, {"x": sparse})
    for bad in (np.array([0, 5, 9]), np.array([-1, 0, 1]), np.array([0, 1]), np.array([0.0, 1, 2])):
        with pytest.raises(sdx.InvalidArgument):
            sdx.SparseTensor.sparse_coo_from_numpy([3, 3], values, bad)


def test_binding_writes_in_place():
    session = sdx.InferenceSession(model())
    source = sdx.OrtValue.ortvalue_from_numpy(X.copy())
    target = sdx.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    place = target.data_ptr()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", source)
    binding.bind_ortvalue_output("y", target)
    for scale in (1, 2):
        source.update_inplace(scale * X)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(target.numpy(), scale * X @ W + 1)
    assert target.data_ptr() == place == binding.get_outputs()[0].data_ptr()


# Options.


def test_unknown_options_are_none():
    for options in (sdx.SessionOptions(), sdx.RunOptions()):
        with pytest.raises(AttributeError, match="intra_op_threads"):
            options.intra_op_threads = 4


def test_options_without_effect_say_so_once():
    options = sdx.SessionOptions()
    options.enable_mem_pattern = False
    with pytest.warns(UserWarning, match="SessionOptions.enable_mem_pattern has no effect"):
        sdx.InferenceSession(model(), options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdx.InferenceSession(model(), options)
        plain = sdx.SessionOptions()
        plain.intra_op_num_threads, plain.use_per_session_threads = 2, False
        sdx.InferenceSession(model(), plain).run(None, {"x": X}, sdx.RunOptions())
    with pytest.warns(UserWarning, match="only_execute_path_to_fetches has no effect"):
        sdx.RunOptions().only_execute_path_to_fetches = True
    with pytest.warns(UserWarning, match="'session.intra_op.allow_spinning' has no effect"):
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


@pytest.mark.parametrize("from_file", [True, False])
def test_initializers(tmp_path, from_file):
    (tmp_path / "m.onnx").write_bytes(model())
    source = str(tmp_path / "m.onnx") if from_file else model()
    rng = np.random.default_rng(0)
    for _ in range(2):  # another value is another model, also in the cache
        w = rng.standard_normal((4, 3)).astype(np.float32)
        options, theirs = sdx.SessionOptions(), onnxruntime.SessionOptions()
        options.cache_dir = tmp_path / "cache"
        options.add_initializer("w", sdx.OrtValue.ortvalue_from_numpy(w))
        value = onnxruntime.OrtValue.ortvalue_from_numpy(w)
        theirs.add_initializer("w", value)
        expected = onnxruntime.InferenceSession(source, theirs).run(None, {"x": X})[0]
        for cached in (False, True):
            session = sdx.InferenceSession(source, options)
            assert session.from_cache == cached
            np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-5)


def test_external_initializers(tmp_path):
    """The files that hold them need not be there."""
    proto = parser.parse_model(MODEL)
    big = helper.make_model_gen_version(proto.graph, opset_imports=proto.opset_import)
    del big.graph.initializer[:]
    big.graph.initializer.extend(numpy_helper.from_array(a, n) for a, n in ((W, "w"), (np.ones(3, np.float32), "b")))
    onnx.save(big, tmp_path / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    os.remove(tmp_path / "weights")
    with pytest.raises(sdx.InvalidGraph, match="weights"):
        sdx.InferenceSession(str(tmp_path / "m.onnx"))
    options = sdx.SessionOptions()
    values = [sdx.OrtValue.ortvalue_from_numpy(a) for a in (W, np.ones(3, np.float32))]
    options.add_external_initializers(["w", "b"], values)
    (y,) = sdx.InferenceSession(str(tmp_path / "m.onnx"), options).run(None, {"x": X})
    np.testing.assert_allclose(y, X @ W + 1)


@pytest.mark.parametrize(
    "name, value, sentence",
    [
        ("v", W, "no initializer of that name"),
        ("w", W.T, "another shape"),
        ("w", W.astype(np.float64), "has the type 11"),
    ],
)
def test_wrong_initializers(name, value, sentence):
    options = sdx.SessionOptions()
    options.add_initializer(name, sdx.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)))
    with pytest.raises((sdx.InvalidGraph, sdx.InvalidArgument), match=sentence):
        sdx.InferenceSession(model(), options)


def test_dimensions_by_denotation():
    proto = parser.parse_model(MODEL)
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = sdx.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 7)  # there is none
    session = sdx.InferenceSession(proto, options)
    assert session.get_inputs()[0].shape == [2, 4] and session.get_outputs()[0].shape == [2, 3]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W + 1)
    with pytest.raises(sdx.InvalidArgument):
        session.run(None, {"x": X[:1]})
    wrong = sdx.SessionOptions()
    wrong.add_free_dimension_override_by_denotation("DATA_BATCH", -3)
    with pytest.raises(sdx.InvalidArgument, match="-3"):
        sdx.InferenceSession(proto, wrong)


def test_optimized_model(tmp_path):
    text = """<ir_version: 10, opset_import: ["" : 21]> m (float[n, 2, 5, 5] x) => (float[n, 3, 3, 3] y)
    <float[3, 2, 3, 3] w = {%s}, float[3] s = {1, 2, 3}, float[3] b = {0, 1, 0}, float[3] mean = {1, 1, 2}, float[3] var = {1, 4, 9}> {
        a = Identity (x)
        c = Conv (a, w)
        y = BatchNormalization <epsilon = 0.001> (c, s, b, mean, var)
    }""" % ", ".join(str(k % 7 - 3) for k in range(54))
    x = np.random.default_rng(0).standard_normal((2, 2, 5, 5)).astype(np.float32)
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    expected = sdx.InferenceSession(model(text), options).run(None, {"x": x})[0]
    written = onnx.load(tmp_path / "optimized.onnx")
    onnx.checker.check_model(written, full_check=True)
    operators = {node.op_type for node in written.graph.node}
    assert "Conv" in operators and not operators & {"Identity", "BatchNormalization"}
    for session in (onnxruntime.InferenceSession(written.SerializeToString()), sdx.InferenceSession(written)):
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-4)
    options.optimized_model_filepath = str(tmp_path / "absent" / "optimized.onnx")
    with pytest.raises(sdx.Fail, match="absent"):
        sdx.InferenceSession(model(text), options)
