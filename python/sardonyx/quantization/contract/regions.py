"""What is given back to float together, and the int8 model in which some nodes stay float."""

from __future__ import annotations

from dataclasses import dataclass

from ..bias_correction import correct_biases
from ..calibrate import CalibrationMethod, create_calibrator
from ..graph_index import GraphIndex
from ..model_files import copy_of, name_nodes, update_opset_version
from ..observe import SessionObserver
from ..qdq_quantizer import QDQQuantizer
from ..quant_types import QuantType
from ..quantize import _finish, _prepare
from ..registry import QDQRegistry, QLinearOpsRegistry
from ..shape_inference import quant_pre_process
from .consumer_error import consumer_errors
from .masks import mask_nodes

PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
_ELEMENTWISE = {"Add", "Sub", "Mul", "Div", "Where"}


@dataclass
class Region:
    """Tensors, and the nodes that must be float for them to be so. Tensors that share a scale count as one."""

    tensors: list
    nodes: frozenset
    error: float  # the largest of their worst consumers, as a share of variance

    def text(self) -> str:
        return " and ".join(f"'{name}'" for name in self.tensors)


class Int8Quantization:
    """A model and the ranges of its tensors: makes the int8 model that leaves given nodes in float.

    :param samples: a list of feeds.
    :param keep_float: names or patterns of nodes.
    :param rules: whether nodes of masks stay float, too.
    :param calibration: how ranges follow from what samples show.
    :param correct: whether biases take back what rounding shifts.
    :param options: extra options of the quantiser.
    """

    def __init__(
        self, model, samples, keep_float=None, rules=True, calibration=CalibrationMethod.MinMax, correct=False, options=None
    ):  # fmt: skip
        self.model, self.op_types, _, kept = _prepare(
            quant_pre_process(model), None, set(QDQRegistry) | set(QLinearOpsRegistry), None, keep_float
        )
        self.model = update_opset_version(self.model, QuantType.QInt8, QuantType.QUInt8, channels=True)
        name_nodes(self.model)  # those that a conversion of the opset brings
        self.samples = samples
        self.index = GraphIndex(self.model.graph)
        self.masks = mask_nodes(self.model.graph)
        self.fixed = {**(self.masks if rules else {}), **dict.fromkeys(kept, "keep_float")}
        self.correct = correct
        self.options = dict(options or {})
        calibrater = create_calibrator(self.model, self.op_types, calibrate_method=calibration)
        names, _ = calibrater.select_tensors_to_calibrate(calibrater.model)
        calibrater.infer_session = SessionObserver(
            calibrater.model, [name for name in names if not self._is_inside(name)], calibrater.bits
        )
        calibrater.collect_data(iter(samples))
        self.ranges = calibrater.compute_data()

    def _is_inside(self, name) -> bool:
        """Whether only nodes that stay float make and read a value, which may be infinite then."""
        maker = self.index.producers.get(name)
        touching = [*self.index.readers.get(name, []), *([maker] if maker is not None else [])]
        return bool(touching) and all(node.name in self.fixed for node in touching)

    def quantized(self, floats):
        """(model, plan) with the nodes of {node: reason} in float."""
        model, plan = self._rounded(self.model, floats)
        if self.correct:
            return self._rounded(correct_biases(self.model, model, self.samples), floats)
        return model, plan

    def _rounded(self, model, floats):
        quantizer = QDQQuantizer(
            copy_of(model), True, False, QuantType.QInt8, QuantType.QUInt8, self.ranges, [], sorted(floats),
            self.op_types, self.options,
        )  # fmt: skip
        quantizer.quantize_model()
        for name, reason in floats.items():
            if name in quantizer.plan.nodes:
                quantizer.plan.nodes[name].reason = reason
        return _finish(quantizer, None, False), quantizer.plan

    def regions(self, plan, errors=None) -> list[Region]:
        """All that could go back to float, the worst first."""
        if errors is None:
            errors = consumer_errors(self.model, plan, self.samples, self.masks)
        groups: dict[str, list] = {}
        for name, tensor in plan.tensors.items():
            if tensor.role in ("activation", "weight"):
                root, seen = name, set()
                while plan.tensors[root].shares and plan.tensors[root].shares[0] in plan.tensors and root not in seen:
                    seen.add(root)
                    root = plan.tensors[root].shares[0]
                groups.setdefault(root, []).append(name)
        found: dict[frozenset, Region] = {}
        for members in groups.values():
            touching = [self.index.producers[name] for name in members if name in self.index.producers]
            touching += [node for name in members for node in self.index.readers.get(name, [])]
            weights = [name for name in members if plan.tensors[name].role == "weight"]
            touching += [maker for name in weights for maker in self._feeders(name)]
            decided = {node.name: plan.nodes.get(node.name) for node in touching}
            nodes = frozenset(name for name, each in decided.items() if each is not None and each.precision != "float")
            worst = max(members, key=lambda name: errors.get(name, 0.0))
            if nodes:
                region = found.setdefault(nodes, Region([], nodes, 0.0))
                region.tensors.append(worst)
                region.error = max(region.error, errors.get(worst, 0.0))
        return sorted(found.values(), key=lambda region: -region.error)

    def _feeders(self, weight):
        """Makers of what only a product of this weight reads, which in 8 bits are of no use to a float product."""
        for node in self.index.readers.get(weight, []):
            for name in node.input:
                maker = self.index.producers.get(name)
                if maker is not None and maker.op_type in _ELEMENTWISE and len(self.index.readers[name]) == 1:
                    yield maker
