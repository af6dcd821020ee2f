"""Pad by what the tensor has at its ends, near and far beyond them, and by a constant."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx

# For each dimension what is added before and behind it.
PADS = [
    ((4, 6, 33), ((0, 0), (1, 1), (1, 1))),
    ((4, 6, 33), ((0, 0), (0, 0), (0, 2))),
    ((2, 3, 70), ((0, 0), (2, 1), (16, 20))),
    ((3, 200), ((0, 0), (50, 60))),
    ((3, 5), ((2, 1), (0, 40))),
    ((2, 9, 1), ((0, 0), (3, 0), (0, 0))),
    ((20, 4), ((0, 0), (30, 3))),
    ((7,), ((6, 6),)),
]


def pad(x, pads, mode, is_open=False, given=True, fill=None, then=None):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    amounts = np.array([p[0] for p in pads] + [p[1] for p in pads], np.int64)
    shape = [f"d{i}" for i in range(x.ndim)] if is_open else x.shape
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    feeds = {"x": x}
    if not given:
        inputs.append(helper.make_tensor_value_info("p", onnx.TensorProto.INT64, amounts.shape))
        feeds["p"] = amounts
    known = [numpy_helper.from_array(amounts, "p")] if given else []
    if fill is not None:
        known.append(numpy_helper.from_array(np.array(fill, x.dtype), "f"))
    nodes = [helper.make_node("Pad", ["x", "p", "f" if fill is not None else ""], ["y"], mode=mode)]
    if then:
        nodes[0].output[0] = "padded"
        nodes.append(helper.make_node(then, ["padded"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [onnx.ValueInfoProto(name="y")],
        known,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return sardonyx.InferenceSession(model.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize("kind", ["static", "open", "by inputs"])
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_modes(mode, kind):
    rng = np.random.default_rng(0)
    for shape, pads in PADS:
        x = rng.standard_normal(shape).astype(np.float32)
        y = pad(x, pads, mode, is_open=kind != "static", given=kind != "by inputs")
        np.testing.assert_array_equal(y, np.pad(x, pads, mode), f"{shape} {pads}")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.uint8, np.bool_])
def test_types(dtype, is_open):
    rng = np.random.default_rng(1)
    for shape, pads in PADS[:4]:
        x = rng.integers(-9, 10, shape).astype(dtype)
        np.testing.assert_array_equal(pad(x, pads, "reflect", is_open), np.pad(x, pads, "reflect"))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_what_is_cut_off(mode, is_open):
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    y = pad(x, ((0, 0), (-2, 3)), mode, is_open)
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (0, 3)), mode)[:, 2:])


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_constant(dtype, is_open):
    rng = np.random.default_rng(2)
    for shape, pads in [*PADS, ((1, 9000), ((0, 0), (200, 300))), ((2, 56, 56), ((0, 0), (1, 1), (1, 1))), ((3, 0), ((1, 1), (2, 2))), ((4, 1), ((0, 0), (3, 40))), ((3, 2), ((1, 0), (1, 1)))]:
        x = rng.integers(-9, 10, shape).astype(dtype)
        for fill in (None, 3):
            y = pad(x, pads, "constant", is_open, fill=fill)
            np.testing.assert_array_equal(y, np.pad(x, pads, constant_values=dtype(fill or 0)), f"{shape} {pads}")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("high", [-19, -3, 0, 40])
@pytest.mark.parametrize("low", [-18, -2, 0, 5])
def test_constant_of_a_part(low, high, is_open):
    x = np.arange(80, dtype=np.float32).reshape(2, 40)
    y = pad(x, ((1, -1), (low, high)), "constant", is_open, fill=7)
    whole = np.pad(x, ((1, 0), (max(low, 0), max(high, 0))), constant_values=7)
    np.testing.assert_array_equal(y, whole[:-1, max(-low, 0) : whole.shape[1] - max(-high, 0)])


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_what_is_computed_with_it(mode, is_open):
    x = np.random.default_rng(3).standard_normal((5, 7, 33)).astype(np.float32)
    pads = ((0, 0), (2, 1), (3, 4))
    np.testing.assert_array_equal(pad(x, pads, mode, is_open, then="Neg"), -np.pad(x, pads, mode))
