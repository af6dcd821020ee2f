"""The name of older releases for `matmul_nbits_quantizer`."""

from .matmul_nbits_quantizer import *  # noqa: F403
from .matmul_nbits_quantizer import MatMulNBitsQuantizer


class MatMul4BitsQuantizer(MatMulNBitsQuantizer):
    """MatMulNBitsQuantizer of 4 bits, whose second argument is the size of blocks."""

    def __init__(self, model, block_size=128, is_symmetric=False, accuracy_level=None, nodes_to_exclude=None, **others):
        super().__init__(model, 4, block_size, is_symmetric, accuracy_level, nodes_to_exclude, **others)
