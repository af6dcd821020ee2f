"""The assembly of a sample of kernels is what test/Target/assembly.txt says; a commit that changes it changes the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "utils" / "assembly.py"


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
