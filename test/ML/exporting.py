"""Models of libraries as ONNX, and sessions of them."""

import numpy as np
import onnx
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

import sardonyx as sdx

_make_attribute = onnx.helper.make_attribute


def _plain(value):
    """The same without numpy's numbers, and without booleans among integers."""
    if not isinstance(value, (list, np.ndarray)):
        return value
    items = [v.item() if isinstance(v, np.generic) else v for v in value]
    return [int(v) if isinstance(v, bool) else v for v in items]


def _make_plain_attribute(key, value, *args, **kwargs):
    """skl2onnx 1.20 hands on numbers that onnx 1.23 no longer takes for integers."""
    return _make_attribute(key, _plain(value), *args, **kwargs)


onnx.helper.make_attribute = _make_plain_attribute
OPSETS = {"": 21, "ai.onnx.ml": 3}


def types_of(x):
    kinds = {np.dtype(object): StringTensorType, np.dtype(np.int64): Int64TensorType, np.dtype(np.float64): DoubleTensorType}
    kind = kinds.get(x.dtype, FloatTensorType)
    return [("X", kind([None, *x.shape[1:]]))]


def export(estimator, x, **options):
    """`options` are those of the converter of this estimator."""
    chosen = {id(estimator): options} if options else None
    return to_onnx(estimator, initial_types=types_of(x), target_opset=OPSETS, options=chosen)


def load(model):
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    return sdx.InferenceSession(model.SerializeToString(), options)


def run(session, x):
    return session.run(None, {session.get_inputs()[0].name: x})
