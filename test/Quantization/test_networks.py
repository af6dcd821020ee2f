"""Accuracies of trained networks: at least what onnxruntime's tools, or the methods written out in numpy, reach."""

import copy

import numpy as np
import onnx
import pytest
from networks import Network
from running import check, peers

from sardonyx.quantization import QuantFormat, QuantType, quant_pre_process, quantize_dynamic, quantize_static
from sardonyx.quantization.equalization import equalize
from sardonyx.quantization.float16 import convert_precision
from sardonyx.quantization.matmul_nbits_quantizer import (
    AWQWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    RTNWeightOnlyQuantConfig,
)

FLOAT = {"digits_cnn": 99.66, "text_lm": -1.467, "image_unet": 32.55}


@pytest.fixture(scope="module")
def networks():
    made = {}

    def get(name):
        if name not in made:
            made[name] = Network(name)
        return made[name]

    return get


def agrees_with_onnxruntime(network, model, rtol=1e-3):
    found, theirs = (network.score(model, run) for run in (None, lambda feeds: peers(model, feeds)))
    assert found == pytest.approx(theirs, rel=rtol)
    return found


@pytest.mark.parametrize("name", FLOAT)
def test_float(name, networks):
    network = networks(name)
    assert network.score(network.model) >= FLOAT[name]
    assert network.score(convert_precision(network.model, "f16")) >= FLOAT[name] - 0.01


@pytest.mark.parametrize("form", list(QuantFormat), ids=str)
@pytest.mark.parametrize(("name", "least"), [("digits_cnn", 99.66), ("image_unet", 32.48)])
def test_static(name, least, form, networks):
    network = networks(name)
    model = quant_pre_process(network.model)
    for types in ({"activation_type": QuantType.QUInt8, "per_channel": True}, {}):
        result = quantize_static(model, None, network.samples(), form, **types)
        check(result)
        assert agrees_with_onnxruntime(network, result) >= least


def test_static_text_with_its_mask_in_float(networks):
    network = networks("text_lm")
    nodes = network.model.graph.node
    scores = {node.input[0] for node in nodes if node.op_type == "Softmax"}
    kept = [node.name for node in nodes if node.op_type == "Softmax" or node.output[0] in scores]
    model = quant_pre_process(network.model)
    result = quantize_static(
        model, None, network.samples(), activation_type=QuantType.QUInt8, per_channel=True, nodes_to_exclude=kept
    )
    assert agrees_with_onnxruntime(network, result) >= -1.475


@pytest.mark.parametrize(("name", "least"), [("digits_cnn", 99.5), ("text_lm", -1.472), ("image_unet", 32.45)])
def test_dynamic(name, least, networks):
    network = networks(name)
    # onnxruntime has no ConvInteger of s8 weights.
    kinds = [QuantType.QInt8] if name == "text_lm" else [QuantType.QInt8, QuantType.QUInt8]
    for kind in kinds:
        result = quantize_dynamic(quant_pre_process(network.model), None, weight_type=kind)
        check(result)
        assert network.score(result) >= least
    assert agrees_with_onnxruntime(network, result) >= least


def few_bits(network, config, bits, symmetric):
    quantizer = MatMulNBitsQuantizer(copy.deepcopy(network.model), bits, 32, symmetric, algo_config=config)
    quantizer.process()
    return network.score(quantizer.model.model)


@pytest.mark.slow
def test_weights_of_8_bits(networks):
    assert few_bits(networks("text_lm"), RTNWeightOnlyQuantConfig(), 8, False) >= -1.468


# Nats of the methods written out in numpy: rounding to the nearest, GPTQ, AWQ.
TEXT = {(4, True): (1.485, 1.470, 1.488), (3, True): (1.554, 1.497, 1.556), (2, False): (1.971, 1.620, 1.905)}
OUTLIERS = {(4, True): (1.700, 1.551, 1.489), (3, True): (1.770, 1.597, 1.588)}


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in ((4, True), (2, False))]


@pytest.mark.parametrize(("bits", "symmetric"), [(3, True), *SLOW])
def test_text_in_few_bits(bits, symmetric, networks):
    network = networks("text_lm")
    plain, compensated, aware = TEXT[bits, symmetric]
    rtn = few_bits(network, RTNWeightOnlyQuantConfig(), bits, symmetric)
    assert rtn >= -plain - 0.003
    # With 2 bits the order of the inputs decides.
    gptq = few_bits(network, GPTQWeightOnlyQuantConfig(network.samples(), actorder=bits == 2), bits, symmetric)
    assert gptq >= -compensated - 0.003 and gptq >= rtn
    awq = few_bits(network, AWQWeightOnlyQuantConfig(network.samples()), bits, symmetric)
    assert awq >= -aware - 0.003 and awq >= rtn - 0.005
    searched = few_bits(network, KQuantWeightOnlyQuantConfig(calibration_data_reader=network.samples()), bits, symmetric)
    assert searched >= rtn - 0.005
    if not symmetric:
        assert few_bits(network, HQQWeightOnlyQuantConfig(32, bits), bits, symmetric) >= rtn


@pytest.mark.parametrize(("bits", "symmetric"), [(4, True), pytest.param(3, True, marks=pytest.mark.slow)])
def test_text_with_outliers_in_few_bits(bits, symmetric, networks):
    network = networks("text_outliers")
    exact = -1.466
    plain, compensated, aware = OUTLIERS[bits, symmetric]
    rtn = few_bits(network, RTNWeightOnlyQuantConfig(), bits, symmetric)
    assert rtn >= -plain - 0.003
    gptq = few_bits(network, GPTQWeightOnlyQuantConfig(network.samples()), bits, symmetric)
    assert gptq >= -compensated - 0.003
    awq = few_bits(network, AWQWeightOnlyQuantConfig(network.samples()), bits, symmetric)
    assert awq >= -aware - 0.003 and exact - awq <= (exact - rtn) / 2


@pytest.mark.parametrize("channels", [False, True])
def test_equalisation(channels, networks):
    network = networks("digits_skewed")
    model = quant_pre_process(network.model)
    even = equalize(model)
    check(even)
    feeds = {network.input: network.x[:20]}
    np.testing.assert_array_equal(peers(model, feeds)[0], peers(even, feeds)[0])
    settings = {"activation_type": QuantType.QUInt8, "per_channel": channels}
    assert network.score(quantize_static(model, None, network.samples(), **settings)) < 50
    assert network.score(quantize_static(even, None, network.samples(), **settings)) >= 99.66


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"SmoothQuant": True}, -1.475),
        pytest.param({"SmoothQuant": True, "SmoothQuantAlpha": 0.7}, -1.475, marks=pytest.mark.slow),
        pytest.param({"SmoothQuant": True, "SmoothQuantFolding": False}, -1.475, marks=pytest.mark.slow),
        pytest.param({}, -2.46, marks=pytest.mark.slow),
    ],
)
def test_smoothing(options, least, networks):
    network = networks("text_outliers")
    result = quantize_static(
        quant_pre_process(network.model), None, network.samples(), activation_type=QuantType.QUInt8, per_channel=True,
        op_types_to_quantize=["MatMul"], extra_options={"MatMulConstBOnly": True, **options},
    )  # fmt: skip
    check(result)
    found = network.score(result)
    assert found >= least and (found >= -1.6) == bool(options)


@pytest.mark.parametrize("name", ["digits_planted", "digits_skewed", "text_outliers"])
def test_variants_are_the_same_in_float(name, networks):
    network = networks(name)
    base = networks("text_lm" if name.startswith("text") else "digits_cnn")
    assert network.score(network.model) == pytest.approx(base.score(base.model), rel=1e-3)
    onnx.checker.check_model(network.model, full_check=True)


def test_the_planted_tensor(networks):
    network = networks("digits_planted")
    model = quant_pre_process(network.model)
    last = [node.name for node in model.graph.node if node.op_type == "Gemm"][-1]
    options = {"activation_type": QuantType.QUInt8, "per_channel": True}
    samples = network.samples()
    assert network.score(quantize_static(model, None, samples, **options)) < 90
    kept = quantize_static(model, None, samples, nodes_to_exclude=["planted_add", last], **options)
    assert network.score(kept) >= 99.5
    assert np.isclose(onnx.numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == "planted_offset")), 400)
