"""Operators of ai.onnx.preview."""

import numpy as np
from onnx import TensorProto, helper

from references import HALF

from .control import Body, info

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
KINDS = {F32: TensorProto.FLOAT, F64: TensorProto.DOUBLE}


def constant(body, value, dtype):
    tensor = helper.make_tensor("t", KINDS[dtype], [], [value])
    return body.node("Constant", [], value=tensor)


def changed(g, tag, dtype, probabilities):
    """A body that changes scores, or probabilities."""
    body = Body(g, tag)
    x = value = body.name()
    how = g.pick((["times"] if probabilities else ["bound", "times", "chain"]) + ["mask"] * (g.opset >= 14))
    if how == "bound":
        limit = constant(body, 5.0, dtype)
        value = body.node("Mul", [body.node("Tanh", [body.node("Div", [x, limit])]), limit])
    elif how == "times":
        value = body.node("Mul", [x, constant(body, g.pick([0.5, 2.0, -1.0]), dtype)])
    elif how == "mask":
        # By position alone: scores that cancel out are 0 or nearly so.
        ones = body.node("ConstantOfShape", [body.node("Shape", [x])], value=helper.make_tensor("one", TensorProto.BOOL, [1], [1]))
        outside = constant(body, 0.0 if probabilities else -1e4, dtype)
        kept = body.node("Trilu", [ones], upper=0)
        value = body.node("Where", [kept, x, outside])
    else:
        value = body.chain(x, [x])
    return helper.make_graph(body.nodes, tag, [helper.make_tensor_value_info(x, KINDS[dtype], [None] * 4)], [info(value, shape=[None] * 4, dtype=KINDS[dtype])])


def flex_attention(g):
    dtype = g.pick([F32, F32, F32, F64, HALF])
    batch, kv, length, keys, size, depth = g.int(1, 3), g.int(1, 3), g.int(1, 7), g.int(1, 9), g.int(1, 9), g.int(1, 9)
    if g.maybe(0.03):
        batch, length = g.pick([(0, length), (batch, 0)])
    heads = kv * g.pick([1, 1, 2, 3])
    q = g.value(dtype, shape=(batch, heads, length, size), reuse=0.5)
    k = g.value(dtype, shape=(batch, kv, keys, size), reuse=0.5)
    v = g.value(dtype, shape=(batch, kv, keys, depth), reuse=0.5)
    within = F64 if dtype == F64 else F32
    precision = g.pick([None, None, TensorProto.FLOAT, TensorProto.DOUBLE])
    if precision is not None:
        within = F64 if precision == TensorProto.DOUBLE else F32
    attributes = {name: changed(g, name[0], within, name == "prob_mod") for name in ("score_mod", "prob_mod") if g.maybe(0.4)}

    def valid(*arrays):
        """And no heads that onnx.reference's numpy would broadcast."""
        q, k, v = arrays
        return all(bool((np.abs(a.astype(float)) < 50).all()) for a in arrays) and k.shape[1] == v.shape[1] and q.shape[1] % max(k.shape[1], 1) == 0 and k.shape[2] > 0

    g.emit("FlexAttention", [q, k, v], domain="ai.onnx.preview", scale=g.pick([None, 0.3, 1.0]), softmax_precision=precision, valid=valid, **attributes)


OPERATORS = [flex_attention]
