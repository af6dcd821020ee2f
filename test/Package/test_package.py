"""What `cmake --install` puts somewhere, used by projects that know nothing of the build."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "c-and-cpp"
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
ANSWER = "column 0.948\nrising 0.948\n"  # e^4 / (e^4 + 3)


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation that was moved since."""
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="module")
def project(prefix, tmp_path_factory):
    """The example, copied out of the tree and built."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(EXAMPLE, folder / "source")
    run("cmake", "-S", folder / "source", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    return folder


@pytest.mark.parametrize("program", ["session", "session_cpp"])
def test_session(project, program):
    assert run(project / "build" / program, project / "source" / "bars.onnxtxt") == ANSWER
    wrong = subprocess.run([project / "build" / program, "absent.onnx"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "absent.onnx" in wrong.stderr


def test_artifact(project):
    """The model is inside: neither its file nor Sardonyx is needed."""
    alone = shutil.copy(project / "build" / "artifact", project / "alone")
    assert run(alone) == ANSWER
    shown = run("readelf", "-d", alone)
    assert "sardonyx" not in shown and "stdc++" not in shown


def test_changed_model(project):
    """A model is compiled again when it changes, and its users are linked again."""
    model = project / "source" / "bars.onnxtxt"
    text = model.read_text()
    model.write_text(text.replace("Softmax", "LogSoftmax"))
    run("cmake", "--build", project / "build")
    assert run(project / "build" / "artifact") != ANSWER
    model.write_text(text)
    run("cmake", "--build", project / "build")
    assert run(project / "build" / "artifact") == ANSWER


def test_pkg_config(prefix, tmp_path):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "sardonyx", env=environment).split()
    run("cc", EXAMPLE / "session.c", "-o", tmp_path / "session", *flags, f"-Wl,-rpath,{prefix / 'lib'}")
    assert run(tmp_path / "session", EXAMPLE / "bars.onnxtxt") == ANSWER


def test_nothing_else_is_exported(prefix):
    """What a program could collide with: names that are not ours."""
    names = run("nm", "-DC", "--defined-only", prefix / "lib" / "libsardonyx.so").splitlines()
    names = [line.split(maxsplit=2)[2] for line in names]
    ours = ("sdx_", "sardonyx::", "typeinfo for sardonyx::", "typeinfo name for sardonyx::", "vtable for sardonyx::")
    assert len(names) > 50 and not [name for name in names if not name.startswith(ours)]
    assert not [path for path in prefix.rglob("*.py")] and not (prefix / "sardonyx").exists()


def test_manual_and_completions(prefix):
    share = prefix / "share"
    assert "sardonyx\\-bench" in (share / "man" / "man1" / "sardonyx.1").read_text()
    assert "\\-\\-concurrency" in (share / "man" / "man1" / "sardonyx-bench.1").read_text()
    assert not list(share.rglob("*.md"))
    for script in (share / "bash-completion" / "completions" / "sardonyx", share / "zsh" / "site-functions" / "_sardonyx"):
        assert "--concurrency" in script.read_text()


def test_wrong_call(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(p C)\nfind_package(Sardonyx REQUIRED)\nsardonyx_add_model(m)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    wrong = subprocess.run(command, capture_output=True, text=True)
    assert wrong.returncode != 0 and "sardonyx_add_model(NAME MODEL model.onnx" in wrong.stderr
