"""What a quantisation decides, as data: a type, scale and zero point for every tensor, a precision for every node.

A plan is made from ranges or by a search, applied by an editor of the model, kept in the model's metadata
(`sardonyx.quantization`) and in files of JSON:

    {"version": 1,
     "format": "QDQ",
     "settings": {"activation_type": "UINT8", "weight_type": "INT8", "per_channel": false, "options": {}},
     "tensors": {"x": {"role": "activation", "type": "UINT8", "scale": 0.1, "zero_point": 128},
                 "w": {"role": "weight", "type": "INT8", "scale": [...], "zero_point": [...], "axis": 0},
                 "b": {"role": "bias", "type": "INT32", "node": "/conv", "input": "x", "weight": "w"},
                 "y": {"role": "activation", "type": "UINT8", "shares": ["x", "/reshape"]}},
     "nodes": {"/conv": {"precision": "int8"}, "/softmax": {"precision": "float", "reason": "..."}}}

`axis` counts from the front, `block` is the size of blocks along it. `shares` names a tensor, and a node that reads it,
whose scale and zero point are also this tensor's. `settings` say how the graph is written. `convert` holds a second
type, scale and zero point, which the nodes of `convert_nodes` (all if it is missing) read. A bias with `beta` is stored
times that, and the Gemm that reads it loses its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from .model_files import set_metadata
from .quant_types import ONNX_TYPE_TO_NP_TYPE, type_name

METADATA_KEY = "sardonyx.quantization"
VERSION = 1
_LONGEST = 16  # numbers of a list that metadata holds; longer ones are found in the model's own initialisers


@dataclass
class TensorPlan:
    """How one tensor is stored. `scale` and `zero_point` are arrays: of shape [], [channels] or that of blocks."""

    role: str  # "activation", "weight" or "bias"
    type: int = TensorProto.UNDEFINED
    scale: Any = None
    zero_point: Any = None
    axis: int | None = None
    block: int = 0
    shares: Any = None  # (tensor, node that reads it)
    convert: Any = None  # a TensorPlan
    convert_nodes: set | None = None
    # Of a bias: the node whose sums it is added to, and where its scale comes from.
    node: str = ""
    input: str = ""
    weight: str = ""
    beta: float = 1.0

    def for_consumer(self, node: str) -> TensorPlan:
        """The one that a node reads, where some read a converted type."""
        if self.convert is None or (self.convert_nodes is not None and node not in self.convert_nodes):
            return self
        return self.convert

    def to_dict(self, longest: int | None = None) -> dict:
        data: dict = {"role": self.role, "type": type_name(self.type)}
        for name in ("scale", "zero_point"):
            value = getattr(self, name)
            if value is not None and (longest is None or value.size <= longest):
                data[name] = value.astype(np.float64 if name == "scale" else np.int64).tolist()
        if self.scale is not None:
            data["float_type"] = str(self.scale.dtype)
        for name, plain in (("axis", None), ("block", 0), ("node", ""), ("input", ""), ("weight", ""), ("beta", 1.0)):
            if getattr(self, name) != plain:
                data[name] = getattr(self, name)
        if self.shares:
            data["shares"] = list(self.shares)
        if self.convert:
            data["convert"] = self.convert.to_dict(longest)
        if self.convert_nodes is not None:
            data["convert_nodes"] = sorted(self.convert_nodes)
        return data

    @classmethod
    def from_dict(cls, data: dict) -> TensorPlan:
        data = dict(data)
        kind = TensorProto.DataType.Value(data.pop("type"))
        float_type = data.pop("float_type", "float32")
        if "scale" in data:
            data["scale"] = np.array(data["scale"], float_type)
        if "zero_point" in data:
            data["zero_point"] = np.array(data["zero_point"]).astype(ONNX_TYPE_TO_NP_TYPE.get(kind, np.dtype("int32")))
        if "shares" in data:
            data["shares"] = tuple(data["shares"])
        if "convert" in data:
            data["convert"] = cls.from_dict(data["convert"])
        if "convert_nodes" in data:
            data["convert_nodes"] = set(data["convert_nodes"])
        return cls(type=kind, **data)


@dataclass
class NodePlan:
    """What a node computes in: a type's name, "float", or "removed" where its input's range does its work."""

    precision: str
    reason: str = ""

    def to_dict(self) -> dict:
        return {"precision": self.precision, **({"reason": self.reason} if self.reason else {})}


@dataclass
class Plan:
    format: str = "QDQ"  # "QDQ", "QOperator" or "dynamic"
    tensors: dict[str, TensorPlan] = field(default_factory=dict)
    nodes: dict[str, NodePlan] = field(default_factory=dict)
    settings: dict = field(default_factory=dict)

    def to_dict(self, longest: int | None = None) -> dict:
        return {
            "version": VERSION,
            "format": self.format,
            "settings": self.settings,
            "tensors": {name: tensor.to_dict(longest) for name, tensor in self.tensors.items()},
            "nodes": {name: node.to_dict() for name, node in self.nodes.items()},
        }

    @classmethod
    def from_dict(cls, data: dict) -> Plan:
        if data.get("version") != VERSION:
            raise ValueError(f"a plan of version {data.get('version')} can't be read; this is version {VERSION}")
        return cls(
            data["format"],
            {name: TensorPlan.from_dict(tensor) for name, tensor in data["tensors"].items()},
            {name: NodePlan(**node) for name, node in data["nodes"].items()},
            data.get("settings", {}),
        )

    def save(self, path) -> None:
        Path(path).write_text(json.dumps(self.to_dict(), indent=1))

    @classmethod
    def load(cls, path) -> Plan:
        return cls.from_dict(json.loads(Path(path).read_text()))

    @classmethod
    def of_model(cls, model: ModelProto) -> Plan | None:
        """The plan that a quantised model keeps, with the numbers that its initialisers hold; None where it has none."""
        text = next((entry.value for entry in model.metadata_props if entry.key == METADATA_KEY), None)
        if text is None:
            return None
        plan = cls.from_dict(json.loads(text))
        weights = {tensor.name: tensor for tensor in model.graph.initializer}
        for name, tensor in plan.tensors.items():
            for part, suffix in (("scale", "_scale"), ("zero_point", "_zero_point")):
                held = weights.get((name + "_quantized" if tensor.role == "bias" else name) + suffix)
                if getattr(tensor, part) is None and held is not None and tensor.role in ("weight", "bias"):
                    setattr(tensor, part, onnx.numpy_helper.to_array(held))
        return plan

    def write_metadata(self, model: ModelProto) -> None:
        """Keeps the plan in a model. Long lists of numbers are left out: the model's initialisers hold them."""
        set_metadata(model, METADATA_KEY, json.dumps(self.to_dict(_LONGEST), separators=(",", ":")))
