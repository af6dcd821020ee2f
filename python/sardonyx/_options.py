"""SessionOptions, as onnxruntime has them."""

from __future__ import annotations

import enum
import operator
import os

from . import _sardonyx
from ._custom import CustomOps, together
from ._run_options import MOST, positive
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


class SessionOptions:
    """How to compile and run a model.

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
    (seconds; default none). Attributes that steer onnxruntime's own machinery are accepted and
    have no effect.
    """

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "sardonyx_profile_"
        self.use_deterministic_compute = False
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
        self._input_shapes: dict[str, list[int]] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compiles for this size of a named dimension; the session takes no other."""
        self._dims[name] = int(size)

    def set_input_shape(self, name: str, shape) -> None:
        """Compiles for this shape of an input, whatever the model declares; None leaves a dimension open."""
        self._input_shapes[name] = [-1 if size is None else operator.index(size) for size in shape]

    def register_custom_ops_library(self, path: str) -> None:
        """The operators of a shared library: `docs/CustomOps.md` tells what it has to export."""
        self.custom_ops.register_library(path)

    def _native(self) -> _sardonyx.Options:
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
        options.input_shapes = self._input_shapes
        options.set_custom_ops(together(self.custom_ops))
        options.winograd = bool(self.winograd)
        options.split_floats = None if self.split_floats is None else bool(self.split_floats)
        options.check_bounds = bool(self.check_bounds)
        options.profile = bool(self.enable_profiling)
        options.perf_map = bool(self.perf_map)
        options.external_data_dir = os.fspath(self.external_data_dir)
        return options
