"""Chains of operators on small tensors of integers, mostly constants, from which shapes, pads, axes, positions and
conditions are made, as exporters write them."""

import numpy as np
from onnx import TensorProto, helper

from operators.shapes import regroup
from references import Refused

LARGEST = 200  # elements of a chain's values
ARITHMETIC = ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Pow"]


def constant(g, numbers, dtype=np.int64):
    """Nearly always an initialiser; an input where something of the chain is to be unknown."""
    return g.hold(np.array(numbers, dtype), 0.95, keep=True)


def flat(g, value):
    return g.emit("Reshape", [value, constant(g, [-1])])[0] if value.rank != 1 else value


def start(g):
    if g.maybe(0.3):
        (sizes,) = g.emit("Shape", [g.value(low=1, high=4)])
        return sizes
    shape = [g.int(1, 4) for _ in range(g.int(1, 3))]
    return constant(g, g.rng.integers(-6, 9, shape))


def within(g, value, low, high):
    """As many numbers, from `low` to `high`."""
    (left,) = g.emit("Mod", [value, constant(g, high - low + 1, value.dtype)])
    return g.emit("Add", [left, constant(g, low, value.dtype)])[0] if low else left


def arithmetic(g, v):
    op = g.pick(ARITHMETIC)
    other = constant(g, g.rng.integers(-4, 5, g.broadcast(v.shape)), v.dtype)
    if op == "Pow":
        other = constant(g, g.int(0, 2), v.dtype)
    if op in ("Div", "Mod") and not np.all(other.array):
        raise Refused("by zero")
    (result,) = g.emit(op, [v, other])
    return within(g, result, -9, 9) if np.abs(result.array).max(initial=0) > 1000 else result


def unary(g, v):
    op = g.pick(["Neg", "Abs", "Sign", "Cast", "Identity"])
    if op != "Cast":
        return g.emit(op, [v])[0]
    kind = TensorProto.INT32 if v.dtype == np.int64 else TensorProto.INT64
    return g.emit("Cast", [v], to=kind)[0]


def through_floats(g, v):
    """Sizes by scales, as Upsample's exports have them."""
    (x,) = g.emit("Cast", [v], to=TensorProto.FLOAT)
    (y,) = g.emit("Mul", [x, constant(g, g.pick([0.5, 2.0, 1.5]), np.float32)])
    (z,) = g.emit(g.pick(["Floor", "Ceil"]), [y])
    return g.emit("Cast", [z], to=TensorProto.INT64)[0]


def sliced(g, v):
    axis = g.int(0, v.rank - 1)
    step = g.pick([1, 1, 2, -1, -1, -2])
    begin, end = (0, 2**31) if step > 0 else (-1, -(2**31))
    if g.maybe():
        begin = g.int(0, v.shape[axis] - 1)
    parts = [constant(g, [n]) for n in (begin, end, axis, step)]
    return g.emit("Slice", [v, *parts])[0]


def moved(g, v):
    op = g.pick(["Transpose", "Reshape", "Concat", "Tile", "Unsqueeze", "Flatten", "Trilu", "Expand", "Pad"])
    if op == "Reshape":
        return g.emit(op, [v, constant(g, regroup(g, v.shape))])[0]
    if op == "Concat":
        return g.emit(op, [v, v], axis=g.int(0, v.rank - 1))[0]
    if op == "Tile":
        return g.emit(op, [v, constant(g, [g.int(1, 2) for _ in v.shape])])[0]
    if op == "Unsqueeze":
        return g.emit(op, [v, constant(g, [g.int(0, v.rank)])])[0]
    if op == "Expand":
        return g.emit(op, [v, constant(g, [g.int(1, 2), *v.shape])])[0]
    if op == "Pad":
        return g.emit(op, [v, constant(g, [g.int(0, 1) for _ in range(2 * v.rank)])])[0]
    if op == "Flatten":
        return g.emit(op, [v], axis=g.int(0, v.rank))[0]
    perm = [int(i) for i in g.rng.permutation(v.rank)] if g.maybe(0.7) else None
    return g.emit(op, [v], perm=perm, upper=g.int(0, 1))[0]


def gathered(g, v):
    axis = g.int(0, v.rank - 1)
    if g.maybe():
        indices = g.rng.integers(-v.shape[axis], v.shape[axis], [g.int(1, 4)])
        return g.emit("Gather", [v, constant(g, indices)], axis=axis)[0]
    indices = g.rng.integers(0, v.shape[axis], v.shape)
    return g.emit("GatherElements", [v, constant(g, indices)], axis=axis)[0]


def scattered(g, v):
    places = [g.int(0, v.shape[0] - 1)]
    if g.maybe():
        updates = constant(g, g.rng.integers(-3, 9, (1, *v.shape[1:])), v.dtype)
        return g.emit("ScatterND", [v, constant(g, [places]), updates])[0]
    shape = (1, *v.shape[1:])
    updates = constant(g, g.rng.integers(-3, 9, shape), v.dtype)
    return g.emit("ScatterElements", [v, constant(g, np.full(shape, places)), updates], axis=0)[0]


def chosen(g, v):
    (where,) = g.emit(g.pick(["Greater", "Less", "Equal"]), [v, constant(g, g.int(-2, 3), v.dtype)])
    if g.maybe(0.2):
        where = g.emit("Not", [where])[0]
    if g.maybe(0.2):
        return g.emit("Cast", [where], to=TensorProto.INT64)[0]
    return g.emit("Where", [where, v, constant(g, g.int(-2, 3), v.dtype)])[0]


def reduced(g, v):
    op = g.pick(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "CumSum", "ArgMax", "ArgMin"])
    axis = g.int(0, v.rank - 1)
    if op == "CumSum":
        return g.emit(op, [v, constant(g, axis)], exclusive=g.int(0, 1), reverse=g.int(0, 1))[0]
    if op.startswith("Arg"):
        return g.emit(op, [v], axis=axis, keepdims=g.int(0, 1))[0]
    by_input = g.inputs_of(op) > 1
    inputs = [v, constant(g, [axis])] if by_input else [v]
    return g.emit(op, inputs, axes=None if by_input else [axis], keepdims=1)[0]


STEPS = [arithmetic, arithmetic, unary, through_floats, sliced, sliced, moved, moved, gathered, scattered, chosen, reduced]


def chain(g):
    """A list of integers at the end of it."""
    v = start(g)
    for _ in range(g.int(1, 6)):
        if v.rank == 0 or v.array.size == 0 or v.array.size > LARGEST:
            break
        v = g.pick(STEPS)(g, v)
    if not 0 < v.array.size <= LARGEST:
        raise Refused("too much, or nothing")
    if v.dtype != np.int64:
        (v,) = g.emit("Cast", [v], to=TensorProto.INT64)
    return flat(g, v)


def numbers(g, count, low, high):
    """So many from a chain."""
    v = chain(g)
    (some,) = g.emit("Gather", [v, constant(g, g.rng.integers(0, v.array.size, count))], axis=0)
    return within(g, some, low, high)


def filled(g):
    g.emit("ConstantOfShape", [numbers(g, g.int(1, 3), 1, 4)])


def tiled(g):
    x = g.value(low=1, high=3, test=lambda v: v.array.size < 500)
    g.emit("Tile", [x, numbers(g, x.rank, 1, 2)])


def padded(g):
    x = g.value(np.float32, low=1, high=4)
    g.emit("Pad", [x, numbers(g, 2 * x.rank, 0, 3)])


def cut(g):
    x = g.value(low=1, high=4)
    axis = constant(g, [g.int(0, x.rank - 1)])
    g.emit("Slice", [x, numbers(g, 1, 0, 2), numbers(g, 1, 3, 7), axis])


def turned(g):
    x = g.value(low=1, high=3)
    g.emit("Unsqueeze", [x, numbers(g, 1, 0, x.rank)])


def expanded(g):
    x = g.value(low=1, high=3, test=lambda v: v.array.size < 500)
    (shape,) = g.emit("Shape", [x])
    (target,) = g.emit("Concat", [numbers(g, 1, 1, 3), shape], axis=0)
    g.emit("Expand", [x, target])


def branched(g):
    """Of two ranks, which one is said by a condition at the end of a chain."""
    x = g.value(np.float32, low=1, high=3, test=lambda v: v.rank != 1)
    (c,) = g.emit(g.pick(["Equal", "Greater"]), [numbers(g, 1, 0, 2), constant(g, [1])])
    g.count += 2
    names = [f"v{g.count - 1}", f"v{g.count}"]
    rest = helper.make_tensor("rest", TensorProto.INT64, [1], [-1])
    graphs = [
        helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)], consts)
        for name, nodes, consts in (
            (names[0], [helper.make_node("Reshape", [x.name, "rest"], [names[0]])], [rest]),
            (names[1], [helper.make_node("Neg", [x.name], [names[1]])], []),
        )
    ]
    (q,) = g.emit("If", [c], then_branch=graphs[0], else_branch=graphs[1])
    (r,) = g.emit(g.pick(["Relu", "Abs", "Floor"]), [q])
    if g.maybe(0.7):
        g.emit("Reshape", [r, constant(g, [-1])])


OPERATORS = [filled, tiled, padded, cut, turned, expanded, branched]
