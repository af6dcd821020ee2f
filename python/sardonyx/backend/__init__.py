"""The interface of onnx.backend: `prepare(model, device).run(inputs)`.

What Sardonyx does not support raises `sardonyx.NotImplemented`, a NotImplementedError.
"""

from sardonyx.backend.backend import (
    SardonyxBackend,
    is_compatible,
    prepare,
    run,
    run_model,
    run_node,
    supports_device,
)
from sardonyx.backend.backend_rep import SardonyxRep

__all__ = [
    "SardonyxBackend", "SardonyxRep", "is_compatible", "prepare", "run", "run_model", "run_node", "supports_device",
]  # fmt: skip
