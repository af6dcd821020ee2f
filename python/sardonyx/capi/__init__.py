"""onnxruntime's names below its Python API, for programs that import them. Its modules are imported when they are asked for."""

import importlib

_MODULES = (
    "_pybind_state", "build_and_package_info", "onnxruntime_inference_collection", "onnxruntime_pybind11_state",
    "onnxruntime_validation",
)  # fmt: skip


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"sardonyx.capi.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
