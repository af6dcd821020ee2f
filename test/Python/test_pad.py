"""Pad by what the tensor has at its ends, near and far beyond them."""

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


def pad(x, pads, mode, is_open=False, given=True):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    amounts = np.array([p[0] for p in pads] + [p[1] for p in pads], np.int64)
    shape = [f"d{i}" for i in range(x.ndim)] if is_open else x.shape
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    feeds = {"x": x}
    if not given:
        inputs.append(helper.make_tensor_value_info("p", onnx.TensorProto.INT64, amounts.shape))
        feeds["p"] = amounts
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)],
        "g",
        inputs,
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(amounts, "p")] if given else [],
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
