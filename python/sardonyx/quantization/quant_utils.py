"""Helpers of quantisation, by the names that onnxruntime's tools give them."""

from __future__ import annotations

import json
import logging
import struct
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from .formulas import (  # noqa: F401
    compute_data_quant_params,
    compute_scale_zp,
    compute_scale_zp_blocked,
    compute_scale_zp_float8,
    normalize_axis,
    pack_bytes_to_4bit,
    quantize_data,
    quantize_nparray,
    quantize_weight,
    snap_zero_point_to_uint8,
)
from .model_files import (  # noqa: F401
    MODEL_SIZE_THRESHOLD,
    add_infer_metadata,
    add_pre_process_metadata,
    get_opset_version,
    load_model_with_shape_infer,
    model_has_external_data,
    model_has_infer_metadata,
    model_has_pre_process_metadata,
    save_and_reload_model_with_shape_infer,
    tensor_proto_to_array,
    update_opset_version,
)
from .names import (  # noqa: F401
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    QUANT_OP_NAME,
    TENSOR_NAME_QUANT_SUFFIX,
    __producer__,
    __version__,
    add_dequant_input_suffix,
    add_dequant_output_suffix,
    add_dequant_suffix,
    add_quant_input_suffix,
    add_quant_output_suffix,
    add_quant_suffix,
    ms_domain,
    onnx_domain,
)
from .quant_types import (  # noqa: F401
    FLOAT8_TYPES,
    ONNX_INT_TYPE_RANGE,
    ONNX_INT_TYPE_REDUCED_RANGE,
    ONNX_INT_TYPE_SYMMETRIC_RANGE,
    ONNX_TYPE_TO_NP_TYPE,
    QuantFormat,
    QuantizationMode,
    QuantizedValueType,
    QuantType,
    get_qmin_qmax_for_qType,
    get_qrange_for_qType,
)
from .tensor_data import CalibrationCacheEncoder

logger = logging.getLogger("sardonyx")
type_to_name = {number: name for name, number in TensorProto.DataType.items()}


class QuantizedValue:
    """Where a value is found once it is quantised: the names of its numbers, scale and zero point."""

    def __init__(
        self, name, new_quantized_name, scale_name, zero_point_name, quantized_value_type, axis=None, node_type=None,
        node_qtype=None, scale_type=None,
    ):  # fmt: skip
        self.original_name = name
        self.q_name = new_quantized_name
        self.scale_name = scale_name
        self.zp_name = zero_point_name
        self.value_type = quantized_value_type
        self.axis = axis
        self.node_type = node_type
        self.node_qtype = node_qtype
        self.scale_type = scale_type


def attribute_to_kwarg(attribute: AttributeProto) -> dict:
    """{name: value} of an attribute, as `onnx.helper.make_node` takes it."""
    if attribute.type == AttributeProto.UNDEFINED:
        raise ValueError(f"attribute '{attribute.name}' has no type")
    return {attribute.name: onnx.helper.get_attribute_value(attribute)}


def attributes_of(node, *but: str) -> dict:
    """All attributes of a node as keywords, without those named."""
    kept = {}
    for attribute in node.attribute:
        if attribute.name not in but:
            kept.update(attribute_to_kwarg(attribute))
    return kept


def attribute(node, name: str, default=None):
    """The value of one attribute of a node."""
    found = next((entry for entry in node.attribute if entry.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


def find_by_name(item_name, item_list):
    """The first item of that name, or None."""
    return next((item for item in item_list if item.name == item_name), None)


def get_elem_index(elem_name, elem_list):
    """Where an element is last in a list, or -1."""
    return max((index for index, element in enumerate(elem_list) if element == elem_name), default=-1)


def get_mul_node(inputs, output, name):
    return onnx.helper.make_node("Mul", inputs, [output], name)


def generate_identified_filename(filename: Path, identifier: str) -> Path:
    """`model.onnx` and `-x` give `model-x.onnx`."""
    return filename.parent / (filename.stem + identifier + filename.suffix)


def make_typed_initializer(name: str, kind: int, values: np.ndarray) -> TensorProto:
    """An initialiser whose numbers are in the field of their type, where scripts look for scales and zero points."""
    return onnx.helper.make_tensor(name, kind, values.shape, values.ravel().tolist())


def make_quantized_initializer(name: str, kind: int, values: np.ndarray, dims) -> TensorProto:
    """An initialiser of quantised numbers; those of 4 and 2 bits are packed."""
    if kind in (TensorProto.INT4, TensorProto.UINT4):
        data = bytes(pack_bytes_to_4bit(np.ascontiguousarray(values).tobytes()))
        return onnx.helper.make_tensor(name, kind, dims, data, raw=True)
    tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(values).reshape(dims), name)
    tensor.data_type = kind
    return tensor


def quantize_onnx_initializer(
    weight, quant_type, zero_point, scale, axis=None, quant_weight_name=None, block_size=0
) -> TensorProto:
    """A weight's initialiser in quantised form, by default called `<name>_quantized`."""
    values = quantize_weight(tensor_proto_to_array(weight), quant_type, scale, zero_point, axis, block_size)
    return make_quantized_initializer(
        quant_weight_name or weight.name + TENSOR_NAME_QUANT_SUFFIX, quant_type, values, weight.dims
    )


def smooth_distribution(p, eps=0.0001):
    """A histogram as probabilities without zeros: each zero gets `eps`, which the others give. None if all are zero."""
    zeros = p == 0
    others = p.size - np.count_nonzero(zeros)
    if not others:
        return None
    given = eps * np.count_nonzero(zeros) / others
    if given >= 1:
        raise ValueError(f"{others} of {p.size} bins can't give {eps} to each other bin")
    return np.where(zeros, eps, p - given).astype(np.float32)


def optimize_model(model_path: Path, opt_model_path: Path) -> None:
    """Writes the model with its constants folded and its BatchNormalizations in the convolutions before them."""
    from .shape_inference import quant_pre_process

    quant_pre_process(model_path, opt_model_path, skip_symbolic_shape=True)


def _flat_table(entries) -> bytes:
    """TensorRT's table of calibration as FlatBuffers: one table whose field 0 is a vector of {key, value} tables.

    FlatBuffers' format: https://flatbuffers.dev/internals. All offsets are of 32 bits.
    """
    data = bytearray(struct.pack("<I", 0))
    data += struct.pack("<HHH", 6, 8, 4) + b"\0\0"  # the virtual table of the root: of 6 bytes, of tables of 8
    root = len(data)
    data += struct.pack("<iI", root - 4, 4)
    data += struct.pack("<I", len(entries)) + bytes(4 * len(entries))
    places = root + 12
    pairs = len(data)
    data += struct.pack("<HHHH", 8, 12, 4, 8)  # the virtual table of all pairs
    for index, texts in enumerate(entries):
        table = len(data)
        struct.pack_into("<I", data, places + 4 * index, table - (places + 4 * index))
        data += struct.pack("<iII", table - pairs, 0, 0)
        for field, text in enumerate(texts):
            at = table + 4 + 4 * field
            struct.pack_into("<I", data, at, len(data) - at)
            raw = text.encode()
            data += struct.pack("<I", len(raw)) + raw + b"\0"
            data += bytes(-len(data) % 4)
    struct.pack_into("<I", data, 0, root)
    return bytes(data)


def write_calibration_table(calibration_cache, dir="."):  # noqa: A002
    """Writes ranges as TensorRT reads them: calibration.json, calibration.flatbuffers and calibration.cache in `dir`.

    The latter two hold the larger end of each range as text.
    """
    folder = Path(dir)
    logger.info("ranges of %d tensors go to %s", len(list(calibration_cache.keys())), folder)
    (folder / "calibration.json").write_text(json.dumps(calibration_cache, cls=CalibrationCacheEncoder))
    entries = []
    for key in sorted(calibration_cache.keys()):
        values = calibration_cache[key].to_dict()
        ends = [float(np.max(values[name])) for name in ("highest", "lowest") if name in values]
        entries.append((key, str(max(ends, default=0.0))))
    (folder / "calibration.flatbuffers").write_bytes(_flat_table(entries))
    (folder / "calibration.cache").write_text("".join(f"{key} {value}\n" for key, value in entries))
