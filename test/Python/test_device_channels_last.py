"""Convolutions of 16 bits, and what is between them, with channels last on a device."""

import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from device_models import BUILD, run_on_device
from onnx import numpy_helper, parser


def check(text, feeds, weights, tolerance=2e-3, folder=None, has=(), tiles=None):
    """The device's results against those of onnxruntime in f32, of the same numbers. Its kernels have these instructions, and its only
    product goes by `tiles`."""
    rng = np.random.default_rng(len(text))
    values = {}
    for name, shape in weights.items():
        scale = np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 1
        values[name] = (rng.standard_normal(shape) / scale).astype(np.float16)
    inputs = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in feeds.items()}
    models = []
    for kind in ("float16", "float"):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text.replace("half", kind)}')
        for name, value in values.items():
            model.graph.initializer.append(numpy_helper.from_array(value if kind == "float16" else value.astype(np.float32), name))
        models.append(model)

    def run_tool(command, *options):
        onnx.save(models[0], folder / "model.onnx")
        tool = [BUILD / "bin" / "sardonyx", command, folder / "model.onnx", "--device", "sm_90a", *options]
        return subprocess.run(tool, check=True, capture_output=True, text=True).stdout

    settings = {}
    if tiles:
        plan, count = re.subn(r"#nv\.matmul_plan<[^>]*>", f"#nv.matmul_plan<{tiles}>", run_tool("plan"))
        assert count == 1, plan
        (folder / "plan").write_text(plan)
        settings["plan"] = str(folder / "plan")
    if has:
        ptx = run_tool("compile", "--to", "ptx", *(["--plan", settings["plan"]] if tiles else []))
        assert all(word in ptx for word in has), has
    (given,) = run_on_device(models[0], [inputs], **settings)
    wide = {name: value.astype(np.float32) for name, value in inputs.items()}
    expected = onnxruntime.InferenceSession(models[1].SerializeToString()).run(None, wide)
    for a, b in zip(given, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.astype(np.float32), b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=0))


CONVS = [
    # The image, the filters, attributes.
    ((1, 16, 9, 9), (16, 16, 3, 3), "pads = [1, 1, 1, 1]"),
    ((2, 3, 11, 10), (24, 3, 7, 7), "pads = [3, 3, 3, 3], strides = [2, 2]"),
    ((1, 20, 8, 8), (9, 20, 1, 1), "group = 1"),
    ((2, 32, 7, 6), (64, 16, 3, 2), "group = 2, dilations = [2, 1], pads = [0, 1, 2, 0]"),
    ((1, 12, 8, 8), (40, 6, 3, 3), "group = 2"),
    ((1, 24, 5, 5), (20, 12, 3, 3), "group = 2, pads = [1, 1, 1, 1]"),
    ((3, 8, 17), (10, 8, 4), "strides = [3]"),
    ((1, 8, 5, 6, 4), (16, 8, 3, 3, 2), "pads = [1, 1, 0, 1, 1, 1]"),
    ((0, 16, 9, 9), (16, 16, 3, 3), "group = 1"),
]


@pytest.mark.parametrize("image, filters, attributes", CONVS, ids=range(len(CONVS)))
def test_conv(image, filters, attributes):
    sizes = ", ".join("n" if i == 0 else str(size) for i, size in enumerate(image))
    sides = ", ".join("n" if i == 0 else str(filters[0]) if i == 1 else f"s{i}" for i in range(len(image)))
    text = f"m (half[{sizes}] x) => (half[{sides}] y) {{ c = Conv<{attributes}>(x, w, b)  y = Relu(c) }}"
    check(text, {"x": image}, {"w": filters, "b": filters[:1]})


WIDE = [
    # Of as many channels as the hardware copies at a time.
    ((2, 64, 9, 11), (72, 64, 3, 3), "pads = [1, 1, 1, 1]"),
    ((3, 64, 13, 10), (40, 64, 3, 2), "strides = [2, 3], pads = [1, 0, 2, 1], dilations = [1, 2]"),
    ((5, 128, 9, 12), (24, 128, 1, 1), "strides = [2, 2]"),
    ((2, 40, 9, 8), (24, 40, 1, 1), "group = 1"),
    ((2, 128, 70), (24, 128, 5), "strides = [2], pads = [2, 1]"),
    ((2, 64, 5, 6, 4), (16, 64, 2, 3, 2), "pads = [1, 0, 1, 0, 1, 1], strides = [1, 2, 1]"),
]


@pytest.mark.parametrize("image, filters, attributes", WIDE, ids=range(len(WIDE)))
@pytest.mark.parametrize("cluster", [None, "cluster_m = 2", "cluster_n = 2"])
def test_conv_by_warpgroups(image, filters, attributes, cluster, tmp_path):
    """Windows that TMA finds (im2col), of open numbers of images, for two blocks at once where they are clusters."""
    sizes = ", ".join("n" if i == 0 else str(size) for i, size in enumerate(image))
    sides = ", ".join("n" if i == 0 else str(filters[0]) if i == 1 else f"s{i}" for i in range(len(image)))
    text = f"m (half[{sizes}] x) => (half[{sides}] y) {{ c = Conv<{attributes}>(x, w, b)  y = Relu(c) }}"
    tiles = cluster and f"form = wgmma, tile_m = 64, tile_n = 16, tile_k = 64, part_m = 64, part_n = 16, stages = 3, {cluster}"
    has = ["wgmma.mma_async"] + ["multicast::cluster"] * bool(cluster)
    check(text, {"x": image}, {"w": filters, "b": filters[:1]}, folder=tmp_path, has=has, tiles=tiles)


def test_a_residual_network():
    text = """m (half[1,3,20,20] x) => (half[1,16] y, half[1,24,10,10] z) {
        c1 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, a, ab)  r1 = Relu(c1)
        p = MaxPool<kernel_shape = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1]>(r1)
        c2 = Conv<pads = [1, 1, 1, 1]>(p, b, bb)  r2 = Relu(c2)  s = Add(r2, p)  t = Relu(s)
        c3 = Conv(t, c)  g = Clip(c3)  z = Conv<pads = [1, 1, 1, 1], group = 24>(g, d)
        c4 = Conv(z, e)  u = Add(c4, t)  q = GlobalAveragePool(u)  y = Flatten(q) }"""
    shapes = {"a": (16, 3, 3, 3), "ab": (16,), "b": (16, 16, 3, 3), "bb": (16,), "c": (24, 16, 1, 1), "d": (24, 1, 3, 3), "e": (16, 24, 1, 1)}
    check(text, {"x": (1, 3, 20, 20)}, shapes, tolerance=8e-3)


def test_branches_and_slices():
    """Squeeze and excitation, concatenation, a split, pools of averages, a resize, and a mean over a large image."""
    text = """m (half[n,8,18,18] x) => (half[n,24,9,9] y, half[n,8,36,36] v, half[n,16] m) {
        c1 = Conv<pads = [1, 1, 1, 1]>(x, a)  r1 = Relu(c1)
        q = GlobalAveragePool(r1)  e1 = Conv(q, e)  e2 = Sigmoid(e1)  f = Mul(r1, e2)
        l, r = Split<axis = 1>(f)  k = Concat<axis = 1>(r, l, x)
        y = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(k)
        c2 = Conv(l, b)  v = Resize<mode = "nearest">(c2, , scales)
        g = ReduceMean<axes = [2, 3], keepdims = 0>(f)  m = Neg(g) }"""
    text = text.replace(") {", ") <float[4] scales = {1, 1, 2, 2}> {", 1)
    check(text, {"x": (2, 8, 18, 18)}, {"a": (16, 8, 3, 3), "e": (16, 16, 1, 1), "b": (8, 8, 1, 1)}, tolerance=8e-3)


def test_a_model_with_channels_last():
    text = """m (half[n,9,9,16] x) => (half[n,9,9,24] y) {
        t = Transpose<perm = [0, 3, 1, 2]>(x)  c = Conv<pads = [1, 1, 1, 1]>(t, w)  s = Sigmoid(c)  z = Mul(s, c)
        y = Transpose<perm = [0, 2, 3, 1]>(z) }"""
    check(text, {"x": (2, 9, 9, 16)}, {"w": (24, 16, 3, 3)})


def test_kernels_that_differ_in_numbers():
    """They are one, which takes these as arguments."""
    text = """m (half[1,16,9,9] x) => (half[1,16,9,9] y) <float low = {0}, float high = {0.5}, float higher = {1.5}> {
        l = CastLike(low, x)  h = CastLike(high, x)  g = CastLike(higher, x)
        c1 = Conv<pads = [1, 1, 1, 1]>(x, a, b)  r1 = Clip(c1, l, h)
        c2 = Conv<pads = [1, 1, 1, 1]>(r1, c, b)  y = Clip(c2, l, g) }"""
    check(text, {"x": (1, 16, 9, 9)}, {"a": (16, 16, 3, 3), "b": (16,), "c": (16, 16, 3, 3)})


def test_tokens_of_an_image():
    """Patches of an image as rows of a matrix, with another row before them, normalised and multiplied."""
    text = """m (half[2,3,16,24] x) => (half[2,7,20] y) <int64[3] shape = {2, 16, 6}> {
        c = Conv<strides = [8, 8]>(x, w, b)  r = Reshape(c, shape)  t = Transpose<perm = [0, 2, 1]>(r)
        k = Concat<axis = 1>(first, t)  n = LayerNormalization(k, scale, bias)  y = MatMul(n, v) }"""
    shapes = {"w": (16, 3, 8, 8), "b": (16,), "first": (2, 1, 16), "scale": (16,), "bias": (16,), "v": (16, 20)}
    check(text, {"x": (2, 3, 16, 24)}, shapes, tolerance=8e-3)
