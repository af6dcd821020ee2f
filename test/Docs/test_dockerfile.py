"""What the Dockerfile names is there, and the versions that it pins are those that are built with here."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


def test_files_exist():
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", TEXT, re.M):
        for source in sources.split():
            assert (ROOT / source).exists()
    ignored = set((ROOT / ".dockerignore").read_text().split())
    assert {"build", ".venv"} <= ignored


def test_commands_exist():
    (choices,) = re.findall(r'"what", choices=\[(.*?)\]', (ROOT / "utils" / "dev").read_text())
    for name in re.findall(r"utils/dev (\w+)(?! utils)", TEXT):
        assert name == "utils" or f'"{name}"' in choices


def test_stages_are_those_that_are_named():
    stages = set(re.findall(r"^FROM \S+ AS (\w+)", TEXT, re.M))
    named = set(re.findall(r"--target (\w+)|--from=(\w+)|^FROM (?!\$)(\w+) AS", TEXT, re.M))
    assert {name for names in named for name in names if name} <= stages
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"--target (\w+)", page)) <= stages


def test_release_of_llvm():
    (pinned,) = re.findall(r"^ARG LLVM=(\S+)", TEXT, re.M)
    query = ["dpkg-query", "-W", "-f=${Version}", "llvm-22-dev"]
    assert subprocess.run(query, capture_output=True, text=True, check=True).stdout == pinned
