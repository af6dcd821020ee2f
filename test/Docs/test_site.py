"""The site is made without a broken link, and its tables agree with the sources."""

import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]


def test_site(tmp_path):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.parent.name: path.read_text() for path in (tmp_path / "reference").glob("*/index.html")}
    assert "run_async" in made["Python"] and "sdx_session_run_named" in made["C"] and "onnx-quantize" in made["Passes"]
    assert "sdx.dispatch" in made["Dialects"] or "sdx." in made["Dialects"]


def sources(*suffixes):
    for folder in ("lib", "include", "tools/sardonyx", "python"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path.read_text()


def test_environment():
    """Every variable that the library, the tool and the package read, and no other."""
    told = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/Environment.md").read_text(), re.M))
    read = set()
    for text in sources(".cpp", ".h", ".py"):
        read |= set(re.findall(r"(?:getenv|environment)\(\s*\"((?:SARDONYX|ORT)_\w+)\"", text))
        read |= set(re.findall(r"environ(?:\.get\(|\[)\"((?:SARDONYX|ORT)_\w+)\"", text))
    assert told - {"SARDONYX_CHECK_BOUNDS"} == read


def test_troubleshooting():
    """The fixed parts of the messages are sentences of the sources."""
    text = re.sub(r"\"\s*\n?\s*f?\"", "", "\n".join(sources(".cpp", ".h", ".py")))
    text = re.sub(r"\s+", " ", text)
    page = (ROOT / "docs/help/Troubleshooting.md").read_text().partition("## With a GPU")[0]
    missing = []
    for message in re.findall(r"^\| (?!message|---)([^|]*) \|", page, re.M):
        # Names in quotes, numbers, lists and what an example has in their place may be anything.
        for part in re.split(r"…|'[^']*'|\[[^\]]*\]|\d+|\(.*?\)|: |; |, got .*|type float|the model has no (?=input|output|open)", message):
            part = part.strip(" .;:")
            if len(part) > 8 and part not in text:
                missing.append((message, part))
    assert not missing


def test_figures_of_readme():
    subprocess.run([sys.executable, ROOT / "utils" / "readme_figures.py", "--check"], check=True)


def test_screens():
    """Help is shown as it is printed; photographs have their widths and are small."""
    subprocess.run([sys.executable, ROOT / "utils" / "screens.py", "--check"], check=True)
    photographs = sorted((ROOT / "docs" / "images").glob("profile-*.png"))
    assert len(photographs) == 4
    for path in photographs:
        with Image.open(path) as image:
            assert f"-{image.width}-" in path.name
        assert path.stat().st_size < 50_000
