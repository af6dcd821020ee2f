"""sardonyx.InferenceSession, by onnxruntime's names."""

import inspect
import json
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import onnx
import pytest

import sardonyx as sdx

ADD = "m (float[N, 3] x, float[N, 3] b) => (float[N, 3] sum, float[N, 3] twice) { sum = Add(x, b) twice = Add(x, x) }"


@pytest.fixture
def session(model):
    return sdx.InferenceSession(model(ADD).SerializeToString())


def feeds(n=2):
    return {"x": np.arange(3 * n, dtype=np.float32).reshape(n, 3), "b": np.ones((n, 3), np.float32)}


def test_runs(session):
    total, twice = session.run(None, feeds())
    np.testing.assert_array_equal(total, feeds()["x"] + 1)
    np.testing.assert_array_equal(twice, feeds()["x"] * 2)
    assert total.dtype == np.float32 and total.flags.writeable and total.flags.c_contiguous
    assert [a.shape for a in session.run(None, feeds(0))] == [(0, 3), (0, 3)]


def test_gives_the_outputs_asked_for(session):
    (twice,) = session.run(["twice"], feeds())
    np.testing.assert_array_equal(twice, feeds()["x"] * 2)
    assert len(session.run(["twice", "sum", "twice"], feeds())) == 3
    with pytest.raises(sdx.InvalidArgument, match="no output 'z'"):
        session.run(["z"], feeds())


def test_describes_itself(session):
    x = session.get_inputs()[0]
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["N", 3])
    assert [y.name for y in session.get_outputs()] == ["sum", "twice"]
    assert session.get_providers() == ["CPUExecutionProvider"] == sdx.get_available_providers()
    assert session.get_modelmeta().custom_metadata_map == {}


def test_metadata(model):
    proto = model(ADD)
    proto.producer_name, proto.model_version = "the test", 7
    onnx.helper.set_model_props(proto, {"author": "somebody"})
    meta = sdx.InferenceSession(proto).get_modelmeta()
    assert meta.producer_name == "the test"
    assert meta.version == 7
    assert meta.graph_name == "m"
    assert meta.custom_metadata_map == {"author": "somebody"}


def test_takes_paths_bytes_and_protos(model, tmp_path):
    proto = model(ADD)
    onnx.save(proto, tmp_path / "m.onnx")
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), proto, proto.SerializeToString()):
        assert sdx.InferenceSession(source).run(["sum"], feeds())[0][1, 2] == 6
    with pytest.raises(TypeError, match="a model is a path"):
        sdx.InferenceSession(3)


def test_external_data(model, tmp_path):
    weights = np.arange(3000, dtype=np.float32).reshape(3, 1000)
    proto = model("m (float[N, 3] x) => (float[N, 1000] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.ones((2, 3), np.float32)
    for cached in (False, True):
        session = sdx.InferenceSession(tmp_path / "m.onnx")
        assert session.from_cache == cached
        np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights)
    # Other weights in the same place: the cached model must not be used.
    (weights * 2).tofile(tmp_path / "m.data")
    session = sdx.InferenceSession(tmp_path / "m.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights * 2)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int4"])
def test_small_external_data(model, tmp_path, dtype):
    """Few bytes, or ones that are unpacked, are copied; the cached model still hangs on their file."""
    kind = {"float32": "float"}.get(dtype, dtype)
    proto = model(f"m (float[4] x) => (float[4] y) {{ c = CastLike (w, x) y = Mul(x, c) }}", 23)
    code = onnx.TensorProto.DataType.Value(kind.upper())
    proto.graph.initializer.append(onnx.helper.make_tensor("w", code, [4], [1, 2, 3, 4]))
    raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(proto.graph.initializer[0]), "w").raw_data
    proto.graph.initializer[0].ClearField("int32_data")
    proto.graph.initializer[0].ClearField("float_data")
    proto.graph.initializer[0].raw_data = raw
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.ones(4, np.float32)
    for cached in (False, True):
        session = sdx.InferenceSession(tmp_path / "m.onnx")
        assert session.from_cache == cached
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], [1, 2, 3, 4])
    (tmp_path / "m.data").write_bytes(bytes(len(raw)))
    np.testing.assert_array_equal(sdx.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})[0], np.zeros(4))


def test_wrong_inputs(session):
    good = feeds()
    with pytest.raises(sdx.InvalidArgument, match="Required inputs"):
        session.run(None, {"x": good["x"]})
    with pytest.raises(sdx.InvalidArgument, match="no input 'c'"):
        session.run(None, good | {"c": good["x"]})
    with pytest.raises(sdx.InvalidArgument, match="input 'x' has the element type float, got double"):
        session.run(None, good | {"x": good["x"].astype(np.float64)})
    with pytest.raises(sdx.InvalidArgument, match=r"dimension 1 must be 3, got 4"):
        session.run(None, good | {"x": np.zeros((2, 4), np.float32)})
    said = "cannot be broadcast .dimension 'N' has different sizes: 2 in dimension 0 of input 'x' and 5 in dimension 0 of input 'b'"
    with pytest.raises(sdx.Fail, match=said):
        session.run(None, good | {"b": np.zeros((5, 3), np.float32)})
    with pytest.raises(ValueError, match="no tensor|element type"):
        session.run(None, good | {"x": "text"})
    assert len(session.run(None, good)) == 2  # and still runs


def test_arrays_of_any_layout(session):
    base = np.arange(24, dtype=np.float32).reshape(6, 4)
    for x in (base[::3, :3], base.T[:4:2, 1:4], np.asfortranarray(base[:2, :3]), base[1:3, 1:]):
        np.testing.assert_array_equal(session.run(["twice"], {"x": x, "b": feeds()["b"]})[0], x * 2)
    big_endian = feeds()["x"].astype(">f4")
    np.testing.assert_array_equal(session.run(["twice"], feeds() | {"x": big_endian})[0], feeds()["x"] * 2)
    lists = {"x": [[1, 2, 3]], "b": [[0.5, 0.5, 0.5]]}
    np.testing.assert_array_equal(session.run(["sum"], lists)[0], [[1.5, 2.5, 3.5]])


class Exporter:
    """An array of some other library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack(session):
    x = feeds()["x"]
    (twice,) = session.run(["twice"], {"x": Exporter(x), "b": feeds()["b"]})
    np.testing.assert_array_equal(twice, x * 2)


def test_writes_to_the_callers_array(session):
    out = np.zeros((2, 3), np.float32)
    results = session.run(None, feeds(), out={"twice": out})
    assert results[1] is out
    np.testing.assert_array_equal(out, feeds()["x"] * 2)
    for wrong in (np.zeros((3, 3), np.float32), np.zeros((3, 3), np.float32).T):
        with pytest.raises(sdx.InvalidArgument, match=r"memory has shape \[3, 3\], the model gives \[2, 3\]"):
            session.run(None, feeds(), out={"twice": wrong})
    with pytest.raises(sdx.InvalidArgument, match="element type"):
        session.run(None, feeds(), out={"twice": np.zeros((2, 3), np.int32)})


def test_writes_to_arrays_of_any_layout(session):
    memory = np.zeros((4, 3), np.float32)
    for out in (np.zeros((3, 2), np.float32).T, memory[::2], np.zeros((2, 3), ">f4")):
        results = session.run(None, feeds(), out={"twice": out})
        assert results[1] is out
        np.testing.assert_array_equal(out, feeds()["x"] * 2)
    np.testing.assert_array_equal(memory[1::2], 0)
    with pytest.raises(sdx.InvalidArgument, match="float32, got an array of int32"):
        session.run(None, feeds(), out={"twice": np.zeros((3, 2), np.int32).T})
    with pytest.raises(sdx.InvalidArgument, match="overlaps"):
        session.run(None, feeds(), out={"twice": memory[::2], "sum": memory[:2]})
    session.run(None, feeds(), out={"twice": memory[::2], "sum": memory[1::2]})
    np.testing.assert_array_equal(memory[::2], feeds()["x"] * 2)
    np.testing.assert_array_equal(memory[1::2], feeds()["x"] + 1)


@pytest.mark.parametrize("shift", [0, 1, 5, 31])
def test_out_may_overlap_an_input(model, shift):
    graph = "m (float[N] x) => (float[N] y) <int64 a = {0}> { y = CumSum(x, a) }"
    session = sdx.InferenceSession(model(graph))
    memory = np.arange(64, dtype=np.float32)
    want = np.cumsum(memory[shift : shift + 32])
    session.run(None, {"x": memory[shift : shift + 32]}, out={"y": memory[:32]})
    np.testing.assert_array_equal(memory[:32], want)
    x = np.arange(64, dtype=np.float32)
    session.run(None, {"x": x[::2]}, out={"y": x[::-2]})
    np.testing.assert_array_equal(x[::-2], np.cumsum(np.arange(0, 64, 2)))
    binding = session.io_binding()
    array = np.arange(8, dtype=np.float32)
    binding.bind_cpu_input("x", array)
    binding.bind_ortvalue_output("y", sdx.OrtValue.ortvalue_from_numpy(array))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(array, np.cumsum(np.arange(8)))


def test_binding_memory_of_the_caller(model):
    session = sdx.InferenceSession(model("m (float[N] x) => (float[N] y) { y = Neg(x) }"))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, onnx.TensorProto.FLOAT, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, -x)
    with pytest.raises(sdx.InvalidArgument, match="cuda"):
        binding.bind_output("y", "cuda", 0, np.float32, y.shape, y.ctypes.data)
    with pytest.raises(sdx.InvalidArgument, match="shape"):
        binding.bind_output("y", "cpu", 0, np.float32, buffer_ptr=y.ctypes.data)


def test_memory_limit(model):
    graph = "m (float[1] x, int64[1] s) => (float[1] y) { t = Expand(x, s) u = Softmax(t) y = ReduceMax <axes = [0]> (u) }"
    options = sdx.SessionOptions()
    options.memory_limit = 10_000_000
    session = sdx.InferenceSession(model(graph), options)
    one = np.ones(1, np.float32)
    (y,) = session.run(None, {"x": one, "s": np.array([1000])})
    assert y == np.float32(1 / 1000)
    with pytest.raises(sdx.Fail, match=r"needs \d+ bytes .* of the memory limit of 10000000 bytes \d+ are left"):
        session.run(None, {"x": one, "s": np.array([10_000_000])})
    (y,) = session.run(None, {"x": one, "s": np.array([500_000])})
    assert y == np.float32(1 / 500_000) and 0 < session.bytes_held <= 10_000_000
    session.release_memory()
    assert session.bytes_held < 1_000_000
    for wrong in (0, -1, "much", True, float("nan")):
        options.memory_limit = wrong
        with pytest.raises(sdx.InvalidArgument, match="memory_limit must be a positive number"):
            sdx.InferenceSession(model(graph), options)
    # By itself it is what the machine has.
    session = sdx.InferenceSession(model(graph))
    with pytest.raises(sdx.Fail, match="out of memory"):
        session.run(None, {"x": one, "s": np.array([2**44])})


def test_results_outlive_the_session(model):
    session = sdx.InferenceSession(model(ADD))
    (total,) = session.run(["sum"], feeds(1000))
    del session
    np.testing.assert_array_equal(total, feeds(1000)["x"] + 1)


def test_scalars(model):
    session = sdx.InferenceSession(model("m (float x) => (float y) { y = Add(x, x) }"))
    for x in (np.float32(3), np.array(3, np.float32), 3.0):
        (y,) = session.run(None, {"x": x})
        assert y.shape == () and y == 6


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float64", "bfloat16"])
def test_element_types(model, dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    names = {"float64": "double"}
    name = names.get(dtype.name, dtype.name)
    session = sdx.InferenceSession(model(f"m ({name}[4] x) => ({name}[4] y) {{ y = Identity(x) }}"))
    x = np.array([0, 1, 1, 0]).astype(dtype)
    (y,) = session.run(None, {"x": x})
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x)
    out = np.zeros(4, dtype)
    session.run(None, {"x": x}, out={"y": out})
    np.testing.assert_array_equal(out, x)


def test_threads_share_a_session(session):
    wrong = []

    def work(value):
        x = np.full((50, 3), value, np.float32)
        for _ in range(100):
            (twice,) = session.run(["twice"], {"x": x, "b": x})
            if not (twice == 2 * value).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(v,)) for v in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_cache(model, tmp_path):
    options = sdx.SessionOptions()
    options.cache_dir = tmp_path / "elsewhere"
    assert not sdx.InferenceSession(model(ADD), options).from_cache
    (file,) = options.cache_dir.iterdir()
    again = sdx.InferenceSession(model(ADD), options)
    assert again.from_cache
    assert again.run(["sum"], feeds())[0][1, 2] == 6
    file.write_bytes(file.read_bytes()[:-10])
    repaired = sdx.InferenceSession(model(ADD), options)
    assert not repaired.from_cache
    assert sdx.InferenceSession(model(ADD), options).from_cache
    options.cache = False
    assert not sdx.InferenceSession(model(ADD), options).from_cache


def test_options(model):
    options = sdx.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = sdx.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.use_env_allocators", "1")
    session = sdx.InferenceSession(model(ADD), options, providers=[("CPUExecutionProvider", {})])
    assert session.get_session_options() is options
    assert len(session.run(None, feeds(), sdx.RunOptions())) == 2
    with pytest.warns(UserWarning, match="runs on the CPU"):
        sdx.InferenceSession(model(ADD), options, providers=["CUDAExecutionProvider"])
    options.intra_op_num_threads = -1
    with pytest.raises(sdx.InvalidArgument):
        sdx.InferenceSession(model(ADD), options)


def test_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        sdx.InferenceSession("no/such/file.onnx")
    for data in (b"", b"garbage", bytes(1000), model(ADD).SerializeToString()[:-5]):
        with pytest.raises(sdx.Fail) as failure:
            sdx.InferenceSession(data)
        assert str(failure.value)
        assert isinstance(failure.value, sdx.InvalidProtobuf) or not data
    (tmp_path / "garbage.onnx").write_bytes(b"garbage")
    with pytest.raises(sdx.InvalidProtobuf, match="garbage.onnx"):
        sdx.InferenceSession(tmp_path / "garbage.onnx")
    unknown = """<ir_version: 10, opset_import: ["": 20, "ai.example": 1]>
        m (float[N] x) => (float[N] y) { y = ai.example.Frobnicate(x) }"""
    with pytest.raises(NotImplementedError, match="Frobnicate of domain 'ai.example'"):
        sdx.InferenceSession(onnx.parser.parse_model(unknown))
    with pytest.raises(sdx.Fail, match="Add"):  # one input too few
        sdx.InferenceSession(model("m (float[2] x) => (float[2] y) { y = Add(x) }"))


def test_ort_values(session):
    values = {name: sdx.OrtValue.ortvalue_from_numpy(array) for name, array in feeds().items()}
    (total,) = session.run_with_ort_values(["sum"], values)
    assert total.data_type() == "tensor(float)" and total.shape() == [2, 3]
    np.testing.assert_array_equal(total.numpy(), feeds()["x"] + 1)


def test_io_binding(session):
    binding = session.io_binding()
    for name, array in feeds().items():
        binding.bind_cpu_input(name, array)
    twice = sdx.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.bind_ortvalue_output("twice", twice)
    binding.bind_output("sum")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(twice.numpy(), feeds()["x"] * 2)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], feeds()["x"] + 1)


def test_fixed_dimensions(model, capfd):
    options = sdx.SessionOptions()
    options.add_free_dimension_override_by_name("N", 4)
    session = sdx.InferenceSession(model(ADD), options)
    assert session.get_inputs()[0].shape == [4, 3] == session.get_outputs()[1].shape
    np.testing.assert_array_equal(session.run(["twice"], feeds(4))[0], feeds(4)["x"] * 2)
    with pytest.raises(sdx.InvalidArgument, match="dimension 0 must be 4, got 2"):
        session.run(None, feeds(2))
    assert not sdx.InferenceSession(model(ADD)).from_cache
    options.add_free_dimension_override_by_name("batch", 4)
    other = sdx.InferenceSession(model(ADD), options)
    np.testing.assert_array_equal(other.run(["twice"], feeds(4))[0], feeds(4)["x"] * 2)
    assert "no open dimension 'batch'" in capfd.readouterr().err
    options.add_free_dimension_override_by_name("N", -4)
    with pytest.raises(sdx.InvalidArgument, match="'N' cannot have the size -4"):
        sdx.InferenceSession(model(ADD), options)


def test_works_in_a_forked_child(model, session):
    session.run(None, feeds(10000))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ok = session.run(["twice"], feeds(10000))[0][0, 1] == 2
            other = sdx.InferenceSession(model(ADD.replace("Add(x, x)", "Mul(x, x)")))
            ok = ok and other.run(["twice"], feeds(10000))[0][1, 1] == 16
            status = 0 if ok else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_compile(model):
    assert "onnx.Add" in sdx.compile(model(ADD), to="import")
    assert "func.func" in sdx.compile(model(ADD))
    assert sdx.phases()[0] == "import" and sdx.phases()[-2:] == ["asm", "ptx"]
    with pytest.raises(sdx.InvalidArgument, match="no phase 'nowhere'"):
        sdx.compile(model(ADD), to="nowhere")


def test_inspect(model):
    report = sdx.inspect(model("m (float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }"))
    assert report["ops"] == {"Relu": 1}
    assert report["unsupported"] == []


def test_profiling(model, tmp_path):
    options = sdx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    session = sdx.InferenceSession(model(ADD).SerializeToString(), options)
    for _ in range(3):
        session.run(None, feeds())
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "p_")) and path.endswith(".json")
    events = json.loads(open(path).read())
    assert sum(event["name"] == "model_run" for event in events) == 3
    assert any("(Add)" in node for event in events for node in event["args"].get("nodes", []))
    assert session.end_profiling() == ""
    session.run(None, feeds())


def test_a_session_that_goes_writes_its_profile(model, tmp_path):
    options = sdx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    sessions = [sdx.InferenceSession(model(ADD).SerializeToString(), options) for _ in range(2)]
    for session in sessions:
        session.run(None, feeds())
    del sessions, session
    traces = list(tmp_path.glob("p_*.json"))
    assert len(traces) == 2 and all("model_run" in trace.read_text() for trace in traces)


def test_no_profile_unless_asked_for(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session.run(None, feeds())
    assert session.end_profiling() == "" and not list(tmp_path.glob("*.json"))


def test_many_sessions_do_not_pile_up(model):
    import resource

    options = sdx.SessionOptions()
    options.intra_op_num_threads = 1
    data = model(ADD).SerializeToString()
    peaks = []
    for _ in range(3):
        for _ in range(30):
            sdx.InferenceSession(data, options).run(None, feeds(100))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[2] - peaks[1] < 4096  # kB


def compiler_pages():
    """Memory in kB, of some 75 MB, of the pages that nothing has written to of what only a compiler needs."""
    total, counts = 0, False
    with open("/proc/self/smaps") as file:
        for line in file:
            first, *rest = line.split()
            if "-" in first and len(rest) >= 4:
                path = rest[4] if len(rest) > 4 else ""
                counts = ("libLLVM" in path or "libMLIR" in path) and "w" not in rest[0]
            elif first == "Rss:" and counts:
                total += int(rest[0])
    return total


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_compiler_leaves_memory_once_a_model_is_loaded(model):
    options = sdx.SessionOptions()
    options.cache = False
    for _ in range(2):
        session = sdx.InferenceSession(model(ADD).SerializeToString(), options)
        assert compiler_pages() < 16 * 1024
        session.run(None, feeds(100))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_libraries_of_the_compiler_are_opened_one_by_one():
    """Each leaves what relocating and initializing it has read before the next reads as much."""
    program = f"import sardonyx\nsardonyx.InferenceSession\n{inspect.getsource(compiler_pages)}\nprint(compiler_pages())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 48 * 1024


def test_libraries_of_what_is_no_extension_are_left_to_the_import(tmp_path):
    for name, data in ("absent", None), ("empty", b""), ("text", b"no library"), ("cut", b"\x7fELF" + b"\xff" * 90):
        if data is not None:
            (tmp_path / name).write_bytes(data)
        sdx._open_compiler_libraries(str(tmp_path / name))
