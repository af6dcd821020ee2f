"""RunOptions, as onnxruntime has them."""

from __future__ import annotations

import math
import numbers
import warnings

from . import _runtime
from .errors import InvalidArgument

MOST = 2**63 - 1


def positive(value, name: str):
    """A limit for the extension, which takes 0 for none."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value > 0:
        raise InvalidArgument(f"{name} must be a positive number or None, got {value!r}")
    return value


_told: set[str] = set()


def tell_once(text: str) -> None:
    """Warns of what has no effect, once in a process."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, stacklevel=4)


class Named:
    """Attributes that there are not are refused, as onnxruntime refuses them: a misspelt option is none."""

    _names: frozenset = frozenset()

    def __setattr__(self, name, value):
        if not (name.startswith("_") or name in self._names or hasattr(type(self), name)):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        object.__setattr__(self, name, value)


class RunOptions(Named):
    """What can end a run before it is done.

    Besides onnxruntime's attributes, of which only `terminate` and the run config entry
    "memory.enable_memory_arena_shrinkage" have an effect: `timeout`, seconds that a run may take,
    and `max_trip_count`, trips that any one Loop may take; None, the default, sets no limit.
    """

    _names = frozenset(["log_severity_level", "log_verbosity_level", "logid"])

    def __init__(self):
        self._native = _runtime.RunOptions()
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self._entries: dict[str, str] = {}

    @property
    def only_execute_path_to_fetches(self) -> bool:
        """Always false: a model is compiled as a whole."""
        return False

    @only_execute_path_to_fetches.setter
    def only_execute_path_to_fetches(self, value) -> None:
        if value:
            tell_once("RunOptions.only_execute_path_to_fetches has no effect: a run computes all outputs of the model")

    @property
    def terminate(self) -> bool:
        """While it is true, runs with these options end, and none begins. Any thread may set it."""
        return self._native.terminate

    @terminate.setter
    def terminate(self, value) -> None:
        self._native.terminate = bool(value)

    @property
    def timeout(self) -> float | None:
        return self._native.timeout or None

    @timeout.setter
    def timeout(self, seconds) -> None:
        self._native.timeout = positive(seconds, "timeout")

    @property
    def max_trip_count(self) -> int | None:
        return self._native.max_trip_count or None

    @max_trip_count.setter
    def max_trip_count(self, trips) -> None:
        self._native.max_trip_count = min(math.ceil(positive(trips, "max_trip_count")), MOST)

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value
        if key == "memory.enable_memory_arena_shrinkage":
            self._native.release_memory = bool(value)
        else:
            tell_once(f"the run config entry '{key}' has no effect")

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]
