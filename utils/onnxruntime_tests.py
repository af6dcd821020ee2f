#!/usr/bin/env python3
"""Runs onnxruntime's own Python tests of sessions on the CPU with Sardonyx in onnxruntime's place.

    onnxruntime_tests.py CHECKOUT [--engine onnxruntime] [--files NAME …] [--quantization]

CHECKOUT is a clone of https://github.com/microsoft/onnxruntime. Models that it does not have are made (see
onnxruntime_models.py). Tests that are expected to fail stand in FAILING, with the reason; docs/reference/OnnxruntimeNames.md lists them.
Exit status 1 if another one fails, or one of these passes. It is to be run by a Python that has numpy, pytest, parameterized,
ml_dtypes, sympy, and the releases of onnx and onnxruntime that the tests were written for (1.17 and 1.21 for release 1.21),
with build/release/python in PYTHONPATH.

--quantization runs the tests of onnxruntime.quantization and of the conversion to float16 instead: Sardonyx makes the models
and runs them (FAILING_QUANTIZED). A checkout of that folder alone is enough; tests for CUDA are left out.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

FILES = (
    "onnxruntime_test_float8.py", "onnxruntime_test_python.py", "onnxruntime_test_python_backend.py",
    "onnxruntime_test_python_backend_mlops.py", "onnxruntime_test_python_iobinding.py", "onnxruntime_test_python_mlops.py",
    "onnxruntime_test_python_nested_control_flow_op.py", "onnxruntime_test_python_sparse_matmul.py",
    "onnxruntime_test_scatternd.py",
)  # fmt: skip
# Tests by file and name, and why Sardonyx does not pass them.
SPARSE = "models take and give no sparse tensors"
REFUSAL = "wants onnxruntime's refusal of a com.microsoft operator that nobody has, by its words; here it has others"
ROUNDING = "wants the scale to be that of onnxruntime's sums, to the last bit"
NO_FAULT = "wants onnxruntime's failure to quantise a model, which is quantised here"
FAILING_QUANTIZED = {
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_p3": REFUSAL,
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_same": REFUSAL,
    "test_op_pad.py::test_static_mode_constant_value_edge_case": "gives `extra_options` a key that there is not, which is refused by name",
    "test_qdq.py::test_matching_bias_scale_allows_fusion": "asks which operators the optimised model has: a QLinearConv is a ConvInteger and what follows",
    "test_static_quantize_runner.py::TestIfGraph::test_calibration_method": NO_FAULT,
    "test_static_quantize_runner.py::TestIfGraph::test_enable_subgraph": NO_FAULT,
    "test_static_quantize_runner.py::TestWhere::test_quant_format": NO_FAULT,
    "test_subgraph.py::test_dynamic_quantization_subgraph": "fetches a model from the network",
    "test_tensor_quant_overrides_option.py::test_qdq_default": ROUNDING,
    "test_tensor_quant_overrides_option.py::test_qdq_default_per_channel": ROUNDING,
}
FAILING = {
    "onnxruntime_test_python.py::test_register_custom_e_ps_library": "no libraries of execution providers are loaded",
    "onnxruntime_test_python.py::test_register_custom_ops_library": (
        "the library is one of onnxruntime's interface; [CustomOps](../howto/CustomOps.md) tells of Sardonyx's"
    ),
    "onnxruntime_test_python_backend_mlops.py": "the file takes example models of `onnxruntime.datasets`, which is not there",
    "onnxruntime_test_python_mlops.py::test_dict_vectorizer": (
        "asks for a `RuntimeError` in onnxruntime's words where a key of a map has another type; here it is an `InvalidArgument`"
    ),
    "onnxruntime_test_python_sparse_matmul.py::test_run_contrib_sparse_mat_mul": SPARSE,
    "onnxruntime_test_python_sparse_matmul.py::test_run_sparse_output_only": SPARSE,
    "onnxruntime_test_python_sparse_matmul.py::test_run_sparse_output_ort_value_vector": SPARSE,
    "onnxruntime_test_scatternd.py::test_scatterels_cpu": (
        "asks which operators the optimised model has: a CastLike has become a Cast"
    ),
    "onnxruntime_test_scatternd.py::test_scatternd_cpu": "the same",
}

# Files whose classes have tests of the same names.
SHARED_NAMES = ("test_static_quantize_runner.py",)

# The conftest.py of the tests: takes onnxruntime's place before they import it.
INSTALL = """
import sardonyx
sardonyx.install_as_onnxruntime()
"""
# What test_float16.py asks of a module that needs torch: whether it lies in onnxruntime's sources. Some tests bound the
# error of a network of random weights, which the first numbers decide.
PARITY = """
import sys, types, numpy
numpy.random.seed(1)
sys.modules["parity_utilities"] = types.ModuleType("parity_utilities")
sys.modules["parity_utilities"].find_transformers_source = lambda *names: False
"""


def last_words(problem):
    """The message of a failure, or what a test file said that could not be imported."""
    said = problem.get("message", "")
    return (problem.text or "").strip().splitlines()[-1] if said == "collection failure" else said


def run(checkout, files, prelude, folder):
    """(name → whether it passed, None where it was skipped; name → what failed) of the tests in these files."""
    from onnxruntime_models import assemble

    tests = checkout / "onnxruntime" / "test"
    for source in (tests / "python").rglob("*.py"):
        target = folder / source.relative_to(tests / "python")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    if (tests / "testdata").exists():
        assemble(tests / "testdata", folder / "testdata")
    (folder / "conftest.py").write_text(prelude)
    environment = dict(os.environ, SARDONYX_CACHE_DIR=str(folder / "cache"))
    passed, words = {}, {}
    for file in files:
        report = folder / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", file]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"{file}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        for case in xml.parse(report).getroot().iter("testcase"):
            kinds = {child.tag for child in case}
            is_file = any(child.get("message") == "collection failure" for child in case)
            name = Path(file).name if is_file else f"{Path(file).name}::{case.get('name')}"
            group = case.get("classname", "").rpartition(".")[2]
            if not is_file and file.endswith(SHARED_NAMES):
                name = f"{Path(file).name}::{group}::{case.get('name')}"
            failed = bool(kinds & {"failure", "error"}) or passed.get(name) is False  # parts of a test follow it
            passed[name] = False if failed else None if "skipped" in kinds else True
            words[name] = next((last_words(child) for child in case if child.tag in ("failure", "error")), words.get(name, ""))
        report.unlink()
    return passed, words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--engine", choices=["sardonyx", "onnxruntime"], default="sardonyx")
    parser.add_argument("--files", nargs="+")
    parser.add_argument("--quantization", action="store_true")
    args = parser.parse_args()
    files = args.files or FILES
    if args.quantization and not args.files:
        folder = args.checkout / "onnxruntime" / "test" / "python"
        files = sorted(str(path.relative_to(folder)) for path in folder.glob("quantization/test_*.py") if "cuda" not in path.name)
        files.append("transformers/test_float16.py")
    prelude = ("" if args.engine == "onnxruntime" else INSTALL) + (PARITY if args.quantization else "")
    with tempfile.TemporaryDirectory() as folder:
        passed, words = run(args.checkout.resolve(), files, prelude, Path(folder))
    counts = {kind: sum(value is kind for value in passed.values()) for kind in (True, False, None)}
    known = {} if args.engine != "sardonyx" else FAILING_QUANTIZED if args.quantization else FAILING
    surprises = [name for name, value in passed.items() if value is False and name not in known]
    surprises += [name for name, value in passed.items() if value and name in known]
    for name in surprises:
        print(f"{'passes' if passed[name] else 'fails '} {name}: {words[name][:200]!r}")
    print(f"{counts[True]} passed, {counts[False]} failed ({len(surprises)} unexpected), {counts[None]} skipped")
    return int(bool(surprises))


if __name__ == "__main__":
    sys.exit(main())
