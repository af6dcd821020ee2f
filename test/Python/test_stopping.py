"""Runs and compilations that are ended before they are done.

Bounds on times are far above what it takes: they tell "at once" from "at its end".
"""

import os
import signal
import threading
import time

import numpy as np
import pytest

import sardonyx as sdx

SOON = 2.0  # seconds
FOR_EVER = (
    "m (float[N] x) => (float[M] y) <int64 m = {9223372036854775807}, bool c = {1}> {"
    " y = Loop <body = b (int64 i, bool ci, float[N] s) => (bool co, float[N] so) { co = Identity(ci) so = Add(s, s) }> (m, c, x) }"
)
MATMUL = "m (float[A,B] x) => (float[A,C] y) { y = MatMul(x, x) }"


def options(threads=1, **attributes):
    made = sdx.SessionOptions()
    made.intra_op_num_threads = threads
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.fixture(params=[1, 2])
def endless(model, request):
    """Runs for ever; the feed takes no memory to speak of."""
    session = sdx.InferenceSession(model(FOR_EVER), options(request.param))
    return lambda run_options=None: session.run(None, {"x": np.zeros(100, np.float32)}, run_options)


@pytest.fixture(params=[1, 2])
def slow(model, request):
    """Runs for many seconds in one kernel."""
    session = sdx.InferenceSession(model(MATMUL), options(request.param))
    x = np.zeros((5000, 5000), np.float32)
    return lambda run_options=None: session.run(None, {"x": x}, run_options)


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def run_interrupted(run, *arguments):
    timer = interrupt_after(0.2)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(*arguments)
    finally:
        timer.cancel()
    assert time.monotonic() - start < SOON


def test_interrupt_ends_a_loop(endless):
    run_interrupted(endless)
    run_interrupted(endless, sdx.RunOptions())


def test_interrupt_ends_a_kernel(slow):
    run_interrupted(slow)


def test_handlers_that_raise_nothing_end_nothing(model):
    session = sdx.InferenceSession(model(FOR_EVER))
    other = sdx.InferenceSession(model("m (float[N] x) => (float[N] y) { y = Neg(x) }"))
    seen = []

    def handler(*_):
        # A handler may run a model itself.
        seen.append(other.run(None, {"x": np.ones(3, np.float32)})[0].sum() == -3)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(sdx.Fail, match="longer than its limit"):
            session.run(None, {"x": np.zeros(3, np.float32)}, limited(timeout=0.5))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) > 2 and all(seen)


def limited(**attributes):
    made = sdx.RunOptions()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_terminate(endless, slow):
    for run in (endless, slow):
        once = sdx.RunOptions()
        timer = threading.Timer(0.2, setattr, (once, "terminate", True))
        timer.start()
        start = time.monotonic()
        with pytest.raises(sdx.Fail, match="the run was terminated"):
            run(once)
        assert time.monotonic() - start < SOON
        assert once.terminate
        # None begins while it is set.
        with pytest.raises(sdx.Fail, match="the run was terminated"):
            run(once)
        timer.join()


def test_terminate_ends_runs_of_other_threads(endless):
    once, said = sdx.RunOptions(), []

    def work():
        try:
            endless(once)
        except sdx.Fail as failure:
            said.append(str(failure))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    once.terminate = True
    for thread in threads:
        thread.join(SOON)
    assert said == ["the run was terminated"] * 3
    once.terminate = False
    once.timeout = 0.01
    with pytest.raises(sdx.Fail, match="longer"):
        endless(once)


def test_time_limit(endless, slow):
    for run in (endless, slow):
        start = time.monotonic()
        with pytest.raises(sdx.Fail, match=r"the run took longer than its limit of 0\.1 s"):
            run(limited(timeout=0.1))
        assert time.monotonic() - start < SOON


def test_time_limit_of_a_program_on_elements(model):
    """One task, whose loops take many seconds."""
    session = sdx.InferenceSession(model("m (float[N,M] x) => (float y) { y = Det(x) }"), options())
    x = np.ones((5000, 5000), np.float32)
    start = time.monotonic()
    with pytest.raises(sdx.Fail, match=r"the run took longer than its limit of 0\.1 s"):
        session.run(None, {"x": x}, limited(timeout=0.1))
    assert time.monotonic() - start < SOON


def test_trip_limit(model):
    graph = (
        "m (int64 n, float[2] x) => (float[2] y) <bool c = {1}> {"
        " y = Loop <body = b (int64 i, bool ci, float[2] s) => (bool co, float[2] so) { co = Identity(ci) so = Add(s, x) }> (n, c, x) }"
    )
    made = model(graph)
    made.graph.node[-1].name = "search"
    session = sdx.InferenceSession(made)
    feed = lambda n: {"n": np.array(n), "x": np.ones(2, np.float32)}
    ten = limited(max_trip_count=10)
    np.testing.assert_array_equal(session.run(None, feed(10), ten)[0], 11)
    with pytest.raises(sdx.Fail, match="search': the loop takes more than the 10 trips"):
        session.run(None, feed(11), ten)
    np.testing.assert_array_equal(session.run(None, feed(1000))[0], 1001)


def test_values_of_run_options(model):
    once = sdx.RunOptions()
    assert (once.terminate, once.timeout, once.max_trip_count) == (False, None, None)
    once.timeout, once.max_trip_count = 5, 2**70
    assert once.timeout == 5 and once.max_trip_count == 2**63 - 1
    once.timeout = once.max_trip_count = None
    assert (once.timeout, once.max_trip_count) == (None, None)
    for wrong in (0, -1, "soon", float("nan"), True):
        with pytest.raises(sdx.InvalidArgument, match="must be a positive number or None"):
            once.timeout = wrong
        with pytest.raises(sdx.InvalidArgument, match="must be a positive number or None"):
            once.max_trip_count = wrong
    once.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = sdx.InferenceSession(model("m (float[N] x) => (float[N] y) { y = Softmax(x) }"))
    before = session.bytes_held
    x = np.ones(100_000, np.float32)
    session.run(None, {"x": x})
    assert session.bytes_held >= x.nbytes
    session.run(None, {"x": x}, once)
    assert session.bytes_held == before


@pytest.fixture
def large(model):
    """Takes a second or more to compile."""
    lines = []
    for i in range(60):
        lines.append(f"s{i} = Softmax <axis = {i % 2}> (x{i}) c{i} = CumSum(s{i}, z) x{i + 1} = MatMul(c{i}, w{i})")
    weights = ", ".join(f"float[{i + 3},{i + 4}] w{i}" for i in range(60))
    graph = f"m (float[N,3] x0, {weights}) => (float[N,63] x60) <int64 z = {{0}}> {{ {' '.join(lines)} }}"
    return model(graph).SerializeToString()


def test_interrupt_ends_compiling(large):
    run_interrupted(sdx.InferenceSession, large, options(cache=False))


def test_time_limit_of_compiling(large, model):
    start = time.monotonic()
    with pytest.raises(sdx.Fail, match=r"compiling the model took longer than its limit of 0\.05 s"):
        sdx.InferenceSession(large, options(cache=False, compile_timeout=0.05))
    assert time.monotonic() - start < SOON
    for wrong in (0, -1, "long"):
        with pytest.raises(sdx.InvalidArgument, match="compile_timeout must be a positive number"):
            sdx.InferenceSession(large, options(compile_timeout=wrong))
    # Nothing of it is left over.
    session = sdx.InferenceSession(model(MATMUL), options(compile_timeout=1000))
    np.testing.assert_array_equal(session.run(None, {"x": np.eye(3, dtype=np.float32)})[0], np.eye(3))
