"""The classes of onnxruntime's Python API, by the module in which its package has them."""

from sardonyx import (
    AdapterFormat,
    InferenceSession,
    IOBinding,
    ModelCompiler,
    OrtDevice,
    OrtDeviceVendorId,
    OrtValue,
    SparseTensor,
    copy_tensors,
)
from sardonyx._devices import _type_of as get_ort_device_type
from sardonyx._providers import check_and_normalize_provider_args
from sardonyx._running import Runnable as Session

__all__ = [
    "AdapterFormat", "IOBinding", "InferenceSession", "ModelCompiler", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session",
    "SparseTensor", "check_and_normalize_provider_args", "copy_tensors", "get_ort_device_type",
]  # fmt: skip
