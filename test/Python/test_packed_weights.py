"""Packed weights lie in the cache: the next load packs nothing, and sessions and processes share them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx

WEIGHTS = np.random.default_rng(0).standard_normal((1024, 768), dtype=np.float32)
ROWS = np.random.default_rng(1).standard_normal((3, 1024), dtype=np.float32)


@pytest.fixture
def model(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", 1, ["rows", 1024])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.fixture
def options(tmp_path):
    made = sdx.SessionOptions()
    made.cache_dir = tmp_path / "cache"
    made.intra_op_num_threads = 1
    return made


def check(session):
    want = ROWS.astype(np.float64) @ WEIGHTS
    np.testing.assert_allclose(session.run(None, {"x": ROWS})[0], want, rtol=0, atol=1e-3)
    return session


def file_of(options):
    (file,) = Path(options.cache_dir).glob("*.weights")
    return file


def resident(kind):
    """Mebibytes of this process: Anon, or File."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"Rss{kind}:\s+(\d+)", status)[1]) / 1024


def mappings(file):
    return Path("/proc/self/maps").read_text().count(str(file))


def test_sessions_share_one_mapping(model, options):
    first = check(sdx.InferenceSession(model, options))
    file = file_of(options)
    assert file.stat().st_size >= WEIGHTS.nbytes
    assert mappings(file) == 1
    written = file.stat().st_mtime_ns
    before = resident("Anon"), resident("File")
    others = [check(sdx.InferenceSession(model, options)) for _ in range(8)]
    assert all(session.from_cache for session in others)
    assert mappings(file) == 1
    assert file.stat().st_mtime_ns == written
    # Eight copies would be 24 MiB.
    assert resident("Anon") + resident("File") - sum(before) < 12
    del first, others
    assert mappings(file) == 0


def test_the_memory_limit_counts_them(model, options):
    check(sdx.InferenceSession(model, options))
    options.memory_limit = WEIGHTS.nbytes // 2
    with pytest.raises(sdx.Fail, match="out of memory.*memory limit"):
        sdx.InferenceSession(model, options)
    options.memory_limit = 3 * WEIGHTS.nbytes
    check(sdx.InferenceSession(model, options))


@pytest.mark.parametrize("damage", ["removed", "cut", "changed", "empty"])
def test_without_a_sound_file_they_are_packed_again(model, options, damage):
    check(sdx.InferenceSession(model, options))
    file = file_of(options)
    whole = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        middle = len(whole) // 2
        changed = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
        file.write_bytes({"cut": whole[:-100], "changed": changed, "empty": b""}[damage])
    assert check(sdx.InferenceSession(model, options)).from_cache
    assert file.read_bytes() == whole


FULL_DISK = """
import resource, sys
import numpy as np, sardonyx as sdx
model, cache, rows, result, most = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
options = sdx.SessionOptions()
options.cache_dir = cache
y = sdx.InferenceSession(model, options).run(None, {"x": np.load(rows)})[0]
np.save(result, y)
"""


def test_a_full_disk(tmp_path):
    # Of the first weights nothing is left in memory when the disk has no room for the second.
    nodes = [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info("x", 1, [3, 1024])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(WEIGHTS, "v"), numpy_helper.from_array(WEIGHTS.T.copy(), "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(made, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", ROWS)
    names = [tmp_path / name for name in ("m.onnx", "cache", "x.npy", "y.npy")]
    most = WEIGHTS.nbytes  # each becomes two thirds of it
    subprocess.run([sys.executable, "-c", FULL_DISK, *map(str, names), str(most)], check=True)
    want = ROWS.astype(np.float64) @ WEIGHTS @ WEIGHTS.T
    error = np.load(tmp_path / "y.npy") - want
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(want)
    assert not list((tmp_path / "cache").glob("*.weights*"))


def test_external_data_that_changes(model, options):
    apart = onnx.load(model)
    onnx.save(apart, model, save_as_external_data=True, location="data", size_threshold=0)
    check(sdx.InferenceSession(model, options))
    data = model.parent / "data"
    data.write_bytes((2 * WEIGHTS).tobytes())
    np.testing.assert_allclose(
        sdx.InferenceSession(model, options).run(None, {"x": ROWS})[0],
        2 * (ROWS.astype(np.float64) @ WEIGHTS),
        rtol=0,
        atol=2e-3,
    )


def test_without_a_cache(model, options):
    options.cache = False
    check(sdx.InferenceSession(model, options))
    assert not Path(options.cache_dir).exists()
