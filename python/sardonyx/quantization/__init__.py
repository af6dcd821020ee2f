"""Quantisation of ONNX models, by the names of onnxruntime's tools.

    from sardonyx.quantization import quantize_static, quantize_dynamic
    quantize_static("model.onnx", "model.int8.onnx", samples)
"""

try:
    import onnx  # noqa: F401
except ImportError as error:
    raise ImportError("sardonyx.quantization needs the package onnx: pip install onnx") from error

from .calibrate import (
    CalibraterBase,
    CalibrationDataReader,
    CalibrationMethod,
    MinMaxCalibrater,
    TensorData,
    TensorsData,
    create_calibrator,
    load_tensors_data,
    save_tensors_data,
)
from .qdq_quantizer import QDQQuantizer
from .quant_types import QuantFormat, QuantizationMode, QuantType
from .quant_utils import write_calibration_table
from .quantize import (
    DynamicQuantConfig,
    StaticQuantConfig,
    get_qdq_config,
    quantize,
    quantize_dynamic,
    quantize_static,
)
from .shape_inference import quant_pre_process

__all__ = [
    "CalibraterBase", "CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "MinMaxCalibrater",
    "QDQQuantizer", "QuantFormat", "QuantType", "QuantizationMode", "StaticQuantConfig", "TensorData", "TensorsData",
    "create_calibrator", "get_qdq_config", "load_tensors_data", "quant_pre_process", "quantize", "quantize_dynamic",
    "quantize_static", "save_tensors_data", "write_calibration_table",
]  # fmt: skip
