"""The tool on a CUDA device that libsdx-fakecuda.so stands for: plans that are edited, profiles, benchmarks."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
m (float16[N,192] x, float[N,40] v, float[1,8,9,9] image) => (float16[N,72] y, float[N,24] z, float[1,16,7,7] c)
<float16[192,72] w, float[40,24] u, float[16,8,3,3] f> {
  h = MatMul(x, w)  y = Softmax(h)  z = MatMul(v, u)  d = Conv(image, f)  c = Relu(d)
}"""
MMA = "form = mma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 32, part_n = 32, stages = 2, split = 3"
FMA = "form = fma, tile_m = 32, tile_n = 64, tile_k = 8, part_m = 4, part_n = 8, stages = 4"


def tool(*arguments, fails=False):
    environment = {**os.environ, "SARDONYX_CUDA_DRIVER": str(BUILD / "lib" / "libsdx-fakecuda.so")}
    done = subprocess.run(
        [BUILD / "bin" / "sardonyx", *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert "is of no kernel" not in done.stderr, done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the model and values for its inputs."""
    folder = tmp_path_factory.mktemp("device")
    rng = np.random.default_rng(9)
    model = parser.parse_model(MODEL)
    del model.graph.initializer[:]
    for name, shape, kind in (("w", (192, 72), np.float16), ("u", (40, 24), np.float32), ("f", (16, 8, 3, 3), np.float32)):
        model.graph.initializer.append(numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(kind), name))
    onnx.save(model, folder / "model.onnx")
    shapes = {"x": (5, 192), "v": (5, 40), "image": (1, 8, 9, 9)}
    feeds = {name: rng.standard_normal(shape).astype(np.float16 if name == "x" else np.float32) for name, shape in shapes.items()}
    np.savez(folder / "feeds.npz", **feeds)
    return folder


def run(files, *arguments):
    """The results of a run, by name."""
    target = files / "results"
    tool("run", files / "model.onnx", "-i", files / "feeds.npz", "-o", target, "-q", "--no-cache", *arguments)
    return {file.stem: np.load(file) for file in target.iterdir()}


def edit(text, plans):
    """The plans with those of the given kernels' first nodes in place of what was chosen."""
    lines = []
    for line in text.splitlines():
        for node, plan in plans.items():
            if f"'{node}'" in line:
                line = re.sub(r"#nv\.\S+<.*>", plan, line)
        lines.append(line)
    return "\n".join(lines)


def test_plans_are_pinned(files):
    expected = run(files)
    text = tool("plan", files / "model.onnx", "--device", "cuda")
    assert len(re.findall(r"^[0-9a-f]{16} #nv\.matmul_plan<form = (wgmma|fma), .*> # ", text, re.MULTILINE)) == 3, text
    edited = edit(text, {"h": f"#nv.matmul_plan<{MMA}>", "z": f"#nv.matmul_plan<{FMA}>", "d": f"#nv.matmul_plan<{FMA}>"})
    assert edited.count(FMA) == 2 and edited.count(MMA) == 1
    for name, plan in (("edited", edited), ("loops", "* #nv.loops")):
        file = files / f"{name}.plan"
        file.write_text(plan)
        results = run(files, "--device", "cuda", "--plan", file)
        for key, value in results.items():
            np.testing.assert_allclose(value, expected[key], rtol=2e-3, atol=2e-3, err_msg=f"{name} {key}")
    assert "nv.plan = #nv.loops" in tool(
        "compile", files / "model.onnx", "--device", "sm_80", "--plan", files / "loops.plan", "--to", "kernels"
    )


def test_a_plan_that_does_not_fit(files):
    text = tool("plan", files / "model.onnx", "--device", "cuda")
    (files / "wrong.plan").write_text(edit(text, {"z": f"#nv.matmul_plan<{MMA}>"}))
    error = tool("run", files / "model.onnx", "-i", files / "feeds.npz", "--device", "cuda", "--plan", files / "wrong.plan", fails=True)
    assert "does not fit: what it multiplies goes by fma" in error and "'z' (MatMul)" in error, error


def test_profile(files):
    trace, page = files / "trace.json", files / "page.html"
    text = tool(
        "profile", files / "model.onnx", "-i", files / "feeds.npz", "--device", "cuda", "--seconds", "0.1", "--trace", trace, "--html", page
    )
    assert re.search(r"^device     .* \(sm_90a, 132 multiprocessors\)$", text, re.MULTILINE), text
    assert re.search(r"^peaks      \d+ GFLOP/s, \d+ of 16 bits, \d+\.\d GB/s from memory$", text, re.MULTILINE), text
    steps, launches = text.split("occup.")
    for node in ("'h' (MatMul)", "'y' (Softmax)", "'z' (MatMul)", "'d' (Conv)"):
        assert node in steps
    assert re.search(r" 1 +\d+ +256 +32 +\d+ +\d+%  k\d+_matmul", launches), launches
    assert "_conv" in launches
    events = json.loads(trace.read_text())
    kernels = [event for event in events if event["cat"] == "Kernel"]
    assert kernels and all(0 < event["args"]["occupancy"] <= 1 and event["args"]["blocks"] for event in kernels)
    assert "<h2>Launches</h2>" in page.read_text()


def test_bench_counts_what_the_device_does(files):
    text = tool("bench", files / "model.onnx", "-i", files / "feeds.npz", "--device", "cuda", "--seconds", "0.1")
    kernels, pieces, waits = re.search(r"^device +(\d+) kernels, 6 copies of .*, given in (\d+) pieces, (\d+) waits", text, re.MULTILINE).groups()
    # Runs that repeat are one graph.
    assert int(kernels) >= 4 and pieces == "1" and waits == "1", text
    assert re.search(r"^host +\S+ us of a run", text, re.MULTILINE) and re.search(r"^on device +\S+ \w?B$", text, re.MULTILINE), text
