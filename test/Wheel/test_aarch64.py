"""The runtime's wheel for aarch64, used by Debian's Python for it under qemu-user.

Python and numpy for aarch64 come from Debian and PyPI, into a temporary folder; nothing is installed.
"""

import os
import shutil
import subprocess
from pathlib import Path

import debian
import numpy as np
import pytest
from onnx import helper, numpy_helper, save

BUILD = Path(os.environ.get("SARDONYX_BUILD", "nowhere"))
WHEELS = Path(os.environ.get("SARDONYX_WHEELS", "nowhere"))
pytestmark = pytest.mark.skipif("SARDONYX_WHEELS" not in os.environ, reason="made by `utils/dev wheel`")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Runs a program in Python with the wheel and numpy."""
    if not shutil.which("qemu-aarch64"):
        pytest.skip("qemu-aarch64 is not here")
    if not list(WHEELS.glob("*aarch64.whl")):
        pytest.skip("no wheels were made for aarch64: g++-aarch64-linux-gnu was not here")
    root = debian.python(tmp_path_factory.mktemp("aarch64"), "bookworm", "arm64", "3.11")
    site = tmp_path_factory.mktemp("site")
    debian.install(site, "aarch64", "3.11", WHEELS, "sardonyx-runtime")

    def run(program, folder):
        command = ["qemu-aarch64", "-L", root, root / "usr/bin/python3.11", "-"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(site)}
        done = subprocess.run(command, cwd=folder, env=environment, input=program, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_runs_a_model(python, tmp_path):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 10)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    infos = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", ["n", 64]), ("y", ["n", 10]))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(weights, "w")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "model.onnx")
    x = rng.standard_normal((5, 64)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, expected=np.maximum(x.astype(np.float64) @ weights, 0))
    build = [BUILD / "bin" / "sardonyx", "build", "-q", "model.onnx", "-o", "model.so", "--target", "aarch64-linux-gnu"]
    subprocess.run(build, cwd=tmp_path, check=True)
    program = """
import platform
import numpy as np
import sardonyx_runtime
data = np.load("data.npz")
session = sardonyx_runtime.load("model.so")
(y,) = session.run(None, {"x": data["x"]})
assert abs(y - data["expected"]).max() < 1e-4
try:
    session.run(None, {"x": data["x"][:, :3]})
except sardonyx_runtime.InvalidArgument as error:
    print(platform.machine(), error)
"""
    said = python(program, tmp_path)
    assert said.startswith("aarch64 ") and "'x'" in said
