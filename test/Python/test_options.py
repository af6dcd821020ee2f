"""SessionOptions and RunOptions: what they take and what it does, as onnxruntime has it."""

import json
import platform
import re
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import onnx
import pytest

import sardonyx as sdx
from sardonyx import _attributes

ort = pytest.importorskip("onnxruntime")

SCALE = "m (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }"
X = np.ones((2, 3), np.float32)
W = np.array([7, 8, 9], np.float32)


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(_attributes, "_told", set())


def both(engine, model, give):
    """What a session gives with these options."""
    options = engine.SessionOptions()
    give(engine, options)
    return engine.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


# onnxruntime reads initializers where they are, and does not keep them.
KEPT = []


def value(engine, array):
    KEPT.append(engine.OrtValue.ortvalue_from_numpy(array))
    return KEPT[-1]


WRONG = {
    "intra_op_num_threads": (1.5, "x", 2**40), "log_severity_level": ("x",), "logid": (3,), "enable_profiling": ("x",),
    "graph_optimization_level": (3, "x"), "execution_mode": (0,), "enable_mem_pattern": ("x",),
    "optimized_model_filepath": (3,), "use_per_session_threads": ("x",),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_by_both(name):
    for engine in (ort, sdx):
        for wrong in WRONG[name]:
            with pytest.raises(TypeError):
                setattr(engine.SessionOptions(), name, wrong)


def test_defaults_are_onnxruntimes():
    for ours, theirs in ((sdx.SessionOptions(), ort.SessionOptions()), (sdx.RunOptions(), ort.RunOptions())):
        for name in dir(theirs):
            known = getattr(theirs, name)
            if name.startswith("_") or callable(known) or name == "profile_file_prefix":
                continue
            assert int(getattr(ours, name) or 0) == int(known or 0), name


def test_unknown_attributes_are_refused_by_both():
    for engine in (ort, sdx):
        for options in (engine.SessionOptions(), engine.RunOptions()):
            with pytest.raises(AttributeError, match="whatever"):
                options.whatever = 3


def test_hints_are_taken_quietly():
    for kind, name, given in (
        (sdx.SessionOptions, "enable_cpu_mem_arena", False),
        (sdx.SessionOptions, "execution_mode", sdx.ExecutionMode.ORT_PARALLEL),
        (sdx.SessionOptions, "graph_optimization_level", sdx.GraphOptimizationLevel.ORT_DISABLE_ALL),
        (sdx.SessionOptions, "inter_op_num_threads", 3),
        (sdx.RunOptions, "only_execute_path_to_fetches", True),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options = kind()
            setattr(options, name, given)
        assert getattr(options, name) == given
        assert getattr(kind, name).hint in getattr(kind, name).__doc__


def test_what_has_no_effect_says_so_once():
    for give in (lambda: sdx.set_seed(3), lambda: sdx.SessionOptions().add_session_config_entry("some.key", "1")):
        with pytest.warns(UserWarning, match="has no effect") as told:
            give()
        assert told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            give()


def test_config_entries():
    for options, add, get in (
        (sdx.SessionOptions(), "add_session_config_entry", "get_session_config_entry"),
        (ort.SessionOptions(), "add_session_config_entry", "get_session_config_entry"),
        (sdx.RunOptions(), "add_run_config_entry", "get_run_config_entry"),
        (ort.RunOptions(), "add_run_config_entry", "get_run_config_entry"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(options, add)("some.key", "1")
            getattr(options, add)("some.key", "2")
        assert getattr(options, get)("some.key") == "2"
        with pytest.raises(RuntimeError, match="does not have configuration with key: nope"):
            getattr(options, get)("nope")
        for key, text in (("", "1"), ("k" * 1025, "1"), ("k", "v" * 8193)):
            with pytest.raises(RuntimeError, match="Config"):
                getattr(options, add)(key, text)
        with pytest.raises(TypeError):
            getattr(options, add)("k", 3)


def test_levels_out_of_range(model):
    for engine in (ort, sdx):
        with pytest.raises(RuntimeError, match="log severity level"):
            both(engine, model(SCALE), lambda engine, options: setattr(options, "log_severity_level", 9))
        session = both(engine, model(SCALE), lambda engine, options: None)
        options = engine.RunOptions()
        options.log_severity_level = 9
        with pytest.raises(Exception, match="log severity level"):
            session.run(None, {"x": X}, options)
        with pytest.raises(RuntimeError, match="Invalid logging severity"):
            engine.set_default_logger_severity(9)


def test_log(model, capfd):
    options = sdx.SessionOptions()
    options.log_severity_level, options.logid = 1, "mine"
    session = sdx.InferenceSession(model(SCALE), options)
    assert "[I:sardonyx:mine, load] a model in memory took" in capfd.readouterr().err
    quiet = sdx.RunOptions()
    quiet.log_severity_level = 2
    session.run(None, {"x": X}, quiet)
    assert capfd.readouterr().err == ""
    named = sdx.RunOptions()
    named.logid = "this"
    session.run(None, {"x": X}, named)
    assert "[I:sardonyx:mine:this, run] took" in capfd.readouterr().err
    sdx.InferenceSession(model(SCALE)).run(None, {"x": X})
    assert capfd.readouterr().err == ""


def test_initializers(model):
    for given, want in (({"w": W}, W), ({"zz": W}, [1, 2, 3]), ({"w": np.array([5], np.float32)}, [5, 5, 5])):

        def give(engine, options, given=given):
            for name, array in given.items():
                options.add_initializer(name, value(engine, array))

        for engine in (ort, sdx):
            np.testing.assert_array_equal(both(engine, model(SCALE), give).run(None, {"x": X})[0][1], want)
    give = lambda engine, options: options.add_initializer("w", value(engine, W.astype(np.int64)))
    with pytest.raises(sdx.Fail, match="initializer 'w' has elements of type float, was given ones of int64"):
        both(sdx, model(SCALE), give)


def test_initializers_have_code_of_their_own(model):
    """What is given is a part of what the cache goes by, and copied."""
    mine = W.copy()
    options = sdx.SessionOptions()
    options.add_initializer("w", value(sdx, mine))
    mine[:] = 0
    for cached in (False, True):
        session = sdx.InferenceSession(model(SCALE), options)
        assert session.from_cache == cached
        np.testing.assert_array_equal(session.run(None, {"x": X})[0][0], W)
    np.testing.assert_array_equal(sdx.InferenceSession(model(SCALE)).run(None, {"x": X})[0][0], [1, 2, 3])


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "bfloat16"])
def test_initializers_of_types_and_sizes(model, size, dtype):
    dtype = sdx._arrays.dtype_of(sdx._arrays._EXTENDED.get(dtype) or sdx._arrays._NATIVE[dtype])
    code = sdx._arrays.element_type_of(dtype)
    proto = model("m () => (float[N] y) { y = Cast <to = 1> (w) }")
    proto.graph.initializer.append(onnx.helper.make_tensor("w", code, [size], [0] * size))
    array = np.random.default_rng(0).integers(0, 2, size).astype(dtype)
    options = sdx.SessionOptions()
    options.add_initializer("w", value(sdx, array))
    np.testing.assert_array_equal(sdx.InferenceSession(proto, options).run(None, {})[0], array.astype(np.float32))


def test_initializers_of_strings(model):
    proto = model('m () => (string[N] y) { y = Identity(w) }')
    proto.graph.initializer.append(onnx.helper.make_tensor("w", 8, [2], ["a", "b"]))
    given = sdx.OrtValue(np.array(["ü", ""], object))
    options = sdx.SessionOptions()
    options.add_initializer("w", given)
    assert sdx.InferenceSession(proto, options).run(None, {})[0].tolist() == ["ü", ""]


def test_wrong_initializers(model):
    for engine in (ort, sdx):
        with pytest.raises(RuntimeError):
            engine.SessionOptions().add_initializer("w", W)
        options = engine.SessionOptions()
        options.add_initializer("w", value(engine, W))
        with pytest.raises(RuntimeError):
            options.add_initializer("w", value(engine, W))
        with pytest.raises(RuntimeError):
            engine.SessionOptions().add_external_initializers(["a", "b"], [value(engine, W)])


def test_external_initializers(model, tmp_path):
    proto = model(SCALE)
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    own = onnx.ModelProto.FromString(proto.SerializeToString())
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    for engine in (ort, sdx):

        def load(names, array, source):
            options = engine.SessionOptions()
            options.add_external_initializers(names, [value(engine, array)])
            return engine.InferenceSession(source, options)

        path = str(tmp_path / "m.onnx")
        np.testing.assert_array_equal(load(["w"], W, path).run(None, {"x": X})[0][0], W)
        for names, array, source in (
            (["zz"], W, path), (["w"], W[:2], path), (["w"], W.astype(np.int64), path), (["w"], W, own.SerializeToString()),
        ):  # fmt: skip
            with pytest.raises(Exception, match="initializer|Replacement") as failure:
                load(names, array, source)
            assert engine is ort or isinstance(failure.value, sdx.Fail)


def test_sizes_by_denotation(model):
    proto = model("m (float[N, 3] x, float[N, K] z) => (float[N, 3] y, float[N, K] u) { y = Neg(x) u = Neg(z) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    for name, shape in (("BATCH", [4, 3]), ("OTHER", ["N", 3])):
        give = lambda engine, options, name=name: options.add_free_dimension_override_by_denotation(name, 4)
        for engine in (ort, sdx):
            assert both(engine, proto, give).get_inputs()[0].shape == shape
    options = sdx.SessionOptions()
    options.add_free_dimension_override_by_denotation("BATCH", 4)
    session = sdx.InferenceSession(proto, options)
    assert session.get_outputs()[1].shape == [4, "K"] == session.get_inputs()[1].shape
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x, "z": x})[1], -x)
    with pytest.raises(sdx.InvalidArgument, match="dimension 0 must be 4, got 2"):
        session.run(None, {"x": X, "z": X})
    options.add_free_dimension_override_by_denotation("BATCH", -4)
    with pytest.raises(sdx.InvalidArgument, match="'BATCH' cannot have the size -4"):
        sdx.InferenceSession(proto, options)


def test_the_optimised_model_is_saved(model, tmp_path):
    graph = "m (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { a = Identity(x) b = Mul(a, w) c = Dropout(b) y = Add(c, w) }"
    for cached in (False, True):
        options = sdx.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / f"{cached}.onnx")
        session = sdx.InferenceSession(model(graph), options)
        assert session.from_cache == cached
        saved = onnx.load(options.optimized_model_filepath)
        onnx.checker.check_model(saved, full_check=True)
        assert sorted(node.op_type for node in saved.graph.node) == ["Add", "Mul"]
        theirs = ort.InferenceSession(options.optimized_model_filepath)
        np.testing.assert_array_equal(theirs.run(None, {"x": X})[0], session.run(None, {"x": X})[0])
    options.optimized_model_filepath = str(tmp_path / "no" / "folder.onnx")
    with pytest.raises(sdx.Fail, match="folder.onnx"):
        sdx.InferenceSession(model(graph), options)


def test_the_optimised_model_takes_the_place_of_the_model(model, tmp_path):
    """Sessions go on to read the weights of the file that was there."""
    weights = np.arange(300000, dtype=np.float32)
    proto = model("m (float[300000] x) => (float[300000] y) { a = Identity(x) y = Mul(a, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = str(tmp_path / "m.onnx")
    onnx.save(proto, path)
    options = sdx.SessionOptions()
    options.optimized_model_filepath = path
    first = sdx.InferenceSession(path)
    for session in (sdx.InferenceSession(path, options), sdx.InferenceSession(path, options), first):
        np.testing.assert_array_equal(session.run(None, {"x": np.ones_like(weights)})[0], weights)
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Mul"]


POOLS = """
import numpy as np, onnx, sys
import {engine} as engine
proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (float[N] x) => (float[N] y) {{ y = Neg(x) }}')
def load(own):
    options = engine.SessionOptions()
    options.use_per_session_threads = own
    try:
        return engine.InferenceSession(proto.SerializeToString(), options)
    except RuntimeError as problem:
        return None
def again():
    try:
        engine.set_global_thread_pool_sizes(2, 1)
    except Exception as problem:
        return "already been created" in str(problem)
told = [load(False) is None, load(True) is not None, engine.set_global_thread_pool_sizes(2, 1), again(), load(True) is None]
told.append(load(False).run(None, {{"x": np.ones(3, np.float32)}})[0].tolist())
print(told)
"""


def test_a_global_thread_pool():
    answers = []
    for engine in ("onnxruntime", "sardonyx"):
        done = subprocess.run([sys.executable, "-c", POOLS.format(engine=engine)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.splitlines()[-1])
    assert answers[0] == answers[1] == "[True, True, None, True, True, [-1.0, -1.0, -1.0]]"


def test_terminate_from_another_thread(model):
    loop = """m (int64 n, float[K] x) => (float[K] y) {
        one = Constant <value = bool {1}> ()
        y = Loop <body = b (int64 i, bool c, float[K] v) => (bool d, float[K] w) { d = Identity(c) w = Sin(v) }> (n, one, x) }"""
    session = sdx.InferenceSession(model(loop))
    options = sdx.RunOptions()
    told, done = [], threading.Event()
    feed = {"n": np.int64(2**62), "x": np.ones(1000, np.float32)}
    session.run_async(None, feed, lambda *answer: (told.append(answer), done.set()), "mine", options)
    time.sleep(0.1)
    assert not told
    options.terminate = True
    assert done.wait(30) and told[0][0] == [] and told[0][1] == "mine" and "terminate" in told[0][2].lower()


def test_times_of_a_profile(model, tmp_path):
    options = sdx.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    before = time.monotonic_ns()
    session = sdx.InferenceSession(model(SCALE), options)
    begin = time.monotonic_ns()
    session.run(None, {"x": X})
    end = time.monotonic_ns()
    start = session.get_profiling_start_time_ns()
    assert before <= start <= begin
    (run,) = [e for e in json.loads(open(session.end_profiling()).read()) if e["name"] == "model_run"]
    assert begin <= start + 1000 * run["ts"] + 1000 and start + 1000 * (run["ts"] + run["dur"]) <= end + 1000


@pytest.mark.parametrize("engine", [ort, sdx], ids=["onnxruntime", "sardonyx"])
def test_loading_is_cancelled(engine, model):
    options = engine.SessionOptions()
    for _ in range(2):  # ours finds the model in its cache the second time
        options.set_load_cancellation_flag(True)
        kind = getattr(engine, "errors", None) or engine.capi.onnxruntime_pybind11_state
        with pytest.raises(kind.ModelLoadCanceled, match="(?i)cancel"):
            engine.InferenceSession(model(SCALE).SerializeToString(), options)
        options.set_load_cancellation_flag(False)
        engine.InferenceSession(model(SCALE).SerializeToString(), options)
    with pytest.raises(TypeError):
        options.set_load_cancellation_flag("x")


def test_loading_is_cancelled_by_another_thread(model):
    steps = "\n".join(f"t{i + 1} = Softmax <axis = {i % 2}> (t{i})" for i in range(2000))
    long = f"m (float[N, 3] t0) => (float[N, 3] t2000) {{ {steps} }}"
    options = sdx.SessionOptions()
    options.cache = False
    timer = threading.Timer(0.3, options.set_load_cancellation_flag, [True])
    timer.start()
    with pytest.raises(sdx.errors.ModelLoadCanceled, match="interrupted"):
        sdx.InferenceSession(model(long), options)
    timer.join()


@pytest.mark.parametrize("engine", [ort, sdx], ids=["onnxruntime", "sardonyx"])
def test_providers_and_tuning(engine, model):
    options = engine.SessionOptions()
    assert not options.has_providers()
    options.add_provider("CPUExecutionProvider", {})
    assert options.has_providers()
    for wrong in ("CUDAExecutionProvider", "Nothing"):
        with pytest.raises(Exception, match="rovider"):
            options.add_provider(wrong, {})
    session = engine.InferenceSession(model(SCALE).SerializeToString())
    assert session.get_tuning_results() == []
    results = [{"ep": "CPUExecutionProvider", "results": {}, "validators": {}}]
    session.set_tuning_results(results)
    with pytest.raises(RuntimeError, match="does not support TunableOp"):
        session.set_tuning_results(results, error_on_invalid=True)
    session.release_captured_graph()
    with pytest.raises(RuntimeError):
        session.set_ep_dynamic_options({})


def test_run_with_ortvaluevector(model):
    session = sdx.InferenceSession(model(SCALE))
    fetches = []
    session.run_with_ortvaluevector(None, ["x"], [value(sdx, X)], ["y"], fetches, [sdx.OrtDevice.make("cpu", 0)])
    np.testing.assert_array_equal(fetches[0].numpy(), session.run(None, {"x": X})[0])


def test_saving_from_a_thread_with_a_small_stack(model, tmp_path):
    """Models nest deeper than the stack of just any thread."""
    body = "r0 = Neg(x)"
    for i in range(1, 20):
        inner = body
        body = (
            f"r{i} = If (c) <then_branch = t{i} () => (float[N] r{i - 1}) {{ {inner} }}, "
            f"else_branch = e{i} () => (float[N] e{i}) {{ e{i} = Abs(x) }}>"
        )
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    found = []
    old = threading.stack_size(256 * 1024)
    try:
        work = lambda: found.append(sdx.InferenceSession(model(f"m (float[N] x, bool c) => (float[N] r19) {{ {body} }}"), options))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert found and onnx.load(options.optimized_model_filepath).graph.node[-1].op_type == "If"


def test_saved_nodes_have_names_of_their_own(tmp_path):
    """What one node was taken apart into: onnxruntime wants each name once. There are too many channels to fold all."""
    numbers = ", ".join(str(k % 7 + 1) for k in range(1100))
    text = """<ir_version: 10, opset_import: ["" : 21]> m (float[n, 1, 3, 3] x) => (float[n, 1100, 3, 3] y)
    <float[1100, 1, 1, 1] w = {%s}, float[1100] s = {%s}> {
        a = Identity (x)
        c = Conv (a, w)
        y = BatchNormalization <epsilon = 0.001> (c, s, s, s, s)
    }""" % (numbers, numbers)
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"node{i}"
    x = np.random.default_rng(0).standard_normal((2, 1, 3, 3)).astype(np.float32)
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    expected = sdx.InferenceSession(model, options).run(None, {"x": x})[0]
    saved = onnx.load(tmp_path / "saved.onnx")
    names = [node.name for node in saved.graph.node]
    assert "BatchNormalization" not in {node.op_type for node in saved.graph.node}
    assert len(names) == len(set(names)) > 3 and all(names)
    y = ort.InferenceSession(saved.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", ["nonsense", "x86-64", "znver5", "sapphirerapids", "diamondrapids", "neoverse-n1"])
def test_processor(model, cpu):
    """Code for another processor runs where this one can run it, and is refused by name where not."""
    options = sdx.SessionOptions()
    options.cpu = cpu
    try:
        session = sdx.InferenceSession(model(SCALE), options)
    except Exception as error:
        assert re.search("is not known for|cannot run on this one, which lacks", str(error))
        assert cpu != "x86-64" or platform.machine() != "x86_64"
        return
    assert cpu not in ("nonsense", "neoverse-n1" if platform.machine() == "x86_64" else "x86-64")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * [1, 2, 3])
