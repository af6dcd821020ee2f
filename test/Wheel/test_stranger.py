"""What one does who has never seen Sardonyx: README's commands, in a bare folder, up to a picture that is classified.

The folder has the repository's examples and the wheels that README's first command makes; there is a new virtual environment, PATH has
that and the system's programs, and the build, its sources and LLVM are hidden.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEELS = Path(os.environ.get("SARDONYX_WHEELS", "nowhere"))
pytestmark = pytest.mark.skipif("SARDONYX_WHEELS" not in os.environ, reason="made by `utils/dev wheel`")
MOST = 5  # commands, from a clone to an answer
# Run as root in namespaces of its own, or as root of one's own user: all that a stranger has not.
HIDE = """for folder in /usr/lib/llvm-22 "$0"/build "$0"/python "$0"/lib "$0"/.venv; do mount -t tmpfs none "$folder" || exit 1; done
for file in /usr/lib/*/libLLVM* /usr/lib/*/libMLIR*; do [ ! -e "$file" ] || mount --bind /dev/null "$file" || exit 1; done
exec "$@" """


def commands():
    """README's from the installation to the first answer, and that answer."""
    text = (ROOT / "README.md").read_text()
    start, end = text.index("## Install\n"), text.index("## Quick start\n")
    install = re.findall(r"```sh\n(.*?)```", text[start:end], re.S)[0]
    ask, answer = re.search(r"```sh\n(.*?)```\s*```text\n(.*?)```", text[end:], re.S).groups()
    lines = [line.split("  #")[0].strip() for line in (install + ask).splitlines()]
    return [line for line in lines if line], answer


def hidden(command):
    for flags in (["-m"], ["-Urm"]):
        isolated = ["unshare", *flags, "sh", "-c", HIDE, ROOT]
        if not subprocess.run([*isolated, "true"], capture_output=True).returncode:
            return [*isolated, *command]
    pytest.skip("no folder can be hidden here (unshare -m)")


def test_from_readme_to_a_picture(tmp_path):
    lines, answer = commands()
    assert lines[0] == "utils/dev wheel" and len(lines) <= MOST, lines
    # What a clone has of that, and what the first command has made.
    place = tmp_path / "sardonyx"
    shutil.copytree(ROOT / "examples", place / "examples")
    shutil.copytree(WHEELS, place / "build" / "wheel" / "dist")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment = {"PATH": f"{tmp_path / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    said = ""
    for line in lines[1:]:
        done = subprocess.run(hidden(["bash", "-euc", line]), cwd=place, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        said = done.stdout
    assert said == answer and said.startswith("7")
    # The command is there, and nothing of the build was used.
    done = subprocess.run(hidden(["sardonyx", "run", "examples/digits/digits.onnx", "-q"]), cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [path for path in place.rglob("*.pth") if str(ROOT) in path.read_text()]
