"""The driver as strangers meet it: help, errors, completions, pages of the manual, JSON, the cache."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
GRAPH = """m (float[N, 3] x) => (float[N, 3] y, float[N, 3] z) {
    hidden = Relu (x)
    y = Neg (hidden)
    z = Exp (x)
}"""
COMMANDS = ["run", "bench", "profile", "inspect", "build", "quantize", "prune", "compile", "plan", "cache", "completion"]
IN_PYTHON = ["quantize", "prune"]


@pytest.fixture
def path(model, tmp_path):
    onnx.save(model(GRAPH), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


def call(tool, *arguments, status=0, **options):
    """(standard output, standard error)"""
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_help_fits_a_terminal(tool):
    out, _ = call(tool, "--help")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", out, re.M) and f"  sardonyx {name} " in out or name == "completion"
    for name in [[], *([name] for name in COMMANDS if name not in IN_PYTHON)]:
        out, _ = call(tool, *name, "--help")
        assert max(map(len, out.splitlines())) <= 80
        assert "Usage: sardonyx" in out and "Example" in out


def test_groups_of_options(tool):
    out, _ = call(tool, "run", "--help")
    groups = re.findall(r"^(\w[\w ]*):$", out, re.M)
    assert groups[:3] == ["Arguments", "Inputs", "Outputs"] and groups[-3:] == ["Help", "Tuning", "Example"]


def test_version(tool):
    assert re.fullmatch(r"sardonyx \d+\.\d+\.\d+\n", call(tool, "--version")[0])


@pytest.mark.parametrize("arguments, sentence", [
    (["rnu"], "sardonyx: there is no command 'rnu' (did you mean run?); see sardonyx --help"),
    (["--vresion"], "sardonyx: there is no option '--vresion' (did you mean --version?); see sardonyx --help"),
    (["run", "MODEL", "--inptu", "a"], "sardonyx run: there is no option '--inptu' (did you mean --input?); see sardonyx run --help"),
    (["build", "MODEL", "--outptu", "a"], "sardonyx build: there is no option '--outptu' (did you mean --output?); see sardonyx build --help"),
    (["run"], "sardonyx run: MODEL is required; see sardonyx run --help"),
    (["run", "MODEL", "second"], "sardonyx run: 'second' is one argument too many; see sardonyx run --help"),
    (["run", "MODEL", "--numerics", "fsat"], "--numerics: 'fsat' is none of exact, f32, fast (did you mean fast?)"),
    (["profile", "MODEL", "--by", "kernle"], "(did you mean kernel?)"),
    (["run", "MODEL", "--threads", "many"], "--threads"),
    (["run", "MODEL", "--device", "cdua"], "(did you mean cuda?)"),
    (["bench", "MODEL", "--concurrency", "0"], "--concurrency"),
    (["completion", "fish"], "'fish' is none of bash, zsh"),
])  # fmt: skip
def test_wrong_command_lines(tool, path, arguments, sentence):
    """A line on the standard error, and the status 2."""
    out, err = call(tool, *[path if word == "MODEL" else word for word in arguments], status=2)
    assert out == "" and sentence in err and err.count("\n") == 1 and err.endswith("--help\n"), err


def test_an_option_takes_one_value(tool, path, tmp_path):
    """What follows it is an argument, be it the model."""
    out, _ = call(tool, "run", "--dim", "N=2", path, "--quiet", "--output-dir", str(tmp_path / "out"))
    assert np.load(tmp_path / "out" / "y.npy").shape == (2, 3)


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile", "cache"])
def test_keys_are_those_that_the_page_tells(tool, path, command):
    page = (ROOT / "docs" / "reference" / "Json.md").read_text()
    section = page.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
    told = {key for row in re.findall(r"^\| (`[^|]*) \|", section, re.M) for key in re.findall(r"`(\w+)`", row)}
    measure = ["--seconds", "0"] if command in ("bench", "profile") else []
    given = json.loads(call(tool, command, *([] if command == "cache" else [path]), *measure, "--json")[0])
    # What there is of a device.
    assert set(given) == {"command", "version", *told} - {"device"}


def test_json_of_inspect(tool, path):
    told = json.loads(call(tool, "inspect", path, "--json", "--dim", "N=5")[0])
    assert told["command"] == "inspect" and told["version"] == call(tool, "--version")[0].split()[1]
    assert told["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["N", 3]}]
    assert told["operators"] == {"Exp": 1, "Neg": 1, "Relu": 1} and told["unsupported"] == []
    assert told["flops"] > 0 and told["opsets"].keys() == {"ai.onnx"}


def test_json_of_run(tool, path, tmp_path):
    x = np.array([[1, np.nan, -3]], np.float32)
    np.save(tmp_path / "x.npy", x)
    told = json.loads(call(tool, "run", path, "-i", f"x={tmp_path / 'x.npy'}", "--json")[0])
    y, z = told["outputs"]
    assert (y["name"], y["kind"], y["type"], y["shape"]) == ("y", "tensor", "float", [1, 3])
    assert y["values"][0] == -1 and y["values"][1] is None and z["nan"] == 1
    np.testing.assert_allclose([z["min"], z["max"]], np.exp([-3, 1]), rtol=1e-6)
    assert told["inputs"][0]["shape"] == [1, 3] and told["run_seconds"] > 0 and "import" in told["load_seconds"]
    assert json.loads(call(tool, "run", path, "--dim", "N=1000", "--json")[0])["outputs"][0]["values"] is None


def test_json_of_bench(tool, path):
    told = json.loads(call(tool, "bench", path, "--json", "--seconds", "0.02", "--concurrency", "3")[0])
    times = told["latency_seconds"]
    assert told["concurrency"] == 3 and told["runs"] >= 9 and told["runs_per_second"] > 0
    assert times["min"] <= times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
    out, _ = call(tool, "bench", path, "--seconds", "0.02", "--concurrency", "2")
    assert re.search(r"^at a time  2 runs, [\d.]+ a second in all$", out, re.M)


def test_json_of_profile(tool, path):
    told = json.loads(call(tool, "profile", path, "--json", "--seconds", "0.05", "--dim", "N=5000")[0])
    assert sum(row["share"] for row in told["rows"]) + told["outside_share"] == pytest.approx(1)
    assert told["machine"] and told["run_seconds"] > 0
    for row in told["rows"]:
        assert row["roofline"] is None or row["roofline"] <= 1 or row["reason"]


def test_outputs_of_choice(tool, path, tmp_path):
    x = np.array([[1, -2, 3]], np.float32)
    np.save(tmp_path / "x.npy", x)
    feeds = ["-i", f"x={tmp_path / 'x.npy'}"]
    told = json.loads(call(tool, "run", path, *feeds, "--outputs", "hidden,z", "--json")[0])
    assert [value["name"] for value in told["outputs"]] == ["hidden", "z"]
    assert told["outputs"][0]["values"] == [1, 0, 3]
    # What no output needs is gone.
    text, _ = call(tool, "compile", path, "--to", "import")
    assert "onnx.Exp" in text
    _, err = call(tool, "run", path, "--outputs", "hiden", status=1)
    assert "the model has no value 'hiden'" in err and "(did you mean hidden?)" in err
    assert "asked for twice" in call(tool, "run", path, "--outputs", "z,z", status=1)[1]
    call(tool, "build", "-q", path, "-o", str(tmp_path / "m.so"))
    assert "--outputs" in call(tool, "run", str(tmp_path / "m.so"), "--outputs", "z", status=1)[1]


def test_no_output_is_an_input(tool, path, tmp_path):
    before = Path(path).read_bytes()
    (tmp_path / "link.onnx").symlink_to(path)
    for name in (path, str(tmp_path / "link.onnx")):
        for command in (["compile", path, "-o", name], ["plan", path, "-o", name], ["profile", path, "--seconds", "0", "--html", name],
                        ["profile", path, "--seconds", "0", "--trace", name], ["build", path, "-o", name]):  # fmt: skip
            assert "which is read" in call(tool, *command, status=1)[1] or command[0] == "build"
        assert Path(path).read_bytes() == before


def test_cache(tool, path, tmp_path):
    def told(*arguments):
        return json.loads(call(tool, "cache", "--json", *arguments)[0])

    assert told()["files"] == [] and not (tmp_path / "cache").exists()
    call(tool, "run", path)
    (entry,) = told()["files"]
    assert entry["kind"] == "model" and entry["bytes"] > 0 and abs(entry["used"] - time.time()) < 1000
    assert told()["folder"] == os.environ["SARDONYX_CACHE_DIR"] and told()["limit"] == 4 << 30
    out, _ = call(tool, "cache")
    assert "holds      1 compiled model, 0 files of packed weights" in out and entry["name"] in out
    assert "--all" not in out
    # A limit stays, and holds for what is compiled later.
    assert told("--limit", "2GB")["limit"] == 2 * 10**9 and len(told()["files"]) == 1
    assert told("--limit", "1")["files"] == [] and told()["limit"] == 1
    told("--limit", "1GB")
    call(tool, "run", path)
    assert [file["kind"] for file in told("--clear")["files"]] == ["model"] and told()["files"] == []
    for i in range(21):
        (tmp_path / "cache" / f"{i:032x}.sdx").write_bytes(b"old")
    assert "and 1 that were of use before (--all" in call(tool, "cache")[0]
    assert call(tool, "cache", "--all")[0].count(".sdx") == 21
    assert "do not go together" in call(tool, "cache", "--clear", "--limit", "1", status=1)[1]
    (tmp_path / "cache").chmod(0o777)
    assert "others can write to it" in call(tool, "cache", status=1)[1]


def complete(tool, *words):
    """What bash offers for the last word."""
    script = f"""
        source <({tool} completion bash)
        COMP_WORDS=({' '.join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
        _sardonyx; printf '%s\\n' "${{COMPREPLY[@]}}\""""
    return call("bash", "-c", script)[0].split()


def test_completion_in_bash(tool, path, tmp_path):
    assert complete(tool, "sardonyx", "b") == ["bench", "build"]
    assert sorted(complete(tool, "sardonyx", "run", "--out")) == ["--output-dir", "--outputs"]
    assert complete(tool, "sardonyx", "run", "--numerics", "f") == ["f32", "fast"]
    assert complete(tool, "sardonyx", "run", str(tmp_path / "m.")) == [path]
    assert complete(tool, "sardonyx", "completion", "--h") == ["--help"]


def test_completion_in_zsh(tool):
    """zsh reads it, where there is one; quotes and brackets are even."""
    out, _ = call(tool, "completion", "zsh")
    assert out.startswith("#compdef sardonyx\n") and "'*--numerics[" in out and ":(exact f32 fast)'" in out
    if shutil.which("zsh"):
        call("zsh", "-n", "/dev/stdin", input=out)
    else:
        call("bash", "-n", "/dev/stdin", input=out.replace("local -a", "declare -a"))


def test_manual_and_reference(tool, tmp_path):
    """The reference in docs is what the table of options makes; man's pages have every option."""
    call(tool, "manual", str(tmp_path / "man"))
    reference = (ROOT / "docs" / "reference" / "CommandLine.md").read_text()
    assert (tmp_path / "man" / "CommandLine.md").read_text() == reference, f"{tool} manual FOLDER; copy CommandLine.md"
    for name in COMMANDS:
        page = (tmp_path / "man" / f"sardonyx-{name}.1").read_text()
        assert page.startswith(f".TH sardonyx-{name} 1 ")
        if name not in IN_PYTHON:
            for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", call(tool, name, "--help")[0], re.M):
                assert option.replace("-", "\\-") in page
    if shutil.which("man"):
        shown = call("man", "-l", str(tmp_path / "man" / "sardonyx-run.1"), env={**os.environ, "MANWIDTH": "80"})
        assert "--input" in shown[0].replace("\u2010", "-") and shown[1] == ""


def slow_model():
    """Products of many shapes, each of which is compiled."""
    rng, nodes, weights, width = np.random.default_rng(0), [], [], 64
    for i in range(60):
        weights.append(numpy_helper.from_array(rng.standard_normal((width, width + 1), np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"]), helper.make_node("Softmax", [f"m{i}"], [f"x{i + 1}"])]
        width += 1
    f = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x0", f, [5, 64])], [helper.make_tensor_value_info("x60", f, [5, width])], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_progress_on_a_terminal(tool, tmp_path):
    """A line that goes again, and nothing of it where the standard error is no terminal."""
    onnx.save(slow_model(), tmp_path / "slow.onnx")
    command = [tool, "run", "-q", "--no-cache", str(tmp_path / "slow.onnx")]
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    text = b""
    try:
        while part := os.read(master, 4096):
            text += part
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert process.wait() == 0
    assert b"sardonyx: compiling " in text and text.rstrip().count(b"\r\x1b[K") >= 2, text
    assert "compiling" not in call(*command)[1]


def test_commands_of_the_python_package(tool, path, tmp_path):
    """They run where an interpreter has the package, and say what is missing elsewhere."""
    environment = {**os.environ, "SARDONYX_PYTHON": sys.executable, "PYTHONPATH": str(Path(tool).parents[1] / "python")}
    out, _ = call(tool, "quantize", "--help", env=environment)
    assert "--precision" in out
    call(tool, "quantize", path, "-o", str(tmp_path / "half.onnx"), "--precision", "f16", env=environment)
    assert onnx.load(tmp_path / "half.onnx").graph.node
    call(tool, "prune", path, env=environment, status=2)
    for name in IN_PYTHON:
        _, err = call(tool, name, "--help", env={**os.environ, "SARDONYX_PYTHON": "/none/python"}, status=1)
        assert f"'{name}' is a command of the Python package" in err and err.count("\n") == 1
