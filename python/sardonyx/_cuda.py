"""Memory of CUDA devices and the options of their provider. The extension is loaded when somebody asks for a device."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _runtime
from ._arrays import dtype_of, element_type_of
from ._suggest import close_to
from .errors import Fail, InvalidArgument

DeviceTensor = _runtime.DeviceTensor
# What DLPack calls memory of CUDA, the device's and that which moves by itself.
_DLPACK_TYPES = (2, 13)
_BOOL, _UINT8 = 9, 2

# onnxruntime's options of the provider, with its defaults, but for two: graphs are made unless a program says that it wants
# none, since they ask nothing of a model, and products of f32 are not rounded unless it says so.
DEFAULTS = {
    "device_id": "0", "gpu_mem_limit": "18446744073709551615", "user_compute_stream": "0", "has_user_compute_stream": "0",
    "enable_cuda_graph": "1", "arena_extend_strategy": "kNextPowerOfTwo", "cudnn_conv_algo_search": "EXHAUSTIVE",
    "cudnn_conv_use_max_workspace": "1", "cudnn_conv1d_pad_to_nc1d": "0", "do_copy_in_default_stream": "1",
    "enable_skip_layer_norm_strict_mode": "0", "fuse_conv_bias": "0", "prefer_nhwc": "0", "sdpa_kernel": "0", "use_tf32": "0",
    "use_ep_level_unified_stream": "0", "gpu_external_alloc": "0", "gpu_external_free": "0", "gpu_external_empty_cache": "0",
    "tunable_op_enable": "0", "tunable_op_tuning_enable": "0", "tunable_op_max_tuning_duration_ms": "0",
}  # fmt: skip
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}


def _extension() -> Any:
    """The extension that knows devices; raises `Fail` where there is none, in a package without the compiler."""
    try:
        from . import _sardonyx
    except ImportError:
        raise Fail("this package has no compiler, and runs no models on CUDA devices") from None
    return _sardonyx


def problem(needs_code: bool = True) -> str:
    """Why no session can have a CUDA device, or its memory; empty where one can. Without a driver the compiler is not loaded."""
    tell = getattr(_runtime, "cuda_driver_problem", None)
    if tell and (without_driver := tell()):
        return without_driver
    try:
        return _extension().cuda_problem(needs_code)
    except Fail as failure:
        return str(failure)


def count_devices() -> int:
    """How many CUDA devices sessions may have."""
    return 0 if problem() else _extension().cuda_device_count()


def _number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise InvalidArgument(f"the option '{name}' of CUDAExecutionProvider is {text!r}, no number from 0 to {most}")
    return int(text)


def check_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options with onnxruntime's names and defaults. Raises `InvalidArgument` for other names and wrong values."""
    for name in options:
        if name not in DEFAULTS:
            like = close_to(name, DEFAULTS)
            hint = f" (did you mean {like}?)" if like else ""
            raise InvalidArgument(f'Unknown provider option: "{name}" of CUDAExecutionProvider{hint}')
    found = {**DEFAULTS, **options}
    if "user_compute_stream" in options:
        found["has_user_compute_stream"] = "1"
    _number("device_id", found["device_id"], 2**31 - 1)
    _number("gpu_mem_limit", found["gpu_mem_limit"], 2**64 - 1)
    _number("user_compute_stream", found["user_compute_stream"], 2**64 - 1)
    for name in ("enable_cuda_graph", "has_user_compute_stream", "use_tf32"):
        if found[name].lower() not in _BOOLEANS:
            raise InvalidArgument(f"the option '{name}' of CUDAExecutionProvider is {found[name]!r}, neither 0 nor 1")
    return found


def set_options(native: Any, options: Mapping[str, str], may_use_cpu: bool) -> None:
    """Has an extension's SessionOptions ask for the device that checked options tell."""
    if _BOOLEANS[options["use_tf32"].lower()] and native.precision == native.precision.f32:
        native.precision = native.precision.tf32
    device = native.device
    device.cuda = True
    device.device_id = int(options["device_id"])
    limit = int(options["gpu_mem_limit"])
    device.memory_limit = limit if limit < 2**63 else 0
    device.user_stream = int(options["user_compute_stream"])
    device.enable_graph = _BOOLEANS[options["enable_cuda_graph"].lower()]
    device.may_use_cpu = may_use_cpu


def allocate(shape: Sequence[int], element_type: int, device: int) -> DeviceTensor:
    """A tensor whose elements are not set."""
    return _extension().cuda_allocate(element_type, [operator.index(size) for size in shape], device)


def to_device(array: np.ndarray, element_type: int, device: int) -> DeviceTensor:
    """A copy of an array, which is contiguous."""
    tensor = allocate(array.shape, element_type, device)
    _extension().cuda_write(tensor, array.ctypes.data)
    return tensor


def to_host(tensor: DeviceTensor) -> np.ndarray:
    """A copy of a tensor as an array."""
    array = np.empty(tensor.shape, dtype_of(tensor.type))
    _extension().cuda_read(tensor, array.ctypes.data)
    return array


def overwrite(tensor: DeviceTensor, source: np.ndarray | DeviceTensor) -> None:
    """Copies all elements, as many bytes as the tensor has."""
    if isinstance(source, DeviceTensor):
        _extension().cuda_write(tensor, source.data, source.device)
    else:
        _extension().cuda_write(tensor, source.ctypes.data)


def read_into(array: np.ndarray, source: DeviceTensor) -> None:
    """The same from a device to an array, which is contiguous."""
    _extension().cuda_read(source, array.ctypes.data)


def memory_at(pointer: int, element_type, shape: Sequence[int], device: int) -> DeviceTensor:
    """The caller's memory by its address. `element_type` is ONNX's number or a dtype."""
    number = element_type if isinstance(element_type, int) else element_type_of(np.dtype(element_type))
    if not number:
        raise InvalidArgument(f"no ONNX tensor has the dtype {element_type}")
    return _extension().cuda_memory(operator.index(pointer), number, [operator.index(size) for size in shape], device, None)


def _from_interface(value) -> DeviceTensor:
    """The memory that `__cuda_array_interface__` tells of, when its stream has written it."""
    told = value.__cuda_array_interface__
    pointer, shape, strides = told["data"][0], list(told["shape"]), told.get("strides")
    dtype = np.dtype(told["typestr"])
    if not element_type_of(dtype):
        raise InvalidArgument(f"no ONNX tensor has the dtype {dtype}")
    if strides is not None and list(strides) != _strides(shape, dtype.itemsize) and 0 not in shape:
        raise InvalidArgument("a tensor on a CUDA device must be contiguous")
    extension = _extension()
    device = extension.cuda_device_of(pointer) if pointer else 0
    if device < 0:
        raise InvalidArgument("the address in __cuda_array_interface__ is of no CUDA device")
    # 1 is the default stream, which runs wait for by themselves.
    if (stream := told.get("stream")) not in (None, 1):
        extension.cuda_synchronize(device, stream)
    return extension.cuda_memory(pointer, element_type_of(dtype), shape, device, value)


def _strides(shape: Sequence[int], size: int) -> list[int]:
    strides: list[int] = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return strides


def is_on_device(value) -> bool:
    """Whether another library's tensor lies in CUDA's memory."""
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in _DLPACK_TYPES
    return hasattr(value, "__cuda_array_interface__")


def import_tensor(value) -> DeviceTensor | None:
    """Another library's tensor in CUDA's memory, which is not copied, or None where it lies elsewhere."""
    if not is_on_device(value):
        return None
    if not hasattr(value, "__dlpack__"):
        return _from_interface(value)
    # torch refuses to export what it would differentiate.
    value = value.detach() if getattr(value, "requires_grad", False) else value
    # What is written comes before all that the default stream is given from now on; runs wait for that.
    return import_capsule(value.__dlpack__(stream=1))


def import_capsule(capsule, is_bool: bool = False) -> DeviceTensor:
    """The same for a DLPack capsule, whose bytes may stand for booleans."""
    try:
        tensor = _runtime.import_device_memory(capsule)
    except (RuntimeError, InvalidArgument):
        raise InvalidArgument("DLPack is taken of contiguous tensors only") from None
    if not tensor.type:
        raise InvalidArgument("the tensor has a type of elements that no ONNX tensor has")
    if is_bool and tensor.type == _UINT8:
        tensor.type = _BOOL
    return tensor


def interface_of(tensor: DeviceTensor) -> dict[str, Any]:
    """`__cuda_array_interface__` of a tensor, nobody's work on which is left."""
    dtype = dtype_of(tensor.type)
    if dtype.kind == "V" or element_type_of(dtype) >= 16:
        raise AttributeError(f"__cuda_array_interface__ has no elements of the type {dtype}")
    return {
        "shape": tuple(tensor.shape), "typestr": dtype.str, "data": (tensor.data, False), "strides": None, "version": 3,
        "stream": None,
    }  # fmt: skip
