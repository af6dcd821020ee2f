"""Support vector machines against their formulas in numpy, in f64."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import sardonyx as sdx

GAMMA, COEF0, DEGREE = 0.3, 0.5, 3
KERNELS = {
    "LINEAR": lambda x, v: x @ v.T,
    "POLY": lambda x, v: (GAMMA * (x @ v.T) + COEF0) ** DEGREE,
    "SIGMOID": lambda x, v: np.tanh(GAMMA * (x @ v.T) + COEF0),
    "RBF": lambda x, v: np.exp(-GAMMA * ((x[:, None] - v[None]) ** 2).sum(-1)),
}
FEATURES = 5


def load(op, outputs, **attributes):
    names = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, ["x"], names, name="svm", domain="ai.onnx.ml", kernel_params=[GAMMA, COEF0, DEGREE], **attributes)
    values = [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, outputs)]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", FEATURES])], values)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    return sdx.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), options)


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressor(kernel, one_class):
    rng = np.random.default_rng(1)
    vectors, weights, rho = numbers(rng, 7, FEATURES), numbers(rng, 7), numbers(rng, 1)
    session = load("SVMRegressor", [TensorProto.FLOAT], kernel_type=kernel, n_supports=7, one_class=one_class,
                   support_vectors=vectors.ravel().tolist(), coefficients=weights.tolist(), rho=rho.tolist())  # fmt: skip
    for rows in (0, 1, 9):
        x = numbers(rng, rows, FEATURES)
        want = KERNELS[kernel](x.astype(np.float64), vectors.astype(np.float64)) @ weights + rho
        want = np.where(want > 0, 1, -1) if one_class else want
        np.testing.assert_allclose(session.run(None, {"x": x})[0], want[:, None], rtol=1e-4, atol=1e-4)


def test_linear_regressor():
    rng = np.random.default_rng(2)
    weights = numbers(rng, FEATURES)
    session = load("SVMRegressor", [TensorProto.FLOAT], kernel_type="RBF", n_supports=0, coefficients=weights.tolist(), rho=[0.25])
    x = numbers(rng, 4, FEATURES)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], (x @ weights + 0.25)[:, None], rtol=1e-4, atol=1e-5)


def couple(r):
    """libsvm's multiclass_probability."""
    k = len(r)
    q = np.array([[sum(r[j, t] ** 2 for j in range(k) if j != t) if t == u else -r[u, t] * r[t, u] for u in range(k)] for t in range(k)])
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            d = (pqp - qp[t]) / q[t, t]
            p[t] += d
            pqp = (pqp + d * (d * q[t, t] + 2 * qp[t])) / (1 + d) ** 2
            qp = (qp + d * q[t]) / (1 + d)
            p /= 1 + d
    return p


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [[7, 3], ["no", "yes"], [1, 2, 3, 4]])
@pytest.mark.parametrize("likely", [False, True])
def test_classifier(kernel, labels, likely):
    rng = np.random.default_rng(3)
    classes, per_class = len(labels), [2, 4, 1, 3][: len(labels)]
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    vectors, coefficients = numbers(rng, sum(per_class), FEATURES), numbers(rng, classes - 1, sum(per_class))
    rho, a, b = numbers(rng, len(pairs)) / 4, -np.abs(numbers(rng, len(pairs))), numbers(rng, len(pairs)) / 4
    strings = isinstance(labels[0], str)
    more = {"prob_a": a.tolist(), "prob_b": b.tolist()} if likely else {}
    session = load("SVMClassifier", [TensorProto.STRING if strings else TensorProto.INT64, TensorProto.FLOAT], kernel_type=kernel,
                   vectors_per_class=per_class, support_vectors=vectors.ravel().tolist(), coefficients=coefficients.ravel().tolist(),
                   rho=rho.tolist(), **{"classlabels_strings" if strings else "classlabels_ints": labels}, **more)  # fmt: skip
    x = numbers(rng, 12, FEATURES)
    kernels = KERNELS[kernel](x.astype(np.float64), vectors.astype(np.float64))
    owner = np.repeat(np.arange(classes), per_class)
    scores = np.stack([kernels @ np.where(owner == i, coefficients[j - 1], np.where(owner == j, coefficients[i], 0)) + rho[p] for p, (i, j) in enumerate(pairs)], 1)
    votes = np.zeros((len(x), classes))
    for p, (i, j) in enumerate(pairs):
        votes[np.arange(len(x)), np.where(scores[:, p] > 0, i, j)] += 1
    y, z = session.run(None, {"x": x})
    assert y.tolist() == [labels[k] for k in votes.argmax(1)]
    want = scores if classes > 2 else np.concatenate([-scores, scores], 1)
    if likely:
        want = []
        for row in 1 / (1 + np.exp(scores * a + b)):
            r = np.zeros((classes, classes))
            for value, (i, j) in zip(np.clip(row, 1e-7, 1 - 1e-7), pairs):
                r[i, j], r[j, i] = value, 1 - value
            want.append(couple(r))
    np.testing.assert_allclose(z, want, rtol=1e-3, atol=1e-4)


def test_linear_classifier():
    rng = np.random.default_rng(4)
    weights = numbers(rng, 3, FEATURES)
    session = load("SVMClassifier", [TensorProto.INT64, TensorProto.FLOAT], classlabels_ints=[5, 6, 7], coefficients=weights.ravel().tolist(), rho=[0.5])
    x = numbers(rng, 6, FEATURES)
    y, z = session.run(None, {"x": x})
    want = x @ weights.T + 0.5
    np.testing.assert_allclose(z, want, rtol=1e-4, atol=1e-5)
    assert y.tolist() == (want.argmax(1) + 5).tolist()
