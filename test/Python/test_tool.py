"""The sardonyx driver."""

import json
import subprocess

import numpy as np
import onnx
import pytest

GRAPH = "m (float[N, 3] x, int64[N] i) => (float[N, 3] y, int64[N] j) { y = Relu(x) j = Add(i, i) }"


@pytest.fixture
def path(model, tmp_path):
    onnx.save(model(GRAPH), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


def call(tool, *arguments, status=0):
    result = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=300)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_help(tool):
    assert "run" in call(tool, "--help") and "--input" in call(tool, "run", "--help")
    assert "Usage" in call(tool, status=106)


def test_run_with_arrays(tool, path, tmp_path):
    x, i = np.array([[-1, 0, 2], [3, -4, 5]], np.float32), np.array([1, 2])
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    np.save(tmp_path / "i.npy", i)
    np.savez(tmp_path / "stored.npz", x=x, i=i)
    np.savez_compressed(tmp_path / "deflated.npz", x=x, i=i)
    for inputs in (["x=" + str(tmp_path / "x.npy"), "i=" + str(tmp_path / "i.npy")],
                   [str(tmp_path / "stored.npz")], [str(tmp_path / "deflated.npz")]):  # fmt: skip
        out = tmp_path / "out"
        arguments = [part for value in inputs for part in ("--input", value)]
        text = call(tool, "run", path, *arguments, "--output-dir", str(out))
        assert "y: float [2, 3]" in text
        np.testing.assert_array_equal(np.load(out / "y.npy"), np.maximum(x, 0))
        np.testing.assert_array_equal(np.load(out / "j.npy"), i * 2)


def test_run_with_random_inputs(tool, path):
    text = call(tool, "run", path, "--dim", "N=7", "--timings", "--threads", "1")
    assert "y: float [7, 3]" in text
    assert "import" in text and "peak memory" in text
    assert "from the cache" in call(tool, "run", path, "--verbose", "--threads", "1")
    assert "from the cache" not in call(tool, "run", path, "--verbose", "--no-cache")


def test_bench(tool, path):
    text = call(tool, "bench", path, "--seconds", "0.05", "--dim", "N=100")
    assert "p50" in text and "memory" in text and "input      x float [100, 3]" in text


def test_profile(tool, path, tmp_path):
    page, trace = tmp_path / "p.html", tmp_path / "p.json"
    text = call(
        tool, "profile", path, "--seconds", "0.05", "--dim", "N=100", "--html", str(page), "--trace", str(trace)
    )
    assert "input      x float [100, 3]" in text and "GFLOP/s" in text and "(Relu)" in text
    assert "(Relu)" in page.read_text() and "<script>" in page.read_text()
    events = json.loads(trace.read_text())
    assert {event["cat"] for event in events} == {"Session", "Node"}
    relu = next(event for event in events if any("Relu" in node for node in event["args"].get("nodes", [])))
    assert relu["args"]["flops"] == 300 and relu["args"]["bytes"] == 2400
    assert "more (--top)" in call(tool, "profile", path, "--seconds", "0", "--top", "1")
    call(tool, "profile", path, "--by", "nothing", status=105)
    assert "cannot write" in call(tool, "profile", path, "--seconds", "0", "--html", str(tmp_path / "no" / "p"), status=1)


def test_compile(tool, path, tmp_path):
    assert "onnx.Relu" in call(tool, "compile", path, "--to", "import")
    call(tool, "compile", path, "--to", "linalg", "-o", str(tmp_path / "m.mlir"))
    assert "linalg" in (tmp_path / "m.mlir").read_text()
    assert "the phases are" in call(tool, "compile", path, "--to", "nowhere", status=1)


def test_inspect(tool, path, model, tmp_path):
    text = call(tool, "inspect", path)
    assert "Relu" in text and "[N, 3]" in text and "all of it" in text
    onnx.save(model("m (complex64[N] s, float[2] x) => (int64[P, Q] y) { y = NonZero(s) }"), tmp_path / "s.onnx")
    assert "computes on complex numbers" in call(tool, "inspect", str(tmp_path / "s.onnx"), status=1)


def test_errors(tool, path, tmp_path):
    assert "cannot read" in call(tool, "run", str(tmp_path / "none.onnx"), status=1)
    assert "NAME=SIZE" in call(tool, "run", path, "--dim", "N", status=1)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    assert "cut off" in call(tool, "run", path, "--input", f"x={tmp_path / 'bad.npy'}", status=1)
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    assert "no zip archive" in call(tool, "run", path, "--input", str(tmp_path / "bad.npz"), status=1)
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    assert "must be 3, got 4" in call(tool, "run", path, "--input", f"x={tmp_path / 'x.npy'}", status=1)
