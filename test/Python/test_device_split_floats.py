"""Products of f32 as sums of two bf16 (`precision = "bf16x3"`) on CUDA devices that libsdx-fakecuda.so stands for, against numpy in
f64."""

import itertools
import re
import subprocess

import numpy as np
import onnx
import pytest
from device_models import BUILD, run_on_device
from onnx import numpy_helper, parser

RANDOM = np.random.default_rng(41)
WARPS = "#nv.matmul_plan<form = mma, tile_m = {}, tile_n = {}, tile_k = 32, part_m = {}, part_n = {}, stages = 3, split = {}>"
WARPGROUPS = "#nv.matmul_plan<form = wgmma, tile_m = {}, tile_n = {}, tile_k = 32, part_m = 64, part_n = {}, stages = {}, split = {}>"
PRODUCT = '<ir_version: 10, opset_import: ["" : 21]> g (float[m, {k}] x) => (float[m, {n}] y) <float[{shape}] w> {{ y = Gemm <transB = {across}> (x, w) }}'


def product(w, transposed=False):
    """A model of a product by `w`, [k, n], which it may have as [n, k]."""
    k, n = w.shape
    kept = w.T.copy() if transposed else w
    model = parser.parse_model(PRODUCT.format(k=k, n=n, shape="{}, {}".format(*kept.shape), across=int(transposed)))
    model.graph.initializer.append(numpy_helper.from_array(kept, "w"))
    return model


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def run_tool(command, model, folder, *options):
    onnx.save(model, folder / "model.onnx")
    tool = [BUILD / "bin" / "sardonyx", command, folder / "model.onnx", "--precision", "bf16x3", *options]
    return subprocess.run(tool, check=True, capture_output=True, text=True).stdout


def choose(model, given, folder):
    """The file of a plan by which the only product goes by `given`."""
    text, count = re.subn(r"#nv\.matmul_plan<[^>]*>", given, run_tool("plan", model, folder, "--device", "sm_90a"))
    assert count == 1, text
    (folder / "plan").write_text(text)
    return str(folder / "plan")


def check(y, x, w):
    """Each product has an error of at most 2^-15, and most of them a quarter of it; rounded to tf32 they had 2^-12."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    error, exact = y - x @ w, x @ w
    assert (np.abs(error) <= 2**-15 * (np.abs(x) @ np.abs(w))).all()
    assert 2**-19 < np.linalg.norm(error) / np.linalg.norm(exact) < 2**-16


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "given",
    [WARPS.format(64, 64, 32, 32, 1), WARPS.format(16, 64, 16, 16, 3), WARPS.format(128, 64, 64, 32, 2), WARPGROUPS.format(128, 256, 256, 4, 1),
     WARPGROUPS.format(64, 40, 40, 4, 2), WARPGROUPS.format(64, 64, 64, 2, "1, cluster_m = 2"), WARPGROUPS.format(64, 40, 40, 3, "2, cluster_n = 2")],
    ids=["64x64", "16x64", "128x64", "groups128x256", "groups64x40", "below64x64", "beside64x40"],
)  # fmt: skip
def test_tiles(transposed, given, tmp_path):
    w = normal(264, 200)
    model = product(w, transposed)
    plan = choose(model, given, tmp_path)
    inputs = [normal(rows, 264) for rows in (130, 17)]
    results = run_on_device(model, [{"x": x} for x in inputs], precision="bf16x3", plan=plan)
    for x, (y,) in zip(inputs, results, strict=True):
        check(y, x, w)


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("k, n", [(75, 33), (256, 128)])
def test_what_is_chosen(sm, k, n, monkeypatch, tmp_path):
    """Sizes of which no rows are whole 16 bytes are multiplied by warps."""
    monkeypatch.setenv("SARDONYX_FAKECUDA_SM", str(sm))
    w, x = normal(k, n), normal(70, k)
    ptx = run_tool("compile", product(w), tmp_path, "--to", "ptx", "--device", "sm_90a" if sm == 90 else "sm_80")
    assert "tf32" not in ptx and ("wgmma" if sm == 90 and k == 256 else "mma.sync") in ptx and "bf16" in ptx
    ((y,),) = run_on_device(product(w), [{"x": x}], precision="bf16x3")
    check(y, x, w)


def test_two_computed_sides():
    """Both sides are results of the model."""
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[3, m, 64] x, float[3, 64, n] v) => (float[3, m, n] y) { a = Abs (x) y = MatMul (a, v) }'
    )
    x, v = normal(3, 40, 64), normal(3, 64, 50)
    ((y,),) = run_on_device(model, [{"x": x, "v": v}], precision="bf16x3")
    check(y, np.abs(x), v)


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("channels, filters, group", [(32, 48, 1), (3, 16, 1), (16, 32, 2)])
def test_convolutions(sm, channels, filters, group, monkeypatch):
    monkeypatch.setenv("SARDONYX_FAKECUDA_SM", str(sm))
    weights = normal(filters, channels // group, 3, 3)
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[2, {channels}, 11, 9] x) => (float[2, {filters}, 6, 5] y) '
        f"<float[{filters}, {channels // group}, 3, 3] w> {{ y = Conv <group = {group}, pads = [1, 1, 1, 1], strides = [2, 2]> (x, w) }}"
    )
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    x = normal(2, channels, 11, 9)
    ((y,),) = run_on_device(model, [{"x": x}], precision="bf16x3")
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    for g in range(group):
        part = windows[:, g * channels // group : (g + 1) * channels // group]
        rows = part.transpose(0, 2, 3, 1, 4, 5).reshape(2 * 6 * 5, -1)
        ofGroup = slice(g * filters // group, (g + 1) * filters // group)
        check(y[:, ofGroup].transpose(0, 2, 3, 1).reshape(60, -1), rows, weights[ofGroup].reshape(filters // group, -1).T)


@pytest.mark.parametrize("given", [WARPS.format(64, 64, 32, 32, 1), WARPGROUPS.format(64, 64, 64, 2, 1)], ids=["warps", "warpgroups"])
def test_special_numbers(given, tmp_path):
    """Of each pair of numbers, which are neighbours of zeros: infinities by numbers with and without a low part of either sign, and
    what rounds to an infinity of bf16."""
    largest, inf = np.finfo(np.float32).max, np.inf
    numbers = np.float32([0, 1, -1, 2.001, -1.999, 300.7, -70001.3, 1e30, 1e-30, 3.39e38, largest, -largest, inf, -inf, np.nan])
    x, w = np.zeros((len(numbers), 32), np.float32), np.zeros((32, 64), np.float32)
    x[:, 5], w[5, : len(numbers)] = numbers, numbers
    model = product(w)
    ((y,),) = run_on_device(model, [{"x": x}], precision="bf16x3", plan=choose(model, given, tmp_path))
    # Zeros beside infinities are NaN: of others only number 5 of a row is multiplied by one of a column.
    for (i, a), (j, b) in itertools.product(enumerate(numbers), repeat=2):
        with np.errstate(all="ignore"):
            exact = np.float64(a) * np.float64(b)
            expected = np.float32(exact)
        if np.isnan(expected):
            assert np.isnan(y[i, j]), (a, b, y[i, j])
        elif np.isinf(expected) and np.isfinite([a, b]).all():
            # Parts of it may be infinities of both signs.
            assert y[i, j] == expected or np.isnan(y[i, j]), (a, b, y[i, j])
        elif np.isinf(expected):
            assert y[i, j] == expected, (a, b, y[i, j])
        else:
            bound = 2**-15 if max(abs(a), abs(b)) < 3.39e38 else 2**-7
            assert abs(y[i, j] - exact) <= bound * abs(exact) + 2.0**-149, (a, b, y[i, j])


@pytest.mark.parametrize("given", [WARPS.format(64, 64, 32, 32, 1), WARPGROUPS.format(64, 64, 64, 2, 1)], ids=["warps", "warpgroups"])
def test_small_numbers(given, tmp_path):
    """From 2^-117 on a number has 16 bits, below that it is a multiple of 2^-133."""
    x = (RANDOM.uniform(1, 2, (64, 32)) * 2.0 ** RANDOM.integers(-149, -110, (64, 32))).astype(np.float32)
    w = np.eye(32, 64, dtype=np.float32)
    model = product(w)
    ((y,),) = run_on_device(model, [{"x": x}], precision="bf16x3", plan=choose(model, given, tmp_path))
    assert (np.abs(y[:, :32] - x.astype(np.float64)) <= np.maximum(2.0**-134, 2.0**-16 * x)).all() and not y[:, 32:].any()


def test_unknown_precision(tmp_path):
    onnx.save(product(normal(8, 8)), tmp_path / "model.onnx")
    tool = [BUILD / "bin" / "sardonyx", "compile", tmp_path / "model.onnx", "--device", "sm_80", "--precision", "bf16x4"]
    done = subprocess.run(tool, capture_output=True, text=True)
    assert done.returncode != 0 and "bf16x4" in done.stderr and "bf16x3" in done.stderr
