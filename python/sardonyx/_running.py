"""Models that are ready to run, by onnxruntime's names. No compiler is needed here."""

from __future__ import annotations

import os
from concurrent.futures import Future

import numpy as np

from . import _runtime
from . import _log as log
from ._arrays import as_input, as_memory, as_value, check_apart, copy_to, from_output, memory_at
from ._async import runners, tell
from ._attributes import integer, tell_once
from ._values import OrtValue, SparseTensor, check_device
from .errors import Fail, InvalidArgument

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
    check_device(device, InvalidArgument)
    if shape is None or element_type is None:
        raise InvalidArgument(f"'{name}' is bound to memory without an element type and a shape")
    return memory_at(pointer, element_type, shape)


class IOBinding:
    """Inputs and outputs that stay bound from run to run. Runs write bound outputs in place."""

    def __init__(self, session: Runnable):
        self._session = session
        self._inputs: dict[str, object] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: list = []

    def _bind_input(self, name, value) -> None:
        if name not in self._session._input_names:
            raise InvalidArgument(f"the model has no input '{name}'; it has {sorted(self._session._input_names)}")
        self._inputs[name] = value

    def _bind_output(self, name, memory) -> None:
        self._session._indices([name])
        self._outputs[name] = memory

    def bind_cpu_input(self, name, arr_on_cpu) -> None:
        self._bind_input(name, arr_on_cpu)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr) -> None:
        self._bind_input(name, _memory_on(device_type, name, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name, ortvalue) -> None:
        self._bind_input(name, ortvalue)

    def bind_output(
        self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None
    ) -> None:
        """Without `buffer_ptr` each run makes an array for the output."""
        if buffer_ptr is None:
            check_device(device_type, InvalidArgument)
            self._bind_output(name, None)
        else:
            self._bind_output(name, _memory_on(device_type, name, element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name, ortvalue) -> None:
        self._bind_output(name, ortvalue.numpy())

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        pass

    def synchronize_outputs(self) -> None:
        pass

    def get_outputs(self) -> list[OrtValue]:
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return [v._value.copy() if v.is_tensor() else v._value for v in self._results]

    def _run(self, run_options) -> None:
        out = {name: array for name, array in self._outputs.items() if array is not None}
        names = list(self._outputs)
        results = self._session.run(names, self._inputs, run_options, out=out) if names else []
        self._results = self._session._as_ort_values(names, results)


def _given(value):
    """What an input is of, in an OrtValue or by itself."""
    if type(value) is OrtValue:
        value = value._value
    if type(value) is SparseTensor:
        raise InvalidArgument("an input was given as a sparse tensor; no model takes one")
    return value


class Runnable:
    """What sessions share with models that were built ahead of time."""

    _session: _runtime.Runner
    _logger = log.Logger()

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
        watch = log.Stopwatch() if (logger := self._logger_of(run_options)).takes(log.INFO) else None
        feeds = [
            as_value(_given(input_feed[arg.name]), arg.name, arg._item_type, arg._is_sequence, arg._key_type)
            if arg._item_type
            else as_input(_given(input_feed[arg.name]), arg.name, arg._element_type)
            for arg in self._inputs
        ]
        memory = None
        if out:
            self._indices(out)
            check_apart(out)
            memory = [as_memory(out[a.name], a.name) if a.name in out else None for a in self._outputs]
        results = self._session.run(feeds, memory, run_options and run_options._native)
        if watch:
            logger.info("run", f"took {watch}")
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
        names = output_names or list(self._output_index)
        return self._as_ort_values(names, self.run(names, input_dict_ort_values, run_options))

    def _as_ort_values(self, names, results) -> list[OrtValue]:
        outputs = [self._outputs[i] for i in self._indices(names)]
        return [OrtValue(value, arg._item_type) for value, arg in zip(results, outputs)]

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices) -> None:
        """The same for lists: `fetches` becomes that of the outputs named."""
        names = list(fetch_names)
        fetches[:] = self.run_with_ort_values(names, dict(zip(feed_names, feeds)), run_options) if names else []

    def create_ortvalue_from_shape_and_type(
        self, shape, element_type, device_type: str, device_id: int = 0, vendor_id=-1
    ) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def _logger_of(self, run_options) -> log.Logger:
        return self._logger if run_options is None else self._logger.of_run(run_options)

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options=None) -> None:
        if iobinding._session is not self:
            raise InvalidArgument("IOBinding must be used with the session that created it.")
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

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Accepted for compatibility: graphs are captured on GPUs only."""

    def get_tuning_results(self) -> list:
        return []

    def set_tuning_results(self, results, *, error_on_invalid=False) -> None:
        """Nothing is tuned at run time, so no results fit."""
        if results and error_on_invalid:
            raise Fail("Invalid TuningResults (index=0). CPUExecutionProvider does not support TunableOp.")

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        if not options:
            raise Fail("set_ep_dynamic_options needs at least one option")
        for key in options:
            tell_once(f"the dynamic option '{key}'", "the CPU's provider has none")

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
    """The least severe messages that sessions write to stderr which do not say it themselves: 0 to 4, 2 by default."""
    severity = integer(severity)
    if not 0 <= severity <= log.FATAL:
        raise Fail("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    log.set_default(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted for compatibility."""
    integer(verbosity)
    tell_once("set_default_logger_verbosity", "there is one level of verbose messages")


def set_seed(seed: int) -> None:
    """Accepted for compatibility."""
    integer(seed)
    tell_once("set_seed", "operators without a seed draw numbers that nobody can foretell")


def get_version_string() -> str:
    return _runtime.__version__


def get_build_info() -> str:
    return f"Sardonyx {_runtime.__version__}"


def has_collective_ops() -> bool:
    return False
