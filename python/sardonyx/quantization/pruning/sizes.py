"""A model made ready to be pruned, and the sizes of its values."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from ..graph_index import GraphIndex
from ..model_files import copy_of, infer_types, name_nodes, skeleton_of
from ..observe import session_with_outputs
from ..onnx_model import outer_names, replace_all, subgraphs_of
from ..quant_utils import attribute
from ..shape_inference import quant_pre_process

_AT_A_TIME = 16  # values of one session


def prepared(model) -> ModelProto:
    """A copy whose constants are initialisers, whose BatchNormalizations are folded and whose nodes have names.

    Vectors that several nodes read are copied for each: exporters store equal ones once, whatever they are for.
    """
    model = quant_pre_process(model)
    name_nodes(model)
    _constants_to_initializers(model)
    graph = model.graph
    vectors = {tensor.name: tensor for tensor in graph.initializer if len(tensor.dims) <= 1}
    for name in {value.name for value in graph.input} | {value.name for value in graph.output}:
        vectors.pop(name, None)
    for node in graph.node:
        for body in subgraphs_of(node):
            for name in outer_names(body):
                vectors.pop(name, None)
    taken: dict[str, int] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name not in vectors:
                continue
            count = taken.get(name, 0)
            taken[name] = count + 1
            if count:
                copy = graph.initializer.add()
                copy.CopyFrom(vectors[name])
                copy.name = node.input[place] = f"{name}_of_{node.name}_{place}"
    return model


def _constants_to_initializers(model) -> None:
    kept = []
    for node in model.graph.node:
        if node.op_type != "Constant" or node.domain:
            kept.append(node)
            continue
        (given,) = node.attribute
        value = onnx.helper.get_attribute_value(given)
        if isinstance(value, TensorProto):
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(value)
            tensor.name = node.output[0]
        elif given.name.startswith(("value_int", "value_float")):
            kind = np.int64 if given.name.startswith("value_int") else np.float32
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, kind), node.output[0]))
        else:
            kept.append(node)
    replace_all(model.graph.node, kept)


def _inferred(model) -> ModelProto:
    """A copy without large weights, in which sizes that are computed are followed, too."""
    try:
        return onnx.shape_inference.infer_shapes(skeleton_of(model), data_prop=True)
    except onnx.shape_inference.InferenceError:
        return infer_types(skeleton_of(model))


class Sizes:
    """Sizes of the values of a graph: of one run (`of`), and which of size 1 are that in every run (`is_one`).

    :param sample: the inputs of the run.
    """

    def __init__(self, model: ModelProto, sample: dict):
        index = GraphIndex(_inferred(model).graph)
        self.always = {name: index.dims(name) for name in index.values}
        self.of: dict[str, tuple] = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        fixed = copy_of(model)
        for value in fixed.graph.input:
            if value.name in sample:
                array = np.asarray(sample[value.name])
                kind = value.type.tensor_type.elem_type
                value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, array.shape))
        for value in fixed.graph.output:
            value.type.tensor_type.ClearField("shape")
        del fixed.graph.value_info[:]
        while True:
            known = GraphIndex(_inferred(fixed).graph)
            for name in known.values:
                dims = known.dims(name)
                if dims is not None and all(isinstance(dim, int) for dim in dims):
                    self.of.setdefault(name, tuple(dims))
            missing = [name for name in known.producers if name not in self.of and known.element_type(name) is not None]
            measured = self._measure(model, missing[:_AT_A_TIME], sample)
            if not measured:
                return
            fixed.graph.value_info.extend(measured)  # of which more can be inferred

    def _measure(self, model, names, sample) -> list:
        """Runs a model for the sizes of some values; gives their descriptions."""
        if not names:
            return []
        session = session_with_outputs(model, names)
        wanted = [entry.name for entry in session.get_inputs()]
        found = []
        for name, value in zip(names, session.run(names, {key: sample[key] for key in wanted})):
            if isinstance(value, np.ndarray):
                self.of[name] = value.shape
                kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
                found.append(onnx.helper.make_tensor_value_info(name, kind, value.shape))
        return found

    def is_one(self, name: str, axis: int) -> bool:
        """Whether an axis has one place whatever the inputs are."""
        if name not in self.always:
            return name in self.of and self.of[name][axis] == 1
        dims = self.always[name]
        return dims is not None and dims[axis] == 1


def constants_of(model) -> dict[str, np.ndarray]:
    """Initialisers of integers, which tell sizes, axes and places."""
    kinds = (TensorProto.INT64, TensorProto.INT32)
    return {
        tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.data_type in kinds
    }


def axes_of(node, constants, rank: int, place: int = 1, name: str = "axes"):
    """Axes that an attribute or an input names, not negative; None where there are none, or where they are computed."""
    axes = attribute(node, name)
    if axes is None and len(node.input) > place and node.input[place]:
        axes = constants.get(node.input[place])
    return None if axes is None else [int(axis) % rank for axis in np.atleast_1d(axes)]
