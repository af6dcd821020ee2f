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
from .contract import Refused, Result
from .plan import Plan
from .pruning import prune
from .qdq_quantizer import QDQQuantizer
from .quant_types import QuantFormat, QuantizationMode, QuantType
from .quant_utils import write_calibration_table
from .quantize import (
    DynamicQuantConfig,
    StaticQuantConfig,
    apply_plan,
    get_qdq_config,
    quantize,
    quantize_dynamic,
    quantize_static,
)
from .shape_inference import quant_pre_process


def as_onnxruntime() -> None:
    """Has `import onnxruntime`, and all of its modules of quantisation, give Sardonyx' in this process.

    It is `sardonyx.install_as_onnxruntime` for scripts that import nothing else before; where onnxruntime itself is
    loaded already it raises a RuntimeError.
    """
    import sys

    import sardonyx

    known = sys.modules.get("onnxruntime")
    if known is not None and known is not sardonyx and getattr(known, "__author__", "") != "Sardonyx":
        raise RuntimeError("onnxruntime is loaded in this process; call as_onnxruntime() before anything imports it")
    sardonyx.install_as_onnxruntime()


__all__ = [
    "CalibraterBase", "CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "MinMaxCalibrater",
    "Plan", "QDQQuantizer", "QuantFormat", "QuantType", "QuantizationMode", "Refused", "Result", "StaticQuantConfig", "TensorData", "TensorsData",
    "apply_plan", "as_onnxruntime", "create_calibrator", "get_qdq_config", "load_tensors_data", "prune", "quant_pre_process", "quantize", "quantize_dynamic",
    "quantize_static", "save_tensors_data", "write_calibration_table",
]  # fmt: skip
