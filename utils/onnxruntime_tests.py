#!/usr/bin/env python3
"""Runs onnxruntime's own Python tests of sessions on the CPU with Sardonyx in onnxruntime's place.

    onnxruntime_tests.py CHECKOUT [--engine onnxruntime] [--files NAME …] [--quantization]

CHECKOUT is a clone of https://github.com/microsoft/onnxruntime. Models that it does not have are made (see
onnxruntime_models.py). Tests that are expected to fail stand in FAILING, with the reason; docs/PythonAPI.md lists them.
Exit status 1 if another one fails, or one of these passes. It is to be run by a Python that has numpy, pytest, parameterized,
ml_dtypes, sympy, and the releases of onnx and onnxruntime that the tests were written for (1.17 and 1.21 for release 1.21),
with build/release/python in PYTHONPATH.

--quantization runs the tests of onnxruntime.quantization instead: onnxruntime makes the models, and Sardonyx runs them
(FAILING_QUANTIZED).
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
REFUSAL = "takes onnxruntime's refusal by its words; here it has others"
BINS = "fails with onnxruntime, too: numpy makes no bins of such a range"
SPLIT = "the model has a Conv of two dimensions, which is refused when it is loaded"
ROUNDING = "wants the scale to be that of onnxruntime's sums, to the last bit"
FAILING_QUANTIZED = {
    "test_calibration.py::test_augment_graph_with_zero_value_dimension": (
        "the model has a Resize with neither scales nor sizes, which is refused when it is loaded"
    ),
    "test_conv_dynamic.py::test_quant_conv_fp16": REFUSAL,
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_p3": REFUSAL,
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_p3_f16": BINS,
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_same": REFUSAL,
    "test_op_matmul.py::test_quantize_matmul_e4m3fn_same_f16": BINS,
    "test_op_split.py::test_quantize_split": SPLIT,
    "test_op_split.py::test_quantize_split_s8s8": SPLIT,
    "test_subgraph.py::test_dynamic_quantization_subgraph": "fetches a model from the network",
    "test_tensor_quant_overrides_option.py::test_qdq_default": ROUNDING,
    "test_tensor_quant_overrides_option.py::test_qdq_default_per_channel": ROUNDING,
}
FAILING = {
    "onnxruntime_test_python.py::test_register_custom_e_ps_library": "no libraries of execution providers are loaded",
    "onnxruntime_test_python.py::test_register_custom_ops_library": (
        "the library is one of onnxruntime's interface; [CustomOps](CustomOps.md) tells of Sardonyx's"
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

# The conftest.py of the tests: takes onnxruntime's place before they import it.
INSTALL = """
import sardonyx
sardonyx.install_as_onnxruntime()
"""
# onnxruntime's own package, whose sessions are Sardonyx's.
SESSIONS = """
import onnxruntime, sardonyx
for name in ("InferenceSession", "SessionOptions", "RunOptions", "GraphOptimizationLevel", "ExecutionMode", "OrtValue"):
    setattr(onnxruntime, name, getattr(sardonyx, name))
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
            passed[name] = False if kinds & {"failure", "error"} else None if "skipped" in kinds else True
            words[name] = next((last_words(child) for child in case if child.tag in ("failure", "error")), "")
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
        folder = args.checkout / "onnxruntime" / "test" / "python" / "quantization"
        files = sorted(str(path.relative_to(folder.parent)) for path in folder.glob("test_*.py"))
    prelude = "" if args.engine == "onnxruntime" else SESSIONS if args.quantization else INSTALL
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
