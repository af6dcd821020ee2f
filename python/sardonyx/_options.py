"""SessionOptions, as onnxruntime has them."""

from __future__ import annotations

import enum
import operator
import os

from . import _sardonyx
from ._attributes import Attribute, Options, flag, integer, member_of, tell_once, text
from ._custom import CustomOps, together
from ._run_options import MOST, positive
from ._running import PROVIDERS
from ._values import OrtValue
from .errors import Fail, InvalidArgument


class GraphOptimizationLevel(enum.IntEnum):
    """Accepted for compatibility: the compiler always does all it can."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_PLANNED = "memory is planned when the model is compiled"
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


class SessionOptions(Options):
    """How to compile and run a model.

    `enable_profiling` has the session record when each step of each run begins and ends, until
    `InferenceSession.end_profiling`.

    Besides onnxruntime's attributes: `cache` (keep compiled models and their packed
    weights on disk, default true),
    `cache_dir`, `cpu` and `cpu_features` (LLVM's names; default this machine), `external_data_dir`,
    `winograd` (let 3x3 convolutions go by Winograd's algorithm, default true: faster, with rounding
    errors within four times those of a direct sum), `strassen` (let large products with weights go by
    Strassen's algorithm, default true: faster, with rounding errors about twice those of a sum in f32), `short_weights` (keep large weights that few rows are
    multiplied by in 21 or 24 bits a number, and those of Winograd's algorithm for small pictures in 24, where the error
    is about that of a sum in f32, 1e-6, default true: such products take as long as their weights take to read; also lets convolutions be split floats),
    `split_floats` (let large products of f32 go
    through the tile registers of AMX, each number as the sum of three of bf16, with rounding errors
    no larger than those of multiply-adds, and convolutions, whose weights are sums of two, with an error of some 2e-6 a layer; default `None`: where one thread computes, or all on a Granite Rapids), `check_bounds` (code looks at every index before
    it reads or writes there and fails the run where one lies outside: slow, for finding faults),
    `perf_map` (tell `perf` the kernels' names), `custom_ops` (operators beyond ONNX's own, see `CustomOps`), `memory_limit` (bytes that packed weights, runs and
    results may take; default what the machine has) and `compile_timeout`
    (seconds; default none). Those of onnxruntime's that have no effect say so once, by a warning.
    """

    intra_op_num_threads = Attribute(0, integer)
    inter_op_num_threads = Attribute(0, integer, "operators run one after the other", like_default=(1,))
    graph_optimization_level = Attribute(
        GraphOptimizationLevel.ORT_ENABLE_ALL, member_of(GraphOptimizationLevel), "the compiler always does all it can"
    )
    execution_mode = Attribute(
        ExecutionMode.ORT_SEQUENTIAL, member_of(ExecutionMode), "operators run one after the other, each on all threads"
    )
    execution_order = Attribute(
        ExecutionOrder.DEFAULT, member_of(ExecutionOrder), "the order is fixed when the model is compiled"
    )
    log_severity_level = Attribute(-1, integer)
    log_verbosity_level = Attribute(0, integer, "there is one level of verbose messages")
    logid = Attribute("", text)
    enable_cpu_mem_arena = Attribute(True, flag, _PLANNED)
    enable_mem_pattern = Attribute(True, flag, _PLANNED)
    enable_mem_reuse = Attribute(True, flag, _PLANNED)
    enable_profiling = Attribute(False, flag)
    optimized_model_filepath = Attribute("", text)
    profile_file_prefix = Attribute("sardonyx_profile_", text)
    use_deterministic_compute = Attribute(False, flag, "there is one way to compute each operator")
    use_per_session_threads = Attribute(True, flag)

    _own = frozenset({
        "cache", "cache_dir", "cpu", "cpu_features", "external_data_dir", "winograd", "strassen", "short_weights", "split_floats", "check_bounds",
        "perf_map", "memory_limit", "compile_timeout", "custom_ops",
    })  # fmt: skip

    def __init__(self):
        super().__init__()
        self.cache = True
        self.cache_dir = ""
        self.cpu = ""
        self.cpu_features = ""
        self.external_data_dir = ""
        self.winograd = True
        self.strassen = True
        self.short_weights = True
        self.split_floats: bool | None = None
        self.check_bounds = False
        self.perf_map = False
        self.memory_limit: int | None = None
        self.compile_timeout: float | None = None
        self.custom_ops = CustomOps()
        self._cancel = _sardonyx.CancelFlag()
        self._has_providers = False
        self._denoted_dims: dict[str, int] = {}
        self._initializers: dict[str, tuple] = {}
        self._dims: dict[str, int] = {}
        self._input_shapes: dict[str, list[int]] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        return self._get_entry(key)

    def set_load_cancellation_flag(self, value: bool) -> None:
        """While it is true, loading with these options ends, and none begins. Any thread may set it."""
        try:
            self._cancel.set(flag(value))
        except TypeError:
            raise TypeError(f"set_load_cancellation_flag takes a bool, got {value!r}") from None

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Accepted for the CPU's, which all models run on."""
        if name not in PROVIDERS:
            raise InvalidArgument(f"there is no provider '{name}'; there is {PROVIDERS[0]}")
        for key in options:
            tell_once(f"the option '{key}' of {name}", "the provider has none")
        self._has_providers = True

    def has_providers(self) -> bool:
        return self._has_providers

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compiles for this size of a named dimension; the session takes no other."""
        self._dims[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """The same for all open dimensions of inputs with this denotation."""
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
        self._input_shapes[name] = [-1 if size is None else operator.index(size) for size in shape]

    def register_custom_ops_library(self, path: str) -> None:
        """The operators of a shared library: `docs/CustomOps.md` tells what it has to export."""
        self.custom_ops.register_library(path)

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
        options.winograd = bool(self.winograd)
        options.strassen = bool(self.strassen)
        options.short_weights = bool(self.short_weights)
        options.split_floats = None if self.split_floats is None else bool(self.split_floats)
        options.check_bounds = bool(self.check_bounds)
        options.profile = bool(self.enable_profiling)
        options.perf_map = bool(self.perf_map)
        options.external_data_dir = os.fspath(self.external_data_dir)
        return options
