"""Sardonyx compiles ONNX models and runs them.

    import sardonyx
    session = sardonyx.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": array})

The names are onnxruntime's. `sardonyx.compile` gives the compiler's intermediate forms as text;
`sardonyx.backend` is the interface of onnx.backend; `sardonyx.install_as_onnxruntime` has other packages, which
import onnxruntime, use Sardonyx.
"""

import atexit
import importlib
import importlib.util
import threading
from typing import TYPE_CHECKING

from . import errors
from ._adapters import AdapterFormat, LoraAdapter
from ._binding import IOBinding, SessionIOBinding
from ._devices import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtEpDevice,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSyncStream,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    get_ep_devices,
    preload_dlls,
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from ._run_options import RunOptions
from ._running import (
    BuiltModel,
    ModelMetadata,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    load,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from ._runtime import __version__
from ._runtime import open_compiler_libraries as _open_compiler_libraries
from ._values import OrtSparseFormat, OrtValue, SparseTensor, copy_tensors
from .errors import Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented

if TYPE_CHECKING:
    from ._as_onnxruntime import install_as_onnxruntime
    from ._compiling import (
        ModelCompiler,
        OrtCompileApiFlags,
        OrtEpAssignedNode,
        OrtEpAssignedSubgraph,
        OrtEpContextData,
        OrtEpContextDataBuffer,
        OrtExternalInitializerInfo,
    )
    from ._custom import (
        CustomOps,
        TensorType,
        clear_custom_ops,
        register_custom_functions,
        register_custom_mlir,
        register_custom_op,
        register_custom_ops_library,
    )
    from ._options import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        SessionOptions,
        set_global_thread_pool_sizes,
    )
    from ._sardonyx import measure_peak_gflops, phases
    from ._session import InferenceSession, build, compile, inspect

# What needs the compiler, whose libraries are loaded when one of these names is first used: models that were built
# ahead of time do without.
_COMPILER = {
    "_compiling": (
        "ModelCompiler", "OrtCompileApiFlags", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpContextData",
        "OrtEpContextDataBuffer", "OrtExternalInitializerInfo",
    ),
    "_custom": (
        "CustomOps", "TensorType", "clear_custom_ops", "register_custom_functions", "register_custom_mlir",
        "register_custom_op", "register_custom_ops_library",
    ),
    "_options": (
        "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "SessionOptions", "set_global_thread_pool_sizes",
    ),
    "_sardonyx": ("measure_peak_gflops", "phases"),
    "_session": ("InferenceSession", "build", "compile", "inspect"),
}  # fmt: skip
_HOME = {name: module for module, names in _COMPILER.items() for name in names}
# It imports importlib.metadata, which takes longer than the whole package.
_HOME["install_as_onnxruntime"] = "_as_onnxruntime"

__all__ = [
    "AdapterFormat", "BuiltModel", "CustomOps", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel",
    "IOBinding", "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "LoraAdapter", "ModelCompiler",
    "ModelMetadata", "NoSuchFile", "NodeArg", "NotImplemented", "OrtAllocatorType", "OrtArenaCfg", "OrtCompileApiFlags",
    "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
    "OrtEpContextData", "OrtEpContextDataBuffer", "OrtEpDevice", "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtSyncStream", "OrtValue", "RunOptions", "SessionIOBinding",
    "SessionOptions", "SparseTensor", "TensorType", "__version__", "build", "clear_custom_ops", "compile", "copy_tensors",
    "create_and_register_allocator", "create_and_register_allocator_v2", "disable_telemetry_events",
    "enable_telemetry_events", "errors", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_ep_devices", "get_version_string", "has_collective_ops", "inspect", "install_as_onnxruntime", "load",
    "measure_peak_gflops", "phases", "preload_dlls", "register_custom_functions", "register_custom_mlir",
    "register_custom_op", "register_custom_ops_library", "register_execution_provider_library",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
    "unregister_execution_provider_library",
]  # fmt: skip


class _Imports:
    """Imports of the compiler that are under way.

    An interpreter that ends also ends its daemon threads, which an extension that is being initialised does not
    survive: it waits for them, ten seconds at most, and lets no other begin.
    """

    def __init__(self):
        self.changed, self.count, self.is_over = threading.Condition(), 0, False
        atexit.register(self.finish)

    def __enter__(self):
        with self.changed:
            if self.is_over:
                raise errors.Fail("the process is ending")
            self.count += 1

    def __exit__(self, *error):
        with self.changed:
            self.count -= 1
            self.changed.notify_all()

    def finish(self):
        with self.changed:
            self.is_over = True
            self.changed.wait_for(lambda: self.count == 0, timeout=10)


_imports = _Imports()


def _find(name: str):
    with _imports:
        return _import(name)


def _import(name: str):
    # Also what `from . import _sardonyx` of the other modules asks first.
    if name == "_sardonyx" and (compiler := importlib.util.find_spec(f".{name}", __name__)) and compiler.origin:
        _open_compiler_libraries(compiler.origin)
    if name in _COMPILER or name == "capi":
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # what knows the names from above, and is to find others wrong
    __getattr__ = _find


def __dir__():
    return sorted({*globals(), *_HOME})
