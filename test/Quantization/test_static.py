"""Static quantisation: results against onnxruntime and ONNX's reference, forms against those of onnxruntime's own tool."""

import copy

import numpy as np
import onnx
import onnxruntime.quantization as peer
import pytest
from onnx import TensorProto
from running import check, decibels, op_types, ours, peers, reference, weights

from sardonyx import quantization as own
from sardonyx.quantization import Plan, QuantFormat, QuantType, apply_plan, quantize_static

TYPES = [("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8")]


def small_cnn(model, random):
    def draw(*shape):
        return random.normal(0, 0.4, shape).astype(np.float32)

    return model(
        """cnn (float[N, 3, 8, 8] x) => (float[N, 5] y) {
            c1 = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
            r1 = Relu(c1)
            c2 = Conv<pads = [1, 1, 1, 1], group = 6>(r1, w2, b2)
            r2 = Clip(c2, zero, six)
            sum = Add(r1, r2)
            pool = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(sum)
            mean = GlobalAveragePool(pool)
            flat = Flatten(mean)
            y = Gemm<transB = 1>(flat, w3, b3)
        }""",
        w1=draw(6, 3, 3, 3), b1=draw(6), w2=draw(6, 1, 3, 3), b2=draw(6), w3=draw(5, 6), b3=draw(5),
        zero=np.array(0, np.float32), six=np.array(6, np.float32),
    )  # fmt: skip


def small_transformer(model, random):
    def draw(*shape):
        return random.normal(0, 0.3, shape).astype(np.float32)

    return model(
        """block (float[N, 6, 8] x) => (float[N, 6, 8] y) {
            n = LayerNormalization(x, gain, bias)
            q = MatMul(n, wq)
            k = MatMul(n, wk)
            kt = Transpose<perm = [0, 2, 1]>(k)
            s = MatMul(q, kt)
            p = Softmax<axis = -1>(s)
            v = MatMul(n, wv)
            a = MatMul(p, v)
            g = Sigmoid(a)
            m = Mul(a, g)
            y = Add(x, m)
        }""",
        gain=1 + draw(8), bias=draw(8), wq=draw(8, 8), wk=draw(8, 8), wv=draw(8, 8),
    )  # fmt: skip


NETWORKS = {"cnn": (small_cnn, (2, 3, 8, 8)), "transformer": (small_transformer, (2, 6, 8))}


@pytest.fixture(params=NETWORKS)
def network(request, model, random):
    make, shape = NETWORKS[request.param]
    return make(model, random), [{"x": random.normal(0, 1, shape).astype(np.float32)} for _ in range(6)]


def reader(samples, package=own):
    class Reader(package.CalibrationDataReader):
        def __init__(self):
            self.left = iter(samples)

        def get_next(self):
            return next(self.left, None)

    return Reader()


@pytest.mark.parametrize("form", list(QuantFormat), ids=str)
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_results(network, form, types):
    model, samples = network
    per_channel = types[0] == "QUInt8"
    before = model.SerializeToString()
    activation, weight = (QuantType[name] for name in types)
    made = quantize_static(
        model, None, samples, form, per_channel=per_channel, activation_type=activation, weight_type=weight
    )
    assert model.SerializeToString() == before
    check(made)
    assert Plan.of_model(made).format == form.name
    for sample in samples[:2]:
        expected = ours(model, sample)[0]
        found, theirs = ours(made, sample)[0], peers(made, sample)[0]
        assert decibels(expected, found) > 20
        # Sums of floats may fall to the other side of a rounding: one step of some numbers.
        assert decibels(theirs, found) > 35
        if form is QuantFormat.QDQ:
            assert decibels(reference(made, sample)[0], found) > 35


@pytest.mark.parametrize("form", list(QuantFormat), ids=str)
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensors", "channels"])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize(
    "options", [{}, {"ActivationSymmetric": True}, {"ForceQuantizeNoInputCheck": True, "MinimumRealRange": 3.0}], ids=str
)
def test_the_same_file_as_onnxruntimes_tool(network, form, per_channel, types, options, tmp_path):
    if "ForceQuantizeNoInputCheck" in options and form is QuantFormat.QOperator:
        pytest.skip("onnxruntime's leaves what moves numbers in float then; ours does as the option says")
    model, samples = network
    for index, node in enumerate(model.graph.node):
        node.name = f"n{index}"
    results = []
    for package in (peer, own):
        path = str(tmp_path / f"{package.__name__}.onnx")
        activation, weight = (package.QuantType[name] for name in types)
        package.quantize_static(
            copy.deepcopy(model), path, reader(samples, package), package.QuantFormat[form.name], per_channel=per_channel,
            activation_type=activation, weight_type=weight, extra_options=dict(options),
        )  # fmt: skip
        results.append(onnx.load(path))
    theirs, mine = results

    def nodes(result):
        return sorted((node.name, node.op_type, tuple(node.input), tuple(node.output)) for node in result.graph.node)

    assert nodes(theirs) == nodes(mine)
    expected, found = weights(theirs), weights(mine)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert value.dtype == found[name].dtype and value.shape == found[name].shape, name
        # Ranges come from two engines' sums: scales agree to a few units in the last place.
        np.testing.assert_allclose(value.astype(np.float64), found[name].astype(np.float64), rtol=2e-5, atol=1.001 if "quantized" in name or "zero_point" in name else 0)


def test_plans_repeat_a_quantisation(network, tmp_path):
    model, samples = network
    for form in QuantFormat:
        made = quantize_static(model, None, samples, form, per_channel=True, activation_type=QuantType.QUInt8)
        plan = Plan.of_model(made)
        plan.save(tmp_path / "plan.json")
        again = apply_plan(model, None, tmp_path / "plan.json")
        assert op_types(again) == op_types(made)
        expected, found = weights(made), weights(again)
        assert expected.keys() == found.keys()
        for name in expected:
            np.testing.assert_array_equal(expected[name], found[name])
        changed = Plan.load(tmp_path / "plan.json")
        product = next(name for name, node in changed.nodes.items() if "Conv" in name or "MatMul" in name)
        changed.nodes[product].precision = "float"
        kept = apply_plan(model, None, changed)
        if form is QuantFormat.QOperator:
            assert sum("QLinear" in name for name in op_types(kept)) < sum("QLinear" in name for name in op_types(made))
        np.testing.assert_allclose(ours(kept, samples[0])[0], ours(made, samples[0])[0], atol=1)


def test_the_plan_of_a_model_has_long_lists_of_numbers(model, random):
    made = model(
        "m (float[1, 3, 6, 6] x) => (float[1, 24, 4, 4] y) { y = Conv(x, w, b) }",
        w=random.normal(0, 1, (24, 3, 3, 3)).astype(np.float32), b=random.normal(0, 1, 24).astype(np.float32),
    )  # fmt: skip
    samples = [{"x": random.normal(0, 1, (1, 3, 6, 6)).astype(np.float32)}]
    plan = Plan.of_model(quantize_static(made, None, samples, per_channel=True))
    assert {name: np.size(tensor.scale) for name, tensor in plan.tensors.items()} == {"x": 1, "w": 24, "b": 24, "y": 1}
    np.testing.assert_allclose(plan.tensors["b"].scale, plan.tensors["x"].scale * plan.tensors["w"].scale, rtol=1e-6)


def test_relu_goes_where_its_range_does_its_work(model, random):
    cnn = small_cnn(model, random)
    samples = [{"x": random.normal(0, 1, (2, 3, 8, 8)).astype(np.float32)}]
    asymmetric = op_types(quantize_static(cnn, None, samples, activation_type="QUInt8"))
    assert "Relu" not in asymmetric and "Clip" not in asymmetric
    for options in ({"ActivationSymmetric": True}, {"QDQKeepRemovableActivations": True}):
        kept = op_types(quantize_static(cnn, None, samples, activation_type="QUInt8", extra_options=options))
        assert "Relu" in kept and "Clip" in kept


def test_channels_are_of_opset_13(model, random):
    """A pair with an axis is there from opset 13 on; models of older ones are converted."""
    made = model("g (float[N, 8] x) => (float[N, 3] y) { y = MatMul(x, w) }", 12, 7, w=random.normal(0, 1, (8, 3)).astype(np.float32))
    sample = {"x": random.standard_normal((16, 8)).astype(np.float32)}
    for per_channel, opset in ((False, 12), (True, 13)):
        result = quantize_static(made, None, [sample], per_channel=per_channel)
        assert result.opset_import[0].version == opset
        check(result)
        assert decibels(peers(made, sample)[0], ours(result, sample)[0]) > 35


@pytest.mark.parametrize("opset", [17, 21])
def test_words_are_of_opset_21(opset, model, random):
    text = "m (float[4, 8] x) => (float[4, 3] y) { y = MatMul(x, w) }"
    made = model(text, opset, 10, w=random.normal(0, 1, (8, 3)).astype(np.float32))
    sample = {"x": random.normal(0, 1, (4, 8)).astype(np.float32)}
    result = quantize_static(made, None, [sample], activation_type=QuantType.QUInt16, weight_type=QuantType.QInt16)
    assert result.opset_import[0].version == 21 and {node.domain for node in result.graph.node} == {""}
    check(result)
    assert decibels(ours(made, sample)[0], ours(result, sample)[0]) > 75


def test_blocks_of_weights(model, random):
    text = "m (float[4, 70] x) => (float[4, 3] y) { y = MatMul(x, w) }"
    weight = (random.normal(0, 1, (70, 3)) * np.where(np.arange(70) < 35, 0.01, 1)[:, None]).astype(np.float32)
    made = model(text, 21, 10, w=weight)
    sample = {"x": random.normal(0, 1, (4, 70)).astype(np.float32)}
    result = quantize_static(
        made, None, [sample], activation_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"],
        extra_options={"BlockSize": 35},
    )  # fmt: skip
    check(result)
    assert weights(result)["w_scale"].shape == (2, 3)
    np.testing.assert_allclose(ours(result, sample)[0], reference(result, sample)[0], atol=0.05)


def test_a_bias_too_large_for_32_bits_raises_the_weights_scale(model):
    text = "m (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y) { y = Conv(x, w, b) }"
    for per_channel in (False, True):
        weight = np.full((2, 2, 1, 1), 1e-7, np.float32)
        made = model(text, w=weight, b=np.array([5, 1000], np.float32))
        sample = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)}
        result = quantize_static(
            made, None, [sample], per_channel=per_channel, activation_type=QuantType.QUInt8,
            extra_options={"OpTypesToExcludeOutputQuantization": ["Conv"]},
        )  # fmt: skip
        np.testing.assert_allclose(ours(result, sample)[0], ours(made, sample)[0], rtol=1e-2)
        limit = np.abs(weights(result)["b_quantized"].astype(np.int64)).max()
        assert 2**30 < limit < 2**31


def test_tied_weights_are_stored_once(model, random):
    text = """m (float[4, 6] x) => (float[4, 6] y, float[4, 6] z) { y = MatMul(x, w) t = Neg(w) z = MatMul(x, t) }"""
    made = model(text, w=random.normal(0, 1, (6, 6)).astype(np.float32))
    sample = {"x": random.normal(0, 1, (4, 6)).astype(np.float32)}
    for form in QuantFormat:
        result = quantize_static(made, None, [sample], form, op_types_to_quantize=["MatMul"])
        stored = [name for name, value in weights(result).items() if value.size == 36]
        assert stored == ["w_quantized"]
        for expected, found in zip(ours(made, sample), ours(result, sample)):
            assert decibels(expected, found) > 25


def test_constants_of_nodes_are_weights(model, random):
    weight = random.normal(0, 1, (6, 3)).astype(np.float32)
    text = "m (float[4, 6] x) => (float[4, 3] y) { y = MatMul(x, w) }"
    made = model(text, w=weight)
    del made.graph.initializer[:]
    constant = onnx.helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(weight))
    made.graph.node.insert(0, constant)
    sample = {"x": random.normal(0, 1, (4, 6)).astype(np.float32)}
    result = quantize_static(made, None, [sample])
    assert "w_quantized" in weights(result) and "Constant" not in op_types(result)


def test_weights_in_files_beside(model, random, tmp_path):
    made = model("m (float[4, 64] x) => (float[4, 64] y) { y = MatMul(x, w) }", w=random.normal(0, 1, (64, 64)).astype(np.float32))
    onnx.save(copy.deepcopy(made), "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    sample = {"x": random.normal(0, 1, (4, 64)).astype(np.float32)}
    quantize_static("m.onnx", "q.onnx", [sample], use_external_data_format=True)
    assert (tmp_path / "q.onnx.data").stat().st_size < (tmp_path / "m.data").stat().st_size / 3
    assert decibels(ours(made, sample)[0], ours(onnx.load("q.onnx"), sample)[0]) > 25


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"nodes_to_exclude": ["/fc/Gem"]}, "'nodes_to_exclude' names '/fc/Gem', which is no node; nearest: '/fc/Gemm'"),
        ({"nodes_to_quantize": ["conv*"]}, "'nodes_to_quantize' names 'conv\\*', which is no node"),
        ({"op_types_to_quantize": ["Gem"]}, "'op_types_to_quantize' names 'Gem', .*; nearest: 'Gemm'"),
        ({"extra_options": {"ActivationSymetric": True}}, "no key 'ActivationSymetric'; nearest: 'ActivationSymmetric'"),
        ({"quant_format": "QDQs"}, "QuantFormat has no member 'QDQs'.*did you mean QDQ"),
        ({"weight_type": QuantType.QUInt8}, "QInt8 need weights of QInt8"),
        ({"activation_type": QuantType.QFLOAT8E4M3FN}, "8 bits"),
        ({"activation_type": QuantType.QInt16, "quant_format": "QOperator"}, "16 bits need quant_format"),
        ({"calibration_data_reader": None}, "calibration_data_reader"),
        ({"extra_options": {"TensorQuantOverrides": {"z": [{}]}}}, "'z' in TensorQuantOverrides is not present"),
    ],
)
def test_what_cannot_be_done_is_told(arguments, sentence, model, random):
    made = model("m (float[2, 3] x) => (float[2, 3] y) { y = Gemm(x, w) }", w=random.normal(0, 1, (3, 3)).astype(np.float32))
    made.graph.node[0].name = "/fc/Gemm"
    given = {"calibration_data_reader": [{"x": np.ones((2, 3), np.float32)}], **arguments}
    with pytest.raises(ValueError, match=sentence):
        quantize_static(made, None, **given)


def test_nodes_by_name_pattern_and_operator(model, random):
    made = small_transformer(model, random)
    for index, node in enumerate(made.graph.node):
        node.name = f"/{'mlp' if index > 7 else 'attention'}/{node.op_type}_{index}"
    sample = {"x": random.normal(0, 1, (2, 6, 8)).astype(np.float32)}
    for excluded in (["/attention/*"], ["MatMul", "LayerNormalization", "Transpose", "Softmax"]):
        plan = Plan.of_model(quantize_static(made, None, [sample], nodes_to_exclude=excluded))
        floats = {name for name, node in plan.nodes.items() if node.precision == "float"}
        assert all(name in floats for name in plan.nodes if name.startswith("/attention/"))
        assert plan.nodes["/mlp/Add_10"].precision == "int8"


def test_open_sizes_stay_open(model, random):
    made = small_cnn(model, random)
    result = quantize_static(made, None, [{"x": random.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)}])
    assert result.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert ours(result, {"x": np.zeros((5, 3, 8, 8), np.float32)})[0].shape == (5, 5)


def test_overrides(model, random):
    made = small_cnn(model, random)
    samples = [{"x": random.normal(0, 1, (2, 3, 8, 8)).astype(np.float32)}]
    overrides = {
        "x": [{"scale": np.float32(0.125), "zero_point": 7}],
        "w1": [{"axis": 0, "quant_type": QuantType.QInt8, "rmin": -2.0, "rmax": 2.0}] * 6,
        "sum": [{"rmin": -1.0, "rmax": 6.0}],
    }
    given = copy.deepcopy(overrides)
    result = quantize_static(
        made, None, samples, activation_type=QuantType.QUInt8, extra_options={"TensorQuantOverrides": overrides}
    )
    assert overrides == given
    found = weights(result)
    assert (found["x_scale"], found["x_zero_point"]) == (0.125, 7)
    np.testing.assert_allclose(found["w1_scale"], np.full(6, 4 / 254, np.float32))
    assert found["sum_scale"] == np.float32(7 / 255)
    assert TensorProto.UINT8 == next(t for t in result.graph.initializer if t.name == "sum_zero_point").data_type


@pytest.mark.parametrize("form", list(QuantFormat))
def test_gemm_multiplies_product_and_bias(model, random, form):
    """Gemm's beta goes into the stored bias, and QGemm multiplies that by alpha, too."""
    made = model(
        "g (float[N, 8] x) => (float[N, 5] y) { y = Gemm<alpha = 0.5, beta = 2.0>(x, w, b) }",
        w=random.standard_normal((8, 5)).astype(np.float32), b=(3 * random.standard_normal(5)).astype(np.float32),
    )  # fmt: skip
    feeds = {"x": random.standard_normal((64, 8)).astype(np.float32)}
    for per_channel in (False, True):
        found = quantize_static(made, None, [feeds], form, per_channel=per_channel)
        for run in (ours, peers):
            assert decibels(peers(made, feeds)[0], run(found, feeds)[0]) > 35


def test_bias_of_groups_that_share_scales(model, random):
    """A grouped ConvTranspose has a scale for each channel of a group, and a bias for each of all."""
    made = model(
        "g (float[N, 4, 5] x) => (float[N, 6, 7] y) { y = ConvTranspose<group = 2>(x, w, b) }",
        w=random.standard_normal((4, 3, 3)).astype(np.float32), b=random.standard_normal(6).astype(np.float32),
    )  # fmt: skip
    feeds = {"x": random.standard_normal((4, 4, 5)).astype(np.float32)}
    found = quantize_static(made, None, [feeds], per_channel=True)
    assert decibels(peers(made, feeds)[0], ours(found, feeds)[0]) > 35
