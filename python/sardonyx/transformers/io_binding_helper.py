"""Types of a session's inputs and outputs for numpy, torch and ONNX, and tensors of torch bound to them.

torch is imported where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx._arrays import dtype_of
from sardonyx._binding import IOBinding
from sardonyx._running import NodeArg, Runnable

# ONNX's number and torch's name of an element type, by the text that describes a tensor of it.
_TYPES = {
    "tensor(float)": (1, "float32"), "tensor(uint8)": (2, "uint8"), "tensor(int8)": (3, "int8"),
    "tensor(uint16)": (4, "uint16"), "tensor(int16)": (5, "int16"), "tensor(int32)": (6, "int32"),
    "tensor(int64)": (7, "int64"), "tensor(bool)": (9, "bool"), "tensor(float16)": (10, "float16"),
    "tensor(double)": (11, "float64"), "tensor(uint32)": (12, "uint32"), "tensor(uint64)": (13, "uint64"),
    "tensor(bfloat16)": (16, "bfloat16"), "tensor(float8e4m3fn)": (17, "float8_e4m3fn"),
    "tensor(float8e5m2)": (19, "float8_e5m2"),
}  # fmt: skip


def _known(ort_type: str) -> tuple[int, str]:
    if ort_type not in _TYPES:
        raise ValueError(f"{ort_type} not found in map")
    return _TYPES[ort_type]


def _type_in(args: Sequence[NodeArg], kind: str, name: str) -> str:
    for arg in args:
        if arg.name == name:
            return arg.type
    raise ValueError(f"{kind} name {name} not found")


class TypeHelper:
    """What the types of a session's inputs and outputs are elsewhere. Unknown names and types raise `ValueError`."""

    @staticmethod
    def get_input_type(ort_session: Runnable, name: str) -> str:
        """The type of an input: "tensor(float)"."""
        return _type_in(ort_session.get_inputs(), "input", name)

    @staticmethod
    def get_output_type(ort_session: Runnable, name: str) -> str:
        """The type of an output: "tensor(float)"."""
        return _type_in(ort_session.get_outputs(), "output", name)

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> Any:
        """numpy's scalar type, `bool` for booleans; ml_dtypes has those that numpy lacks."""
        number, name = _known(ort_type)
        return bool if name == "bool" else dtype_of(number).type

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Any:
        """torch's dtype."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        return getattr(torch, _known(ort_type)[1])

    @staticmethod
    def ort_type_to_onnx_type(ort_type: str) -> int:
        """ONNX's number of the element type."""
        return _known(ort_type)[0]

    @staticmethod
    def numpy_type_to_torch_type(numpy_type: Any) -> Any:
        """torch's dtype for numpy's."""
        import torch

        name = np.dtype(numpy_type).name
        if name not in (known for _, known in _TYPES.values()):
            raise ValueError(f"{numpy_type} not found in map")
        return getattr(torch, name)

    @staticmethod
    def torch_type_to_numpy_type(torch_type: Any) -> Any:
        """numpy's scalar type for torch's dtype, `bool` for booleans."""
        name = str(torch_type).rpartition(".")[2]
        for ort_type, (_, known) in _TYPES.items():
            if known == name:
                return TypeHelper.ort_type_to_numpy_type(ort_type)
        raise ValueError(f"{torch_type} not found in map")

    @staticmethod
    def get_io_numpy_type_map(ort_session: Runnable) -> dict[str, Any]:
        """numpy's types by the names of inputs and outputs."""
        return {arg.name: TypeHelper.ort_type_to_numpy_type(arg.type) for arg in _args_of(ort_session)}

    @staticmethod
    def get_io_torch_type_map(ort_session: Runnable) -> dict[str, Any]:
        """torch's dtypes by the names of inputs and outputs."""
        return {arg.name: TypeHelper.ort_type_to_torch_type(arg.type) for arg in _args_of(ort_session)}

    @staticmethod
    def get_io_onnx_type_map(ort_session: Runnable) -> dict[str, int]:
        """ONNX's numbers of element types by the names of inputs and outputs."""
        return {arg.name: TypeHelper.ort_type_to_onnx_type(arg.type) for arg in _args_of(ort_session)}


def _args_of(session: Runnable) -> list[NodeArg]:
    return [*session.get_inputs(), *session.get_outputs()]


class IOBindingHelper:
    """Tensors of torch on the CPU, bound to a session that generates text."""

    @staticmethod
    def get_output_buffers(ort_session: Runnable, output_shapes: Mapping[str, Sequence[int]], device) -> dict[str, Any]:
        """A tensor of one dimension by each name, with room for the shape."""
        import torch

        return {
            name: torch.empty(
                math.prod(shape),
                dtype=TypeHelper.ort_type_to_torch_type(TypeHelper.get_output_type(ort_session, name)),
                device=device,
            )
            for name, shape in output_shapes.items()
        }

    @staticmethod
    def prepare_io_binding(
        ort_session: Runnable,
        input_ids,
        position_ids,
        attention_mask,
        past,
        output_buffers: Mapping[str, Any],
        output_shapes: Mapping[str, Sequence[int]],
        name_to_np_type: Mapping[str, Any] | None = None,
    ) -> IOBinding:
        """Binds what is not None to the inputs `input_ids`, `position_ids`, `attention_mask` and `past_0` …, and the
        buffers to the outputs. Tensors must be contiguous, and stay as they are until the run."""
        types = TypeHelper.get_io_numpy_type_map(ort_session) if name_to_np_type is None else name_to_np_type
        binding = ort_session.io_binding()
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": position_ids}
        inputs.update((f"past_{i}", tensor) for i, tensor in enumerate(past or []))
        for name, tensor in inputs.items():
            if tensor is None:
                continue
            if not tensor.is_contiguous():
                raise ValueError(f"the tensor for input '{name}' is not contiguous")
            # An empty tensor lies nowhere.
            pointer = tensor.data_ptr() or input_ids.data_ptr()
            binding.bind_input(name, tensor.device.type, 0, types[name], list(tensor.size()), pointer)
        for output in ort_session.get_outputs():
            buffer = output_buffers[output.name]
            shape = output_shapes[output.name]
            binding.bind_output(output.name, buffer.device.type, 0, types[output.name], shape, buffer.data_ptr())
        return binding

    @staticmethod
    def get_outputs_from_io_binding_buffer(
        ort_session: Runnable,
        output_buffers: Mapping[str, Any],
        output_shapes: Mapping[str, Sequence[int]],
        return_numpy: bool = True,
    ) -> list[Any]:
        """Copies of the outputs in the model's order, as arrays or as tensors."""
        outputs = []
        for output in ort_session.get_outputs():
            shape = list(output_shapes[output.name])
            copy = output_buffers[output.name][: math.prod(shape)].reshape(shape).clone().detach()
            outputs.append(copy.cpu().numpy() if return_numpy else copy)
        return outputs
