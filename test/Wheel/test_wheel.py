"""The wheels that `utils/dev wheel` makes, used where neither the build nor LLVM is.

SARDONYX_WHEELS names their folder. Each is installed in a virtual environment of its own, with numpy and nothing
else. Programs run with LLVM's files hidden where the machine allows that (`unshare -m`), and always tell which files
they had in memory.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper, save

ROOT = Path(__file__).resolve().parent.parent.parent
WHEELS = Path(os.environ.get("SARDONYX_WHEELS", "nowhere"))
pytestmark = pytest.mark.skipif("SARDONYX_WHEELS" not in os.environ, reason="made by `utils/dev wheel`")

# Everything outside of the environment that was mapped only since the package is used.
MAPPED = """
import os, sys
def mapped():
    with open("/proc/self/maps") as maps:
        return {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
import bz2, ctypes, hashlib, json, lzma, zlib, numpy.random
before = mapped()
exec(compile(sys.stdin.read(), "program", "exec"))
for name in mapped() - before:
    if not name.startswith((sys.prefix, sys.base_prefix, os.getcwd())):
        print("mapped", name)
"""
SYSTEM = re.compile(r"/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so[.0-9]*$")


def hiding():
    """A command that runs another one where LLVM's files are empty, or nothing where that is forbidden."""
    hide = "mount -t tmpfs none /usr/lib/llvm-22 && for f in /usr/lib/*/libLLVM*; do mount --bind /dev/null $f; done"
    for flags in (["-m"], ["-Urm"]):
        command = ["unshare", *flags, "sh", "-c", f'{hide} && exec "$@"', "sh"]
        if shutil.which("unshare") and not subprocess.run([*command, "true"], capture_output=True).returncode:
            return command
    return []


def environment(folder, wheel):
    """The interpreter of a new virtual environment that has one wheel, and numpy as it is here: no index is asked."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    for path in Path(np.__file__).parent.parent.glob("numpy*"):
        shutil.copytree(path, packages / path.name)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel]
    subprocess.run(install, check=True)
    return python


def the_wheel(name):
    (wheel,) = WHEELS.glob(f"{name}-*.whl")
    return wheel


def pip(python, *words):
    """The status of pip and what it said."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("sardonyx") / "venv", the_wheel("sardonyx"))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("runtime") / "venv", the_wheel("sardonyx_runtime"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with model.onnx: a convolution of pictures, and what is expected of it."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((8, 3, 4, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[4, 4]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", ["batch", 3, 224, 224]), ("y", ["batch", 8]))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(weights, "w")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), folder / "model.onnx")
    x = rng.standard_normal((1, 3, 224, 224)).astype(np.float32)
    np.save(folder / "x.npy", x)
    patches = x.reshape(3, 56, 4, 56, 4).mean((1, 3), dtype=np.float64)
    np.save(folder / "expected.npy", np.einsum("oikl,ikl->o", weights, patches)[None])
    return folder


def run_hidden(command, folder, **options):
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    result = subprocess.run([*hiding(), *command], cwd=folder, env=bare, capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_program(python, program, folder):
    """What a program prints; it must not have used more of the system than a wheel may."""
    lines = run_hidden([python, "-c", MAPPED], folder, input=program).splitlines()
    foreign = [line for line in lines if line.startswith("mapped ") and not SYSTEM.search(line)]
    assert not foreign
    return [line for line in lines if not line.startswith("mapped ")]


CHECK = """
import numpy as np
expected = np.load("expected.npy")
(y,) = session.run(None, {"x": np.load("x.npy")})
assert y.shape == expected.shape and abs(y - expected).max() < 1e-5, abs(y - expected).max()
"""


def test_readme(compiler, model):
    """The program that README.md shows."""
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    shutil.copytree(ROOT / "examples" / "digits", model / "examples" / "digits")
    blank = {"x": np.zeros((1, 1, 8, 8), np.float32)}
    (scores,) = onnxruntime.InferenceSession(ROOT / "examples" / "digits" / "digits.onnx").run(None, blank)
    assert run_program(compiler, program, model) == [str(scores.argmax())]
    assert run_program(compiler, 'import sardonyx\nsession = sardonyx.InferenceSession("model.onnx")' + CHECK, model) == []


def test_command(compiler, model):
    tool = compiler.parent / "sardonyx"
    assert re.fullmatch(r"sardonyx \d+\.\d+\.\d+\n", run_hidden([tool, "--version"], model))
    run_hidden([tool, "run", "model.onnx", "--input", "x=x.npy", "--output-dir", "out"], model)
    np.testing.assert_allclose(np.load(model / "out" / "y.npy"), np.load(model / "expected.npy"), atol=1e-5)
    wrong = subprocess.run([tool, "run", "absent.onnx"], cwd=model, capture_output=True, text=True)
    assert wrong.returncode == 1 and "absent.onnx" in wrong.stderr


def test_compiler_leaves_memory_once_a_model_is_loaded(compiler, model):
    """LLVM's and MLIR's code is in the extension itself, whose pages come back as they are used."""
    program = """
session = sardonyx.InferenceSession("model.onnx")
total = counts = 0
for line in open("/proc/self/smaps"):
    first, *rest = line.split()
    if "-" in first and len(rest) >= 4:
        counts = "/_sardonyx." in line and "w" not in rest[0]
    elif first == "Rss:" and counts:
        total += int(rest[0])
print(total)
"""
    (kilobytes,) = run_program(compiler, "import sardonyx" + program, model)
    assert int(kilobytes) < 32 * 1024, "of some 80 MB"


def test_build_here_and_run_without_a_compiler(compiler, runtime, model):
    tool = compiler.parent / "sardonyx"
    run_hidden([tool, "build", "model.onnx", "-o", "model.so"], model)
    program = "import sardonyx_runtime as sardonyx\nsession = sardonyx.load('model.so')\n"
    wrong = """
try:
    session.run(None, {"x": np.zeros((1, 2), np.float32)})
except sardonyx.InvalidArgument as error:
    print(error)
"""
    (sentence,) = run_program(runtime, program + CHECK + wrong, model)
    assert "'x'" in sentence


def test_build_a_program(compiler, model):
    run_hidden([compiler.parent / "sardonyx", "build", "model.onnx", "-o", "program", "--dim", "batch=1"], model)
    run_hidden([model / "program", "--input", "x=x.npy", "--output-dir", "answers"], model)
    np.testing.assert_allclose(np.load(model / "answers" / "y.npy"), np.load(model / "expected.npy"), atol=1e-5)


def test_both_in_one_process(compiler, model, tmp_path):
    """Two packages with extensions of the same C++ types."""
    with zipfile.ZipFile(the_wheel("sardonyx_runtime")) as wheel:
        wheel.extractall(tmp_path)
    program = f"import sys\nsys.path.append({str(tmp_path)!r})\n" + """
import sardonyx, sardonyx_runtime
sardonyx.build("model.onnx", "both.so")
for package in (sardonyx, sardonyx_runtime):
    session = package.load("both.so")
""" + CHECK.replace("\n", "\n    ")  # fmt: skip
    lines = run_hidden([compiler, "-c", program], model)
    assert lines == ""


def test_manual_and_completions_are_shipped():
    with zipfile.ZipFile(the_wheel("sardonyx")) as wheel:
        shared = {name.partition(".data/data/share/")[2] for name in wheel.namelist()}
    assert {"man/man1/sardonyx.1", "man/man1/sardonyx-run.1", "bash-completion/completions/sardonyx", "zsh/site-functions/_sardonyx"} <= shared


def test_stubs_are_shipped():
    with zipfile.ZipFile(the_wheel("sardonyx")) as wheel:
        names = set(wheel.namelist())
    assert {f"sardonyx/{name}" for name in ("_runtime.pyi", "_sardonyx.pyi", "py.typed", "capi/_pybind_state.py")} <= names


def test_in_the_place_of_onnxruntime(model, tmp_path):
    """A package that requires onnxruntime and imports it, in an environment that has Sardonyx's package of it."""
    python = environment(tmp_path / "venv", the_wheel("sardonyx"))
    assert pip(python, "install", "--no-index", the_wheel("sardonyx_as_onnxruntime"))[0] == 0
    status, said = pip(python, "check")
    assert status == 0, said
    status, said = pip(python, "install", "--no-index", "onnxruntime>=1.17")
    assert status == 0 and "already satisfied" in said
    program = """
import importlib.metadata
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
print(onnxruntime.__version__ == importlib.metadata.version("onnxruntime"), InvalidArgument.__module__)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
"""
    assert run_program(python, program + CHECK, model) == ["True sardonyx.errors"]
    status, said = pip(python, "uninstall", "-y", "onnxruntime")
    assert status and "sardonyx-as-onnxruntime" in said
    assert pip(python, "uninstall", "-y", "sardonyx-as-onnxruntime")[0] == 0
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    assert not list(packages.glob("*onnxruntime*"))


@pytest.mark.parametrize("name, most", [("sardonyx", 90e6), ("sardonyx_runtime", 3e6)])
def test_sizes_and_tags(name, most):
    wheel = the_wheel(name)
    assert wheel.stat().st_size <= most
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", wheel.name)
