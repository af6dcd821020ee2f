"""Momentum, Adagrad and Adam against their formulas in double precision."""

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx

DOMAIN = "ai.onnx.preview.training"


def run(op, rate, count, groups, is_static, **attributes):
    """`groups`: for each tensor the list of itself, its gradient and its states."""
    parts = list(zip(*groups))
    flat = [a for part in parts for a in part]
    feeds = {"R": rate, "T": np.array(count)} | {f"i{i}": a for i, a in enumerate(flat)}
    outputs = [f"o{i}" for i in range(len(flat) - len(groups))]
    node = helper.make_node(op, list(feeds), outputs, domain=DOMAIN, **attributes)
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape if is_static else [f"{n}{d}" for d in range(a.ndim)]
        )
        for n, a in feeds.items()
    ]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return sdx.InferenceSession(model.SerializeToString()).run(None, feeds)


def momentum(r, t, x, g, v, alpha, beta, norm_coefficient, mode):
    g = norm_coefficient * x + g
    v = alpha * v + (beta if t > 0 else 1) * g
    return x - r * (v if mode == "standard" else g + alpha * v), v


def adagrad(r, t, x, g, h, norm_coefficient, epsilon, decay_factor):
    g = norm_coefficient * x + g
    h = h + g * g
    return x - r / (1 + t * decay_factor) * g / (np.sqrt(h) + epsilon), h


def adam(r, t, x, g, v, h, alpha, beta, epsilon, norm_coefficient, norm_coefficient_post):
    g = norm_coefficient * x + g
    v = alpha * v + (1 - alpha) * g
    h = beta * h + (1 - beta) * g * g
    if t > 0:
        r = r * np.sqrt(1 - beta**t) / (1 - alpha**t)
    return (1 - norm_coefficient_post) * (x - r * v / (np.sqrt(h) + epsilon)), v, h


RULES = {
    "Momentum": (momentum, 1, {"alpha": 0.95, "beta": 0.25, "norm_coefficient": 0.01, "mode": "standard"}),
    "Nesterov": (momentum, 1, {"alpha": 0.95, "beta": 0.25, "norm_coefficient": 0.01, "mode": "nesterov"}),
    "Adagrad": (adagrad, 1, {"norm_coefficient": 0.02, "epsilon": 1e-3, "decay_factor": 0.1}),
    "Adam": (adam, 2, {"alpha": 0.5, "beta": 0.75, "epsilon": 1e-2, "norm_coefficient": 0.1, "norm_coefficient_post": 0.2}),
}


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("op", RULES)
def test_random(op, is_static):
    rule, states, attributes = RULES[op]
    rng = np.random.default_rng(41)
    for count, dtype in [(0, np.float32), (1, np.float64), (7, np.float32)]:
        shapes = [(), (3,), (0, 2), (2, 3, 4), (1, 70)][count % 5 :]
        groups = [[rng.random(shape).astype(dtype) for _ in range(states + 2)] for shape in shapes]
        rate = np.array(0.1, [np.float32, np.float64][count % 2])
        got = run("Momentum" if op == "Nesterov" else op, rate, count, groups, is_static, **attributes)
        made = [rule(float(rate), count, *(a.astype(np.float64) for a in group), **attributes) for group in groups]
        want = [a for part in zip(*made) for a in part]
        assert len(got) == len(want)
        for a, b in zip(got, want):
            assert a.dtype == dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_sizes_are_checked():
    groups = [[np.zeros(3, np.float32), np.zeros(4, np.float32), np.zeros(3, np.float32)]]
    for is_static in (True, False):
        with pytest.raises(Exception, match="differ in size|ncompatible|not broadcast|[Ii]nvalid"):
            run("Momentum", np.array(0.1, np.float32), 1, groups, is_static, **RULES["Momentum"][2])
