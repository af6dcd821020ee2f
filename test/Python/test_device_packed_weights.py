"""Products by weights of 2, 4 and 8 bits on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx
import pytest
from device_models import run_on_device
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(11)
ROWS = [0, 1, 2, 3, 8, 9, 33]


def pack(numbers, bits):
    """Numbers of a few bits, the last dimension in bytes, the first in the lowest bits."""
    per_byte = 8 // bits
    pads = -numbers.shape[-1] % per_byte
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, pads)])
    parts = numbers.reshape(*numbers.shape[:-1], -1, per_byte)
    return np.bitwise_or.reduce(parts << (bits * np.arange(per_byte, dtype=np.uint8)), axis=-1).astype(np.uint8)


def make(n, k, bits, block, dtype, zeros, rows="m", bias=False):
    """A model of one MatMulNBits, with what it multiplies by: [K,N] of f64."""
    blocks = -(-k // block)
    numbers = RANDOM.integers(0, 2**bits, (n, blocks, block), dtype=np.uint8)
    scales = (RANDOM.standard_normal((n, blocks)) * 0.1).astype(dtype)
    tensors = {"w": pack(numbers, bits), "s": scales.reshape(-1)}
    zero_points = np.full((n, blocks), 2.0 ** (bits - 1))
    if zeros == "integers":
        given = RANDOM.integers(0, 2**bits, (n, blocks), dtype=np.uint8)
        tensors["z"], zero_points = pack(given, bits).reshape(-1), given.astype(np.float64)
    elif zeros == "floats":
        given = (RANDOM.standard_normal((n, blocks)) * 3 + 2 ** (bits - 1)).astype(dtype)
        tensors["z"], zero_points = given.reshape(-1), given.astype(np.float64)
    inputs = ["x", "w", "s", "z" if "z" in tensors else ""]
    if bias:
        tensors["b"] = RANDOM.standard_normal(n).astype(dtype)
        inputs += ["", "b"]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    attributes = {"N": n, "K": k, "bits": bits, "block_size": block}
    nodes = [helper.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", **attributes)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, [rows, k])],
        [helper.make_tensor_value_info("y", kind, [rows, n])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    weights = (numbers - zero_points[..., None]) * scales.astype(np.float64)[..., None]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model, weights.reshape(n, -1)[:, :k].T, tensors.get("b", 0)


def check(made, dtype, rows):
    model, weights, bias = made
    inputs = [RANDOM.standard_normal((m, len(weights))).astype(dtype) for m in rows]
    for x, (y,) in zip(inputs, run_on_device(model, [{"x": x} for x in inputs]), strict=True):
        expected = x.astype(np.float64) @ weights + bias
        assert y.dtype == dtype and y.shape == expected.shape
        # f16: weights and results are rounded.
        most = np.abs(weights).max() * np.sqrt(len(weights)) * (2e-3 if dtype == np.float16 else 2e-6)
        np.testing.assert_allclose(y, expected, rtol=2e-3 if dtype == np.float16 else 1e-6, atol=most)


@pytest.mark.parametrize(
    ("bits", "block", "n", "k", "dtype", "zeros"),
    [
        (4, 32, 70, 256, np.float16, ""),
        (4, 16, 33, 1001, np.float32, "integers"),
        (4, 128, 64, 512, np.float16, "floats"),
        (8, 16, 9, 200, np.float32, "floats"),
        (8, 256, 96, 520, np.float16, "integers"),
        (2, 16, 5, 1000, np.float32, ""),
        (2, 64, 40, 130, np.float16, "integers"),
        (4, 16, 48, 300, np.float16, "integers"),
        (4, 256, 20, 1100, np.float16, ""),
        (8, 32, 24, 160, np.float16, ""),
        (2, 128, 24, 400, np.float16, ""),
    ],
)
def test_any_number_of_rows(bits, block, n, k, dtype, zeros):
    check(make(n, k, bits, block, dtype, zeros), dtype, ROWS)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 20])
def test_known_numbers_of_rows(rows):
    check(make(24, 96, 4, 32, np.float16, "integers", rows=rows, bias=True), np.float16, [rows])


@pytest.mark.parametrize(("n", "bits"), [(1, 2), (4, 4), (1100, 4)])
def test_rows_that_are_longer_than_shared_memory(n, bits):
    """Few columns are shared by warps, many are not."""
    check(make(n, 13000, bits, 32, np.float32, "integers"), np.float32, [1, 3])


def test_blocks_that_are_no_words():
    """Two bytes of a block: there is no kernel of its own."""
    check(make(6, 20, 4, 4, np.float32, "integers"), np.float32, [1, 9])


def test_weights_that_are_dequantized_before_a_product():
    """DequantizeLinear of int4 before MatMul is such a product, too; uint8 here as ONNX's own type."""
    weights = RANDOM.integers(0, 16, (64, 24))
    scales = (RANDOM.standard_normal((2, 24)) * 0.1).astype(np.float32)
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[m, 64] x) => (float[m, 24] y) {d = DequantizeLinear <axis = 0, block_size = 32> (w, s)\n y = MatMul(x, d)}"""
    model = onnx.parser.parse_model(text)
    packed = helper.make_tensor("w", onnx.TensorProto.UINT4, [64, 24], weights.reshape(-1))
    model.graph.initializer.extend([packed, numpy_helper.from_array(scales, "s")])
    product = weights * np.repeat(scales, 32, axis=0).astype(np.float64)
    check((model, product, 0), np.float32, [1, 4, 17])


@pytest.mark.parametrize(("bits", "zeros"), [(2, "integers"), (4, ""), (4, "integers"), (8, "integers")])
def test_large_and_small_numbers_of_f16(bits, zeros):
    """Products of a block are added up as f16: neither is infinite what fits, nor lost what is small."""
    for size in (3e4, 1.0, 1e-3):
        model, weights, _ = make(16, 128, bits, 32, np.float16, zeros, rows=1)
        x = np.clip(RANDOM.standard_normal((1, 128)) * size, -6e4, 6e4).astype(np.float16)
        ((y,),) = run_on_device(model, [{"x": x}])
        expected = x.astype(np.float64) @ weights
        terms = np.abs(x).astype(np.float64) @ np.abs(weights)
        known = np.abs(expected) < 6e4
        assert (np.abs(y - expected)[known] <= 2e-3 * terms[known] + 2**-12 * size).all()


def test_activations_of_bf16():
    """Casts around the product, since numpy has no such numbers; sums are f32."""
    made, weights, _ = make(24, 96, 4, 32, np.float32, "integers")
    graph = made.graph
    bf16 = onnx.TensorProto.BFLOAT16
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["narrow_x"], to=bf16))
    graph.node.insert(0, helper.make_node("Cast", ["s"], ["narrow_s"], to=bf16))
    product = graph.node[2]
    product.input[0], product.input[2], product.output[0] = "narrow_x", "narrow_s", "narrow_y"
    graph.node.append(helper.make_node("Cast", ["narrow_y"], ["y"], to=onnx.TensorProto.FLOAT))
    x = RANDOM.standard_normal((2, 96)).astype(np.float32)
    ((y,),) = run_on_device(made, [{"x": x}])
    bound = 2**-7 * (np.abs(x) @ np.abs(weights))
    assert (np.abs(y - x @ weights) <= bound).all()
