"""Plans of kernels for a CUDA device that are found by timing, on the one that libsdx-fakecuda.so stands for."""

import os
import re
import subprocess

import numpy as np
import onnx
import pytest
from device_models import BUILD
from onnx import parser

MODEL = """<ir_version: 10, opset_import: ["" : 23]>
g (float16[m, 64] x, float16[1, 2, 40, 64] q, float16[1, 2, 48, 64] k) => (float16[m, 96] y, float16[1, 2, 40, 64] a, float[1, 72] z)
<float16[64, 96] w, float[16, 72] u, float[1, 16] f> {
    p = MatMul(x, w)
    y = Relu(p)
    a = Attention(q, k, k)
    z = MatMul(f, u)
}"""


@pytest.fixture
def files(tmp_path):
    model = parser.parse_model(MODEL)
    random = np.random.default_rng(3)
    for name, shape, dtype in (("w", (64, 96), np.float16), ("u", (16, 72), np.float32), ("f", (1, 16), np.float32)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(random.standard_normal(shape).astype(dtype), name))
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path


def tool(folder, *words, code=0):
    driver = str(BUILD / "lib" / "libsdx-fakecuda.so")
    command = [BUILD / "bin" / "sardonyx", words[0], folder / "model.onnx", *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SARDONYX_CUDA_DRIVER": driver})
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def kernels_of(text):
    """{fingerprint: all its plans} of what `plan --others` writes."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#   or "):
            found[last].append(line[len("#   or ") :])
        elif not line.startswith("#"):
            last, plan = re.match(r"(\w{16}) (#nv\.\S+<.*?>) # ", line).groups()
            found[last] = [plan]
    return found


def test_what_is_timed(files):
    """All forms, all sizes of tiles, blocks that share them, and clusters along a side of several tiles."""
    plans = [plan for kernel in kernels_of(tool(files, "plan", "--device", "sm_90a", "--others")).values() for plan in kernel]
    for part in ("matmul_plan<form = wgmma, tile_m = 128, tile_n = 128", "matmul_plan<form = wgmma, tile_m = 64, tile_n = 64", "matmul_plan<form = mma, tile_m = 16",
                 "attention_plan<form = wgmma, queries = 128, keys = 128>", "attention_plan<form = wgmma, queries = 64, keys = 64>",
                 "attention_plan<form = mma, queries = 64, keys = 64>"):  # fmt: skip
        assert any(part in plan for plan in plans), part
    assert len(set(plans)) > 30
    assert any("cluster_m = 2" in plan for plan in plans) and not any("cluster_n = 2" in plan for plan in plans)
    older = tool(files, "plan", "--device", "sm_80", "--others")
    assert "wgmma" not in older and "form = mma, queries = 16" in older


def test_products_of_f32_and_shared_keys(files):
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 23]> g (float[32, 2048] x, float[2048, 128] w, float16[1, 1, 64, 64] q, float16[1, 1, 4096, 64] k) '
        "=> (float[32, 128] y, float16[1, 1, 64, 64] a) { y = MatMul(x, w) a = Attention(q, k, k) }"
    )
    onnx.save(model, files / "model.onnx")
    plans = [plan for kernel in kernels_of(tool(files, "plan", "--device", "sm_90a", "--others")).values() for plan in kernel]
    for part in ("form = fma, tile_m = 32, tile_n = 64, tile_k = 16, part_m = 8, part_n = 4", "form = fma, tile_m = 128", "split = 16",
                 "form = wgmma, queries = 64, keys = 128, split = 8"):  # fmt: skip
        assert any(part in plan for plan in plans), part


def test_the_fastest_plans(files):
    """Each kernel gets one of its plans, and a model that goes by them gives what it gave before."""
    others = kernels_of(tool(files, "plan", "--device", "cuda", "--others"))
    text = tool(files, "plan", "--device", "cuda", "--tune", "--seconds", "0", "--warmup", "0", "--dim", "m=20")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(others) >= 3
    changed = 0
    for line in lines:
        fingerprint, plan = re.match(r"(\w{16}) (#nv\.\S+<.*?>) # ", line).groups()
        assert plan in others[fingerprint] and re.search(r", [\d.]+ (us|ms|s)( instead of [\d.]+ (us|ms|s))?$", line)
        changed += plan != others[fingerprint][0]
        assert (plan != others[fingerprint][0]) == (" instead of " in line)
    # The interpreter's time is that of the instructions: some tile that is not the table's has fewer of them.
    assert changed
    (files / "model.plan").write_text(text)
    results = []
    for name, options in (("plain", ()), ("tuned", ("--plan", files / "model.plan"))):
        (files / name).mkdir()
        tool(files, "run", "--device", "cuda", "--dim", "m=20", "-q", "-o", files / name, *options)
        results.append([np.load(files / name / f"{output}.npy").astype(np.float32) for output in ("y", "a", "z")])
    for plain, tuned in zip(*results, strict=True):
        np.testing.assert_allclose(plain, tuned, rtol=2e-3, atol=2e-3)


def test_no_device(files):
    assert "no kernel of the model has another plan to time" in tool(files, "plan", "--tune", code=1)
