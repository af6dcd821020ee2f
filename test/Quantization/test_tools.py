"""Preprocessing, reports of errors, commands, folders of samples."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from running import decibels, op_types, ours, weights

from sardonyx.quantization import Plan, equalization, quant_pre_process, quantize_static, smoothing
from sardonyx.quantization.command import main as command
from sardonyx.quantization.data_folders import FolderDataReader
from sardonyx.quantization.onnx_model import ONNXModel, sort_nodes
from sardonyx.quantization.qdq_loss_debug import (
    collect_activations,
    compute_activation_error,
    compute_weight_error,
    create_activation_matching,
    create_weight_matching,
    error_report,
    modify_model_output_intermediate_tensors,
)


def draw(random, *shape):
    return random.normal(0, 0.5, shape).astype(np.float32)


def normalised(model, random):
    return model(
        """m (float[N, 3, H, W] x) => (float[N, 4, H, W] y, float[N, 2, U, V] z) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w)
            n = BatchNormalization(c, gain, bias, mean, var)
            i = Identity(n)
            two = Add(one, one)
            y = Mul(i, two)
            t = ConvTranspose<strides = [2, 2]>(i, w2, b2)
            z = BatchNormalization(t, gain2, bias2, mean2, var2)
        }""",
        w=draw(random, 4, 3, 3, 3), gain=draw(random, 4), bias=draw(random, 4), mean=draw(random, 4),
        var=random.gamma(1, 1, 4).astype(np.float32), one=np.array(1, np.float32), w2=draw(random, 4, 2, 2, 2),
        b2=draw(random, 2), gain2=draw(random, 2), bias2=draw(random, 2), mean2=draw(random, 2),
        var2=random.gamma(1, 1, 2).astype(np.float32),
    )  # fmt: skip


def test_weight_error_of_a_number(model, random, tmp_path):
    """A scale that a Mul reads is a weight without axes."""
    made = model("m (float[2, 3] x) => (float[2, 3] y) { y = Mul(x, w) }", w=np.array(0.3, np.float32))
    onnx.save(made, str(tmp_path / "m.onnx"))
    samples = [{"x": draw(random, 2, 3)}]
    quantize_static(str(tmp_path / "m.onnx"), str(tmp_path / "q.onnx"), samples, op_types_to_quantize=["Mul"])
    matching = create_weight_matching(tmp_path / "m.onnx", tmp_path / "q.onnx")
    assert matching["w"]["dequantized"].shape == () and abs(matching["w"]["dequantized"] - 0.3) < 0.3 / 127
    assert compute_weight_error(matching)["w"] > 40


def test_preprocessing(model, random):
    made = normalised(model, random)
    before = made.SerializeToString()
    result = quant_pre_process(made)
    assert made.SerializeToString() == before
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result) == ["Conv", "Mul", "ConvTranspose"]
    assert weights(result)["two"] == 2 and result.opset_import[0].version == made.opset_import[0].version
    sample = {"x": draw(random, 2, 3, 5, 7)}
    for expected, found in zip(ours(made, sample), ours(result, sample)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_preprocessing_by_command_and_in_steps(model, random, tmp_path):
    onnx.save(normalised(model, random), "m.onnx")
    line = [sys.executable, "-m", "sardonyx.quantization.preprocess", "--input", "m.onnx", "--output", "p.onnx"]
    subprocess.run([*line, "--skip_optimization", "true"], check=True)
    assert "BatchNormalization" in op_types(onnx.load("p.onnx"))
    subprocess.run(line, check=True)
    assert "BatchNormalization" not in op_types(onnx.load("p.onnx"))


def test_batch_norms_that_cannot_join(model, random):
    made = model(
        """m (float[N, 3, H, W] x) => (float[N, 3, H, W] y, float[N, 3, H, W] c) {
            c = Conv(x, w)
            y = BatchNormalization(c, gain, bias, mean, var)
        }""",
        w=draw(random, 3, 3, 1, 1), gain=draw(random, 3), bias=draw(random, 3), mean=draw(random, 3),
        var=random.gamma(1, 1, 3).astype(np.float32),
    )  # fmt: skip
    assert op_types(quant_pre_process(made)) == ["Conv", "BatchNormalization"]


def quantised(model, random):
    made = model(
        """m (float[N, 6] x) => (float[N, 4] y) { a = Add(x, shift) r = Relu(a) y = Gemm(r, w, b) }""",
        shift=draw(random, 6), w=draw(random, 6, 4), b=draw(random, 4),
    )  # fmt: skip
    samples = [{"x": draw(random, 8, 6)} for _ in range(4)]
    return made, quantize_static(made, None, samples, activation_type="QUInt8", per_channel=True), samples


def test_errors_of_weights_and_activations(model, random):
    made, result, samples = quantised(model, random)
    onnx.save(made, "m.onnx")
    onnx.save(result, "q.onnx")
    errors = compute_weight_error(create_weight_matching("m.onnx", "q.onnx"))
    assert errors.keys() == {"shift", "w", "b"} and min(errors.values()) > 30
    collected = []
    for name in ("m", "q"):
        modify_model_output_intermediate_tensors(f"{name}.onnx", f"{name}.all.onnx")
        collected.append(collect_activations(f"{name}.all.onnx", samples))
    errors = compute_activation_error(create_activation_matching(collected[1], collected[0]))
    report = error_report(made, result, samples)
    assert report.keys() == errors.keys() == {"x", "r", "y"}
    for name, found in report.items():
        assert found["qdq_err"] == pytest.approx(errors[name]["qdq_err"], abs=1e-3)
        if "xmodel_err" in found:
            assert found["xmodel_err"] == pytest.approx(errors[name]["xmodel_err"], abs=1e-3)
    assert list(report) == sorted(report, key=lambda name: report[name].get("xmodel_err", report[name]["qdq_err"]))


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "sardonyx", "quantize", *arguments], capture_output=True, text=True)


def test_the_command(model, random, tmp_path):
    made, _, samples = quantised(model, random)
    onnx.save(made, "m.onnx")
    (tmp_path / "feeds").mkdir()
    for index, sample in enumerate(samples):
        np.savez(tmp_path / "feeds" / f"{index}.npz", **sample)
    done = run("m.onnx", "-o", "q.onnx", "--data", "feeds", "--exclude", "Add_0", "--save-plan", "p.json")
    assert done.returncode == 0, done.stderr
    assert "float: Add_0" in done.stdout and "left out by name" in done.stdout and "bytes" in done.stdout
    sample = samples[0]
    assert decibels(ours(made, sample)[0], ours(onnx.load("q.onnx"), sample)[0]) > 25
    assert json.loads((tmp_path / "p.json").read_text())["nodes"]["Add_0"]["precision"] == "float"
    assert run("m.onnx", "-o", "again.onnx", "--plan", "p.json").returncode == 0
    np.testing.assert_array_equal(ours(onnx.load("again.onnx"), sample)[0], ours(onnx.load("q.onnx"), sample)[0])
    assert command(["m.onnx", "-o", "even.onnx", "--data", "feeds", "--equalize", "--smooth"]) == 0
    assert decibels(ours(made, sample)[0], ours(onnx.load("even.onnx"), sample)[0]) > 25
    done = run("m.onnx", "-o", "none.onnx", "--data", "feeds", "--exclude", "Ad_0")
    assert done.returncode == 2 and "nearest: 'Add_0'" in done.stderr and not os.path.exists("none.onnx")


def test_precisions_of_the_command(model, random, capsys):
    made, _, samples = quantised(model, random)
    wide = model("m (float[N, 32] x) => (float[N, 8] y) { y = MatMul(x, w) }", w=draw(random, 32, 8))
    onnx.save(made, "m.onnx")
    onnx.save(wide, "wide.onnx")
    for precision, source, found in (
        ("int8-dynamic", "m.onnx", "MatMulInteger"), ("int4", "wide.onnx", "MatMulNBits"), ("f16", "m.onnx", "Cast"),
    ):  # fmt: skip
        assert command([source, "-o", "out.onnx", "--precision", precision]) == 0
        assert found in op_types(onnx.load("out.onnx"))
    assert command(["m.onnx", "-o", "dry.onnx", "--precision", "int8-dynamic", "--dry-run"]) == 0
    assert not os.path.exists("dry.onnx")
    assert command(["m.onnx", "-o", "out.onnx"]) == 2 and "--data FOLDER" in capsys.readouterr().err
    assert command(["nothing.onnx", "-o", "out.onnx", "--precision", "f16"]) == 2
    assert command(["wide.onnx", "-o", "out.onnx", "--precision", "int4", "--method", "gptq"]) == 2


def test_folders_of_samples(tmp_path, random):
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    values = draw(random, 2, 3)
    (folder / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(values).SerializeToString())
    (folder / "input_1.pb").write_bytes(onnx.numpy_helper.from_array(values + 1, "named").SerializeToString())
    reader = FolderDataReader(tmp_path, ["x", "y"])
    (sample,) = reader
    np.testing.assert_array_equal(sample["x"], values)
    np.testing.assert_array_equal(sample["named"], values + 1)
    assert reader.get_next() is None
    reader.rewind()
    assert reader.get_next() is not None
    with pytest.raises(FileNotFoundError, match="no folder"):
        FolderDataReader(tmp_path / "none").get_next()


def test_orders_of_nodes(model):
    made = model("m (float[N] x) => (float[N] y) { a = Neg(x) b = Abs(x) y = Add(a, b) }")
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend([nodes[2], nodes[1], nodes[0]])
    sort_nodes(made.graph)
    assert op_types(made) == ["Abs", "Neg", "Add"]
    made.graph.node.append(onnx.helper.make_node("Neg", ["q"], ["p"], "first"))
    made.graph.node.append(onnx.helper.make_node("Neg", ["p"], ["q"], "second"))
    with pytest.raises(ValueError, match="cycle through node 'first'"):
        sort_nodes(made.graph)
    with pytest.raises(ValueError, match="cycle"):
        ONNXModel(made).topological_sort()


def test_a_real_onnxruntime_in_the_process_is_refused():
    program = "import onnxruntime, sardonyx.quantization as q\ntry:\n    q.as_onnxruntime()\nexcept RuntimeError as e:\n    print(e)"
    assert "is loaded" in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    program = """
import sardonyx.quantization
sardonyx.quantization.as_onnxruntime()
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization import QuantType, registry
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.capi._pybind_state import quantize_matmul_4bits
print(MatMulNBitsQuantizer.__module__, len(registry.QDQRegistry))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["sardonyx.quantization.matmul_nbits_quantizer", "25"], done.stderr


def test_a_plan_of_another_version_is_refused():
    with pytest.raises(ValueError, match="version 7"):
        Plan.from_dict({"version": 7})


def test_factors_of_smoothing():
    weights = [np.array([[1.0, -4.0], [0.0, 0.0], [2.0, 1.0]], np.float32), np.array([[0.5], [0.0], [-8.0]], np.float32)]
    found = smoothing.factors_of(np.array([16.0, 3.0, 2.0], np.float32), weights, 0.5)
    np.testing.assert_allclose(found, [(16 / 4) ** 0.5, 1.0, (2 / 8) ** 0.5], rtol=1e-6)
    np.testing.assert_allclose(smoothing.factors_of([16.0, 3.0, 2.0], weights, 1.0), [16.0, 1.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("folding", [True, False])
def test_smoothing_keeps_the_function(folding):
    """x → LayerNormalization → two products, one of them a Gemm with B transposed → product of their sum."""
    random = np.random.default_rng(3)
    shapes = {"g": [6], "b": [6], "w": [6, 5], "v": [5, 6], "u": [5, 4]}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 17]> m (float[N, 6] x, float[6] g, float[6] b, float[6, 5] w, float[5, 6] v, float[5, 4] u) => (float[N, 4] y) {
            n = LayerNormalization(x, g, b)
            p = MatMul(n, w)
            q = Gemm <transB = 1> (n, v)
            s = Add(p, q)
            y = MatMul(s, u)
        }""")
    del model.graph.input[1:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    for node in model.graph.node:
        node.name = node.op_type + node.output[0]
    x = (random.standard_normal((7, 6)) * 10).astype(np.float32)
    smoothed = onnx.ModelProto()
    smoothed.CopyFrom(onnx.shape_inference.infer_shapes(model))
    kept = smoothing.smooth(smoothed, [{"x": x}], ["MatMul", "Gemm"], [], [], folding=folding)
    onnx.checker.check_model(smoothed, full_check=True)
    assert kept == ([] if folding else ["s_smooth"])
    assert [node.op_type for node in smoothed.graph.node].count("Mul") == (not folding)
    (expected,), (found,) = (ReferenceEvaluator(each).run(None, {"x": x}) for each in (model, smoothed))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    names = {tensor.name for tensor in smoothed.graph.initializer}
    assert not names & {"g", "b", "w", "v"} and ("u" in names) == folding


def test_smoothing_needs_samples_twice():
    with pytest.raises(ValueError, match="this generator can be gone through once"):
        smoothing.samples_to_go_through_first(each for each in [{}])


@pytest.mark.parametrize("through", ["Relu", "LeakyRelu<alpha = 0.1>", "Identity"])
def test_equalisation_of_products(through, model, random):
    """The same numbers to the last bit; max|w| of a channel on both sides is at most a factor of two apart, or squared."""
    sizes = 4.0 ** np.arange(-3, 3).astype(np.float32)
    made = model(
        f"""m (float[N, 5] x) => (float[N, 3] y) {{
            h = Gemm<transB = 1>(x, w, b)
            r = {through}(h)
            y = MatMul(r, v)
        }}""",
        w=draw(random, 6, 5) * sizes[:, None], b=draw(random, 6) * sizes, v=draw(random, 6, 3) / sizes[:, None],
    )  # fmt: skip
    even = equalization.equalize(made)
    x = draw(random, 9, 5)
    (expected,), (found,) = (ReferenceEvaluator(each).run(None, {"x": x}) for each in (made, even))
    np.testing.assert_array_equal(found, expected)
    arrays = weights(even)
    ratio = np.abs(arrays["w"]).max(1) / np.abs(arrays["v"]).max(1)
    assert (ratio <= 2).all() and (ratio >= 0.5).all()


def test_equalisation_leaves_what_others_read(model, random):
    arrays = {"w": draw(random, 6, 6) * np.float32(100), "v": draw(random, 6, 6)}
    for text in (
        "m (float[N, 6] x) => (float[N, 6] y, float[N, 6] h) { h = MatMul(x, w) y = MatMul(h, v) }",
        "m (float[N, 6] x) => (float[N, 6] y, float[N, 6] z) { h = MatMul(x, w) y = MatMul(h, v) z = Add(h, x) }",
        "m (float[N, 6] x) => (float[N, 6] y) { h = MatMul(x, w) s = Sigmoid(h) y = MatMul(s, v) }",
        "m (float[N, 6] x) => (float[N, 6] y, float[N, 6] z) { h = MatMul(x, w) y = MatMul(h, v) z = MatMul(x, v) }",
    ):
        made = model(text, **arrays)
        for name, array in weights(equalization.equalize(made)).items():
            np.testing.assert_array_equal(array, arrays[name])
