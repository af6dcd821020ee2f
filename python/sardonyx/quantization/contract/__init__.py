"""Quantisation that keeps a bound: of the error that samples measure, and of the speed that this machine measures."""

from .contract import Refused, Result, quantize_within

__all__ = ["Refused", "Result", "quantize_within"]
