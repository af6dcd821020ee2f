"""Conversions between element types, the small ones included.

A type that onnxruntime's binding can't take never crosses a step: those nodes go there and back.
"""

import numpy as np
from onnx import TensorProto, helper

from references import EPSILON

PLAIN = [
    getattr(TensorProto, name)
    for name in "FLOAT DOUBLE FLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()
]
SINCE = {
    "BFLOAT16": 13,
    "FLOAT8E4M3FN": 19,
    "FLOAT8E5M2": 19,
    "FLOAT8E4M3FNUZ": 19,
    "FLOAT8E5M2FNUZ": 19,
    "INT4": 21,
    "UINT4": 21,
    "FLOAT4E2M1": 23,
}
RANGE = {"INT4": (-8, 7), "UINT4": (0, 15)}


def fits(to):
    """Whether numbers survive becoming an integer: anything else is up to the implementation."""
    dtype = helper.tensor_dtype_to_np_dtype(to)
    if dtype.kind not in "iu":
        return None
    info = np.iinfo(dtype)

    def valid(x, *_):
        if x.dtype not in EPSILON:
            return True
        y = np.trunc(x.astype(np.float64))
        return bool(np.isfinite(y).all() and (y >= info.min).all() and (y < float(info.max)).all())

    return valid


def cast(g):
    x, to = g.value(), g.pick(PLAIN)
    g.emit("Cast", [x], to=to, valid=fits(to), saturate=g.pick([None, 0, 1]))


def cast_like(g):
    x, to = g.value(), g.pick(PLAIN)
    like = g.new(helper.tensor_dtype_to_np_dtype(to), g.shape())
    g.emit("CastLike", [x, like], valid=fits(to))


def there_and_back(g):
    name = g.pick([n for n, since in SINCE.items() if since <= g.opset])
    through = getattr(TensorProto, name)
    if name in RANGE:
        low, high = RANGE[name]
        x = g.new(g.pick([np.float32, np.int32, np.int8 if low else np.uint8]), g.shape(), low=low, high=high)
    else:
        # Of doubles both references round twice on the way to bfloat16.
        x = g.value(g.pick([np.float32, np.float32, np.float16, np.float64 if name != "BFLOAT16" else np.float32]))
    g.count += 2
    narrow, back = f"v{g.count - 1}", f"v{g.count}"
    saturate = {"saturate": g.int(0, 1)} if "FLOAT8" in name and g.maybe() else {}
    to = g.pick(
        [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.FLOAT]
        if name not in RANGE
        else [TensorProto.FLOAT, TensorProto.INT8 if low else TensorProto.UINT8]
    )

    def valid(array):
        y = array.astype(np.float64)
        if name in RANGE:
            return bool((y >= low).all() and (y <= high).all())
        # What becomes of nan and inf in a type that lacks one of them hangs on the conversion.
        return bool(np.isfinite(y).all() and (not saturate or saturate["saturate"] or (np.abs(y) < 400).all()))

    nodes = [
        helper.make_node("Cast", [x.name], [narrow], to=through, **saturate),
        helper.make_node("Cast", [narrow], [back], to=to),
    ]
    g.add(nodes, valid, [back])


OPERATORS = [cast, cast, cast, cast_like, there_and_back]
