"""Packages that ship models, by their own code, with Sardonyx in the place of onnxruntime: equal results.

Each has a virtual environment in build/packages that pip fills once. CI runs a few; SARDONYX_PACKAGES=all runs all,
and a list of names these.
"""

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from packages import PACKAGES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release")).parent / "packages"
WANTED = os.environ.get("SARDONYX_PACKAGES", "")


def is_wanted(package):
    return package.ci if not WANTED else WANTED == "all" or package.name in WANTED.split(",")


def environment(package):
    """The interpreter of the package's environment, made if it is not there as the table asks for it."""
    folder = ENVIRONMENTS / package.name
    python, stamp = folder / "bin" / "python", folder / "installed"
    constraints = HERE / "constraints.txt"
    key = hashlib.sha256(constraints.read_bytes() + repr(package).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != key:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", constraints]
        if package.requirements:
            subprocess.run([*pip, *package.requirements], check=True)
        subprocess.run([*pip, *(["--no-deps"] if package.alone else []), package.name], check=True)
        stamp.write_text(key)
    return python


def results(package, engine, folder):
    file = folder / f"{engine}.pickle"
    paths = [str(HERE)] + ([os.environ["PYTHONPATH"]] if engine == "sardonyx" else [])
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    command = [environment(package), HERE / "run_pipeline.py", engine, package.pipeline, file]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{engine}:\n{done.stderr[-3000:]}"
    with open(file, "rb") as data:
        return pickle.load(data)


def compare(mine, theirs, tolerance, place):
    """Numbers within the tolerance; whatever else is equal."""
    assert type(mine) is type(theirs), place
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys(), place
        for key in theirs:
            compare(mine[key], theirs[key], tolerance, f"{place}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), f"{place}: {mine} instead of {theirs}"
        for i, (a, b) in enumerate(zip(mine, theirs)):
            compare(a, b, tolerance, f"{place}[{i}]")
    elif isinstance(theirs, (np.ndarray, np.floating, float)):
        np.testing.assert_allclose(mine, theirs, tolerance, tolerance, err_msg=place)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype, place
    else:
        assert mine == theirs, f"{place}: {mine!r} instead of {theirs!r}"


@pytest.mark.parametrize("package", filter(is_wanted, PACKAGES), ids=lambda package: package.name)
def test_package(package, tmp_path):
    theirs = results(package, "onnxruntime", tmp_path)
    mine = results(package, "sardonyx", tmp_path)
    assert mine["runs"] == theirs["runs"] > 0
    compare(mine["values"], theirs["values"], package.tolerance, package.name)
