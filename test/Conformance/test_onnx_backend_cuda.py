"""ONNX's backend suite on a GPU: kernels in PTX, the host program, copies.

Where `SARDONYX_CUDA_DRIVER` names no driver, it is the tree's own, which interprets PTX (tools/fakecuda), so that no
GPU is needed. What `passing.txt` names must pass here as well, but for what `not_on_cuda.txt` names with its reason,
which must be refused. Every 20th case runs, or with SARDONYX_TEST_CUDA=all each of them.

Networks of which the interpreter would take minutes are left to machines with a GPU.
"""

import os
import warnings
from pathlib import Path

import pytest
from test_onnx_backend import CASES, PASSING, UNPASSABLE, Runner, materialize, rtol_on_devices

BUILD = Path(os.environ.get("SARDONYX_BUILD", Path(__file__).parents[2] / "build/release"))
os.environ.setdefault("SARDONYX_CUDA_DRIVER", str(BUILD / "lib/libsdx-fakecuda.so"))

import sardonyx  # noqa: E402
import sardonyx.backend  # noqa: E402

IS_FAKE = "fakecuda" in os.environ["SARDONYX_CUDA_DRIVER"]
ALL = os.environ.get("SARDONYX_TEST_CUDA", "") == "all"
# "CASE: why it cannot be" in each line.
REFUSED = dict(
    line.split(": ", 1)
    for line in Path(__file__).with_name("not_on_cuda.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def is_network(name):
    """Whether the case is a whole network (ONNX's models)."""
    case = CASES[name]
    return case.model is None and (case.model_dir is None or case.kind == "real")


NAMES = [name for name in sorted(PASSING - UNPASSABLE) if not (IS_FAKE and is_network(name))]


@pytest.mark.parametrize("name", NAMES if ALL else NAMES[::20])
def test_case(name):
    case = CASES[name]
    model, data_sets = materialize(case)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    # Strings, sequences, images and numpy's random numbers are the processor's.
    options.add_provider("CUDAExecutionProvider", {})
    options.add_provider("CPUExecutionProvider", {})
    try:
        with warnings.catch_warnings():
            # Models that the processor computes as a whole are told of.
            warnings.filterwarnings("error", message=".*runs on the CPU")
            prepared = sardonyx.backend.prepare(model, sess_options=options)
        answers = [list(prepared.run(inputs)) for inputs, _ in data_sets]
    except (NotImplementedError, UserWarning) as refusal:
        assert name in REFUSED, f"refused: {refusal}"
        return
    rtol = rtol_on_devices(name)
    for (_, expected), outputs in zip(data_sets, answers):
        assert len(outputs) == len(expected)
        Runner.assert_similar_outputs(expected, outputs, rtol=rtol, atol=case.atol)
    assert name not in REFUSED, f"{name} passes: take it out of not_on_cuda.txt"


def test_the_list_names_cases():
    assert not REFUSED.keys() - PASSING
    assert all(REFUSED.values())
