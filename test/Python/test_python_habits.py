"""What people expect of any Python package: await, logging, pickle, reprs, exceptions of Python's own kinds."""

import asyncio
import collections
import copy
import logging
import pickle
import subprocess
import sys
import types

import numpy as np
import onnx
import pytest

import sardonyx as sdx

GRAPH = "m (float[N, 3] x) => (float[N, 3] y, float[N, 3] z) { hidden = Relu (x) y = Neg (hidden) z = Exp (x) }"
X = np.array([[1, -2, 3]], np.float32)


@pytest.fixture
def path(model, tmp_path):
    onnx.save(model(GRAPH), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


@pytest.fixture
def session(path):
    return sdx.InferenceSession(path)


def test_await(session):
    async def several():
        runs = [session.run_async(["y"], {"x": X * i}) for i in range(8)]
        return [result for (result,) in await asyncio.gather(*runs)]

    for i, result in enumerate(asyncio.run(several())):
        np.testing.assert_array_equal(result, -np.maximum(X * i, 0))


def test_await_raises_what_a_run_raises(session):
    async def fails():
        await session.run_async(None, {"x": np.ones((1, 4), np.float32)})

    with pytest.raises(sdx.InvalidArgument, match="must be 3, got 4"):
        asyncio.run(fails())


LONG = """m (float[2] x, int64 n, bool go) => (float[2] y) {
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Sin(v) }>
}"""


def test_cancelling_a_task_ends_its_run(model):
    """A loop that would go on for hours ends with its task."""
    session = sdx.InferenceSession(model(LONG).SerializeToString())
    feeds = {"x": np.ones(2, np.float32), "n": np.array(10**12), "go": np.array(True)}

    async def cancelled():
        future = session.run_async(None, feeds)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future, 0.3)
        return future

    future = asyncio.run(cancelled())
    with pytest.raises(sdx.Fail):
        future.result(timeout=60)
    # What a caller's options are for is the caller's.
    options = sdx.RunOptions()
    future = session.run_async(None, feeds, run_options=options)
    while not future.running():
        pass
    assert not future.cancel() and not options.terminate
    options.terminate = True
    with pytest.raises(sdx.Fail):
        future.result(timeout=60)


def test_logging(path, caplog, capfd, monkeypatch):
    """Handlers get what a session tells; without any it goes to stderr."""
    monkeypatch.setattr(sdx._log, "_logger", logging.getLogger("sardonyx"))
    with caplog.at_level(logging.INFO, logger="sardonyx"):
        sdx.InferenceSession(path).run(None, {"x": X})
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "sardonyx"]
    assert [level for level, _ in told] == ["INFO", "INFO"]
    assert told[0][1].startswith("[load] ") and told[1][1].startswith("[run] took ")
    assert "took" not in capfd.readouterr().err
    caplog.clear()
    sdx.InferenceSession(path).run(None, {"x": X})
    assert not caplog.records
    options = sdx.SessionOptions()
    options.log_severity_level, options.logid = 1, "mine"
    sdx.InferenceSession(path, options)
    assert [record.getMessage()[:12] for record in caplog.records] == ["[mine, load]"]
    program = f"""
import sardonyx
options = sardonyx.SessionOptions()
options.log_severity_level = 1
sardonyx.InferenceSession({path!r}, options)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "[I:sardonyx:, load]" in done.stderr


@pytest.mark.parametrize("made_by", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_sessions_can_be_pickled(path, made_by):
    options = sdx.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("N", 1)
    made = made_by(sdx.InferenceSession(path, options, ["CPUExecutionProvider"]))
    np.testing.assert_array_equal(made.run(["y"], {"x": X})[0], -np.maximum(X, 0))
    assert made.get_session_options().intra_op_num_threads == 1 and made.get_inputs()[0].shape == [1, 3]


def test_what_cannot_be_pickled_says_so(path, model):
    with pytest.raises(TypeError, match="a model in memory"):
        pickle.dumps(sdx.InferenceSession(model(GRAPH).SerializeToString()))
    options = sdx.SessionOptions()
    options.custom_ops.register_op("mine", "Twice", lambda x: 2 * x)
    with pytest.raises(TypeError, match="custom operators"):
        pickle.dumps(options)


def test_built_models_can_be_pickled(path, tmp_path):
    sdx.build(path, tmp_path / "m.so")
    made = pickle.loads(pickle.dumps(sdx.load(tmp_path / "m.so", threads=1)))
    np.testing.assert_array_equal(made.run(["y"], {"x": X})[0], -np.maximum(X, 0))


def test_options_can_be_pickled():
    options = sdx.SessionOptions()
    options.numerics, options.memory_limit = "exact", 10**9
    options.add_session_config_entry("session.load_model_format", "ONNX")
    made = pickle.loads(pickle.dumps(options))
    assert made.numerics == "exact" and made.memory_limit == 10**9
    assert made.get_session_config_entry("session.load_model_format") == "ONNX"
    made.set_load_cancellation_flag(True)  # its own
    run = sdx.RunOptions()
    run.timeout, run.max_trip_count, run.terminate, run.logid = 2.5, 7, True, "mine"
    made = pickle.loads(pickle.dumps(run))
    assert (made.timeout, made.max_trip_count, made.terminate, made.logid) == (2.5, 7, False, "mine")


def test_reprs(session, path):
    assert repr(session) == (
        f"<InferenceSession of {path!r}: x tensor(float) ['N', 3] -> y tensor(float) ['N', 3], z tensor(float) ['N', 3]>"
    )
    options = sdx.SessionOptions()
    assert repr(options) == "SessionOptions()"
    options.intra_op_num_threads = 2
    assert repr(options) == "SessionOptions(intra_op_num_threads=2)"
    run = sdx.RunOptions()
    run.logid = "mine"
    assert repr(run) == "RunOptions(logid='mine')"
    assert repr(sdx.OrtValue.ortvalue_from_numpy(X)) == "OrtValue(tensor(float) [1, 3] on cpu)"
    assert "graph_name='m'" in repr(session.get_modelmeta())


def test_names_that_do_not_exist(session):
    """They are errors of arguments, as in onnxruntime, and KeyErrors, as in Python."""
    for call in (lambda: session.run(None, {"X": X}), lambda: session.run(["Y"], {"x": X})):
        with pytest.raises(sdx.errors.UnknownName, match="did you mean") as caught:
            call()
        assert isinstance(caught.value, (KeyError)) and isinstance(caught.value, sdx.InvalidArgument)
        assert str(caught.value).startswith("the model has no ")


def test_inputs_are_of_anything_like_a_dict(session):
    """Tokenizers give such classes."""
    np.testing.assert_array_equal(session.run(["y"], collections.UserDict(x=X))[0], -np.maximum(X, 0))
    np.testing.assert_array_equal(session.run(["y"], types.MappingProxyType({"x": X}))[0], -np.maximum(X, 0))


def test_wrong_types(session, path, tmp_path):
    for call in (
        lambda: session.run(None, [X]),
        lambda: session.run("y", {"x": X}),
        lambda: session.run([1, []], {"x": X}),
        lambda: session.run(None, {"x": X}, {"timeout": 1}),
        lambda: session.run_async("y", {"x": X}),
        lambda: sdx.InferenceSession(5),
        lambda: sdx.InferenceSession(path, {"cache": False}),
        lambda: sdx.compile(path, to=5),
        lambda: sdx.compile(path, options={}),
        lambda: sdx.inspect(path, dims=["N"]),
        lambda: sdx.inspect(path, dims={"N": "many"}),
        lambda: sdx.build(path, tmp_path / "m.so", dims={3: 1}),
        lambda: sdx.SessionOptions().add_free_dimension_override_by_name(3, 3),
        lambda: sdx.SessionOptions().add_free_dimension_override_by_denotation(None, 3),
        lambda: sdx.SessionOptions().set_input_shape(0, [1]),
        lambda: setattr(sdx.SessionOptions(), "custom_ops", []),
        lambda: setattr(sdx.SessionOptions(), "outputs", "y"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert "\n" not in str(caught.value) and "_sardonyx" not in str(caught.value)


def test_outputs_of_choice(path):
    options = sdx.SessionOptions()
    options.outputs = ["hidden", "y"]
    session = sdx.InferenceSession(path, options)
    assert [value.name for value in session.get_outputs()] == ["hidden", "y"]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], np.maximum(X, 0))
    options.outputs = ["hiden"]
    with pytest.raises(sdx.InvalidGraph, match="did you mean hidden"):
        sdx.InferenceSession(path, options)
