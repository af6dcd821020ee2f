"""Products of f32 by multiply-adds on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import re
import subprocess

import numpy as np
import onnx
import pytest
from device_models import BUILD, run_on_device
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(23)


def product(dtype, m, k, n, transposed):
    """A model of a product and a bias, with its weights."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    w = RANDOM.standard_normal((n, k) if transposed else (k, n)).astype(dtype)
    b = RANDOM.standard_normal(n).astype(dtype)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(transposed))],
        "g",
        [helper.make_tensor_value_info("x", kind, [m, k])],
        [helper.make_tensor_value_info("y", kind, [m, n])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), w.T if transposed else w, b


def plan_of(model, folder, sm):
    onnx.save(model, folder / "model.onnx")
    return subprocess.run([BUILD / "bin" / "sardonyx", "plan", folder / "model.onnx", "--device", sm], check=True, capture_output=True, text=True).stdout


# Rows that are copied 16 bytes at a time, and others, along K or across it.
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [256, 75])
@pytest.mark.parametrize(
    "tile", [(32, 64, 8, 4, 4, 3), (64, 64, 8, 4, 4, 1), (16, 32, 4, 4, 2, 1), (128, 64, 8, 8, 3, 2)], ids=lambda tile: "x".join(map(str, tile[:2]))
)
def test_tiles(transposed, k, tile, tmp_path):
    m, n, dtype = 70, 100, np.float32
    model, w, b = product(dtype, m, k, n, transposed)
    tile_m, tile_n, part_m, part_n, stages, split = tile
    given = f"#nv.matmul_plan<form = fma, tile_m = {tile_m}, tile_n = {tile_n}, tile_k = 16, part_m = {part_m}, part_n = {part_n}, stages = {stages}, split = {split}>"
    text, count = re.subn(r"#nv\.matmul_plan<[^>]*>", given, plan_of(model, tmp_path, "sm_90a"))
    assert count == 1, text
    (tmp_path / "plan").write_text(text)
    x = RANDOM.standard_normal((m, k)).astype(dtype)
    ((y,),) = run_on_device(model, [{"x": x}], plan=str(tmp_path / "plan"))
    unit = np.finfo(dtype).eps
    expected = x.astype(np.float64) @ w.astype(np.float64) + b
    bound = unit * 4 * (np.abs(x).astype(np.float64) @ np.abs(w) + np.abs(b))
    assert y.dtype == dtype and (np.abs(y - expected) <= bound).all()


@pytest.mark.parametrize(
    "m, k, n, tile",
    [
        (128, 768, 768, "tile_m = 32, tile_n = 64, tile_k = 16, part_m = 8, part_n = 4, stages = 4, split = 5"),
        (16, 1024, 4096, "tile_m = 32, tile_n = 64, tile_k = 16, part_m = 8, part_n = 4, stages = 4, split = 4"),
        (128, 3072, 768, "tile_m = 32, tile_n = 64, tile_k = 16, part_m = 8, part_n = 4, stages = 4, split = 5"),
        (128, 1024, 32768, "tile_m = 128, tile_n = 128"),
        (4096, 1024, 1024, "tile_m = 128, tile_n = 128"),
        (8, 1024, 256, "tile_m = 32, tile_n = 32"),
    ],
)
def test_what_is_chosen(m, k, n, tile, tmp_path):
    """Tiles of few rows, which blocks share, where there are few of them."""
    assert tile in plan_of(product(np.float32, m, k, n, False)[0], tmp_path, "sm_90a")
