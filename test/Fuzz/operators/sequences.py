"""Sequences and optionals, and control flow that carries them."""

import numpy as np
from onnx import TensorProto, helper

from references import Refused
from values import STRING, Items, Maybe, element_of, type_of

TYPES = [np.dtype(t) for t in "float32 float32 float32 float64 int64 int32 uint8 bool".split()] + [STRING]


def tensor(g, **limits):
    return g.value(g.pick(TYPES), high=3, **limits)


def position(g, count, after=0):
    """Of an item; now and then one that is not there."""
    if g.maybe(0.2):
        return None
    if count + after == 0:
        raise Refused("no item")
    number = g.int(-count, count - 1 + after)
    return g.hold(np.array(number, g.pick([np.int64, np.int64, np.int32])), 0.5, keep=True)


def construct(g):
    x = tensor(g)
    items = [x] + [g.value(x.dtype, rank=x.rank if g.maybe(0.85) else None, high=3) for _ in range(g.int(0, 3))]
    g.emit("SequenceConstruct", items)


def empty(g):
    dtype = g.pick([None, np.float32, np.int64, np.float64, STRING])
    g.emit("SequenceEmpty", [], dtype=None if dtype is None else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def fresh(g):
    """An empty one, and something put into it."""
    dtype = np.dtype(g.pick([np.float32, np.int64, STRING]))
    (s,) = g.emit("SequenceEmpty", [], dtype=helper.np_dtype_to_tensor_dtype(dtype))
    for _ in range(g.int(1, 3)):
        (s,) = g.emit("SequenceInsert", [s, g.value(dtype, high=2)])


def insert(g):
    s = g.listed()
    rank = s.array[0].ndim if len(s.array) and g.maybe(0.9) else None
    g.emit("SequenceInsert", [s, g.value(s.dtype, rank=rank, high=3), position(g, len(s.array), 1)])


def erase(g):
    s = g.listed(test=len)
    g.emit("SequenceErase", [s, position(g, len(s.array))])


def at(g):
    s = g.listed(test=len)
    g.emit("SequenceAt", [s, position(g, len(s.array)) or g.ints(0)])


def length(g):
    g.emit("SequenceLength", [g.listed()])


def split(g):
    x = tensor(g, low=1)
    axis = g.int(-x.rank, x.rank - 1)
    size = x.shape[axis]
    how = g.int(0, 2)
    if how == 0:
        return g.emit("SplitToSequence", [x], axis=axis, keepdims=g.pick([None, 0, 1]))
    if how == 1:
        return g.emit("SplitToSequence", [x, g.ints(g.int(1, max(1, size) + 1))], axis=axis)
    cuts = sorted(g.int(0, size) for _ in range(g.int(0, 3)))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    g.emit("SplitToSequence", [x, g.ints(parts)], axis=axis, keepdims=g.pick([None, 0]))


def concat(g):
    new = g.int(0, 1)

    def fits(items):
        return len(items) and len({i.ndim for i in items}) == 1 and (new or items[0].ndim)

    def fit(items):
        """Items of no elements onnxruntime puts beside others of any size."""
        return len({i.shape for i in items}) == 1 or not new and all(i.size for i in items)

    s = g.listed(test=fits)
    if not fits(s.array):
        raise Refused("scalars")
    rank = s.array[0].ndim + new
    if len({i.shape for i in s.array}) > 1 and g.maybe(0.8):
        x = tensor(g, low=1)
        shape = list(x.shape)
        axis = g.int(0, x.rank - 1)
        items = [x]
        for _ in range(g.int(0, 3)):
            shape[axis] = g.size() if not new else shape[axis]
            items.append(g.value(x.dtype, shape=shape))
        (s,) = g.emit("SequenceConstruct", items)
        return g.emit("ConcatFromSequence", [s], axis=axis - (x.rank + new if g.maybe(0.3) else 0), new_axis=new, valid=fit)
    g.emit("ConcatFromSequence", [s], axis=g.int(-rank, rank - 1), new_axis=new, valid=fit)


def round_trip(g):
    x = tensor(g, low=1)
    axis = g.int(-x.rank, x.rank - 1)
    (s,) = g.emit("SplitToSequence", [x, g.ints(g.int(1, 3))] if g.maybe() else [x], axis=axis)
    g.emit("ConcatFromSequence", [s], axis=axis)


def identity(g):
    g.emit("Identity", [g.listed()])


# ---------------------------------------------------------------- optionals


def either(g):
    return g.listed() if g.maybe(0.4) else tensor(g)


def optional(g):
    """A value as an optional and back, through one step: onnxruntime's binding hands out no optional."""
    x, _ = either(g), g.schema("Optional")
    g.count += 3
    o, has, back = (f"v{g.count - i}" for i in range(3))
    nodes = [helper.make_node("Optional", [x.name], [o]), helper.make_node("OptionalHasElement", [o], [has])]
    nodes.append(helper.make_node("OptionalGetElement", [o], [back]))
    g.add(nodes, None, [has, back])


def nothing(g):
    if g.opset > 26:
        raise Refused("onnx.reference alone, to which nothing is an element")
    g.count += 2
    o, has = f"v{g.count - 1}", f"v{g.count}"
    kind, _ = type_of(either(g).array), g.schema("Optional")
    nodes = [helper.make_node("Optional", [], [o], type=kind), helper.make_node("OptionalHasElement", [o], [has])]
    g.add(nodes, None, [has])


def given(g):
    """An optional that the caller gives, or does not."""
    like = either(g).array
    there = g.maybe(0.6)
    o = g.hold(Maybe(like if there else None, like), 0, keep=True)
    g.emit("OptionalHasElement", [o])
    if there and g.maybe(0.8):
        g.emit("OptionalGetElement", [o])


def of_a_plain_value(g):
    if g.opset < 18:
        raise Refused("optionals only")
    x = either(g)
    g.emit(g.pick(["OptionalHasElement", "OptionalGetElement"]), [x])


# ---------------------------------------------------------------- control flow


def value_info(name, array, rank="same"):
    kind = type_of(array)
    if kind.HasField("tensor_type"):
        return helper.make_tensor_value_info(name, element_of(array), [None] * array.ndim)
    return helper.make_value_info(name, kind)


def names(g, count):
    g.count += count
    return [f"b{g.count - i}" for i in range(count)]


def conditional(g):
    s = g.listed(g.pick([np.float32, np.int64]), test=len)
    if not len(s.array):
        raise Refused("no items")
    x = g.value(s.dtype, rank=s.array[0].ndim)
    out, other, length = names(g, 3)
    grow = helper.make_node("SequenceInsert", [s.name, x.name], [out])
    if g.maybe():
        less = helper.make_node("SequenceErase", [s.name], [other])
    else:
        less = helper.make_node("SequenceConstruct", [x.name] * g.int(1, 2), [other])
    branches = [helper.make_graph([node], "b", [], [value_info(node.output[0], s.array)]) for node in (grow, less)]
    condition = g.hold(np.array(g.maybe()), 0.1)
    g.emit("If", [condition], then_branch=branches[0], else_branch=branches[1])


def loop(g):
    """Puts into a sequence in each round."""
    x = g.value(g.pick([np.float32, np.int64]), high=2, test=lambda v: v.array.size <= 500)
    s = g.hold(Items([g.data(x.dtype, x.shape) for _ in range(g.int(0, 2))], x.dtype), 0)
    like = Items([x.array], x.dtype)
    trip, keep, before, after, item, going = names(g, 6)
    nodes = [helper.make_node("Identity", [keep], [going])]
    how = g.int(0, 2)
    if how == 0:
        nodes.append(helper.make_node("SequenceInsert", [before, x.name], [after]))
    elif how == 1:
        to = helper.np_dtype_to_tensor_dtype(x.dtype)
        nodes.append(helper.make_node("Cast", [trip], [item + "c"], to=to))
        nodes.append(helper.make_node("Add", [x.name, item + "c"], [item]))
        nodes.append(helper.make_node("SequenceInsert", [before, item, trip] if g.maybe() else [before, item], [after]))
    else:
        nodes.append(helper.make_node("SequenceInsert", [before, x.name], [item + "l"]))
        nodes.append(helper.make_node("SequenceInsert", [item + "l", x.name], [item + "m"]))
        nodes.append(helper.make_node("SequenceErase", [item + "m"], [after]))
    scan = g.maybe(0.4)
    outputs = [helper.make_tensor_value_info(going, TensorProto.BOOL, []), value_info(after, like)]
    if scan:
        nodes.append(helper.make_node("SequenceLength", [after], [item + "n"]))
        outputs.append(helper.make_tensor_value_info(item + "n", TensorProto.INT64, []))
    inputs = [helper.make_tensor_value_info(trip, TensorProto.INT64, []), helper.make_tensor_value_info(keep, TensorProto.BOOL, [])]
    body = helper.make_graph(nodes, "body", [*inputs, value_info(before, like)], outputs)
    count = g.hold(np.array(g.int(1 if scan else 0, 4), np.int64), 0.5, keep=True)
    g.emit("Loop", [count, None, s], outputs=1 + scan, body=body)


def mapped(g):
    """SequenceMap over one or two sequences, or a sequence and a tensor."""
    s = g.listed(g.pick([np.float32, np.int64]), test=lambda items: len({i.ndim for i in items}) == 1)
    inputs, body_inputs = [s], names(g, 1)
    infos = [helper.make_tensor_value_info(body_inputs[0], element_of(s.array), [None] * s.array[0].ndim)]
    nodes, out = [], names(g, 1)[0]
    if g.maybe():
        x = g.value(s.dtype, rank=0) if g.maybe() else g.hold(Items([i * 0 + 2 for i in s.array], s.dtype), 0, keep=False)
        inputs.append(x)
        name = names(g, 1)[0]
        infos.append(helper.make_tensor_value_info(name, element_of(x.array), [None] * (s.array[0].ndim if isinstance(x.array, Items) else 0)))
        nodes.append(helper.make_node(g.pick(["Add", "Mul", "Sub"]), [body_inputs[0], name], [out]))
    else:
        nodes.append(helper.make_node(g.pick(["Neg", "Abs", "Identity", "Shape"]), body_inputs, [out]))
    is_shape = nodes[0].op_type == "Shape"
    info = helper.make_tensor_value_info(out, TensorProto.INT64 if is_shape else element_of(s.array), [None] * (1 if is_shape else s.array[0].ndim))
    g.emit("SequenceMap", inputs, body=helper.make_graph(nodes, "body", infos, [info]))


OPERATORS = [construct, construct, empty, fresh, insert, insert, erase, at, at, length, split, split, concat, concat, round_trip,
             identity, optional, optional, nothing, given, of_a_plain_value, conditional, loop, loop, mapped, mapped]  # fmt: skip
