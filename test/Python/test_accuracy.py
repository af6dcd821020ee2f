"""What `numerics` promises: of the error of plain sums in f32, against f64, twice for a network and four times for a layer."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numerics import OPTIONS, vectors  # noqa: F401
from onnx import compose, helper

import sardonyx as sdx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import layers  # noqa: E402
import networks  # noqa: E402
from network import Network  # noqa: E402

NETWORKS = {
    "convolutions of 16 channels": lambda s: networks.plain(s, 16, layers=3),
    "convolutions of 64 channels": lambda s: networks.plain(s, 64, layers=3),
    "residuals": lambda s: networks.cifar(s, 32, stages=1, classes=500),
    "amplifying": lambda s: networks.amplifying(s, layers=5),
    "one row": lambda s: networks.perceptron(s, 6, 512),
    "rows": lambda s: networks.perceptron(s, 6, 256, rows=64, act="Tanh"),
    "nearly singular": lambda s: networks.nearly_singular(s, layers=4, width=256),
    "recurrent": lambda s: networks.recurrent(s, "LSTM", layers=2, hidden=128),
}
LAYERS = {
    "3x3": (layers.CONVOLUTIONS, lambda kind: layers.convolution(0, kind, 32, 32, 16)),
    "3x3 of stride 2": (layers.CONVOLUTIONS, lambda kind: layers.convolution(0, kind, 64, 32, 16, 3, 2)),
    "3x3 of few tiles": (layers.CONVOLUTIONS, lambda kind: layers.convolution(0, kind, 64, 128, 7)),
    "one row": (layers.PRODUCTS, lambda kind: layers.product(0, kind, 1, 512, 512)),
    "rows": (layers.PRODUCTS, lambda kind: layers.product(0, kind, 64, 512, 256)),
}


def compute(monkeypatch, model, feeds, numerics):
    monkeypatch.setattr(OPTIONS, "numerics", numerics)
    return sdx.InferenceSession(model, OPTIONS).run(None, feeds)


def error(y, exact):
    return np.linalg.norm(y - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(monkeypatch, name):
    errors = []
    for seed in range(2):
        net, model = NETWORKS[name](seed)
        errors.append([error(compute(monkeypatch, model, net.feeds, n)[0], net.expected) for n in ("exact", "f32")])
    exact, f32 = np.sqrt(np.mean(np.square(errors), axis=0))
    assert exact < 1e-4
    assert f32 <= 2 * exact


def side_by_side(nets):
    """Networks of (name, network, model) as one, whose equal kernels are compiled once: the model and its inputs."""
    nodes, inputs, outputs, held, feeds = [], [], [], [], {}
    for name, net, model in nets:
        graph = compose.add_prefix(model, f"{name}/").graph
        nodes += graph.node
        inputs += graph.input
        outputs += graph.output
        held += graph.initializer
        feeds[f"{name}/x"] = net.feeds["x"]
    graph = helper.make_graph(nodes, "layers", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString(), feeds


@pytest.mark.parametrize("name", LAYERS)
def test_layers(monkeypatch, name):
    kinds, make = LAYERS[name]
    nets = []
    for kind in kinds:
        net, model = make(kind)
        nets.append((kind, net, sdx_model(model)))
    model, feeds = side_by_side(nets)
    exact, f32 = (compute(monkeypatch, model, feeds, numerics) for numerics in ("exact", "f32"))
    wrong = {}
    for (kind, net, _), plain, y in zip(nets, exact, f32):
        ratio = error(y, net.expected) / error(plain, net.expected)
        if not ratio <= 4:
            wrong[kind] = ratio
    assert not wrong


def sdx_model(data):
    from onnx import ModelProto

    return ModelProto.FromString(data)


def test_what_is_asked_for_is_done(monkeypatch):
    """Each value computes in its own way where it may: 21 bits of weights, tiles of 4x4 for few channels."""
    net = Network(0, (1, 16, 28, 28))
    model = net.finish(net.conv(net.input, 16))
    exact, f32, fast = (compute(monkeypatch, model, net.feeds, n)[0] for n in ("exact", "f32", "fast"))
    np.testing.assert_array_equal(exact, f32)
    if OPTIONS.cpu != "x86-64":
        assert not np.array_equal(f32, fast)
    for y in (exact, f32, fast):
        assert error(y, net.expected) < 2e-6


@pytest.mark.parametrize("wrong", ["double", "", 1, None, b"f32"])
def test_wrong_values_are_refused(wrong):
    options = sdx.SessionOptions()
    options.numerics = wrong
    net = Network(0, (1, 4))
    with pytest.raises(sdx.InvalidArgument, match="numerics must be 'exact', 'f32', 'fast', got"):
        sdx.InferenceSession(net.finish(net.act(net.input)), options)


def bf16(x):
    """The nearest bf16, as f32."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def parts_of(x, count):
    parts = []
    for _ in range(count):
        parts.append(bf16(x))
        x = x - parts[-1]
    return [p.astype(np.float64) for p in parts]


@pytest.mark.parametrize("count, limit", [(3, 1e-7), (2, 4e-6)])
def test_model_of_parts(count, limit):
    """What sums of bf16 lack of weights: three, as products have them, nothing that f32 would keep; two, as filters have them
    with "fast", more than its sums do."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((64, 768)).astype(np.float32), rng.standard_normal((768, 64)).astype(np.float32)
    products = sum(a @ b for i, a in enumerate(parts_of(x, 3)) for j, b in enumerate(parts_of(w, count)) if i + j < 3)
    lost = error(products, x.astype(np.float64) @ w.astype(np.float64))
    assert lost < limit
    assert (lost > 1e-6) == (count == 2)
