"""`run_async`: futures and onnxruntime's callbacks."""

import asyncio
import logging
import os
import threading
import weakref

import numpy as np
import pytest
from onnx import parser

import sardonyx as sdx

SUM = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n] x, float[k] y) => (float[m] sum, float[n] twice) { sum = Add(x, y) twice = Add(x, x) }"""


@pytest.fixture
def session():
    options = sdx.SessionOptions()
    options.cache = False
    return sdx.InferenceSession(parser.parse_model(SUM), options)


def feeds(value, size=5):
    return {"x": np.full(size, value, np.float32), "y": np.ones(size, np.float32)}


def test_results_come_with_the_future(session):
    futures = [session.run_async(None, feeds(i)) for i in range(50)]
    for i, future in enumerate(futures):
        total, twice = future.result(timeout=60)
        assert (total == i + 1).all() and (twice == 2 * i).all()
    (twice,) = session.run_async(["twice"], feeds(4)).result(timeout=60)
    assert (twice == 8).all()


def test_a_callback_as_onnxruntime_calls_it(session):
    told, done = [], threading.Event()

    def callback(results, user_data, error):
        told.append((results, user_data, error, threading.current_thread()))
        done.set()

    assert session.run_async(["sum"], feeds(2), callback, "mine").result(timeout=60)
    assert done.wait(60)
    ((results, user_data, error, _),) = told
    assert (results[0] == 3).all() and user_data == "mine" and error == ""


def test_a_run_that_fails(session):
    wrong = {"x": np.ones(3, np.float32), "y": np.ones(4, np.float32)}
    told, done = [], threading.Event()
    future = session.run_async(None, wrong, lambda *answer: (told.append(answer), done.set()), 7)
    with pytest.raises(sdx.Fail):
        future.result(timeout=60)
    assert done.wait(60)
    ((results, user_data, error),) = told
    assert results == [] and user_data == 7 and error == str(future.exception())


def test_wrong_names_are_told_at_once(session):
    with pytest.raises(sdx.InvalidArgument, match="no input 'z'"):
        session.run_async(None, feeds(1) | {"z": np.ones(1, np.float32)})
    with pytest.raises(sdx.InvalidArgument, match="no output 'z'"):
        session.run_async(["z"], feeds(1))


def test_a_callback_that_raises_is_logged(session, caplog):
    def callback(results, user_data, error):
        raise ValueError("the callback's own")

    with caplog.at_level(logging.ERROR):
        future = session.run_async(None, feeds(1), callback)
        future.result(timeout=60)
        assert session.run_async(None, feeds(1)).result(timeout=60)  # runs go on
        for _ in range(1000):
            if "the callback's own" in caplog.text:
                break
            threading.Event().wait(0.01)
    assert "the callback's own" in caplog.text


def test_awaited(session):
    async def both():
        runs = [session.run_async(["sum"], feeds(i)) for i in (1, 2)]
        return await asyncio.gather(*map(asyncio.wrap_future, runs))

    first, second = asyncio.run(both())
    assert (first[0] == 2).all() and (second[0] == 3).all()


def test_nothing_is_kept(session):
    array = np.full(5, 1, np.float32)
    seen = weakref.ref(array)
    session.run_async(None, {"x": array, "y": array}).result(timeout=60)
    del array
    for _ in range(1000):
        if seen() is None:
            break
        threading.Event().wait(0.01)
    assert seen() is None


def test_in_a_forked_child(session):
    session.run_async(None, feeds(1)).result(timeout=60)
    child = os.fork()
    if child == 0:
        total, _ = session.run_async(None, feeds(3)).result(timeout=60)
        os._exit(0 if (total == 4).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
