"""RunOptions, as onnxruntime has them."""

from __future__ import annotations

import math
import numbers
from typing import Any

from . import _runtime
from ._adapters import LoraAdapter
from ._attributes import Attribute, Options, flag, integer, text
from ._config_keys import RUN
from .errors import InvalidArgument

MOST = 2**63 - 1


def positive(value: Any, name: str) -> Any:
    """A limit for the extension, which takes 0 for none."""
    if value is None:
        return 0
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not value > 0:
        raise InvalidArgument(f"{name} must be a positive number or None, got {value!r}")
    return value


class RunOptions(Options):
    """How a run goes, and what can end it before it is done."""

    log_severity_level = Attribute(-1, integer, "The least severe messages that the run tells, 0 to 4; -1: the session's.")
    log_verbosity_level = Attribute(0, integer, "How much is told.", hint="there is one level of verbose messages")
    logid = Attribute("", text, "What messages of the run call it.")
    only_execute_path_to_fetches = Attribute(
        False, flag, "Compute only what the outputs asked for need.", hint="the code of a model computes all outputs"
    )

    _known_entries = RUN

    def __init__(self):
        super().__init__()
        self._native = _runtime.RunOptions()
        self._adapters: list[LoraAdapter] = []

    def __getstate__(self) -> dict:
        """Without `terminate`, which is of the process."""
        state = {name: value for name, value in self.__dict__.items() if name != "_native"}
        return {**state, "_limits": (self.timeout, self.max_trip_count, self._native.release_memory)}

    def __setstate__(self, state: dict) -> None:
        timeout, trips, release = state.pop("_limits")
        self.__dict__.update(state)
        self._native = _runtime.RunOptions()
        self.timeout, self.max_trip_count, self._native.release_memory = timeout, trips, release

    @property
    def terminate(self) -> bool:
        """While it is true, runs with these options end, and none begins. Any thread may set it."""
        return self._native.terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        try:
            self._native.terminate = flag(value)
        except TypeError:
            raise TypeError(f"RunOptions.terminate takes a bool, got {value!r}") from None

    @property
    def timeout(self) -> float | None:
        """Seconds that a run may take; None: as long as it likes."""
        return self._native.timeout or None

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._native.timeout = positive(seconds, "timeout")

    @property
    def max_trip_count(self) -> int | None:
        """Trips that any one Loop may take; None: as many as it likes."""
        return self._native.max_trip_count or None

    @max_trip_count.setter
    def max_trip_count(self, trips: int | None) -> None:
        self._native.max_trip_count = min(math.ceil(positive(trips, "max_trip_count")), MOST)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps a text by its key. `memory.enable_memory_arena_shrinkage` gives the system the memory that the run
        leaves; onnxruntime's other entries are hints to providers that are not here. Raises `InvalidArgument` for a
        key that is a misspelt one of onnxruntime's, and warns once of any other."""
        self._add_entry(key, value)
        if key == "memory.enable_memory_arena_shrinkage":
            self._native.release_memory = bool(value)

    def get_run_config_entry(self, key: str) -> str:
        """The text by a key; raises `Fail` where none was added."""
        return self._get_entry(key)

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Has runs take the adapter's tensors for the inputs of their names, or in the place of initializers that are
        inputs, too: the model is then compiled for the adapter, once, by its first run. Of several adapters the last
        one counts."""
        if not isinstance(adapter, LoraAdapter):
            raise TypeError(f"add_active_adapter takes a LoraAdapter, got {type(adapter).__name__}")
        self._adapters.append(adapter)
