"""Configurations of weights of few bits, one class a method."""

from __future__ import annotations

from .quant_types import QuantFormat

_BITS = (2, 3, 4, 5, 6, 7, 8)


class WeightOnlyQuantConfig:
    """What all methods have.

    :param algorithm: the method's name.
    :param quant_format: QOperator writes com.microsoft's MatMulNBits, QDQ a DequantizeLinear before the MatMul.
    :param op_types_to_quantize: MatMul, Gather.
    :param quant_axes: ((operator, axis of its blocks), …): MatMul 0, Gather 1.
    :param customized_weight_config: {node: {bits, group_size, scheme}} for single nodes.
    """

    def __init__(
        self, algorithm, quant_format=QuantFormat.QOperator, op_types_to_quantize=None, quant_axes=None,
        customized_weight_config=None,
    ):  # fmt: skip
        self.algorithm = algorithm
        self.quant_format = QuantFormat.from_string(quant_format)
        self.op_types_to_quantize = set(op_types_to_quantize) if op_types_to_quantize else {"MatMul"}
        self.quant_axes = dict(quant_axes) if quant_axes else {"MatMul": 0, "Gather": 1}
        self.customized_weight_config = customized_weight_config

    def _check_bits(self, bits):
        if bits not in _BITS:
            raise ValueError(f"weights have 2 to 8 bits, unlike {bits}")

    def _only_operators(self, quant_format):
        if QuantFormat.from_string(quant_format) is not QuantFormat.QOperator:
            raise ValueError(f"{self.algorithm} is for quant_format=QuantFormat.QOperator only")


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounds to the nearest number.

    :param block_size: numbers that share a scale.
    :param accuracy_level: MatMulNBits' attribute: 4 lets its input be of bytes.
    :param channel_wised_quantize: one block for a whole column (QDQ).
    """

    def __init__(
        self, block_size=128, is_symmetric=False, accuracy_level=None, quant_format=QuantFormat.QOperator,
        op_types_to_quantize=None, quant_axes=None, bits=4, channel_wised_quantize=False,
    ):  # fmt: skip
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        self._check_bits(bits)
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.bits = bits
        self.accuracy_level = accuracy_level
        self.channel_wised_quantize = channel_wised_quantize
        if channel_wised_quantize and self.quant_format is QuantFormat.QOperator:
            raise NotImplementedError("'channel_wised_quantize' is for quant_format=QuantFormat.QDQ only")


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounds to the nearest number. `ratios` is {weight: share of the range that is kept}."""

    def __init__(
        self, ratios=None, quant_format=QuantFormat.QOperator, op_types_to_quantize=None, customized_weight_config=None
    ):
        super().__init__("RTN", quant_format, op_types_to_quantize, None, customized_weight_config)
        self._only_operators(quant_format)
        self.ratios = ratios or {}


class KQuantWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Searches for scales, and solves for scale and zero point, as llama.cpp's k-quants do.

    With `calibration_data_reader` errors count by E[x²] of the products' inputs.
    """

    def __init__(
        self, ratios=None, quant_format=QuantFormat.QOperator, op_types_to_quantize=None,
        customized_weight_config=None, calibration_data_reader=None,
    ):  # fmt: skip
        super().__init__("k_quant", quant_format, op_types_to_quantize, None, customized_weight_config)
        self._only_operators(quant_format)
        self.ratios = ratios or {}
        self.calibration_data_reader = calibration_data_reader


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Lets later numbers make up for the errors of earlier ones; see `nbits/gptq.py`.

    :param percdamp: what is added to the diagonal of G, as a share of its mean.
    :param actorder: go through inputs from the largest to the smallest.
    :param mse: narrow ranges where that makes squared errors less.
    :param perchannel: taken and not needed: blocks are of a column anyway.
    """

    def __init__(
        self, calibration_data_reader=None, percdamp=0.01, block_size=128, actorder=False, mse=False, perchannel=True,
        quant_format=QuantFormat.QOperator, op_types_to_quantize=None,
    ):  # fmt: skip
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        self._only_operators(quant_format)
        self.calibration_data_reader = calibration_data_reader
        self.percdamp = percdamp
        self.block_size = block_size
        self.actorder = actorder
        self.mse = mse
        self.perchannel = perchannel


class AWQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Makes weights with large inputs larger before they are rounded, and narrows ranges; see `nbits/awq.py`."""

    def __init__(self, calibration_data_reader=None, clip=True, op_types_to_quantize=None):
        super().__init__("AWQ", QuantFormat.QOperator, op_types_to_quantize)
        self.calibration_data_reader = calibration_data_reader
        self.clip = clip


class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Searches for zero points, as floats, without samples; see `nbits/search.py`."""

    def __init__(
        self, block_size=128, bits=4, axis=1, quant_format=QuantFormat.QOperator, op_types_to_quantize=None,
        quant_axes=None,
    ):  # fmt: skip
        super().__init__("HQQ", quant_format, op_types_to_quantize, quant_axes)
        self._only_operators(quant_format)
        self._check_bits(bits)
        self.block_size = block_size
        self.bits = bits
        self.axis = axis


class NVAWQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """onnxruntime's way to NVIDIA's modelopt, which is refused here: see AWQWeightOnlyQuantConfig."""

    def __init__(self, *arguments, **keywords):
        raise NotImplementedError(
            "NVAWQWeightOnlyQuantConfig needs NVIDIA's modelopt; AWQWeightOnlyQuantConfig(calibration_data_reader) is "
            "the method in Sardonyx' own code"
        )
