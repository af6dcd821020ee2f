"""Pruning: what goes together, what a model without it computes, what is chosen, and what is refused."""

import json

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from running import check, ours, peers, weights
from topologies import FROZEN, TOPOLOGIES, made, topology

from sardonyx.quantization import Refused, prune
from sardonyx.quantization.onnx_model import sort_nodes
from sardonyx.quantization.pruning.command import main
from sardonyx.quantization.pruning.groups import Analysis
from sardonyx.quantization.pruning.reconstruction import Sums, solve
from sardonyx.quantization.pruning.rows import choose, rows_of, weight_as_rows
from sardonyx.quantization.pruning.sizes import prepared
from sardonyx.quantization.pruning.surgery import Surgery
from sardonyx.quantization.pruning.zeros import mask_of, refine, sparsify


def masked(analysis, removed, values):
    """The analysed model where each consumer reads constants in the place of what is removed, and pads with them."""
    model = onnx.ModelProto()
    model.CopyFrom(analysis.model)
    graph = model.graph
    gone = np.isin(analysis.labels, list(removed))
    nodes = {node.name: node for node in graph.node}
    for each in analysis.consumers:
        places = gone[analysis.places(each.value, each.axis)]
        if not places.any():
            continue
        node = nodes[each.node.name]
        rank = len(analysis.sizes.of[each.value])
        shape = [-1 if axis == each.axis else 1 for axis in range(rank)]
        names = [f"{node.name}_{each.value}_{kind}" for kind in ("gone", "constant", "padded", "masked", "pads")]
        graph.initializer.append(numpy_helper.from_array(places.reshape(shape), names[0]))
        constant = values[node.name, each.value].astype(np.float32).reshape(shape)
        graph.initializer.append(numpy_helper.from_array(constant, names[1]))
        source = each.value
        place = next(at for at, name in enumerate(node.input) if name == each.value)
        if node.op_type == "Conv":
            kernel = analysis.sizes.of[each.weight][2:]
            pads = pads_of(node, kernel)
            for entry in [entry for entry in node.attribute if entry.name in ("pads", "auto_pad")]:
                node.attribute.remove(entry)
            ends = np.array([0, 0, *pads[: len(kernel)], 0, 0, *pads[len(kernel) :]])
            graph.initializer.append(numpy_helper.from_array(ends, names[4]))
            graph.node.insert(0, helper.make_node("Pad", [source, names[4]], [names[2]], names[2]))
            source = names[2]
        graph.node.insert(0, helper.make_node("Where", [names[0], names[1], source], [names[3]], names[3]))
        node.input[place] = names[3]
    sort_nodes(graph)
    return model


def pads_of(node, kernel):
    given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    if given.get("auto_pad", b"NOTSET") == b"SAME_UPPER":  # of strides 1
        return [(size - 1) // 2 for size in kernel] + [size - 1 - (size - 1) // 2 for size in kernel]
    return given.get("pads", [0] * (2 * len(kernel)))


def evaluate(model, feeds, opset):
    return peers(model, feeds) if opset < 23 else ReferenceEvaluator(model).run(None, feeds)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_pruned_is_masked(name, seed):
    """A model without some units computes what the model does in which constants take their places."""
    random = np.random.default_rng(seed)
    model, feeds, expected = topology(name, random)
    analysis = Analysis(prepared(model), feeds)
    assert len(analysis.groups) == expected
    removed = set()
    for group in analysis.groups:
        count = random.integers(1, len(group.units))
        removed.update(int(unit) for unit in random.choice(group.units, count, replace=False))
    values = {
        (each.node.name, each.value): random.normal(0, 1, analysis.sizes.of[each.value][each.axis])
        for each in analysis.consumers
    }
    pruned = Surgery(analysis, removed, values).run()
    check(pruned)
    before, after = (sum(array.size for array in weights(each).values()) for each in (analysis.model, pruned))
    assert after < before
    opset = TOPOLOGIES[name][0]
    for wanted, found in zip(evaluate(masked(analysis, removed, values), feeds, opset), evaluate(pruned, feeds, opset)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("name", FROZEN)
def test_what_stays(name, random):
    text = f"g (float[N, 3, 4, 4] x) => (float[N, A, B, C] y) {{ h = Conv(x, w1) \n {FROZEN[name]} }}"
    numbers = {"w1": (4, 3, 1, 1), "w2": (2, 4, 1, 1), "w4": (2, 2, 1, 1), "g4": (4, 4, 4)}
    used = {key: random.normal(0, 1, sizes).astype(np.float32) for key, sizes in numbers.items() if key in text}
    targets = {"t1": np.array([0, 2, 2, 4, 4]), "t2": np.array([0, 4, 4, 4])}
    model = made(text, 17, {**used, **{key: value for key, value in targets.items() if key in text}})
    analysis = Analysis(prepared(model), {"x": random.normal(0, 1, (2, 3, 4, 4)).astype(np.float32)})
    assert not analysis.groups


def test_batches_are_no_heads(random):
    """Batch and heads in one axis: that the batch of a sample is 1 doesn't make it so."""
    text = """g (float[N, S, 6] x) => (float[N, S, 6] y) {
        q = MatMul(x, w)
        a = Reshape(q, split)
        t = Transpose<perm = [0, 2, 1, 3]>(a)
        m = Reshape(t, both)
        s = Softmax(m)
        b = Reshape(s, apart)
        u = Transpose<perm = [0, 2, 1, 3]>(b)
        y = Reshape(u, merge)
    }"""
    targets = {"split": [0, 0, 3, 2], "both": [-1, 4, 2], "apart": [-1, 3, 4, 2], "merge": [0, 0, 6]}
    given = {name: np.array(value) for name, value in targets.items()}
    model = made(text, 17, {"w": random.normal(0, 1, (6, 6)).astype(np.float32), **given})
    assert not Analysis(prepared(model), {"x": np.ones((1, 4, 6), np.float32)}).groups


@pytest.mark.parametrize(
    ("text", "sizes", "weight"),
    [
        ("y = Conv<pads = [1, 0, 2, 1], strides = [2, 1], dilations = [1, 2]>(x, w)", (2, 3, 8, 9), (4, 3, 3, 2)),
        ('y = Conv<auto_pad = "SAME_LOWER", strides = [2, 2]>(x, w)', (2, 3, 8, 7), (4, 3, 3, 2)),
        ("y = Conv<pads = [2, 0]>(x, w)", (2, 3, 8), (4, 3, 3)),
        ("y = Gemm<transA = 1, transB = 1>(x, w)", (5, 7), (4, 5)),
        ("y = MatMul(x, w)", (2, 3, 5), (5, 4)),
    ],
)
def test_rows_times_weight_is_the_product(text, sizes, weight, random):
    value, array = (random.normal(0, 1, each).astype(np.float32) for each in (sizes, weight))
    rank = ", ".join("ABCDE"[: len(sizes)])
    model = made(f"g (float[{rank}] x) => (float[{rank.lower().upper()}] y) {{ {text} }}", 17, {"w": array})
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    node = model.graph.node[0]
    kernel = weight[2:] if node.op_type == "Conv" else ()
    found = rows_of(node, value, kernel, choose(node, sizes, kernel, 10**6, random)) @ weight_as_rows(node, array).T
    (wanted,) = peers(model, {"x": value})
    wanted = np.moveaxis(wanted, 1, -1) if node.op_type == "Conv" else wanted
    np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-4, atol=1e-4)


def held_out(network, batch=64):
    places = range(0, len(network.x), batch)
    return [{network.input: network.x[at : at + batch]} for at in places], [network.y[at : at + batch] for at in places]


def parameters(model):
    return sum(array.size for array in weights(model).values() if array.dtype == np.float32)


def same_here_and_in_onnxruntime(network, model):
    """A model as a file runs in both, to the same results."""
    check(model)
    sample = {network.input: network.x[:64]}
    np.testing.assert_allclose(ours(model, sample)[0], peers(model, sample)[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("of", "least", "given"),
    [("parameters", 98.7, {}), ("channels", 97.5, {}), ("flops", 98.7, {}), ("time", 97.5, {"amount": 0.4})],
)
def test_digits_without_half(of, least, given):
    network = Network("digits_cnn")
    before = network.model.SerializeToString()
    given = {"amount": 0.5, **given}
    result = prune(network.model, network.samples(), of=of, max_error=0.03, metric="top1", holdout=held_out(network), **given)
    assert network.score(result.model) >= least
    pruning = result.report["pruning"]
    assert pruning["left"] <= 1 - given["amount"]
    counts = parameters(network.model), parameters(result.model)
    groups = pruning["groups"].values()
    if of == "parameters":
        assert counts[1] <= 0.51 * counts[0]
    if of == "channels":
        assert sum(each["left"] for each in groups) <= 0.5 * sum(each["of"] for each in groups)
    assert all(each["left"] % 16 == 0 for each in groups if each["of"] >= 64)
    same_here_and_in_onnxruntime(network, result.model)
    assert network.model.SerializeToString() == before


def test_reconstruction_and_moments_are_what_keeps_digits():
    network = Network("digits_cnn")
    given = {"amount": 0.5, "of": "channels", "metric": "top1", "holdout": held_out(network)}
    scores = [
        network.score(prune(network.model, network.samples(), reconstruct=solve, **given).model) for solve in (True, False)
    ]
    assert scores[0] > scores[1] + 10


@pytest.mark.parametrize("name", ["image_unet", "text_lm"])
def test_other_networks(name):
    network = Network(name)
    result = prune(network.model, network.samples()[:4], amount=0.25, metric="psnr" if name == "image_unet" else "kl", holdout=held_out(network))
    left = parameters(network.model), parameters(result.model)
    assert left[1] <= 0.76 * left[0]
    assert network.score(result.model) >= network.score(network.model) - (0.1 if name == "image_unet" else 0.25)
    same_here_and_in_onnxruntime(network, result.model)


@pytest.mark.parametrize(
    ("kind", "given", "least"),
    [("2:4", {}, 98.7), ("magnitude", {"amount": 0.7}, 98.7), ("block", {"amount": 0.3, "block": (4, 4)}, 98.7)],
)
def test_zeros_in_digits(kind, given, least):
    network = Network("digits_cnn")
    result = prune(network.model, network.samples(), kind, metric="top1", holdout=held_out(network), **given)
    assert network.score(result.model) >= least
    held, found = weights(result.model), result.report["pruning"]["weights"]
    nodes = {node.name: node for node in result.model.graph.node}
    for name, count in found.items():
        node = nodes[name]
        weight = held[node.input[1]]
        assert count == {"zeros": int((weight == 0).sum()), "of": weight.size}
        inputs = weight if node.op_type != "Conv" else np.moveaxis(weight, 1, -1)
        if kind == "2:4":
            assert ((inputs.reshape(-1, 4) == 0).sum(1) >= 2).all()
        if kind == "block" and weight.ndim == 4:
            gone = weight[:, :, 0, 0] == 0
            tiles = gone[: len(gone) // 4 * 4, : gone.shape[1] // 4 * 4].reshape(len(gone) // 4, 4, gone.shape[1] // 4, 4)
            assert not tiles.size or (tiles.all((1, 3)) | ~tiles.any((1, 3))).mean() > 0.95
    amount = given.get("amount", 0.5)
    assert 1 - result.report["pruning"]["left"] == pytest.approx(amount, abs=0.02)
    same_here_and_in_onnxruntime(network, result.model)


def test_other_numbers_make_up_for_zeros(random):
    """The error of products is less than that of the same number of zeros by size alone."""
    mixed = np.eye(24) + 0.3 * random.normal(0, 1, (24, 24))
    inputs = random.normal(0, 1, (500, 24)) @ mixed
    weight = random.normal(0, 1, (10, 24))
    covariance = np.cov(inputs.T, bias=True)

    def error(changed):
        change = weight - changed
        return np.trace(change @ covariance @ change.T)

    for kind, share in (("2:4", 0.5), ("magnitude", 0.5), ("block", 0.5)):
        block = (1, 4)
        first = sparsify(weight, covariance, share, kind, block, damping=1e-6)
        found = refine(first, weight, covariance, 1e-9)
        assert error(found) < error(first) and ((found == 0) == (first == 0)).all()
        scores = weight**2 * np.diag(covariance)
        plain = np.where(mask_of(scores, share, kind, block), 0, weight)
        assert (found == 0).sum() == (plain == 0).sum() == 120
        assert error(found) < 0.9 * error(plain)
        row, places = found[0], found[0] != 0  # the normal equations of one row
        exact = np.linalg.solve(covariance[np.ix_(places, places)], covariance[places] @ weight[0])
        np.testing.assert_allclose(row[places], exact, rtol=1e-2, atol=1e-2)


def test_least_squares_is_numpys(random):
    x, y = random.normal(0, 1, (300, 7)) + 2, random.normal(0, 1, (300, 3))
    sums = Sums.empty(7, 3)
    for start in range(0, 300, 100):
        sums.add(x[start : start + 100], y[start : start + 100])
    found, bias = solve(sums, random.normal(0, 1, (3, 7)), damping=1e-12)
    wanted = np.linalg.lstsq(np.c_[x, np.ones(300)], y, rcond=None)[0]
    np.testing.assert_allclose(np.c_[found, bias], wanted.T, rtol=1e-6, atol=1e-8)


def test_what_costs_nothing_goes_first(random):
    """Channels that are dead, constant or read by zeros go although the bound is 0."""
    network = {
        "w1": random.normal(0, 1, (8, 3, 3, 3)), "b1": random.normal(0, 1, 8), "w2": random.normal(0, 1, (6, 8, 1, 1)),
        "w3": random.normal(0, 1, (6, 2)),
    }  # fmt: skip
    network["w1"][2] = 0
    network["b1"][2] = 0.5  # constant, before a convolution without pads
    network["b1"][5] = -1e4  # never above 0
    network["w2"][:, 7] = 0  # not read
    text = """g (float[N, 3, 9, 9] x) => (float[N, 2] y) {
        a = Conv(x, w1, b1)
        r = Relu(a)
        c = Conv(r, w2)
        t = Relu(c)
        p = GlobalAveragePool(t)
        f = Flatten(p)
        y = MatMul(f, w3)
    }"""
    model = made(text, 17, {name: value.astype(np.float32) for name, value in network.items()})
    feeds = [{"x": random.normal(0, 1, (4, 3, 9, 9)).astype(np.float32)} for _ in range(20)]
    result = prune(model, feeds, amount=0.01, reconstruct=False, max_error=1e-5, tile=1)
    assert weights(result.model)["w1"].shape[0] == 5
    for sample in feeds[:3]:
        np.testing.assert_allclose(ours(result.model, sample)[0], ours(model, sample)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["chain", "attention", "depthwise"])
def test_equal_units_are_shared(name, random):
    model, _, _ = topology(name, random)
    prepared_model = prepared(model)
    feeds = [topology(name, random)[1] for _ in range(10)]
    analysis = Analysis(prepared_model, feeds[0])
    group = analysis.groups[0]
    read = {(each.weight, each.weight_axis) for each in analysis.consumers}
    for (value, axis), units in group.parts.items():
        if value in analysis.index.initializers and (value, axis) not in read:
            tensor = analysis.index.initializers[value]
            array = np.moveaxis(numpy_helper.to_array(tensor).copy(), axis, 0)
            array[units == group.units[3]] = array[units == group.units[1]]
            array = np.ascontiguousarray(np.moveaxis(array, 0, axis))
            tensor.CopyFrom(numpy_helper.from_array(array, value))
    result = prune(prepared_model, feeds, amount=0.001, reconstruct=False, max_error=1e-5, tile=1)
    left = result.report["pruning"]["groups"][group.text()]
    assert left == {"left": len(group.units) - 1, "of": len(group.units)}
    for sample in feeds[:3]:
        for found, wanted in zip(ours(result.model, sample), ours(prepared_model, sample)):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_as_much_as_the_bound_allows():
    network = Network("digits_cnn")
    result = prune(network.model, network.samples(), max_error="2%", metric="top1", holdout=held_out(network))
    assert result.report["pruning"]["left"] <= 0.5 and result.report["summary"]["loss"] <= 0.02
    assert len(result.report["steps"]) == 6


def test_refusals(tmp_path, model, random):
    network = Network("digits_cnn")
    given = {"metric": "top1", "holdout": held_out(network), "output": tmp_path / "small.onnx"}
    with pytest.raises(Refused, match="^No pruned model reaches top1 ≥ 9.*: with 90 % of its parameters removed it has"):
        prune(network.model, network.samples(), amount=0.9, max_error="1%", **given)
    with pytest.raises(Refused, match="10.00×"):
        prune(network.model, network.samples(), amount=0.5, max_error="2%", min_speedup=10, timing_seconds=0.1, **given)
    assert not list(tmp_path.glob("*.onnx"))
    for wrong, sentence in (
        ({"kind": "4:8", "amount": 0.5}, "kind is one of structured, 2:4, block, magnitude, not '4:8'"),
        ({"amount": 1.5}, "amount is a share between 0 and 1, not 1.5"),
        ({"amount": 0.5, "of": "bytes"}, "of is one of parameters, flops, time, channels, not 'bytes'"),
        ({}, "either amount or max_error tells how much to remove"),
        ({"amount": 0.5, "keep": ["/fc9/Gemm"]}, "'keep' names '/fc9/Gemm', which is no node; nearest: '/fc2/Gemm'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            prune(network.model, network.samples(), **{**given, **wrong})
    fixed = model("g (float[N, 4] x) => (float[N, 3] y) { y = MatMul(x, w) }", w=random.normal(0, 1, (4, 3)).astype(np.float32))
    with pytest.raises(Refused, match="Nothing of this model can be removed"):
        prune(fixed, [{"x": np.float32([[place, 0, 1, 2]])} for place in range(9)], amount=0.5)
    kept = prune(network.model, network.samples(), amount=0.3, keep=["Gemm"], **{**given, "output": None}).model
    assert weights(kept)["fc1.weight"].shape == (64, 128)


def test_nan_in_samples_is_named(model, random):
    made_model = model(
        "g (float[N, 4] x) => (float[N, 3] y) { h = MatMul(x, w) \n l = Log(h) \n y = MatMul(l, v) }",
        w=random.normal(0, 1, (4, 8)).astype(np.float32), v=random.normal(0, 1, (8, 3)).astype(np.float32),
    )  # fmt: skip
    feeds = [{"x": random.normal(0, 1, (4, 4)).astype(np.float32)} for _ in range(9)]
    with pytest.raises(ValueError, match="^Sample 0: tensor 'l' of node 'Log_1' holds NaN or infinity.$"):
        prune(made_model, feeds, amount=0.5, metric=lambda outputs, expected: 0.0)


def test_command(tmp_path, capsys):
    network = Network("digits_cnn")
    onnx.save(network.model, "digits.onnx")
    folder = tmp_path / "feeds"
    folder.mkdir()
    for place in range(16):
        np.savez(folder / f"{place:02}.npz", x=network.x[50 * place : 50 * place + 50])
    np.save("labels.npy", network.y[:800])
    given = ["digits.onnx", "-o", "small.onnx", "--data", str(folder), "--labels", "labels.npy", "--metric", "top1", "--holdout", ".5"]
    assert main([*given, "--amount", ".5", "--max-error", "3%", "--report", "report.json"]) == 0
    assert "loss " in capsys.readouterr().out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["pruning"]["left"] <= 0.5 and report["summary"]["fresh_samples"]
    assert network.score(onnx.load("small.onnx")) >= 97
    (tmp_path / "small.onnx").unlink()
    assert main([*given, "--amount", ".97", "--max-error", "3%"]) == 3
    assert main([*given, "--amount", ".5", "--keep", "/nowhere/*"]) == 2
    assert not (tmp_path / "small.onnx").exists()
