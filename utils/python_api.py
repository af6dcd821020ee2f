#!/usr/bin/env python3
"""Compares sardonyx's Python interface with onnxruntime's, name by name, in docs/PythonAPI.md.

    python_api.py            writes the page
    python_api.py --check    exits with 1 if it is not what would be written

The names are those of utils/onnxruntime_names.txt; `python_api.py --names PYTHON` reads them anew from an
interpreter that has onnxruntime. What a name does is looked up in the module that is imported; what is not there must
have its reason in the table below.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import sardonyx
from sardonyx import _options

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "PythonAPI.md"
NAMES = ROOT / "utils" / "onnxruntime_names.txt"

COLLECT = """
import onnxruntime as o, types
special = ("__array__", "__dlpack__", "__dlpack_device__")
classes = ("InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding", "NodeArg", "ModelMetadata",
           "SparseTensor", "OrtDevice")
print(f"# The public names of onnxruntime {o.__version__}'s Python module.")
for name in classes:
    c = getattr(o, name)
    for n in dir(c):
        if not n.startswith("_") or name == "OrtValue" and n in special and n in vars(c):
            print(f"{name}.{n}")
internal = ("annotations", "package_name", "version", "cuda_version", "import_capi_exception", "print_debug_info")
for n in dir(o):
    if not n.startswith("_") and n not in internal and not isinstance(getattr(o, n), types.ModuleType):
        print(n)
"""

DEVICES = "there is one device, the CPU"
CPU_ONLY = "there is one execution provider, the CPU"
# Why a name of onnxruntime's is not here.
ABSENT = {
    "InferenceSession.create_ortvalue_from_shape_and_type": "use `OrtValue.ortvalue_from_shape_and_type`",
    "InferenceSession.get_input_epdevices": DEVICES,
    "InferenceSession.get_input_memory_infos": DEVICES,
    "InferenceSession.get_output_memory_infos": DEVICES,
    "InferenceSession.get_profiling_start_time_ns": "times in a trace count from its first step",
    "InferenceSession.get_provider_graph_assignment_info": CPU_ONLY,
    "InferenceSession.get_tuning_results": "code is made for the model, not tuned",
    "InferenceSession.set_tuning_results": "code is made for the model, not tuned",
    "InferenceSession.release_captured_graph": "no graphs are captured",
    "InferenceSession.run_with_ortvaluevector": "use `run_with_ort_values`, or `run` with `out`",
    "InferenceSession.set_ep_dynamic_options": CPU_ONLY,
    "SessionOptions.add_external_initializers_from_files_in_memory": "use `add_external_initializers`",
    "SessionOptions.add_provider": CPU_ONLY,
    "SessionOptions.add_provider_for_devices": CPU_ONLY,
    "SessionOptions.has_providers": CPU_ONLY,
    "SessionOptions.clear_ep_context_data_read_func": CPU_ONLY,
    "SessionOptions.set_ep_context_data_read_func": CPU_ONLY,
    "SessionOptions.set_load_cancellation_flag": "use `compile_timeout`; ^C ends loading, too",
    "SessionOptions.set_provider_selection_policy": CPU_ONLY,
    "SessionOptions.set_provider_selection_policy_delegate": CPU_ONLY,
    "RunOptions.add_active_adapter": "no LoRA adapters",
    "SparseTensor.as_blocksparse_view": "no blocks",
    "SparseTensor.to_cuda": DEVICES,
    "OrtDevice.device_mem_type": DEVICES,
    "OrtDevice.device_vendor_id": DEVICES,
    "AdapterFormat": "no LoRA adapters",
    "LoraAdapter": "no LoRA adapters",
    "ExecutionOrder": "the compiler chooses the order",
    "ModelCompiler": "`sardonyx.build` makes files that need no compiler",
    "OrtCompileApiFlags": "`sardonyx.build` makes files that need no compiler",
    "SessionIOBinding": "use `InferenceSession.io_binding`",
    "copy_tensors": "use `OrtValue.update_inplace`",
    "create_and_register_allocator": "memory is planned when the model is compiled",
    "create_and_register_allocator_v2": "memory is planned when the model is compiled",
    "OrtAllocatorType": "memory is planned when the model is compiled",
    "OrtArenaCfg": "memory is planned when the model is compiled",
    "OrtMemType": DEVICES,
    "OrtMemoryInfo": DEVICES,
    "OrtMemoryInfoDeviceType": DEVICES,
    "OrtDeviceMemoryType": DEVICES,
    "OrtDeviceVendorId": DEVICES,
    "OrtExternalInitializerInfo": "use `add_external_initializers`",
    "disable_telemetry_events": "nothing is ever sent",
    "enable_telemetry_events": "nothing is ever sent",
    "get_ep_devices": DEVICES,
    "has_collective_ops": CPU_ONLY,
    "preload_dlls": DEVICES,
    "register_execution_provider_library": CPU_ONLY,
    "unregister_execution_provider_library": CPU_ONLY,
}
ABSENT_GROUPS = {"OrtEp": CPU_ONLY, "OrtHardware": DEVICES, "OrtExecutionProvider": CPU_ONLY, "OrtSync": DEVICES}
# What is there and does less than the name says.
NOTES = {
    "RunOptions.only_execute_path_to_fetches": "no effect: a run computes all outputs of the model",
    "RunOptions.add_run_config_entry": "`memory.enable_memory_arena_shrinkage` has an effect",
    "RunOptions.log_severity_level": "no effect: nothing is logged",
    "RunOptions.log_verbosity_level": "no effect: nothing is logged",
    "RunOptions.logid": "no effect: nothing is logged",
    "SessionOptions.logid": "no effect: nothing is logged",
    "SessionOptions.add_session_config_entry": "kept; no entry has an effect",
    "SessionOptions.use_deterministic_compute": "results never depend on the order of threads",
    "SessionOptions.use_per_session_threads": "all sessions share the threads of the process",
    "InferenceSession.set_providers": "no effect: " + CPU_ONLY,
    "InferenceSession.disable_fallback": "no effect: " + CPU_ONLY,
    "InferenceSession.enable_fallback": "no effect: " + CPU_ONLY,
    "InferenceSession.get_overridable_initializers": "none: initializers are constants, see `SessionOptions.add_initializer`",
    "IOBinding.synchronize_inputs": "nothing to wait for",
    "IOBinding.synchronize_outputs": "nothing to wait for",
    "OrtSparseFormat": "for `SparseTensor`, which no model takes",
    "SparseTensor": "a container; models take dense tensors",
    "set_default_logger_severity": "no effect: nothing is logged",
    "set_default_logger_verbosity": "no effect: nothing is logged",
    "set_global_thread_pool_sizes": "no effect: `intra_op_num_threads` says how many threads a run takes",
    "set_seed": "no effect: seeds are the model's",
}

HEAD = """# Python's names beside onnxruntime's

Made by `utils/python_api.py`; a test compares. `import sardonyx as onnxruntime` is meant to be all that a program has to
change. A name that is there does what onnxruntime's does, unless a note says otherwise; an option that has no effect is
taken, and says so once by a warning when it is set to ask for something; a name that is no option raises `AttributeError`.
What sardonyx has besides is in the docstrings of `SessionOptions`, `RunOptions`, `run`, `load`, `build`, `compile` and `inspect`.

{counts}
"""


def instance(name):
    if name == "SessionOptions":
        return sardonyx.SessionOptions()
    return sardonyx.RunOptions() if name == "RunOptions" else getattr(sardonyx, name)


def is_there(name):
    owner, _, member = name.rpartition(".")
    if not owner:
        return hasattr(sardonyx, name)
    if owner in ("NodeArg", "ModelMetadata"):  # attributes of objects that sessions give
        names = getattr(sardonyx, owner).__init__.__code__.co_names
        return member in names
    return hasattr(instance(owner), member)


def reason(name):
    for group, why in ABSENT_GROUPS.items():
        if name.startswith(group):
            return why
    return ABSENT.get(name)


def note(name):
    owner, _, member = name.rpartition(".")
    if owner == "SessionOptions" and member in _options._WITHOUT_EFFECT:
        return f"no effect: {_options._WITHOUT_EFFECT[member][1]}"
    return NOTES.get(name, "")


def table(names):
    rows, there = [], 0
    for name in names:
        if is_there(name):
            if reason(name):
                raise SystemExit(f"{name} is there, and is said to be absent")
            there += 1
            rows.append(f"| `{name}` | yes | {note(name)} |")
        elif why := reason(name):
            rows.append(f"| `{name}` | no | {why} |")
        else:
            raise SystemExit(f"{name} is not there, and nothing says why")
    return rows, there


def page():
    lines = NAMES.read_text().splitlines()
    names = lines[1:]
    unknown = {*ABSENT, *NOTES} - set(names)
    if unknown:
        raise SystemExit(f"onnxruntime has no {', '.join(sorted(unknown))}")
    version = lines[0].split("onnxruntime ")[1].split("'")[0]
    rows, there = table(names)
    counts = f"Of {len(names)} public names of onnxruntime {version}, {there} are there."
    return "\n".join([HEAD.format(counts=counts), "| name | | |", "|---|---|---|", *rows, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--names", metavar="PYTHON")
    arguments = parser.parse_args()
    if arguments.names:
        found = subprocess.run([arguments.names, "-c", COLLECT], capture_output=True, text=True, check=True).stdout
        NAMES.write_text(found)
    text = page()
    if not arguments.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what utils/python_api.py makes")


if __name__ == "__main__":
    main()
