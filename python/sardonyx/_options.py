"""SessionOptions, as onnxruntime has them."""

from __future__ import annotations

import enum
import operator
import os

from . import _sardonyx
from ._arrays import PACKED, element_type_of
from ._custom import CustomOps, together
from ._run_options import MOST, Named, positive, tell_once
from ._values import OrtValue
from .errors import InvalidArgument


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


# Options of onnxruntime that do nothing here when they have another value than this, and why.
_WITHOUT_EFFECT = {
    "graph_optimization_level": (GraphOptimizationLevel.ORT_ENABLE_ALL, "the compiler always does all it can"),
    "execution_mode": (ExecutionMode.ORT_SEQUENTIAL, "operators run one after the other, each on all threads"),
    "execution_order": (0, "the compiler chooses the order"),
    "inter_op_num_threads": (0, "operators run one after the other, each on all threads"),
    "enable_cpu_mem_arena": (True, "memory is planned when the model is compiled"),
    "enable_mem_pattern": (True, "memory is planned when the model is compiled"),
    "enable_mem_reuse": (True, "memory is planned when the model is compiled"),
    "log_severity_level": (2, "nothing is logged"),
    "log_verbosity_level": (0, "nothing is logged"),
}
# Those that are as they say whatever their value: results do not hang on the order in which threads
# come, and all sessions share the threads of the process.
_INDIFFERENT = {"logid": "", "use_deterministic_compute": False, "use_per_session_threads": True}


class SessionOptions(Named):
    """How to compile and run a model.

    `optimized_model_filepath` has the session write the model after its graph was optimised, as an ONNX
    file of ONNX's own operators, whenever a session is made.

    `enable_profiling` has the session record when each step of each run begins and ends, until
    `InferenceSession.end_profiling`.

    Besides onnxruntime's attributes: `cache` (keep compiled models and their packed
    weights on disk, default true),
    `cache_dir`, `cpu` and `cpu_features` (LLVM's names; default this machine), `external_data_dir`,
    `winograd` (let 3x3 convolutions go by Winograd's algorithm, default true: faster, with rounding
    errors within four times those of a direct sum), `split_floats` (let large products of f32 go
    through the tile registers of AMX, each number as the sum of three of bf16, with rounding errors
    no larger than those of multiply-adds; default `None`: where one thread computes), `check_bounds` (code looks at every index before
    it reads or writes there and fails the run where one lies outside: slow, for finding faults),
    `perf_map` (tell `perf` the kernels' names), `custom_ops` (operators beyond ONNX's own, see `CustomOps`), `memory_limit` (bytes that packed weights, runs and
    results may take; default what the machine has) and `compile_timeout`
    (seconds; default none). Attributes that steer onnxruntime's own machinery have no effect; a
    session says so once, by a warning. docs/PythonAPI.md compares all names.
    """

    _names = frozenset([
        "intra_op_num_threads", "enable_profiling", "optimized_model_filepath", "profile_file_prefix", "cache",
        "cache_dir", "cpu", "cpu_features", "external_data_dir", "winograd", "split_floats", "check_bounds",
        "perf_map", "memory_limit", "compile_timeout", "custom_ops", *_WITHOUT_EFFECT, *_INDIFFERENT,
    ])  # fmt: skip

    def __init__(self):
        self.intra_op_num_threads = 0
        for name, (value, _) in _WITHOUT_EFFECT.items():
            setattr(self, name, value)
        for name, value in _INDIFFERENT.items():
            setattr(self, name, value)
        self.enable_profiling = False
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "sardonyx_profile_"
        self.cache = True
        self.cache_dir = ""
        self.cpu = ""
        self.cpu_features = ""
        self.external_data_dir = ""
        self.winograd = True
        self.split_floats: bool | None = None
        self.check_bounds = False
        self.perf_map = False
        self.memory_limit: int | None = None
        self.compile_timeout: float | None = None
        self.custom_ops = CustomOps()
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}
        self._denoted_dims: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._input_shapes: dict[str, list[int]] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept for `get_session_config_entry`; no entry has an effect here."""
        self._entries[key] = value
        tell_once(f"the session config entry '{key}' has no effect")

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compiles for this size of a named dimension; the session takes no other."""
        self._dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """The same for the open dimensions of inputs that the model says denote this ("DATA_BATCH")."""
        self._denoted_dims[denotation] = int(size)

    def add_initializer(self, name: str, ortvalue: OrtValue) -> None:
        """A value in place of an initializer's, of its type and shape. Its memory must stay as it is while there
        are sessions with these options."""
        array = ortvalue.numpy()
        if not array.flags.c_contiguous or element_type_of(array.dtype) in (0, *PACKED):
            raise InvalidArgument(f"the value of the initializer '{name}' must be a contiguous tensor of whole bytes")
        self._initializers[name] = ortvalue

    def add_external_initializers(self, names, ortvalues) -> None:
        """The same for several; their values need not be in the files that the model names."""
        if len(names) != len(ortvalues):
            raise InvalidArgument(f"{len(names)} names were given, and {len(ortvalues)} values")
        for name, value in zip(names, ortvalues):
            self.add_initializer(name, value)

    def set_input_shape(self, name: str, shape) -> None:
        """Compiles for this shape of an input, whatever the model declares; None leaves a dimension open."""
        self._input_shapes[name] = [-1 if size is None else operator.index(size) for size in shape]

    def register_custom_ops_library(self, path: str) -> None:
        """The operators of a shared library: `docs/CustomOps.md` tells what it has to export."""
        self.custom_ops.register_library(path)

    def _tell_without_effect(self) -> None:
        for name, (value, why) in _WITHOUT_EFFECT.items():
            if getattr(self, name) != value:
                tell_once(f"SessionOptions.{name} has no effect: {why}")

    def _native(self) -> _sardonyx.Options:
        self._tell_without_effect()
        options = _sardonyx.Options()
        threads = int(self.intra_op_num_threads)
        if not 0 <= threads <= _sardonyx.MAX_THREADS:
            raise InvalidArgument(f"intra_op_num_threads must be from 0 to {_sardonyx.MAX_THREADS}, got {threads}")
        options.threads = threads
        options.memory_limit = min(int(positive(self.memory_limit, "memory_limit")), MOST)
        options.compile_timeout = positive(self.compile_timeout, "compile_timeout")
        options.cache = bool(self.cache)
        options.cache_dir = os.fspath(self.cache_dir)
        options.cpu, options.features = self.cpu, self.cpu_features
        options.dims = self._dims
        options.denoted_dims = self._denoted_dims
        options.input_shapes = self._input_shapes
        for name, value in self._initializers.items():
            options.set_initializer(name, value.element_type(), value.shape(), value.data_ptr())
        options.set_custom_ops(together(self.custom_ops))
        options.winograd = bool(self.winograd)
        options.split_floats = None if self.split_floats is None else bool(self.split_floats)
        options.check_bounds = bool(self.check_bounds)
        options.profile = bool(self.enable_profiling)
        options.perf_map = bool(self.perf_map)
        options.external_data_dir = os.fspath(self.external_data_dir)
        return options
