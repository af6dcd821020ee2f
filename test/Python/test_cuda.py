"""Sessions and values on CUDA devices, by the driver that needs no GPU."""

import subprocess
import sys

import numpy as np
import pytest
from cuda_scripts import script  # noqa: F401

import sardonyx as sdx


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


def test_devices_and_memory_by_name(script):
    script(
        """
        cpu, *gpus = sdx.get_ep_devices()
        assert [device.ep_name for device in (cpu, *gpus)] == [CUDA[1], CUDA[0], CUDA[0]]
        assert [device.ep_options for device in gpus] == [{"device_id": "0"}, {"device_id": "1"}] and gpus[1] == sdx.get_ep_devices()[2] != cpu
        assert cpu.device.type == sdx.OrtHardwareDeviceType.CPU and cpu.memory_info(sdx.OrtDeviceMemoryType.DEFAULT) is None
        hardware = gpus[1].device
        assert (hardware.type, hardware.vendor, hardware.vendor_id, hardware.device_id) == (sdx.OrtHardwareDeviceType.GPU, "NVIDIA", 0x10DE, 1)
        memory = gpus[1].memory_info(sdx.OrtDeviceMemoryType.DEFAULT)
        assert (memory.name, memory.device_id, memory.device_vendor_id) == ("Cuda", 1, 0x10DE)
        assert gpus[1].memory_info(sdx.OrtDeviceMemoryType.HOST_ACCESSIBLE) is None
        raises(sdx.Fail, "user_compute_stream", gpus[0].create_sync_stream)
        for place, session in (("Cuda", load()), ("Cpu", load(providers=CUDA[1:]))):
            infos = session.get_input_memory_infos(), session.get_output_memory_infos()
            assert [[info.name for info in side] for side in infos] == [[place] * 2] * 2
            assert session.get_input_epdevices() == [gpus[0] if place == "Cuda" else cpu] * 2
        options = sdx.SessionOptions()
        raises(sdx.InvalidArgument, "takes one device", options.add_provider_for_devices, [gpus[1], cpu], {})
        # Only the first one of the devices that stand for a driver's can be used.
        options.add_provider_for_devices(gpus[1:], {})
        raises(sdx.Fail, "the CUDA device 1 cannot be used", sdx.InferenceSession, MLP, options)
        options = sdx.SessionOptions()
        options.add_provider_for_devices(gpus[:1], {"gpu_mem_limit": "1000000"})
        session = sdx.InferenceSession(MLP, options)
        assert session.get_providers() == CUDA
        assert session.get_provider_options()[CUDA[0]]["gpu_mem_limit"] == "1000000"
        assert session.get_input_memory_infos()[0].device_id == 0
        """,
        SARDONYX_FAKECUDA_DEVICES="2",
    )
