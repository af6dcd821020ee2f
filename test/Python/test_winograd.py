"""The rounding errors of 3x3 convolutions by Winograd's algorithm, on networks whose weights are badly conditioned."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx
from references import convolve

CHANNELS, LAYERS = 48, 6


def plain(rng, shape):
    return rng.standard_normal(shape)


def cancelling(rng, shape):
    """Filters whose taps add up to nothing: what is common to all inputs of a window cancels."""
    w = rng.standard_normal(shape)
    return w - w.mean(axis=(2, 3), keepdims=True)


def scaled(rng, shape):
    """Channels of very different size."""
    return rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, (1, shape[1], 1, 1))


def nearly_singular(rng, shape):
    """As a matrix from input to output channels, of condition 1e5."""
    u, _, v = np.linalg.svd(rng.standard_normal((shape[0], shape[1] * 9)), full_matrices=False)
    return (u * np.logspace(0, -5, shape[0])) @ v


def network(weights, size):
    nodes, value = [], "x"
    for i in range(LAYERS):
        last = i + 1 == LAYERS
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], ["y" if last else f"c{i}"], pads=[1, 1, 1, 1]))
        if not last:
            nodes.append(helper.make_node("LeakyRelu", [f"c{i}"], [f"a{i}"], alpha=0.1))
            value = f"a{i}"
    x, y = (helper.make_tensor_value_info(n, 1, [1, CHANNELS, size, size]) for n in "xy")
    held = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("size", [24, 7], ids=["F(4x4, 3x3)", "F(2x2, 3x3)"])
@pytest.mark.parametrize("make", [plain, cancelling, scaled, nearly_singular])
def test_error_is_within_its_bound(make, size):
    rng = np.random.default_rng(0)
    weights = []
    x = (rng.standard_normal((CHANNELS, size, size)) + 2).astype(np.float32)
    exact = x.astype(np.float64)
    for i in range(LAYERS):
        w = np.asarray(make(rng, (CHANNELS, CHANNELS, 3, 3))).reshape(CHANNELS, CHANNELS, 3, 3)
        w = (w / np.linalg.norm(w) * np.sqrt(CHANNELS)).astype(np.float32)
        weights.append(w)
        exact = convolve(exact[None], w)[0]
        if i + 1 < LAYERS:
            exact = np.where(exact < 0, np.float64(np.float32(0.1)) * exact, exact)
    model = network(weights, size)
    errors = {}
    for winograd in (True, False):
        options = sdx.SessionOptions()
        options.winograd = winograd
        (y,) = sdx.InferenceSession(model, options).run(None, {"x": x[None]})
        errors[winograd] = np.linalg.norm(y[0] - exact) / np.linalg.norm(exact)
    assert errors[False] < 1e-5
    assert errors[True] != errors[False], "one of the two was not computed in its own way"
    assert errors[True] <= 4 * errors[False]
