"""Every path and command that the README and docs/ name exists."""

import os
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "dialects").glob("*/*.md"))]
TOP = {path.name for path in ROOT.iterdir()} | {"build"}
OWN_TOOLS = {"onnx-opt", "onnx-translate", "sardonyx"}
SHELL_WORDS = {"cd", "export", ".", "source", "trap", "until"}


def code_spans(text):
    """Inline code and the lines of fenced blocks that are shell."""
    for block in re.findall(r"```(?:sh|shell|bash)\n(.*?)```", text, re.S):
        yield from block.splitlines()
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.S))


def paths(text):
    for span in code_spans(text):
        for word in re.split(r"[\s=,;()\"']+", span):
            word = word.rstrip(".:/")
            if "/" in word and word.split("/")[0] in TOP and not re.search(r"[*{}<>$…]|[A-Z]{4,}\b", word.split("/")[-1]):
                yield word
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        yield "link:" + target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page):
    missing = []
    for name in paths(page.read_text()):
        base = page.parent if name.startswith("link:") else ROOT
        name = name.removeprefix("link:")
        # What another build than the one at hand makes: of wheels, of fuzzers.
        if name.startswith("build/") and not (BUILD.parent / name.split("/")[1]).exists():
            continue
        if not (base / name).exists():
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    missing = []
    for block in re.findall(r"```(?:sh|shell|bash)\n(.*?)```", page.read_text(), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = line.split("#")[0].replace("||", "|").replace("|", " | ").split()
            words = [word for word in words if not re.match(r"[A-Z_]+=", word)]  # variables for the command
            starts = [words[0]] + [words[i + 1] for i, w in enumerate(words[:-1]) if w == "|"] if words else []
            for word in starts:
                if word in OWN_TOOLS:
                    found = (BUILD / "bin" / word).exists()
                elif word.startswith("./") and f"-o {word[2:]} " in page.read_text().replace("\n", " "):
                    found = True  # a program that the page builds
                else:
                    found = (ROOT / word).exists() if "/" in word else shutil.which(word) or word in SHELL_WORDS
                if not found:
                    missing.append(word)
    assert not missing
