"""Sardonyx compiles ONNX models and runs them.

    import sardonyx
    session = sardonyx.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": array})

The names are onnxruntime's. `sardonyx.compile` gives the compiler's intermediate forms as text;
`sardonyx.backend` is the interface of onnx.backend.
"""

import atexit

from . import _sardonyx, errors
from ._sardonyx import __version__, measure_peak_gflops, phases
from ._custom import (
    CustomOps,
    TensorType,
    clear_custom_ops,
    register_custom_functions,
    register_custom_mlir,
    register_custom_op,
    register_custom_ops_library,
)
from ._options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import (
    InferenceSession,
    IOBinding,
    ModelMetadata,
    NodeArg,
    OrtValue,
    compile,
    get_all_providers,
    get_available_providers,
    get_device,
    inspect,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from .errors import Fail, InvalidArgument, InvalidGraph, NoSuchFile, NotImplemented

# Threads that still load models must not meet a process that is half gone.
atexit.register(_sardonyx.stop_loading)

__all__ = [
    "CustomOps", "ExecutionMode", "Fail", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InvalidArgument", "InvalidGraph",
    "ModelMetadata", "NoSuchFile", "NodeArg", "NotImplemented", "OrtValue", "RunOptions", "SessionOptions",
    "TensorType", "__version__", "clear_custom_ops", "compile", "errors", "get_all_providers", "get_available_providers", "get_device", "inspect",
    "measure_peak_gflops", "phases", "register_custom_functions", "register_custom_mlir", "register_custom_op",
    "register_custom_ops_library", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]  # fmt: skip
