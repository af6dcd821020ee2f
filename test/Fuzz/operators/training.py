"""Losses, optimisers, and operators of chance where chance has no choice."""

import numpy as np
from onnx import TensorProto, helper

from references import Refused

TRAINING = "ai.onnx.preview.training"
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def likelihood(g):
    x_type = g.pick([F32, F32, F64, np.dtype(np.float16)])
    batch, classes, rest = g.int(1, 5), g.int(1, 7), g.shape(g.int(0, 2))
    if np.prod([batch, classes, *rest], dtype=float) > 20000:
        raise Refused("large")
    x = g.new(x_type, (batch, classes, *rest))
    labels = g.rng.integers(0, classes, (batch, *rest))
    ignore = g.pick([None, 0, -1, 2])
    if ignore == -1:
        labels[g.rng.random(labels.shape) < 0.3] = -1
    at = g.hold(labels.astype(g.pick([np.int64, np.int32])), 0.2, keep=True)
    weight = g.new(x_type, (classes,), low=0.1, high=2) if g.maybe() else None
    op = g.pick(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    reduction = g.pick([None, "none", "sum", "mean"])
    outputs = [True, g.maybe()] if op.startswith("Soft") else 1

    def valid(x, labels, *_):
        """A mean over nothing is none."""
        return x.size > 0 and bool((labels != (ignore if ignore is not None else labels.min(initial=0) - 1)).any())

    g.emit(op, [x, at, weight], outputs, ignore_index=ignore, reduction=reduction, valid=valid)


def optimise(g):
    op = g.pick(["Momentum", "Adagrad", "Adam"])
    dtype, count = g.pick([F32, F32, F64]), g.int(1, 3)
    shapes = [g.shape(high=3) for _ in range(count)]
    lists = 4 if op == "Adam" else 3
    tensors = [[g.new(dtype, s, low=0.0 if i > 1 else -1.0) for s in shapes] for i in range(lists)]
    rate = g.hold(np.array(0.1, dtype), 0.3)
    step = g.hold(np.array(g.pick([0, 1, 5]), np.int64), 0.3, keep=True)
    more = {"norm_coefficient": g.pick([0.0, 0.01])}
    if op == "Momentum":
        more |= {"alpha": 0.9, "beta": 0.5, "mode": g.pick(["standard", "nesterov"])}
    elif op == "Adagrad":
        more |= {"decay_factor": g.pick([0.0, 0.1]), "epsilon": 1e-5}
    else:
        more |= {"alpha": 0.9, "beta": 0.99, "epsilon": 1e-6, "norm_coefficient_post": g.pick([0.0, 0.01])}
    g.emit(op, [rate, step, *sum(tensors, [])], outputs=(lists - 1) * count, domain=TRAINING, **more)


def sure_numbers(g):
    """Random numbers of a spread that their mean swallows: onnxruntime ends where there is none."""
    kind = g.pick([TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
    op = g.pick(["RandomNormal", "RandomNormalLike"])
    attributes = {"scale": 1e-30, "mean": float(g.pick([-3, -2, -1, 1, 2, 3])), "dtype": kind, "seed": g.pick([None, 7.0])}
    if op == "RandomNormal":
        return g.emit(op, [], shape=list(g.shape(low=1, high=3)), **attributes)
    g.emit(op, [g.value()], **attributes)


def sure_range(g):
    """Numbers from 3 up to 4, rounded down."""
    kind = g.pick([TensorProto.FLOAT, TensorProto.DOUBLE])
    g.count += 2
    number, low = f"v{g.count - 1}", f"v{g.count}"
    attributes = {"low": 3.0, "high": 3.999, "dtype": kind}
    if g.maybe():
        nodes = [helper.make_node("RandomUniformLike", [g.value().name], [number], **attributes)]
    else:
        nodes = [helper.make_node("RandomUniform", [], [number], shape=list(g.shape(low=1, high=3)), **attributes)]
    g.add([*nodes, helper.make_node("Floor", [number], [low])], None, [low])


def sure_draws(g):
    """Of things that are certain."""
    if g.maybe() and g.has("Bernoulli"):
        x = g.hold((g.rng.random(g.shape()) < 0.5).astype(g.pick([F32, F64])), 0, keep=True)
        # Of a constant onnxruntime always makes 1.
        return g.emit("Bernoulli", [x], dtype=g.pick([None, TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT]))
    rows, classes = g.int(1, 4), g.int(1, 5)
    x = np.full((rows, classes), -1e4, np.float32)
    x[np.arange(rows), g.rng.integers(0, classes, rows)] = 0
    g.emit("Multinomial", [g.hold(x, 0.1, keep=True)], sample_size=g.int(1, 5), dtype=g.pick([None, TensorProto.INT64, TensorProto.INT32]))


def sure_dropout(g):
    x = g.value(F32)
    ratio, training = g.hold(np.array(0, np.float32), 0.5, keep=True), g.hold(np.array(g.maybe()), 0.5, keep=True)
    g.emit("Dropout", [x, ratio, training], outputs=[True, g.maybe()])


OPERATORS = [likelihood, likelihood, optimise, optimise, sure_numbers, sure_range, sure_draws, sure_dropout]
