"""Weights of few bits: constant weights of MatMul, and tables of Gather, in blocks with a scale each.

As operators (QOperator) MatMul becomes com.microsoft's MatMulNBits and Gather GatherBlockQuantized; as QDQ a
DequantizeLinear with blocks comes before the MatMul.
"""

from __future__ import annotations

import argparse
import logging
import os

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from .calibrate import samples_of
from .formulas import pack_bytes_to_4bit
from .model_files import array_of, get_opset_version, infer_types, load_model
from .names import ms_domain
from .nbits import awq, gptq, search
from .nbits.blocks import Blocks, as_blocks, finish, parameters, round_to_nearest
from .nbits.inputs import collect
from .onnx_model import ONNXModel, remove_unused_initializers, replace_all, subgraphs_of
from .options import check_nodes
from .quant_types import FLOAT_TYPES, QuantFormat
from .quant_utils import attribute, find_by_name
from .weight_only_configs import (  # noqa: F401
    AWQWeightOnlyQuantConfig,
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
    WeightOnlyQuantConfig,
)

logger = logging.getLogger("sardonyx")
_OPERATOR_BITS = (2, 4, 8)  # that MatMulNBits has; others are stored in the next wider of these


class MatMulNBitsQuantizer:
    """Quantises the weights of a model; `process` edits `model`, which is an ONNXModel.

    :param model: a path or a ModelProto, which is edited in place.
    :param bits: 2 to 8; 3 bits are stored in 4, and 5 to 7 in 8.
    :param block_size: numbers of a column that share a scale: a power of two from 16 on.
    :param nodes_to_exclude: names or patterns of nodes that stay float.
    :param nodes_to_include: names of nodes to quantise whatever their operator.
    :param algo_config: a method's configuration; it goes over `bits`, `block_size` and the others that it has.
    """

    def __init__(
        self, model, bits=4, block_size=128, is_symmetric=False, accuracy_level=None, nodes_to_exclude=None,
        nodes_to_include=None, quant_format=QuantFormat.QOperator, op_types_to_quantize=None, quant_axes=None,
        channel_wised_quantize=False, algo_config=None,
    ):  # fmt: skip
        self.model_path = None if isinstance(model, ModelProto) else os.fspath(model)
        # Weights beside the model are read one at a time, when they are rounded.
        self._folder = os.path.dirname(os.path.abspath(self.model_path)) if self.model_path else ""
        self.model = ONNXModel(model if self.model_path is None else load_model(model, external_data=False))
        if algo_config is None:
            algo_config = DefaultWeightOnlyQuantConfig(
                block_size=block_size, is_symmetric=is_symmetric, accuracy_level=accuracy_level,
                quant_format=quant_format, op_types_to_quantize=op_types_to_quantize, quant_axes=quant_axes, bits=bits,
                channel_wised_quantize=channel_wised_quantize,
            )  # fmt: skip
        self.algo_config = algo_config
        self.bits = getattr(algo_config, "bits", bits)
        algo_config._check_bits(self.bits)
        self.block_size = algo_config.block_size if hasattr(algo_config, "bits") else block_size
        self.is_symmetric = getattr(algo_config, "is_symmetric", is_symmetric)
        self.accuracy_level = getattr(algo_config, "accuracy_level", accuracy_level)
        names = check_nodes(nodes_to_exclude, self.model.model, "nodes_to_exclude")
        self.nodes_to_exclude = set(names)
        self.nodes_to_include = set(nodes_to_include or ())
        self.statistics: dict = {}

    def process(self) -> None:
        """Quantises all weights that are asked for."""
        config, model = self.algo_config, self.model.model
        if config.quant_format is QuantFormat.QDQ or "Gather" in config.op_types_to_quantize:
            self._load_rest()
            if get_opset_version(model) < 21:
                model = onnx.version_converter.convert_version(model, 21)
                self.model.model.CopyFrom(model)
                model = self.model.model
            model.ir_version = max(model.ir_version, 10)
        if config.algorithm in ("GPTQ", "AWQ") and config.calibration_data_reader is None:
            raise ValueError(f"{config.algorithm} needs samples: give it a calibration_data_reader")
        if getattr(config, "calibration_data_reader", None) is not None:
            self._load_rest()
            self._observe()
        if config.algorithm == "AWQ":
            self._scale_inputs()
        self._walk([self.model.graph()])
        remove_unused_initializers(self.model.graph())
        self._load_rest()
        if _has_domain(self.model.graph(), ms_domain):
            self.model.set_opset_import(ms_domain, 1)

    def _load_rest(self) -> None:
        """Reads what lies beside the model and was not read yet."""
        if self._folder:
            onnx.load_external_data_for_model(self.model.model, self._folder)

    # Which nodes.

    def _wanted(self, node) -> bool:
        if node.name in self.nodes_to_exclude:
            return False
        return node.name in self.nodes_to_include or node.op_type in self.algo_config.op_types_to_quantize

    def _walk(self, graphs) -> None:
        nodes: list = []
        for node in graphs[-1].node:
            for body in subgraphs_of(node):
                self._walk([*graphs, body])
            new = None
            if self._wanted(node):
                if node.op_type == "MatMul":
                    new = self._matmul(node, graphs)
                elif node.op_type == "Gather":
                    new = self._gather(node, graphs)
                else:
                    logger.warning("'%s' is a %s, whose weights stay float", node.name, node.op_type)
            nodes.extend([node] if new is None else new)
        replace_all(graphs[-1].node, nodes)

    @staticmethod
    def _weight(name, graphs):
        """(initialiser, the graph that holds it), of the innermost graph that has one; (None, None) if none has."""
        for graph in reversed(graphs):
            tensor = find_by_name(name, graph.initializer)
            if tensor is not None:
                fits = tensor.data_type in (*FLOAT_TYPES, TensorProto.BFLOAT16)
                return (tensor, graph) if fits else (None, None)
        return None, None

    def _products(self):
        """Nodes of the main graph with a constant weight of two axes, as (node, weight)."""
        graph = self.model.graph()
        for node in graph.node:
            if node.op_type == "MatMul" and self._wanted(node):
                tensor, _ = self._weight(node.input[1], [graph])
                if tensor is not None and len(tensor.dims) == 2:
                    yield node, tensor

    # Samples.

    def _observe(self) -> None:
        model = infer_types(self.model.model)
        sizes = {node.input[0]: tensor.dims[0] for node, tensor in self._products()}
        if sizes:
            self.statistics = collect(model, sizes, samples_of(self.algo_config.calibration_data_reader))

    def _scale_inputs(self) -> None:
        """Multiplies weights by factors of their inputs, and divides the inputs: in the normalisation before, or by a Mul."""
        groups: dict = {}
        for node, tensor in self._products():
            groups.setdefault(node.input[0], []).append((node, tensor))
        graph = self.model.graph()
        inserted = []
        for name, members in groups.items():
            statistics = self.statistics[name]
            bits, block_size, symmetric = self._settings(members[0][0])
            weights = [onnx.numpy_helper.to_array(tensor).astype(np.float32) for _, tensor in members]
            factors = awq.find_scales(weights, statistics.gram, statistics.mean, bits, block_size, symmetric)
            if factors is None:
                continue
            for (node, tensor), weight in zip(members, weights):
                scaled = onnx.numpy_helper.from_array(
                    (weight * factors[:, None]).astype(onnx.numpy_helper.to_array(tensor).dtype), f"{tensor.name}_scaled"
                )
                if find_by_name(scaled.name, graph.initializer) is None:
                    graph.initializer.append(scaled)
                node.input[1] = scaled.name
            statistics.gram = statistics.gram / np.outer(factors, factors)
            if self._fold_factors(name, members, factors):
                continue
            kind = members[0][1].data_type
            inverse = (1 / factors).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
            graph.initializer.append(onnx.numpy_helper.from_array(inverse, f"{name}_awq_factors"))
            inserted.append(onnx.helper.make_node("Mul", [name, f"{name}_awq_factors"], [f"{name}_awq"], f"{name}_awq"))
            self.statistics[f"{name}_awq"] = statistics
            for node, _ in members:
                node.input[0] = f"{name}_awq"
        if inserted:
            graph.node.extend(inserted)
            self.model.topological_sort()

    def _fold_factors(self, name, members, factors) -> bool:
        """Divides the gain and bias of a LayerNormalization that only these products read."""
        graph = self.model.graph()
        norm = self.model.output_name_to_node().get(name)
        readers = [node for node in self.model.input_name_to_nodes().get(name, []) if node.op_type != "Shape"]
        if norm is None or norm.op_type != "LayerNormalization" or self.model.is_graph_output(name):
            return False
        if len(readers) != len(members) or len(norm.input) < 2:
            return False
        weights = [find_by_name(each, graph.initializer) for each in norm.input[1:] if each]
        if None in weights or any(list(each.dims) != [len(factors)] for each in weights):
            return False
        for place, tensor in enumerate(weights, 1):
            values = onnx.numpy_helper.to_array(tensor)
            divided = onnx.numpy_helper.from_array((values / factors).astype(values.dtype), f"{tensor.name}_{norm.output[0]}_awq")
            graph.initializer.append(divided)
            norm.input[place] = divided.name
        return True

    # Rounding.

    def _settings(self, node):
        """(bits, block size, whether symmetric) of a node."""
        own = (self.algo_config.customized_weight_config or {}).get(node.name, {})
        symmetric = own["scheme"] == "sym" if "scheme" in own else self.is_symmetric
        return own.get("bits", self.bits), own.get("group_size", self.block_size), symmetric

    def _round(self, node, weight: np.ndarray, bits, block_size, symmetric, dtype) -> Blocks:
        config = self.algo_config
        statistics = self.statistics.get(node.input[0])
        if config.algorithm == "HQQ":
            return search.half_quadratic(weight, bits, block_size, dtype=dtype)
        if config.algorithm == "k_quant":
            importance = None if statistics is None else statistics.importance
            return search.search_scales(weight, bits, block_size, symmetric, importance, dtype)
        if config.algorithm == "GPTQ" and statistics is not None:
            return gptq.quantize(
                weight, statistics.gram, bits, block_size, symmetric, config.percdamp, config.actorder, config.mse, dtype
            )
        if config.algorithm == "AWQ" and statistics is not None and config.clip:
            return awq.round_clipped(weight, statistics.gram, bits, block_size, symmetric, dtype)
        share = getattr(config, "ratios", {}).get(node.input[1], 1)
        if share != 1:
            blocks = as_blocks(weight, block_size)
            scale, zero = parameters(blocks * share, bits, symmetric)
            return finish(blocks, scale, zero, bits, weight.shape[0], dtype)
        return round_to_nearest(weight, bits, block_size, symmetric, dtype)

    def _matmul(self, node, graphs):
        tensor, graph = self._weight(node.input[1], graphs)
        if tensor is None or len(tensor.dims) < 2 or any(size != 1 for size in tensor.dims[:-2]):
            logger.info("'%s' has no constant weight of two axes and stays float", node.name)
            return None
        values = array_of(tensor, self._folder)
        weight = values.reshape(values.shape[-2:]).astype(np.float32)
        bits, block_size, symmetric = self._settings(node)
        if self.algo_config.quant_format is QuantFormat.QDQ:
            if bits != 4:
                raise ValueError(f"'{node.name}': quant_format=QuantFormat.QDQ has weights of 4 bits, unlike {bits}")
            nodes, result = self._as_pairs(node, graph, tensor, weight, block_size, symmetric, values.dtype)
        else:
            nodes, result = self._as_operator(node, graph, tensor, weight, bits, block_size, symmetric, values.dtype)
        return nodes + self._restore_rank(node, graphs, result, values.ndim, weight.shape[1])

    def _as_operator(self, node, graph, tensor, weight, bits, block_size, symmetric, dtype):
        stored = next(each for each in _OPERATOR_BITS if each >= bits)
        blocks = self._round(node, weight, bits, block_size, symmetric, dtype)
        if stored != bits and symmetric and self.algo_config.algorithm != "HQQ":
            # The operator's own zero point is the middle of the wider range.
            shift = 2 ** (stored - 1) - 2 ** (bits - 1)
            blocks = Blocks(blocks.q + np.uint8(shift), blocks.scale, blocks.zero + shift, stored, blocks.rows)
        else:
            blocks = Blocks(blocks.q, blocks.scale, blocks.zero, stored, blocks.rows)
        name = tensor.name
        inputs = [node.input[0], f"{name}_Q{bits}", f"{name}_scales"]
        new = [
            onnx.numpy_helper.from_array(blocks.packed(), inputs[1]),
            onnx.numpy_helper.from_array(blocks.scale.astype(dtype), inputs[2]),
        ]
        if self.algo_config.algorithm == "HQQ":
            new.append(onnx.numpy_helper.from_array(blocks.zero.astype(dtype), f"{name}_zero_points"))
        elif not symmetric:
            new.append(onnx.numpy_helper.from_array(blocks.packed_zeros(), f"{name}_zero_points"))
        inputs += [each.name for each in new[2:]]
        self._add(graph, new)
        level = {"accuracy_level": self.accuracy_level} if self.accuracy_level else {}
        result = self._result_name(node, len(tensor.dims))
        product = onnx.helper.make_node(
            "MatMulNBits", inputs, [result], f"{node.name}_Q{bits}" if node.name else "", domain=ms_domain,
            K=weight.shape[0], N=weight.shape[1], bits=stored, block_size=block_size, **level,
        )  # fmt: skip
        return [product], result

    def _as_pairs(self, node, graph, tensor, weight, block_size, symmetric, dtype):
        """w → DequantizeLinear → MatMul. Whole columns of symmetric weights are stored as [N, K], before a Transpose."""
        rows, count = weight.shape
        whole = getattr(self.algo_config, "channel_wised_quantize", False)
        block_size = rows if whole else block_size
        blocks = self._round(node, weight, 4, block_size, symmetric, dtype)
        kind = TensorProto.INT4 if symmetric else TensorProto.UINT4
        numbers = blocks.q.reshape(count, -1)[:, :rows].astype(np.int8) - (8 if symmetric else 0)
        turned = whole and symmetric
        numbers, scale = (numbers, blocks.scale) if turned else (numbers.T, blocks.scale.T)
        base = f"{tensor.name}_DQ"
        inputs = [f"{base}_Q4", f"{base}_scales"]
        new = [
            _packed_tensor(inputs[0], kind, numbers),
            onnx.numpy_helper.from_array(np.ascontiguousarray(scale).astype(dtype), inputs[1]),
        ]
        if not symmetric:
            new.append(_packed_tensor(f"{base}_zero_points", kind, blocks.zero.T.astype(np.int8)))
            inputs.append(new[-1].name)
        self._add(graph, new)
        weight_name = f"{base}_Q4_output"
        name = node.name
        nodes = [
            onnx.helper.make_node(
                "DequantizeLinear", inputs, [weight_name], f"{name}_DQ_Q4" if name else "", axis=1 if turned else 0,
                block_size=block_size,
            )
        ]  # fmt: skip
        if turned:
            nodes.append(onnx.helper.make_node("Transpose", [weight_name], [weight_name + "_transposed"], perm=[1, 0]))
            weight_name += "_transposed"
        result = self._result_name(node, len(tensor.dims))
        name = f"{name}_matmul_Q4" if name else ""
        nodes.append(onnx.helper.make_node("MatMul", [node.input[0], weight_name], [result], name))
        return nodes, result

    @staticmethod
    def _result_name(node, rank):
        return node.output[0] if rank == 2 else node.output[0] + "_pre_reshape"

    @staticmethod
    def _add(graph, tensors) -> None:
        """Adds initialisers; those of a weight that several nodes read are there already."""
        for tensor in tensors:
            if find_by_name(tensor.name, graph.initializer) is None:
                graph.initializer.append(tensor)

    def _restore_rank(self, node, graphs, result, rank, columns):
        """Nodes that give a product by a weight [1, …, K, N] the leading ones of the weight, where its input has fewer axes."""
        if rank == 2:
            return []
        known = _rank_of(node.input[0], graphs)
        prefix = (node.name or node.output[0]) + "_rank"
        make = onnx.helper.make_node
        if known is not None and known >= rank:
            return [make("Identity", [result], [node.output[0]], prefix)]
        # Ones for the axes that the input lacks (one axis counts as two), the input's sizes but its last, and N.
        constants = {"zero": 0, "one": 1, "two": 2, "of": rank, "from": [0], "flat": [1], "columns": [columns]}
        names = {key: f"{prefix}_{key}" for key in constants}
        self._add(self.model.graph(), [
            onnx.numpy_helper.from_array(np.array(value, np.int64), names[key]) for key, value in constants.items()
        ])  # fmt: skip
        one = onnx.helper.make_tensor("value", TensorProto.INT64, [1], [1])

        def add(op_type, inputs, name, **attributes):
            nodes.append(make(op_type, inputs, [f"{prefix}_{name}"], f"{prefix}_{name}_node", **attributes))
            return nodes[-1].output[0]

        nodes: list = []
        sizes = add("Shape", [node.input[0]], "sizes")
        have = add("Gather", [add("Shape", [sizes], "count"), names["zero"]], "have")
        lack = add("Sub", [names["of"], add("Max", [have, names["two"]], "counted")], "lack")
        lack = add("Reshape", [add("Max", [lack, names["zero"]], "lacking"), names["flat"]], "ones_count")
        ones = add("ConstantOfShape", [lack], "ones", value=one)
        last = add("Reshape", [add("Sub", [have, names["one"]], "last"), names["flat"]], "last_axis")
        rows = add("Slice", [sizes, names["from"], last, names["from"]], "rows")
        target = add("Concat", [ones, rows, names["columns"]], "target", axis=0)
        nodes.append(make("Reshape", [result, target], node.output, prefix))
        return nodes

    def _gather(self, node, graphs):
        """Gather of a table's rows as GatherBlockQuantized, with blocks along `quant_axes`' axis of Gather."""
        tensor, graph = self._weight(node.input[0], graphs)
        if tensor is None:
            return None
        config = self.algo_config
        bits, block_size, symmetric = self._settings(node)
        if bits != 4 or config.quant_format is not QuantFormat.QOperator:
            raise ValueError(f"'{node.name}': tables of Gather have 4 bits and quant_format=QuantFormat.QOperator")
        if block_size < 16 or block_size & (block_size - 1):
            raise ValueError(f"'{node.name}': blocks of a table are of 16, 32, 64, … numbers, unlike {block_size}")
        values = array_of(tensor, self._folder)
        axis = config.quant_axes.get("Gather", 1)
        if not -values.ndim <= axis < values.ndim:
            raise ValueError(f"'{node.name}': its table of rank {values.ndim} has no axis {axis}")
        axis %= values.ndim
        last = np.moveaxis(values, axis, -1)
        blocks = round_to_nearest(last.reshape(-1, values.shape[axis]).T, 4, block_size, symmetric, values.dtype)
        kind = TensorProto.INT4 if symmetric else TensorProto.UINT4

        def place(parts, size):  # [rows, size] → the table's own order of axes
            return np.moveaxis(parts.reshape(*last.shape[:-1], size), -1, axis)

        numbers = blocks.q.reshape(len(blocks.q), -1)[:, : values.shape[axis]].astype(np.int8) - (8 if symmetric else 0)
        count = blocks.scale.shape[1]
        inputs = [f"{tensor.name}_Q4", node.input[1], f"{tensor.name}_scales"]
        scales = np.ascontiguousarray(place(blocks.scale, count)).astype(values.dtype)
        new = [
            _packed_tensor(inputs[0], kind, place(numbers, values.shape[axis])),
            onnx.numpy_helper.from_array(scales, inputs[2]),
        ]
        if not symmetric:
            new.append(_packed_tensor(f"{tensor.name}_zero_points", kind, place(blocks.zero.astype(np.int8), count)))
            inputs.append(new[-1].name)
        self._add(graph, new)
        return [
            onnx.helper.make_node(
                "GatherBlockQuantized", inputs, node.output, f"{node.name}_Q4" if node.name else "", domain=ms_domain,
                gather_axis=attribute(node, "axis", 0), quantize_axis=axis, block_size=block_size,
            )
        ]  # fmt: skip


def _packed_tensor(name, kind, numbers: np.ndarray) -> TensorProto:
    data = bytes(pack_bytes_to_4bit(np.ascontiguousarray(numbers).tobytes()))
    return onnx.helper.make_tensor(name, kind, numbers.shape, data, raw=True)


def _rank_of(name, graphs):
    for graph in reversed(graphs):
        for values in (graph.value_info, graph.input, graph.output):
            value = find_by_name(name, values)
            if value is not None and value.type.tensor_type.HasField("shape"):
                return len(value.type.tensor_type.shape.dim)
        tensor = find_by_name(name, graph.initializer)
        if tensor is not None:
            return len(tensor.dims)
    return None


def _has_domain(graph, domain) -> bool:
    return any(
        node.domain == domain or any(_has_domain(body, domain) for body in subgraphs_of(node)) for node in graph.node
    )


_METHODS = {
    "default": "DEFAULT", "rtn": "RTN", "k_quant": "k_quant", "hqq": "HQQ", "gptq": "GPTQ", "awq": "AWQ",
}  # fmt: skip


def config_of(method, bits, block_size, symmetric, accuracy_level=None, samples=None, **others):
    """The configuration of a method by its name."""
    if method not in _METHODS:
        raise ValueError(f"{method!r} is no method; these are {', '.join(_METHODS)}")
    if method == "hqq":
        return HQQWeightOnlyQuantConfig(block_size, bits)
    if method == "gptq":
        return GPTQWeightOnlyQuantConfig(samples, block_size=block_size)
    if method == "awq":
        return AWQWeightOnlyQuantConfig(samples)
    if method == "k_quant":
        return KQuantWeightOnlyQuantConfig(calibration_data_reader=samples)
    if method == "rtn":
        return RTNWeightOnlyQuantConfig()
    return DefaultWeightOnlyQuantConfig(block_size, symmetric, accuracy_level, bits=bits, **others)


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description="Quantises the weights of MatMul, and tables of Gather, to few bits.")
    parser.add_argument("--input_model", required=True)
    parser.add_argument("--output_model", required=True)
    parser.add_argument("--block_size", type=int, default=32, help="numbers that share a scale (32)")
    parser.add_argument("--quant_method", default="default", choices=sorted(_METHODS))
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--symmetric", nargs="?", const="true", default="true", choices=["true", "false", "True", "False", "0", "1"])
    parser.add_argument("--accuracy_level", type=int)
    parser.add_argument("--data", help="a folder of samples, for gptq, awq and k_quant")
    parser.add_argument("--nodes_to_exclude", nargs="+", default=[])
    parser.add_argument("--nodes_to_include", nargs="+", default=[])
    parser.add_argument("--quant_format", default="QOperator", choices=["QOperator", "QDQ"])
    parser.add_argument("--op_types_to_quantize", nargs="+", default=None)
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args(arguments)
    if os.path.exists(given.output_model):
        raise FileExistsError(f"'{given.output_model}' is there already")
    others = {"quant_format": given.quant_format, "op_types_to_quantize": given.op_types_to_quantize}
    symmetric = given.symmetric.lower() in ("true", "1")
    config = config_of(
        given.quant_method, given.bits, given.block_size, symmetric, given.accuracy_level, given.data,
        **(others if given.quant_method == "default" else {}),
    )  # fmt: skip
    quantizer = MatMulNBitsQuantizer(
        given.input_model, given.bits, given.block_size, symmetric, given.accuracy_level, given.nodes_to_exclude,
        given.nodes_to_include, algo_config=config,
    )  # fmt: skip
    quantizer.process()
    quantizer.model.save_model_to_file(given.output_model, True)


if __name__ == "__main__":
    main()
