"""Random operators: with a seed numpy.random.RandomState's numbers, without one others each time."""

import numpy as np
import pytest
from graphs import load, run

import sardonyx as sdx


@pytest.mark.parametrize("seed", [0, 7, 4294967295])
def test_uniform_is_numpys(seed):
    session = load(f"() => (double[a, b] y) {{ y = RandomUniform<shape = [50, 20], seed = {seed}.0, low = -2.0, high = 3.0, dtype = 11>() }}")
    seed = int(np.float32(seed)) if np.float32(seed) < 2**32 else int(np.float32(seed).view(np.uint32))
    want = np.random.RandomState(seed).uniform(-2, 3, (50, 20))
    for _ in range(2):
        np.testing.assert_allclose(run(session)[0], want, rtol=1e-15, atol=1e-15)


def test_like_takes_shape_and_type():
    session = load("(float16[n, m] x) => (float16[n, m] y) { y = RandomUniformLike<seed = 3.0>(x) }")
    for shape in [(3, 4), (0, 2), (1, 1)]:
        want = np.random.RandomState(3).uniform(0, 1, shape).astype(np.float16)
        got = run(session, np.zeros(shape, np.float16))[0]
        assert got.dtype == np.float16
        np.testing.assert_array_equal(got, want)
    session = load("(int64[n] x) => (float[n] y) { y = RandomNormalLike<seed = 3.0, dtype = 1>(x) }")
    assert run(session, np.zeros(5, np.int64))[0].shape == (5,)


def test_normal_is_normal():
    session = load("() => (float[a] y) { y = RandomNormal<shape = [200000], seed = 1.0, mean = 3.0, scale = 2.0>() }")
    z = (run(session)[0].astype(np.float64) - 3) / 2
    assert np.isfinite(z).all()
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert abs((z**power).mean() - moment) < 0.05
    assert abs((z < 1).mean() - 0.8413) < 0.005


@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal"])
def test_without_a_seed_each_run_differs(op):
    session = load(f"() => (float[a] y, float[a] z) {{ y = {op}<shape = [100]>() z = {op}<shape = [100]>() }}")
    y, z = run(session)
    again = run(session)[0]
    assert (y != z).any() and (y != again).any()


def test_multinomial_draws_by_weight():
    weights = np.array([[0.1, 0.2, 0.7], [1, 0, 0], [0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        logs = (np.log(weights) + 5).astype(np.float32)
    session = load("(float[n, c] x) => (int32[n, s] y) { y = Multinomial<sample_size = 20000, seed = 5.0>(x) }")
    y = run(session, logs)[0]
    assert y.shape == (3, 20000)
    for row, want in zip(y, weights):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / len(row), want, atol=0.015)
    with pytest.raises(sdx.Fail, match="no classes"):
        run(session, np.zeros((2, 0), np.float32))


def test_bernoulli_draws_by_probability():
    session = load("(float[n] p) => (bool[n] y) { y = Bernoulli<seed = 2.0, dtype = 9>(p) }")
    p = np.repeat(np.array([0, 0.25, 1], np.float32), 20000)
    y = run(session, p)[0].reshape(3, -1).mean(1)
    np.testing.assert_allclose(y, [0, 0.25, 1], atol=0.015)


@pytest.mark.parametrize("type, dtype", [("float", np.float32), ("float16", np.float16), ("double", np.float64)])
def test_dropout_trains(type, dtype):
    session = load(f"({type}[n, m] x, {type} r, bool t) => ({type}[n, m] y, bool[n, m] k) {{ y, k = Dropout<seed = 9>(x, r, t) }}")
    x = np.random.default_rng(0).standard_normal((30, 40)).astype(dtype)
    for ratio in (0.0, 0.25, 0.75):
        keep = np.random.RandomState(9).uniform(0, 1, x.shape) >= ratio
        y, k = run(session, x, dtype(ratio), np.array(True))
        np.testing.assert_array_equal(k, keep)
        np.testing.assert_allclose(y, np.where(keep, x / (1 - dtype(ratio)), 0), rtol=2e-3 if dtype == np.float16 else 1e-6)
        y, k = run(session, x, dtype(ratio), np.array(False))
        assert k.all()
        np.testing.assert_array_equal(y, x)
    with pytest.raises(sdx.Fail, match="the ratio lies outside"):
        run(session, x, dtype(1), np.array(True))
