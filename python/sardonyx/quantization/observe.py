"""Runs a model and sees what its tensors hold.

`SessionObserver` has one session of the model as it is, whose kernels see the tensors while they make them
(`SessionOptions.observe`). No tensor becomes an output, and what is kept has a size that hangs on no sample.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from .graph_index import GraphIndex
from .histogram import Observation
from .model_files import MODEL_SIZE_THRESHOLD, copy_of, save_model, size_of, temporary_folder

logger = logging.getLogger("sardonyx")


class SessionObserver:
    """Observes tensors of a model, floats of the main graph.

    :param tensors: names of values of the graph; initialisers are not among them.
    :param bits: whether to make histograms, too.
    :param per_channel: whether ends are those of channels, along axis 1.
    """

    def __init__(self, model: ModelProto, tensors, bits=False, per_channel=False):
        self.model, self.tensors = model, list(tensors)
        self.bits, self.per_channel = bits, per_channel
        self.index = GraphIndex(model.graph)
        self.session: Any = None
        self.seen: dict[str, Observation] = {}
        self.runs = 0

    def run(self, feeds: dict) -> None:
        """Runs one sample and adds what it shows."""
        if self.session is None:
            self.session = _load(self.model, observe={name: self._kinds(name) for name in self.tensors})
            self.wanted = {entry.name for entry in self.session.get_inputs()}
        try:
            self.session.run(None, {name: value for name, value in feeds.items() if name in self.wanted})
        finally:
            self._refuse_non_finite()
        self.runs += 1

    def take(self) -> dict:
        """{tensor: Observation} since the last call."""
        taken, self.seen = self.observations, {}
        return taken

    @property
    def observations(self) -> dict:
        """{tensor: Observation} of all runs since `take`."""
        if self.session is not None:
            for name, numbers in self.session.take_observations().items():
                seen = self._observation(name, numbers)
                if name in self.seen:
                    self.seen[name].merge(seen)
                else:
                    self.seen[name] = seen
        return {name: self.seen[name] for name in self.tensors if name in self.seen}

    def _has_channels(self, name: str) -> bool:
        return self.per_channel and len(self.index.dims(name) or []) > 1

    def _kinds(self, name: str) -> list[str]:
        kinds = ["range", "channels"] if self._has_channels(name) else ["range"]
        return kinds + ["moments", "bits"] if self.bits else kinds

    def _observation(self, name: str, numbers: dict) -> Observation:
        half = self.index.element_type(name) == TensorProto.FLOAT16
        seen = Observation(np.float16 if half else np.float32, self.bits)
        seen.count = numbers["count"]
        if not seen.count:
            return seen
        if self._has_channels(name):
            seen.lowest, seen.highest = (numbers[end].astype(seen.dtype) for end in ("channel_min", "channel_max"))
        else:
            seen.lowest, seen.highest = (np.array([numbers[end]], seen.dtype) for end in ("min", "max"))
        if self.bits:
            seen.bins, seen.sum, seen.square_sum = numbers["bins"], numbers["sum"], numbers["square_sum"]
        return seen

    def _refuse_non_finite(self) -> None:
        found = self.session.find_non_finite()
        if not found:
            return
        name = min(found, key=self.tensors.index)
        numbers = self.session.take_observations()[name]
        node = self.index.producers.get(name)
        maker = f" of node '{node.name or node.op_type}'" if node is not None else ""
        what = "NaN" if numbers["nans"] else "an infinite number"
        raise ValueError(f"Sample {self.runs}: tensor '{name}'{maker} holds {what}.")


def _load(model: ModelProto, providers=("CPUExecutionProvider",), observe=None):
    from sardonyx import InferenceSession, SessionOptions

    options = SessionOptions()
    options.observe = observe
    if size_of(model) < MODEL_SIZE_THRESHOLD:
        return InferenceSession(model.SerializeToString(), options, providers=providers)
    with temporary_folder() as folder:
        path = str(folder / "observed.onnx")
        save_model(model, path, external_data=True)
        return InferenceSession(path, options, providers=providers)


def session_with_outputs(model: ModelProto, names, providers=None):
    """A session of the model whose outputs are tensors of it, and no others."""
    known = GraphIndex(model.graph).values
    model = copy_of(model)
    del model.graph.output[:]
    for name in names:
        value = model.graph.output.add()
        if name in known:
            value.CopyFrom(known[name])
        value.name = name
    return _load(model, providers or ["CPUExecutionProvider"])


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
