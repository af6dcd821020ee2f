"""Models by ONNX's interface of backends."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend

from sardonyx._options import SessionOptions
from sardonyx._providers import CUDA_PROVIDER, available_providers
from sardonyx._session import InferenceSession
from sardonyx.backend.backend_rep import SardonyxRep


class SardonyxBackend(Backend):
    """onnx.backend.base.Backend, on the devices "CPU" and "CUDA", where there is one; "CUDA:1" is the second."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs) -> bool:
        """Whether the device is there."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs) -> SardonyxRep:
        """Compiles a model: a path, its bytes or a ModelProto; also takes a session or what this gave before.

        `kwargs` are attributes of SessionOptions, or `sess_options`. One thread computes, unless they say otherwise.
        """
        if isinstance(model, SardonyxRep):
            return model
        if not cls.supports_device(device):
            raise NotImplementedError(f"there is no device {device}")
        if isinstance(model, InferenceSession):
            return SardonyxRep(model)
        options = kwargs.get("sess_options")
        if options is None:
            options = SessionOptions()
            options.intra_op_num_threads = int(kwargs.get("threads", 1))
            for name, value in kwargs.items():
                if hasattr(SessionOptions, name) and not callable(getattr(SessionOptions, name)):
                    setattr(options, name, value)
        return SardonyxRep(InferenceSession(model, options, _providers_of(device)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs) -> Any:
        """Compiles a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device: str | None = None, outputs_info=None, **kwargs) -> Any:
        """Compiles a node alone and runs it once; `opset_version` is that of its domain."""
        import numpy as np

        inputs = [np.asarray(value) for value in inputs]
        values = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(node.input, inputs)
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
        graph = onnx.helper.make_graph([node], "node", values, outputs)
        version = kwargs.pop("opset_version", None) or onnx.defs.onnx_opset_version()
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        return cls.run_model(onnx.shape_inference.infer_shapes(model), inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str | None) -> bool:
        """Whether the device is the CPU, which None stands for, or CUDA's, where there is one."""
        kind = (device or "CPU").upper().split(":")[0]
        return kind == "CPU" or (kind in ("CUDA", "GPU") and CUDA_PROVIDER in available_providers())


def _providers_of(device: str | None) -> list | None:
    """Without the CPU's beside CUDA's: a backend is to say what it cannot do."""
    kind, _, number = (device or "CPU").upper().partition(":")
    return None if kind == "CPU" else [(CUDA_PROVIDER, {"device_id": number or "0"})]


OnnxRuntimeBackend = SardonyxBackend
prepare = SardonyxBackend.prepare
run = run_model = SardonyxBackend.run_model
run_node = SardonyxBackend.run_node
is_compatible = SardonyxBackend.is_compatible
supports_device = SardonyxBackend.supports_device
