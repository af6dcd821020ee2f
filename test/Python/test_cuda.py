"""Sessions and values on CUDA devices, by the driver that needs no GPU.

A process has one driver: each script runs in one of its own, and must end with status 0 and the words on stderr that are
expected.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sdx

PREAMBLE = """
import os
import numpy as np
import sardonyx as sdx
from onnx import parser

def model(graph):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}').SerializeToString()

CUDA = ["CUDAExecutionProvider", "CPUExecutionProvider"]
MLP = model("m (float[N,8] x, float[8,4] w) => (float[N,4] y, float[N,8] z) { h = MatMul(x, w)  y = Relu(h)  z = Softmax(x) }")
PRODUCT = model("m (float[N,K] x, float[K,M] w) => (float[N,M] y) { y = MatMul(x, w) }")
X = np.random.default_rng(1).standard_normal((5, 8), dtype=np.float32)
W = np.random.default_rng(2).standard_normal((8, 4), dtype=np.float32)
FEEDS = {"x": X, "w": W}

def load(source=MLP, providers=CUDA, **others):
    return sdx.InferenceSession(source, providers=providers, **others)

def check(results, x=X):
    import onnxruntime as ort
    expected = ort.InferenceSession(MLP).run(None, {"x": x, "w": W})
    for given, right in zip(results, expected):
        np.testing.assert_allclose(given, right, rtol=1e-5, atol=1e-6)

def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError(f"no {kind.__name__}")

class Foreign:
    '''Another library's tensor, in the memory of an OrtValue.'''
    def __init__(self, value):
        self.value, self.streams = value, []
    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.value.__dlpack__()
    def __dlpack_device__(self):
        return self.value.__dlpack_device__()

class Interface:
    def __init__(self, value, **others):
        self.__cuda_array_interface__ = {**value.__cuda_array_interface__, **others}
        self.value = value
"""


@pytest.fixture
def script():
    """Runs a script on the fake driver, which variables of the environment configure."""
    build = os.environ.get("SARDONYX_BUILD")
    driver = Path(build or "", "lib", "libsdx-fakecuda.so")
    if not build or not driver.exists():
        pytest.skip("SARDONYX_BUILD names no build folder")

    def run(text, says="", **environment):
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "SARDONYX_CUDA_DRIVER": str(driver), **environment},
        )
        assert done.returncode == 0, done.stderr
        assert (says in done.stderr) if says else (done.stderr == ""), done.stderr

    return run


def test_the_compiler_is_not_loaded_to_find_no_driver():
    text = "import sys, sardonyx; print(sardonyx.get_available_providers(), 'sardonyx._sardonyx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "['CPUExecutionProvider'] False\n"


def test_without_a_driver(model):
    """Nothing is as it would not be in a package without CUDA."""
    assert sdx.get_available_providers() == ["CPUExecutionProvider"]
    assert sdx.get_device() == "CPU"
    add = model("m (float[3] x) => (float[3] y) { y = Add(x, x) }").SerializeToString()
    session = sdx.InferenceSession(add, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="runs on the CPU .no CUDA driver on this machine"):
        sdx.InferenceSession(add, providers=["CUDAExecutionProvider"])
    with pytest.raises(sdx.Fail, match="no memory of the device 'cuda': no CUDA driver on this machine"):
        sdx.OrtValue.ortvalue_from_numpy(np.ones(3), "cuda", 0)
    value = sdx.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))
    assert not hasattr(value, "__cuda_array_interface__")


@pytest.mark.parametrize(
    "options, text",
    [
        ({"device_ids": 0}, r'Unknown provider option: "device_ids" of CUDAExecutionProvider \(did you mean device_id'),
        ({"device_id": "first"}, "the option 'device_id' of CUDAExecutionProvider is 'first', no number from 0 to"),
        ({"gpu_mem_limit": -1}, "the option 'gpu_mem_limit' of CUDAExecutionProvider is '-1', no number from 0 to"),
        ({"gpu_mem_limit": 2**64}, "no number from 0 to 18446744073709551615"),
        ({"enable_cuda_graph": "perhaps"}, "the option 'enable_cuda_graph' of CUDAExecutionProvider is 'perhaps', neither 0 nor 1"),
    ],
)
def test_wrong_options(model, options, text):
    add = model("m (float[3] x) => (float[3] y) { y = Add(x, x) }").SerializeToString()
    with pytest.raises(sdx.InvalidArgument, match=text):
        sdx.InferenceSession(add, providers=["CUDAExecutionProvider"], provider_options=[options])


def test_sessions(script):
    script("""
        assert sdx.get_available_providers() == CUDA
        assert sdx.get_device() == "GPU"
        session = load()
        assert session.get_providers() == CUDA
        options = session.get_provider_options()
        assert options["CUDAExecutionProvider"]["device_id"] == "0" and options["CPUExecutionProvider"] == {}
        check(session.run(None, FEEDS))
        check(session.run(None, {"x": X[:1], "w": W}), X[:1])
        # The CPU's comes first; and nobody asked for another.
        for providers in (CUDA[::-1], None, ["CPUExecutionProvider"]):
            assert load(providers=providers).get_providers() == ["CPUExecutionProvider"]
        given = {"device_id": 0, "gpu_mem_limit": 1 << 20, "arena_extend_strategy": "kSameAsRequested"}
        for session in (load(providers=[("CUDAExecutionProvider", given)]), load(providers=CUDA[:1], provider_options=[given])):
            assert session.get_providers() == CUDA
            assert session.get_provider_options()["CUDAExecutionProvider"]["gpu_mem_limit"] == str(1 << 20)
            check(session.run(None, FEEDS))
        settings = sdx.SessionOptions()
        settings.add_provider("CUDAExecutionProvider", {"device_id": "0"})
        assert sdx.InferenceSession(MLP, settings).get_providers() == CUDA
        assert sdx.InferenceSession(MLP, settings, providers=["CPUExecutionProvider"]).get_providers() == CUDA[1:]
    """)


def test_code_of_each_device_is_its_own(script):
    """In the cache, where the CPU's lies, too."""
    text = """
        session = load()
        check(session.run(None, FEEDS))
        assert session.from_cache == (os.environ["KNOWN"] == "1")
        assert load(providers=None).from_cache == (os.environ["CPU_KNOWN"] == "1")
    """
    script(text, KNOWN="0", CPU_KNOWN="0")
    script(text, KNOWN="1", CPU_KNOWN="1")
    script(text, KNOWN="0", CPU_KNOWN="1", SARDONYX_FAKECUDA_SM="80")


def test_values(script):
    script("""
        value = sdx.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
        assert (value.device_name(), value.shape(), value.data_type()) == ("cuda", [5, 8], "tensor(float)")
        assert (value.element_type(), value.tensor_size_in_bytes(), value.is_tensor()) == (1, X.nbytes, True)
        assert value.data_ptr() % 256 == 0
        np.testing.assert_array_equal(value.numpy(), X)
        np.testing.assert_array_equal(np.asarray(value), X)
        np.testing.assert_array_equal(sdx.OrtValue.ortvalue_from_numpy(X.T, "gpu").numpy(), X.T)
        for array in (np.array(3.0), np.zeros((0, 3), np.int64), np.array([True, False])):
            copy = sdx.OrtValue.ortvalue_from_numpy(array, "cuda").numpy()
            assert copy.dtype == array.dtype
            np.testing.assert_array_equal(copy, array)
        value.update_inplace(2 * X)
        np.testing.assert_array_equal(value.numpy(), 2 * X)
        empty = sdx.OrtValue.ortvalue_from_shape_and_type([5, 8], np.float32, "cuda", 0)
        sdx.copy_tensors([value], [empty])
        host = sdx.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
        host.update_inplace(empty)
        np.testing.assert_array_equal(host.numpy(), 2 * X)
        raises(sdx.Fail, "elements of float32, got int64", value.update_inplace, np.zeros(40, np.int64))
        raises(sdx.Fail, "does not match the size", value.update_inplace, np.zeros(3, np.float32))
        raises(sdx.Fail, "no CUDA device 4", sdx.OrtValue.ortvalue_from_numpy, X, "cuda", 4)
        raises(sdx.Fail, "there is no memory of the device 'dml'", sdx.OrtValue.ortvalue_from_numpy, X, "dml", 0)
        raises(sdx.Fail, "out of device memory", sdx.OrtValue.ortvalue_from_shape_and_type, [1 << 40], np.float32, "cuda", 0)
        raises(Exception, "no tensor has the shape", sdx.OrtValue.ortvalue_from_shape_and_type, [-1], np.float32, "cuda", 0)
        # An initializer is copied from wherever it lies.
        options = sdx.SessionOptions()
        options.add_initializer("w", sdx.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32), "cuda"))
        scale = model("m (float[3] x) => (float[3] y) <float[3] w = {5, 5, 5}> { y = Mul(x, w) }")
        np.testing.assert_array_equal(sdx.InferenceSession(scale, options).run(None, {"x": X[0, :3]})[0], X[0, :3])
    """)


def test_inputs_of_other_libraries(script):
    """They are not copied, and their stream is waited for."""
    script("""
        session = load()
        x = sdx.OrtValue.ortvalue_from_numpy(X, "cuda")
        foreign = Foreign(x)
        for given in (x, foreign, Interface(x), Interface(x, stream=1), Interface(x, strides=(32, 4))):
            check(session.run(None, {"x": given, "w": W}))
        assert set(foreign.streams) <= {None, 1} and 1 in foreign.streams
        check([v.numpy() for v in session.run_with_ort_values(None, {"x": x, "w": sdx.OrtValue.ortvalue_from_numpy(W)})])
        value = sdx.OrtValue.from_dlpack(foreign)
        assert (value.data_ptr(), value.device_name(), value.__dlpack_device__()) == (x.data_ptr(), "cuda", (2, 0))
        capsule = sdx.OrtValue.from_dlpack(x.__dlpack__())
        assert capsule.data_ptr() == x.data_ptr()
        del x, foreign
        np.testing.assert_array_equal(capsule.numpy(), X)
        told = value.__cuda_array_interface__
        assert (told["shape"], told["typestr"], told["data"]) == ((5, 8), "<f4", (value.data_ptr(), False))
        flags = sdx.OrtValue.ortvalue_from_numpy(np.array([True, False]), "cuda")
        np.testing.assert_array_equal(sdx.OrtValue.from_dlpack(Foreign(flags)).numpy(), [True, False])
        columns = Interface(value, strides=(4, 20))
        raises(sdx.InvalidArgument, "must be contiguous", session.run, None, {"x": columns, "w": W})
        outside = Interface(value, data=(X.ctypes.data, False))
        raises(sdx.InvalidArgument, "is of no CUDA device", session.run, None, {"x": outside, "w": W})
        raises(sdx.InvalidArgument, "element type float, got bool", session.run, None, {"x": flags, "w": W})
        host = load(providers=None)
        for given in (value, Foreign(value), Interface(value)):
            raises(sdx.InvalidArgument, "lies on CUDA device 0, and the model runs on the CPU", host.run, None, {"x": given, "w": W})
    """)


def test_bindings(script):
    script("""
        session = load()
        x, w = (sdx.OrtValue.ortvalue_from_numpy(array, "cuda") for array in (X, W))
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, [5, 8], x.data_ptr())
        binding.bind_ortvalue_input("w", w)
        binding.bind_output("y", "cuda")
        binding.bind_output("z")
        session.run_with_iobinding(binding)
        y, z = binding.get_outputs()
        assert (y.device_name(), z.device_name()) == ("cuda", "cpu")
        check(binding.copy_outputs_to_cpu())
        # Memory of the caller's, on the device and beside.
        there = sdx.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32, "cuda", 0)
        binding.bind_output("y", "cuda", 0, np.float32, [5, 4], there.data_ptr())
        here = np.zeros_like(X)
        binding.bind_output("z", "cpu", 0, np.float32, [5, 8], here.ctypes.data)
        session.run_with_iobinding(binding)
        check([there.numpy(), here])
        binding.bind_ortvalue_output("y", there)
        there.update_inplace(np.zeros((5, 4), np.float32))
        session.run_with_iobinding(binding)
        assert binding.get_outputs()[0].data_ptr() == there.data_ptr()
        check([there.numpy(), here])
        # One run's result is the next one's input.
        twice = load(model("m (float[N] x) => (float[N] y) { y = Add(x, x) }"))
        value = sdx.OrtValue.ortvalue_from_numpy(X[0], "cuda")
        for _ in range(3):
            binding = twice.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_output("y", "cuda", 0)
            twice.run_with_iobinding(binding)
            (value,) = binding.get_outputs()
        np.testing.assert_array_equal(value.numpy(), 8 * X[0])
        binding.bind_output("y", "cuda", 0, np.float32, [3], there.data_ptr())
        raises(sdx.InvalidArgument, "the caller's memory has shape [3]", twice.run_with_iobinding, binding)
        host = load(providers=None).io_binding()
        host.bind_cpu_input("x", X), host.bind_cpu_input("w", W), host.bind_output("y", "cuda")
        raises(sdx.InvalidArgument, "and the model runs on the CPU", host._session.run_with_iobinding, host)
    """)


def test_outputs_to_memory_of_other_libraries(script):
    script("""
        session = load()
        there = sdx.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32, "cuda", 0)
        foreign = Foreign(there)
        y, z = session.run(None, FEEDS, out={"y": foreign})
        assert y is foreign
        check([there.numpy(), z])
    """)


def test_values_that_decide_on_code(script):
    """Lists on a device from which a tensor has its rank."""
    script("""
        session = load(model("m (float[N] x, int64[K] s) => (float[?] y) { y = Reshape(x, s) }"))
        for shape in ([2, 4], [8], [2, 2, 2]):
            s = sdx.OrtValue.ortvalue_from_numpy(np.array(shape), "cuda")
            (y,) = session.run(None, {"x": X[0], "s": s})
            np.testing.assert_array_equal(y, X[0].reshape(shape))
    """, says="is declared with the shape [?]")


def test_failing_runs(script):
    script("""
        gather = load(model("m (float[A] x, int64[K] i) => (float[K] y) { y = Gather(x, i) }"))
        (y,) = gather.run(None, {"x": X[0], "i": np.array([7, -8])})
        np.testing.assert_array_equal(y, X[0][[7, -8]])
        host = load(model("m (float[A] x, int64[K] i) => (float[K] y) { y = Gather(x, i) }"), providers=None)
        said = []
        for session in (gather, host):
            try:
                session.run(None, {"x": X[0], "i": np.array([0, 8])})
            except Exception as problem:
                said.append((type(problem), str(problem)))
        assert len(said) == 2 and said[0] == said[1], said
        gather.run(None, {"x": X[0], "i": np.array([1])})
        small = load(providers=[("CUDAExecutionProvider", {"gpu_mem_limit": 100000})])
        check(small.run(None, FEEDS))
        large = np.zeros((10000, 8), np.float32)
        raises(sdx.errors.RuntimeException, "out of device memory", small.run, None, {"x": large, "w": W})
        check(small.run(None, FEEDS))
        options = sdx.RunOptions()
        options.terminate = True
        raises(sdx.errors.RuntimeException, "terminated", gather.run, None, {"x": X[0], "i": np.array([1])}, options)
    """)


def test_nodes_without_kernels(script):
    """Strings are the processor's: one error names all of such nodes, or they are computed there."""
    script("""
        text = parser.parse_model('<ir_version: 10, opset_import: ["" : 20]> m (string[N] s, string[N] t, float[N,4] x)'
                                  ' => (string[N] y, string[N] z, float[N,4] r)'
                                  ' { [first] y = StringConcat(s, t)  [second] z = StringConcat(y, t)  r = Relu(x) }').SerializeToString()
        raises(NotImplementedError, "no kernels for 2 nodes of the model, and the CPU's may not be used: "
               "node 'first' (StringConcat), node 'second' (StringConcat)", load, text, ["CUDAExecutionProvider"])
        session = load(text)
        assert session.get_providers()[0] == "CUDAExecutionProvider"
        feeds = {"s": np.array(["a", "b"]), "t": np.array(["c", "d"]), "x": X[:2, :4]}
        y, z, r = session.run(None, feeds)
        assert list(y) == ["ac", "bd"] and list(z) == ["acc", "bdd"]
        np.testing.assert_array_equal(r, np.maximum(X[:2, :4], 0))
    """)


def test_no_such_device(script):
    script("""
        raises(sdx.Fail, "no CUDA device 2: the driver finds 1", load, providers=[("CUDAExecutionProvider", {"device_id": 2})])
    """)
    text = """
        session = load(providers=[("CUDAExecutionProvider", {"device_id": 2}), "CPUExecutionProvider"])
        assert session.get_providers() == ["CPUExecutionProvider"]
        check(session.run(None, FEEDS))
    """
    script(text, "the model runs on the CPU: no CUDA device 2: the driver finds 1")
    old = """
        assert sdx.get_available_providers() == CUDA
        raises(sdx.Fail, "has compute capability 7.5, needed is 8.0", load, providers=CUDA[:1])
        session = load()
        assert session.get_providers() == ["CPUExecutionProvider"]
    """
    script(old, "the model runs on the CPU: the CUDA device", SARDONYX_FAKECUDA_SM="75")
    none = """
        assert sdx.get_available_providers() == ["CPUExecutionProvider"]
        assert load().get_providers() == ["CPUExecutionProvider"]
    """
    script(none, SARDONYX_FAKECUDA_DEVICES="0")
    script(none, SARDONYX_FAKECUDA_VERSION="11080")


def test_backend(script):
    script("""
        import onnx
        from sardonyx import backend
        assert all(backend.supports_device(device) for device in (None, "CPU", "CUDA", "CUDA:0", "GPU"))
        assert not backend.supports_device("TPU")
        rep = backend.prepare(onnx.load_from_string(MLP), "CUDA")
        assert rep.session.get_providers() == CUDA
        check(rep.run([X, W]))
        check(backend.run_model(onnx.load_from_string(MLP), [X, W], "CPU"))
        raises(sdx.Fail, "no CUDA device 3", backend.prepare, onnx.load_from_string(MLP), "CUDA:3")
    """)


GRAPHS = """
    rng = np.random.default_rng(5)
    options = {"enable_cuda_graph": "%d"}
    session = load(providers=[("CUDAExecutionProvider", options)])
    for round in range(6):
        for rows in (5, 1, 3):
            x = rng.standard_normal((rows, 8), dtype=np.float32)
            check(session.run(None, {"x": x, "w": W}), x)
    # Inputs and results on the device, whose addresses are others each time.
    values = []
    for round in range(6):
        x = rng.standard_normal((5, 8), dtype=np.float32)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", sdx.OrtValue.ortvalue_from_numpy(x, "cuda"))
        binding.bind_cpu_input("w", W)
        for name in "yz":
            binding.bind_output(name, "cuda")
        session.run_with_iobinding(binding)
        values.append((binding.get_outputs(), x))
    for outputs, x in values:
        check([output.numpy() for output in outputs], x)
"""


def test_runs_that_repeat_are_graphs(script):
    script(GRAPHS % 1)
    script(GRAPHS % 0, SARDONYX_FAKECUDA_FAIL="cuGraphCreate:1")
    # A run has six kernels. They are launched once for each of three shapes, and perhaps again for the first, which found no
    # memory yet.
    script("\n".join(GRAPHS.splitlines()[:8]) % 1, SARDONYX_FAKECUDA_FAIL="cuLaunchKernelEx:25:700")


def test_what_a_run_costs(script):
    script("""
        session = load(providers=CUDA[:1])
        assert session.device_use is None
        for round in range(3):
            check(session.run(None, FEEDS))
        use = session.device_use
        # Two inputs and two results.
        assert use["copies"] == 4 and use["copied_bytes"] == 4 * (5 * 8 + 8 * 4 + 5 * 4 + 5 * 8), use
        assert use["submissions"] == 1 and use["waits"] == 1 and use["kernels"] >= 2, use
        assert 0 < use["host_seconds"] < 1 and use["memory_bytes"] > 0, use
        assert load(providers=CUDA[1:]).device_use is None
    """)


def test_a_graph_that_is_refused(script):
    script(GRAPHS % 1, says="cuGraphInstantiateWithFlags fails", SARDONYX_FAKECUDA_FAIL="cuGraphInstantiateWithFlags:1")


def test_precision(script):
    """Operands are rounded to what the option says, sums are not; errors are those of the rounded operands."""
    script("""
        import onnx
        import onnxruntime as ort
        rng = np.random.default_rng(11)
        loaded = onnx.load_from_string(model(
            "m (float[N,70] x, float[2,12,9,9] image) => (float[N,40] y, float[2,16,5,5] z) "
            "<float[70,96] v, float[40,96] w, float[16,12,3,3] f> { "
            "h = MatMul(x, v)  r = Relu(h)  s = Add(r, h)  y = Gemm<transB = 1>(s, w) "
            "c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, f)  z = Tanh(c) }"))
        shapes = {"v": (70, 96), "w": (40, 96), "f": (16, 12, 3, 3)}
        del loaded.graph.initializer[:]
        for name, shape in shapes.items():
            values = rng.standard_normal(shape).astype(np.float32) / 8
            loaded.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        source = loaded.SerializeToString()
        feeds = {"x": rng.standard_normal((19, 70)).astype(np.float32), "image": rng.standard_normal((2, 12, 9, 9)).astype(np.float32)}
        right = ort.InferenceSession(source).run(None, feeds)

        def errors(settings=None, options={}):
            session = sdx.InferenceSession(source, settings, providers=[("CUDAExecutionProvider", options)])
            return [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(session.run(None, feeds), right)]

        def settings(precision):
            options = sdx.SessionOptions()
            options.precision = precision
            return options

        for precision, least, most in (("f32", 0, 1e-6), ("tf32", 5e-5, 1e-3), ("f16", 5e-5, 1e-3), ("bf16", 5e-4, 8e-3)):
            found = errors(settings(precision))
            assert all(least <= error < most for error in found), (precision, found)
        # onnxruntime's option of the provider.
        assert errors(options={"use_tf32": 1}) == errors(settings("tf32"))
        # Infinities and what is no number stay what they are.
        x = np.ones((2, 70), np.float32)
        x[0, 3], x[1, 4] = np.nan, np.inf
        for precision in ("tf32", "f16", "bf16"):
            (y,) = sdx.InferenceSession(PRODUCT, settings(precision), providers=CUDA[:1]).run(None, {"x": x, "w": np.ones((70, 8), np.float32)})
            assert np.isnan(y[0]).all() and (y[1] == np.inf).all(), (precision, y)
    """)


def test_wrong_precision(model):
    options = sdx.SessionOptions()
    options.precision = "half"
    with pytest.raises(sdx.InvalidArgument, match="precision must be 'f32', 'tf32', 'f16', 'bf16', got 'half'"):
        sdx.InferenceSession(model("m (float[3] x) => (float[3] y) { y = Abs(x) }").SerializeToString(), options)


def test_nothing_leaks(script):
    script("""
        import gc
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        session = load()
        x = sdx.OrtValue.ortvalue_from_numpy(X, "cuda")
        def step():
            binding = session.io_binding()
            binding.bind_input("x", "cuda", 0, np.float32, [5, 8], x.data_ptr())
            binding.bind_cpu_input("w", W)
            binding.bind_output("y", "cuda")
            session.run_with_iobinding(binding)
            sdx.OrtValue.from_dlpack(Foreign(binding.get_outputs()[0])).__cuda_array_interface__
        for _ in range(200):
            step()
        before = resident()
        for _ in range(2000):
            step()
        assert resident() - before < 4 << 20, resident() - before
        # Once in a while malloc takes some megabytes; a leak would show in each round.
        grown = []
        for _ in range(4):
            before = resident()
            for _ in range(50):
                load().run(None, FEEDS)
            gc.collect()
            grown.append(resident() - before)
        assert min(grown) < 500000, grown
    """)
