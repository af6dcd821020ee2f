"""OrtValue, SparseTensor and IOBinding, side by side with onnxruntime's."""

import ml_dtypes
import numpy as np
import pytest

import sardonyx as sdx

ort = pytest.importorskip("onnxruntime")
ENGINES = pytest.mark.parametrize("engine", [ort, sdx], ids=["onnxruntime", "sardonyx"])
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@ENGINES
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_numpy(engine, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    value = engine.OrtValue.ortvalue_from_numpy(array)
    name = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    assert value.shape() == [2, 3] and value.data_type() == f"tensor({name})" and value.device_name() == "cpu"
    assert value.is_tensor() and value.has_value() and not value.is_sparse_tensor() and not value.is_tensor_sequence()
    assert value.data_ptr() == array.ctypes.data and np.shares_memory(value.numpy(), array)
    assert value.tensor_size_in_bytes() == array.nbytes
    assert value.element_type() == ort.OrtValue.ortvalue_from_numpy(array).element_type()
    np.testing.assert_array_equal(np.asarray(value), array)
    assert not np.shares_memory(np.array(value, copy=True), array)
    value.update_inplace(array[::-1].copy())
    np.testing.assert_array_equal(value.numpy(), array)
    other = engine.OrtValue.ortvalue_from_shape_and_type([2, 3], array.dtype.type)
    other.update_inplace(value)
    np.testing.assert_array_equal(other.numpy(), array)
    assert not np.shares_memory(other.numpy(), array)


@ENGINES
def test_layouts(engine):
    value = engine.OrtValue.ortvalue_from_numpy(X.T)
    np.testing.assert_array_equal(value.numpy(), X.T)
    assert value.numpy().flags.c_contiguous
    for array in (np.array(3, np.float32), np.zeros((0, 3), np.float32), np.zeros((1, 1), np.float32)):
        value = engine.OrtValue.ortvalue_from_numpy(array)
        assert value.shape() == list(array.shape)
        np.testing.assert_array_equal(value.numpy(), array)


@ENGINES
def test_wrong_arrays(engine):
    make = engine.OrtValue.ortvalue_from_numpy
    for wrong in ([1, 2], np.array(["a"])):
        with pytest.raises(RuntimeError, match="non-string numpy arrays"):
            make(wrong)
    with pytest.raises(RuntimeError):
        make(X, "cuda", 0)
    with pytest.raises(Exception, match="Unsupported device type"):
        make(X, "toaster", 0)
    for shape, kind in (([2, -1], np.float32), ([2], "nothing"), ([2], 99)):
        with pytest.raises(RuntimeError):
            engine.OrtValue.ortvalue_from_shape_and_type(shape, kind)
    with pytest.raises(RuntimeError, match="does not match the size"):
        make(X.copy()).update_inplace(np.zeros(5, np.float32))
    with pytest.raises(TypeError, match="data must be"):
        make(X.copy()).update_inplace([1, 2])
    with pytest.raises(RuntimeError, match="not contain SparseTensor"):
        make(X).as_sparse_tensor()
    with pytest.raises(RuntimeError):
        engine.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(3, np.uint8), 16)


def test_update_refuses_another_type():
    value = sdx.OrtValue.ortvalue_from_numpy(X.copy())
    with pytest.raises(sdx.Fail, match="elements of float32, got int32"):
        value.update_inplace(X.astype(np.int32))
    fixed = X.copy()
    fixed.flags.writeable = False
    with pytest.raises(sdx.Fail, match="must not be written"):
        sdx.OrtValue.ortvalue_from_numpy(fixed).update_inplace(X)


@ENGINES
def test_bfloat16_by_its_number(engine):
    bits = np.array([0x3F80, 0x4000, 0xC040], np.uint16)
    value = engine.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert value.data_type() == "tensor(bfloat16)" and value.element_type() == 16 and value.data_ptr() == bits.ctypes.data
    assert engine.OrtValue.ortvalue_from_shape_and_type([2], 16).tensor_size_in_bytes() == 4


def test_bfloat16_as_ml_dtypes():
    value = sdx.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80, 0xC040], np.uint16), 16)
    np.testing.assert_array_equal(value.numpy(), np.array([1, -3], ml_dtypes.bfloat16))
    small = sdx.OrtValue.ortvalue_from_shape_and_type([2], 17)
    assert small.data_type() == "tensor(float8e4m3fn)" and small.numpy().dtype == ml_dtypes.float8_e4m3fn
    with pytest.raises(BufferError, match="float8e4m3fn"):
        small.__dlpack__()


# ===- DLPack -------------------------------------------------------------===


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 3), (), (1,), (0, 3)])
def test_dlpack_to_and_from_onnxruntime(dtype, shape):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.ones(shape, dtype)
    # An empty tensor lies nowhere.
    same = lambda value: value.data_ptr() == array.ctypes.data or not array.size
    ours = sdx.OrtValue.ortvalue_from_numpy(array)
    assert ours.__dlpack_device__() == (1, 0) == ort.OrtValue.ortvalue_from_numpy(X).__dlpack_device__()
    if dtype == bool:
        with pytest.raises(RuntimeError):  # of onnxruntime: DLPack's own type for them
            ort.OrtValue.from_dlpack(ours)
        theirs = ort.OrtValue.ortvalue_from_numpy(array)
    else:
        theirs = ort.OrtValue.from_dlpack(ours)
    assert same(theirs) and theirs.data_type() == ours.data_type()
    back = sdx.OrtValue.from_dlpack(theirs)
    assert same(back) and back.data_type() == ours.data_type() and back.shape() == list(shape)
    np.testing.assert_array_equal(back.numpy(), array)
    again = sdx.OrtValue.from_dlpack(ours.__dlpack__())
    assert same(again) and again.data_type() == ours.data_type()


def test_dlpack_of_numpy():
    value = sdx.OrtValue.ortvalue_from_numpy(X)
    assert np.shares_memory(np.from_dlpack(value), X)
    assert sdx.OrtValue.from_dlpack(np.array([True, False])).data_type() == "tensor(bool)"
    assert sdx.OrtValue.from_dlpack(value).data_ptr() == X.ctypes.data
    fixed = X.copy()
    fixed.flags.writeable = False
    with pytest.raises(BufferError, match="must not be written"):
        sdx.OrtValue.ortvalue_from_numpy(fixed).__dlpack__()
    try:
        assert not sdx.OrtValue.from_dlpack(fixed).numpy().flags.writeable
    except BufferError:
        pass  # of older numpy, which does not export such


def test_dlpack_keeps_memory_alive():
    value = sdx.OrtValue.from_dlpack(sdx.OrtValue.ortvalue_from_numpy(np.full(100000, 7, ml_dtypes.bfloat16)).__dlpack__())
    view = np.from_dlpack(sdx.OrtValue.ortvalue_from_numpy(np.full(100000, 7, np.float32)))
    other = [np.zeros(100000, np.float32) for _ in range(10)]
    assert (value.numpy() == 7).all() and (view == 7).all() and len(other) == 10


@ENGINES
def test_wrong_dlpack(engine):
    with pytest.raises(TypeError, match="valid DLPack capsule"):
        engine.OrtValue.from_dlpack(3)
    with pytest.raises(RuntimeError, match="contiguous"):
        engine.OrtValue.from_dlpack(X.T)
    capsule = X.copy().__dlpack__()
    engine.OrtValue.from_dlpack(capsule)
    with pytest.raises((TypeError, RuntimeError)):
        engine.OrtValue.from_dlpack(capsule)  # a capsule is used once


def test_runs_take_dlpack_and_values(model):
    for kind, dtype in (("float", np.float32), ("bool", np.bool_), ("bfloat16", ml_dtypes.bfloat16)):
        session = sdx.InferenceSession(model(f"m ({kind}[N, 3] x) => ({kind}[N, 3] y) {{ y = Identity(x) }}"))
        array = (X > 2).astype(dtype)
        value = sdx.OrtValue.ortvalue_from_numpy(array)
        if kind == "bfloat16":
            theirs = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), 16)
        else:
            theirs = ort.OrtValue.ortvalue_from_numpy(array)
        for given in (value, theirs, sdx.OrtValue.from_dlpack(theirs)):
            (y,) = session.run(None, {"x": given})
            assert y.dtype == dtype
            np.testing.assert_array_equal(y, array)


def test_values_of_other_kinds(model):
    texts = "m (string[N] x) => (string[N] y) { y = Identity(x) }"
    (value,) = sdx.InferenceSession(model(texts)).run_with_ort_values(None, {"x": sdx.OrtValue(np.array(["a", "b"], object))})
    assert value.data_type() == "tensor(string)" and value.element_type() == 8 and value.numpy().tolist() == ["a", "b"]
    split = "m (float[N] x) => (seq(float[K]) y) { y = SplitToSequence(x) }"
    session = sdx.InferenceSession(model(split))
    (value,) = session.run_with_ort_values(None, {"x": sdx.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))})
    assert value.is_tensor_sequence() and not value.is_tensor() and value.data_type() == "seq(tensor(float))"
    with pytest.raises(RuntimeError, match="Only OrtValues that are Tensors"):
        value.numpy()


def test_copy_tensors():
    sources = [sdx.OrtValue.ortvalue_from_numpy(X), sdx.OrtValue.ortvalue_from_numpy(np.arange(3))]
    targets = [sdx.OrtValue.ortvalue_from_shape_and_type(v.shape(), v.numpy().dtype) for v in sources]
    sdx.copy_tensors(sources, targets)
    for source, target in zip(sources, targets):
        np.testing.assert_array_equal(source.numpy(), target.numpy())
    with pytest.raises(sdx.Fail, match="as many tensors"):
        sdx.copy_tensors(sources, targets[:1])


# ===- Sparse tensors -----------------------------------------------------===


def coo(engine, shape, values, indices):
    device = engine.OrtDevice.make("cpu", 0)
    return engine.SparseTensor.sparse_coo_from_numpy(shape, values, indices, device)


def csr(engine, shape, values, inner, outer):
    device = engine.OrtDevice.make("cpu", 0)
    return engine.SparseTensor.sparse_csr_from_numpy(shape, values, inner, outer, device)


def ints(*values):
    return np.array(values, np.int64)


@ENGINES
def test_sparse_tensors(engine):
    values = np.array([1, 2], np.float32)
    for indices in (ints(0, 4), ints([0, 1], [2, 2])):
        tensor = coo(engine, ints(3, 3), values, indices)
        assert int(tensor.format()) == 1 and tensor.data_type() == "sparse_tensor(float)" and tensor.device_name() == "cpu"
        assert list(tensor.dense_shape()) == [3, 3] and np.shares_memory(tensor.values(), values)
        np.testing.assert_array_equal(tensor.as_coo_view().indices(), indices)
        for wrong in (tensor.as_csrc_view, tensor.as_blocksparse_view, lambda: tensor.to_cuda(engine.OrtDevice.make("cpu", 0))):
            with pytest.raises(RuntimeError):
                wrong()
        value = engine.OrtValue.ort_value_from_sparse_tensor(tensor)
        assert value.is_sparse_tensor() and not value.is_tensor() and value.has_value() and value.shape() == [3, 3]
        assert value.element_type() == 1 and value.data_type() == "sparse_tensor(float)"
        np.testing.assert_array_equal(value.as_sparse_tensor().values(), values)
        for wrong in (value.numpy, value.data_ptr):
            with pytest.raises(RuntimeError, match="Only OrtValues|IsTensor"):
                wrong()
    tensor = csr(engine, ints(3, 3), values, ints(0, 1), ints(0, 1, 2, 2))
    assert int(tensor.format()) == 2
    assert tensor.as_csrc_view().inner().tolist() == [0, 1] and tensor.as_csrc_view().outer().tolist() == [0, 1, 2, 2]
    with pytest.raises(RuntimeError):
        tensor.as_coo_view()
    assert coo(engine, [3, 3], np.array(["a", "b"]), ints(0, 1)).data_type() == "sparse_tensor(string)"


@ENGINES
def test_wrong_sparse_tensors(engine):
    values = np.array([1, 2], np.float32)
    for wrong in (
        lambda: coo(engine, ints(3, 3), values, ints(0)),
        lambda: coo(engine, ints(3, 3), values, ints(0, 1, 2)),
        lambda: coo(engine, ints(3, 3), values[None], ints(0, 1)),
        lambda: csr(engine, ints(3), values, ints(0, 1), ints(0, 1, 2, 2)),
        lambda: csr(engine, ints(3, 3), values, ints(0), ints(0, 1, 2, 2)),
        lambda: csr(engine, ints(3, 3), values, ints(0, 1), ints(0, 1, 2)),
    ):
        with pytest.raises(RuntimeError):
            wrong()


def test_indices_out_of_bounds_are_refused():
    values = np.array([1, 2], np.float32)
    for wrong in (
        lambda: coo(sdx, ints(3, 3), values, ints(0, 9)),
        lambda: coo(sdx, ints(3, 3), values, ints(-1, 0)),
        lambda: coo(sdx, ints(3, 3), values, ints([0, 1], [2, 5])),
        lambda: csr(sdx, ints(3, 3), values, ints(0, 7), ints(0, 1, 2, 2)),
    ):
        with pytest.raises(sdx.Fail, match="outside of the shape"):
            wrong()
    with pytest.raises(sdx.Fail, match="ascend"):
        csr(sdx, ints(3, 3), values, ints(0, 1), ints(0, 2, 1, 2))


@ENGINES
def test_no_dense_input_takes_a_sparse_tensor(engine, model):
    session = engine.InferenceSession(model("m (float[3, 3] x) => (float[3, 3] y) { y = Neg(x) }").SerializeToString())
    tensor = coo(engine, ints(3, 3), np.ones(2, np.float32), ints(0, 1))
    for given in (tensor, engine.OrtValue.ort_value_from_sparse_tensor(tensor)):
        with pytest.raises(Exception, match="sparse|Sparse"):
            session.run(None, {"x": given})


# ===- IOBinding ----------------------------------------------------------===

TWO = "m (float[N, 3] x) => (float[N, 3] y, float[N, 3] z) { y = Neg(x) z = Add(x, x) }"


@ENGINES
def test_bound_outputs_are_written_in_place(engine, model):
    session = engine.InferenceSession(model(TWO).SerializeToString())
    binding = session.io_binding()
    z, y = (engine.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32) for _ in range(2))
    binding.bind_ortvalue_input("x", engine.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("z", z)
    binding.bind_output("y", "cpu", 0, np.float32, [2, 3], y.data_ptr())
    for _ in range(2):
        session.run_with_iobinding(binding)
        found = binding.get_outputs()
        assert [value.data_ptr() for value in found] == [z.data_ptr(), y.data_ptr()]
        np.testing.assert_array_equal(z.numpy(), X * 2)
        np.testing.assert_array_equal(y.numpy(), -X)
        y.update_inplace(X)
    assert len(binding.get_outputs_as_ortvaluevector()) == 2
    assert not np.shares_memory(binding.copy_outputs_to_cpu()[0], z.numpy())
    binding.clear_binding_outputs()
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], -X)
    assert len(binding.get_outputs()) == 1


@ENGINES
def test_an_output_becomes_the_next_input(engine, model):
    session = engine.InferenceSession(model("m (float[N] x) => (float[N] y) { y = Add(x, x) }").SerializeToString())
    binding = session.io_binding()
    values = [engine.OrtValue.ortvalue_from_numpy(np.ones(4, np.float32)) for _ in range(2)]
    for i in range(5):
        binding.bind_ortvalue_input("x", values[i % 2])
        binding.bind_ortvalue_output("y", values[1 - i % 2])
        session.run_with_iobinding(binding)
    np.testing.assert_array_equal(values[1].numpy(), np.full(4, 32))


@ENGINES
def test_wrong_bindings(engine, model):
    session = engine.InferenceSession(model(TWO).SerializeToString())
    binding = session.io_binding()
    with pytest.raises(Exception, match="nope|q"):
        binding.bind_cpu_input("q", X)
    with pytest.raises(ValueError):
        binding.bind_output("y", "cpu", 0, buffer_ptr=X.ctypes.data)
    other = engine.InferenceSession(model(TWO).SerializeToString())
    with pytest.raises(ValueError, match="session that created it"):
        other.run_with_iobinding(binding)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", engine.OrtValue.ortvalue_from_shape_and_type([5, 3], np.float32))
    with pytest.raises(Exception, match="shape"):
        session.run_with_iobinding(binding)
