"""Runs files that `sardonyx build` made of ONNX models. No compiler is needed, and none is here.

    import sardonyx_runtime as sardonyx
    session = sardonyx.load("model.so")
    outputs = session.run(None, {"x": array})

The names are those of the package sardonyx, which has them all, and the compiler besides.
"""

from . import errors
from ._binding import IOBinding
from ._devices import OrtDevice
from ._run_options import RunOptions
from ._running import (
    BuiltModel,
    ModelMetadata,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_device,
    load,
)
from ._runtime import __version__
from ._values import OrtSparseFormat, OrtValue, SparseTensor
from .errors import Fail, InvalidArgument, InvalidGraph, NoSuchFile, NotImplemented

__all__ = [
    "BuiltModel", "Fail", "IOBinding", "InvalidArgument", "InvalidGraph", "ModelMetadata", "NoSuchFile", "NodeArg",
    "NotImplemented", "OrtDevice", "OrtSparseFormat", "OrtValue", "RunOptions", "SparseTensor", "__version__", "errors", "get_all_providers",
    "get_available_providers", "get_device", "load",
]  # fmt: skip
