"""The wheels that `utils/dev wheel` makes, used where neither the build nor LLVM is.

SARDONYX_WHEELS names their folder. They are installed in virtual environments, with numpy and nothing else, of each
Python that is here. Programs run with LLVM's files hidden where the machine allows that (`unshare -m`), and always tell which files
they had in memory.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import debian
import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper, save

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "utils"))
import wheels

INTERPRETERS = wheels.interpreters()
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


def environment(folder, *packages, interpreter=sys.executable):
    """The interpreter of a new virtual environment that has packages of the folder, which pip chooses the wheels of.
    numpy is as it is here; for another interpreter it comes from the index."""
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if interpreter == sys.executable:
        (site,) = folder.glob("lib/python*/site-packages")
        for path in Path(np.__file__).parent.parent.glob("numpy*"):
            shutil.copytree(path, site / path.name)
    else:
        subprocess.run([*install, "numpy"], check=True)
    subprocess.run([*install, "--no-index", "--find-links", WHEELS, *packages], check=True)
    return python


def the_wheel(name):
    """That of the Python that runs the tests."""
    minor = sys.version_info[1]
    tag = f"cp3{minor}-cp3{minor}" if minor < wheels.STABLE else f"cp3{wheels.STABLE}-abi3"
    (wheel,) = WHEELS.glob(f"{name}-*-{tag}-*x86_64.whl")
    return wheel


def pip(python, *words):
    """The status of pip and what it said."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("sardonyx") / "venv", "sardonyx")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("runtime") / "venv", "sardonyx-runtime")


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
    python = environment(tmp_path / "venv", "sardonyx")
    assert pip(python, "install", "--no-index", "--find-links", WHEELS, "sardonyx-as-onnxruntime")[0] == 0
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


@pytest.mark.parametrize("minor", range(wheels.OLDEST, wheels.NEWEST + 1))
def test_every_python(model, tmp_path, minor):
    """README's program, the command, and a model that is built and loaded without the compiler."""
    if minor not in INTERPRETERS:
        pytest.skip(f"there is no Python 3.{minor} here")
    if minor < wheels.STABLE and not list(WHEELS.glob(f"*-cp3{minor}-*.whl")):
        pytest.skip(f"no wheels were made for Python 3.{minor}: its headers are not here")
    if minor >= wheels.STABLE and not list(WHEELS.glob("*-abi3-*.whl")):
        pytest.skip(f"no wheels were made for Python 3.{wheels.STABLE} and later ones: no headers of one are here")
    python = environment(tmp_path / "venv", "sardonyx", "sardonyx-runtime", interpreter=INTERPRETERS[minor])
    tool = python.parent / "sardonyx"
    program = "import sys, sardonyx\nprint(sys.version_info[1])\n"
    assert run_program(python, program + 'session = sardonyx.InferenceSession("model.onnx")' + CHECK, model) == [str(minor)]
    run_hidden([tool, "run", "model.onnx", "--input", "x=x.npy", "--output-dir", f"out{minor}"], model)
    np.testing.assert_allclose(np.load(model / f"out{minor}" / "y.npy"), np.load(model / "expected.npy"), atol=1e-5)
    run_hidden([tool, "build", "model.onnx", "-o", f"model{minor}.so"], model)
    program = f"import sardonyx_runtime\nsession = sardonyx_runtime.load('model{minor}.so')\n"
    assert run_program(python, program + CHECK, model) == []


def test_python_of_a_later_debian(model, tmp_path):
    """The newest Python, with a newer C library, where it is not here by itself."""
    if wheels.NEWEST in INTERPRETERS or not list(WHEELS.glob("*-abi3-*.whl")):
        pytest.skip("it is here by itself, or no wheels were made for it")
    version = f"3.{wheels.NEWEST}"
    files = debian.python(tmp_path / "debian", "forky", "amd64", version)
    debian.install(tmp_path / "site", "x86_64", version, WHEELS, "sardonyx", "sardonyx-runtime")
    program = """
import sys, sardonyx, sardonyx_runtime
sardonyx.build("model.onnx", "later.so")
for session in (sardonyx.InferenceSession("model.onnx"), sardonyx_runtime.load("later.so")):
""" + CHECK.strip().replace("import numpy", "    import numpy").replace("\n", "\n    ") + "\nprint(sys.version_info[1])\n"
    command = [debian.loader(files), "--library-path", files / "usr/lib/x86_64-linux-gnu", files / f"usr/bin/python{version}", "-"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONHOME": str(files / "usr"), "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([*hiding(), *command], cwd=model, env=environment, input=program, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == f"{wheels.NEWEST}\n", done.stdout + done.stderr


@pytest.mark.parametrize("name, most", [("sardonyx", 90e6), ("sardonyx_runtime", 3e6)])
def test_sizes_and_tags(name, most):
    found = list(WHEELS.glob(f"{name}-*x86_64.whl"))
    assert found
    for wheel in found:
        assert wheel.stat().st_size <= most
        assert re.search(r"-(cp310-cp310|cp311-cp311|cp312-abi3)-manylinux_2_28_x86_64\.whl$", wheel.name)


@pytest.mark.parametrize("wheel", sorted(WHEELS.glob("*linux*.whl")), ids=lambda wheel: wheel.name.removesuffix(".whl"))
def test_auditwheel_agrees_with_tags(wheel):
    """auditwheel finds by itself which systems a wheel is for: those of the tag, or older ones, too."""
    done = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    minor, machine = re.search(r'with the following platform tag: "manylinux_2_(\d+)_(\w+)"', said).groups()
    assert int(minor) <= wheels.GLIBC[1] and f"_{machine}.whl" in wheel.name, said


def test_extension_of_a_newer_system_is_refused(tmp_path):
    """What is checked before a wheel gets its tag: versions of the C library's symbols, and libraries."""
    (tmp_path / "new.c").write_text("#include <stdlib.h>\nunsigned f(void) { return arc4random(); }\n")  # of glibc 2.36
    (tmp_path / "old.c").write_text("#include <stdlib.h>\nvoid *f(void) { return malloc(1); }\n")
    shared = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed"]
    for name, flags in (("new", []), ("old", []), ("linked", ["-lz"])):
        source = tmp_path / ("old.c" if name == "linked" else f"{name}.c")
        subprocess.run([*shared, source, "-o", tmp_path / f"{name}.so", *flags], check=True)
    assert wheels.too_new(tmp_path / "old.so") == []
    assert wheels.too_new(tmp_path / "new.so") == ["GLIBC_2.36"]
    assert wheels.too_new(tmp_path / "linked.so") == ["libz.so.1"]
    made = tmp_path / "made-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as file:
        file.write(tmp_path / "new.so", "made/new.so")
    with pytest.raises(SystemExit, match=r"made-1-.*new\.so needs GLIBC_2\.36, which a system of manylinux_2_28"):
        wheels.check(made)


def test_python_that_does_not_run_is_left_out(tmp_path):
    """A folder that was configured for a Python which has gone since is configured all the same."""
    defines = ["-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_C_COMPILER=clang-22", "-DSARDONYX_RUNTIME_ONLY=ON", f"-DSARDONYX_PYTHON={sys.executable}"]
    configure = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, *defines, "-DSARDONYX_WHEEL_PYTHONS=/nowhere/python3"]
    done = subprocess.run(configure, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no wheels for '/nowhere/python3'" in done.stderr
