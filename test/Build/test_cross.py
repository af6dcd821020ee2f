"""Models for other machines, run by an emulator: what they answer."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from onnx.backend.test.runner import _normalize_tensor

import sardonyx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cross  # noqa: E402
from models import network  # noqa: E402

TARGET = "aarch64-linux-gnu"
PASSING = (HERE.parent / "Conformance" / "passing.txt").read_text().split()

if os.uname().machine == "aarch64":
    pytest.skip("it is this machine", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def emulator():
    if shutil.which("qemu-aarch64") is None or not os.path.exists(f"/usr/{TARGET}/lib/libc.a"):
        pytest.fail("qemu-user and g++-aarch64-linux-gnu are missing")


def test_dynamic_program(tmp_path):
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Exp (x) }')
    sardonyx.build(model, tmp_path / "m", target=TARGET)
    x = np.linspace(-5, 5, 37, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    command = ["qemu-aarch64", "-L", f"/usr/{TARGET}", tmp_path / "m", "--input", f"x={tmp_path / 'x.npy'}"]
    subprocess.run([*command, "--output-dir", tmp_path, "--threads", "2"], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.exp(x), rtol=1e-6)


def test_features_are_checked(tmp_path):
    """Code for SVE is refused where there is none, by a sentence."""
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Exp (x) }')
    sardonyx.build(model, tmp_path / "m", target=TARGET, cpus=["neoverse-v1"], static=True)
    done = subprocess.run(["qemu-aarch64", "-cpu", "cortex-a57", tmp_path / "m"], capture_output=True, text=True)
    assert done.returncode == 1 and "of which it lacks" in done.stderr and "sve" in done.stderr, done


def test_weights_are_packed_here(tmp_path):
    model = network()
    x = np.random.default_rng(1).standard_normal((3, 8, 12, 12), np.float32)
    (expected,) = sardonyx.InferenceSession(model).run(None, {"x": x})
    (y,) = cross.prepare(model).run([x])
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def cases():
    from onnx.backend.test.loader import load_model_tests

    warnings.filterwarnings("ignore")
    wanted = set(PASSING[::40])
    return [case for case in load_model_tests(kind="node") if case.name in wanted and case.model is not None]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_conformance(case):
    inputs, outputs = (list(map(_normalize_tensor, values)) for values in case.data_sets[0])
    try:
        answers = cross.prepare(case.model).run(inputs)
    except NotImplementedError as unsupported:
        pytest.skip(str(unsupported))
    for answer, expected in zip(answers, outputs):
        expected = np.asarray(expected)
        assert answer.dtype == expected.dtype and answer.shape == expected.shape
        ours, theirs = (np.asarray(v, np.float64) if v.dtype.kind == "V" else v for v in (answer, expected))
        np.testing.assert_allclose(ours, theirs, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-6))
