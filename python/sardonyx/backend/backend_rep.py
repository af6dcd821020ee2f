"""A model that is ready to run, as onnx.backend has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx.backend.base import BackendRep, namedtupledict

from sardonyx._run_options import RunOptions
from sardonyx._session import InferenceSession

_RUN_OPTIONS = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches")


class SardonyxRep(BackendRep):
    """A compiled model; `session` is its InferenceSession."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs: Any, **kwargs) -> Any:
        """Outputs, as a tuple with names, for a list of inputs in graph order, a dict by name, or the value of the only
        input. Of `kwargs` those count that are attributes of RunOptions for messages. Raises `ValueError` for another
        number of inputs than the model has."""
        options = RunOptions()
        for name, value in kwargs.items():
            if name in _RUN_OPTIONS:
                setattr(options, name, value)
        names = [value.name for value in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(None, self._feeds(inputs), options))

    def _feeds(self, inputs: Any) -> Mapping[str, Any]:
        args = self.session.get_inputs()
        is_map = len(args) == 1 and args[0].type.startswith("map(")
        if isinstance(inputs, Mapping) and not (is_map and args[0].name not in inputs):
            return inputs
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) != len(args):
            raise ValueError(f"the model has {len(args)} inputs, got {len(values)}")
        return {arg.name: value for arg, value in zip(args, values)}


OnnxRuntimeBackendRep = SardonyxRep
