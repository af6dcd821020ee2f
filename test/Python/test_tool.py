"""The sardonyx driver."""

import json
import os
import re
import subprocess

import numpy as np
import onnx
import onnx.parser
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
    assert "Usage" in call(tool, status=2)


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


def test_names_that_do_not_exist(tool, path, tmp_path):
    """Of inputs, dimensions and arrays, in every command that takes some."""
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    np.savez(tmp_path / "spare.npz", x=np.zeros((2, 3), np.float32), i=np.zeros(2, np.int64), ii=np.zeros(1))
    for command in (["run"], ["bench", "--seconds", "0"], ["profile", "--seconds", "0"]):
        text = call(tool, *command, path, "--input", f"X={tmp_path / 'x.npy'}", status=1)
        assert "the model has no input 'X'; it has x, i (did you mean x?)" in text
        assert "no input 'ii'; it has x, i" in call(tool, *command, path, "--input", str(tmp_path / "spare.npz"), status=1)
        assert "no open dimension 'n'; it has N (did you mean N?)" in call(tool, *command, path, "--dim", "n=3", status=1)
        assert "no open dimension 'n'" in call(tool, *command, path, "--fix", "n=3", status=1)
    for command, option in (("compile", "--fix"), ("inspect", "--fix"), ("inspect", "--dim"), ("build", "--fix"), ("build", "--dim")):
        output = ["-o", str(tmp_path / "m.so")] if command == "build" else []
        assert "no open dimension 'batch'; it has N" in call(tool, command, path, option, "batch=3", *output, status=1)
    call(tool, "build", "-q", path, "-o", str(tmp_path / "m.so"))
    assert "no input 'X'" in call(tool, "run", str(tmp_path / "m.so"), "--input", f"X={tmp_path / 'x.npy'}", status=1)
    assert "--fix" in call(tool, "run", str(tmp_path / "m.so"), "--fix", "N=3", status=1)
    call(tool, "build", "-q", path, "-o", str(tmp_path / "m"))
    program = str(tmp_path / "m")
    assert "m: the model has no input 'X'; it has x, i (did you mean x?)" in call(program, "--input", f"X={tmp_path / 'x.npy'}", status=1)
    assert "no open dimension 'M'" in call(program, "--dim", "M=3", status=1)


def test_sizes_without_a_name(tool, tmp_path):
    """By input and place; names such as `?`, which stand for no one size, keep naming all that have them."""
    shapes = {"X": [None, 64], "Z": ["?", None]}
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("Y", [None, 64]), ("W", [None, None]))]
    nodes = [onnx.helper.make_node("Relu", ["X"], ["Y"]), onnx.helper.make_node("Neg", ["Z"], ["W"])]
    path = str(tmp_path / "open.onnx")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[onnx.helper.make_opsetid("", 21)]), path)
    sizes = ["--dim", "X[0]=30", "--dim", "Z[1]=5"]
    text = call(tool, "run", path, *sizes, "--dim", "?=2")
    assert "Y: float [30, 64]" in text and "W: float [2, 5]" in text
    assert "W: float [3, 5]" in call(tool, "run", path, *sizes, "--dim", "Z[0]=3")
    assert "sizes chosen to be 1 (see --dim): X[0], ?, Z[1]" in call(tool, "run", path)
    for command in ("run", "bench", "profile", "inspect"):
        seconds = ["--seconds", "0"] if command in ("bench", "profile") else []
        for name in ("X[1]", "X[9]", "x[0]", "Y[0]", "X[ 0]"):
            text = call(tool, command, path, *seconds, "--dim", f"{name}=3", status=1)
            assert f"the model has no open dimension '{name}'; it has X[0], ?, Z[0], Z[1]" in text
    np.save(tmp_path / "x.npy", np.zeros((2, 64), np.float32))
    assert "--dim says X[0]=30" in call(tool, "run", path, *sizes, "-i", f"X={tmp_path / 'x.npy'}", status=1)
    # What is compiled for a size takes that one only.
    assert "Y: float [4, 64]" in call(tool, "run", path, "--fix", "X[0]=4")
    text = call(tool, "run", path, "--fix", "X[0]=4", "-i", f"X={tmp_path / 'x.npy'}", status=1)
    assert "dimension 0 must be 4, got 2" in text
    call(tool, "build", "-q", path, "-o", str(tmp_path / "program"), "--dim", "Z[1]=5")
    program = str(tmp_path / "program")
    assert "Y: float [6, 64]" in call(program, "--dim", "X[0]=6")
    assert "no open dimension 'Z[1]'; it has X[0], ?, Z[0]" in call(program, "--dim", "Z[1]=5", status=1)


def test_what_is_given_twice(tool, path, tmp_path):
    np.savez(tmp_path / "f.npz", x=np.zeros((2, 3), np.float32))
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    text = call(tool, "run", path, "-i", str(tmp_path / "f.npz"), "-i", f"x={tmp_path / 'x.npy'}", status=1)
    assert "input 'x' is given twice" in text
    assert "--dim gives dimension 'N' two sizes" in call(tool, "run", path, "--dim", "N=1", "--dim", "N=2", status=1)
    assert "--dim says N=7" in call(tool, "run", path, "--dim", "N=7", "-i", f"x={tmp_path / 'x.npy'}", status=1)


def test_what_is_made_up_is_told(tool, path, tmp_path):
    def told(*arguments):
        done = subprocess.run([*arguments], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stderr

    np.savez(tmp_path / "both.npz", x=np.zeros((2, 3), np.float32), i=np.zeros(2, np.int64))
    assert told(tool, "run", path, "-i", str(tmp_path / "both.npz")) == ""
    made, sizes = "sardonyx: made up at random: ", "sardonyx: sizes chosen to be 1 (see --dim): N\n"
    assert told(tool, "run", path) == made + "x float [1, 3], i int64 [1]\n" + sizes
    assert told(tool, "bench", path, "--seconds", "0", "--dim", "N=4") == made + "x float [4, 3], i int64 [4]\n"
    # Files tell the sizes of names.
    np.save(tmp_path / "x.npy", np.zeros((5, 3), np.float32))
    assert told(tool, "run", path, "-i", f"x={tmp_path / 'x.npy'}") == made + "i int64 [5]\n"
    call(tool, "build", "-q", path, "-o", str(tmp_path / "m"))
    assert told(str(tmp_path / "m")) == "m: made up of zeros: x float [1, 3], i int64 [1]\n" + sizes.replace("sardonyx", "m")


def test_sizes_larger_than_any_memory(tool, path):
    """No words of the C++ library's."""
    for size in (2**31, 2**61, 2**63 - 1):
        text = call(tool, "run", path, "--dim", f"N={size}", status=1)
        assert "memory" in text and "std::" not in text and "_M_" not in text, text
    assert "NAME=SIZE" in call(tool, "run", path, "--dim", f"N={2**63}", status=1)


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
    call(tool, "profile", path, "--by", "nothing", status=2)
    assert "cannot write" in call(tool, "profile", path, "--seconds", "0", "--html", str(tmp_path / "no" / "p"), status=1)


def cells(page, table):
    """The data of each row of a table, in its columns."""
    body = re.search(rf'<table id="{table}">.*?<tbody>(.*?)</tbody>', page, re.S)[1]
    return [re.findall(r"<td[^>]*?(?:data-value=\"([^\"]*)\")?>", row) for row in re.findall(r"<tr.*?</tr>", body, re.S)]


# Looks for a word, and tells what is left of the steps and whether the page is wider than its window.
LOOK = """<script>
const search = document.getElementById("search");
search.value = "relu";
search.oninput({ target: search });
const left = [...document.querySelectorAll("#steps tbody tr")].filter(row => !row.hidden).length;
document.title = `${left} rows, ${document.documentElement.scrollWidth <= innerWidth ? "fits" : "too wide"}`;
</script>"""


def test_page_of_a_profile(tool, path, tmp_path):
    page = tmp_path / "p.html"
    call(tool, "profile", path, "--seconds", "0.05", "--dim", "N=20000", "--html", str(page))
    text = page.read_text()
    for told in (path, "x float [20000, 3]", "GB/s from memory", call(tool, "--version").strip(), "prefers-color-scheme: dark"):
        assert told in text
    for table in ("steps", "operators"):
        assert sum(float(row[1]) for row in cells(text, table)) == pytest.approx(100)
    # What is more than the roofline has its reason, and nothing else has.
    rooflines = [float(row[6]) for row in cells(text, "steps")]
    assert sum(value > 100 for value in rooflines) == len(re.findall(r" %<small>", text))
    places = [float(left) for left in re.findall(r'style="left: ([\d.]+)%', text)]
    assert len(places) >= 2 and places == sorted(places)
    page.write_text(text.replace("</body>", LOOK + "</body>"))
    for width in (800, 1280):
        command = [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom", page.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(tmp_path)})
        assert "<title>1 rows, fits</title>" in done.stdout, done.stdout[:500] + done.stderr[-500:]


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
    assert "NAME=SIZE" in call(tool, "run", path, "--dim", f"N={10**20}", status=1)
    assert "larger than any memory" in call(tool, "run", path, "--dim", f"N={2**62}", status=1)
    assert "not enough memory" in call(tool, "bench", path, "--dim", f"N={2**50}", status=1)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    assert "cut off" in call(tool, "run", path, "--input", f"x={tmp_path / 'bad.npy'}", status=1)
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    assert "no zip archive" in call(tool, "run", path, "--input", str(tmp_path / "bad.npz"), status=1)
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    assert "must be 3, got 4" in call(tool, "run", path, "--input", f"x={tmp_path / 'x.npy'}", status=1)


VALUES = """<ir_version: 9, opset_import: ["" : 20, "ai.onnx.ml" : 4]>
values (float[n, 2] x, seq(string[k]) words, map(int64, float) m, optional(float[k]) o)
  => (seq(map(string, float)) maps, seq(string[k]) more, float[1, 3] row, optional(float[k]) same, bool has) {
  maps = ai.onnx.ml.ZipMap<classlabels_strings = ["b", "a"]>(x)
  word = Constant<value_strings = ["it's", "☃"]>()
  more = SequenceInsert(words, word)
  row = ai.onnx.ml.DictVectorizer<int64_vocabulary = [10, 15, 20]>(m)
  same = Identity(o)
  has = OptionalHasElement(o)
}"""


def test_values_that_are_no_tensors(tool, tmp_path):
    path, out = str(tmp_path / "values.onnx"), tmp_path / "out"
    onnx.save(onnx.parser.parse_model(VALUES), path)
    text = call(tool, "inspect", path)
    for line in ("seq(map(string,tensor(float)))\n", "map(int64,tensor(float))\n", "optional(tensor(float))\n", "tensor(float) [1, 3]\n"):
        assert line in text
    np.savez(tmp_path / "feeds.npz", **{"x": np.float32([[1, 2], [3, 4]]), "m.keys": np.array([20, 10]), "m.values": np.float32([0.5, 0.25]), "o": np.float32([7])})
    text = call(tool, "run", path, "--input", str(tmp_path / "feeds.npz"), "--output-dir", str(out))
    assert "maps: sequence of 2\n" in text and 'maps[1]: map of 2\n  "a": 4 "b": 3\n' in text
    assert 'more[1]: string [2]\n  "it\'s" "☃"\n' in text
    np.testing.assert_array_equal(np.load(out / "row.npy"), [[0.25, 0, 0.5]])
    np.testing.assert_array_equal(np.load(out / "maps.0.values.npy"), np.float32([2, 1]))
    assert np.load(out / "more.1.npy").tolist() == ["it's".encode(), "☃".encode()]
    assert np.load(out / "same.npy").tolist() == [7]
    # Random inputs of every kind; and half a map.
    assert "row: float [1, 3]" in call(tool, "run", path)
    np.savez(tmp_path / "part.npz", **{"words.1": np.zeros(1)})
    assert "'words.1' is no part of the input 'words'" in call(tool, "run", path, "--input", str(tmp_path / "part.npz"), status=1)
    np.savez(tmp_path / "half.npz", **{"m.keys": np.array([20])})
    assert "takes files for its keys and its values" in call(tool, "run", path, "--input", str(tmp_path / "half.npz"), status=1)
