"""Results against numpy: forms that once went wrong and that ONNX's own tests do not reach."""

import numpy as np
import onnx
import pytest
from numerics import OPTIONS, constant, run, vectors  # noqa: F401
from onnx import helper

import sardonyx as sdx


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("n", [2, 17, 33, 100])
def test_softmax_of_a_softmax_that_is_a_result(n):
    x = np.random.default_rng(0).standard_normal((33, n)).astype(np.float32)
    nodes = [helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["b"])]
    a, b = run(nodes, {"x": x}, ["a", "b"])
    np.testing.assert_allclose(a, softmax(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b, softmax(softmax(x)), rtol=1e-5, atol=1e-6)


def test_rows_that_are_read_once_more_after_a_result():
    x = np.random.default_rng(0).standard_normal((8, 17)).astype(np.float32)
    scale = np.linspace(-1, 1, 17, dtype=np.float32)
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"]),
        helper.make_node("Sub", ["a", "x"], ["b"]),
        helper.make_node("Softmax", ["b"], ["c"]),
        helper.make_node("LayerNormalization", ["c", "scale"], ["d"]),
        helper.make_node("Mul", ["d", "a"], ["e"]),
    ]
    a, b, d, e = run(
        nodes, {"x": x}, ["a", "b", "d", "e"], initializers=[constant("scale", scale, np.float32)]
    )
    np.testing.assert_allclose(b, softmax(x) - x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(e, d * softmax(x), rtol=1e-4, atol=1e-5)


def test_gru_with_the_bias_inside_of_the_reset():
    rng = np.random.default_rng(0)
    steps, batch, size, width = 3, 2, 5, 7
    x, w, r, b = (
        rng.standard_normal(s).astype(np.float32)
        for s in [(steps, batch, width), (1, 3 * size, width), (1, 3 * size, size), (1, 6 * size)]
    )
    node = helper.make_node("GRU", ["x", "w", "r", "b"], ["y", "last"], hidden_size=size, linear_before_reset=1)
    shapes = {"w": w.shape, "r": r.shape, "b": b.shape}
    _, last = run([node], {"x": x, "w": w, "r": r, "b": b}, ["y", "last"], shapes)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    (wz, wr, wh), (rz, rr, rh), (bz, br, bh, cz, cr, ch) = np.split(w[0], 3), np.split(r[0], 3), np.split(b[0], 6)
    h = np.zeros((batch, size))
    for v in x:
        z = sigmoid(v @ wz.T + h @ rz.T + bz + cz)
        reset = sigmoid(v @ wr.T + h @ rr.T + br + cr)
        h = (1 - z) * np.tanh(v @ wh.T + reset * (h @ rh.T + ch) + bh) + z * h
    np.testing.assert_allclose(last[0], h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("start, end, step", [(9, 2**31 - 1, 1), (2, 2, 1), (-1, -(2**31), -1), (5, 0, -2)])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("open_size", [False, True])
def test_slices_that_may_be_empty(start, end, step, size, open_size):
    x = np.arange(size * 3, dtype=np.float32).reshape(3, size)
    nodes = [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"]), helper.make_node("Neg", ["y"], ["z"])]
    parameters = [constant("s", [start]), constant("e", [end]), constant("a", [1]), constant("t", [step])]
    shapes = {"x": ["n", "m" if open_size else size]}
    y, z = run(nodes, {"x": x}, ["y", "z"], shapes, initializers=parameters)
    np.testing.assert_array_equal(y, x[:, start:end:step])
    np.testing.assert_array_equal(z, -x[:, start:end:step])


def test_split_by_sizes_known_at_run_time():
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    nodes = [helper.make_node("Split", ["x", "s"], ["a", "b"], axis=-1)]
    a, b = run(nodes, {"x": x, "s": np.array([4, 2])}, ["a", "b"], {"s": [2]})
    np.testing.assert_array_equal(a, x[:, :4])
    np.testing.assert_array_equal(b, x[:, 4:])
    for wrong in ([4, 1 << 30], [8, -2]):
        with pytest.raises(sdx.Fail, match="Split"):
            run(nodes, {"x": x, "s": np.array(wrong)}, ["a", "b"], {"s": [2]})


def test_concat_with_an_empty_part():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [
        helper.make_node("Split", ["x", "s"], ["a", "b"], axis=1),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    (y,) = run(nodes, {"x": x}, ["y"], {"x": ["n", 3]}, initializers=[constant("s", [3, 0])])
    np.testing.assert_array_equal(y, x)


def test_tile_nothing():
    x = np.ones((2, 3), np.float32)
    (y,) = run([helper.make_node("Tile", ["x", "r"], ["y"])], {"x": x}, ["y"], initializers=[constant("r", [2, 0])])
    assert y.shape == (4, 0)


def test_group_normalization_of_any_rank():
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 5)).astype(np.float32)
    one, zero = np.ones(4, np.float32), np.zeros(4, np.float32)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2, epsilon=0.0)
    (y,) = run([node], {"x": x, "s": one, "b": zero}, ["y"], {"x": ["n", 4, "h", "w"], "s": [4], "b": [4]}, opset=21)
    g = x.reshape(2, 2, -1)
    want = (g - g.mean(-1, keepdims=True)) / g.std(-1, keepdims=True)
    np.testing.assert_allclose(y, want.reshape(x.shape), rtol=1e-4, atol=1e-5)


def test_dynamic_quantization_of_zeros():
    """The scale is 1 then, as onnxruntime has it; a scale of 0 could not be divided by."""
    for shape in [(2, 3), (0, 3)]:
        node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
        y, scale, zero = run([node], {"x": np.zeros(shape, np.float32)}, ["y", "s", "z"])
        assert (scale, zero) == (1, 0) and y.shape == shape and not y.any()


@pytest.mark.parametrize("shape", [(3, 7), (70, 99)])
def test_dynamic_quantization_beside_nan(shape):
    """What is no number has no part in the range of the others."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[1, 2] = 0
    wanted = run([node], {"x": x}, ["y", "s", "z"])
    x[1, 2] = np.nan
    y, scale, zero = run([node], {"x": x}, ["y", "s", "z"])
    assert (scale, zero) == (wanted[1], wanted[2])
    isNumber = ~np.isnan(x)
    np.testing.assert_array_equal(y[isNumber], wanted[0][isNumber])


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("op, dtype", [("CumSum", np.float32), ("CumSum", np.float16), ("CumProd", np.float64)])
def test_cumulative_over_more_than_a_block(op, dtype, exclusive, reverse, open_sizes):
    x = np.random.default_rng(0).uniform(0.9, 1.1, (3, 70, 5)).astype(dtype)
    node = helper.make_node(op, ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    shapes = {} if open_sizes else {"x": x.shape}
    (y,) = run([node], {"x": x}, ["y"], shapes, 26, [constant("axis", -2)])
    want = np.flip(x, 1) if reverse else x
    want = (np.cumsum if op == "CumSum" else np.cumprod)(want.astype(np.float64), 1)
    if exclusive:
        want = np.concatenate([np.full_like(want[:, :1], op == "CumProd"), want[:, :-1]], 1)
    want = np.flip(want, 1) if reverse else want
    np.testing.assert_allclose(y, want, rtol=2e-3 if dtype == np.float16 else 1e-5)


def test_cumulative_time_does_not_grow_with_the_square():
    """Of a million elements each, not half a million million."""
    x = np.ones(1_000_000, np.int64)
    (y,) = run([helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": x}, ["y"], {}, 17, [constant("axis", 0)])
    assert (y == np.arange(1, x.size + 1)).all()


def convolve(x, w, strides, pads, dilations, group=1):
    """A convolution of two spatial dimensions in double precision; pads are top, left, bottom, right."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    kernel = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    parts = zip(np.split(windows, group, 1), np.split(w.astype(np.float64), group))
    return np.concatenate([np.einsum("nchwij,fcij->nfhw", a, b) for a, b in parts], 1)


CONVOLUTIONS = {
    # name: (input, weights, strides, pads, dilations, group)
    "planes": ((2, 3, 32, 64), (9, 3, 7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    "planes, odd height": ((1, 4, 15, 28), (8, 4, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "planes, even kernel": ((1, 4, 16, 16), (8, 4, 4, 2), (2, 2), (1, 0, 1, 0), (1, 1), 1),
    "planes, dilated, groups": ((1, 8, 40, 36), (16, 4, 3, 5), (2, 2), (2, 4, 2, 3), (2, 2), 2),
    "planes, uneven pads": ((1, 3, 14, 14), (40, 3, 3, 3), (2, 2), (0, 0, 1, 1), (1, 1), 1),
    "planes, many filters": ((1, 16, 28, 28), (264, 16, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "planes, of one stride": ((1, 5, 13, 32), (9, 5, 3, 3), (1, 2), (1, 1, 1, 1), (1, 1), 1),
    "planes of taps": ((1, 3, 33, 57), (40, 3, 3, 3), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "planes of taps, wide kernel": ((2, 2, 20, 35), (8, 2, 5, 6), (2, 2), (2, 3, 1, 0), (1, 1), 1),
    "planes of taps, dilated, groups": ((1, 6, 30, 41), (8, 3, 3, 3), (2, 2), (2, 1, 0, 2), (2, 3), 2),
    "planes of taps, the last lanes padding": ((1, 16, 16, 31), (8, 16, 2, 5), (1, 2), (1, 4, 0, 6), (3, 3), 1),
    "planes of taps, of one stride": ((1, 4, 15, 40), (8, 4, 3, 3), (1, 2), (0, 0, 2, 0), (1, 1), 1),
    "one plane": ((2, 24, 28, 28), (72, 24, 1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "one plane, odd height, groups": ((1, 8, 31, 36), (18, 4, 1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 2),
    "one tap with padding": ((1, 8, 30, 30), (16, 8, 1, 1), (2, 2), (1, 1, 0, 0), (1, 1), 1),
    "gather, many taps": ((1, 3, 12, 31), (8, 3, 2, 9), (2, 2), (0, 4, 0, 4), (1, 1), 1),
    "gather, stride 3": ((1, 8, 21, 30), (33, 8, 3, 3), (3, 3), (1, 1, 1, 1), (1, 1), 1),
    "depthwise, one block": ((2, 5, 7, 7), (5, 1, 5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 5),
    "depthwise, edges": ((1, 3, 15, 21), (6, 1, 5, 3), (1, 1), (2, 1, 2, 1), (1, 1), 3),
    "depthwise, narrow, stride": ((1, 4, 13, 6), (4, 1, 3, 3), (2, 2), (1, 1, 0, 1), (1, 1), 4),
    "depthwise, stride 2, much padding": ((1, 3, 9, 5), (3, 1, 3, 3), (2, 2), (1, 41, 1, 90), (1, 1), 3),
    "depthwise, stride 2, some padding": ((1, 3, 40, 67), (3, 1, 3, 3), (2, 2), (3, 32, 2, 70), (1, 1), 3),
    "depthwise, mostly padding": ((1, 4, 2, 3), (4, 1, 3, 3), (1, 1), (2, 2, 2, 2), (1, 1), 4),
    "depthwise, far taps": ((1, 2, 9, 40), (2, 1, 3, 3), (1, 1), (4, 4, 4, 4), (4, 4), 2),
    "few positions, deep": ((1, 96, 7, 7), (64, 96, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "few positions, Winograd of 2x2": ((2, 40, 7, 7), (37, 40, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "few positions, Winograd of 2x2, uneven": ((1, 33, 8, 10), (64, 33, 3, 3), (1, 1), (1, 0, 0, 1), (1, 1), 1),
    "few positions, two images": ((2, 80, 14, 14), (70, 80, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "few positions, odd depth": ((1, 67, 5, 5), (48, 67, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "large weights": ((1, 300, 9, 9), (130, 300, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "Winograd, few channels": ((1, 8, 23, 31), (11, 8, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "Winograd, filters in lanes": ((2, 37, 14, 14), (160, 37, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "Winograd, filters in lanes, 13x13": ((1, 64, 13, 13), (128, 64, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "Winograd of 2x2, filters in lanes": ((1, 96, 7, 7), (128, 96, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "Winograd, large weights": ((2, 96, 14, 14), (72, 96, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("open_batch", [False, True])
def test_convolution(name, open_batch):
    shape, filters, strides, pads, dilations, group = CONVOLUTIONS[name]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(filters).astype(np.float32)
    w /= np.sqrt(w[0].size)
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=strides, pads=pads, dilations=dilations, group=group
    )
    sizes = ["n" if open_batch else shape[0], *shape[1:]]
    (y,) = run([node], {"x": x}, ["y"], {"x": sizes}, initializers=[constant("w", w, np.float32)])
    want = convolve(x, w, strides, pads, dilations, group)
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("columns", [1, 5, 16, 64, 77, 128, 200])
def test_softmax_of_rows_that_are_not_finite(columns):
    x = np.random.default_rng(0).standard_normal((6, columns)).astype(np.float32)
    x[1, columns // 2] = np.nan
    x[2, 0], x[3, -1] = np.inf, -np.inf
    x[4], x[5] = -np.inf, np.nan
    (y,) = run([helper.make_node("Softmax", ["x"], ["y"])], {"x": x}, ["y"], {"x": x.shape})
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_tanh_of_large_numbers_is_one():
    x = np.concatenate([np.linspace(9.02, 200, 77), [3e38, np.inf]]).astype(np.float32)
    x = np.concatenate([x, -x, [0.5, np.nan]]).astype(np.float32)
    (y,) = run([helper.make_node("Tanh", ["x"], ["y"])], {"x": x}, ["y"])
    np.testing.assert_array_equal(y[:-2], np.sign(x[:-2]))
    assert abs(y[-2] - np.tanh(0.5)) < 1e-6 and np.isnan(y[-1])


# 9 columns become 4, whose centres are 1, 3, 5 and 7; that of the fourth of 62 from 100 is 5.5.
@pytest.mark.parametrize(
    "size, scale, rounding, places",
    [(9, 0.5, "ceil", {0: 1, 1: 3, 2: 5, 3: 7}), (100, 0.625, "round_prefer_ceil", {3: 6, 58: 94})],
)
def test_resize_to_whole_and_half_positions(size, scale, rounding, places):
    x = np.arange(size, dtype=np.float32)
    scales = constant("scales", [scale], np.float32)
    modes = {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "nearest"}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], nearest_mode=rounding, **modes)
    (y,) = run([node], {"x": x}, ["y"], {"x": x.shape}, 19, [scales])
    assert {place: y[place] for place in places} == places


@pytest.mark.parametrize("channels", [8, 16, 40])
def test_convolutions_of_bytes_are_exact(channels):
    """Also 3x3 ones, which Winograd's algorithm would round."""
    rng = np.random.default_rng(channels)
    x = rng.integers(0, 256, (1, channels, 14, 15), np.uint8)
    w = rng.integers(0, 256, (9, channels, 3, 3), np.uint8)
    zero = constant("zx", 21, np.uint8), constant("zw", 8, np.uint8)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    (y,) = run([node], {"x": x}, ["y"], {"x": x.shape}, 21, [constant("w", w, np.uint8), *zero])
    padded = np.pad(x.astype(np.int64) - 21, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(y, np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.int64) - 8))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int64])
@pytest.mark.parametrize("shape, axis", [((7,), 0), ((5, 9), 0), ((3, 4, 50), 1), ((2, 1000), 1), ((1,), 0)])
def test_top_k(shape, axis, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 20, shape).astype(dtype)  # with equal elements, of which the first is the better one
    for largest in [0, 1]:
        order = np.argsort(-x.astype(np.float64) if largest else x, axis=axis, kind="stable")
        for k in {0, 1, 2, 3, shape[axis] // 2, shape[axis]} & set(range(shape[axis] + 1)):
            node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
            values, indices = run([node], {"x": x, "k": np.array([k])}, ["v", "i"], {"k": [1]}, 21)
            wanted = np.take(order, range(k), axis)
            np.testing.assert_array_equal(indices, wanted)
            np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("shape, axis", [((100,), 0), ((3, 70), 1), ((70, 3), 0), ((2, 40, 3), 1), ((0, 50), 1)])
def test_sums_along_a_long_axis(shape, axis, exclusive, reverse):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    for sizes in [shape, None]:
        given = {"x": sizes} if sizes else {}
        (y,) = run([node], {"x": x}, ["y"], given, 14, [constant("axis", axis)])
        wanted = np.flip(x, axis) if reverse else x
        wanted = np.cumsum(wanted, axis) - (wanted if exclusive else 0)
        np.testing.assert_array_equal(y, np.flip(wanted, axis) if reverse else wanted)


def transposed(x, w, group, strides, dilations, pads, more):
    """ConvTranspose by its definition: every input adds its share to what it reaches."""
    rank = len(strides)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    sizes = [(h - 1) * s + span + e for h, s, span, e in zip(x.shape[2:], strides, spans, more)]
    filters, channels = w.shape[1], x.shape[1] // group
    y = np.zeros((x.shape[0], group * filters, *sizes))
    for g in range(group):
        part = slice(g * channels, (g + 1) * channels)
        for tap in np.ndindex(*w.shape[2:]):
            share = np.einsum("nc...,cf->nf...", x[:, part], w[(part, slice(None), *tap)])
            at = [
                slice(t * d, t * d + (h - 1) * s + 1, s)
                for t, d, h, s in zip(tap, dilations, x.shape[2:], strides)
            ]
            y[(slice(None), slice(g * filters, (g + 1) * filters), *at)] += share
    return y[(..., *(slice(pads[d], sizes[d] - pads[rank + d]) for d in range(rank)))]


@pytest.mark.parametrize("seed", range(40))
def test_transposed_convolutions(seed):
    rng = np.random.default_rng(seed)
    rank, group = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    strides, kernel = rng.integers(1, 4, rank).tolist(), rng.integers(1, 5, rank).tolist()
    dilations = rng.integers(1, 3, rank).tolist() if seed % 4 == 0 else [1] * rank
    pads = [int(rng.integers(0, k)) for k in kernel] * 2
    more = [int(rng.integers(0, s)) for s in strides]
    x = rng.standard_normal((2, 3 * group, *rng.integers(2, 7, rank))).astype(np.float32)
    w = rng.standard_normal((3 * group, int(rng.integers(1, 9)), *kernel)).astype(np.float32)
    bias = rng.standard_normal(w.shape[1] * group).astype(np.float32)
    wanted = transposed(x, w, group, strides, dilations, pads, more) + bias.reshape(-1, *[1] * rank)
    if 0 in wanted.shape or min(wanted.shape) < 1:
        pytest.skip("nothing is left of the result")
    attributes = {"group": group, "strides": strides, "dilations": dilations, "pads": pads, "output_padding": more}
    nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], **attributes)]
    nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    shape = [None, 3 * group, *[None] * rank] if seed % 2 else x.shape
    initializers = [constant("w", w, np.float32), constant("b", bias, np.float32)]
    (y,) = run(nodes, {"x": x}, ["y"], {"x": shape}, 17, initializers)
    np.testing.assert_allclose(y, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


def scattered(v, i, u):
    result = v.copy()
    result[tuple(i.T)] = u
    return result


@pytest.mark.parametrize("k", [2, 3, 4])
def test_transposed_convolutions_keep_an_infinity_in_its_place(k):
    x, w = np.ones((1, 2, 6, 6), np.float32), np.ones((2, 3, k, k), np.float32)
    x[0, 0, 2, 3] = np.inf
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    (y,) = run([node], {"x": x}, ["y"], {"x": x.shape}, 17, [constant("w", w, np.float32)])
    np.testing.assert_array_equal(y, transposed(x, w, 1, [2, 2], [1, 1], [0] * 4, [0, 0]))


# Nodes that make {0} of v, and what they make.
MADE_OF_ONE = {
    "scatter": ("{0} = ScatterND (v, i, u)", scattered),
    "reshaped scatter": (
        "{0}_ = ScatterND (v, i, u) {0} = Reshape ({0}_, q)",
        lambda v, i, u: scattered(v, i, u).reshape(2, 6, 4),
    ),
    "slice": ("{0} = Slice (v, one, three)", lambda v, i, u: v[1:3]),
    "reshape": ("{0} = Reshape (v, q)", lambda v, i, u: v.reshape(2, 6, 4)),
    "same": ("{0} = Identity (v)", lambda v, i, u: v),
    "sum": ("{0} = CumSum (v, zero)", lambda v, i, u: np.cumsum(v, 0)),
}


@pytest.mark.parametrize("first", MADE_OF_ONE)
@pytest.mark.parametrize("second", MADE_OF_ONE)
def test_two_results_made_of_one_tensor(first, second):
    """Both may want to be made in its memory, which may be the buffer of one of them."""
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((6, 4, 2)).astype(np.float32), rng.standard_normal((15, 2)).astype(np.float32)
    i = rng.permutation([(a, b) for a in range(6) for b in range(4)])[:15]
    for rows in [6, "A"]:
        model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
            g (float[{rows},4,2] x, int64[15,2] i, float[15,2] u) => (float[K,L,M] a, float[P,Q,R] b)
            <int64[3] q = {{2, 6, 4}}, int64[1] one = {{1}}, int64[1] three = {{3}}, int64 zero = {{0}}> {{
              v = Neg (x) {MADE_OF_ONE[first][0].format("a")} {MADE_OF_ONE[second][0].format("b")}
            }}""")
        a, b = sdx.InferenceSession(model.SerializeToString(), OPTIONS).run(None, {"x": x, "i": i, "u": u})
        np.testing.assert_allclose(a, MADE_OF_ONE[first][1](-x, i, u), rtol=1e-6)
        np.testing.assert_allclose(b, MADE_OF_ONE[second][1](-x, i, u), rtol=1e-6)
