"""The names of onnxruntime's extension: the same classes as the package's, and those below them.

What Sardonyx has not (schemas of operators, packing of weights by a few bits) is no attribute: to import it raises an
ImportError.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from sardonyx._adapters import AdapterFormat, LoraAdapter
from sardonyx._binding import OrtValueVector, SessionIOBinding
from sardonyx._devices import (
    ArenaExtendStrategy,
    OrtAllocatorType,
    OrtArenaCfg,
    OrtDevice,
    OrtDeviceMemoryType,
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
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from sardonyx._native_session import NativeSession as InferenceSession
from sardonyx._run_options import RunOptions
from sardonyx._running import (
    API_VERSION,
    ModelMetadata,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    has_collective_ops,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from sardonyx._values import OrtSparseFormat, OrtValue, SparseCooView, SparseCsrView, SparseTensor, copy_tensors
from sardonyx.errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)

if TYPE_CHECKING:
    from sardonyx import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        ModelCompiler,
        OrtCompileApiFlags,
        OrtEpAssignedNode,
        OrtEpAssignedSubgraph,
        OrtEpContextData,
        OrtEpContextDataBuffer,
        OrtExternalInitializerInfo,
        SessionOptions,
        set_global_thread_pool_sizes,
    )

# What needs the compiler, which is loaded when one of these names is first used.
_COMPILER = (
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "ModelCompiler", "OrtCompileApiFlags", "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph", "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExternalInitializerInfo", "SessionOptions",
    "set_global_thread_pool_sizes",
)  # fmt: skip

__all__ = [
    "AdapterFormat", "ArenaExtendStrategy", "DeviceReset", "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder",
    "Fail", "GraphOptimizationLevel", "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf",
    "LoraAdapter", "ModelCompiler", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata", "ModelRequiresCompilation",
    "NoModel", "NoSuchFile", "NodeArg", "NotFound", "NotImplemented", "OrtAllocatorType", "OrtArenaCfg",
    "OrtCompileApiFlags", "OrtDevice", "OrtDeviceMemoryType", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
    "OrtEpContextData", "OrtEpContextDataBuffer", "OrtEpDevice", "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtSyncStream", "OrtValue", "OrtValueVector", "RunOptions",
    "RuntimeException", "SessionIOBinding", "SessionOptions", "SparseCooView", "SparseCsrView", "SparseTensor",
    "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2", "disable_telemetry_events",
    "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_default_session_options", "get_device", "get_ep_devices", "get_version_string", "has_collective_ops",
    "is_dlpack_uint8_tensor", "kNextPowerOfTwo", "kSameAsRequested", "register_execution_provider_library",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
    "unregister_execution_provider_library",
]  # fmt: skip

kNextPowerOfTwo = ArenaExtendStrategy.kNextPowerOfTwo
kSameAsRequested = ArenaExtendStrategy.kSameAsRequested


def _find(name: str):
    if name not in _COMPILER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; Sardonyx stands in onnxruntime's place")
    import sardonyx

    value = globals()[name] = getattr(sardonyx, name)
    return value


if not TYPE_CHECKING:  # what knows the names from above, and is to find others wrong
    __getattr__ = _find


def get_version_string() -> str:
    """The release of onnxruntime whose names these are."""
    return API_VERSION


def get_default_session_options() -> SessionOptions:
    """New options."""
    return _find("SessionOptions")()


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ]  # fmt: skip


_UNSIGNED = 1  # DLPack's number of the kind of type


def is_dlpack_uint8_tensor(dlpack_tensor) -> bool:
    """Whether a DLPack capsule holds bytes, which may stand for booleans. Raises `ValueError` for another object."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(pointer_of(dlpack_tensor, b"dltensor"))
    return (tensor.code, tensor.bits, tensor.lanes) == (_UNSIGNED, 8, 1)
