"""Models that are ready to run, by onnxruntime's names. No compiler is needed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _log as log
from . import _runtime
from ._adapters import parameters_of
from ._arrays import as_input, as_memory, as_value, check_apart, copy_to, from_output
from ._async import RunFuture, runners, tell
from ._attributes import integer, tell_once
from ._binding import IOBinding
from ._devices import CPU, OrtEpDevice, OrtMemoryInfo, memory_of
from ._native_session import Internals
from ._providers import ALL_PROVIDERS, CPU_PROVIDER, CUDA_PROVIDER, available_providers, choose
from ._run_options import RunOptions
from ._runtime import DeviceTensor
from ._suggest import unknown
from ._values import OrtValue, SparseTensor
from .errors import Fail, InvalidArgument, UnknownName


class NodeArg:
    """An input or output: its name, type and shape."""

    def __init__(self, name, type, element_type, shape, item_type, is_sequence, key_type):
        self._name, self._kind, self._shape = name, type, shape
        self._element_type = element_type
        # Of a sequence, an optional or a map: the element type of the tensors inside, else 0.
        self._item_type, self._is_sequence = item_type, is_sequence
        # Of a map or a sequence of maps: that of the keys, else 0.
        self._key_type = key_type
        # Whether a result is more than the array or the dicts that the extension gives.
        self._is_special = not key_type and (bool(item_type) or element_type == 8 or element_type >= 16)
        self._is_optional = type.startswith("optional")

    @property
    def name(self) -> str:
        """The name by which runs know it."""
        return self._name

    @property
    def type(self) -> str:
        """ONNX's name of its type: "tensor(float)"."""
        return self._kind

    @property
    def shape(self) -> list[int | str | None]:
        """Sizes, names of dimensions, or None for one without a name; empty for sequences and maps. A tensor whose rank
        the model does not give has the shape None."""
        if self._shape is None and (self._is_sequence or self._key_type):
            return []
        return self._shape

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    """What the model file says about itself."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def __repr__(self):
        told = ("producer_name", "graph_name", "domain", "version")
        return f"ModelMetadata({', '.join(f'{name}={self._values[name]!r}' for name in told)})"

    @property
    def producer_name(self) -> str:
        """The program that made it."""
        return self._values["producer_name"]

    @property
    def graph_name(self) -> str:
        """The name of its graph."""
        return self._values["graph_name"]

    @property
    def domain(self) -> str:
        """Its makers' domain."""
        return self._values["domain"]

    @property
    def description(self) -> str:
        """A text about the model."""
        return self._values["description"]

    @property
    def graph_description(self) -> str:
        """A text about the graph: empty."""
        return ""

    @property
    def version(self) -> int:
        """The model's version."""
        return self._values["version"]

    @property
    def custom_metadata_map(self) -> dict[str, str]:
        """Texts by keys of its makers'."""
        return self._values["custom_metadata_map"]


# The release of onnxruntime whose names these are.
API_VERSION = "1.31.1"


def _given(value):
    """What an input is of, in an OrtValue or by itself."""
    if type(value) is OrtValue:
        value = value._value
    if type(value) is SparseTensor:
        raise InvalidArgument("an input was given as a sparse tensor; no model takes one")
    return value


class Runnable(Internals):
    """What sessions share with models that were built ahead of time."""

    _session: Any  # an extension's Runner
    _logger = log.Logger()
    _used_providers: Mapping[str, Mapping[str, str]] = {CPU_PROVIDER: {}}  # with their options
    _origin: str | None = None  # the path that it was loaded from
    _adapted: frozenset[str] = frozenset()  # the initializers in whose place an adapter's tensors are

    def __repr__(self):
        def listed(args):
            return ", ".join(f"{arg.name} {arg.type}" + ("" if arg.shape is None else f" {arg.shape}") for arg in args)

        origin = repr(os.fspath(self._origin)) if self._origin else "a model in memory"
        return f"<{type(self).__name__} of {origin}: {listed(self._inputs)} -> {listed(self._outputs)}>"

    def _describe(self):
        self._inputs = [NodeArg(*value) for value in self._session.inputs]
        self._outputs = [NodeArg(*value) for value in self._session.outputs]
        self._output_index = {value.name: i for i, value in enumerate(self._outputs)}
        self._input_names = {value.name for value in self._inputs}

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        *,
        out: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """The outputs named, or all of them, for a dict of inputs by name.

        Inputs are arrays of numpy or of any library with DLPack; contiguous ones are not copied. Those on a CUDA device are
        for sessions that run there. Optional ones may be left out. `out` may give arrays to write outputs to, by name; they may overlap
        inputs. Results are arrays, lists for sequences, dicts for maps, or None for an optional that holds nothing.
        Raises `InvalidArgument` for names, types and shapes that the model does not have, `RuntimeException` where the run failed.
        """
        self._check_types(output_names, input_feed, run_options)
        if run_options is not None and run_options._adapters:
            session = self._adapted_to(run_options._adapters)
            if session is not self:
                return session.run(output_names, input_feed, run_options, out=out)
            input_feed = self._with_adapters(input_feed, run_options._adapters)
        if len(input_feed) != len(self._inputs) or not self._input_names.issuperset(input_feed):
            self._check_names(input_feed)
        watch = log.Stopwatch() if (logger := self._logger_of(run_options)).takes(log.INFO) else None
        feeds = [
            as_value(_given(input_feed.get(arg.name)), arg.name, arg._item_type, arg._is_sequence, arg._key_type)
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
        if self._session.has_warnings:
            for text in self._session.take_warnings():
                logger.warning("run", text)
        for i, arg in enumerate(self._outputs):
            if results[i] is None and not arg._item_type:
                results[i] = (out or {})[arg.name]
                continue
            if arg._is_special:
                results[i] = from_output(results[i], arg._item_type or arg._element_type)
            if out and arg.name in out and not isinstance(results[i], DeviceTensor):
                results[i] = copy_to(out[arg.name], results[i], arg.name)
        if output_names is None or len(output_names) == 0:
            return results
        return [results[i] for i in self._indices(output_names)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list, Any, str], Any] | None = None,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> RunFuture:
        """Starts a run and comes back at once: the results are those of the future, which `await` takes, too:
        `results = await session.run_async(None, feeds)`.

        `callback(results, user_data, error)` is called on another thread when the run is done, with the
        sentence of what failed or an empty one; what it raises is logged. Inputs have to stay as they
        are until then. `RunOptions.terminate` ends a run; so does the end of the program.
        """
        self._check_types(output_names, input_feed, run_options)
        if run_options is None or not run_options._adapters:
            self._check_names(input_feed)
        self._indices(output_names or [])
        own = RunOptions() if run_options is None else None
        future = runners.submit(self.run, output_names, dict(input_feed), run_options or own)
        future._options = own
        if callback is not None:
            future.add_done_callback(tell(callback, user_data))
        return future

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same as `run`, for and with OrtValues."""
        names = output_names or list(self._output_index)
        return self._as_ort_values(names, self.run(names, input_dict_ort_values, run_options))

    def _as_ort_values(self, names, results) -> list[OrtValue]:
        outputs = [self._outputs[i] for i in self._indices(names)]
        return [OrtValue(value, arg._item_type) for value, arg in zip(results, outputs)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: list[OrtValue],
        fetch_devices,
    ) -> None:
        """The same for lists: `fetches` becomes that of the outputs named."""
        names = list(fetch_names)
        fetches[:] = self.run_with_ort_values(names, dict(zip(feed_names, feeds)), run_options) if names else []

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type, device_type: str, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """The same as `OrtValue.ortvalue_from_shape_and_type`."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def _logger_of(self, run_options) -> log.Logger:
        return self._logger if run_options is None else self._logger.of_run(run_options)

    def _with_adapters(self, input_feed, adapters):
        """Inputs with the tensors of a run's adapters, which count less than what the caller gives by itself."""
        given = {name: value for name, value in parameters_of(adapters).items() if name not in self._adapted}
        return {**given, **input_feed}

    def _adapted_to(self, adapters) -> Runnable:
        """The session that has those tensors of adapters which are not for inputs."""
        return self

    def io_binding(self) -> IOBinding:
        """A new IOBinding for this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on what is bound. Raises `InvalidArgument` for the binding of another session."""
        if iobinding._session is not self:
            raise InvalidArgument("IOBinding must be used with the session that created it.")
        iobinding._iobinding._run(run_options)

    @staticmethod
    def _check_types(output_names, input_feed, run_options) -> None:
        if isinstance(output_names, (str, bytes)):
            raise TypeError(f"output_names is a list of names or None, got {output_names!r}")
        if type(input_feed) is not dict and not (hasattr(input_feed, "keys") and hasattr(input_feed, "__getitem__")):
            raise TypeError(f"input_feed is a dict of arrays by name, got {type(input_feed).__name__}")
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run_options are RunOptions, got {type(run_options).__name__}")

    def _indices(self, names):
        try:
            return [self._output_index[name] for name in names]
        except KeyError:
            (name, *_) = [name for name in names if name not in self._output_index]
            raise UnknownName(unknown("output", name, self._output_index)) from None
        except TypeError:
            raise TypeError(f"names of outputs are str, got {names!r}") from None

    def _check_input(self, name) -> None:
        if name not in self._input_names:
            raise UnknownName(unknown("input", name, [arg.name for arg in self._inputs]))

    def _check_names(self, feed):
        for name in feed:
            self._check_input(name)
        missing = [arg.name for arg in self._inputs if arg.name not in feed and not arg._is_optional]
        if missing:
            raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run needs, in the model's order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Empty: initializers are constants of the code."""
        return []

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where each input lies best: in the memory of the CUDA device that the session uses, or in the CPU's."""
        return [memory_of(self._place_of(arg)) for arg in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where each output lies when it is computed: in the memory of the CUDA device that the session uses, or in the CPU's."""
        return [memory_of(self._place_of(arg)) for arg in self._outputs]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """What reads each input: the CUDA device that the session uses, or the CPU."""
        return [OrtEpDevice(self._place_of(arg)) for arg in self._inputs]

    def _place_of(self, arg: NodeArg) -> int:
        """The number of the session's CUDA device, or CPU: tensors of numbers may lie on a device."""
        is_tensor = arg.type.startswith("tensor(") and arg.type != "tensor(string)"
        return self._session.device if is_tensor and self._session.device >= 0 else CPU

    def get_modelmeta(self) -> ModelMetadata:
        """What the model file says about itself."""
        return ModelMetadata(self._session.metadata)

    def get_providers(self) -> list[str]:
        """The execution providers by name: CUDA's, where kernels run on a device, and the CPU's."""
        return list(self._used_providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options by the name of a provider, as text; the CPU's has none."""
        return {name: dict(options) for name, options in self._used_providers.items()}

    def set_providers(self, providers=None, provider_options=None) -> None:
        """Accepted for compatibility: a session keeps the providers that it was loaded with, which a warning says where others
        are named. Raises `Fail` for a name that onnxruntime never had."""
        chosen = choose(providers, provider_options)
        if (chosen is not None) != (CUDA_PROVIDER in self._used_providers) and providers:
            tell_once("set_providers", "a session keeps the providers that it was loaded with")

    def disable_fallback(self) -> None:
        """Accepted for compatibility: there is nothing to fall back from."""

    def enable_fallback(self) -> None:
        """Accepted for compatibility: there is nothing to fall back from."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Accepted for compatibility: graphs are captured on GPUs only."""

    def get_tuning_results(self) -> list:
        """Empty: nothing is tuned at run time."""
        return []

    def set_tuning_results(self, results, *, error_on_invalid: bool = False) -> None:
        """Nothing is tuned at run time, so no results fit: with `error_on_invalid` raises `Fail`."""
        if results and error_on_invalid:
            raise Fail("Invalid TuningResults (index=0). CPUExecutionProvider does not support TunableOp.")

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        """Options of providers that may change; the CPU's has none, and a warning says so once."""
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

    def __init__(self, path, threads=0, memory_limit=0, device=None, device_memory_limit=0, stream=0):
        self._origin = os.fspath(path)
        self._given = os.path.abspath(path), threads, memory_limit, device, device_memory_limit, stream
        self._session = _runtime.load(os.fspath(path), threads, memory_limit, device, device_memory_limit, stream)
        if self._session.device >= 0:
            options = {"device_id": str(self._session.device)}
            self._used_providers = {CUDA_PROVIDER: options, **self._used_providers}
        self._describe()

    def __reduce__(self):
        if self._given[-1]:
            raise TypeError("a model with a stream of this process cannot be pickled")
        return BuiltModel, self._given


def load(
    path,
    *,
    threads: int = 0,
    memory_limit: int = 0,
    device: int | None = None,
    device_memory_limit: int = 0,
    stream: int = 0,
) -> BuiltModel:
    """Loads a shared library of `sardonyx build`, which needs no compiler and no cache.

    What it gives runs like an `InferenceSession`. The file's code runs in this process: load only what
    you trust. It is read once, and refused where it is damaged or for another processor. `threads`: 0
    is as many as it was built for; `memory_limit`: bytes that runs and results may take, 0 is what the
    machine has.

    A model that was built for CUDA devices runs on the one of the number `device`, by default 0; with a
    number, a model that was built for processors is refused. `device_memory_limit`: bytes of the device's
    memory that weights, runs and results may take, 0 is what there is; `stream`: the address of a CUstream
    that all work is given to, and which outlives the model, 0: each run has its own.
    """
    return BuiltModel(path, threads, memory_limit, device, device_memory_limit, stream)


def get_available_providers() -> list[str]:
    """The execution providers that are here: CUDA's, where there are a driver and a device, and the CPU's."""
    return available_providers()


def get_all_providers() -> list[str]:
    """The execution providers that onnxruntime can be built with; names of others are refused."""
    return list(ALL_PROVIDERS)


def get_device() -> str:
    """What models can run on: "GPU" where CUDA's provider is available, else "CPU"."""
    return "GPU" if CUDA_PROVIDER in available_providers() else "CPU"


def set_default_logger_severity(severity: int) -> None:
    """The least severe messages that sessions write to stderr which do not say it themselves: 0 to 4, 2 by default."""
    severity = integer(severity)
    if not 0 <= severity <= log.FATAL:
        raise Fail("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    log.set_default(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted for compatibility: there is one level of verbose messages."""
    integer(verbosity)


def set_seed(seed: int) -> None:
    """Accepted for compatibility; a warning says once that operators without a seed draw numbers that nobody can foretell."""
    integer(seed)
    tell_once("set_seed", "operators without a seed draw numbers that nobody can foretell")


def get_version_string() -> str:
    """Sardonyx's version."""
    return _runtime.__version__


def get_build_info() -> str:
    """What this is, in a line."""
    return f"Sardonyx {_runtime.__version__}, Build Info: API of onnxruntime {API_VERSION}"


def has_collective_ops() -> bool:
    """Whether there are operators that run on several machines: no."""
    return False
