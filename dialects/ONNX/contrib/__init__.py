"""The operators of domain com.microsoft, which ONNX's own schemas don't hold.

Each file describes a family: the schema of each op, and what it is in terms of
ONNX's operators. README.md tells how to add one.
"""

from . import (
    activations,
    attention,
    branches,
    embeddings,
    engram,
    linear_attention,
    matrices,
    movement,
    normalizations,
    products,
    quantized,
    recurrent,
    search,
    tokens,
)

_FAMILIES = [
    activations,
    normalizations,
    products,
    embeddings,
    attention,
    linear_attention,
    recurrent,
    quantized,
    movement,
    matrices,
    tokens,
    search,
    branches,
    engram,
]


def all_ops():
    return [op for family in _FAMILIES for op in family.OPS]
