"""Runs models on a CUDA device that libsdx-fakecuda.so stands for: in a process of its own, since a process has one driver."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
SCRIPT = """
import pickle, sys
import sardonyx

model, feeds, settings = pickle.load(sys.stdin.buffer)
options = sardonyx.SessionOptions()
for name, value in settings.items():
    setattr(options, name, value)
session = sardonyx.InferenceSession(model, options, providers=["CUDAExecutionProvider"])
results = [session.run(None, feed) for feed in feeds]
sys.stdout.buffer.write(pickle.dumps((results, session.device_use)))
"""


def run_on_device(model, feeds, **settings):
    """The outputs of a model for each of `feeds`, all by one session with these options. Nothing of it is computed by the
    processor."""
    return run_and_count(model, feeds, **settings)[0]


def run_and_count(model, feeds, **settings):
    """These outputs, and what the last run took of the device."""
    driver = str(BUILD / "lib" / "libsdx-fakecuda.so")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=pickle.dumps((model.SerializeToString(), feeds, settings)),
        capture_output=True,
        env={**os.environ, "SARDONYX_CUDA_DRIVER": driver},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)
