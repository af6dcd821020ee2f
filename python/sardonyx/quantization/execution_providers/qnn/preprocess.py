"""Gets a model ready for Qualcomm's QNN: fused operators, constant sizes, channels last at the model's ends."""

from __future__ import annotations

import logging
import os

import onnx

from ...fusions import FusionGelu, FusionLayerNormalization
from ...model_files import get_opset_version, infer_types, load_model
from ...onnx_model import ONNXModel
from ...shape_inference import quant_pre_process
from .fusion_lpnorm import FusionLpNormalization

logger = logging.getLogger("sardonyx")


def qnn_preprocess_model(
    model_input, model_output, exclude_initializer_from_input=False, fuse_layernorm=False, save_as_external_data=False,
    all_tensors_to_one_file=False, external_data_location=None, external_data_size_threshold=1024,
    external_data_convert_attribute=False, inputs_to_make_channel_last=None, outputs_to_make_channel_last=None,
    dynamic_input_shapes=None,
) -> bool:  # fmt: skip
    """Writes `model_output` if there is something to change, and tells so.

    Gelu and LpNormalization, and with `fuse_layernorm` LayerNormalization, take the place of what they are made of.
    `inputs_to_make_channel_last` and `outputs_to_make_channel_last` name inputs and outputs [N, C, …] that become
    [N, …, C], with a Transpose inside. `dynamic_input_shapes` is [(input, "1,3,224,224"), …]. Nodes get names.
    """
    model = quant_pre_process(load_model(model_input))
    edited = ONNXModel(model)
    changed = False
    for name, text in dynamic_input_shapes or ():
        _fix_shape(model, name, [int(size) for size in text.split(",")])
        changed = True
    if exclude_initializer_from_input:
        weights = edited.get_initializer_name_set()
        for value in [each for each in model.graph.input if each.name in weights]:
            model.graph.input.remove(value)
            changed = True
    changed |= FusionGelu(edited).apply()
    changed |= FusionLpNormalization(edited).apply()
    if fuse_layernorm:
        if get_opset_version(model) < 17:
            logger.warning("LayerNormalization comes with opset 17, and the model is of opset %d", get_opset_version(model))
        else:
            changed |= FusionLayerNormalization(edited).apply()
    if inputs_to_make_channel_last or outputs_to_make_channel_last:
        _move_channels(edited, inputs_to_make_channel_last or (), outputs_to_make_channel_last or ())
        changed = True
    suffix = edited.get_largest_node_name_suffix("qnn_preproc_node_") + 1
    for node in model.graph.node:
        if not node.name and node.op_type != "Constant":
            node.name = f"qnn_preproc_node_{suffix}"
            suffix += 1
            changed = True
    if changed:
        edited.topological_sort()
        onnx.save_model(
            model, os.fspath(model_output), save_as_external_data=save_as_external_data,
            all_tensors_to_one_file=all_tensors_to_one_file, location=external_data_location,
            size_threshold=external_data_size_threshold, convert_attribute=external_data_convert_attribute,
        )  # fmt: skip
    return changed


def _fix_shape(model, name, sizes) -> None:
    value = next((each for each in model.graph.input if each.name == name), None)
    if value is None:
        raise ValueError(f"the model has no input '{name}'")
    if len(value.type.tensor_type.shape.dim) != len(sizes):
        raise ValueError(f"input '{name}' has {len(value.type.tensor_type.shape.dim)} sizes, not {len(sizes)}")
    for dim, size in zip(value.type.tensor_type.shape.dim, sizes):
        dim.dim_value = size
    infer_types(model)


def _move_channels(edited: ONNXModel, inputs, outputs) -> None:
    graph = edited.graph()
    number = edited.get_largest_node_name_suffix("Transpose_channel_") + 1
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    renamed, added = {}, []
    for kind, names, values in (("input", inputs, graph.input), ("output", outputs, graph.output)):
        known = {value.name: value for value in values}
        for name in names:
            if name not in known:
                raise ValueError(f"{name} is not a graph {kind}")
            shape = known[name].type.tensor_type.shape
            rank = len(shape.dim)
            if rank < 3:
                raise ValueError(f"Expected {kind} {name} to be of rank >= 3")
            place = 0
            while f"{name}_channel_first_{place}" in taken:
                place += 1
            inner = renamed[name] = f"{name}_channel_first_{place}"
            graph.value_info.add().CopyFrom(known[name])
            graph.value_info[-1].name = inner
            last = [0, *range(2, rank), 1]  # of channels first
            sizes = [onnx.TensorShapeProto.Dimension.FromString(dim.SerializeToString()) for dim in shape.dim]
            for dim, axis in zip(shape.dim, last):
                dim.CopyFrom(sizes[axis])
            first = [0, rank - 1, *range(1, rank - 1)]  # of channels last
            ends = ([name], [inner], first) if kind == "input" else ([inner], [name], last)
            node = onnx.helper.make_node("Transpose", ends[0], ends[1], f"Transpose_channel_{number}", perm=ends[2])
            number += 1
            added.append(node)
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name in renamed:
                    names[place] = renamed[name]
    graph.node.extend(added)
