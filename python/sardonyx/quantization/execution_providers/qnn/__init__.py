"""Configurations and preprocessing for Qualcomm's QNN."""

from .preprocess import qnn_preprocess_model
from .quant_config import get_qnn_qdq_config

__all__ = ["get_qnn_qdq_config", "qnn_preprocess_model"]
