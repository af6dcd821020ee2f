"""Sardonyx compiles ONNX models and runs them.

    import sardonyx
    session = sardonyx.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": array})

The names are onnxruntime's. `sardonyx.compile` gives the compiler's intermediate forms as text;
`sardonyx.backend` is the interface of onnx.backend.
"""

import importlib
import importlib.util

from . import errors
from ._run_options import RunOptions
from ._running import (
    BuiltModel,
    IOBinding,
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
from ._values import OrtDevice, OrtSparseFormat, OrtValue, SparseTensor, copy_tensors
from .errors import Fail, InvalidArgument, InvalidGraph, NoSuchFile, NotImplemented

# What needs the compiler, whose libraries are loaded when one of these names is first used: models that were built
# ahead of time do without.
_COMPILER = {
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

__all__ = [
    "BuiltModel", "Fail", "IOBinding", "InvalidArgument", "InvalidGraph", "ModelMetadata", "NoSuchFile", "NodeArg",
    "NotImplemented", "OrtDevice", "OrtSparseFormat", "OrtValue", "RunOptions", "SparseTensor", "__version__",
    "copy_tensors", "errors", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "has_collective_ops", "load", "set_default_logger_severity", "set_default_logger_verbosity",
    "set_seed", *_HOME,
]  # fmt: skip


def __getattr__(name):
    # Also what `from . import _sardonyx` of the other modules asks first.
    if name == "_sardonyx" and (compiler := importlib.util.find_spec(f".{name}", __name__)):
        _open_compiler_libraries(compiler.origin)
    if name in _COMPILER:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOME})
