"""Makes TensorQuantOverrides of single tensors fit the nodes around them, which want one type for all they read and make.

A tensor that is to be of 16 bits takes its producer and its readers with it: what these read and make besides becomes
16 bits, too, where it does not have to be 8 for others; there it is converted.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import ModelProto

from ...graph_index import GraphIndex
from ...model_files import copy_of
from ...tensor_quant_overrides import QuantTypeInfo


@dataclass
class TensorTypeRequest:
    """What types a tensor is asked to have: where it is made, and where some nodes read it. None: the default."""

    producer: QuantTypeInfo | None
    consumers: tuple | None  # (QuantTypeInfo, {names of nodes})


class MixedPrecisionTensorQuantOverridesFixer:
    """See the module. `overrides` is a TensorQuantOverridesHelper, which `apply` changes."""

    def __init__(self, overrides, index: GraphIndex):
        self.overrides = overrides
        self.index = index

    @staticmethod
    def create_from_model(overrides, model: ModelProto, default_activation_qtype):
        index = GraphIndex(onnx.shape_inference.infer_shapes(copy_of(model)).graph)
        fixer = MixedPrecisionTensorQuantOverridesFixer(overrides, index)
        fixer._check(default_activation_qtype)
        return fixer

    def _check(self, default_type) -> None:
        valid, sentence = self.overrides.is_valid(self.index.initializers, set(self.index.values), default_type)
        if not valid:
            raise ValueError(sentence)

    def apply(self, default_activation_qtype, default_activation_symmetric) -> None:
        """Adds types and conversions to the overrides."""
        default = QuantTypeInfo(default_activation_qtype)
        requests = self.get_desired_tensor_types(default_activation_qtype, default_activation_symmetric)
        for name, request in requests.items():
            readers = {node.name for node in self.index.readers.get(name, [])}
            made = request.producer
            if request.consumers is None:
                self._convert(name, made, default, readers)
                continue
            wanted, takers = request.consumers
            if made is None:
                made = self.overrides.get_node_output_qtype_info(name, default_activation_qtype)
                if made == wanted:
                    self._check_takers(name, takers)
                    continue
            if made != wanted:
                self._convert(name, made, wanted, takers)
            elif readers - takers:
                self._convert(name, made, default, readers - takers)
            elif name not in self.overrides:
                self.overrides[name] = [{}]
                made.save_to_dict(self.overrides[name][0])
        self._check(default_activation_qtype)

    def get_desired_tensor_types(self, default_activation_qtype, default_activation_symmetric) -> dict:
        """{tensor: TensorTypeRequest} around all tensors whose overrides name another type than the default."""
        requests: dict = {}
        default = QuantTypeInfo(default_activation_qtype, default_activation_symmetric)
        for name, entries in list(self.overrides.items()):
            single = len(entries) == 1 and name not in self.index.initializers and self.index.is_float(name)
            if not single or "convert" in entries[0]:
                continue
            kind = QuantTypeInfo.load_from_dict(entries[0], default_activation_qtype)
            if kind == default:
                continue
            producer = self.index.producers.get(name)
            for node in ([producer] if producer is not None else []) + self.index.readers.get(name, []):
                self._ask(requests, kind, node)
        return requests

    def _ask(self, requests, kind, node) -> None:
        """Asks for one type for all that a node reads and makes."""
        for name in node.output:
            if self.index.is_float(name):
                request = requests.setdefault(name, TensorTypeRequest(None, None))
                if request.producer is not None and request.producer != kind:
                    raise ValueError(f"tensor '{name}' is asked to be of two types")
                request.producer = kind
        for name in node.input:
            if not name or name in self.index.initializers or not self.index.is_float(name):
                continue
            request = requests.setdefault(name, TensorTypeRequest(None, None))
            if request.consumers is None:
                request.consumers = (kind, set())
            if request.consumers[0] != kind:
                raise ValueError(f"readers of tensor '{name}' ask for two types")
            if not node.name:
                raise ValueError(f"a node {node.op_type} that makes '{node.output[0]}' has no name to convert '{name}' for")
            request.consumers[1].add(node.name)

    def _convert(self, name, made, wanted, takers) -> None:
        """Has a tensor made in one type and read by `takers` in another."""
        if not self.overrides.get(name):
            self.overrides[name] = [{}]
            made.save_to_dict(self.overrides[name][0])
        entry = self.overrides[name][0]
        if made != QuantTypeInfo.load_from_dict(entry):
            raise ValueError(f"the overrides of tensor '{name}' name another type than its producer needs")
        if not takers:
            return
        if "convert" not in entry:
            entry["convert"] = {}
            wanted.save_to_dict(entry["convert"])
        if wanted != QuantTypeInfo.load_from_dict(entry["convert"]):
            raise ValueError(f"the overrides of tensor '{name}' convert it to another type than its readers need")
        entry["convert"].setdefault("recv_nodes", set()).update(takers)

    def _check_takers(self, name, takers) -> None:
        entries = self.overrides.get(name)
        convert = entries[0].get("convert") if entries else None
        if convert is not None and ("recv_nodes" not in convert or convert["recv_nodes"] & takers):
            raise ValueError(f"the overrides of tensor '{name}' convert it for nodes that need its own type")
