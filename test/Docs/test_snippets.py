"""What README and the pages for users show runs as it stands there, from a folder with the repository's examples."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
PAGES = [
    "README.md", "docs/tutorials/FirstModel.md", "docs/howto/MigrateFromOnnxruntime.md", "docs/howto/MigrateFromOpenVINO.md",
    "docs/howto/ServeRequests.md", "docs/howto/FindWhatIsSlow.md", "docs/concepts/Numerics.md",
]  # fmt: skip
LIBRARY = BUILD / "lib" / "Library"
LINK = [f"-I{ROOT / 'include'}", f"-L{LIBRARY}", "-lsardonyx", f"-Wl,-rpath,{LIBRARY}", "-o", "program"]
# What makes wheels, which test/Wheel does, what builds and tests all, and blocks in other languages, which test/Package
# and test/Build run.
ELSEWHERE = re.compile(r"utils/dev (wheel|run|test)")


def blocks(page):
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / page).read_text(), re.S)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with examples, and a PATH as after an installation."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{BUILD / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(BUILD / "python"))
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def run(place, *command, text=None):
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, input=text, timeout=300)
    assert done.returncode == 0, f"{command} {text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_runs(place, page):
    """Commands one after the other; a page's Python as one program, from block to block; what is shown to be printed is."""
    program, printed = "", ""
    for language, text in blocks(page):
        if language == "sh" and not ELSEWHERE.search(text):
            printed = run(place, "bash", "-euo", "pipefail", "-c", text)
        elif language == "python":
            program += text
            run(place, "python3", "-", text=program)
        elif language == "text":
            assert printed == text


def follow(place, page):
    """What a tutorial's commands print, from the first block to the last; blocks that name a file are that file."""
    printed = ""
    for kind, text in re.findall(r"```(\w+(?: \S+)?)\n(.*?)```", (ROOT / "docs" / "tutorials" / page).read_text(), re.S):
        if " " in kind:
            (place / kind.split()[1]).write_text(text)
        elif kind == "sh" and not text.startswith("pip install"):
            printed += (last := run(place, "bash", "-euo", "pipefail", "-c", text))
        elif kind == "text":
            assert last == text
    return printed


@pytest.mark.parametrize("page", ["ServeOverHttp.md", "ModelInAProgram.md", "ModelInAPage.md"])
def test_tutorial(place, page):
    follow(place, page)


def test_quantise_a_classifier(place):
    printed = follow(place, "QuantizeAClassifier.md")
    assert re.search(r"^top1: before 9\d\.\d+ %, after 9\d", printed, re.M)
    assert "right: 9" in printed and "ended with 3" in printed
    assert (place / "small.onnx").stat().st_size < 0.3 * (place / "digits.onnx").stat().st_size
    assert not (place / "tiny.onnx").exists() and "<svg" in (place / "report.html").read_text()
    assert (place / "narrow8.onnx").stat().st_size < (place / "small.onnx").stat().st_size


@pytest.fixture
def digits(place):
    """What pages that talk of any model call by these names: `model.onnx`, `x.npy`, `feeds` and `labels.npy`."""
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", place / "model.onnx")
    data = np.load(ROOT / "test" / "Quantization" / "Networks" / "digits_cnn.npz")
    pixels = data["x"][:, None].astype(np.float32) / 8 - 1
    np.save(place / "x.npy", pixels[:1])
    (place / "feeds").mkdir()
    for i in range(8):
        np.savez(place / "feeds" / f"{i}.npz", x=pixels[100 * i : 100 * i + 100])
    np.save(place / "labels.npy", data["y"][:800])
    return place


@pytest.mark.parametrize("page", ["docs/howto/AheadOfTime.md", "docs/howto/Quantization.md"])
def test_commands_about_any_model(digits, page):
    """Line by line. Bounds that the machine does not hold end with the status 3, as the page says. There is no GPU."""
    for language, text in blocks(page):
        if language != "sh" or "nvidia" in text:
            continue
        for line in text.replace("\\\n", " ").splitlines():
            done = subprocess.run(["bash", "-c", line], cwd=digits, capture_output=True, text=True, timeout=600)
            assert done.returncode in ((0, 3) if "--max-error" in line else (0,)), line + done.stdout + done.stderr


def test_cpp_of_readme(place):
    """The lines for C++ in a program, linked with what the build has made."""
    (text,) = [text for language, text in blocks("README.md") if language == "cpp"]
    include, _, body = text.partition("\n\n")
    model = ROOT / "examples" / "digits" / "digits.onnx"
    body = body.replace('"digits.onnx"', f'"{model}"')
    (place / "program.cpp").write_text(f"""{include}
#include <algorithm>
#include <cstdio>
int main() {{
  float pixels[64] = {{}};
  {body}
  std::printf("%zu scores\\n", scores->size());
}}
""")
    run(place, "c++", "-std=c++17", "program.cpp", *LINK)
    assert run(place, "./program") == "10 scores\n"


@pytest.mark.parametrize("language, compiler", [("c", ["cc", "-std=c11"]), ("cpp", ["c++", "-std=c++17"])])
def test_programs_of_c_and_cpp(place, language, compiler):
    """Those of the page, whole as they are; and what they say of a model that is not there."""
    ((_, text),) = [block for block in blocks("docs/howto/UseFromC.md") if block[0] == language]
    (place / f"program.{language}").write_text(text)
    run(place, *compiler, "-Wall", "-Werror", f"program.{language}", *LINK)
    assert run(place, "./program") == "2 pictures\n"
    (place / "examples").unlink()
    done = subprocess.run(["./program"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 1 and "cannot read" in done.stderr


def test_page_of_readme(place):
    """The lines of JavaScript in Node."""
    (text,) = [text for language, text in blocks("README.md") if language == "js"]
    (command,) = [text for language, text in blocks("README.md") if language == "sh" and ".wasm" in text]
    run(place, "bash", "-e", "-c", command)
    (place / "program.mjs").write_text(text + "console.log(logits.dims.join());\n")
    assert run(place, "node", "program.mjs") == "1,10\n"
