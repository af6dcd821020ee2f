"""If, Loop and Scan with small bodies that see values from outside."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from references import Refused
from values import element_of as type_of

SIMPLE = ["Add", "Sub", "Mul", "Max", "Min"]
ONE = ["Relu", "Neg", "Abs", "Tanh", "Sigmoid", "Identity", "Floor"]


class Body:
    """Nodes over values of one type, all of a shape that broadcasts to the first's."""

    def __init__(self, g, tag):
        self.g, self.tag, self.nodes, self.count = g, tag, [], 0

    def name(self):
        self.count += 1
        self.g.count += 1
        return f"{self.tag}{self.g.count}"

    def node(self, op, inputs, **attributes):
        result = self.name()
        self.nodes.append(helper.make_node(op, inputs, [result], **attributes))
        return result

    def chain(self, start, others, length=None):
        value = start
        for _ in range(self.g.int(1, 3) if length is None else length):
            if others and self.g.maybe(0.6):
                pair = [value, self.g.pick(others)]
                value = self.node(self.g.pick(SIMPLE), pair if self.g.maybe(0.7) else pair[::-1])
            else:
                value = self.node(self.g.pick(ONE), [value])
        return value


def info(name, array=None, shape="open", dtype=None):
    if shape == "open":
        shape = None if array is None else [None] * array.ndim
    return helper.make_tensor_value_info(name, type_of(array) if dtype is None else dtype, shape)


def declared(g, value):
    return value.shape if not g.open_sizes and g.maybe(0.6) else "open"


def outside(g, value):
    """Names of values that can be added to this one without changing its shape."""
    return [v.name for v in g.values.values() if v.dtype == value.dtype and fits(v.shape, value.shape)] or [value.name]


def fits(shape, into):
    return len(shape) <= len(into) and all(a in (b, 1) for a, b in zip(shape[::-1], into[::-1]))


def branch(g, x, tag, outputs):
    body = Body(g, tag)
    names = [body.chain(x.name, outside(g, x)) for _ in range(outputs)]
    return helper.make_graph(body.nodes, tag, [], [info(n, x.array) for n in names])


def conditional(g):
    x = g.value(np.float32, low=0, high=3)
    condition = g.hold(np.array(g.maybe()), 0.1)
    count = g.int(1, 2)
    g.emit("If", [condition], outputs=count, then_branch=branch(g, x, "t", count), else_branch=branch(g, x, "e", count))


def loop(g):
    x = g.value(np.float32, low=0, high=3, test=lambda v: v.array.size <= 2000)
    body = Body(g, "l")
    trip, keep, state = body.name(), body.name(), body.name()
    total = body.node("Cast", [trip], to=TensorProto.FLOAT)
    around = [n for n in outside(g, x)]
    after = body.chain(state, [*around, total], g.int(1, 3))
    outputs = [after]
    scans = g.int(0, 2)
    for _ in range(scans):
        outputs.append(body.chain(after, around, 1))
    going = body.node("Identity", [keep])
    if g.maybe(0.3):
        limit = body.node("Constant", [], value=onnx.numpy_helper.from_array(np.array(g.int(0, 4), np.int64), "v"))
        going = body.node("Less", [trip, limit])
    inputs = [
        info(trip, shape=[], dtype=TensorProto.INT64),
        info(keep, shape=[], dtype=TensorProto.BOOL),
        info(state, x.array, shape=declared(g, x)),
    ]
    results = [info(going, shape=[], dtype=TensorProto.BOOL)] + [
        info(n, x.array, shape=declared(g, x)) for n in outputs
    ]
    graph = helper.make_graph(body.nodes, "body", inputs, results)
    count, begin = g.int(0, 5), g.maybe(0.9)
    none = count == 0 or not begin
    if scans and none and g.open_sizes:
        raise Refused("no trip")
    if scans and none:  # what is collected from no trip at all has the sizes that are declared
        for result in results[1:]:
            result.CopyFrom(info(result.name, x.array, x.shape))
        graph = helper.make_graph(body.nodes, "body", inputs, results)
    trips = g.hold(np.array(count, np.int64), 0.6, keep=True) if g.maybe(0.9) else None
    start = g.hold(np.array(begin), 0.6, keep=True) if g.maybe(0.6) or not begin else None
    if trips is None and going.startswith("l") and body.nodes[-1].op_type != "Less":
        raise Refused("it would not end")
    g.emit("Loop", [trips, start, x], outputs=len(outputs), body=graph)


def scan(g):
    state = g.value(np.float32, low=0, high=2, test=lambda v: v.array.size <= 2000)
    length = g.pick([1, 2, 3, 5, 8])
    axis = g.int(0, state.rank) if g.maybe(0.3) else 0
    shape = list(state.shape)
    shape.insert(axis, length)
    xs = g.value(np.float32, shape=shape, reuse=0.4)
    body = Body(g, "s")
    before, element = body.name(), body.name()
    after = body.chain(before, [element, *outside(g, state)[:2]])
    out = body.chain(after, [element], 1)
    typed = declared(g, state)
    graph = helper.make_graph(
        body.nodes,
        "body",
        [info(before, state.array, typed), info(element, state.array, typed)],
        [info(after, state.array, typed), info(out, state.array, typed)],
    )
    g.emit("Scan", [state, xs], outputs=2, body=graph, num_scan_inputs=1, scan_input_axes=[axis] if axis else None,
           scan_input_directions=g.pick([None, [0], [1]]), scan_output_directions=g.pick([None, [1]]))  # fmt: skip


OPERATORS = [conditional, conditional, loop, loop, scan]
