"""Models before and after quantisation: files, the types and shapes of their values, opsets, marks in their metadata."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, external_data_helper

from .quant_types import FLOAT_TYPES, OPSET_21_TYPES, QuantType, as_tensor_type, type_name

logger = logging.getLogger("sardonyx")

MODEL_SIZE_THRESHOLD = 2**31  # bytes; protobuf holds no message from there on
_PRE_PROCESSED = ("onnx.quant.pre_process", "onnxruntime.quant")
_INFERRED = ("onnx.infer", "onnxruntime.quant")
_SMALL = 1024  # bytes; what shape inference may read is smaller


def copy_of(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def load_model(source, external_data: bool = True) -> ModelProto:
    """A model that the caller may change: the file's, or a copy."""
    if isinstance(source, ModelProto):
        return copy_of(source)
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no file '{path}' to quantise")
    return onnx.load(path, load_external_data=external_data)


def array_of(tensor: TensorProto, folder: str = "") -> np.ndarray:
    """The numbers of a tensor; of one that lies in a file of `folder` and was not loaded, they are mapped, not read."""
    if not external_data_helper.uses_external_data(tensor):
        return onnx.numpy_helper.to_array(tensor)
    place = external_data_helper.ExternalDataInfo(tensor)
    path = os.path.realpath(os.path.join(folder, place.location))
    if os.path.commonpath([path, os.path.realpath(folder)]) != os.path.realpath(folder):
        raise ValueError(f"the data of '{tensor.name}' lie outside of the model's folder: '{place.location}'")
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    mapped = np.memmap(path, np.uint8, "r", place.offset or 0, place.length or int(np.prod(tensor.dims)) * kind.itemsize)
    return mapped.view(kind).reshape(tensor.dims)


def skeleton_of(model: ModelProto) -> ModelProto:
    """The model without the numbers of its large initialisers, whose types and shapes stay."""
    skeleton = ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            continue
        if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
            getattr(skeleton, field.name).extend(value)
        else:
            setattr(skeleton, field.name, value)
    graph = skeleton.graph
    graph.name = model.graph.name
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(graph, name).extend(getattr(model.graph, name))
    for tensor in model.graph.initializer:
        if tensor.ByteSize() <= _SMALL:
            graph.initializer.append(tensor)
        else:
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    return skeleton


def infer_types(model: ModelProto) -> ModelProto:
    """Writes the types and shapes of values, as far as they can be told, into the model itself."""
    try:
        inferred = onnx.shape_inference.infer_shapes(skeleton_of(model))
    except onnx.shape_inference.InferenceError as error:
        logger.warning("shapes could not be inferred: %s", error)
        return model
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)
    for mine, theirs in zip(model.graph.output, inferred.graph.output):
        mine.CopyFrom(theirs)
    for mine, theirs in zip(model.graph.node, inferred.graph.node):
        if any(entry.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for entry in mine.attribute):
            mine.CopyFrom(theirs)  # whose bodies have types, too
    return model


def load_model_with_shape_infer(model_path) -> ModelProto:
    """The model of a file with the types and shapes of its values. Nothing is written beside it."""
    model = infer_types(load_model(model_path))
    add_infer_metadata(model)
    return model


def save_and_reload_model_with_shape_infer(model: ModelProto) -> ModelProto:
    """A copy of the model with the types and shapes of its values."""
    model = infer_types(copy_of(model))
    add_infer_metadata(model)
    return model


def model_has_external_data(model_path) -> bool:
    model = onnx.load(os.fspath(model_path), load_external_data=False)
    return any(external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)


def size_of(model: ModelProto) -> int:
    """Bytes of a model, of which protobuf can't tell more than its own limit."""
    tensors = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    return tensors if tensors >= MODEL_SIZE_THRESHOLD else model.ByteSize()


def save_model(model: ModelProto, path, external_data: bool = False) -> None:
    """Writes a model; its weights go to `<path>.data` if asked or if the model is too large for one file."""
    path = Path(os.path.realpath(path))  # a link stays one
    if path.exists() and not path.is_file():  # a pipe, a terminal
        onnx.save_model(model, str(path))
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder '{path.parent}' to write '{path.name}' to")
    # Beside its place, and renamed when it is whole.
    with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=path.parent) as folder:
        new = Path(folder) / path.name
        if not external_data and size_of(model) < MODEL_SIZE_THRESHOLD:
            onnx.save_model(model, str(new))
        else:
            location = path.name + ".data"
            onnx.save_model(
                model, str(new), save_as_external_data=True, all_tensors_to_one_file=True, location=location,
                convert_attribute=True,
            )  # fmt: skip
            if (Path(folder) / location).exists():
                os.replace(Path(folder) / location, path.parent / location)
        os.replace(new, path)


def constants_to_initializers(model: ModelProto) -> None:
    """Makes weights of nodes `Constant` that hold floats, as they are quantised only as initialisers."""
    kept = []
    for node in model.graph.node:
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type != "Constant" or node.domain or value is None or value.data_type not in FLOAT_TYPES:
            kept.append(node)
            continue
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(value)
        tensor.name = node.output[0]
    if len(kept) != len(model.graph.node):
        nodes = [NodeProto.FromString(node.SerializeToString()) for node in kept]
        del model.graph.node[:]
        model.graph.node.extend(nodes)


def name_nodes(model: ModelProto) -> None:
    """Names nodes without one `Op_index`, so that they can be named to be left out."""
    taken = {node.name for node in model.graph.node}
    for index, node in enumerate(model.graph.node):
        if not node.name:
            name = f"{node.op_type}_{index}"
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)


def _metadata(model: ModelProto, key: str):
    return next((entry.value for entry in model.metadata_props if entry.key == key), None)


def set_metadata(model: ModelProto, key: str, value: str) -> None:
    for entry in model.metadata_props:
        if entry.key == key:
            entry.value = value
            return
    model.metadata_props.add(key=key, value=value)


def add_pre_process_metadata(model: ModelProto) -> None:
    """Tells in the model that it went through preprocessing."""
    set_metadata(model, *_PRE_PROCESSED)


def model_has_pre_process_metadata(model: ModelProto) -> bool:
    return _metadata(model, _PRE_PROCESSED[0]) == _PRE_PROCESSED[1]


def add_infer_metadata(model: ModelProto) -> None:
    """Tells in the model that it holds the types and shapes of its values."""
    set_metadata(model, *_INFERRED)


def model_has_infer_metadata(model: ModelProto) -> bool:
    return _metadata(model, _INFERRED[0]) == _INFERRED[1]


def get_opset_version(model: ModelProto) -> int:
    """The version of ONNX's own operators that a model uses."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if len(versions) != 1:
        raise ValueError(f"a model imports ONNX's operators once, and this one {len(versions)} times")
    return versions[0]


def _override_types(overrides) -> set:
    """Types that well-formed TensorQuantOverrides name; `TensorQuantOverridesHelper` refuses the others."""
    types = set()
    for entries in (overrides or {}).values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                convert = entry.get("convert")
                types.add(entry.get("quant_type"))
                types.add(convert.get("quant_type") if isinstance(convert, dict) else None)
    return types - {None}


def needed_opset(version, weight_type, activation_type=None, overrides=None, block_size=0, channels=False) -> int:
    """The opset that a model of opset `version` needs to be quantised so; `channels`: with pairs that have an axis."""
    weight, activation = as_tensor_type(weight_type), as_tensor_type(activation_type)
    words = {TensorProto.INT16, TensorProto.UINT16}
    wide = {weight, activation} & words or _override_types(overrides) & {QuantType.QInt16, QuantType.QUInt16}
    if version < 21 and (block_size > 0 or wide):
        return 21
    if version < 19 and weight == TensorProto.FLOAT8E4M3FN:
        return 19
    if version < 13 and channels:
        return 13
    return 11 if version < 10 else version


def update_opset_version(
    model: ModelProto, weight_type, activation_type=None, tensor_quant_overrides=None, block_size: int = 0,
    channels: bool = False,
) -> ModelProto:  # fmt: skip
    """The model itself, or its conversion to the opset that its quantised form needs."""
    version = get_opset_version(model)
    target = needed_opset(version, weight_type, activation_type, tensor_quant_overrides, block_size, channels)
    if target == version:
        return model
    logger.warning(
        "The model's opset %d can't hold what it is quantised to; it is converted to opset %d.", version, target
    )
    return save_and_reload_model_with_shape_infer(onnx.version_converter.convert_version(model, target))


def needs_contrib_ops(version: int, types) -> bool:
    """Whether Q and DQ of these types are com.microsoft's own in a model of opset `version`."""
    return version < 21 and any(as_tensor_type(kind) in OPSET_21_TYPES for kind in types)


def tensor_proto_to_array(initializer: TensorProto) -> np.ndarray:
    """The numbers of a weight of f32 or f16."""
    if initializer.data_type not in FLOAT_TYPES:
        raise ValueError(f"'{initializer.name}' is {type_name(initializer.data_type)}; weights are FLOAT or FLOAT16")
    return onnx.numpy_helper.to_array(initializer)


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory(prefix="sardonyx.quantization.") as folder:
        yield Path(folder)
