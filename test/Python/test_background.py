"""`compile = "background"`: plain code first, and the rest when a thread has compiled it."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx


def convolutions(channels, count=6):
    """Convolutions of different sizes, so that there is something to compile."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for i in range(count):
        size = channels + 16 * i
        w = rng.standard_normal((size, 3 if i == 0 else size - 16, 3, 3), np.float32) / size
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
        value = f"y{i}"
    graph = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info("x", 1, [1, 3, 20, 20])],
        [helper.make_tensor_value_info(value, 1, [1, channels + 16 * (count - 1), 20, 20])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    model.ir_version = 10
    return model


X = np.random.default_rng(1).standard_normal((1, 3, 20, 20), np.float32)


def options(tmp_path, **attributes):
    made = sdx.SessionOptions()
    made.intra_op_num_threads, made.cache_dir = 1, tmp_path / "cache"
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def background(tmp_path, **attributes):
    return options(tmp_path, compile="background", **attributes)


def test_both_codes_give_the_results_of_the_model(tmp_path):
    model = convolutions(32).SerializeToString()
    session = sdx.InferenceSession(model, background(tmp_path))
    del model  # bytes need not outlive the call
    (plain,) = session.run(None, {"x": X})
    assert session.wait_for_compile()
    (tuned,) = session.run(None, {"x": X})
    waited = sdx.InferenceSession(convolutions(32).SerializeToString(), options(tmp_path, cache=False))
    (expected,) = waited.run(None, {"x": X})
    assert waited.wait_for_compile(0)
    np.testing.assert_array_equal(tuned, expected)
    np.testing.assert_allclose(plain, expected, rtol=1e-4, atol=1e-5)
    assert [i.shape for i in session.get_inputs()] == [[1, 3, 20, 20]]


def test_the_cache_has_what_was_compiled_behind(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(convolutions(32), path)
    first = sdx.InferenceSession(path, background(tmp_path))
    assert not first.from_cache
    assert first.wait_for_compile()
    again = sdx.InferenceSession(path, background(tmp_path))
    assert again.from_cache and again.wait_for_compile(0)
    assert sdx.InferenceSession(path, options(tmp_path)).from_cache
    np.testing.assert_array_equal(first.run(None, {"x": X})[0], again.run(None, {"x": X})[0])


def test_threads_run_while_the_code_changes(tmp_path):
    session = sdx.InferenceSession(convolutions(32).SerializeToString(), background(tmp_path))
    (reference,) = session.run(None, {"x": X})
    stop, wrong, runs = threading.Event(), [], []

    def work():
        while not stop.is_set():
            (y,) = session.run(None, {"x": X})
            runs.append(1)
            if not np.allclose(y, reference, rtol=1e-4, atol=1e-5):
                wrong.append(y)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert session.wait_for_compile()
    counted = len(runs)
    while len(runs) < counted + 10:
        time.sleep(0.01)
    stop.set()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_session_goes_while_it_is_compiled(tmp_path):
    for i in range(3):
        session = sdx.InferenceSession(convolutions(48 + i).SerializeToString(), background(tmp_path))
        del session
        gc.collect()
    session = sdx.InferenceSession(convolutions(32).SerializeToString(), background(tmp_path))
    assert session.wait_for_compile()


def test_the_process_ends_while_it_compiles(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(convolutions(32, count=10), path)
    program = f"""
import sardonyx as sdx
options = sdx.SessionOptions()
options.compile, options.cache = "background", False
session = sdx.InferenceSession({str(path)!r}, options)
print(session.wait_for_compile(0))
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "False\n"


def test_what_keeps_the_rest_from_being_compiled_is_told(tmp_path, capfd):
    """Weights of both codes do not fit the limit at a time."""
    model = convolutions(128).SerializeToString()
    plain = sdx.InferenceSession(model, options(tmp_path, cache=False))
    plain.run(None, {"x": X})
    limit = int(plain.bytes_held * 1.5)
    session = sdx.InferenceSession(model, background(tmp_path, cache=False, memory_limit=limit))
    with pytest.raises(Exception, match="memory"):
        session.wait_for_compile()
    (y,) = session.run(None, {"x": X})
    np.testing.assert_allclose(y, plain.run(None, {"x": X})[0], rtol=1e-4, atol=1e-5)
    assert "the model goes on by code that is not optimised" in capfd.readouterr().err


def test_refuses_what_no_model_is(tmp_path):
    with pytest.raises(sdx.errors.InvalidArgument, match="compile"):
        sdx.InferenceSession(convolutions(8).SerializeToString(), options(tmp_path, compile="later"))
    with pytest.raises(sdx.errors.InvalidProtobuf):
        sdx.InferenceSession(b"no model", background(tmp_path))


def test_what_is_profiled_waits(tmp_path):
    made = background(tmp_path, enable_profiling=True, profile_file_prefix=str(tmp_path / "profile"))
    session = sdx.InferenceSession(convolutions(8, count=2).SerializeToString(), made)
    assert session.wait_for_compile(0)
    session.run(None, {"x": X})
    assert "conv" in open(session.end_profiling()).read()


def test_open_ranks_and_sizes(tmp_path, model):
    session = sdx.InferenceSession(model("m (float x) => (float y) { y = Add(x, x) }"), background(tmp_path))
    open_session = sdx.InferenceSession(model("m (float[N] x) => (float[N] y) { y = Add(x, x) }"), background(tmp_path))
    for waits in (False, True):
        if waits:
            assert open_session.wait_for_compile()
        for size in (1, 7):
            x = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(open_session.run(None, {"x": x})[0], 2 * x)
    np.testing.assert_array_equal(session.run(None, {"x": np.float32(3)})[0], 6)
