"""Scan results of Loop whose elements have open sizes, or whose number is not known before."""

import numpy as np
import pytest
from onnx import parser

import sardonyx as sdx


def load(graph):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> m {graph}')
    options = sdx.SessionOptions()
    options.cache, options.memory_limit = False, 1 << 26
    return sdx.InferenceSession(model.SerializeToString(), options)


def run(session, *feeds):
    return session.run(None, {a.name: v for a, v in zip(session.get_inputs(), feeds)})


OPEN = """(float[A,B] x, int64 n) => (float[N,A,B] ys, float[A,B] last) {
  yes = Constant <value = bool {1}> ()
  last, ys = Loop (n, yes, x) <body = b (int64 i, bool go, float[P,Q] s) => (bool go2, float[P,Q] t, float[P,Q] y) {
    go2 = Identity(go)
    f = Cast <to = 1> (i)
    t = Add(s, f)
    y = Mul(t, s)
  }>
}"""


@pytest.mark.parametrize("trips", [1, 2, 16, 17, 100])
def test_open_elements(trips):
    session = load(OPEN)
    for shape in [(2, 3), (1, 1), (5, 0), (7, 4)]:
        x = np.random.default_rng(trips).random(shape, np.float32)
        ys, last = run(session, x, np.array(trips))
        want, s = [], x
        for i in range(trips):
            t = s + np.float32(i)
            want.append(t * s)
            s = t
        np.testing.assert_allclose(ys, np.stack(want), rtol=1e-5)
        np.testing.assert_allclose(last, s, rtol=1e-5)


def test_no_trips():
    ys, last = run(load(OPEN), np.ones((2, 3), np.float32), np.array(0))
    assert ys.ndim == 3 and len(ys) == 0
    np.testing.assert_array_equal(last, np.ones((2, 3)))


NO_COUNT = """(float[A] x, float limit) => (float[N,A] ys) {
  yes = Constant <value = bool {1}> ()
  last, ys = Loop ("", yes, x) <body = b (int64 i, bool go, float[P] s) => (bool go2, float[P] t, float[P] y) {
    one = Constant <value = float {1}> ()
    t = Add(s, one)
    y = Identity(s)
    first = ReduceMax <keepdims = 0> (t)
    go2 = Less(first, limit)
  }>
}"""


@pytest.mark.parametrize("trips", [1, 15, 16, 33, 300])
def test_no_trip_count(trips):
    session = load(NO_COUNT)
    for size in (1, 5):
        [ys] = run(session, np.zeros(size, np.float32), np.array(trips, np.float32))
        np.testing.assert_array_equal(ys, np.repeat(np.arange(trips, dtype=np.float32)[:, None], size, 1))


@pytest.mark.parametrize("huge", [2**62, 2**63 - 1])
def test_huge_trip_count(huge):
    """A loop that its condition ends needs no room for the trips that it may make."""
    graph = OPEN.replace("go2 = Identity(go)", "three = Constant <value = int64 {3}> () go2 = Less(i, three)")
    ys, _ = run(load(graph), np.ones((2, 2), np.float32), np.array(huge))
    assert ys.shape == (4, 2, 2)


def test_elements_that_differ():
    graph = """(float[A] x, int64 n) => (float[N,K] ys) {
      yes = Constant <value = bool {1}> ()
      ys = Loop (n, yes) <body = b (int64 i, bool go) => (bool go2, float[K] y) {
        go2 = Identity(go)
        axis = Constant <value = int64[1] {0}> ()
        zero = Constant <value = int64[1] {0}> ()
        end = Unsqueeze(i, axis)
        y = Slice(x, zero, end)
      }>
    }"""
    session = load(graph)
    x = np.ones(4, np.float32)
    assert run(session, x, np.array(1))[0].shape == (1, 0)
    with pytest.raises(Exception, match="shapes that do not fit together"):
        run(session, x, np.array(3))


def test_lists_are_freed():
    """Each iteration makes another list; two of them are there at once."""
    session = load(NO_COUNT)
    [ys] = run(session, np.zeros(1000, np.float32), np.array(2000, np.float32))
    assert ys.shape == (2000, 1000)
