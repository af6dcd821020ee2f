"""Models that are ready to run, by onnxruntime's names. No compiler is needed here."""

from __future__ import annotations

import os
from concurrent.futures import Future

import numpy as np

from . import _runtime
from ._arrays import as_input, as_memory, as_value, check_apart, copy_to, from_output, memory_at
from ._async import runners, tell
from ._values import OrtValue
from .errors import InvalidArgument

PROVIDERS = ["CPUExecutionProvider"]


class NodeArg:
    """An input or output: `name`, `type` ("tensor(float)") and `shape`, whose items are sizes,
    names of dimensions or None; the shape itself is None where the model gives no rank."""

    def __init__(self, name, type, element_type, shape, item_type, is_sequence, key_type):
        self.name, self.type, self.shape = name, type, shape
        self._element_type = element_type
        # Of a sequence, an optional or a map: the element type of the tensors inside, else 0.
        self._item_type, self._is_sequence = item_type, is_sequence
        # Of a map or a sequence of maps: that of the keys, else 0.
        self._key_type = key_type
        # Whether a result is more than the array or the dicts that the extension gives.
        self._is_special = not key_type and (bool(item_type) or element_type == 8 or element_type >= 16)

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    """What the model file says about itself."""

    def __init__(self, values):
        self.producer_name: str = values["producer_name"]
        self.graph_name: str = values["graph_name"]
        self.domain: str = values["domain"]
        self.description: str = values["description"]
        self.graph_description: str = ""
        self.version: int = values["version"]
        self.custom_metadata_map: dict[str, str] = values["custom_metadata_map"]


def _memory_on(device: str, name: str, element_type, shape, pointer: int) -> np.ndarray:
    if device != "cpu":
        raise InvalidArgument(f"'{name}' is bound to memory of the device '{device}'; only 'cpu' is supported")
    if shape is None or element_type is None:
        raise InvalidArgument(f"'{name}' is bound to memory without an element type and a shape")
    return memory_at(pointer, element_type, shape)


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session: Runnable):
        self._session = session
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: list[np.ndarray] = []

    def bind_cpu_input(self, name, arr_on_cpu) -> None:
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr) -> None:
        self._inputs[name] = _memory_on(device_type, name, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name, ortvalue) -> None:
        self._inputs[name] = ortvalue._content()

    def bind_output(
        self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None
    ) -> None:
        """Without `buffer_ptr` each run makes an array for the output."""
        given = buffer_ptr is not None
        self._outputs[name] = _memory_on(device_type, name, element_type, shape, buffer_ptr) if given else None

    def bind_ortvalue_output(self, name, ortvalue) -> None:
        self._outputs[name] = ortvalue.numpy()

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        pass

    def synchronize_outputs(self) -> None:
        pass

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(array) for array in self._results]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return list(self._results)

    def _run(self, run_options) -> None:
        out = {name: array for name, array in self._outputs.items() if array is not None}
        self._results = self._session.run(list(self._outputs), self._inputs, run_options, out=out)


class Runnable:
    """What sessions share with models that were built ahead of time."""

    _session: _runtime.Runner

    def _describe(self):
        self._inputs = [NodeArg(*value) for value in self._session.inputs]
        self._outputs = [NodeArg(*value) for value in self._session.outputs]
        self._output_index = {value.name: i for i, value in enumerate(self._outputs)}
        self._input_names = {value.name for value in self._inputs}

    def run(self, output_names, input_feed, run_options=None, *, out=None) -> list[np.ndarray]:
        """The outputs named, or all of them, for a dict of inputs by name.

        Inputs are arrays of numpy or of any library with DLPack on the CPU; contiguous ones are
        not copied. `out` may give arrays to write outputs to, by name; they may overlap inputs.
        """
        if len(input_feed) != len(self._inputs) or not self._input_names.issuperset(input_feed):
            self._check_names(input_feed)
        feeds = [
            as_value(input_feed[arg.name], arg.name, arg._item_type, arg._is_sequence, arg._key_type)
            if arg._item_type
            else as_input(input_feed[arg.name], arg.name, arg._element_type)
            for arg in self._inputs
        ]
        memory = None
        if out:
            self._indices(out)
            check_apart(out)
            memory = [as_memory(out[a.name], a.name) if a.name in out else None for a in self._outputs]
        results = self._session.run(feeds, memory, run_options and run_options._native)
        for i, arg in enumerate(self._outputs):
            if results[i] is None and not arg._item_type:
                results[i] = out[arg.name]
                continue
            if arg._is_special:
                results[i] = from_output(results[i], arg._item_type or arg._element_type)
            if out and arg.name in out:
                results[i] = copy_to(out[arg.name], results[i], arg.name)
        if output_names is None or len(output_names) == 0:
            return results
        return [results[i] for i in self._indices(output_names)]

    def run_async(self, output_names, input_feed, callback=None, user_data=None, run_options=None) -> Future:
        """Starts a run and comes back at once: the results are those of the future.

        `callback(results, user_data, error)` is called on another thread when the run is done, with the
        sentence of what failed or an empty one; what it raises is logged. Inputs have to stay as they
        are until then. `RunOptions.terminate` ends a run; so does the end of the program.
        """
        self._check_names(input_feed)
        self._indices(output_names or [])
        future = runners.submit(self.run, output_names, dict(input_feed), run_options)
        if callback is not None:
            future.add_done_callback(tell(callback, user_data))
        return future

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None) -> list[OrtValue]:
        feeds = {name: value._content() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feeds, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options=None) -> None:
        iobinding._run(run_options)

    def _indices(self, names):
        try:
            return [self._output_index[name] for name in names]
        except KeyError as unknown:
            raise InvalidArgument(f"the model has no output {unknown}; it has {list(self._output_index)}") from None

    def _check_names(self, feed):
        unknown = [name for name in feed if name not in self._input_names]
        if unknown:
            raise InvalidArgument(f"the model has no input {unknown[0]!r}; it has {[a.name for a in self._inputs]}")
        missing = [arg.name for arg in self._inputs if arg.name not in feed]
        if missing:
            raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._session.metadata)

    def get_providers(self) -> list[str]:
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict]:
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers=None, provider_options=None) -> None:
        pass

    def disable_fallback(self) -> None:
        pass

    def enable_fallback(self) -> None:
        pass

    def release_memory(self) -> None:
        """Gives the system the memory that is kept for the next run."""
        self._session.release_memory()

    @property
    def bytes_held(self) -> int:
        """Bytes of the memory limit that weights, runs and results hold."""
        return self._session.bytes_held


class BuiltModel(Runnable):
    """A model that `sardonyx build` has made a shared library of; see `load`."""

    def __init__(self, path, threads=0, memory_limit=0):
        self._session = _runtime.load(os.fspath(path), threads, memory_limit)
        self._describe()


def load(path, *, threads: int = 0, memory_limit: int = 0) -> BuiltModel:
    """Loads a shared library of `sardonyx build`, which needs no compiler and no cache.

    What it gives runs like an `InferenceSession`. The file's code runs in this process: load only what
    you trust. It is read once, and refused where it is damaged or for another processor. `threads`: 0
    is as many as it was built for; `memory_limit`: bytes that runs and results may take, 0 is what the
    machine has.
    """
    return BuiltModel(path, threads, memory_limit)


def get_available_providers() -> list[str]:
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    return list(PROVIDERS)


def get_device() -> str:
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted for compatibility: Sardonyx logs nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted for compatibility: Sardonyx logs nothing."""


def get_version_string() -> str:
    return _runtime.__version__


def get_build_info() -> str:
    return f"sardonyx {_runtime.__version__}"


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Accepted for compatibility: all sessions share the threads of the process, and
    `SessionOptions.intra_op_num_threads` says how many of them a run takes."""


def set_seed(seed: int) -> None:
    """Accepted for compatibility."""
