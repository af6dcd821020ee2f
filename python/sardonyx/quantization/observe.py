"""Runs a model and sees what its tensors hold.

`SessionObserver` makes observed tensors outputs of sessions, a block of them at a time, and keeps no values: each
run's are added to observations of constant size.
"""

from __future__ import annotations

import logging

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from .graph_index import GraphIndex
from .histogram import Observation
from .model_files import MODEL_SIZE_THRESHOLD, copy_of, save_model, size_of, temporary_folder

logger = logging.getLogger("sardonyx")

_BLOCK_BYTES = 512 * 2**20  # of observed tensors that one session gives at a time


class SessionObserver:
    """Observes tensors of a model.

    :param tensors: names of values of the graph; initialisers are not among them.
    :param bits: whether to make histograms, too.
    :param per_channel: whether ends are those of channels, along axis 1.
    :param providers: those of onnxruntime, for the session.
    """

    def __init__(self, model: ModelProto, tensors, bits=False, per_channel=False, providers=None):
        self.model, self.tensors = model, list(tensors)
        self.bits, self.per_channel, self.providers = bits, per_channel, providers
        self.index = GraphIndex(model.graph)
        self.fed = [name for name in self.tensors if name in self.index.inputs]
        self.computed = [name for name in self.tensors if name not in self.index.inputs]
        self.sessions: list[tuple] = []
        self.observations: dict[str, Observation] = {}
        self.runs = 0

    def run(self, feeds: dict) -> None:
        """Runs one sample and adds what it shows."""
        if not self.runs:
            self._make_sessions(feeds)
        for name in self.fed:
            if name in feeds:
                self._add(name, np.asarray(feeds[name]))
        for session, names in self.sessions:
            wanted = {entry.name for entry in session.get_inputs()}
            values = session.run(names, {name: value for name, value in feeds.items() if name in wanted})
            for name, value in zip(names, values):
                self._add(name, value)
        self.runs += 1

    def take(self) -> dict:
        """{tensor: Observation} since the last call."""
        taken, self.observations = self.observations, {}
        return taken

    def _add(self, name: str, values: np.ndarray) -> None:
        if values.dtype not in (np.float32, np.float16):
            return
        observation = self.observations.get(name)
        if observation is None:
            observation = self.observations[name] = Observation(values.dtype, self.bits)
        try:
            observation.add(values, self.per_channel and values.ndim > 1)
        except ValueError as error:
            node = self.index.producers.get(name)
            maker = f" of node '{node.name or node.op_type}'" if node is not None else ""
            raise ValueError(f"Sample {self.runs}: tensor '{name}'{maker} holds {error}.") from None

    def _make_sessions(self, feeds: dict) -> None:
        blocks: list[list[str]] = []
        block: list[str] = []
        used = 0
        for name in self.computed:
            size = self._bytes(name, feeds)
            if block and used + size > _BLOCK_BYTES:
                blocks.append(block)
                block, used = [], 0
            block.append(name)
            used += size
        if block:
            blocks.append(block)
        self.sessions = [(session_with_outputs(self.model, names, self.providers), names) for names in blocks]

    def _bytes(self, name: str, feeds: dict) -> int:
        """Bytes of a tensor, where open sizes are those that the first sample has for them."""
        sizes = {}
        for source, value in feeds.items():
            for dim, size in zip(self.index.dims(source) or [], np.shape(value)):
                if isinstance(dim, str):
                    sizes[dim] = size
        count = 4
        for dim in self.index.dims(name) or []:
            count *= dim if isinstance(dim, int) else sizes.get(dim, 1)
        return count


def session_with_outputs(model: ModelProto, names, providers=None):
    """A session of the model whose outputs are tensors of it, and no others."""
    from sardonyx import InferenceSession

    known = GraphIndex(model.graph).values
    model = copy_of(model)
    del model.graph.output[:]
    for name in names:
        value = model.graph.output.add()
        if name in known:
            value.CopyFrom(known[name])
        value.name = name
    providers = providers or ["CPUExecutionProvider"]
    if size_of(model) < MODEL_SIZE_THRESHOLD:
        return InferenceSession(model.SerializeToString(), providers=providers)
    with temporary_folder() as folder:
        path = str(folder / "observed.onnx")
        save_model(model, path, external_data=True)
        return InferenceSession(path, providers=providers)


def reduced_model(model: ModelProto, tensors, per_channel: bool) -> ModelProto:
    """A copy of the model whose further outputs are the ends of tensors: `<t>_ReduceMin` and `<t>_ReduceMax`."""
    model = copy_of(model)
    index = GraphIndex(model.graph)
    flat = "sardonyx_flat_shape"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1], np.int64), flat))
    version = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    for name in tensors:
        for op_type in ("ReduceMin", "ReduceMax"):
            result = f"{name}_{op_type}"
            inputs = [name]
            attributes: dict = {"keepdims": 1}
            if per_channel:
                axes = [axis for axis in range(len(index.dims(name) or [])) if axis != 1]
                if version < 18:
                    attributes["axes"] = axes
                else:
                    inputs.append(result + "_axes")
                    axes = onnx.numpy_helper.from_array(np.array(axes, np.int64), inputs[1])
                    model.graph.initializer.append(axes)
            model.graph.node.append(
                onnx.helper.make_node(op_type, inputs, [result + "_Reshape"], name=result, **attributes)
            )
            model.graph.node.append(
                onnx.helper.make_node("Reshape", [result + "_Reshape", flat], [result], name=result + "_Reshape")
            )
            kind = index.element_type(name) or TensorProto.FLOAT
            model.graph.output.append(onnx.helper.make_tensor_value_info(result, kind, [None]))
    return model


def model_with_outputs(model: ModelProto, tensors) -> ModelProto:
    """A copy of the model whose further outputs are tensors of it."""
    model = copy_of(model)
    index = GraphIndex(model.graph)
    for name in tensors:
        if name not in index.outputs:
            model.graph.output.add().CopyFrom(index.values[name])
    return model
