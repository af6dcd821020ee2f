"""What a model brings along, or a caller in its place, before it is loaded."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tempfile

from ._devices import CPU_DEVICE
from ._options import ExecutionMode, GraphOptimizationLevel, SessionOptions
from .errors import Fail, InvalidGraph

# The options that onnxruntime takes from a model, and what makes values of JSON's numbers.
_FROM_MODEL: dict[str, Callable[[Any], Any]] = {
    "inter_op_num_threads": int,
    "intra_op_num_threads": int,
    "execution_mode": ExecutionMode,
    "graph_optimization_level": GraphOptimizationLevel,
    "enable_profiling": bool,
}
INTERRUPTED = "loading the model was interrupted: its options have set_load_cancellation_flag"
_CONFIG = "ort_config"  # of the model's metadata


def with_config_of(report: Mapping[str, Any], options: SessionOptions) -> SessionOptions:
    """A copy of options with those that the model's metadata hold as JSON, `{"session_options": {…}}`."""
    made = copy.copy(options)
    made._entries = dict(options._entries)
    text = report["metadata"]["custom_metadata_map"].get(_CONFIG)
    if text is None:
        return made
    try:
        given = json.loads(text).get("session_options", {})
        for name, value in given.items():
            if name in _FROM_MODEL:
                setattr(made, name, _FROM_MODEL[name](value))
    except (AttributeError, TypeError, ValueError) as problem:
        raise InvalidGraph(f"the model's metadata '{_CONFIG}' are no options: {problem}") from None
    return made


def folder_of(files: Mapping[str, bytes]) -> tempfile.TemporaryDirectory:
    """A folder with these files, in memory where the system has such; it goes with what is returned."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    import tempfile  # which brings compression along

    folder = tempfile.TemporaryDirectory(prefix="sardonyx-", dir=place)
    for name, data in files.items():
        path = os.path.join(folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return folder


def choose_by(delegate: Callable, metadata: Mapping[str, Any]) -> None:
    """Has a caller's function choose among the devices: there is one, which it must choose."""
    said = {
        "doc_string": metadata["description"],
        "domain": metadata["domain"],
        "graph_description": "",
        "graph_name": metadata["graph_name"],
        "model_version": str(metadata["version"]),
        "producer_name": metadata["producer_name"],
        **metadata["custom_metadata_map"],
    }
    chosen = list(delegate([CPU_DEVICE], said, {}, 8))
    if not chosen:
        raise Fail("EP selection delegate did not select anything.")
    if any(device is not CPU_DEVICE for device in chosen):
        raise Fail("EP selection delegate selected what is none of the devices that it was given.")
