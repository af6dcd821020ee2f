"""SessionOptions, as onnxruntime has them."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Optional, Union

from . import _sardonyx
from ._attributes import Attribute, Options, anything, flag, integer, member_of, names, tell_once, text
from ._config_keys import SESSION
from ._custom import CustomOps, together
from ._run_options import MOST, positive
from ._devices import OrtEpDevice, OrtExecutionProviderDevicePolicy
from ._providers import CUDA_PROVIDER, PROVIDERS, available_providers, check_provider
from ._values import OrtValue
from .errors import Fail, InvalidArgument, NotImplemented


class GraphOptimizationLevel(enum.IntEnum):
    """Accepted for compatibility: the compiler always does all it can."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Accepted for compatibility: operators run one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Accepted for compatibility: the order is fixed when the model is compiled."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_PLANNED = "memory is planned when the model is compiled"
_NUMERICS = ("exact", "f32", "fast")
_COMPILES = ("wait", "background", "process")
_PRECISIONS = ("f32", "tf32", "f16", "bf16", "bf16x3")
_KINDS = {"range": 1, "moments": 2, "bits": 4, "channels": 8, "gram": 16}
_pool_size: int | None = None


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """How many threads the runs of sessions without `use_per_session_threads` use; 0: one for each core. It is
    said once, and then counts for all sessions. Operators run one after the other: `inter_op_num_threads` is not needed."""
    global _pool_size
    size = integer(intra_op_num_threads)
    integer(inter_op_num_threads)
    _check_threads(size)
    if _pool_size is not None:
        raise Fail("Global thread pools have already been created, cannot replace them")
    _pool_size = size


def _check_threads(threads: int) -> None:
    if not 0 <= threads <= _sardonyx.MAX_THREADS:
        raise InvalidArgument(f"intra_op_num_threads must be from 0 to {_sardonyx.MAX_THREADS}, got {threads}")


def _one_of(names: tuple[str, ...], what: str, name) -> str:
    if not isinstance(name, str) or name not in names:
        raise InvalidArgument(f"{what} must be {', '.join(map(repr, names))}, got {name!r}")
    return name


def _observed(name: str, kinds) -> tuple[int, int]:
    """(bits of the kinds, axis of the channels) of what `SessionOptions.observe` has for a tensor."""
    bits, axis = 0, 1
    for kind in kinds.split("|") if isinstance(kinds, str) else kinds:
        if isinstance(kind, tuple) and len(kind) == 2 and kind[0] == "channels":
            kind, axis = kind[0], operator.index(kind[1])  # noqa: PLW2901
        bits |= _KINDS[_one_of(tuple(_KINDS), f"what is observed of {name!r}", kind)]
    if not bits:
        raise InvalidArgument(f"nothing is to be observed of {name!r}; it can be {', '.join(_KINDS)}")
    return bits, axis


class SessionOptions(Options):
    """How to compile and run a model: onnxruntime's attributes, and Sardonyx's own."""

    intra_op_num_threads = Attribute(0, integer, "Threads that a run uses; 0: one for each core.")
    inter_op_num_threads = Attribute(0, integer, "Threads for operators.", hint="operators run one after the other")
    graph_optimization_level = Attribute(
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        member_of(GraphOptimizationLevel),
        "How much to optimise.",
        hint="the compiler always does all it can",
    )
    execution_mode = Attribute(
        ExecutionMode.ORT_SEQUENTIAL,
        member_of(ExecutionMode),
        "Whether operators run side by side.",
        hint="operators run one after the other, each on all threads",
    )
    execution_order = Attribute(
        ExecutionOrder.DEFAULT,
        member_of(ExecutionOrder),
        "The order in which operators run.",
        hint="the order is fixed when the model is compiled",
    )
    log_severity_level = Attribute(-1, integer, "The least severe messages that the session tells, 0 to 4; -1: the default.")
    log_verbosity_level = Attribute(0, integer, "How much is told.", hint="there is one level of verbose messages")
    logid = Attribute("", text, "What messages of the session call it.")
    enable_cpu_mem_arena = Attribute(True, flag, "Take memory by large pieces.", hint=_PLANNED)
    enable_mem_pattern = Attribute(True, flag, "Plan memory.", hint=_PLANNED)
    enable_mem_reuse = Attribute(True, flag, "Use memory again.", hint=_PLANNED)
    enable_profiling = Attribute(
        False, flag, "Record when each step of each run begins and ends, until `InferenceSession.end_profiling`."
    )
    observe = Attribute[Union[dict, None]](
        None,
        anything,
        "What runs are to see of tensors that are floats, by the tensors' names: 'range', 'moments', 'bits', 'channels' "
        "(or ('channels', axis)) and 'gram', one or several of them; see `InferenceSession.take_observations`.",
    )
    optimized_model_filepath = Attribute("", text, "Where to write the model after the compiler's phase `onnx`.")
    profile_file_prefix = Attribute("sardonyx_profile_", text, "What the names of profiles begin with.")
    use_deterministic_compute = Attribute(
        False, flag, "Give the same results each time.", hint="there is one way to compute each operator"
    )
    use_per_session_threads = Attribute(
        True, flag, "Whether the session has threads of its own, or those of `set_global_thread_pool_sizes`."
    )

    cache = Attribute(True, anything, "Keep compiled models and their packed weights on disk.")
    cache_dir = Attribute[Union[str, os.PathLike]]("", anything, "Where; empty: a folder of the user's.")
    compile = Attribute(
        "wait",
        anything,
        "When the model is compiled. 'wait': before it is loaded. 'background': to plain code first, in a third to two "
        "thirds of the time, which is two to four times slower; a thread compiles the rest, and runs go by that as soon as "
        "it is there (see `InferenceSession.wait_for_compile`). Results of both are within the tolerance of `numerics`. "
        "'process': by another process, started for it where the cache does not have the model, before it is loaded: this "
        "one never holds the compiler's memory, and is not hurt where the compiler fails.",
    )
    cpu = Attribute("", anything, "The processor to compile for, by LLVM's name; empty: this machine's.")
    cpu_features = Attribute("", anything, "Its features, as LLVM spells them; empty: this machine's.")
    external_data_dir = Attribute[Union[str, os.PathLike]](
        "", anything, "The folder that external data must lie in; empty: the model file's."
    )
    numerics = Attribute(
        "f32",
        anything,
        "How exact f32 is. 'exact': one product and addition in f32 after the other. 'f32': what keeps a network's error "
        "against f64 within twice that (within eight times where normalisations take away what all channels have in "
        "common): Winograd's and Strassen's algorithms, weights in 21 or 24 bits where rounding takes little of them, "
        "products as sums of three bf16. 'fast': also what loses more: convolutions by filters of 16 bits where the "
        "processor has AMX, some 2e-6 a layer.",
    )
    precision = Attribute(
        "f32",
        anything,
        "What operands of products and convolutions of f32 may be rounded to where that is faster: 'tf32' "
        "(11 bits, the range of f32), 'f16' (11 bits, up to 65504), 'bf16' (8 bits), 'bf16x3' (two bf16 together, 16 bits). Sums "
        "and what is no such operand stay f32. Processors take 'bf16' where they multiply such numbers, 'f16' for weights that come from memory for few rows, "
        "and compute in f32 otherwise.",
    )
    split_floats = Attribute[Optional[bool]](
        None,
        anything,
        "Use the tile registers of AMX for f32 where `numerics` allows it. None: where one thread computes, or all on a "
        "Granite Rapids.",
    )
    outputs = Attribute[Sequence[str]](
        (),
        names,
        "Values of the model's main graph, by name, that runs give in the place of its outputs, in this order; what only "
        "others need is not computed. Empty: the model's outputs.",
    )
    plan = Attribute[Union[str, os.PathLike]](
        "",
        anything,
        "A file that `sardonyx plan MODEL -o FILE` wrote, maybe edited: kernels in it are computed as it says. Lines of "
        "kernels that the model has not are warnings, plans that do not fit are errors.",
    )
    check_bounds = Attribute(
        False,
        anything,
        "Have code look at every index before it reads or writes there and fail the run where one lies outside: slow, "
        "for finding faults.",
    )
    perf_map = Attribute(False, anything, "Tell `perf` the kernels' names.")
    memory_limit = Attribute[Optional[int]](
        None, anything, "Bytes that packed weights, runs and results may take; None: what the machine has."
    )
    compile_timeout = Attribute[Optional[float]](None, anything, "Seconds that compiling may take; None: as long as it likes.")

    _known_entries = SESSION

    def __init__(self):
        super().__init__()
        self._custom_ops = CustomOps()
        self._cancel = _sardonyx.CancelFlag()
        self._has_providers = False
        # What `choose` of _providers gives: CUDA's options and whether the CPU's may stand in for it.
        self._chosen: tuple[dict[str, str], bool] | None = None
        self._delegate: Callable | None = None
        self._denoted_dims: dict[str, int] = {}
        self._initializers: dict[str, tuple] = {}
        self._files: dict[str, bytes] = {}
        self._dims: dict[str, int] = {}
        self._input_shapes: dict[str, list[int]] = {}

    def __copy__(self) -> SessionOptions:
        """One that `set_load_cancellation_flag` of this one cancels, too."""
        made = SessionOptions.__new__(SessionOptions)
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict:
        """Without the flag of `set_load_cancellation_flag`, which is of the process. Raises `TypeError` for what only this
        process has: custom operators and a function that chooses devices."""
        if not self._custom_ops._is_empty:
            raise TypeError("SessionOptions with custom operators cannot be pickled")
        if self._delegate is not None:
            raise TypeError("SessionOptions with a function that chooses devices cannot be pickled")
        return {name: value for name, value in self.__dict__.items() if name not in ("_cancel", "_custom_ops")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._cancel, self._custom_ops = _sardonyx.CancelFlag(), CustomOps()

    @property
    def custom_ops(self) -> CustomOps:
        """Operators beyond ONNX's own."""
        return self._custom_ops

    @custom_ops.setter
    def custom_ops(self, value: CustomOps) -> None:
        if not isinstance(value, CustomOps):
            raise TypeError(f"SessionOptions.custom_ops takes CustomOps, got {type(value).__name__}")
        self._custom_ops = value

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps a text by its key. Of onnxruntime's entries these have an effect:

        - `session.optimized_model_external_initializers_file_name` puts the weights of the model that
          `optimized_model_filepath` asks for, those of at least
          `session.optimized_model_external_initializers_min_size_in_bytes` (default 1024), into a file of this name
          beside it;
        - `session.model_external_initializers_file_folder_path` is the folder of the external data of a model that is
          given as bytes;
        - `session.load_model_format` and `session.save_model_format` other than ONNX are refused when a model is loaded;
        - `session.record_ep_graph_assignment_info`: see `InferenceSession.get_provider_graph_assignment_info`.

        The others are hints. Raises `InvalidArgument` for a key that is a misspelt one of onnxruntime's, and warns once
        of any other.
        """
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The text by a key; raises `Fail` where none was added."""
        return self._get_entry(key)

    def set_load_cancellation_flag(self, value: bool) -> None:
        """While it is true, loading with these options ends, and none begins. Any thread may set it."""
        try:
            self._cancel.set(flag(value))
        except TypeError:
            raise TypeError(f"set_load_cancellation_flag takes a bool, got {value!r}") from None

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Adds CUDA's, where it is available, or the CPU's, which all models run on where nothing else does. What
        `InferenceSession` is given itself counts more. Raises `InvalidArgument` for others, `Fail` for names of none."""
        check_provider(name)
        if name not in available_providers():
            raise InvalidArgument(f"there is no provider '{name}'; there is {PROVIDERS[0]}")
        if name == CUDA_PROVIDER:
            from . import _cuda

            self._chosen = _cuda.check_options({str(key): str(value) for key, value in options.items()}), False
            self._has_providers = True
            return
        if self._chosen:
            self._chosen = self._chosen[0], True
        for key in options:
            tell_once(f"the option '{key}' of {name}", "the provider has none")
        self._has_providers = True

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: dict[str, str]) -> None:
        """The same for devices that `get_ep_devices` gives."""
        if not devices or not all(isinstance(device, OrtEpDevice) for device in devices):
            raise InvalidArgument(f"add_provider_for_devices takes OrtEpDevices, got {devices!r}")
        first = devices[0]
        if any(device != first for device in devices):
            raise InvalidArgument("add_provider_for_devices takes one device: a session runs on one")
        self.add_provider(first.ep_name, {**first.ep_options, **options})

    def has_providers(self) -> bool:
        """Whether a provider was added, or a policy set to choose one."""
        return self._has_providers

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Accepted for compatibility: there is one device to choose."""
        OrtExecutionProviderDevicePolicy(policy)
        self._has_providers = True

    def set_provider_selection_policy_delegate(self, delegate: Callable) -> None:
        """Has loading call `delegate(devices, model_metadata, runtime_metadata, max_selections)`, which gives a list of
        the devices to use; an empty one fails the loading."""
        if not callable(delegate):
            raise TypeError(f"set_provider_selection_policy_delegate takes a function, got {delegate!r}")
        self._delegate = delegate
        self._has_providers = True

    def set_ep_context_data_read_func(self, read_func: Callable, max_data_size: int) -> None:
        """Accepted for compatibility: models that hold the code of other providers are refused anyway."""
        if not callable(read_func):
            raise TypeError(f"set_ep_context_data_read_func takes a function, got {read_func!r}")
        operator.index(max_data_size)

    def clear_ep_context_data_read_func(self) -> None:
        """Accepted for compatibility."""

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compiles for this size of a named dimension; the session takes no other. A name that no input has is told in a
        warning."""
        if not isinstance(name, str):
            raise TypeError(f"the name of a dimension is a str, got {name!r}")
        self._dims[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """The same for all open dimensions of inputs with this denotation."""
        if not isinstance(denotation, str):
            raise TypeError(f"a denotation is a str, got {denotation!r}")
        self._denoted_dims[denotation] = operator.index(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """A tensor in the place of the model's initializer of this name, if it has one. What it holds is copied."""
        self._give_initializer(name, value, False)

    def add_external_initializers(self, names, values) -> None:
        """Tensors in the place of initializers whose data lie in files beside the model, which are not read then."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise Fail(f"Expecting names and ort_values lists to have equal length, got {len(names)} and {len(values)}")
        for name, value in zip(names, values):
            self._give_initializer(name, value, True)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence, lengths: Sequence[int]
    ) -> None:
        """Whole files of external data by the names that the model calls them by, with as many bytes as `lengths` says
        of each buffer. They are copied. A model that finds all its files here needs no folder; the compiled model is
        not kept on disk."""
        names, buffers, lengths = list(names), list(buffers), [operator.index(length) for length in lengths]
        if not len(names) == len(buffers) == len(lengths):
            raise Fail(
                "Expecting names, buffers and lengths lists to have equal length, got "
                f"{len(names)}, {len(buffers)} and {len(lengths)}"
            )
        for name, buffer, length in zip(names, buffers, lengths):
            data = memoryview(buffer).cast("B")
            if not 0 <= length <= len(data):
                raise InvalidArgument(f"file '{name}' is to have {length} bytes, its buffer has {len(data)}")
            parts = PurePosixPath(name).parts if isinstance(name, str) else ()
            if not parts or name.startswith("/") or ".." in parts:
                raise InvalidArgument(f"a file of external data is named relative to the model, got {name!r}")
            if name in self._files:
                raise Fail(f"file '{name}' has already been added")
            self._files[name] = bytes(data[:length])

    def _give_initializer(self, name: str, value: OrtValue, is_external: bool) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of an initializer is a str, got {name!r}")
        if not isinstance(value, OrtValue):
            raise Fail(f"initializer '{name}' must be given as an OrtValue, got {type(value).__name__}")
        if name in self._initializers:
            raise Fail(f"An OrtValue for the initializer '{name}' has already been added")
        self._initializers[name] = (*value._as_initializer(name), is_external)

    def set_input_shape(self, name: str, shape) -> None:
        """Compiles for this shape of an input, whatever the model declares; None leaves a dimension open."""
        if not isinstance(name, str):
            raise TypeError(f"the name of an input is a str, got {name!r}")
        self._input_shapes[name] = [-1 if size is None else operator.index(size) for size in shape]

    def register_custom_ops_library(self, path: str) -> None:
        """The operators of a shared library: `docs/howto/CustomOps.md` tells what it has to export."""
        self.custom_ops.register_library(path)

    def _entry(self, key: str) -> str:
        """A config entry, or an empty text."""
        return self._entries.get(f"session.{key}", "")

    def _check_formats(self) -> None:
        for key in ("load_model_format", "save_model_format"):
            if self._entry(key) not in ("", "ONNX"):
                raise NotImplemented(
                    f"the config entry 'session.{key}' is {self._entry(key)!r}; only ONNX models are supported"
                )

    def _weights_file(self) -> tuple[str, int]:
        """(name, bytes from which on a weight goes there) of the optimised model's file of weights."""
        size = self._entry("optimized_model_external_initializers_min_size_in_bytes") or "1024"
        if not size.isascii() or not size.isdigit():
            raise InvalidArgument(
                f"the config entry 'session.optimized_model_external_initializers_min_size_in_bytes' is {size!r}, no number of bytes"
            )
        return self._entry("optimized_model_external_initializers_file_name"), min(int(size), MOST)

    def _threads(self) -> int:
        _check_threads(self.intra_op_num_threads)
        if self.use_per_session_threads:
            if _pool_size is not None:
                raise Fail("use_per_session_threads must be false when using a global thread pool")
            return self.intra_op_num_threads
        if _pool_size is None:
            raise Fail("without use_per_session_threads, set_global_thread_pool_sizes has to be called before")
        return _pool_size

    def _native(self) -> _sardonyx.Options:
        options = _sardonyx.Options()
        options.threads = self._threads()
        options.memory_limit = min(int(positive(self.memory_limit, "memory_limit")), MOST)
        options.compile_timeout = positive(self.compile_timeout, "compile_timeout")
        options.cache = bool(self.cache)
        options.cache_dir = os.fspath(self.cache_dir)
        options.cpu, options.features = self.cpu, self.cpu_features
        options.dims = self._dims
        options.set_cancel_flag(self._cancel)
        options.denoted_dims = self._denoted_dims
        options.set_initializers(self._initializers)
        options.input_shapes = self._input_shapes
        options.set_custom_ops(together(self.custom_ops))
        options.numerics = getattr(_sardonyx.Numerics, _one_of(_NUMERICS, "numerics", self.numerics))
        way = _one_of(_COMPILES, "compile", self.compile)
        options.compile = _sardonyx.Compile.background if way == "background" else _sardonyx.Compile.wait
        options.precision = getattr(_sardonyx.Precision, _one_of(_PRECISIONS, "precision", self.precision))
        options.split_floats = None if self.split_floats is None else bool(self.split_floats)
        options.outputs = list(self.outputs)
        if self.plan:
            with open(self.plan, encoding="utf-8") as file:
                options.plan = file.read()
        options.check_bounds = bool(self.check_bounds)
        options.profile = bool(self.enable_profiling)
        options.set_observe({name: _observed(name, kinds) for name, kinds in (self.observe or {}).items()})
        options.perf_map = bool(self.perf_map)
        options.external_data_dir = os.fspath(self.external_data_dir)
        return options
