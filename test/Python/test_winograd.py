"""3x3 convolutions by Winograd's algorithm: their rounding errors, on networks whose weights are badly conditioned, and
pictures of all sizes."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx
from references import check_convolution, convolve

LAYERS = 6


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


def network(weights, size, stride):
    nodes, value = [], "x"
    for i in range(len(weights)):
        last = i + 1 == len(weights)
        attributes = {"pads": [1, 1, 1, 1], "strides": [stride, stride]}
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], ["y" if last else f"c{i}"], **attributes))
        if not last:
            nodes.append(helper.make_node("LeakyRelu", [f"c{i}"], [f"a{i}"], alpha=0.1))
            value = f"a{i}"
    x = helper.make_tensor_value_info("x", 1, [1, weights[0].shape[1], size, size])
    y = helper.make_tensor_value_info("y", 1, None)
    held = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("size, stride, channels, layers", [
    (24, 1, 48, LAYERS), (7, 1, 48, LAYERS), (112, 2, 64, 2), (48, 2, 64, 1)
], ids=["F(4x4, 3x3)", "F(2x2, 3x3)", "F(4x4, 3x3) of stride 2", "F(2x2, 3x3) of stride 2"])  # fmt: skip
@pytest.mark.parametrize("make", [plain, cancelling, scaled, nearly_singular])
def test_error_is_within_its_bound(make, size, stride, channels, layers):
    rng = np.random.default_rng(0)
    weights = []
    x = (rng.standard_normal((channels, size, size)) + 2).astype(np.float32)
    exact = x.astype(np.float64)
    for i in range(layers):
        w = np.asarray(make(rng, (channels, channels, 3, 3))).reshape(channels, channels, 3, 3)
        w = (w / np.linalg.norm(w) * np.sqrt(channels)).astype(np.float32)
        weights.append(w)
        exact = convolve(exact[None], w, strides=[stride, stride])[0]
        if i + 1 < layers:
            exact = np.where(exact < 0, np.float64(np.float32(0.1)) * exact, exact)
    model = network(weights, size, stride)
    errors = {}
    for numerics in ("f32", "exact"):
        options = sdx.SessionOptions()
        options.cpu = "haswell"  # whose vectors these sizes fill
        options.numerics = numerics
        (y,) = sdx.InferenceSession(model, options).run(None, {"x": x[None]})
        errors[numerics] = np.linalg.norm(y[0] - exact) / np.linalg.norm(exact)
    assert errors["exact"] < 1e-5
    assert errors["f32"] != errors["exact"], "one of the two was not computed in its own way"
    assert errors["f32"] <= 4 * errors["exact"]


@pytest.mark.parametrize("images, channels, size, filters, stride, pads", [
    (1, 64, (28, 28), 70, 1, (1, 1, 1, 1)),  # the last tile of filters is cut
    (2, 16, (31, 45), 13, 1, (0, 2, 1, 0)),
    (1, 72, (7, 7), 130, 1, (1, 1, 1, 1)),  # tiles of 2x2; many threads share a panel
    (1, 256, (14, 14), 96, 1, (1, 1, 1, 1)),  # inputs leave the cache
    (3, 8, (9, 70), 8, 1, (2, 2, 2, 2)),  # pads wider than the kernel needs
    (1, 8, (60, 5), 9, 1, (1, 1, 1, 1)),  # groups of four rows of tiles
    (1, 64, (56, 56), 64, 2, (1, 1, 1, 1)),
    (2, 64, (49, 48), 77, 2, (0, 0, 1, 1)),  # tiles of 2x2 for 8 lanes
    (1, 96, (28, 29), 64, 2, (1, 1, 1, 1)),
    (1, 64, (64, 31), 65, 2, (2, 0, 0, 2)),
])  # fmt: skip
@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64-v2"])
def test_pictures_of_all_sizes(images, channels, size, filters, stride, pads, cpu):
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels, 3, 3)).astype(np.float32)
    for is_open in (False, True):
        check_convolution(x, w, cpu, 2e-6, is_open, strides=(stride, stride), pads=pads)


@pytest.mark.parametrize("images, channels, size, filters, dilations, pads", [
    (1, 64, (28, 28), 40, (2, 2), (2, 2, 2, 2)),  # phases share their pads
    (2, 80, (30, 62), 33, (1, 3), (0, 0, 0, 0)),  # or have none
    (1, 64, (37, 41), 32, (3, 2), (5, 1, 2, 3)),  # pads of either kind
    (1, 64, (33, 33), 64, (6, 6), (6, 6, 6, 6)),
    (1, 65, (60, 61), 32, (4, 5), (9, 11, 4, 8)),  # wider than the kernel needs
])  # fmt: skip
def test_dilations(images, channels, size, filters, dilations, pads):
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels, 3, 3)).astype(np.float32)
    for is_open in (False, True):
        check_convolution(x, w, "", 2e-6, is_open, dilations=dilations, pads=pads)


@pytest.mark.parametrize("images, channels, size, filters, taps, strides, dilations, pads", [
    (1, 32, (5, 14, 14), 40, 3, (1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1)),
    (2, 17, (7, 9, 12), 33, 3, (2, 1, 1), (1, 1, 1), (1, 0, 2, 0, 1, 1)),
    (1, 32, (9, 8, 8), 32, 2, (1, 1, 1), (3, 1, 1), (2, 1, 1, 4, 1, 1)),
    (1, 48, (3, 20, 20), 16, 1, (1, 1, 1), (1, 1, 1), (0, 1, 1, 0, 1, 1)),
    (1, 32, (6, 30, 30), 32, 3, (1, 1, 1), (1, 2, 2), (1, 2, 2, 1, 2, 2)),  # each slice has dilations
])  # fmt: skip
def test_three_dimensions(images, channels, size, filters, taps, strides, dilations, pads):
    rng = np.random.default_rng(filters)
    x = rng.standard_normal((images, channels, *size)).astype(np.float32)
    w = rng.standard_normal((filters, channels, taps, 3, 3)).astype(np.float32)
    for is_open in (False, True):
        check_convolution(x, w, "", 2e-6, is_open, strides=strides, dilations=dilations, pads=pads)


# Many filters for few tiles: they lie in the lanes of vectors.
@pytest.mark.parametrize("channels,filters,size", [(129, 256, 14), (130, 288, 13), (257, 256, 7), (258, 288, 8)])
def test_filters_in_lanes_against_doubles(channels, filters, size):
    rng = np.random.default_rng(channels)
    w = rng.standard_normal((filters, channels, 3, 3)).astype(np.float32)
    x = rng.standard_normal((1, channels, size, size)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "g",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", 1, [1, filters, size, size])],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    exact = convolve(x, w)[0]
    (y,) = sdx.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert np.linalg.norm(y[0] - exact) < 3e-6 * np.linalg.norm(exact)
