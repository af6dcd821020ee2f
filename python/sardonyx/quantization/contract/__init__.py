"""Quantisation that keeps a bound: of the error that samples measure, and of the speed that this machine measures."""

from .contract import quantize_within
from .result import Refused, Result

__all__ = ["Refused", "Result", "quantize_within"]
