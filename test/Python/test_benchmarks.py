"""The benchmarks run, and compare what they say they do."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import onnx

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
QUICK = ["--engines", "sardonyx", "--rounds", "1", "--seconds", "0.01"]


def run(*command):
    result = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=os.environ)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_operators(tmp_path):
    page = tmp_path / "page.md"
    text = run(BENCHMARKS / "operators.py", "^(NonZero few|Gemm .* 00|Binarizer)", "--sizes", "fixed,open", "--write", page, *QUICK)
    for name in ("NonZero few of 1000x1000", "Gemm 256x512x384, transposed 00", "Binarizer 1000x1000"):
        for sizes in ("", ", open sizes"):
            assert re.search(rf"^\| {name}{sizes} \| \d+\.\d+ \| — \| \d+ % \| 0e\+00 \|$", text, re.M), text
    assert text.split("\n\n", 1)[1].strip() in page.read_text()


def test_operators_are_many_and_sound(monkeypatch):
    # The benchmark is loaded by its path: the tests have a module of the same name.
    monkeypatch.syspath_prepend(BENCHMARKS)
    specification = importlib.util.spec_from_file_location("benchmarks_operators", BENCHMARKS / "operators.py")
    operators = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(operators)
    assert len(operators.CASES) >= 400
    for name in operators.CASES:
        model, inputs = operators.build(name)
        assert model.graph.node and all(a.size for a in inputs.values()), name


def test_models(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        small (float[batch,3] x, int64[1] i) => (float[batch,1] y) { y = Gather <axis = 1> (x, i) }""")
    onnx.save(model, tmp_path / "small.onnx")
    picture, page = tmp_path / "bars.svg", tmp_path / "page.md"
    written = ["--svg", picture, "--write", page]
    text = run(BENCHMARKS / "models.py", tmp_path / "small.onnx", "--dim", "batch=7", *written, *QUICK)
    assert re.search(r"^\| small \| \d+\.\d+ \| — \| \d+\.\d+ \(0\.\d+\) \| \d+ \(\d+\) \| 0\.0e\+00 \|$", text, re.M), text
    assert picture.read_text().count("<rect") == 2
    assert text.split("\n\n", 1)[1].strip() in page.read_text()


def test_a_failure_is_told(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    (tmp_path / "broken.npz").write_bytes(b"no inputs")
    text = run(BENCHMARKS / "models.py", tmp_path / "broken.onnx", *QUICK)
    assert re.search(r"^Failed: broken, sardonyx: \w+", text, re.M), text


def test_sizes(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        small (float[batch,seq] x) => (float[batch,seq] y) { a = Exp (x) y = Softmax (a) }""")
    onnx.save(model, tmp_path / "small.onnx")
    ranges = ["--dim", "batch=1:4", "--dim", "seq=3:40"]
    text = run(BENCHMARKS / "sizes.py", tmp_path / "small.onnx", *ranges, "--pairs", "9", "--runs", "1")
    assert re.search(r"^p99/p50 +\d+\.\d\d of the time", text, re.M) and "9 sizes of" in text, text
