"""Values that stay bound to a session's inputs and outputs from run to run, by onnxruntime's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import memory_at
from . import _cuda
from ._devices import CPU, OrtDevice, place_of
from ._values import OrtValue
from .errors import InvalidArgument

if TYPE_CHECKING:
    from ._native_session import NativeSession
    from ._running import Runnable


_STRING = 8  # ONNX's number of the element type


class OrtValueVector(list):
    """A list of OrtValues, with what onnxruntime's has beside a list's methods."""

    def push_back(self, value, is_bool_tensor: bool = False) -> None:
        """Appends an OrtValue, or another library's tensor by DLPack."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def push_back_batch(self, tensors, data_ptrs, element_types, shapes, devices) -> None:
        """Appends memory of the caller's: for each tensor, which is kept, its address, dtype, shape and OrtDevice."""
        for tensor, pointer, element_type, shape, device in zip(tensors, data_ptrs, element_types, shapes, devices):
            place = place_of(device)
            memory = memory_at(pointer, element_type, shape) if place == CPU else _cuda.memory_at(pointer, element_type, shape, place)
            value = OrtValue(memory)
            value._keeps = tensor
            self.append(value)

    def reserve(self, size: int) -> None:
        """Accepted for compatibility: lists grow."""

    def shrink_to_fit(self) -> None:
        """Accepted for compatibility."""

    def bool_tensor_indices(self) -> list[int]:
        """The places of tensors of booleans."""
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def element_type_at(self, idx: int) -> int:
        """The number of the element type of a tensor, as ONNX has it."""
        return self[idx].element_type()

    def dlpack_at(self, idx: int):
        """A DLPack capsule of a tensor."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor=None) -> list:
        """DLPack capsules of all tensors, or what `to_tensor` makes of them."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


class SessionIOBinding:
    """Inputs and outputs that stay bound, on devices given as OrtDevices; `IOBinding` takes their names.

    `session` is an `InferenceSession` or a `BuiltModel`, or what either keeps as `_sess`.
    """

    def __init__(self, session: Runnable | NativeSession):
        self._session: Runnable = session._ready() if hasattr(session, "_ready") else session
        self._inputs: dict[str, object] = {}
        # Arrays and tensors to write to; None for a new array, the number of a device for a new tensor there.
        self._outputs: dict[str, Any] = {}
        self._results = OrtValueVector()

    def bind_input(self, name: str, *value) -> None:
        """Binds an array, or memory by its device, element type (ONNX's number, or a dtype), shape and address."""
        if len(value) not in (1, 4):
            raise TypeError(f"bind_input takes a name and an array, or a device, an element type, a shape and an address, got {value}")
        self._session._check_input(name)
        self._inputs[name] = value[0] if len(value) == 1 else _memory(name, *value)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds a value."""
        self.bind_input(name, value)

    def bind_output(self, name: str, device: OrtDevice, *memory) -> None:
        """Each run makes an array for the output, or a tensor on the device, or writes to memory of an element type, a shape
        and an address."""
        if len(memory) not in (0, 3):
            raise TypeError(f"bind_output takes memory by an element type, a shape and an address, got {memory}")
        self._session._indices([name])
        place = place_of(device, failure=InvalidArgument)
        there = None if place == CPU else place
        self._outputs[name] = _memory(name, device, *memory) if memory else there

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Runs write to the value's memory."""
        self._session._indices([name])
        self._outputs[name] = value._tensor()

    def clear_binding_inputs(self) -> None:
        """Lets go of all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Lets go of all outputs."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Accepted for compatibility: runs wait for what the default stream writes to inputs, and are over when they return."""

    def synchronize_outputs(self) -> None:
        """Accepted for compatibility: runs wait for what the default stream writes to inputs, and are over when they return."""

    def get_outputs(self) -> OrtValueVector:
        """What the last run gave, in the order in which outputs were bound."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list:
        """Copies of what the last run gave: arrays, lists or dicts."""
        return [
            (v.numpy() if v.device_name() == "cuda" else v._value.copy()) if v.is_tensor() else v._value for v in self._results
        ]

    def _run(self, run_options) -> None:
        out = {name: array for name, array in self._outputs.items() if array is not None}
        names = list(self._outputs)
        results = self._session.run(names, self._inputs, run_options, out=out) if names else []
        self._results = OrtValueVector(self._session._as_ort_values(names, results))


def _memory(name: str, device, element_type, shape, pointer: int):
    place = place_of(device, failure=InvalidArgument)
    if shape is None or element_type is None:
        raise InvalidArgument(f"'{name}' is bound to memory without an element type and a shape")
    is_number = isinstance(element_type, int)
    if element_type == _STRING if is_number else np.dtype(element_type).kind in "UOST":
        raise InvalidArgument(f"'{name}' is of strings, which cannot be bound by an address")
    return memory_at(pointer, element_type, shape) if place == CPU else _cuda.memory_at(pointer, element_type, shape, place)


class IOBinding:
    """Inputs and outputs that stay bound from run to run. Runs write bound outputs in place."""

    def __init__(self, session: Runnable):
        self._iobinding = SessionIOBinding(session)
        self._session = session

    def bind_cpu_input(self, name: str, arr_on_cpu) -> None:
        """Binds an array, which runs read where it is."""
        self._iobinding.bind_input(name, arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory of the caller's by its address. `element_type` is ONNX's number or a dtype."""
        self._iobinding.bind_input(name, OrtDevice.make(device_type, device_id), element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value."""
        self._iobinding.bind_input(name, ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type=None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Without `buffer_ptr` each run makes an array for the output, or a tensor on the device; with it runs write to this
        address."""
        memory = () if buffer_ptr is None else (element_type, shape, buffer_ptr)
        self._iobinding.bind_output(name, OrtDevice.make(device_type, device_id), *memory)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Runs write to the value's memory."""
        self._iobinding.bind_ortvalue_output(name, ortvalue)

    def clear_binding_inputs(self) -> None:
        """Lets go of all inputs."""
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """Lets go of all outputs."""
        self._iobinding.clear_binding_outputs()

    def synchronize_inputs(self) -> None:
        """Accepted for compatibility: runs wait for what the default stream writes to inputs, and are over when they return."""

    def synchronize_outputs(self) -> None:
        """Accepted for compatibility: runs wait for what the default stream writes to inputs, and are over when they return."""

    def get_outputs(self) -> list[OrtValue]:
        """What the last run gave, in the order in which outputs were bound."""
        return list(self._iobinding.get_outputs())

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The same as an OrtValueVector."""
        return self._iobinding.get_outputs()

    def copy_outputs_to_cpu(self) -> list:
        """Copies of what the last run gave: arrays, lists or dicts."""
        return self._iobinding.copy_outputs_to_cpu()
