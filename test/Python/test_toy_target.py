"""A target from outside of the tree (test/Targets/Toy): models compile to C and run, without lib/Targets/CPU."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
TOY = BUILD / "bin" / "sardonyx-toy"
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"

pytestmark = pytest.mark.skipif(not TOY.exists(), reason="the build has no tests")


def toy(*arguments, fails=False):
    done = subprocess.run([TOY, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def run_and_compare(model, feeds, folder, tolerance=1e-4, options=("--no-cache",), expected=None):
    """Runs `model` (a file) by the toy and, where no results are `expected`, by onnxruntime."""
    np.savez(folder / "feeds.npz", **feeds)
    toy("run", model, "-i", folder / "feeds.npz", "-o", folder / "out", "-q", *options)
    if expected is None:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        expected = dict(zip(names, session.run(names, feeds)))
    for name, right in expected.items():
        file = folder / "out" / (name.replace("/", "_") + ".npy")
        np.testing.assert_allclose(np.load(file), right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v2"])
def test_light_models(name, tmp_path):
    model = LIGHT / f"light_{name}.onnx"
    loaded = onnx.load(model)
    given = {value.name for value in loaded.graph.initializer}
    rng = np.random.default_rng(len(name))
    feeds = {
        value.name: rng.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim], dtype=np.float32)
        for value in loaded.graph.input
        if value.name not in given
    }
    run_and_compare(model, feeds, tmp_path)


def save(nodes, inputs, outputs, tmp_path, **initializers):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    file = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), file)
    return file


def test_products_convolutions_and_rows(tmp_path):
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((3, 12, 20), dtype=np.float32),
        "f": rng.standard_normal((6, 2, 3, 3), dtype=np.float32),
        "s": rng.standard_normal(20, dtype=np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("LayerNormalization", ["m", "s"], ["n"], axis=-1),
        helper.make_node("Softmax", ["n"], ["y"], axis=-1),
        helper.make_node("Conv", ["c", "f"], ["k"], group=2, strides=[2, 1], pads=[1, 0, 1, 2], dilations=[1, 2]),
        helper.make_node("Relu", ["k"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["z"], kernel_shape=[2, 2]),
    ]
    f32 = TensorProto.FLOAT
    file = save(nodes, [("x", f32, ["b", "n", 12]), ("c", f32, ["m", 4, 9, 11])], [("y", f32), ("z", f32)], tmp_path, **weights)
    feeds = {
        "x": rng.standard_normal((3, 7, 12), dtype=np.float32),
        "c": rng.standard_normal((2, 4, 9, 11), dtype=np.float32),
    }
    run_and_compare(file, feeds, tmp_path)


def test_integers_wrap_and_bytes_multiply(tmp_path):
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b"], ["y"]),
        helper.make_node("Mul", ["y", "big"], ["z"]),
        helper.make_node("Mod", ["y", "seven"], ["r"]),
    ]
    i32 = TensorProto.INT32
    file = save(
        nodes,
        [("a", TensorProto.UINT8, ["m", 8]), ("b", TensorProto.INT8, [8, 5])],
        [("y", i32), ("z", i32), ("r", i32)],
        tmp_path,
        big=np.array(1 << 30, np.int32),
        seven=np.array(7, np.int32),
    )
    rng = np.random.default_rng(1)
    feeds = {"a": rng.integers(0, 256, (3, 8), np.uint8), "b": rng.integers(-128, 128, (8, 5), np.int8)}
    # onnxruntime's sums of bytes saturate at 16 bits on processors without VNNI.
    y = feeds["a"].astype(np.int32) @ feeds["b"].astype(np.int32)
    run_and_compare(file, feeds, tmp_path, expected={"y": y, "z": y * np.int32(1 << 30), "r": y % 7})


def test_images_go_through_the_cache(tmp_path):
    file = save([helper.make_node("Exp", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1)], tmp_path)
    feeds = {"x": np.linspace(-3, 3, 11, dtype=np.float32)}
    for _ in range(2):
        run_and_compare(file, feeds, tmp_path, options=("--cache-dir", tmp_path / "cache"))
    assert "cache" in toy("run", file, "-d", "n=3", "-v", "-q", "--cache-dir", tmp_path / "cache")


def test_the_module_names_the_machine(tmp_path):
    file = save([helper.make_node("Exp", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1)], tmp_path)
    text = toy("compile", file, "--to", "kernels", "-o", "-")
    assert 'sdx.target = #toy.machine' in text and "cpu." not in text


def test_what_has_no_c_is_refused_by_name(tmp_path):
    nodes = [helper.make_node("Asin", ["x"], ["y"], name="n")]
    file = save(nodes, [("x", 1, ["n"])], [("y", 1)], tmp_path)
    assert "node 'n' (Asin)" in toy("run", file, "-d", "n=3", "--no-cache", fails=True)


def test_builds_ahead_of_time_are_refused(tmp_path):
    file = save([helper.make_node("Exp", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1)], tmp_path)
    error = toy("build", file, "-o", tmp_path / "model.so", fails=True)
    assert "cannot be built ahead of time for the target 'toy'" in error


def test_the_trees_own_target_is_not_linked():
    of_cpu = b"cpu-lower-contractions"
    assert of_cpu in (BUILD / "bin" / "sardonyx").read_bytes() or of_cpu in (BUILD / "bin" / "onnx-opt").read_bytes()
    assert of_cpu not in TOY.read_bytes()
