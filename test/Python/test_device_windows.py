"""Convolutions of few filters and pools on a CUDA device, which libsdx-fakecuda.so stands for, against onnxruntime."""

import numpy as np
import onnx.parser
import onnx.reference
import onnxruntime
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(12)
TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64}


def floats(*shape):
    return RANDOM.standard_normal(shape)


DEPTHWISE = "y = Conv <group = 6, pads = [1, 1, 1, 1]> (x, k)"
CASES = {
    "depthwise": (DEPTHWISE, "n, 6, 29, 31", (6, 1, 3, 3), [(1, 6, 29, 31), (3, 6, 29, 31), (0, 6, 29, 31)]),
    "followed": (DEPTHWISE.replace("y", "c") + "\n r = Relu(c)\n y = Add(r, c)", "1, 6, 20, 20", (6, 1, 3, 3), [(1, 6, 20, 20)]),
    "stride": ("y = Conv <group = 4, strides = [2, 3], pads = [1, 0, 2, 1]> (x, k)", "1, 4, 15, 17", (4, 1, 3, 3), [(1, 4, 15, 17)]),
    "dilation": ("y = Conv <group = 4, dilations = [3, 2], strides = [2, 1], pads = [3, 2, 3, 2]> (x, k)", "1, 4, 12, 17", (4, 1, 3, 3), [(1, 4, 12, 17)]),
    "open": (DEPTHWISE, "n, 6, h, w", (6, 1, 3, 3), [(2, 6, 5, 4), (1, 6, 1, 1), (1, 6, 40, 33)]),
    "several_filters": ("y = Conv <group = 3, pads = [0, 1, 2, 1]> (x, k)", "n, 6, 9, h", (9, 2, 3, 2), [(2, 6, 9, 11)]),
    "six_filters": ("y = Conv <group = 2> (x, k)", "1, 10, 9, 7", (12, 5, 3, 3), [(1, 10, 9, 7)]),
    "many_channels": ("y = Conv <pads = [1, 1, 1, 1]> (x, k)", "1, 40, 6, 7", (3, 40, 3, 3), [(1, 40, 6, 7)]),
    "large_window": ("y = Conv <group = 2, pads = [5, 5, 5, 5]> (x, k)", "1, 2, 20, h", (2, 1, 11, 11), [(1, 2, 20, 13)]),
    "one_dimension": ("y = Conv <group = 8, strides = [2], pads = [2, 1]> (x, k)", "n, 8, w", (16, 1, 5), [(2, 8, 50), (1, 8, 3)]),
    "three_dimensions": ("y = Conv <group = 2, pads = [1, 0, 1, 2, 0, 1], dilations = [2, 1, 2]> (x, k)", "1, 4, 5, 6, w", (2, 2, 2, 3, 3), [(1, 4, 5, 6, 7)]),
    "max_pool": ("y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)", "n, 5, 30, 17", None, [(2, 5, 30, 17)]),
    "max_pool_ceil": ("y = MaxPool <kernel_shape = [2, 3], strides = [2, 2], ceil_mode = 1> (x)", "n, 5, 31, 18", None, [(2, 5, 31, 18)]),
    "max_pool_followed": ("m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)\n y = Relu(m)", "1, 3, 8, 8", None, [(1, 3, 8, 8)]),
    "average_pool": ("y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)", "n, 5, 30, 17", None, [(2, 5, 30, 17)]),
    "average_pool_ceil": ("y = AveragePool <kernel_shape = [3, 2], strides = [2, 2], ceil_mode = 1, pads = [0, 1, 1, 0]> (x)", "n, 5, h, 17", None, [(2, 5, 12, 17)]),
    "average_pool_1d": ("y = AveragePool <kernel_shape = [4], strides = [3], count_include_pad = 1, pads = [2, 1]> (x)", "2, 5, 23", None, [(2, 5, 23)]),
}


ALL_TYPES = ["depthwise", "stride", "several_filters", "max_pool", "average_pool"]


@pytest.mark.parametrize(("name", "type"), [(name, type) for name in CASES for type in TYPES if type == "float" or name in ALL_TYPES])
def test_windows(name, type):
    body, shape, kernel, runs = CASES[name]
    dtype = TYPES[type]
    feeds = [{"x": floats(*sizes).astype(dtype)} for sizes in runs]
    inputs = f"{type}[{shape}] x"
    if kernel:
        inputs += f", {type}[{', '.join(map(str, kernel))}] k"
        for feed in feeds:
            feed["k"] = floats(*kernel).astype(dtype)
    ranks = ", ".join("abcde"[: len(runs[0])])
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({type}[{ranks}] y) {{{body}}}'
    model = onnx.parser.parse_model(text)
    results = run_on_device(model, feeds)
    # onnxruntime has no f16 and no f64 here: the same numbers as f32.
    wide = text.replace(type, "float") if type == "float16" else text
    if type == "double":
        reference = onnx.reference.ReferenceEvaluator(model)
    else:
        reference = onnxruntime.InferenceSession(onnx.parser.parse_model(wide).SerializeToString())
    for feed, (y,) in zip(feeds, results, strict=True):
        if type == "float16":
            feed = {key: array.astype(np.float32) for key, array in feed.items()}
        (expected,) = reference.run(None, feed)
        assert y.shape == expected.shape and y.dtype == dtype
        tolerance = {"float": 1e-5, "float16": 2e-3, "double": 1e-12}[type]
        np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


def test_nan_and_infinity():
    """The largest of a window with NaN is NaN, and a window of lowest numbers has these."""
    x = floats(1, 1, 9, 9).astype(np.float32)
    x[0, 0, 3, 4], x[0, 0, 6:, 6:] = np.nan, -np.inf
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[1, 1, 9, 9] x) => (float[1, 1, p, q] y) {y = MaxPool <kernel_shape = [3, 3]> (x)}'
    ((y,),) = run_on_device(onnx.parser.parse_model(text), [{"x": x}])
    np.testing.assert_array_equal(y, np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)).max((-1, -2)))


def test_integers():
    x, k = RANDOM.integers(0, 256, (2, 4, 7, 8), np.uint8), RANDOM.integers(-128, 128, (4, 1, 3, 3), np.int8)
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (uint8[2, 4, 7, 8] x, int8[4, 1, 3, 3] k, uint8 z) => (int32[2, 4, 7, 8] y) {y = ConvInteger <group = 4, pads = [1, 1, 1, 1]> (x, k, z)}"""
    ((y,),) = run_on_device(onnx.parser.parse_model(text), [{"x": x, "k": k, "z": np.uint8(7)}])
    padded = np.pad(x.astype(np.int64) - 7, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(y, (windows * k[:, 0][:, None, None]).sum((-1, -2)))
