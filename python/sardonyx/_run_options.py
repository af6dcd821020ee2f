"""RunOptions, as onnxruntime has them."""

from __future__ import annotations

import math
import numbers

from . import _runtime
from ._attributes import Attribute, Options, flag, integer, text
from .errors import InvalidArgument

MOST = 2**63 - 1


def positive(value, name: str):
    """A limit for the extension, which takes 0 for none."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value > 0:
        raise InvalidArgument(f"{name} must be a positive number or None, got {value!r}")
    return value


class RunOptions(Options):
    """What can end a run before it is done.

    Besides onnxruntime's attributes, of which those without an effect say so once: `timeout`, seconds that a run may take,
    and `max_trip_count`, trips that any one Loop may take; None, the default, sets no limit.
    """

    log_severity_level = Attribute(-1, integer)
    log_verbosity_level = Attribute(0, integer, "there is one level of verbose messages")
    logid = Attribute("", text)
    only_execute_path_to_fetches = Attribute(False, flag, "the code of a model computes all outputs")

    _entry_effects = frozenset({"memory.enable_memory_arena_shrinkage"})

    def __init__(self):
        super().__init__()
        self._native = _runtime.RunOptions()

    @property
    def terminate(self) -> bool:
        """While it is true, runs with these options end, and none begins. Any thread may set it."""
        return self._native.terminate

    @terminate.setter
    def terminate(self, value) -> None:
        try:
            self._native.terminate = flag(value)
        except TypeError:
            raise TypeError(f"RunOptions.terminate takes a bool, got {value!r}") from None

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
        self._add_entry(key, value)
        if key == "memory.enable_memory_arena_shrinkage":
            self._native.release_memory = bool(value)

    def get_run_config_entry(self, key: str) -> str:
        return self._get_entry(key)
