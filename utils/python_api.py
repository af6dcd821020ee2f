#!/usr/bin/env python3
"""Writes docs/reference/OnnxruntimeNames.md: what Sardonyx does for each name of onnxruntime's Python API.

    python_api.py [--check] [--names]

The names are those of utils/onnxruntime_api.txt, which --names makes anew of the onnxruntime that is installed. Whether a name is
there, and whether an attribute says that it is a hint, is looked up in sardonyx; REMARKS tell the rest. --check compares
the page with what would be written; exit status 1 if they differ.
"""

import argparse
import difflib
import inspect
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import onnxruntime_tests  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "OnnxruntimeNames.md"
NAMES = ROOT / "utils" / "onnxruntime_api.txt"
CLASSES = (
    "InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding", "NodeArg", "ModelMetadata",
    "SparseTensor", "OrtDevice",
)  # fmt: skip
HEAD = """# onnxruntime's Python API

Made by `utils/python_api.py` for the names of onnxruntime {version}, which `utils/onnxruntime_api.txt` lists. "same": it does what
onnxruntime's does. "hint": it is taken as onnxruntime takes it, and asks for a way to the same results that the compiler chooses by
itself. "no effect": it is taken, too, and a warning says once that it does nothing here. "refused": it
raises an exception that says why. "absent": there is no such name. What Sardonyx has beyond these names, their docstrings tell.

"""
TESTS = """`utils/onnxruntime_tests.py CHECKOUT` runs onnxruntime's Python tests of sessions on the CPU with Sardonyx in its place. Of
release 1.21 these do not pass:

"""
QUANTIZED_TESTS = """
With `--quantization` it runs the tests of `onnxruntime.quantization` and of `onnxruntime.transformers.float16`; of release 1.30 these do not
pass:

"""
PLUGINS = "there are no execution providers beside CUDA's and the CPU's"
COMPILED = "`sardonyx build` makes files of models: [Files that need nothing](../howto/AheadOfTime.md)"
ONE_CHOICE = "there is one device to choose"

# (what is done, why), where neither a name's presence nor an attribute's own words tell it.
REMARKS = {
    "InferenceSession.run_async": ("same", "also gives a `concurrent.futures.Future`, which can be awaited, too; `callback` may be left out"),
    "InferenceSession.run_with_ortvaluevector": ("same", "with lists of `OrtValue`"),
    "InferenceSession.set_providers": ("same", "a session keeps those that it was loaded with; names that onnxruntime never had are refused"),
    "InferenceSession.get_overridable_initializers": (
        "same", "adapters and `SessionOptions.add_initializer` give them other values; `run` by itself takes none",
    ),
    "InferenceSession.disable_fallback": ("same", "there is nothing to fall back from"),
    "InferenceSession.enable_fallback": ("same", "there is nothing to fall back from"),
    "InferenceSession.get_provider_graph_assignment_info": ("refused", "nodes are compiled together, all for the CPU"),
    "InferenceSession.release_captured_graph": ("same", "nothing: graphs are captured on GPUs only"),
    "InferenceSession.set_ep_dynamic_options": ("no effect", "the CPU's provider has no such options"),
    "SessionOptions.add_external_initializers_from_files_in_memory": ("same", "the compiled model is not kept on disk"),
    "SessionOptions.add_provider": ("same", "`CUDAExecutionProvider` and `CPUExecutionProvider`; others are refused"),
    "SessionOptions.add_provider_for_devices": ("same", "of the CPU"),
    "SessionOptions.clear_ep_context_data_read_func": ("hint", "models with code of other providers are refused"),
    "SessionOptions.set_ep_context_data_read_func": ("hint", "models with code of other providers are refused"),
    "SessionOptions.set_provider_selection_policy": ("hint", ONE_CHOICE),
    "SessionOptions.set_provider_selection_policy_delegate": ("same", ONE_CHOICE),
    "SessionOptions.add_session_config_entry": (
        "same", "its docstring tells which have an effect; misspelt keys are refused, and a warning says so once of unknown ones",
    ),
    "SessionOptions.add_initializer": ("same", "the tensor is copied, and refused where its type is not the initializer's"),
    "SessionOptions.optimized_model_filepath": ("same", "the model after the phase `onnx`, in ONNX's own operators"),
    "SessionOptions.register_custom_ops_library": ("same", "for libraries of Sardonyx's interface: [CustomOps](../howto/CustomOps.md)"),
    "RunOptions.add_active_adapter": ("same", "the model is compiled for an adapter by its first run"),
    "RunOptions.add_run_config_entry": (
        "same", "`memory.enable_memory_arena_shrinkage`; misspelt keys are refused, and a warning says so once of unknown ones",
    ),
    "OrtValue.ortvalue_from_numpy": ("same", "on the device `cpu`; others are refused"),
    "OrtValue.ortvalue_from_shape_and_type": ("same", "on the device `cpu`; others are refused"),
    "OrtValue.numpy": ("same", "also of bfloat16 and smaller types, with ml_dtypes' dtypes"),
    "OrtValue.from_dlpack": ("same", "also of booleans by DLPack's own type, which onnxruntime refuses"),
    "OrtValue.as_sparse_tensor": ("same", ""),
    "OrtValue.update_inplace": ("same", "refuses another element type, whose bits onnxruntime takes"),
    "IOBinding.bind_output": ("same", "on the device `cpu`; others are refused"),
    "IOBinding.bind_input": ("same", "on the device `cpu`; others are refused"),
    "ModelMetadata.graph_description": ("no effect", "always empty: the compiler keeps no text of a graph"),
    "NodeArg.shape": ("same", "None for a tensor whose rank the model does not give, of which onnxruntime says []"),
    "SparseTensor.sparse_coo_from_numpy": ("same", "no model takes or gives one; indices out of bounds are refused"),
    "SparseTensor.sparse_csr_from_numpy": ("same", "no model takes or gives one; indices out of bounds are refused"),
    "SparseTensor.as_blocksparse_view": ("refused", "no such tensor can be made"),
    "SparseTensor.to_cuda": ("refused", "sparse tensors lie in the CPU's memory only"),
    "OrtDevice.make": ("same", "nothing can be put on another device than `cpu`"),
    "OrtMemoryInfo": ("same", "of the CPU; others are refused"),
    "OrtArenaCfg": ("hint", "memory is planned when the model is compiled"),
    "OrtEpDevice": ("same", "the CPU, and each CUDA device"),
    "OrtSyncStream": ("refused", "the CPU has none"),
    "create_and_register_allocator": ("hint", "memory is planned when the model is compiled"),
    "create_and_register_allocator_v2": ("hint", "memory is planned when the model is compiled"),
    "disable_telemetry_events": ("same", "nothing is told to anybody"),
    "enable_telemetry_events": ("same", "nothing is told to anybody"),
    "get_all_providers": ("same", "what onnxruntime can be built with; there are CUDA's ([GPU](../howto/GPU.md)) and the CPU's"),
    "get_version_string": ("same", "Sardonyx's version; `onnxruntime.get_version_string` gives that of the API"),
    "preload_dlls": ("same", "nothing: there is no library of CUDA's to load"),
    "set_seed": ("no effect", "operators without a seed draw numbers that nobody can foretell"),
    "set_default_logger_verbosity": ("hint", "there is one level of verbose messages"),
    "register_execution_provider_library": ("refused", PLUGINS),
    "unregister_execution_provider_library": ("refused", PLUGINS),
    "ModelCompiler": ("refused", COMPILED),
    **dict.fromkeys(
        ("OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpContextData", "OrtEpContextDataBuffer"),
        ("refused", "a class for `isinstance` of which nothing is made"),
    ),
}  # fmt: skip
# What the module shows of its own making: no part of an API.
NO_API = {
    "capi", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation", "package_name", "print_debug_info",
    "version",
}  # fmt: skip


def public(things):
    return sorted(name for name in things if not name.startswith("_") or name in ("__dlpack__", "__dlpack_device__"))


def installed_names():
    """A line for each name of the onnxruntime that is installed."""
    import onnxruntime

    lines = [onnxruntime.__version__]
    for name in public(dir(onnxruntime)):
        if name in NO_API:
            continue
        value = getattr(onnxruntime, name)
        members = getattr(value, "__members__", None)
        lines.append(name)
        if name in CLASSES:
            lines += [f"{name}.{member}" for member in public(dir(value))]
        elif members:
            lines += [f"{name}.{member}" for member in members]
    return lines


def find(name):
    """(whether sardonyx has it, the thing)."""
    import sardonyx

    owner, _, member = name.partition(".")
    if owner not in dir(sardonyx):
        return False, None
    value = getattr(sardonyx, owner)
    if not member:
        return True, value
    if hasattr(value, member):
        return True, inspect.getattr_static(value, member)
    return False, None


def judge(name):
    """(what is done, why, whether the remarks agree with sardonyx)."""
    there, value = find(name)
    said, why = REMARKS.get(name, ("same" if there else None, ""))
    if hint := getattr(value, "hint", ""):
        return "hint", hint, name not in REMARKS
    owner = name.partition(".")[0]
    if said is None and owner in REMARKS and REMARKS[owner][0] == "absent":
        return *REMARKS[owner], not there
    return said, why, said is not None and there == (said != "absent")


def page():
    version, *names = NAMES.read_text().splitlines()
    wrong = [name for name in names if not judge(name)[2]] + sorted(set(REMARKS) - set(names))
    if wrong:
        raise SystemExit(f"REMARKS are not true of: {', '.join(wrong)}")
    text = HEAD.format(version=version)
    groups = {}
    for name in names:
        owner, _, member = name.partition(".")
        absent = judge(owner)[0] == "absent"
        if owner in CLASSES and member:
            groups.setdefault(owner, []).append(name)
        elif not member and owner not in CLASSES:
            groups.setdefault("The module", []).append(name)
        elif member and not absent:
            groups.setdefault("Enumerations", []).append(name)
    order = [*CLASSES, "The module", "Enumerations"]
    for group in order:
        text += f"## {group}\n\n| name | | |\n|---|---|---|\n"
        for name in groups[group]:
            said, why, _ = judge(name)
            text += f"| `{name}` | {said} | {why} |\n"
        text += "\n"
    return text + own_tests()


def own_tests():
    """The section on onnxruntime's own tests."""
    text = "## onnxruntime's own tests\n\n"
    for head, failing in ((TESTS, onnxruntime_tests.FAILING), (QUANTIZED_TESTS, onnxruntime_tests.FAILING_QUANTIZED)):
        text += head + "| file | test | |\n|---|---|---|\n"
        for name, why in failing.items():
            file, _, test = name.partition("::")
            text += f"| `{file}` | {f'`{test}`' if test else 'all'} | {why} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    if arguments.names:
        NAMES.write_text("\n".join(installed_names()) + "\n")
    made = page()
    if not arguments.check:
        PAGE.write_text(made)
        return 0
    known = PAGE.read_text() if PAGE.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(known.splitlines(True), made.splitlines(True), "known", "made"))
    return int(known != made)


if __name__ == "__main__":
    sys.exit(main())
