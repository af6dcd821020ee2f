"""InferenceSession, which compiles, and the compiler's own functions."""

from __future__ import annotations

import atexit
import contextlib
import copy
import operator
import os
import threading
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import _log as log
from . import _sardonyx
from ._adapters import LoraAdapter, parameters_of
from ._cuda import set_options
from ._loading import INTERRUPTED, choose_by, folder_of, with_config_of
from ._options import SessionOptions
from ._overridable import overridable
from ._providers import CUDA_PROVIDER, choose
from ._running import NodeArg, Runnable
from ._suggest import unknown
from ._values import type_name
from .errors import Fail, InvalidArgument, ModelLoadCanceled, NotImplemented, UnknownName

if TYPE_CHECKING:
    from onnx import ModelProto

# Threads that still load models must not meet a process that is half gone.
atexit.register(_sardonyx.stop_loading)
# One thread at a time compiles a model for adapters.
_compiling = threading.Lock()


def _write_trace(session: _sardonyx.Session, prefix: str, start: int) -> str:
    """Writes what a session has recorded to a file of its own and gives its name."""
    stem = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    number = 0
    while True:
        path = f"{stem}_{number}.json" if number else f"{stem}.json"
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(session.take_trace(start))
            return path
        except FileExistsError:
            number += 1


def model_source(model) -> tuple[str, bytes]:
    """(path, bytes), one of them empty, of a path, bytes or an onnx.ModelProto."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), b""
    if hasattr(model, "SerializeToString"):
        return "", model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return "", bytes(model)
    raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


class InferenceSession(Runnable):
    """A model, compiled and ready to run.

    `path_or_bytes` is a path, the bytes of a model, or an onnx.ModelProto. `run` may be called by
    any number of threads at a time; Python runs on meanwhile.

    `providers` and `provider_options` are onnxruntime's: "CUDAExecutionProvider" before "CPUExecutionProvider", or alone,
    runs the model on a GPU (`docs/howto/GPU.md`). Names that onnxruntime never had raise `Fail`; a warning says so where none
    of them is there. `read_config_from_model` or the environment variable
    ORT_LOAD_CONFIG_FROM_MODEL=1 takes options from the model's metadata, as onnxruntime does.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike | bytes | ModelProto,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict]] | None = None,
        provider_options: Sequence[dict] | None = None,
        *,
        read_config_from_model: bool | int | None = None,
        **kwargs,
    ):
        chosen = choose(providers, provider_options)
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options are SessionOptions, got {type(sess_options).__name__}")
        self._options = sess_options or SessionOptions()
        path, data = model_source(path_or_bytes)
        self._model_path = path or None  # as onnxruntime's class has it
        self._origin = path or None
        if read_config_from_model is None:
            read_config_from_model = os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1"
        if read_config_from_model:
            self._options = with_config_of(_sardonyx.inspect(path, data, {}, _sardonyx.Options()), self._options)
        self._logger = log.Logger(self._options.log_severity_level, self._options.logid)
        self._options._check_formats()
        native = self._options._native()
        if not providers:
            chosen = self._options._chosen
        if chosen:
            set_options(native, *chosen)
        # As an adapter may need them to load the model again.
        self._given_providers = providers, provider_options
        # Programs set them for whatever models they load.
        native.may_dims_be_unknown = True
        if not path:
            native.external_data_dir = native.external_data_dir or self._options._entry(
                "model_external_initializers_file_folder_path"
            )
        if self._options._files:
            self._folder = folder_of(self._options._files)
            native.external_data_dir, native.cache = self._folder.name, False
        self._profiling_start = time.monotonic_ns()
        watch = log.Stopwatch()
        self._session = self._load(path, data, native)
        if chosen and self._session.uses_cuda:
            self._used_providers = {CUDA_PROVIDER: chosen[0], **self._used_providers}
        if self._options._delegate is not None:
            choose_by(self._options._delegate, self._session.metadata)
        steps = ", ".join(f"{step} {seconds * 1000:.1f} ms" for step, seconds in self.timings.items())
        self._logger.info("load", f"{path or 'a model in memory'} took {watch} ({steps})")
        for text in self._session.take_warnings():
            self._logger.warning("load", text)
        if self._options.optimized_model_filepath:
            weights = self._options._weights_file()
            _sardonyx.save_optimized(path, data, self._options.optimized_model_filepath, native, *weights)
        if self._session.cache_problem and self._logger.takes(log.WARNING):
            warnings.warn(self._session.cache_problem, RuntimeWarning, stacklevel=2)
        self._describe()
        # What an adapter may need to compile the model again: bytes are kept only where one can.
        self._source: str | bytes = path or (data if overridable(data) else b"")
        self._variants: dict[tuple[LoraAdapter, ...], InferenceSession] = {}
        self._end_profiling = None
        if native.profile:
            # As onnxruntime does, also when the session goes without having been asked.
            prefix = os.fspath(self._options.profile_file_prefix)
            self._end_profiling = weakref.finalize(self, _write_trace, self._session, prefix, self._profiling_start)

    def __reduce__(self):
        """Loaded again from its path, which has to be there where it is."""
        if not self._origin:
            raise TypeError("a session of a model in memory cannot be pickled; one of a file can")
        return InferenceSession, (os.path.abspath(self._origin), self._options, *self._given_providers)

    def take_observations(self) -> dict[str, dict]:
        """What runs have seen of the tensors of `SessionOptions.observe`, {tensor: {what: number or array}}, and begins
        anew. It waits for runs to end, and counts those that failed, too, as far as they came.

        - range: min, max (NaN passed over; inf and -inf where nothing was seen), nans, infinities;
        - moments: sum, square_sum;
        - bits: bins, int64 [16384], how many numbers have which upper 14 bits of their f32 form: sign, exponent and 5
          bits of mantissa;
        - these three: count;
        - channels: channel_min, channel_max, channel_absolute_sum and channel_square_sum, f64 [channels], and
          channel_count, the numbers of each;
        - gram: gram, f64 [K, K], the sum of XᵀX of all runs, X being the tensor as a matrix of K columns, its last axis.
        """
        return self._session.take_observations()

    def find_non_finite(self) -> list[str]:
        """The tensors of which runs have seen NaN or an infinite number since `take_observations`, among those whose
        range is observed."""
        return self._session.find_non_finite()

    def _load(self, path: str, data: bytes, native: _sardonyx.Options) -> _sardonyx.Session:
        cancel = self._options._cancel
        # Also where the model is in the cache, and loaded at once.
        if cancel.is_set():
            raise ModelLoadCanceled(INTERRUPTED)
        with self._elsewhere(path, data, native) as elsewhere:
            try:
                return _sardonyx.load(path, native) if path else _sardonyx.load_bytes(data, native)
            except Fail as failure:
                if elsewhere and elsewhere.error:
                    raise elsewhere.error from None
                if cancel.is_set():
                    raise ModelLoadCanceled(str(failure)) from None
                raise

    def _elsewhere(self, path: str, data: bytes, native: _sardonyx.Options):
        """What compiles in the place of this process, or None, as a context for the load."""
        if self._options.compile != "process":
            return contextlib.nullcontext()
        from ._compile_process import CompileProcess

        return CompileProcess(path, data, self._options, native, self._given_providers)

    def _adapted_to(self, adapters: Sequence[LoraAdapter]) -> Runnable:
        given = parameters_of(adapters)
        names = given.keys() - self._input_names - self._adapted
        if not names:
            return self
        known = [arg.name for arg in self.get_overridable_initializers()]
        for name in names:
            if name not in known:
                raise UnknownName(unknown("input", name, [*(arg.name for arg in self._inputs), *known]))
        key = tuple(adapters)
        with _compiling:
            if key not in self._variants:
                options = copy.copy(self._options)
                tensors = {name: (*given[name]._as_initializer(name), False) for name in names}
                options._initializers = {**options._initializers, **tensors}
                options.optimized_model_filepath, options._delegate = "", None
                session = InferenceSession(self._source, options, *self._given_providers)
                session._adapted = self._adapted | names
                self._variants[key] = session
            return self._variants[key]

    def _check_input(self, name) -> None:
        if name not in self._input_names and name in [arg.name for arg in self.get_overridable_initializers()]:
            raise InvalidArgument(
                f"'{name}' is an initializer of the model, and so a constant of its code; "
                "SessionOptions.add_initializer and adapters give it another value"
            )
        super()._check_input(name)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initializers that are inputs, too, in the model's order: adapters may give them other values
        (`RunOptions.add_active_adapter`), and so may `SessionOptions.add_initializer`."""
        return [
            NodeArg(name, f"tensor({type_name(element_type)})", element_type, shape, 0, False, 0)
            for name, element_type, shape in overridable(self._source)
            if name not in self._adapted
        ]

    @property
    def _sess_options(self) -> SessionOptions:
        return self._options

    def get_session_options(self) -> SessionOptions:
        """The options of the session, or those that it made of them and of the model's own."""
        return self._options

    def end_profiling(self) -> str:
        """Writes what the runs have recorded to `profile_file_prefix` + "_DATE.json" and gives the name.

        The file is in Chrome's trace event format, which Perfetto shows. A later run goes to no file. An
        empty name: the session was not loaded with `enable_profiling`, or has ended profiling before.
        """
        return (self._end_profiling and self._end_profiling()) or ""

    def get_provider_graph_assignment_info(self) -> list:
        """Raises `Fail` without the config entry `session.record_ep_graph_assignment_info`, else `NotImplemented`: nodes
        are compiled together, all for the CPU."""
        if self._options._entry("record_ep_graph_assignment_info") != "1":
            raise Fail(
                "Session configuration entry 'session.record_ep_graph_assignment_info' must be set to \"1\" to retrieve "
                "EP graph assignment information."
            )
        raise NotImplemented("there is no list of the nodes that a provider runs: they are compiled together, for the CPU")

    def get_profiling_start_time_ns(self) -> int:
        """What the times of the trace count from, as `time.monotonic_ns` has it."""
        return self._profiling_start

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each step of loading took."""
        return self._session.timings

    def wait_for_compile(self, timeout: float | None = None) -> bool:
        """Waits for what `SessionOptions.compile = "background"` has a thread compile: True when runs go by it, False after
        `timeout` seconds; True at once where nothing is compiled. Raises what keeps the model from being compiled, with
        which the session goes on by plain code, after a warning. Runs need not wait."""
        return self._session.wait_for_compile(None if timeout is None else float(timeout))

    @property
    def device_use(self) -> dict[str, float] | None:
        """What the run that ended last has had the device do: `kernels`, `copies` between the host and the device and their
        `copied_bytes`, `submissions` (a graph is one), `waits`, `memory_bytes` of the device at its end, and `host_seconds`,
        in which it did not wait. None without a device, or before any run."""
        return self._session.device_use

    @property
    def from_cache(self) -> bool:
        """Whether the compiled model was found on disk."""
        return self._session.from_cache


def _sizes(dims) -> dict[str, int]:
    """`dims` of a caller, checked."""
    dims = {} if dims is None else dims
    if not isinstance(dims, Mapping) or not all(isinstance(name, str) for name in dims):
        raise TypeError(f"dims is a dict of sizes by the names of dimensions, got {dims!r}")
    return {name: operator.index(size) for name, size in dims.items()}


def _native_of(options) -> _sardonyx.Options:
    if options is not None and not isinstance(options, SessionOptions):
        raise TypeError(f"options are SessionOptions, got {type(options).__name__}")
    return (options or SessionOptions())._native()


def build(
    model,
    output,
    *,
    dims: dict[str, int] | None = None,
    cpus: list[str] | None = None,
    target: str | list[str] = "",
    name: str = "",
    weights="",
    static: bool = False,
    options: SessionOptions | None = None,
) -> list[str]:
    """Makes a file of a model that runs it without Sardonyx, and gives the names of all files written.

    `output` ends in .so, .o, .a or .wasm, or is a program. `dims` fixes named dimensions; others stay open. `cpus`: the
    processors to make code for, the best first (["x86-64-v4", "x86-64-v3"]; default this machine's). `target`:
    the machine ("aarch64-linux-gnu"; default this one), GPUs of NVIDIA's ("nvidia:sm_90a,sm_80", with ",cpu" where
    the processor may compute what has no kernels there), or a list of both. `name`: what the
    model is called in C. `weights`: a file for the weights beside. `static`: a program that needs no C library.
    `load` loads a .so again.
    """
    path, data = model_source(model)
    native = _native_of(options)
    native.dims = {**native.dims, **_sizes(dims)}
    targets = [target] if isinstance(target, str) else list(target)
    return _sardonyx.build(path, data, os.fspath(output), native, cpus or [], targets, name, os.fspath(weights), static)


def compile(
    model, to: str = "linalg", options: SessionOptions | None = None, elide_weights: bool = False
) -> str:
    """The model after a phase of the compiler, as MLIR text; `to="asm"` gives assembly.

    `sardonyx.phases()` lists the phases. `elide_weights` leaves out large weights, without which nothing
    can go on from the text.
    """
    path, data = model_source(model)
    if not isinstance(to, str):
        raise TypeError(f"to is the name of a phase, got {to!r}")
    return _sardonyx.compile_to_text(path, data, to, _native_of(options), bool(elide_weights))


def inspect(model, dims: dict[str, int] | None = None, options: SessionOptions | None = None) -> dict:
    """What is in a model: inputs, outputs, operators, operations a run, bytes of weights, and
    all that is not supported. `dims` gives named dimensions a size."""
    path, data = model_source(model)
    return _sardonyx.inspect(path, data, _sizes(dims), _native_of(options))
