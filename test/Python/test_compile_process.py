"""`compile = "process"`: another process compiles, and this one finds it in the cache."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx
from sardonyx import _compile_process

rng = np.random.default_rng(7)
X = rng.standard_normal((2, 16), np.float32)
W = rng.standard_normal((16, 8), np.float32)


def product(nodes=None, dims=(2, 16), **model):
    graph = helper.make_graph(
        nodes or [helper.make_node("MatMul", ["x", "w"], ["y"], name="times")],
        "m",
        [helper.make_tensor_value_info("x", 1, dims)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(W, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], **model)
    made.ir_version = 10
    return made


def options(tmp_path, **attributes):
    made = sdx.SessionOptions()
    made.intra_op_num_threads, made.cache_dir, made.compile = 1, tmp_path / "cache", "process"
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def no_process(monkeypatch):
    def popen(*_, **__):
        raise AssertionError("a process is started")

    monkeypatch.setattr(subprocess, "Popen", popen)


def test_a_process_compiles_and_the_cache_has_it(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    onnx.save(product(), path)
    session = sdx.InferenceSession(path, options(tmp_path))
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W, rtol=1e-5, atol=1e-5)
    assert not session.from_cache
    assert "process" in session.timings and "llvm" not in session.timings
    monkeypatch.setattr(_compile_process, "_ask", lambda *_: AssertionError("another process is asked"))
    again = sdx.InferenceSession(path, options(tmp_path))
    assert again.from_cache and "process" not in again.timings
    assert sdx.InferenceSession(path, options(tmp_path, compile="wait")).from_cache
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], again.run(None, {"x": X})[0])


def test_without_a_cache_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_compile_process.tempfile, "tempdir", None)
    session = sdx.InferenceSession(product().SerializeToString(), options(tmp_path, cache=False))
    assert not list(tmp_path.iterdir())
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W, rtol=1e-5, atol=1e-5)
    assert not session.from_cache and "llvm" not in session.timings


def test_options_count_there_too(tmp_path):
    open_model = product(dims=("n", 16))
    given = options(tmp_path, outputs=["y"])
    given.add_free_dimension_override_by_name("n", 2)
    given.add_initializer("w", sdx.OrtValue.ortvalue_from_numpy(2 * W))
    session = sdx.InferenceSession(open_model, given)
    assert session.get_inputs()[0].shape == [2, 16] and "llvm" not in session.timings
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ (2 * W), rtol=1e-5, atol=1e-5)


def test_external_data_in_a_folder_and_in_memory(tmp_path):
    onnx.save(product(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    session = sdx.InferenceSession(tmp_path / "m.onnx", options(tmp_path))
    given = options(tmp_path)
    data = (tmp_path / "w.bin").read_bytes()
    given.add_external_initializers_from_files_in_memory(["w.bin"], [data], [len(data)])
    from_memory = sdx.InferenceSession((tmp_path / "m.onnx").read_bytes(), given)
    for made in (session, from_memory):
        assert "llvm" not in made.timings
        np.testing.assert_allclose(made.run(None, {"x": X})[0], X @ W, rtol=1e-5, atol=1e-5)


def test_what_is_wrong_with_a_model_is_raised_here(tmp_path):
    wrong = product([helper.make_node("MatMul", ["x", "nothing"], ["y"], name="times")])
    with pytest.raises(sdx.InvalidGraph) as there:
        sdx.InferenceSession(wrong, options(tmp_path))
    with pytest.raises(sdx.InvalidGraph) as here:
        sdx.InferenceSession(wrong, options(tmp_path, compile="wait"))
    assert str(there.value) == str(here.value)
    unknown = product([helper.make_node("Mystery", ["x"], ["y"], domain="no.such")])
    unknown.opset_import.append(helper.make_opsetid("no.such", 1))
    with pytest.raises(sdx.NotImplemented, match="Mystery"):
        sdx.InferenceSession(unknown, options(tmp_path))
    with pytest.raises(sdx.NoSuchFile):
        sdx.InferenceSession(tmp_path / "none.onnx", options(tmp_path))
    with pytest.raises(sdx.Fail, match="time limit|timeout|longer"):
        sdx.InferenceSession(product(), options(tmp_path, compile_timeout=1e-6))


@pytest.mark.parametrize(
    "does, tells",
    [
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV$"),
        ("import sys; print('LLVM ERROR: out of memory', file=sys.stderr); sys.exit(3)", "status 3: LLVM ERROR: out of memory"),
        ("pass", "ended with status 0"),
    ],
)
def test_a_process_that_dies_is_an_error(tmp_path, monkeypatch, does, tells):
    monkeypatch.setattr(_compile_process, "_BEGIN", does)
    with pytest.raises(sdx.Fail, match=tells):
        sdx.InferenceSession(product(), options(tmp_path))


def test_loading_can_be_cancelled(tmp_path, monkeypatch):
    monkeypatch.setattr(_compile_process, "_BEGIN", "import time; time.sleep(60)")
    given = options(tmp_path)
    timer = threading.Timer(0.3, given.set_load_cancellation_flag, [True])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(sdx.errors.ModelLoadCanceled):
        sdx.InferenceSession(product(), given)
    assert time.monotonic() - begin < 20
    timer.join()


def test_what_another_process_cannot_have_is_refused(tmp_path, monkeypatch):
    given = options(tmp_path)
    ops = sdx.CustomOps()
    twice = [helper.make_node("Add", ["a", "a"], ["b"])]
    ops.register_functions(helper.make_function("my", "Twice", ["a"], ["b"], twice, [helper.make_opsetid("", 22)]))
    given.custom_ops = ops
    with pytest.raises(sdx.InvalidArgument, match="another process.*custom operators"):
        sdx.InferenceSession(product(), given)
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(sdx.Fail, match="sys.executable"):
        sdx.InferenceSession(product(), options(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(sdx.Fail, match="cannot be started"):
        sdx.InferenceSession(product(), options(tmp_path))


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(sdx.InvalidArgument, match="others can write"):
        sdx.InferenceSession(product(), options(tmp_path))


def test_runs_of_many_threads_each_have_their_process(tmp_path):
    made = [None] * 3

    def load(i):
        model = product(doc_string=str(i))
        made[i] = sdx.InferenceSession(model.SerializeToString(), options(tmp_path))

    threads = [threading.Thread(target=load, args=[i]) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in made:
        np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ W, rtol=1e-5, atol=1e-5)


def test_the_compilers_memory_is_not_this_process(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(product(), path)
    # ru_maxrss counts what this process had, from which that one is made.
    program = (
        "import re, sys, sardonyx; o = sardonyx.SessionOptions(); o.compile = sys.argv[2]; o.cache = False;"
        "s = sardonyx.InferenceSession(sys.argv[1], o); print(re.search('VmHWM: *(.*) kB', open('/proc/self/status').read())[1])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    peak = {}
    for way in ("wait", "process"):
        command = [sys.executable, "-c", program, path, way]
        peak[way] = int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    assert peak["process"] < 0.85 * peak["wait"]
