"""Scripts on a CUDA device that libsdx-fakecuda.so stands for: each in a process of its own, since a process has one
driver, and must end with status 0 and the words on stderr that are expected."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PREAMBLE = """
import os
import numpy as np
import sardonyx as sdx
from onnx import parser

def model(graph):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}').SerializeToString()

CUDA = ["CUDAExecutionProvider", "CPUExecutionProvider"]
MLP = model("m (float[N,8] x, float[8,4] w) => (float[N,4] y, float[N,8] z) { h = MatMul(x, w)  y = Relu(h)  z = Softmax(x) }")
PRODUCT = model("m (float[N,K] x, float[K,M] w) => (float[N,M] y) { y = MatMul(x, w) }")
X = np.random.default_rng(1).standard_normal((5, 8), dtype=np.float32)
W = np.random.default_rng(2).standard_normal((8, 4), dtype=np.float32)
FEEDS = {"x": X, "w": W}

def load(source=MLP, providers=CUDA, **others):
    return sdx.InferenceSession(source, providers=providers, **others)

def check(results, x=X):
    import onnxruntime as ort
    expected = ort.InferenceSession(MLP).run(None, {"x": x, "w": W})
    for given, right in zip(results, expected):
        np.testing.assert_allclose(given, right, rtol=1e-5, atol=1e-6)

def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError(f"no {kind.__name__}")

class Foreign:
    '''Another library's tensor, in the memory of an OrtValue.'''
    def __init__(self, value):
        self.value, self.streams = value, []
    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.value.__dlpack__()
    def __dlpack_device__(self):
        return self.value.__dlpack_device__()

class Interface:
    def __init__(self, value, **others):
        self.__cuda_array_interface__ = {**value.__cuda_array_interface__, **others}
        self.value = value
"""


@pytest.fixture
def script():
    """Runs a script on the fake driver, which variables of the environment configure."""
    build = os.environ.get("SARDONYX_BUILD")
    driver = Path(build or "", "lib", "libsdx-fakecuda.so")
    if not build or not driver.exists():
        pytest.skip("SARDONYX_BUILD names no build folder")

    def run(text, says="", **environment):
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "SARDONYX_CUDA_DRIVER": str(driver), **environment},
        )
        assert done.returncode == 0, done.stderr
        assert (says in done.stderr) if says else (done.stderr == ""), done.stderr

    return run
