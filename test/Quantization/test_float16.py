"""Models in 16-bit floats, against the same models in f32."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser
from running import check, decibels, op_types, ours, weights

from sardonyx.quantization import Refused, quantize
from sardonyx.quantization.float16 import (
    convert_float_to_float16,
    convert_np_to_float16,
    convert_precision,
    float_to_float16_max_diff,
)

TEXT = """m (float[N, 8] x) => (float[N, 4] y, float[N, 3] v, int64[N, 3] i) {
    h = MatMul(x, w1)
    s = Add(h, shift)
    r = Relu(s)
    y = Softmax<axis = -1>(r)
    v, i = TopK<axis = -1>(s, three)
}"""


def network(model, random):
    def draw(*shape):
        return random.normal(0, 0.5, shape).astype(np.float32)

    return model(TEXT, w1=draw(8, 4), shift=draw(4), three=np.array([3]))


def types_of(model):
    return [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_there_and_back(kind, model, random):
    made = network(model, random)
    before = made.SerializeToString()
    sample = {"x": random.normal(0, 1, (5, 8)).astype(np.float32)}
    result = convert_precision(made, kind)
    assert made.SerializeToString() == before
    onnx.checker.check_model(result, full_check=True)
    assert types_of(result) == types_of(made)
    numbers = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
    assert weights(result)["w1"].dtype == numbers
    found = ours(result, sample)
    for expected, value in list(zip(ours(made, sample), found))[:2]:
        assert value.dtype == np.float32 and decibels(expected, value) > (50 if kind == "f16" else 30)
    back = convert_precision(result, "f32")
    onnx.checker.check_model(back, full_check=True)
    assert {value.dtype for value in weights(back).values()} <= {np.dtype(np.float32), np.dtype(np.int64)}
    np.testing.assert_allclose(ours(back, sample)[0], ours(made, sample)[0], rtol=2e-2)


def test_casts_are_one_a_value_and_type_and_in_order(model, random):
    text = """m (float[N, 6] x) => (float[N, 6] a, float[N, 6] b, float[N, 6] c) {
        h = Neg(x)
        a = Max(h, x)
        b = Min(h, x)
        c = Sqrt(h)
    }"""
    result = convert_float_to_float16(model(text))
    onnx.checker.check_model(result, full_check=True)
    casts = [node for node in result.graph.node if node.op_type == "Cast"]
    assert len({(node.input[0], node.attribute[0].i) for node in casts}) == len(casts)
    assert len({node.name for node in casts}) == len(casts)
    assert types_of(result) == [TensorProto.FLOAT16] * 4
    sample = {"x": -np.abs(random.normal(0, 1, (2, 6))).astype(np.float16)}
    for expected, found in zip(ours(model(text), {"x": sample["x"].astype(np.float32)}), ours(result, sample)):
        np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_inputs_and_outputs_by_name(model, random):
    made = network(model, random)
    assert types_of(convert_float_to_float16(made, keep_io_types=["x"])) == [1, 10, 10, 7]
    assert types_of(convert_float_to_float16(made, keep_io_types=True)) == [1, 1, 1, 7]
    with pytest.raises(ValueError, match="did you mean y"):
        convert_float_to_float16(made, keep_io_types=["yy"])
    with pytest.raises(ValueError, match="no node"):
        convert_float_to_float16(made, node_block_list=["nothing"])


def test_nodes_that_stay(model, random):
    made = network(model, random)
    made.graph.node[0].name = "/head/MatMul"
    result = convert_precision(made, "f16", node_block_list=["/head/*"])
    assert weights(result)["w1"].dtype == np.float32
    mixed = convert_float_to_float16(made, node_block_list=["/head/*"], use_bfloat16_as_blocked_nodes_dtype=True)
    assert weights(mixed)["w1"].dtype == ml_dtypes.bfloat16


def test_weights_beyond_the_range_stay(model, caplog):
    made = model("m (float[N, 2] x) => (float[N, 2] y) { t = Mul(x, large) y = Add(t, small) }",
                 large=np.array([1e6, 1], np.float32), small=np.array([1, 2], np.float32))  # fmt: skip
    result = convert_precision(made, "f16")
    assert weights(result)["large"].dtype == np.float32 and weights(result)["small"].dtype == np.float16
    assert "'large' holds numbers beyond 65504" in caplog.text
    assert weights(convert_precision(made, "bf16"))["large"].dtype == ml_dtypes.bfloat16


def test_constants_and_what_makes_numbers(model):
    text = """m (int64[2] shape, float[N] x) => (float[A, B] y, float[N] z) {
        filled = ConstantOfShape(shape)
        one = Constant<value_float = 1.5>()
        y = Add(filled, one)
        c = Cast<to = 1>(shape)
        k = Constant<value = float {0.25}>()
        z = Mul(x, k)
    }"""
    result = convert_precision(model(text), "f16")
    onnx.checker.check_model(result, full_check=True)
    sample = {"shape": np.array([2, 3]), "x": np.ones(4, np.float32)}
    found = ours(result, sample)
    np.testing.assert_array_equal(found[0], np.full((2, 3), 1.5, np.float32))
    np.testing.assert_array_equal(found[1], np.full(4, 0.25, np.float32))


def test_bodies(model, random):
    made = model("m (bool c, float[N, 6] x) => (float[N, 4] y) { y = Identity(x) }", w=random.normal(0, 1, (6, 4)).astype(np.float32))
    branches = {
        "then_branch": parser.parse_graph("then () => (float[N, 4] t) { t = MatMul(x, w) }"),
        "else_branch": parser.parse_graph("else () => (float[N, 4] e) { s = MatMul(x, w) e = Neg(s) }"),
    }
    del made.graph.node[:]
    made.graph.node.append(onnx.helper.make_node("If", ["c"], ["y"], "choice", **branches))
    result = convert_precision(made, "f16")
    onnx.checker.check_model(result, full_check=True)
    for condition in (True, False):
        sample = {"c": np.array(condition), "x": random.normal(0, 1, (3, 6)).astype(np.float32)}
        assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 50


def test_weights_that_bodies_read(model, random):
    """They are stored once in 16 bits; one that is also a result, or that f16 can't hold, has f32 as well."""
    made = model(
        """m (float[N, 8] x, bool c) => (float[N, 8] y, float[8] kept) {
            p = MatMul(x, w)
            q = Add(p, kept)
            y = If(c) <
                then_branch = g () => (float[N, 8] a) { t = MatMul(q, w)
                    a = Add(t, b) },
                else_branch = g () => (float[8] z) { z = Identity(far) }
            >
        }""",
        w=random.standard_normal((8, 8)).astype(np.float32), b=random.standard_normal(8).astype(np.float32),
        kept=random.standard_normal(8).astype(np.float32), far=np.full(8, 1e6, np.float32),
    )  # fmt: skip
    half = convert_precision(made, "f16")
    check(half)
    kinds = {tensor.name: tensor.data_type for tensor in half.graph.initializer}
    assert kinds["w"] == kinds["b"] == TensorProto.FLOAT16 and kinds["kept"] == kinds["far"] == TensorProto.FLOAT
    feeds = {"x": random.standard_normal((3, 8)).astype(np.float32), "c": np.array(True)}
    y, kept = ours(half, feeds)
    assert decibels(ours(made, feeds)[0], y) > 45
    assert kept.tobytes() == ours(made, feeds)[1].tobytes()
    assert np.isinf(ours(half, feeds | {"c": np.array(False)})[0]).all()


def test_nothing_to_convert_is_told(model, random):
    made = model(
        """m (float[N, 8] x, bool c) => (float[N, 8] y) {
            y = If(c) <then_branch = g () => (float[N, 8] a) { a = MatMul(x, w) }, else_branch = g () => (float[N, 8] b) { b = Neg(x) }>
        }""",
        w=random.standard_normal((8, 8)).astype(np.float32),
    )
    samples = [{"x": random.standard_normal((4, 8)).astype(np.float32), "c": np.array(True)} for _ in range(8)]
    with pytest.raises(Refused, match="int8 changes nothing: no node that it is for lies outside of the bodies"):
        quantize(made, samples, max_error=0.5)


def test_operators_without_16_bits_are_blocked(model, random):
    made = model("m (float[N, 6] x) => (float[N, 4] y) { q, s, z = DynamicQuantizeLinear(x) d = DequantizeLinear(q, s, z) y = MatMul(d, w) }",
                 w=random.normal(0, 1, (6, 4)).astype(np.float32))  # fmt: skip
    result = convert_precision(made, "f16", keep_io_types=False)
    onnx.checker.check_model(result, full_check=True)
    assert "DynamicQuantizeLinear" in op_types(result)
    check(result)


def test_numbers():
    values = np.array([1e-9, -1e-9, 1e6, -1e6, np.inf, 1.0, 0.0], np.float32)
    np.testing.assert_array_equal(
        convert_np_to_float16(values), np.array([5.96e-8, -5.96e-8, 65504, -65504, np.inf, 1, 0], np.float16)
    )
    tensor = onnx.numpy_helper.from_array(np.array([1 / 3, 2], np.float32), "t")
    assert float_to_float16_max_diff(tensor) == abs(np.float32(1 / 3) - np.float32(np.float16(1 / 3)))


def test_samples_tell_what_halves_hold(model, random):
    made = network(model, random)
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(3e4 * weights(made)["w1"], "w1"))
    samples = [{"x": random.normal(0, 10, (5, 8)).astype(np.float32)} for _ in range(3)]
    plain, aware, mixed = (
        convert_precision(made, to, data=data) for to, data in (("f16", None), ("f16", samples), ("auto", samples))
    )
    kinds = [weights(each)["w1"].dtype for each in (plain, aware, mixed)]
    assert kinds == [np.float16, np.float32, ml_dtypes.bfloat16]
    onnx.checker.check_model(aware, full_check=True)
    wanted = ours(made, samples[0])
    assert decibels(wanted[1], ours(aware, samples[0])[1]) > 60
    assert not np.isfinite(ours(plain, samples[0])[1]).all()
    assert decibels(wanted[1], ours(mixed, samples[0])[1]) > 25
    with pytest.raises(ValueError, match='"auto" tells by samples what f16 holds: give data'):
        convert_precision(made, "auto")


def test_conversion_within_bounds(model, random):
    made = network(model, random)
    samples = [{"x": random.normal(0, 1, (5, 8)).astype(np.float32)} for _ in range(40)]
    result = convert_precision(made, "f16", data=samples, max_error=0.01)
    assert weights(result.model)["w1"].dtype == np.float16 and result.report["summary"]["loss"] <= 0.01
    exact = convert_precision(made, "bf16", data=samples, max_error=1e-7)
    assert weights(exact.model)["w1"].dtype == np.float32  # all of it went back
    with pytest.raises(Refused, match="is slower|No plan reaches|can't be told"):
        convert_precision(made, "bf16", data=samples, max_error=1, min_speedup=100, timing_seconds=0.05)
    with pytest.raises(ValueError, match="bounds of a conversion need data"):
        convert_precision(made, "f16", max_error=0.01)
    with pytest.raises(TypeError, match="'metric' goes with max_error or min_speedup"):
        convert_precision(made, "f16", data=samples, metric="mse")
