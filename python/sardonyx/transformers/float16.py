"""Conversion to 16-bit floats, by the module through which onnxruntime has it."""

from sardonyx.quantization.float16 import (
    ALWAYS_FLOAT_INPUTS,
    DEFAULT_OP_BLOCK_LIST,
    convert_float_to_float16,
    convert_np_to_float16,
    float_to_float16_max_diff,
)

__all__ = [
    "ALWAYS_FLOAT_INPUTS", "DEFAULT_OP_BLOCK_LIST", "convert_float_to_float16", "convert_np_to_float16",
    "float_to_float16_max_diff",
]  # fmt: skip
