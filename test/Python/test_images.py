"""Operators on images and windows at positions that data decide, over random shapes, against numpy."""

import itertools

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx

TYPES = {
    "f32": (np.float32, 2e-5),
    "f64": (np.float64, 1e-12),
    "f16": (np.float16, 4e-3),
    "bf16": (ml_dtypes.bfloat16, 4e-2),
}


def run(op, feeds, open_sizes=False, opset=22, constants=(), outputs=("y",), **attributes):
    """Runs one node; inputs named in `constants` are initializers, None is an input left out."""
    names = [name if value is not None else "" for name, value in feeds.items()]
    feeds = {name: value for name, value in feeds.items() if value is not None}
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(a.dtype),
            [f"{name}{d}" for d in range(a.ndim)] if open_sizes else a.shape,
        )
        for name, a in feeds.items()
        if name not in constants
    ]
    weights = [onnx.numpy_helper.from_array(feeds.pop(name), name) for name in constants]
    node = helper.make_node(op, names, list(outputs), **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    results = sdx.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    return results[0] if len(outputs) == 1 else results


def check(got, want, dtype, tolerance):
    assert got.dtype == dtype and got.shape == want.shape, (got.dtype, got.shape, want.shape)
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(dtype).astype(np.float64), rtol=tolerance, atol=tolerance
    )


# GridSample


def reflect(x, low, high):
    if high <= low:
        return np.full_like(x, low)
    period = 2 * (high - low)
    rest = np.mod(x - low, period)
    return low + np.minimum(rest, period - rest)


def taps(x, size, mode, padding, align):
    """Positions (-1 is outside) and weights of what samples at x read."""
    low, high = (0, size - 1) if align else (-0.5, size - 0.5)
    if mode == "nearest":
        x = np.rint(x)
    if padding == "reflection":
        x = np.where((x < low) | (x > high), reflect(x, low, high), x)
    if mode == "nearest":
        at, weights = [x], [np.ones_like(x)]
    else:
        first = np.floor(x)
        reach = {"linear": (0, 1), "cubic": (-1, 0, 1, 2)}[mode]
        at = [first + t for t in reach]
        d = [np.abs(x - p) for p in at]
        a = -0.75
        weights = [
            1 - v
            if mode == "linear"
            else np.where(v <= 1, (a + 2) * v**3 - (a + 3) * v**2 + 1, a * (v**3 - 5 * v**2 + 8 * v - 4))
            for v in d
        ]
    result = []
    for p, w in zip(at, weights):
        outside = (p < 0) | (p > size - 1)
        if padding == "reflection":
            p = np.where(outside, reflect(p, low, high), p)
        index = np.clip(p, 0, size - 1).astype(int)
        result.append((np.where(outside, -1, index) if padding == "zeros" else index, w))
    return result


def grid_sample(x, grid, mode="linear", padding="zeros", align=0):
    sizes, spatial = x.shape[2:], grid.shape[1:-1]
    tables = []
    for i, size in enumerate(sizes):
        n = grid[..., len(sizes) - 1 - i].astype(np.float64)
        at = (n + 1) / 2 * (size - 1) if align else ((n + 1) * size - 1) / 2
        tables.append(taps(at, size, mode, padding, align))
    y = np.zeros(x.shape[:2] + spatial)
    for parts in itertools.product(*tables):
        weight = np.prod([w for _, w in parts], axis=0)
        for n in range(len(x)):
            at = tuple(np.maximum(p[n], 0) for p, _ in parts)
            inside = np.all([p[n] >= 0 for p, _ in parts], axis=0)
            y[n] += np.where(inside, x[n].astype(np.float64)[(slice(None), *at)], 0) * weight[n]
    return y


def random_grid(random, shape, dtype):
    return (random.uniform(-2.5, 2.5, shape)).astype(dtype)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(mode, padding, align):
    random = np.random.default_rng(["nearest", "linear", "cubic"].index(mode))
    for rank, open_sizes in [(1, True), (2, False), (2, True), (3, True)]:
        x = random.standard_normal([*random.integers(1, 4, 2), *random.integers(1, 6, rank)]).astype(np.float32)
        grid = random_grid(random, [len(x), *random.integers(0 if open_sizes else 1, 5, rank), rank], np.float32)
        got = run("GridSample", dict(x=x, g=grid), open_sizes, mode=mode, padding_mode=padding, align_corners=align)
        check(got, grid_sample(x, grid, mode, padding, align), np.float32, 1e-4)


@pytest.mark.parametrize("kind, grid_type", [(k, "f32") for k in TYPES] + [("f32", k) for k in TYPES if k != "f32"])
def test_grid_sample_types(kind, grid_type):
    dtype, tolerance = TYPES[kind]
    random = np.random.default_rng(1)
    x = random.standard_normal([2, 3, 4, 5]).astype(dtype)
    grid = random_grid(random, [2, 3, 3, 2], TYPES[grid_type][0])
    coarse = 1e-5 if grid_type != "f64" and kind != "f64" else 0
    check(run("GridSample", dict(x=x, g=grid)), grid_sample(x, grid), dtype, tolerance + coarse)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint32, np.bool_])
def test_grid_sample_copies(dtype):
    random = np.random.default_rng(2)
    x = random.integers(0, 100, [1, 2, 4, 3]).astype(dtype)
    grid = random_grid(random, [1, 5, 6, 2], np.float32)
    np.testing.assert_array_equal(
        run("GridSample", dict(x=x, g=grid), mode="nearest"), grid_sample(x, grid, "nearest").astype(dtype)
    )
    with pytest.raises(NotImplementedError, match="only floats are interpolated"):
        run("GridSample", dict(x=x, g=grid))


def test_grid_sample_halves_go_to_even():
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    grid = np.array([-1, -0.75, -0.25, 0.25, 0.75, 1], np.float32).reshape(1, 6, 1)
    got = run("GridSample", dict(x=x, g=grid), mode="nearest", align_corners=1)
    np.testing.assert_array_equal(got.ravel(), [1, 1, 3, 3, 5, 5])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample_anywhere(mode, padding):
    """Coordinates that are no numbers, or far away, read nothing that is not there; infinite points stay outside."""
    x = np.full([1, 1, 3, 4], 2, np.float32)
    x[0, 0, 0, 0] = np.inf
    far = [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9]
    grid = np.array(list(itertools.product(far, far)), np.float32).reshape(1, 7, 7, 2)
    got = run("GridSample", dict(x=x, g=grid), mode=mode, padding_mode=padding)
    if padding == "zeros":
        np.testing.assert_array_equal(got, np.zeros([1, 1, 7, 7], np.float32))


def test_grid_sample_names_of_old():
    random = np.random.default_rng(3)
    x, grid = random.standard_normal([1, 2, 4, 5]).astype(np.float32), random_grid(random, [1, 3, 3, 2], np.float32)
    for old, new in [("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")]:
        check(run("GridSample", dict(x=x, g=grid), opset=16, mode=old), grid_sample(x, grid, new), np.float32, 1e-4)


@pytest.mark.parametrize(
    "x, grid, says",
    [
        ([2, 1, 3, 3], [1, 2, 2, 2], "batches"),
        ([1, 1, 3, 3], [1, 2, 2, 3], "coordinate for each dimension"),
        ([1, 1, 0, 3], [1, 2, 2, 2], "no points"),
    ],
)
def test_grid_sample_that_does_not_fit(x, grid, says):
    with pytest.raises(sdx.Fail, match=says):
        run("GridSample", dict(x=np.ones(x, np.float32), g=np.ones(grid, np.float32)), open_sizes=True)


# AffineGrid


def affine_grid(theta, size, align):
    axes = []
    for n in size[2:]:
        at = np.arange(n, dtype=np.float64)
        axes.append((at * 2 / (n - 1) - 1 if n > 1 else at - 1) if align else (2 * at + 1) / n - 1)
    points = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1] + [np.ones(size[2:])], -1)
    return np.einsum("nij,...j->n...i", theta.astype(np.float64), points)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("kind", TYPES)
def test_affine_grid(kind, align):
    dtype, tolerance = TYPES[kind]
    random = np.random.default_rng(4)
    for rank, open_sizes, constants in [(2, False, ()), (2, True, ("s",)), (3, True, ())]:
        n = int(random.integers(1, 4))
        size = np.array([n, 2, *random.integers(1, 6, rank)])
        theta = random.standard_normal([n, rank, rank + 1]).astype(dtype)
        got = run("AffineGrid", dict(t=theta, s=size), open_sizes, constants=constants, align_corners=align)
        check(got, affine_grid(theta, size, align), dtype, tolerance)


@pytest.mark.parametrize("size, says", [([3, 1, 2, 2], "differ in the batch"), ([2, 1, -2, 2], "'size' is impossible")])
def test_affine_grid_that_does_not_fit(size, says):
    with pytest.raises(sdx.Fail, match=says):
        run("AffineGrid", dict(t=np.ones([2, 2, 3], np.float32), s=np.array(size)))


# RoiAlign and MaxRoiPool


def roi_point(image, y, x, largest):
    """The four weighted neighbours of a point, summed, or the largest of them."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
    p, q = y - top, x - left
    parts = [(1 - p) * (1 - q) * image[:, top, left], (1 - p) * q * image[:, top, right]]
    parts += [p * (1 - q) * image[:, bottom, left], p * q * image[:, bottom, right]]
    return np.max(parts, axis=0) if largest else np.sum(parts, axis=0)


def roi_align(x, rois, images, size, ratio, scale, largest, half_pixel):
    x, rois = x.astype(np.float64), rois.astype(np.float64) * scale - (0.5 if half_pixel else 0)
    y = np.zeros((len(rois), x.shape[1], *size))
    for r, i, j in itertools.product(range(len(rois)), *map(range, size)):
        (left, top, right, bottom), bins = rois[r], []
        for begin, end, at, count in [(top, bottom, i, size[0]), (left, right, j, size[1])]:
            extent = end - begin if half_pixel else max(end - begin, 1.0)
            n = ratio or max(int(np.ceil(extent / count)), 0)
            bins.append([begin + (at + (k + 0.5) / n) * extent / count for k in range(n)])
        points = [roi_point(x[images[r]], p, q, largest) for p, q in itertools.product(*bins)]
        if points:
            y[r, :, i, j] = np.max(points, axis=0) if largest else np.mean(points, axis=0)
    return y


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(mode, kind):
    dtype, tolerance = TYPES[kind]
    random = np.random.default_rng(5)
    for trial in range(4) if kind == "f32" else [3]:
        x = random.standard_normal(random.integers(1, 8, 4)).astype(dtype)
        # Sixteenths: no rounding decides how many points a bin has.
        rois = (random.integers(-32, 160, [trial, 4]) / 16).astype(dtype)
        images = random.integers(0, len(x), trial)
        size = [int(n) for n in random.integers(1, 4, 2)]
        ratio, half = trial % 3, trial % 2
        options = dict(
            mode=mode,
            output_height=size[0],
            output_width=size[1],
            sampling_ratio=ratio,
            spatial_scale=0.5,
            coordinate_transformation_mode="half_pixel" if half else "output_half_pixel",
        )
        got = run("RoiAlign", dict(x=x, r=rois, i=images), trial > 1, **options)
        check(got, roi_align(x, rois, images, size, ratio, 0.5, mode == "max", half), dtype, tolerance)


def max_roi_pool(x, rois, size, scale):
    y = np.zeros((len(rois), x.shape[1], *size))
    for r, i, j in itertools.product(range(len(rois)), *map(range, size)):
        corners = rois[r, 1:].astype(np.float64) * scale
        left, top, right, bottom = np.copysign(np.floor(np.abs(corners) + 0.5), corners)
        box = []
        for begin, end, at, bins, n in [(top, bottom, i, size[0], x.shape[2]), (left, right, j, size[1], x.shape[3])]:
            step = max(end - begin + 1, 1) / bins
            edges = np.floor(at * step) + begin, np.ceil((at + 1) * step) + begin
            box.append(slice(*(int(np.clip(e, 0, n)) for e in edges)))
        bin = x[int(rois[r, 0])][:, box[0], box[1]]
        if bin.size:
            y[r, :, i, j] = bin.max((1, 2))
    return y


@pytest.mark.parametrize("kind", TYPES)
def test_max_roi_pool(kind):
    dtype, _ = TYPES[kind]
    random = np.random.default_rng(6)
    for trial in range(4):
        x = random.standard_normal(random.integers(1, 8, 4)).astype(dtype)
        rois = random.integers(-8, 32, [trial, 5]) / 2
        rois[:, 0] = random.integers(0, len(x), trial)
        size = [int(n) for n in random.choice([1, 2, 4], 2)]
        got = run("MaxRoiPool", dict(x=x, r=rois.astype(dtype)), trial % 2, pooled_shape=size, spatial_scale=0.5)
        check(got, max_roi_pool(x, rois, size, 0.5), dtype, 0)


def test_regions_of_nothing():
    """Corners that are no numbers, or far away, and images that are not there."""
    x = np.ones([2, 1, 3, 3], np.float32)
    far = np.array([[np.nan] * 4, [-np.inf, -np.inf, np.inf, np.inf], [1e30, 1e30, 1e30, 1e30]], np.float32)
    images = np.array([0, 1, 1])
    assert run("RoiAlign", dict(x=x, r=far, i=images), sampling_ratio=2).shape == (3, 1, 1, 1)
    rois = np.concatenate([images[:, None], far], 1).astype(np.float32)
    assert run("MaxRoiPool", dict(x=x, r=rois), pooled_shape=[2, 2]).shape == (3, 1, 2, 2)
    for image in [-1, 2]:
        with pytest.raises(sdx.Fail, match=f"a region is in image {image}, and there are 2"):
            run("RoiAlign", dict(x=x, r=far[:1] * 0, i=np.array([image])))
        with pytest.raises(sdx.Fail, match=f"a region is in image {image}, and there are 2"):
            run("MaxRoiPool", dict(x=x, r=np.array([[image, 0, 0, 1, 1]], np.float32)), pooled_shape=[1, 1])


# DeformConv


def deform_conv(x, w, offset, bias, mask, strides, pads, dilations, group, offset_group):
    x, w, offset = (a.astype(np.float64) for a in (x, w, offset))
    n, channels, *sizes = x.shape
    rank, outputs, kernel = len(sizes), offset.shape[2:], w.shape[2:]
    offset = offset.reshape(n, offset_group, *kernel, rank, *outputs)
    mask = np.ones([n, offset_group, *kernel, *outputs]) if mask is None else mask.astype(np.float64)
    mask = mask.reshape(n, offset_group, *kernel, *outputs)
    columns = np.zeros([n, channels, *kernel, *outputs])
    for k in np.ndindex(*kernel):
        regular = [np.arange(o) * s + i * d - p for o, s, i, d, p in zip(outputs, strides, k, dilations, pads)]
        regular = np.stack(np.meshgrid(*regular, indexing="ij"))
        for b, g in np.ndindex(n, offset_group):
            at = regular + offset[(b, g, *k)]
            some = slice(g * channels // offset_group, (g + 1) * channels // offset_group)
            for side in itertools.product([0, 1], repeat=rank):
                points = np.floor(at) + np.array(side).reshape(-1, *[1] * rank)
                weight = np.prod(1 - np.abs(at - points), 0) * mask[(b, g, *k)]
                limits = np.array(sizes).reshape(-1, *[1] * rank)
                inside = ((points >= 0) & (points < limits)).all(0)
                index = np.clip(points, 0, limits - 1).astype(int)
                columns[(b, some, *k)] += np.where(inside, weight * x[b][(some, *index)], 0)
    columns = columns.reshape(n, group, channels // group, *kernel, *outputs)
    w = w.reshape(group, -1, *w.shape[1:])
    y = np.einsum("gfck,ngcko->ngfo", w.reshape(*w.shape[:3], -1), columns.reshape(*columns.shape[:3], w[0, 0, 0].size, -1))
    y = y.reshape(n, -1, *outputs)
    return y if bias is None else y + bias.astype(np.float64).reshape(-1, *[1] * rank)


@pytest.mark.parametrize("kind, rank", [("f32", 1), ("f32", 2), ("f32", 3), ("f64", 2), ("f16", 2), ("bf16", 2)])
def test_deform_conv(kind, rank):
    dtype, tolerance = TYPES[kind]
    random = np.random.default_rng(rank)
    for trial in range(4) if kind == "f32" else [2]:
        group, offset_group = (int(v) for v in random.choice([1, 2, 3], 2))
        kernel, dilations, strides = (random.integers(1, 3, rank) for _ in range(3))
        pads, n = random.integers(0, 3, 2 * rank), int(random.integers(1, 3))
        sizes = (kernel - 1) * dilations + random.integers(1, 5, rank)
        outputs = (sizes + pads[:rank] + pads[rank:] - (kernel - 1) * dilations - 1) // strides + 1
        channels, k = 6 * int(random.integers(1, 3)), int(np.prod(kernel))
        x = random.standard_normal([n, channels, *sizes]).astype(dtype)
        w = (random.standard_normal([group * 2, channels // group, *kernel]) / 4).astype(dtype)
        offset = (random.integers(-32, 33, [n, offset_group * k * rank, *outputs]) / 16).astype(dtype)
        bias = random.standard_normal(group * 2).astype(dtype) if trial % 2 else None
        mask = random.uniform(0, 1, [n, offset_group * k, *outputs]).astype(dtype) if trial > 1 else None
        lists = dict(strides=strides, pads=pads, dilations=dilations)
        options = {name: [int(v) for v in values] for name, values in lists.items()}
        options |= dict(group=group, offset_group=offset_group)
        feeds = dict(x=x, w=w, o=offset, b=bias, m=mask)
        got = run("DeformConv", feeds, trial != 0, constants=("w",) if trial else (), **options)
        check(got, deform_conv(*feeds.values(), **options), dtype, tolerance * 4)


@pytest.mark.parametrize(
    "offset, options, says",
    [
        ([1, 8, 3, 3], {}, "not as large as the output"),
        ([1, 4, 2, 2], {}, "not have as many channels"),
        ([2, 8, 2, 2], {}, "batches"),
        ([1, 16, 2, 2], dict(offset_group=2), "no multiple of offset_group"),
    ],
)
def test_deform_conv_that_does_not_fit(offset, options, says):
    x, w = np.ones([1, 3, 3, 3], np.float32), np.ones([1, 3, 2, 2], np.float32)
    with pytest.raises(sdx.Fail, match=says):
        run("DeformConv", dict(x=x, w=w, o=np.zeros(offset, np.float32)), True, constants=("w",), **options)


# Axes that arrive at run time


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_axes(mode):
    random = np.random.default_rng(7)
    for trial in range(4):
        rank = int(random.integers(1, 5))
        count = int(random.integers(1, rank + 1))
        x = random.standard_normal(random.integers(2, 5, rank)).astype(np.float32)
        chosen = random.permutation(rank)[:count]
        pads = random.integers(0, 2, 2 * count)
        axes = chosen - rank * random.integers(0, 2, count)
        wide = np.zeros([rank, 2], int)
        wide[chosen] = pads.reshape(2, -1).T
        got = run("Pad", dict(x=x, p=pads, c=None, a=axes), trial % 2, mode=mode)
        np.testing.assert_array_equal(got, np.pad(x, wide, mode=mode))


def test_pad_axes_that_cut():
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    pads, axes = np.array([-1, 1, -1, -2]), np.array([2, 0])
    got = run("Pad", dict(x=x, p=pads, c=np.array(7, np.int32), a=axes), True)
    np.testing.assert_array_equal(got, np.full([1, 3, 2], 7))


@pytest.mark.parametrize("open_sizes", [False, True])
def test_squeeze_and_unsqueeze(open_sizes):
    random = np.random.default_rng(8)
    for trial in range(4):
        rank = int(random.integers(1, 5))
        count = int(random.integers(1, rank + 1))
        chosen = random.permutation(rank)[:count]
        axes = chosen - rank * random.integers(0, 2, count)
        shape = random.integers(0 if trial == 3 else 1, 4, rank)
        shape[chosen] = 1
        x = random.standard_normal(shape).astype(np.float32)
        y = x.squeeze(tuple(int(a) for a in chosen))
        if trial % 2:
            got = run("Squeeze", dict(x=x, a=axes), open_sizes)
            np.testing.assert_array_equal(got, y)
        else:
            got = run("Unsqueeze", dict(x=y, a=axes), open_sizes)
            np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize(
    "op, axes, says",
    [
        ("Squeeze", [1], "not of size 1: 3"),
        ("Squeeze", [3], "out of range: 3"),
        ("Unsqueeze", [1, 1], "axis 1 occurs twice"),
        ("Unsqueeze", [4], "out of range: 4"),
        ("Pad", [-4], "out of range: -4"),
    ],
)
def test_axes_that_do_not_fit(op, axes, says):
    feeds = dict(x=np.ones([1, 3, 1], np.float32))
    feeds |= dict(p=np.zeros(2 * len(axes), int), c=None) if op == "Pad" else {}
    with pytest.raises(sdx.Fail, match=says):
        run(op, feeds | dict(a=np.array(axes)), True)


# MelWeightMatrix


def mel_weights(bands, length, rate, low, high):
    mels = [2595 * np.log1p(np.float64(hertz) / 700) / np.log(10) for hertz in (low, high)]
    corners = mels[0] + np.arange(bands + 2) * (mels[1] - mels[0]) / (bands + 2)
    bins = ((length + 1) * 700 * np.expm1(corners / 2595 * np.log(10)) // rate).astype(int)
    y = np.zeros([length // 2 + 1, bands])
    for i in range(bands):
        left, centre, right = bins[i : i + 3]
        for x in range(left, right):
            if x < len(y):
                y[x, i] = (x - left) / (centre - left) if x < centre else (right - x) / (right - centre)
        if centre < len(y):
            y[centre, i] = 1
    return y


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "numbers", [(8, 16, 8192, 0, 4096), (40, 400, 16000, 20, 7900), (5, 64, 8000, 300, 3700), (0, 0, 1, 0, 1)]
)
def test_mel_weights(numbers, fixed):
    for kind in [np.float32, np.float16, np.int32]:
        names = ["bands", "length", "rate", "low", "high"]
        feeds = {n: np.array(v, np.int64 if n in names[:3] else np.float32) for n, v in zip(names, numbers)}
        data_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        got = run("MelWeightMatrix", feeds, constants=names if fixed else (), output_datatype=data_type)
        check(got, mel_weights(*numbers), kind, 1e-3 if kind == np.float16 else 1e-6)
