"""The interface of onnx.backend: `prepare(model, device).run(inputs)`.

What Sardonyx does not support raises `sardonyx.NotImplemented`, a NotImplementedError.
"""

from __future__ import annotations

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._options import SessionOptions
from ._session import InferenceSession


class SardonyxRep(BackendRep):
    """A compiled model."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs, **kwargs):
        """Outputs for a list of inputs in graph order, a dict by name, or a single array."""
        args = self.session.get_inputs()
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            feeds = {arg.name: value for arg, value in zip(args, values)}
            if len(values) != len(args):
                raise ValueError(f"the model has {len(args)} inputs, got {len(values)}")
        names = [value.name for value in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(None, feeds))


class SardonyxBackend(Backend):
    @classmethod
    def is_compatible(cls, model, device: str = "CPU", **kwargs) -> bool:
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device: str = "CPU", **kwargs) -> SardonyxRep:
        if not cls.supports_device(device):
            raise NotImplementedError(f"there is no device {device}")
        options = kwargs.get("sess_options")
        if options is None:
            options = SessionOptions()
            options.intra_op_num_threads = int(kwargs.get("threads", 1))
            options.check_bounds = bool(kwargs.get("check_bounds", False))
        return SardonyxRep(InferenceSession(model, options))

    @classmethod
    def run_model(cls, model, inputs, device: str = "CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device: str = "CPU", outputs_info=None, **kwargs):
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
    def supports_device(cls, device: str) -> bool:
        return device.upper().split(":")[0] == "CPU"


prepare = SardonyxBackend.prepare
run_model = SardonyxBackend.run_model
run_node = SardonyxBackend.run_node
is_compatible = SardonyxBackend.is_compatible
supports_device = SardonyxBackend.supports_device
