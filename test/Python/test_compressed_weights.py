"""Weights of 21 or 24 bits: products of few rows against sums in double precision."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx


def model(node, w, x, shape):
    """`node` on an input like x and the constant w."""
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(w, "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return made.SerializeToString()


def compute(node, w, x, shape, short=True, cpu=None):
    """What `node` makes of x and the constant w."""
    options = sardonyx.SessionOptions()
    options.numerics = "f32" if short else "exact"
    options.cache = False
    if cpu:
        options.cpu = cpu
    session = sardonyx.InferenceSession(model(node, w, x, shape), options)
    return session.run(None, {"x": x})[0]


def run(w, x, transposed=False, short=True, cpu=None):
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=int(transposed))
    return compute(node, w, x, [x.shape[0], w.shape[0 if transposed else 1]], short, cpu)


def error(y, w, x, transposed=False):
    exact = x.astype(np.float64) @ (w.T if transposed else w).astype(np.float64)
    return np.linalg.norm(y - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64-v2"])
@pytest.mark.parametrize("rows,depth,columns", [(1, 512, 512), (3, 515, 517), (8, 300, 900)])
@pytest.mark.parametrize("transposed", [False, True])
def test_against_doubles(cpu, rows, depth, columns, transposed):
    rng = np.random.default_rng(rows)
    w = rng.standard_normal((columns, depth) if transposed else (depth, columns)).astype(np.float32)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    y = run(w, x, transposed, cpu=cpu)
    assert error(y, w, x, transposed) < 2e-6
    # Short they are: the results are others than those of four bytes.
    assert not np.array_equal(y, run(w, x, transposed, short=False, cpu=cpu))


def test_the_limits():
    """The largest integer of 21 bits, of either sign, next to each other number in a triple."""
    rng = np.random.default_rng(3)
    signs = rng.choice([-1, 1], (513, 544))
    w = (signs * rng.choice([1, 0.7, 0.3], (513, 544))).astype(np.float32)
    for i in range(0, 513, 7):
        x = np.zeros((1, 513), np.float32)
        x[0, i] = 1
        y = run(w, x)[0]
        assert np.abs(y - w[i]).max() < 0.6 / (2**20 - 1)
        assert not np.array_equal(y, w[i])


@pytest.mark.parametrize("cpu", [None, "haswell"])
def test_zeros_stay(cpu):
    """What a result does not depend on adds nothing to it: columns with zeros keep 24 bits."""
    rng = np.random.default_rng(4)
    w = rng.standard_normal((512, 512)).astype(np.float32)
    w[:256, 5] = 0
    x = np.ones((1, 512), np.float32)
    x[:, :256] = np.inf
    assert np.isnan(run(w, x, cpu=cpu)[0, 5])
    x[:, :256] = 1e30
    assert abs(run(w, x, cpu=cpu)[0, 5] - w[:, 5].sum()) < 1e-4


@pytest.mark.parametrize("outlier", [1, 300])
def test_uneven_columns(outlier):
    """Errors stay small though inputs leave the largest number out."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((600, 512)).astype(np.float32)
    w[17] *= outlier
    x = rng.standard_normal((2, 600)).astype(np.float32)
    x[:, 17] = 0
    assert error(run(w, x), w, x) < 2e-6


def test_few_bits_are_exact():
    rng = np.random.default_rng(1)
    w = rng.integers(-128, 128, (512, 512)).astype(np.float32)
    x = rng.integers(-8, 8, (1, 512)).astype(np.float32)
    np.testing.assert_array_equal(run(w, x), x @ w)


@pytest.mark.parametrize("value", [1e6, np.inf, np.nan, 1e-42])
def test_columns_that_would_lose(value):
    rng = np.random.default_rng(2)
    w = rng.standard_normal((512, 512)).astype(np.float32)
    w[:, 7] *= 1e-6 if value == 1e6 else 1
    w[3, 7] = value
    if value == 1e-42:
        w[:, 7] = value
    x = rng.standard_normal((1, 512)).astype(np.float32)
    x[0, 3] = 0 if value == 1e6 else 1
    np.testing.assert_array_equal(run(w, x), run(w, x, short=False))
