"""Names of onnxruntime's for compiling models ahead for other providers. `sardonyx.build` makes files of models for the
CPU (docs/howto/AheadOfTime.md)."""

from __future__ import annotations

import enum
import operator

from ._options import GraphOptimizationLevel, SessionOptions
from .errors import NotImplemented


class OrtCompileApiFlags(enum.IntFlag):
    """What compiling refuses: NONE, ERROR_IF_NO_NODES_COMPILED, ERROR_IF_OUTPUT_FILE_EXISTS."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExternalInitializerInfo:
    """Where a weight lies: a file, the place of its first byte there, and how many bytes it has."""

    def __init__(self, filepath: str, file_offset: int, byte_size: int):
        self._place = (filepath, operator.index(file_offset), operator.index(byte_size))

    @property
    def filepath(self) -> str:
        """The file."""
        return self._place[0]

    @property
    def file_offset(self) -> int:
        """The place of its first byte in the file."""
        return self._place[1]

    @property
    def byte_size(self) -> int:
        """How many bytes it has."""
        return self._place[2]


class OrtEpContextData:
    """Code of a provider's that lies beside a model. No provider here has such: none of these is ever made."""


class OrtEpContextDataBuffer:
    """Where a callback puts such code. None of these is ever made."""


class OrtEpAssignedNode:
    """A node that a provider runs. None of these is ever made: see `get_provider_graph_assignment_info`."""


class OrtEpAssignedSubgraph:
    """Nodes that a provider runs together. None of these is ever made: see `get_provider_graph_assignment_info`."""


class ModelCompiler:
    """onnxruntime's compiler of models for providers that keep code in a model. Making one raises `NotImplemented`:
    `sardonyx.build` makes files of models for the CPU."""

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path=None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func=None,
    ):
        raise NotImplemented(
            "ModelCompiler puts the code of other providers into models; sardonyx.build makes files of models for the CPU"
        )
