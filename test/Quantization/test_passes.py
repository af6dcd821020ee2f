"""onnx-opt's passes for whole models: what they save runs in onnxruntime, and means what the tools in Python mean."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from networks import Network
from running import check, decibels, op_types, ours, peers, weights

from sardonyx.quantization import Plan, quantize_static

BIN = Path(os.environ.get("SARDONYX_BUILD", Path(__file__).parents[2] / "build" / "release")) / "bin"


def run_passes(model, *passes):
    """ONNX → onnx dialect → passes → ONNX; gives the model and what was remarked."""
    onnx.save(model, "before.onnx")
    said = ""
    for command in (
        [BIN / "onnx-translate", "--onnx-to-mlir", "before.onnx", "-o", "before.mlir"],
        [BIN / "onnx-opt", "before.mlir", *passes, "-o", "after.mlir"],
        [BIN / "onnx-translate", "--mlir-to-onnx", "after.mlir", "-o", "after.onnx"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said += done.stderr
    made = onnx.load("after.onnx")
    check(made)
    return made, said


def chain(model, random):
    """Layers of every kind, with channels of very different ranges."""

    def draw(*shape):
        return random.normal(0, 0.4, shape).astype(np.float32)

    scale = np.exp2(random.integers(-5, 6, 8)).astype(np.float32)
    return model(
        """g (float[N, 4, 8, 8] x) => (float[N, 5] y) {
            c1 = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
            r1 = Relu(c1)
            c2 = Conv<pads = [1, 1, 1, 1], group = 8>(r1, w2, b2)
            r2 = LeakyRelu(c2)
            c3 = Conv<group = 2>(r2, w3)
            t = ConvTranspose<group = 2>(c3, w4, b4)
            p = GlobalAveragePool(t)
            f = Flatten(p)
            m = MatMul(f, w5)
            a = Add(m, b5)
            y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(a, w6, b6)
        }""",
        w1=draw(8, 4, 3, 3) * scale[:, None, None, None], b1=draw(8), w2=draw(8, 1, 3, 3) / scale[:, None, None, None], b2=draw(8),
        w3=draw(8, 4, 1, 1), w4=draw(8, 4, 2, 2), b4=draw(8), w5=draw(8, 16), b5=draw(16), w6=draw(5, 16), b6=draw(5),
    )  # fmt: skip


def close(model, feeds, expected, least):
    for run in (ours, peers):
        found = decibels(expected, run(model, feeds)[0])
        assert found >= least, found


def test_equalize(model, random):
    """The model computes the same, and channels that were 2^10 apart have ranges that meet."""
    before = chain(model, random)
    feeds = {"x": random.standard_normal((3, 4, 8, 8)).astype(np.float32)}
    after, _ = run_passes(before, "--onnx-equalize=iterations=2", "--onnx-materialize-constants")
    assert op_types(after) == op_types(before)
    close(after, feeds, peers(before, feeds)[0], 110)
    convs = [[weights(after)[name] for name in node.input[1:2]][0] for node in after.graph.node if node.op_type == "Conv"]
    ranges = np.abs(convs[0]).max((1, 2, 3)), np.abs(convs[1]).max((1, 2, 3))
    np.testing.assert_allclose(*ranges, rtol=0.5)


def test_equalize_saves_a_skewed_network():
    """Symmetric bytes with one scale a tensor ruin digits_skewed; equalised they don't."""
    network = Network("digits_skewed")
    plain = quantize_static(network.model, None, network.samples())
    assert network.score(plain) < 50
    after, _ = run_passes(network.model, "--onnx-fold-batch-norm", "--onnx-equalize=iterations=4", "--onnx-materialize-constants")
    assert network.score(quantize_static(after, None, network.samples())) >= 99.3


@pytest.mark.parametrize("options", [{}, {"per_channel": True}, {"nodes_to_exclude": ["c2"]}])
def test_a_plan_means_the_same(model, random, options):
    """A plan that Python's tool made, written by the pass: the same numbers bit for bit."""
    before = chain(model, random)
    for node in before.graph.node:
        node.name = node.output[0]
    samples = [{"x": random.standard_normal((3, 4, 8, 8)).astype(np.float32)} for _ in range(3)]
    expected = quantize_static(before, None, samples, **options)
    plan = Plan.of_model(expected)
    plan.save("plan.json")
    after, _ = run_passes(before, "--onnx-quantize=plan=plan.json", "--onnx-materialize-constants")
    assert op_types(after).count("DequantizeLinear") == op_types(expected).count("DequantizeLinear")
    held = {array.tobytes() for array in weights(after).values()}
    quantized = [array for name, array in weights(expected).items() if name.endswith("_quantized")]
    assert len(quantized) > 8 and all(array.tobytes() in held for array in quantized)
    for run in (ours, peers):
        np.testing.assert_array_equal(run(after, samples[0])[0], run(expected, samples[0])[0])


@pytest.mark.parametrize(
    "kind, least", [("int8-dynamic", 30), ("int8 block=0", 35), ("int8 block=4", 40), ("int4 block=4", 15), ("int2 block=2", 1)]
)
def test_types_without_data(model, random, kind, least):
    def draw(*shape):
        return random.normal(0, 0.4, shape).astype(np.float32)

    before = model(
        """g (float[N, 6, 8] x) => (float[N, 6, 5] y) {
            m = MatMul(x, w)
            r = Relu(m)
            s = Reshape(r, flat)
            g = Gemm<transB = 1>(s, v, b)
            y = Reshape(g, back)
        }""",
        w=draw(8, 16), v=draw(5, 16), b=draw(5), flat=np.array([-1, 16]), back=np.array([-1, 6, 5]),
    )  # fmt: skip
    feeds = {"x": random.standard_normal((2, 6, 8)).astype(np.float32)}
    after, said = run_passes(before, f"--onnx-quantize=type={kind}", "--onnx-materialize-constants")
    assert not said
    stored = {array.dtype.name for array in weights(after).values() if array.size >= 80}
    assert stored == {kind.split()[0].removesuffix("-dynamic")}
    close(after, feeds, peers(before, feeds)[0], least)


def test_prune(model, random):
    before = chain(model, random)
    for kind, share in (("kind=magnitude amount=0.75", 0.75), ("kind=2:4", 0.5), ("kind=block block=2,4 amount=0.5", 0.5)):
        after, said = run_passes(before, f"--onnx-prune={kind}", "--onnx-materialize-constants")
        layers = [weights(after)[node.input[1]] for node in after.graph.node if node.op_type in ("Conv", "MatMul", "Gemm", "ConvTranspose")]
        pruned = [array for array in layers if (array == 0).any()]
        assert len(pruned) + said.count("keeps its weights") == 6 and len(pruned) >= 4
        for array in pruned:
            assert abs((array == 0).mean() - share) <= 0.5 / array.size + 1e-9
    fours = weights(run_passes(before, "--onnx-prune=kind=2:4", "--onnx-materialize-constants")[0])
    dense = next(array for array in fours.values() if array.shape == (8, 16))
    original = weights(before)["w5"].reshape(2, 4, 16)
    for column in range(16):
        for four in range(2):
            kept = np.flatnonzero(dense.reshape(2, 4, 16)[four, :, column])
            assert set(kept) == set(np.argsort(-np.abs(original[four, :, column]))[:2])


@pytest.mark.parametrize("kind, least", [("f16", 55), ("bf16", 35)])
def test_convert_precision(model, random, kind, least):
    before = chain(model, random)
    feeds = {"x": random.standard_normal((3, 4, 8, 8)).astype(np.float32)}
    after, _ = run_passes(before, f"--onnx-convert-precision=type={kind}", "--onnx-materialize-constants")
    assert all(array.dtype.name == {"f16": "float16", "bf16": "bfloat16"}[kind] for array in weights(after).values() if array.size > 4)
    expected = peers(before, feeds)[0]
    assert decibels(expected, ours(after, feeds)[0]) >= least
    if kind == "f16":  # onnxruntime has no convolutions of bf16
        assert decibels(expected, peers(after, feeds)[0].astype(np.float32)) >= least


def test_trained_networks_in_passes():
    """Half of the weights of each four are zeros, 4-bit blocks, 16 bits: what they cost a trained network."""
    network = Network("digits_cnn")
    for least, passes in (
        (99.6, ["--onnx-convert-precision=type=f16"]),
        (99.5, ["--onnx-quantize=type=int8 block=0"]),
        (85, ["--onnx-prune=kind=2:4"]),
    ):
        after, _ = run_passes(network.model, *passes, "--onnx-materialize-constants")
        assert network.score(after) >= least, passes
