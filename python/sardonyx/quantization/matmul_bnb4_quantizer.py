"""Weights of MatMul as floats of 4 bits, FP4 or NF4, of the library bitsandbytes: com.microsoft's MatMulBnb4."""

from __future__ import annotations

import logging

import numpy as np
import onnx

from .model_files import load_model
from .names import ms_domain
from .onnx_model import ONNXModel, remove_unused_initializers, replace_all, subgraphs_of
from .options import check_nodes
from .quant_types import FLOAT_TYPES
from .quant_utils import find_by_name

logger = logging.getLogger("sardonyx")

# Upper ends of the intervals of each code, of |x| / largest (FP4, whose codes are not in order) or x / largest (NF4):
# the middles between neighbours of the types' values.
_FP4_ENDS = np.array([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333, 1], np.float32)
_FP4_CODES = np.array([0, 1, 6, 7, 4, 5, 2, 3], np.uint8)
_NF4_ENDS = np.array(
    [
        -0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544, -0.23460740596055984,
        -0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513, 0.2035212516784668,
        0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482, 0.8614784181118011, 1.0,
    ],
    np.float32,
)  # fmt: skip


def quantize_matmul_bnb4(packed, weight, largest, block_size, quant_type, columns, rows) -> None:
    """Fills `packed` (u8, two codes a byte, the first above) and `largest` (of each block) from a weight [columns, rows].

    Blocks are of consecutive numbers of the whole weight.
    """
    values = np.asarray(weight, np.float32).reshape(-1)
    count = len(values)
    padded = np.pad(values, (0, -count % block_size)).reshape(-1, block_size)
    furthest = np.abs(padded).max(axis=1)
    inverse = np.where(furthest == 0, 0, 1 / np.where(furthest == 0, 1, furthest)).astype(np.float32)
    scaled = padded * inverse[:, None]
    if quant_type == MatMulBnb4Quantizer.FP4:
        codes = _FP4_CODES[np.minimum(np.searchsorted(_FP4_ENDS, np.abs(scaled)), 7)] + (scaled < 0).astype(np.uint8) * 8
    else:
        codes = np.minimum(np.searchsorted(_NF4_ENDS, scaled), 15).astype(np.uint8)
    codes = codes.ravel()[: count + count % 2].astype(np.uint8)
    packed[...] = codes[0::2] << 4 | codes[1::2]
    largest[...] = furthest


class MatMulBnb4Quantizer:
    """Writes MatMul by constant weights of two axes as MatMulBnb4; `process` edits `model`, which is an ONNXModel.

    :param quant_type: FP4 or NF4.
    :param block_size: numbers that share a scale; bitsandbytes has 64.
    """

    FP4 = 0
    NF4 = 1

    def __init__(self, model, quant_type, block_size, nodes_to_exclude=None):
        if quant_type not in (self.FP4, self.NF4):
            raise ValueError(f"'quant_type' is MatMulBnb4Quantizer.FP4 or NF4, unlike {quant_type}")
        self.model = ONNXModel(model if isinstance(model, onnx.ModelProto) else load_model(model))
        self.quant_type = quant_type
        self.block_size = block_size
        self.nodes_to_exclude = set(check_nodes(nodes_to_exclude, self.model.model, "nodes_to_exclude"))

    def process(self) -> None:
        self._walk([self.model.graph()])
        remove_unused_initializers(self.model.graph())
        self.model.set_opset_import(ms_domain, 1)

    def _walk(self, graphs) -> None:
        nodes = []
        for node in graphs[-1].node:
            for body in subgraphs_of(node):
                self._walk([*graphs, body])
            wanted = node.op_type == "MatMul" and node.name not in self.nodes_to_exclude
            nodes.append((self._quantized(node, graphs) if wanted else None) or node)
        replace_all(graphs[-1].node, nodes)

    def _quantized(self, node, graphs):
        for graph in reversed(graphs):
            tensor = find_by_name(node.input[1], graph.initializer)
            if tensor is not None:
                break
        else:
            return None
        if len(tensor.dims) != 2 or tensor.data_type not in FLOAT_TYPES:
            return None
        weight = onnx.numpy_helper.to_array(tensor)
        packed = np.zeros((weight.size + 1) // 2, np.uint8)
        largest = np.zeros(-(-weight.size // self.block_size), weight.dtype)
        rows, columns = weight.shape
        turned = np.ascontiguousarray(weight.T)
        quantize_matmul_bnb4(packed, turned, largest, self.block_size, self.quant_type, columns, rows)
        names = [tensor.name + "_Bnb4", tensor.name + "_absmax"]
        for name, values in zip(names, (packed, largest)):
            if find_by_name(name, graph.initializer) is None:
                graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        return onnx.helper.make_node(
            "MatMulBnb4", [node.input[0], *names], node.output, node.name + "_Bnb4" if node.name else "",
            domain=ms_domain, K=rows, N=columns, block_size=self.block_size, quant_type=self.quant_type,
        )  # fmt: skip
