"""Compiling grows with the model as the model grows: counted in operations and patterns, not in seconds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "utils"))
from growth_shapes import SHAPES  # noqa: E402

# What twice the model may cost more, as a multiple of what the half did: 2 is linear, 4 quadratic. A little more
# than 2 is n log n, or a first step that is smaller than the others.
FACTOR = 2.6
# An outer loop is tried again when an inner one has changed: patterns by depth^1.6, 25,000 (30 ms) at depth 30.
FACTORS = {"nested-loops": 3.4}

BUILD = os.environ.get("SARDONYX_BUILD", "")


def count_work(model, folder):
    """How many operations the passes are given and how many patterns are tried on the way to the llvm dialect."""
    onnx.save(model, folder / "m.onnx")
    translate = [f"{BUILD}/bin/onnx-translate", "--onnx-to-mlir", folder / "m.onnx", "-o", folder / "m.mlir"]
    subprocess.run(translate, check=True, capture_output=True, timeout=300)
    compile = [f"{BUILD}/bin/onnx-opt", "--compile-to=llvm", "--count-work", folder / "m.mlir", "-o", os.devnull]
    done = subprocess.run(compile, capture_output=True, text=True, timeout=300)
    found = re.search(r"work: (\d+) operations, (\d+) patterns", done.stderr)
    assert done.returncode == 0 and found, done.stderr[-2000:]
    return [int(number) for number in found.groups()]


@pytest.mark.skipif(not os.path.exists(f"{BUILD}/bin/onnx-opt"), reason="SARDONYX_BUILD names no build folder")
@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_linearly(name, tmp_path):
    make, n = SHAPES[name]
    step = max(2, n // 4)
    small, middle, large = (count_work(make(size), tmp_path) for size in (step, 2 * step, 4 * step))
    for what, a, b, c in zip(("operations", "patterns"), small, middle, large, strict=True):
        # Of work that grows linearly, the second half costs as much as the first.
        more = max(b - a, b // 2)
        most = FACTORS.get(name, FACTOR) * more + 200
        assert c - b <= most, f"{what} at {step}, {2 * step} and {4 * step}: {a}, {b}, {c}"
