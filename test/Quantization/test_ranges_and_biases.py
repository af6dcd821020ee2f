"""Ranges of least squared error, and biases that take back what rounding shifts."""

import numpy as np
import onnx
import pytest
from networks import Network
from running import ours, weights

from sardonyx.quantization import CalibrationMethod, QuantFormat, QuantType, create_calibrator, quantize, quantize_static
from sardonyx.quantization.bias_correction import correct_biases
from sardonyx.quantization.histogram import Observation, squared_error_range

U8 = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}


def observed(values):
    observation = Observation(bits=True)
    observation.add(values.astype(np.float32))
    return observation


def squared_error(values, low, high, levels=256):
    step = (high - low) / (levels - 1)
    zero = np.rint(-low / step)
    return float((((np.clip(np.rint(values / step) + zero, 0, levels - 1) - zero) * step - values) ** 2).mean())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", ["normal", "laplace", "relu", "outlier", "uniform", "constant"])
def test_range_has_nearly_the_least_error(kind, symmetric, random):
    values = random.laplace(0, 1, 50000) if kind == "laplace" else random.standard_normal(50000)
    values = {"relu": np.maximum(values, 0), "uniform": random.uniform(-1, 3, 50000), "constant": np.full(9, 2.0)}.get(kind, values)
    if kind == "outlier":
        values[0] = 60
    values = values.astype(np.float32)
    low, high = (float(end) for end in squared_error_range(observed(values), 256, symmetric))
    least, most = min(values.min(), 0), max(values.max(), 0)
    assert values.min() <= low <= high <= values.max() or kind == "constant"
    if kind == "constant":
        assert low <= 2 <= high
        return
    if symmetric:
        most = max(-least, most)
        least = -most
        low, high = -max(-low, high), max(-low, high)
    grid = np.linspace(1, 0.25, 60)
    best = min(squared_error(values, left * least, right * most) for left in grid for right in (grid if not symmetric else [left]))
    low, high = min(low, 0), max(high, 0)
    assert squared_error(values, low, high) <= 1.1 * best
    if kind == "outlier":
        assert squared_error(values, low, high) < 0.95 * squared_error(values, least, most)


def test_few_levels_clip_more(random):
    """Of normal numbers at 16 levels the best range ends near 2.7 deviations (ACIQ's table has 2.55 to 2.8)."""
    low, high = squared_error_range(observed(random.standard_normal(200000)), 16, True)
    assert -float(low) == pytest.approx(float(high), rel=0.02) and 2.4 < float(high) < 3.0


def test_calibrater_and_option(model, random):
    made = model(
        "agraph (float[N, 8] x) => (float[N, 4] y) { y = MatMul(x, w) }", w=random.standard_normal((8, 4)).astype(np.float32)
    )
    values = random.standard_normal((5000, 8)).astype(np.float32)
    values[0, 0] = 80
    calibrater = create_calibrator(made, ["MatMul"], calibrate_method=CalibrationMethod.SquaredError)
    for part in np.split(values, 10):
        calibrater.collect_data([{"x": part}])
    found = calibrater.compute_data()["x"].range_value
    expected = squared_error_range(observed(values), 256, False)
    np.testing.assert_allclose([float(end) for end in found], [float(end) for end in expected])
    assert float(found[1]) < 80
    result = quantize_static(made, None, [{"x": values}], calibrate_method=CalibrationMethod.SquaredError, **U8)
    scale = weights(result)["x_scale"]
    assert float(scale) == pytest.approx((float(found[1]) - float(found[0])) / 255, rel=1e-5)


def test_means_are_those_of_the_float_model(model, random):
    """Each channel of a product, and of one whose bias is an Add, has its mean again; a step of the bias may be left."""
    made = model(
        """agraph (float[N, 8, 5, 5] x) => (float[N, 25, 3] y) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w, b)
            r = Relu(c)
            f = Reshape(r, flat)
            t = Transpose<perm = [0, 2, 1]>(f)
            m = MatMul(t, v)
            y = Add(m, a)
        }""",
        w=random.standard_normal((6, 8, 3, 3)).astype(np.float32), b=random.standard_normal(6).astype(np.float32),
        v=random.standard_normal((6, 3)).astype(np.float32), a=random.standard_normal(3).astype(np.float32), flat=np.array([0, 6, 25]),
    )  # fmt: skip
    before = made.SerializeToString()
    samples = [{"x": random.uniform(0, 1, (16, 8, 5, 5)).astype(np.float32)} for _ in range(8)]

    def shift(model):
        parts = [ours(model, feeds)[0] - ours(made, feeds)[0] for feeds in samples]
        return np.abs(np.concatenate(parts).mean((0, 1))).max()

    given = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8, "nodes_to_exclude": ["Add"], "reduce_range": True}
    plain, corrected = (
        quantize_static(made, None, samples, extra_options={"BiasCorrection": on}, **given) for on in (False, True)
    )
    assert shift(corrected) < 0.5 * shift(plain)
    assert made.SerializeToString() == before
    operators = quantize_static(
        made, None, samples, QuantFormat.QOperator, extra_options={"BiasCorrection": True}, **given
    )  # of the same biases
    assert shift(operators) < 0.7 * shift(plain)


def test_correction_finds_a_planted_shift(model, random):
    """A model that differs from the float model by known constants gives these."""
    made = model(
        "agraph (float[N, 4] x) => (float[N, 3] y) { h = Gemm(x, w, b) \n y = Gemm(h, v) }",
        w=random.standard_normal((4, 5)).astype(np.float32), b=np.zeros(5, np.float32),
        v=random.standard_normal((5, 3)).astype(np.float32),
    )  # fmt: skip
    made = onnx.shape_inference.infer_shapes(made)
    for place, node in enumerate(made.graph.node):
        node.name = f"Gemm_{place}"
    changed = onnx.ModelProto()
    changed.CopyFrom(made)
    shift = np.arange(5, dtype=np.float32) / 4
    for tensor in changed.graph.initializer:
        if tensor.name == "b":
            tensor.CopyFrom(onnx.numpy_helper.from_array(shift, "b"))
    samples = [{"x": random.standard_normal((30, 4)).astype(np.float32)} for _ in range(3)]
    found = weights(correct_biases(made, changed, samples))
    np.testing.assert_allclose(found["b"], -shift, atol=1e-5)
    np.testing.assert_allclose(found["Gemm_1_bias"], np.zeros(3), atol=1e-5)  # which reads what the float model makes


@pytest.mark.parametrize("per_channel", [True, False])
def test_planted_offset_is_a_shift(per_channel):
    network = Network("digits_planted")
    plain, corrected = (
        network.score(quantize_static(
            network.model, None, network.samples(), per_channel=per_channel, extra_options={"BiasCorrection": on}, **U8
        )) for on in (False, True)
    )  # fmt: skip
    assert plain < 90 and corrected > 99


@pytest.mark.parametrize(("name", "least"), [("image_unet", 32.48), ("digits_cnn", 99.3)])
@pytest.mark.parametrize("method", ["MinMax", "SquaredError"])
def test_they_do_no_harm(name, least, method):
    network = Network(name)
    result = quantize_static(
        network.model, None, network.samples()[:4], per_channel=True, calibrate_method=CalibrationMethod[method],
        extra_options={"BiasCorrection": True}, **U8,
    )  # fmt: skip
    assert network.score(result) >= least


def test_within_bounds():
    """With biases corrected the planted tensor stays in 8 bits."""
    network = Network("digits_planted")
    places = range(0, len(network.x), 64)
    holdout = [{network.input: network.x[at : at + 64]} for at in places], [network.y[at : at + 64] for at in places]
    result = quantize(
        network.model, network.samples(), max_error=0.01, metric="top1", holdout=holdout, correct_biases=True,
        calibration=CalibrationMethod.SquaredError,
    )  # fmt: skip
    assert not result.report["float"] and network.score(result.model) >= 99


def test_samples_are_gone_through_twice():
    network = Network("digits_cnn")
    with pytest.raises(ValueError, match="BiasCorrection goes through the samples twice, and this generator can be"):
        quantize_static(network.model, None, iter(each for each in network.samples()), extra_options={"BiasCorrection": True})
