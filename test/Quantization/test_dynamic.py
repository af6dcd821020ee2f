"""Dynamic quantisation, against the float model, onnxruntime and ONNX's reference."""

import numpy as np
import onnx
import pytest
from onnx import parser
from running import check, decibels, op_types, ours, peers, reference, weights

from sardonyx.quantization import Plan, QuantType, apply_plan, quantize_dynamic


def draw(random, *shape):
    return random.normal(0, 0.4, shape).astype(np.float32)


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensors", "channels"])
@pytest.mark.parametrize("weight", [QuantType.QInt8, QuantType.QUInt8], ids=str)
def test_products(per_channel, weight, model, random):
    text = """m (float[N, 6] x) => (float[N, 4] y) { h = MatMul(x, w1) r = Relu(h) y = Gemm<transB = 1>(r, w2, b) }"""
    made = model(text, w1=draw(random, 6, 8), w2=draw(random, 4, 8), b=draw(random, 4))
    made.graph.node[2].name = "fc"
    before = made.SerializeToString()
    result = quantize_dynamic(made, None, per_channel=per_channel, weight_type=weight)
    assert made.SerializeToString() == before
    check(result)
    assert op_types(result).count("MatMulInteger") == 2 and "fc_MatMul_quant" in [n.name for n in result.graph.node]
    sample = {"x": draw(random, 3, 6)}
    found = ours(result, sample)[0]
    assert decibels(ours(made, sample)[0], found) > 28
    np.testing.assert_allclose(found, peers(result, sample)[0], atol=1e-5)
    np.testing.assert_allclose(found, reference(result, sample)[0], atol=1e-5)
    again = apply_plan(made, None, Plan.of_model(result))
    np.testing.assert_array_equal(ours(again, sample)[0], found)


@pytest.mark.parametrize("bias", [False, True])
def test_convolutions(bias, model, random):
    inputs = "x, w, b" if bias else "x, w"
    made = model(
        f"m (float[N, 3, 6, 6] x) => (float[N, 4, 6, 6] y) {{ y = Conv<pads = [1, 1, 1, 1]>({inputs}) }}",
        w=draw(random, 4, 3, 3, 3), **({"b": draw(random, 4)} if bias else {}),
    )  # fmt: skip
    result = quantize_dynamic(made, None, weight_type=QuantType.QUInt8)
    check(result)
    sample = {"x": draw(random, 2, 3, 6, 6)}
    found = ours(result, sample)[0]
    assert decibels(ours(made, sample)[0], found) > 30
    np.testing.assert_allclose(found, peers(result, sample)[0], atol=1e-5)


def test_halves_are_cast_to_what_the_operator_takes(model, random):
    text = "m (float16[N, 6] x) => (float16[N, 4] y) { y = MatMul(x, w) }"
    made = model(text, w=draw(random, 6, 4).astype(np.float16))
    result = quantize_dynamic(made, None)
    check(result)
    sample = {"x": draw(random, 3, 6).astype(np.float16)}
    assert ours(result, sample)[0].dtype == np.float16
    assert decibels(ours(made, sample)[0].astype(np.float32), ours(result, sample)[0].astype(np.float32)) > 28


def test_a_gemm_by_its_own_name_stays(model, random):
    text = "m (float[N, 6] x) => (float[N, 4] y) { h = MatMul(x, w1) y = Gemm(h, w2, b) }"
    made = model(text, w1=draw(random, 6, 8), w2=draw(random, 8, 4), b=draw(random, 4))
    made.graph.node[0].name, made.graph.node[1].name = "first", "second"
    kept = quantize_dynamic(made, None, nodes_to_exclude=["second"])
    assert op_types(kept).count("Gemm") == 1 and op_types(kept).count("MatMulInteger") == 1
    only = quantize_dynamic(made, None, nodes_to_quantize=["second"])
    assert op_types(only).count("MatMul") == 1 and "second_MatMul_quant" in [node.name for node in only.graph.node]
    gemms = quantize_dynamic(made, None, op_types_to_quantize=["Gemm"])
    assert [node.name for node in gemms.graph.node if node.op_type == "MatMulInteger"] == ["second_MatMul_quant"]
    with pytest.raises(ValueError, match="nearest: 'second'"):
        quantize_dynamic(made, None, nodes_to_exclude=["secnd"])


def test_a_weight_with_readers_of_floats_is_stored_once(model, random):
    text = """m (float[N, 6] x) => (float[N, 6] y, float[6, 6] z) { z = Neg(w) y = MatMul(x, w) }"""
    made = model(text, w=draw(random, 6, 6))
    for per_channel in (False, True):
        result = quantize_dynamic(made, None, per_channel=per_channel)
        check(result)
        assert [name for name, value in weights(result).items() if value.size == 36] == ["w_quantized"]
        sample = {"x": draw(random, 3, 6)}
        assert decibels(ours(made, sample)[1], ours(result, sample)[1]) > 30


def test_bodies(model, random):
    body = """then () => (float[N, 4] t) { t = MatMul(x, w) }"""
    other = """else () => (float[N, 4] e) { s = MatMul(x, w) e = Neg(s) }"""
    made = model("m (bool c, float[N, 6] x) => (float[N, 4] y) { y = Identity(x) }", w=draw(random, 6, 4))
    branches = {"then_branch": parser.parse_graph(body), "else_branch": parser.parse_graph(other)}
    del made.graph.node[:]
    made.graph.node.append(onnx.helper.make_node("If", ["c"], ["y"], "choice", **branches))
    result = quantize_dynamic(made, None, extra_options={"EnableSubgraph": True})
    inner = [node.op_type for entry in result.graph.node[-1].attribute for node in entry.g.node]
    assert inner.count("MatMulInteger") == 2 and "w_quantized" in weights(result)
    for condition in (True, False):
        sample = {"c": np.array(condition), "x": draw(random, 3, 6)}
        assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 28


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensors", "channels"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent_networks(per_channel, direction, model, random):
    count = 2 if direction == "bidirectional" else 1
    made = model(
        f"""m (float[5, 2, 3] x) => (float[5, {count}, 2, 4] y)
        {{ y, h, c = LSTM<hidden_size = 4, direction = "{direction}">(x, w, r, b) }}""",
        w=draw(random, count, 16, 3), r=draw(random, count, 16, 4), b=draw(random, count, 32),
    )  # fmt: skip
    result = quantize_dynamic(made, None, per_channel=per_channel)
    assert op_types(result) == ["DynamicQuantizeLSTM"]
    sample = {"x": draw(random, 5, 2, 3)}
    assert decibels(peers(made, sample)[0], peers(result, sample)[0]) > 25
    assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 25


def test_tables_of_words(model, random):
    text = "m (int64[N] ids) => (float[N, 5] y) { e = Gather(table, ids) y = MatMul(e, w) }"
    made = model(text, table=draw(random, 30, 8), w=draw(random, 8, 5))
    result = quantize_dynamic(made, None)
    check(result)
    sample = {"ids": np.array([1, 29, 0, 1])}
    assert "table_quantized" in weights(result)
    assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 25


def test_opset_10_computes_scales_itself(model, random):
    made = model("m (float[N, 6] x) => (float[N, 4] y) { y = MatMul(x, w) }", 10, 5, w=draw(random, 6, 4))
    result = quantize_dynamic(made, None)
    assert "DynamicQuantizeLinear" not in op_types(result)
    sample = {"x": draw(random, 3, 6)}
    assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 25
