"""Convolutions of 8-bit integers, with channels last where the machine multiplies bytes, against sums of whole numbers."""

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import helper, numpy_helper
from references import convolve

import sardonyx

# The processor at hand, vectors of 256 bits without VNNI, and of 128 bits.
CPUS = ["", "haswell", "x86-64"]
# images, channels, size, filters, kernel, strides, dilations, pads, groups
FORMS = [
    (1, 64, (14, 14), 64, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),  # rows of the input
    (2, 30, (7, 9), 40, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),  # channels that fill no group of four
    (1, 64, (14, 15), 96, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 1),
    (3, 32, (9, 11), 24, (3, 3), (2, 2), (1, 1), (1, 0, 0, 2), 1),
    (1, 3, (33, 35), 32, (7, 7), (2, 2), (1, 1), (3, 3, 3, 3), 1),  # a first layer
    (1, 17, (12, 13), 70, (3, 5), (1, 2), (2, 1), (2, 2, 2, 2), 1),
    (1, 512, (7, 7), 256, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 1),  # threads share filters
    (1, 256, (4, 4), 200, (1, 1), (2, 2), (1, 1), (0, 0, 0, 0), 1),
    (1, 32, (10, 10), 64, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 2),
    (1, 24, (8, 8), 36, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 4),  # groups too small for panels
    (1, 40, (14, 15), 40, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 40),
    (2, 24, (9, 9), 24, (5, 5), (2, 2), (1, 1), (2, 2, 2, 2), 24),
    (1, 7, (6, 5), 7, (3, 3), (1, 1), (2, 2), (2, 2, 2, 2), 7),
    (1, 16, (5, 40), 16, (7, 7), (1, 1), (1, 1), (3, 3, 3, 3), 16),
    (1, 20, (50,), 33, (5,), (2,), (1,), (2, 2), 1),
    (1, 20, (50,), 20, (5,), (1,), (2,), (4, 4), 20),
    (1, 9, (5, 6, 7), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), 1),
    (1, 12, (5, 6, 7), 12, (3, 2, 3), (1, 2, 1), (1, 1, 1), (1, 0, 1, 1, 0, 1), 12),
]


def make_numbers(rng, shape, dtype):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def run(nodes, feeds, constants, open_sizes, cpu, threads):
    def shape(x):
        return [f"{i}" if open_sizes and i != 1 else n for i, n in enumerate(x.shape)]

    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), shape(v)) for k, v in feeds.items()
    ]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.UNDEFINED, None)
    graph = helper.make_graph(
        nodes, "g", inputs, [output], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = sardonyx.SessionOptions()
    options.cpu, options.intra_op_num_threads, options.cache = cpu, threads, False
    (y,) = sardonyx.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    return y


def make_operands(form, x_type, w_type):
    images, channels, size, filters, kernel, strides, dilations, pads, group = form
    rng = np.random.default_rng(filters + len(size))
    x = make_numbers(rng, (images, channels, *size), x_type)
    w = make_numbers(rng, (filters, channels // group, *kernel), w_type)
    attributes = dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=group)
    how = dict(strides=strides, dilations=dilations, pads=pads, groups=group)
    return rng, x, w, attributes, how


def difference(x, zero):
    return x.astype(np.float64) - np.asarray(zero, np.float64)


# Types and zero points of images and filters.
OPERANDS = [
    (np.uint8, np.int8, 133, 0), (np.int8, np.int8, -7, None), (np.uint8, np.uint8, 3, 127), (np.int8, np.uint8, None, 131),
]  # fmt: skip


@pytest.mark.parametrize("number", range(2 * len(FORMS)))
def test_conv_integer(number):
    """Exact for all signs and zero points."""
    form, (x_type, w_type, x_zero, w_zero) = FORMS[number // 2], OPERANDS[(number + number // 4) % len(OPERANDS)]
    _, x, w, attributes, how = make_operands(form, x_type, w_type)
    constants = {"w": w}
    names = ["x", "w"]
    if x_zero is not None or w_zero is not None:
        constants["xz"] = np.array(x_zero or 0, x_type)
        names.append("xz")
    if w_zero is not None:
        constants["wz"] = np.array(w_zero, w_type)
        names.append("wz")
    node = helper.make_node("ConvInteger", names, ["y"], **attributes)
    expected = convolve(difference(x, x_zero or 0), difference(w, w_zero or 0), **how)
    y = run([node], {"x": x}, constants, False, "", 2)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, expected.astype(np.int64))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    "cpu, open_sizes, threads",
    [("", False, 2), ("", True, 16), ("haswell", False, 1), ("x86-64", False, 1)],
    ids=["known", "open", "haswell", "x86-64"],
)
def test_dequantized(form, cpu, open_sizes, threads):
    """The graph that quantisers write: a scale for each filter, an integer bias, Relu, and the next quantisation."""
    rng, x, w, attributes, how = make_operands(form, np.uint8, np.int8)
    filters = w.shape[0]
    constants = {
        "w": w, "b": rng.integers(-3000, 3000, filters).astype(np.int32), "sx": np.float32(0.02), "zx": np.uint8(121),
        "sw": rng.uniform(0.001, 0.01, filters).astype(np.float32), "zw": np.zeros(filters, np.int8), "sy": np.float32(0.07),
        "zy": np.uint8(9),
    }  # fmt: skip
    constants["sb"] = constants["sx"] * constants["sw"]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["fx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["fw"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "sb"], ["fb"], axis=0),
        helper.make_node("Conv", ["fx", "fw", "fb"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"]),
    ]
    along = [-1] + [1] * (x.ndim - 2)
    sums = convolve(difference(x, 121), difference(w, 0), **how) + constants["b"].reshape(along)
    value = np.maximum(sums.astype(np.float32) * constants["sb"].reshape(along), np.float32(0))
    quotient = value / constants["sy"]
    expected = np.clip(np.rint(quotient) + 9, 0, 255).astype(np.uint8)
    y = run(nodes, {"x": x}, constants, open_sizes, cpu, threads)
    # One factor takes the place of two scales and a division: both round, each a little.
    differs = y != expected
    assert np.abs(y[differs].astype(int) - expected[differs]).max(initial=0) <= 1
    assert np.abs(quotient[differs] % 1 - 0.5).max(initial=0) < 2e-5
    assert differs.sum() <= 2


def test_zero_point_of_a_run():
    """A zero point that arrives with the input is what pads hold."""
    form = FORMS[2]
    _, x, w, attributes, how = make_operands(form, np.uint8, np.int8)
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], **attributes)
    for zero in (0, 77, 255):
        y = run([node], {"x": x, "z": np.array(zero, np.uint8)}, {"w": w}, False, "", 1)
        np.testing.assert_array_equal(y, convolve(difference(x, zero), difference(w, 0), **how).astype(np.int64))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("follows", [True, False], ids=["after-conv", "alone"])
@pytest.mark.parametrize("kernel, strides, pads, ceil", [
    ((3, 3), (2, 2), (1, 1, 1, 1), 0), ((2, 2), (2, 2), (0, 0, 0, 0), 1), ((3, 5), (1, 2), (0, 2, 1, 2), 0),
], ids=str)  # fmt: skip
def test_max_pool(dtype, follows, kernel, strides, pads, ceil):
    rng = np.random.default_rng(3)
    x = make_numbers(rng, (2, 70, 13, 14), dtype)
    pool = dict(kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil)
    nodes = [helper.make_node("MaxPool", ["p"], ["y"], **pool)]
    constants = {}
    if follows:
        w = make_numbers(rng, (70, 70, 1, 1), np.int8)
        constants = {"w": w, "sx": np.float32(0.5), "sw": np.float32(0.25), "sy": np.float32(900), "z": np.array(0, dtype),
                     "zw": np.int8(0)}  # fmt: skip
        nodes.insert(0, helper.make_node("QLinearConv", ["x", "sx", "z", "w", "sw", "zw", "sy", "z"], ["p"]))
        sums = convolve(difference(x, 0), difference(w, 0))
        limits = np.iinfo(dtype)
        scale = np.float32(0.5) * np.float32(0.25) / np.float32(900)
        image = np.clip(np.rint(sums.astype(np.float32) * scale), limits.min, limits.max)
    else:
        nodes.insert(0, helper.make_node("Identity", ["x"], ["p"]))
        image = x
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("MaxPool", ["x"], ["y"], **pool)], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]),
        opset_imports=[helper.make_opsetid("", 21)], ir_version=10)  # fmt: skip
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": image.astype(np.float32)})
    y = run(nodes, {"x": x}, constants, False, "", 2)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)


def test_residual_chain():
    """Convolutions, a sum of two quantised images, a concatenation and a mean between them."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((1, 3, 20, 20)).astype(np.float32)
    constants, nodes = {"s": np.float32(0.031), "z": np.uint8(125)}, []

    def quantize(name):
        nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [name + "q"]))
        nodes.append(helper.make_node("DequantizeLinear", [name + "q", "s", "z"], [name + "d"]))
        return name + "d"

    def conv(name, source, filters, channels, kernel, **attributes):
        constants[name + "w"] = make_numbers(rng, (filters, channels, kernel, kernel), np.int8)
        constants[name + "s"] = np.float32(0.2 / 128 / np.sqrt(channels * kernel * kernel))
        nodes.append(helper.make_node("DequantizeLinear", [name + "w", name + "s"], [name + "f"]))
        nodes.append(helper.make_node("Conv", [source, name + "f"], [name], **attributes))
        return quantize(name)

    a = conv("a", quantize("x"), 32, 3, 3, pads=[1] * 4)
    c = conv("c", a, 32, 32, 3, pads=[1] * 4)
    nodes.append(helper.make_node("Add", [a, c], ["sum"]))
    d = conv("d", quantize("sum"), 48, 32, 1)
    nodes.append(helper.make_node("Concat", [c, d], ["joined"], axis=1))
    e = conv("e", quantize("joined"), 40, 80, 3, strides=[2, 2])
    nodes.append(helper.make_node("GlobalAveragePool", [e], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    for cpu in CPUS:
        y = run(nodes, {"x": x}, constants, False, cpu, 2)
        np.testing.assert_allclose(y, expected, atol=0.004)
