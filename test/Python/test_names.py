"""Names that do not exist: an error of onnxruntime's class, with the names that there are and the one that is most like it."""

import warnings

import numpy as np
import pytest

import sardonyx as sdx

MODEL = "m (float[N, 3] pixel_values, float[N, 3] mask) => (float[N, 3] logits) { logits = Mul(pixel_values, mask) }"
X = np.ones((2, 3), np.float32)
FEED = {"pixel_values": X, "mask": X}


@pytest.fixture
def session(model):
    return sdx.InferenceSession(model(MODEL))


def test_inputs(session):
    for wrong in ({"pixel_value": X, "mask": X}, {**FEED, "pixelvalues": X}, {"Pixel_Values": X, "mask": X}):
        with pytest.raises(sdx.InvalidArgument, match=r"no input '\w+'; it has pixel_values, mask \(did you mean pixel_values\?\)"):
            session.run(None, wrong)
    with pytest.raises(sdx.InvalidArgument, match="no input 'zzz'; it has pixel_values, mask$"):
        session.run(None, {**FEED, "zzz": X})
    with pytest.raises(sdx.InvalidArgument, match=r"Required inputs \(\['mask'\]\)"):
        session.run(None, {"pixel_values": X})
    binding = session.io_binding()
    with pytest.raises(sdx.InvalidArgument, match="did you mean mask"):
        binding.bind_cpu_input("masks", X)
    with pytest.raises(sdx.InvalidArgument, match="no input 3"):
        session.run(None, {3: X, **FEED})


def test_outputs(session):
    for ask in (
        lambda: session.run(["logit"], FEED),
        lambda: session.run(None, FEED, out={"logit": X}),
        lambda: session.io_binding().bind_output("logit"),
    ):
        with pytest.raises(sdx.InvalidArgument, match=r"no output 'logit'; it has logits \(did you mean logits\?\)"):
            ask()


def test_many_names_are_listed_in_part(model):
    outputs = ", ".join(f"float[2] y{i}" for i in range(40))
    body = " ".join(f"y{i} = Neg(x)" for i in range(40))
    session = sdx.InferenceSession(model(f"m (float[2] x) => ({outputs}) {{ {body} }}"))
    with pytest.raises(sdx.InvalidArgument, match=r"it has y0, y1, .* and 28 more") as failure:
        session.run(["nope"], {"x": np.ones(2, np.float32)})
    assert len(str(failure.value)) < 200


def test_attributes():
    with pytest.raises(AttributeError, match=r"'intra_op_num_thread' \(did you mean intra_op_num_threads\?\)"):
        sdx.SessionOptions().intra_op_num_thread = 1
    with pytest.raises(AttributeError, match="did you mean terminate"):
        sdx.RunOptions().terminated = True


def test_config_entries():
    options = sdx.SessionOptions()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what onnxruntime has is a hint, and nothing is said
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        sdx.RunOptions().add_run_config_entry("disable_synchronize_execution_providers", "1")
    for wrong, right in (
        ("session.intra_op.allow_spining", "session.intra_op.allow_spinning"),
        ("session.disable_prepackin", "session.disable_prepacking"),
        ("Session.use_env_allocator", "session.use_env_allocators"),
    ):
        with pytest.raises(sdx.InvalidArgument, match=f"no config entry '{wrong}' .did you mean {right}?"):
            options.add_session_config_entry(wrong, "1")
        with pytest.raises(sdx.Fail, match="does not have configuration with key"):
            options.get_session_config_entry(wrong)
    with pytest.raises(sdx.InvalidArgument, match="did you mean memory.enable_memory_arena_shrinkage"):
        sdx.RunOptions().add_run_config_entry("memory.enable_memory_arena_shrinkag", "cpu:0")
    with pytest.warns(UserWarning, match="my_operator.setting"):
        options.add_session_config_entry("my_operator.setting", "1")
    with pytest.raises(sdx.Fail, match="did you mean my_operator.setting"):
        options.get_session_config_entry("my_operator.settings")


def test_every_key_of_onnxruntime_is_known_and_none_looks_like_another():
    from sardonyx._config_keys import RUN, SESSION
    from sardonyx._suggest import close_to

    for known in (RUN, SESSION):
        assert all(key == key.strip().lower() for key in known)
        for key in known:
            assert close_to(key, known) == key


def test_providers(model, session):
    proto = model(MODEL)
    for wrong in (["CUDAExecutionProvide"], [("cudaexecutionprovider", {})], "CUDAExecutionProviders"):
        with pytest.raises(sdx.Fail, match=r"Unknown Provider Type: \w+ \(did you mean CUDAExecutionProvider\?\)"):
            sdx.InferenceSession(proto, providers=wrong)
        with pytest.raises(RuntimeError, match="Unknown Provider Type"):
            session.set_providers(wrong)
    with pytest.raises(sdx.Fail, match="Unknown Provider Type: Nonsense; there is CPUExecutionProvider"):
        session.set_providers(["Nonsense"])
    with pytest.raises(sdx.Fail, match="did you mean CPUExecutionProvider"):
        sdx.SessionOptions().add_provider("CPUExecutionProvder", {})
    with pytest.raises(sdx.InvalidArgument, match="there is no provider 'CUDAExecutionProvider'"):
        sdx.SessionOptions().add_provider("CUDAExecutionProvider", {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdx.InferenceSession(proto, providers=["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"])
        sdx.InferenceSession(proto, providers=[("ROCMExecutionProvider", {"device_id": 0}), ("CPUExecutionProvider", {})])
        sdx.InferenceSession(proto, providers="CPUExecutionProvider")
    with pytest.warns(UserWarning, match="runs on the CPU") as told:
        sdx.InferenceSession(proto, providers=["CUDAExecutionProvider"])
    assert told[0].filename == __file__
    for wrong in (3, [3], [("CPUExecutionProvider", 3)], {"CPUExecutionProvider": {}}):
        with pytest.raises(ValueError, match="providers"):
            sdx.InferenceSession(proto, providers=wrong)
    with pytest.raises(ValueError, match="same length"):
        sdx.InferenceSession(proto, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


def test_providers_are_onnxruntimes():
    ort = pytest.importorskip("onnxruntime")
    assert sdx.get_all_providers() == ort.get_all_providers()


def test_shapes_of_inputs(model):
    options = sdx.SessionOptions()
    options.set_input_shape("pixel_value", [2, 3])
    with pytest.raises(sdx.Fail, match="pixel_value"):
        sdx.InferenceSession(model(MODEL), options)


# ===- Devices -------------------------------------------------------------===

ort = pytest.importorskip("onnxruntime")
ENGINES = pytest.mark.parametrize("engine", [ort, sdx], ids=["onnxruntime", "sardonyx"])


@ENGINES
def test_devices(engine):
    cpu, cuda = engine.OrtDevice.make("cpu", 0), engine.OrtDevice.make("cuda", 1)
    numbers = lambda device: (device.device_type(), device.device_mem_type(), device.device_vendor_id(), device.device_id())
    assert numbers(cpu) == (0, 0, 0, 0) and numbers(cuda) == (1, 0, 0x10DE, 1)
    with pytest.raises(Exception, match="Unsupported device type: toaster"):
        engine.OrtDevice.make("toaster", 0)
    with pytest.raises(RuntimeError):
        engine.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


@ENGINES
def test_memory(engine, model):
    info = engine.OrtMemoryInfo("Cpu", engine.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, engine.OrtMemType.DEFAULT)
    assert (info.name, info.device_id, int(info.mem_type), int(info.allocator_type)) == ("Cpu", 0, 0, 1)
    assert (int(info.device_mem_type), info.device_vendor_id) == (0, 0)
    made = engine.OrtMemoryInfo.create_v2(
        "mine", engine.OrtMemoryInfoDeviceType.CPU, 0, 0, engine.OrtDeviceMemoryType.DEFAULT, 0,
        engine.OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
    )  # fmt: skip
    assert made.name == "mine"
    engine.create_and_register_allocator(info, None)
    value = engine.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, memory_info=info)
    assert value.shape() == [2, 3]
    with pytest.raises(RuntimeError):
        engine.OrtMemoryInfo("Toaster", engine.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, engine.OrtMemType.DEFAULT)
    session = engine.InferenceSession(model(MODEL).SerializeToString(), providers=["CPUExecutionProvider"])
    assert [i.name for i in session.get_input_memory_infos()] == ["Cpu", "Cpu"] and len(session.get_output_memory_infos()) == 1
    assert [d.ep_name for d in session.get_input_epdevices()] == ["CPUExecutionProvider"] * 2


@ENGINES
def test_arenas(engine):
    assert engine.OrtArenaCfg(8, 0, 4, 2).max_dead_bytes_per_chunk == 2
    made = engine.OrtArenaCfg({"max_mem": 16, "initial_growth_chunk_size_bytes": 2, "max_power_of_two_extend_bytes": 17})
    assert (made.max_mem, made.initial_growth_chunk_size_bytes, made.max_power_of_two_extend_bytes) == (16, 2, 17)
    assert made.initial_chunk_size_bytes == -1 == engine.OrtArenaCfg(8, 0, 4, 2).max_power_of_two_extend_bytes
    made.max_mem = 3
    assert made.max_mem == 3
    with pytest.raises(RuntimeError, match="Invalid OrtArenaCfg option: max_men"):
        engine.OrtArenaCfg({"max_men": 1})
    with pytest.raises(TypeError):
        engine.OrtArenaCfg(1)


@ENGINES
def test_execution_providers(engine, model):
    device = engine.get_ep_devices()[0]
    assert device.ep_name == "CPUExecutionProvider" and device.device.type == engine.OrtHardwareDeviceType.CPU
    assert isinstance(device.device.vendor, str) and device.ep_options == {} and device.ep_metadata["version"]
    for wrong in (
        lambda: engine.register_execution_provider_library("x", "/no/such.so"),
        lambda: engine.unregister_execution_provider_library("x"),
    ):
        with pytest.raises(Exception, match="no/such.so|x was not registered"):
            wrong()
    options = engine.SessionOptions()
    options.add_provider_for_devices([device], {})
    assert options.has_providers()
    data = model(MODEL).SerializeToString()
    engine.InferenceSession(data, options)
    asked = []
    for chosen, fails in (([device], False), ([], True)):
        options = engine.SessionOptions()
        options.set_provider_selection_policy_delegate(lambda *given, chosen=chosen: asked.append(given) or chosen)
        if not fails:
            engine.InferenceSession(data, options)
            continue
        with pytest.raises(Exception, match="did not select anything"):
            engine.InferenceSession(data, options)
    devices, said, runtime, most = asked[0]
    assert len(devices) == 1 and said["graph_name"] == "m" and runtime == {} and most == 8
    options = engine.SessionOptions()
    options.set_provider_selection_policy(engine.OrtExecutionProviderDevicePolicy.PREFER_GPU)
    assert engine.InferenceSession(data, options).get_providers() == ["CPUExecutionProvider"]


def test_graph_assignment_is_refused_by_name(session, model):
    with pytest.raises(sdx.Fail, match="session.record_ep_graph_assignment_info"):
        session.get_provider_graph_assignment_info()
    options = sdx.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    with pytest.raises(sdx.NotImplemented, match="nodes"):
        sdx.InferenceSession(model(MODEL), options).get_provider_graph_assignment_info()
    with pytest.raises(sdx.NotImplemented, match="sardonyx.build"):
        sdx.ModelCompiler(options, model(MODEL).SerializeToString())
