"""The names of onnxruntime's extension, by the module through which its package has them."""

from functools import partial
from typing import TYPE_CHECKING

from sardonyx.capi import onnxruntime_pybind11_state as _state

if TYPE_CHECKING:
    from sardonyx.capi.onnxruntime_pybind11_state import *  # noqa: F403

# What rounds weights to few bits; it needs the package onnx.
_ROUNDING = {"quantize_matmul_2bits": 2, "quantize_matmul_4bits": 4, "quantize_matmul_8bits": 8}
__all__ = [*_state.__all__, *_ROUNDING, "quantize_matmul_bnb4", "quantize_qdq_matmul_4bits"]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _ROUNDING:
            from sardonyx.quantization.nbits.buffers import quantize_matmul_bits

            return partial(quantize_matmul_bits, _ROUNDING[name])
        if name == "quantize_qdq_matmul_4bits":
            from sardonyx.quantization.nbits.buffers import quantize_qdq_matmul_4bits

            return quantize_qdq_matmul_4bits
        if name == "quantize_matmul_bnb4":
            from sardonyx.quantization.matmul_bnb4_quantizer import quantize_matmul_bnb4

            return quantize_matmul_bnb4
        return getattr(_state, name)


def __dir__():
    return __all__
