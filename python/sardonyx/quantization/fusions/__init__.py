"""Larger operators in the place of chains that exporters write."""

from .fusion import Fusion
from .fusion_gelu import FusionGelu
from .fusion_layernorm import FusionLayerNormalization

__all__ = ["Fusion", "FusionGelu", "FusionLayerNormalization"]
