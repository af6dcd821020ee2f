"""Processes that end, fork or drop sessions while others run them.

Each script runs in a process of its own: it must end by itself, with status 0 and without a word.
"""

import subprocess
import sys
import textwrap

import pytest

PREAMBLE = """
import os, signal, sys, threading, time
import numpy as np
import sardonyx as sdx
from onnx import parser

def model(graph):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}').SerializeToString()

def options(threads=2, cache=True):
    made = sdx.SessionOptions()
    made.intra_op_num_threads, made.cache = threads, cache
    return made

SHORT = model("m (float[A,B] x) => (float[A,B] y) { s = Softmax(x) y = MatMul(s, x) }")
FOR_EVER = model(
    "m (float[N] x) => (float[M] y) <int64 m = {9223372036854775807}, bool c = {1}> {"
    " y = Loop <body = b (int64 i, bool ci, float[N] s) => (bool co, float[N] so) { co = Identity(ci) so = Add(s, s) }> (m, c, x) }")
X = np.ones((64, 64), np.float32)

def check(session):
    (y,) = session.run(None, {"x": X})
    np.testing.assert_allclose(y, 1, rtol=1e-5)

def repeat(session):
    while True:
        check(session)

def wait_for(child):
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status  # of a signal, minus its number

def start(target, *arguments, count=4):
    for _ in range(count):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    time.sleep(0.1)
"""


def run(script, times=1):
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_exit_while_threads_run():
    run(
        """
        start(repeat, sdx.InferenceSession(SHORT, options()))
        """,
        times=3,
    )


def test_exit_while_threads_run_for_ever():
    run(
        """
        session = sdx.InferenceSession(FOR_EVER, options())
        start(session.run, None, {"x": np.zeros(100, np.float32)})
        """,
        times=3,
    )


def test_exit_while_threads_import():
    """The first thread that needs the compiler imports it."""
    for delay in (0, 0.02, 0.05, 0.1):
        run(
            f"""
            def load():
                try:
                    sdx.InferenceSession
                except sdx.Fail:
                    pass  # the process is ending
            threading.Thread(target=load, daemon=True).start()
            time.sleep({delay})
            """
        )


def test_exit_while_threads_load():
    run(
        """
        def load():
            try:
                while True:
                    sdx.InferenceSession(SHORT, options(cache=False))
            except sdx.Fail:
                pass  # the process is ending
        start(load, count=2)
        """,
        times=3,
    )


@pytest.mark.parametrize("way", ["os._exit(0)", "sys.exit()", "raise SystemExit"])
def test_exit_in_other_ways(way):
    run(
        f"""
        start(repeat, sdx.InferenceSession(SHORT, options()))
        {way}
        """
    )


def test_exit_of_a_thread():
    run(
        """
        session = sdx.InferenceSession(SHORT, options())
        def work():
            check(session)
            sys.exit()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        check(session)
        """
    )


def test_interrupt_while_a_thread_runs():
    run(
        """
        session = sdx.InferenceSession(SHORT, options())
        done = []
        def work():
            for _ in range(300): check(session)
            done.append(1)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            thread.join()
        except KeyboardInterrupt:
            thread.join()
        assert done
        check(session)
        """
    )


def test_fork_while_threads_run():
    run(
        """
        import warnings
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks in such a process
        session = sdx.InferenceSession(SHORT, options())
        start(repeat, session)
        for i in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                check(session)
                other = sdx.InferenceSession(SHORT, options(cache=i % 2 == 0))
                check(other)
                del other
                os._exit(0)
            wait_for(child)
        check(session)
        """
    )


def test_fork_while_threads_load():
    run(
        """
        import warnings
        warnings.simplefilter("ignore")
        session = sdx.InferenceSession(SHORT, options())
        def load():
            try:
                while True:
                    sdx.InferenceSession(SHORT, options(cache=False))
            except sdx.Fail:
                pass  # the process is ending
        start(load, count=2)
        for i in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                check(session)
                check(sdx.InferenceSession(SHORT, options()))  # is in the cache
                try:
                    check(sdx.InferenceSession(SHORT, options(cache=False)))
                except sdx.Fail as failure:
                    assert "forked" in str(failure)
                os._exit(0)
            wait_for(child)
            time.sleep(0.01)
        """
    )


def test_children_outlive_their_parent():
    run(
        """
        import multiprocessing
        def work(queue):
            check(sdx.InferenceSession(SHORT, options()))
            queue.put(1)
        check(sdx.InferenceSession(SHORT, options()))
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=work, args=(queue,)) for _ in range(3)]
        for child in children: child.start()
        assert [queue.get(timeout=60) for _ in children] == [1] * 3
        for child in children: child.join()
        """
    )


def test_sessions_are_dropped_while_they_run():
    run(
        """
        for _ in range(10):
            holder = [sdx.InferenceSession(SHORT, options())]
            failed = []
            def work():
                try:
                    session = holder[0]
                    for _ in range(20): check(session)
                except IndexError:
                    pass
                except BaseException as failure:
                    failed.append(failure)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads: thread.start()
            holder.clear()
            for thread in threads: thread.join()
            assert not failed
        """
    )


def test_a_cache_folder_that_others_can_write(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    run(
        f"""
        import warnings
        os.environ["SARDONYX_CACHE_DIR"] = {str(tmp_path / "open")!r}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            session = sdx.InferenceSession(SHORT, options())
        assert len(said) == 1 and "others can write to it" in str(said[0].message), said
        check(session)
        assert not os.listdir({str(tmp_path / "open")!r})
        chosen = options()
        chosen.cache_dir = {str(tmp_path / "open")!r}
        try:
            sdx.InferenceSession(SHORT, chosen)
        except sdx.InvalidArgument as failure:
            assert "others can write to it" in str(failure)
        else:
            raise AssertionError
        """
    )


@pytest.mark.parametrize("home", ["", "/nonexistent/home", "/proc/self"])
def test_a_home_that_cannot_be_written(home):
    run(
        f"""
        for name in ("SARDONYX_CACHE_DIR", "XDG_CACHE_HOME"):
            os.environ.pop(name, None)
        os.environ["HOME"] = {home!r}
        check(sdx.InferenceSession(SHORT, options()))
        """
    )


@pytest.mark.parametrize("threads", [-1, 4097, 2**31, 10**9, 2**32, 2**64])
def test_absurd_counts_of_threads(threads):
    run(
        f"""
        try:
            sdx.InferenceSession(SHORT, options({threads}))
        except sdx.InvalidArgument as failure:
            assert "intra_op_num_threads must be from 0 to 4096, got {threads}" == str(failure)
        except TypeError as failure:
            assert {threads} >= 2**31 and "takes an int of 32 bits, got {threads}" in str(failure)
        else:
            raise AssertionError
        check(sdx.InferenceSession(SHORT, options(4096)))
        """
    )


def test_exit_while_an_async_run_goes_on_for_ever():
    run(
        """
        session = sdx.InferenceSession(FOR_EVER, options())
        session.run_async(None, {"x": np.zeros(100, np.float32)})
        time.sleep(0.1)
        """,
        times=3,
    )
