"""Weights of few bits: formulas in loops, methods against rounding to the nearest, files in onnxruntime."""

import numpy as np
import onnx
import pytest
from running import check, decibels, op_types, ours, peers, reference, weights

from sardonyx.quantization import QuantFormat, quantize
from sardonyx.quantization.formulas import unpack_bits
from sardonyx.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer
from sardonyx.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from sardonyx.quantization.matmul_nbits_quantizer import (
    AWQWeightOnlyQuantConfig,
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
)
from sardonyx.quantization.nbits import awq, gptq, search
from sardonyx.quantization.nbits.blocks import round_to_nearest

TEXT = "m (float[N, K] x) => (float[N, M] y) { y = MatMul(x, w) }"


def draw(random, *shape):
    return random.standard_t(4, shape).astype(np.float32)


def rounded_in_loops(weight, bits, block_size, symmetric):
    """(integers, scales, zero points) of every block of every column, number by number."""
    rows, columns = weight.shape
    blocks = -(-rows // block_size)
    q = np.zeros((columns, blocks, block_size), np.uint8)
    scales, zeros = np.zeros((columns, blocks)), np.zeros((columns, blocks))
    for column in range(columns):
        for block in range(blocks):
            part = [float(value) for value in weight[block * block_size : (block + 1) * block_size, column]]
            if symmetric:
                scale, zero = max(part, key=abs) / -(2 ** (bits - 1)), 2 ** (bits - 1)
            else:
                low, high = min(part + [0]), max(part + [0])
                scale = (high - low) / (2**bits - 1)
                zero = min(max(round(-low / scale), 0), 2**bits - 1)
            scales[column, block], zeros[column, block] = scale, zero
            for place in range(block_size):
                value = part[place] if place < len(part) else 0.0
                q[column, block, place] = min(max(round(value / scale + zero), 0), 2**bits - 1)
    return q, scales, zeros


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_rounding_to_the_nearest(bits, symmetric, random):
    weight = draw(random, 70, 5)
    blocks = round_to_nearest(weight, bits, 32, symmetric)
    q, scales, zeros = rounded_in_loops(weight, bits, 32, symmetric)
    np.testing.assert_allclose(blocks.scale, scales, rtol=1e-6)
    np.testing.assert_array_equal(blocks.zero, zeros)
    assert np.abs(blocks.q.astype(int) - q).max() <= 1 and (blocks.q != q).mean() < 0.01  # ties of f32 quotients
    values = (blocks.q.astype(np.float64) - zeros[..., None]) * blocks.scale[..., None]
    np.testing.assert_allclose(blocks.values(), values.reshape(5, -1)[:, :70].T, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_operators(bits, symmetric, model, random):
    weight = draw(random, 64, 6)
    made = model(TEXT, w=weight)
    quantizer = MatMulNBitsQuantizer(made, bits, 32, symmetric)
    quantizer.process()
    result = quantizer.model.model
    check(result)
    (node,) = result.graph.node
    stored = {entry.name: entry.i for entry in node.attribute}["bits"]
    assert node.op_type == "MatMulNBits" and stored == {2: 2, 3: 4, 4: 4, 5: 8, 8: 8}[bits]
    packed = next(value for name, value in weights(result).items() if name.startswith("w_Q"))
    assert packed.shape == (6, 2, 32 * stored // 8)
    numbers = unpack_bits(packed, stored, 32)
    assert numbers.max() - numbers.min() < 2**bits
    expected = round_to_nearest(weight, bits, 32, symmetric).values()
    x = np.eye(64, dtype=np.float32)
    np.testing.assert_allclose(ours(result, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    if stored != 2:  # onnxruntime's kernels for this processor may have no 2 bits
        np.testing.assert_allclose(peers(result, {"x": x})[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["blocks", "columns"])
def test_pairs(symmetric, whole, model, random):
    weight = draw(random, 64, 6)
    made = model(TEXT, 20, 9, w=weight)
    config = DefaultWeightOnlyQuantConfig(32, symmetric, quant_format=QuantFormat.QDQ, channel_wised_quantize=whole)
    quantizer = MatMulNBitsQuantizer(made, algo_config=config)
    quantizer.process()
    result = quantizer.model.model
    check(result)
    assert result.opset_import[0].version >= 21 and "DequantizeLinear" in op_types(result)
    expected = round_to_nearest(weight, 4, 64 if whole else 32, symmetric).values()
    for run in (ours, peers, reference):
        np.testing.assert_allclose(run(result, {"x": np.eye(64, dtype=np.float32)})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("axis", [1, -1])
def test_tables(symmetric, axis, model, random):
    table = draw(random, 48, 40)
    made = model("m (int64[N] ids) => (float[N, 40] y) { y = Gather(table, ids) }", 21, 10, table=table)
    config = DefaultWeightOnlyQuantConfig(16, symmetric, op_types_to_quantize=("Gather",), quant_axes=(("Gather", axis),))
    quantizer = MatMulNBitsQuantizer(made, algo_config=config)
    quantizer.process()
    result = quantizer.model.model
    assert op_types(result) == ["GatherBlockQuantized"]
    expected = round_to_nearest(table.T, 4, 16, symmetric).values().T
    ids = np.arange(48)
    np.testing.assert_allclose(peers(result, {"ids": ids})[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours(result, {"ids": ids})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("known", [True, False], ids=["known", "open"])
def test_weights_with_leading_ones(rank, known, model, random):
    shape = [2] * (rank - 1) + [32]
    sizes = ", ".join(f"d{axis}" for axis in range(rank - 1))
    made = model(
        f"m (float[{sizes + ', ' if sizes else ''}32] x) => (float y) {{ y = MatMul(x, w) }}", w=draw(random, 1, 1, 32, 3)
    )
    if not known:
        made.graph.input[0].type.tensor_type.ClearField("shape")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    sample = {"x": draw(random, *shape)}
    expected = np.matmul(sample["x"], weights(made)["w"])
    quantizer = MatMulNBitsQuantizer(made, 8, 32)
    quantizer.process()
    found = peers(quantizer.model.model, sample)[0]
    assert found.shape == expected.shape and decibels(expected, found) > 35
    if known:
        assert ours(quantizer.model.model, sample)[0].shape == expected.shape


def correlated(random, rows, size):
    """Inputs of products that hang together, some channels of which are larger than others."""
    common = random.normal(0, 1, (rows, size // 4)) @ random.normal(0, 1, (size // 4, size))
    return ((common + random.normal(0, 1, (rows, size))) * random.gamma(2, 1, size)).astype(np.float32)


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("symmetric", [False, True])
def test_methods_are_better_than_rounding_to_the_nearest(bits, symmetric, random):
    weight, x = random.normal(0, 1, (128, 24)).astype(np.float32), correlated(random, 1000, 128)
    gram = x.T.astype(np.float64) @ x
    plain = round_to_nearest(weight, bits, 32, symmetric).values()

    def error(values):
        return float(np.sum((x.astype(np.float64) @ (weight - values)) ** 2))

    searched = search.search_scales(weight, bits, 32, symmetric).values()
    assert np.sum((weight - searched) ** 2) < np.sum((weight - plain) ** 2)
    weighted = search.search_scales(weight, bits, 32, symmetric, np.diag(gram) / len(x)).values()
    assert np.sum(np.diag(gram)[:, None] * (weight - weighted) ** 2) < np.sum(np.diag(gram)[:, None] * (weight - plain) ** 2)
    for order in (False, True):
        compensated = gptq.quantize(weight, gram, bits, 32, symmetric, order_by_activation=order).values()
        assert error(compensated) < (0.7 if bits > 2 else 0.95) * error(plain)
    assert awq.output_error(weight, plain, gram) == pytest.approx(error(plain), rel=1e-6)
    clipped = awq.round_clipped(weight, gram, bits, 32, symmetric).values()
    assert error(clipped) < error(plain)
    factors = awq.find_scales([weight], gram, np.abs(x).mean(0), bits, 32, symmetric)
    if factors is not None:
        scaled = round_to_nearest(weight * factors[:, None], bits, 32, symmetric).values() / factors[:, None]
        assert error(scaled) < error(plain)
    if not symmetric:
        half = search.half_quadratic(weight, bits, 32).values()
        assert np.sum(np.abs(weight - half) ** 0.7) < np.sum(np.abs(weight - plain) ** 0.7)


def test_compensation_is_the_papers(random):
    """One column after the other, with the inverse of what is left of G each time."""
    weight, x = draw(random, 24, 3), correlated(random, 200, 24)
    gram = x.T.astype(np.float64) @ x
    damped = gram + 0.01 * np.diag(gram).mean() * np.eye(24)
    left, expected = weight.astype(np.float64).copy(), np.zeros((24, 3))
    for place in range(24):
        if place % 8 == 0:
            grid = round_to_nearest(left[place : place + 8].astype(np.float32), 4, 8, False)
        scale, zero = grid.scale[:, 0].astype(np.float64), grid.zero[:, 0]
        q = np.clip(np.rint(left[place] / scale + zero), 0, 15)
        expected[place] = (q - zero) * scale
        inverse = np.linalg.inv(damped[place:, place:])
        error = (left[place] - expected[place]) / inverse[0, 0]
        left[place:] -= np.outer(inverse[:, 0], error)
    found = gptq.quantize(weight, gram, 4, 8, False).values()
    assert (np.abs(found - expected) > 1e-4).mean() < 0.05  # a tie that falls to the other side moves what follows


@pytest.mark.parametrize("method", ["RTN", "k_quant", "HQQ", "GPTQ", "AWQ"])
def test_files_of_all_methods(method, model, random, tmp_path):
    text = """m (float[N, 64] x) => (float[N, 24] y) {
        n = LayerNormalization(x, gain, bias)
        a = MatMul(n, w1)
        r = Relu(a)
        b = MatMul(r, w2)
        y = Add(a, b)
    }"""
    made = model(
        text, gain=(1 + random.gamma(0.3, 8, 64)).astype(np.float32), bias=draw(random, 64), w1=draw(random, 64, 24),
        w2=draw(random, 24, 24),
    )  # fmt: skip
    samples = [{"x": draw(random, 32, 64)} for _ in range(4)]
    config = {
        "RTN": RTNWeightOnlyQuantConfig(),
        "k_quant": KQuantWeightOnlyQuantConfig(calibration_data_reader=samples),
        "HQQ": HQQWeightOnlyQuantConfig(32),
        "GPTQ": GPTQWeightOnlyQuantConfig(samples),
        "AWQ": AWQWeightOnlyQuantConfig(samples),
    }[method]
    expected = ours(made, samples[0])[0]
    quantizer = MatMulNBitsQuantizer(made, 4, 32, algo_config=config)
    quantizer.process()
    result = quantizer.model.model
    check(result)
    onnx.save(result, tmp_path / "q.onnx")
    assert op_types(result).count("MatMulNBits") == 2 and ("com.microsoft", 1) in [
        (entry.domain, entry.version) for entry in result.opset_import
    ]
    found = ours(result, samples[0])[0]
    assert decibels(expected, found) > 15
    assert decibels(peers(result, samples[0])[0], found) > 60


def test_configurations_and_old_names(model, random):
    made = model(TEXT, w=draw(random, 64, 6))
    result = quantize(made, None, DefaultWeightOnlyQuantConfig(32, True, 4))
    assert {entry.name: entry.i for entry in result.graph.node[0].attribute}["accuracy_level"] == 4
    quantizer = MatMul4BitsQuantizer(made, 32, True)
    quantizer.process()
    assert op_types(quantizer.model.model) == ["MatMulNBits"]
    for call, sentence in (
        (lambda: NVAWQWeightOnlyQuantConfig("folder"), "AWQWeightOnlyQuantConfig"),
        (lambda: MatMulNBitsQuantizer(model(TEXT, w=draw(random, 64, 6)), 9), "2 to 8 bits"),
        (lambda: MatMulNBitsQuantizer(model(TEXT, w=draw(random, 64, 6)), nodes_to_exclude=["q"]), "no node"),
        (lambda: MatMulNBitsQuantizer(model(TEXT, w=draw(random, 64, 6)), algo_config=GPTQWeightOnlyQuantConfig()).process(), "samples"),
    ):
        with pytest.raises((ValueError, NotImplementedError), match=sentence):
            call()


@pytest.mark.parametrize("kind", [MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4])
def test_floats_of_4_bits(kind, model, random):
    weight = draw(random, 64, 6)
    made = model(TEXT, w=weight)
    quantizer = MatMulBnb4Quantizer(made, kind, 32)
    quantizer.process()
    result = quantizer.model.model
    # bitsandbytes' tables of what the codes stand for.
    fp4 = np.array([0, 0.0052083333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25])
    nf4 = np.array([
        -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0, 0.0795803, 0.1609302,
        0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
    ])  # fmt: skip
    table = np.concatenate([fp4, -fp4]) if kind == MatMulBnb4Quantizer.FP4 else nf4
    blocks = np.ascontiguousarray(weight.T).reshape(-1, 32)
    largest = np.abs(blocks).max(1, keepdims=True)
    nearest = table[np.abs(blocks[..., None] / largest[..., None] - table).argmin(-1)] * largest
    expected = nearest.reshape(6, 64).T
    x = np.eye(64, dtype=np.float32)
    np.testing.assert_allclose(peers(result, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)
