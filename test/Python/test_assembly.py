"""The assembly of a sample of kernels is what test/Objects/assembly.txt says; a commit that changes it changes the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "utils" / "assembly.py"
sys.path.insert(0, str(TOOL.parent))

from assembly import TEXTS, models_of_text  # noqa: E402


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True)


def test_sample():
    done = run("check", "--build", os.environ["SARDONYX_BUILD"])
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_comparison(tmp_path):
    for folder in "ab":
        some = ["--models", "operators-softmax", "--cpus", "haswell", "--threads", "1"]
        done = run("freeze", tmp_path / folder, *some, "--build", os.environ["SARDONYX_BUILD"])
        assert done.returncode == 0, done.stderr
    done = run("compare", tmp_path / "a", tmp_path / "b")
    assert (done.returncode, done.stdout) == (0, "no function differs\n")
    more = ["--models", "operators-softmax,operators-where", "--cpus", "haswell", "--threads", "1"]
    run("freeze", tmp_path / "b", *more, "--build", os.environ["SARDONYX_BUILD"])
    done = run("compare", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 1 and "operators-where: sdx_main came for haswell/1" in done.stdout

    # A kernel that differs is shown.
    table = tmp_path / "b" / "table.txt"
    rows = (tmp_path / "a" / "table.txt").read_text().splitlines()
    (kernel,) = (row for row in rows if " k_" in row and "_par0" in row)
    (other,) = (row for row in rows if " sdx_main " in row)
    table.write_text("\n".join(row.replace(kernel.split()[4], other.split()[4]) for row in rows))
    done = run("compare", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 1
    assert f"operators-softmax: {kernel.split()[3]} differs for haswell/1" in done.stdout
    assert "+sdx_main:" in done.stdout


@pytest.mark.parametrize("cpu", ["haswell", "sapphirerapids", "znver5"])
@pytest.mark.parametrize("name", ["matmul-gelu", "conv-3x3-winograd", "matmul-quantized"])
def test_printed_modules_go_on_to_the_same_code(name, cpu, tmp_path):
    """The text of any phase, weights and target included, is all that onnx-opt needs."""
    bin = Path(os.environ["SARDONYX_BUILD"]) / "bin"
    (model,) = (file for stem, file in models_of_text(TEXTS[0], tmp_path) if stem == f"operators-{name}")

    def output(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def compile(phase, *rest, cpu=cpu):
        return output(bin / "sardonyx", "compile", model, "--cpu", cpu, "--threads", "2", "--to", phase, *rest)

    want = compile("asm")
    for phase in ["import", "onnx", "linalg", "dispatch", "kernels", "codegen", "llvm"]:
        text = tmp_path / "module.mlir"
        text.write_text(compile(phase))
        got = output(bin / "onnx-opt", text, f"--compile-from={phase}", "--compile-to=asm")
        assert got == want, phase
    # Another machine takes the place of the one that the module names.
    text.write_text(compile("onnx"))
    other = output(bin / "onnx-opt", text, "--compile-from=onnx", "--compile-to=asm", "--target=x86-64")
    assert other == compile("asm", cpu="x86-64")
    elided = compile("onnx", "--elide-weights")
    assert len(elided) < 20000 < len(text.read_text())
