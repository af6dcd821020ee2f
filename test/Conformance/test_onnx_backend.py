"""ONNX's backend suite through sardonyx.backend.

Every case that `passing.txt` names must pass, and the list only grows: a case that passes
without being named fails here until it is added. Every other case must be refused
(NotImplementedError): no case may compute a wrong result or crash.

The code is the machine's own unless SARDONYX_TEST_CPU names another processor, as
`utils/dev test --cpu` does. Every sixth case runs compiled for narrower vectors too.
"""

import glob
import os
import signal
import warnings
from pathlib import Path

import onnx
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor

import sardonyx
import sardonyx.backend

CPU = os.environ.get("SARDONYX_TEST_CPU", "")
NARROWER = [] if CPU else ["haswell", "x86-64"]  # 256 and 128 bits
KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator", "real"]
SECONDS = 120
# With SARDONYX_CHECK_BOUNDS=1, code looks at every index before it accesses memory.
CHECK_BOUNDS = os.environ.get("SARDONYX_CHECK_BOUNDS", "0") not in ("", "0")
PASSING = frozenset(Path(__file__).with_name("passing.txt").read_text().split())
# Compared with another program's random numbers, or with an expected output that does
# not match the case's own: no engine can pass them.
UNPASSABLE = frozenset(
    ["test_loop16_seq_none"]
    + [f"test_bernoulli{kind}{body}" for kind in ("", "_double", "_seed") for body in ("", "_expanded")]
)


def load_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for kind in KINDS for case in load_model_tests(kind=kind)}


CASES = load_cases()


def read_values(pattern, infos):
    values = []
    for info, path in zip(infos, sorted(glob.glob(pattern), key=lambda p: int(p.rsplit("_", 1)[1][:-3]))):
        Runner._load_proto(None, path, values, info.type)  # uses no self
    return values


def rtol_on_devices(name):
    """The relative tolerance of a case on a GPU: between the products of attention ONNX's reference rounds scores and
    probabilities to f16, the kernel does not."""
    return max(CASES[name].rtol, 2e-3) if "attention" in name and "fp16" in name else CASES[name].rtol


def materialize(case):
    """(model, [(inputs, expected outputs), ...]) as the official runner feeds them."""
    if case.model is not None:
        return case.model, [tuple([_normalize_tensor(v) for v in part] for part in pair) for pair in case.data_sets]
    if case.model_dir is None:  # a light model: the inputs are made up, the outputs lie beside it
        path = Path(onnx.__file__).parent.parent / case.url
        model = onnx.load(path)
        held = {tensor.name for tensor in model.graph.initializer}
        feeds = [Runner.generate_dummy_data(v, name=case.name) for v in model.graph.input if v.name not in held]
        return model, [(feeds, read_values(f"{path.with_suffix('')}_output_*.pb", model.graph.output))]
    model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    folders = sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*")))
    return model, [
        (
            read_values(f"{folder}/input_*.pb", model.graph.input),
            read_values(f"{folder}/output_*.pb", model.graph.output),
        )
        for folder in folders
    ]


@pytest.fixture(autouse=True)
def time_limit():
    def expired(signum, frame):
        raise TimeoutError(f"no answer within {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def prepare(model, cpu):
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    options.cpu, options.check_bounds = cpu, CHECK_BOUNDS
    return sardonyx.backend.prepare(model, sess_options=options)


def check(name, cpu):
    case = CASES[name]
    model, data_sets = materialize(case)
    try:
        prepared = prepare(model, cpu)
        answers = [list(prepared.run(inputs)) for inputs, _ in data_sets]
    except NotImplementedError as refusal:
        assert name not in PASSING, f"refused: {refusal}"
        assert str(refusal), "a refusal says why"
        return
    if name in UNPASSABLE:
        return
    for (_, expected), outputs in zip(data_sets, answers):
        assert len(outputs) == len(expected)
        Runner.assert_similar_outputs(expected, outputs, rtol=case.rtol, atol=case.atol)
    assert name in PASSING, f"{name} passes: add it to passing.txt"


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name):
    check(name, CPU)


# Two samples without a case in common.
@pytest.mark.parametrize("cpu, name", [(cpu, name) for i, cpu in enumerate(NARROWER) for name in sorted(PASSING)[i::6]])
def test_narrower_vectors(cpu, name):
    check(name, cpu)


def test_the_list_names_cases():
    assert not PASSING - CASES.keys()
