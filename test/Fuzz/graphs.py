"""Random graphs: values, nodes and the model that they become.

Everything is known while a graph grows: every value has an array, every new node is evaluated at
once, and what no reference computes is not added. Operators are in the folder `operators`.
"""

import copy
import functools

import numpy as np
import onnx
from onnx import helper, numpy_helper

from references import BFLOAT, HALF, Refused, check_types, evaluate, imports, is_float
from themes import MIXED
from values import STRING, TEXTS, Items, Map, Maps, Maybe, apply, info_of, is_tensor

FLOAT_TYPES = [np.dtype(np.float32)] * 10 + [np.dtype(np.float64)] * 2 + [HALF] * 2 + [BFLOAT]
INT_TYPES = [np.dtype(t) for t in "int64 int64 int32 int32 int8 uint8 int16 uint16 uint32 uint64".split()]
BOOL = np.dtype(bool)
DOMAINS = {"ai.onnx.ml": [1, 2, 3, 4, 5, 5], "ai.onnx.preview.training": [1], "ai.onnx.preview": [1], "com.microsoft": [1]}


PLACEHOLDERS = ["?", "*", "None", "unk", "-1", "<unknown>"]


def stale(rng, shape):
    """Sizes that a value of this shape could have had."""
    return [int(rng.choice([s, s, 1, s + 1, max(s - 1, 0), 2 * s])) for s in shape]


class Value:
    """A graph's input, initialiser or result. `keep`: an input that means something (indices,
    a shape) and stays as it is from run to run."""

    def __init__(self, name, array, kind, keep=False):
        self.name, self.array, self.kind, self.keep = name, array, kind, keep

    dtype = property(lambda self: self.array.dtype)
    shape = property(lambda self: self.array.shape)
    rank = property(lambda self: self.array.ndim)


class Step:
    """Nodes that are evaluated together: one, or a few around a value that numpy can't hold."""

    def __init__(self, nodes, inputs, outputs, valid):
        self.nodes, self.inputs, self.outputs, self.valid = nodes, inputs, outputs, valid
        self.lenient = False  # only onnx.reference computes it

    def check(self, arrays):
        """Raises Refused where the first node's inputs have no defined result."""
        if self.valid and not self.valid(*(arrays[name] for name in self.nodes[0].input if name)):
            raise Refused("no result is defined")


class Builder:
    def __init__(self, rng, opset, open_sizes=False, theme=MIXED):
        self.rng, self.opset, self.open_sizes, self.theme = rng, opset, open_sizes, theme
        self.opsets = {"": opset} | {name: self.pick(versions) for name, versions in DOMAINS.items()}
        self.only = None  # all values are of this type, where the operator has it
        self.sizes = theme.sizes
        self.strict = False  # nothing on which the references differ, not even by itself
        self.values: dict[str, Value] = {}
        self.steps: list[Step] = []
        self.count = 0

    # ---------------------------------------------------------------- chance

    def maybe(self, p=0.5):
        return self.rng.random() < p

    def pick(self, items):
        if not len(items):
            raise Refused("nothing to choose from")
        return items[int(self.rng.integers(len(items)))]

    def int(self, low, high):
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def size(self):
        return 0 if self.maybe(0.01) else int(self.pick(self.sizes))

    def shape(self, rank=None, low=0, high=4):
        shape = [self.size() for _ in range(self.int(low, high) if rank is None else rank)]
        while np.prod(shape, dtype=np.int64) > self.theme.limit:
            shape[int(np.argmax(shape))] //= 3
        return tuple(shape)

    def dtype(self, op=None, index=0, among=None):
        """An element type, one that the operator's input takes."""
        if self.only is not None:
            if not (among is None or self.only in among) or op and self.only not in self.allowed(op, index):
                raise Refused("not of this type")
            return self.only
        kinds = self.rng.random()
        types = FLOAT_TYPES if kinds < 0.75 else INT_TYPES if kinds < 0.96 else [BOOL]
        allowed = among or (self.allowed(op, index) if op else None)
        if allowed is not None:
            types = [t for t in types if t in allowed] or [t for t in allowed]
        return self.pick(types)

    def allowed(self, op, index=0):
        schema = self.schema(op)
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        names = {"float": "float32", "double": "float64", "string": "object"}
        known = {t.name: t for t in [*FLOAT_TYPES, *INT_TYPES, BOOL, STRING]}
        return sorted(
            {known[n] for t in formal.types if (n := names.get(t[7:-1], t[7:-1])) in known and t.startswith("tensor")},
            key=lambda t: t.name,
        )

    def schema(self, op, domain=""):
        return onnx.defs.get_schema(op, self.opsets[domain], domain)

    def has(self, op, attribute=None, domain=""):
        """Whether the opset has the operator, or this attribute of it."""
        try:
            schema = self.schema(op, domain)
        except onnx.defs.SchemaError:
            return False
        return attribute is None or attribute in schema.attributes

    def inputs_of(self, op):
        return len(self.schema(op).inputs)

    # ---------------------------------------------------------------- values

    def data(self, dtype, shape, low=None, high=None):
        rng, dtype = self.rng, np.dtype(dtype)
        if dtype == BOOL:
            return rng.random(shape) < 0.5
        if dtype == STRING:
            result = np.empty(shape, STRING)
            for at in np.ndindex(*result.shape):
                result[at] = self.pick(TEXTS)
            return result
        if not is_float(dtype):
            info = np.iinfo(dtype)
            if low is None and self.maybe(0.1):
                return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
            low = max(info.min, -20) if low is None else low
            return rng.integers(low, min(info.max, 20) if high is None else high, shape, endpoint=True).astype(dtype)
        if low is not None:
            return np.asarray(rng.uniform(low, 1 if high is None else high, shape)).astype(dtype)
        style = rng.random()
        if style < 0.7:
            array = rng.standard_normal(shape)
        elif style < 0.85:
            array = rng.integers(-3, 4, shape).astype(np.float64) * self.pick([1, 0.5, 1])
        else:
            array = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3)
        array = np.asarray(array)
        if self.maybe(0.04) and array.size:
            special = [np.nan, np.inf, -np.inf, -0.0, 1e-40, 1e15]
            flat = array.reshape(-1)
            flat[rng.integers(array.size)] = self.pick(special)
        with np.errstate(all="ignore"):
            return array.astype(dtype)

    def new(self, dtype, shape, const=None, **limits):
        return self.hold(self.data(dtype, shape, **limits), const)

    def hold(self, array, const=None, keep=False):
        """A new input or (const: with this chance) initialiser with these elements."""
        self.count += 1
        const = self.maybe(0.3 if const is None else const)
        name = f"{'c' if const else 'x'}{self.count}"
        array = array if isinstance(array, (Items, Map, Maps, Maybe)) else np.asarray(array)
        value = Value(name, array, "const" if const else "input", keep)
        self.values[name] = value
        return value

    def ints(self, numbers, const=0.8, dtype=np.int64):
        """A shape, axes or the like."""
        return self.hold(np.array(numbers, dtype), const, keep=True)

    def value(
        self, dtype=None, rank=None, low=0, high=4, op=None, index=0, among=None, reuse=None, test=None, shape=None
    ):
        """One that is there and fits, or a new one."""
        allowed = [np.dtype(dtype)] if dtype is not None else among or (self.allowed(op, index) if op else None)
        if dtype is None and self.only is not None:
            allowed = [self.dtype(op, index, among)]

        def fits(v):
            if not is_tensor(v.array) or v.dtype == STRING and (allowed is None or self.only is None and dtype is None):
                return False
            if v.kind == "const" or v.keep or (allowed is not None and v.dtype not in allowed):
                return False
            if shape is not None:
                return v.shape == tuple(shape)
            return (v.rank == rank if rank is not None else low <= v.rank <= high) and (test is None or test(v))

        there = [v for v in self.values.values() if fits(v)]
        if there and self.maybe(self.theme.reuse if reuse is None else reuse):
            return self.pick(there[-4:] if self.maybe(0.6) else there)
        if test is not None:
            for _ in range(30):
                wanted = self.shape(rank, low, high) if shape is None else shape
                if test(Value("", np.empty(wanted), "")):
                    break
            else:
                raise Refused("no value fits")
        else:
            wanted = self.shape(rank, low, high) if shape is None else shape
        return self.new(self.dtype(op, index, allowed), wanted, const=0.08)

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        result = [1 if self.maybe(0.25) else s for s in shape]
        return tuple(result[self.int(0, len(result)) :] if self.maybe(0.3) else result)

    # ---------------------------------------------------------------- nodes

    def listed(self, dtype=None, test=None, reuse=0.7):
        """A sequence that is there and fits, or a new one."""
        there = [v for v in self.values.values() if isinstance(v.array, Items)]
        there = [v for v in there if (dtype is None or v.dtype == dtype) and (test is None or test(v.array))]
        if there and self.maybe(reuse):
            return self.pick(there)
        dtype, rank = self.dtype() if dtype is None else dtype, self.int(1, 3) if self.maybe(0.95) else 0
        return self.hold(Items([self.data(dtype, self.shape(rank)) for _ in range(self.int(1, 4))], dtype), 0)

    def emit(self, op, inputs, outputs=1, valid=None, domain="", only=None, foreign=False, **attributes):
        """Adds a node; a missing optional input or output is None. Gives the results.

        `valid` tells of the inputs' arrays whether the operator defines a result for them; with `only` so many
        results are compared. `foreign`: onnx has no schema of it.
        """
        ours = foreign or domain == "com.microsoft"
        if not ours:
            self.schema(op, domain)
        attributes = {
            k: v for k, v in attributes.items() if v is not None and v != [] and (ours or self.has(op, k, domain))
        }
        present = [True] * outputs if isinstance(outputs, int) else outputs
        names = []
        for there in present:
            self.count += 1
            names.append(f"v{self.count}" if there else "")
        node = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, domain=domain, **attributes)
        while node.input and not node.input[-1]:
            node.input.pop()
        return self.add([node], valid, names[:only] if only else None)

    def add(self, nodes, valid=None, outputs=None):
        made = {name for node in nodes for name in node.output}
        inputs = list(dict.fromkeys(n for node in nodes for n in reads(node) if n and n not in made))
        outputs = outputs or [name for name in nodes[-1].output if name]
        step = Step(nodes, inputs, outputs, valid)
        feeds = {name: self.values[name].array for name in inputs}
        step.check(feeds)
        check_types(nodes, feeds, outputs, self.opsets)
        answer = evaluate(nodes, feeds, outputs, self.opsets)
        if any(v.size > self.theme.limit or v.dtype.kind in "USc" for v in answer.values):
            raise Refused("too large, or no numbers")
        if answer.differ and (self.steps or self.strict):
            raise Refused("the references differ")
        step.lenient = answer.lenient
        self.steps.append(step)
        for name, array in zip(outputs, answer.values):
            self.values[name] = Value(name, array, "node")
        return [self.values[name] for name in outputs]

    def subgraph(self):
        """For a body: sees the same values, has steps of its own."""
        body = copy.copy(self)
        body.values, body.steps = dict(self.values), []
        return body


def reads(node):
    """Names that a node takes from outside, those of its bodies included."""
    yield from node.input
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            inside = {v.name for v in body.input} | {v.name for v in body.initializer}
            for inner in body.node:
                yield from (n for n in reads(inner) if n not in inside)
                inside.update(inner.output)
            yield from (v.name for v in body.output if v.name not in inside)


class Arrays(dict):
    """The values of a run by name. `others`: what the second reference makes of the same inputs of a node;
    `disputed`: the names where it means something else."""

    def __init__(self, values):
        super().__init__(values)
        self.others, self.disputed = {}, set()


class Graph:
    """A finished graph: the model and all that the runs need."""

    def __init__(self, builder, rng):
        self.opsets, self.steps, self.values = builder.opsets, builder.steps, builder.values
        read = {name for step in self.steps for name in step.inputs}
        self.inputs = [n for n in self.values if self.values[n].kind == "input" and n in read]
        self.consts = [n for n in self.values if self.values[n].kind == "const" and n in read]
        made = [n for step in self.steps for n in step.outputs]
        last = [n for n in made if n not in read]
        self.outputs = last + [n for n in made if n in read and rng.random() < 0.15]
        self.open_sizes = builder.open_sizes
        self.names = "apart shared".split()[int(rng.random() < 0.5)]
        if rng.random() < builder.theme.odd:
            self.names = "placeholders clashing".split()[int(rng.random() < 0.5)]
        self.open_share = 1.0 if rng.random() < 0.5 else 0.5
        self.dims = {n: [self.dim(rng, n, i, s) for i, s in enumerate(self.values[n].shape)] for n in self.inputs}
        self.static_outputs = not self.open_sizes and rng.random() < 0.5
        # What the model declares of results, where that is wrong.
        self.stale = {}
        if rng.random() < builder.theme.odd:
            tensors = [n for n in made if is_tensor(self.values[n].array)]
            self.stale = {n: stale(rng, self.values[n].shape) for n in tensors if rng.random() < 0.7}

    def dim(self, rng, name, axis, size):
        if not self.open_sizes or rng.random() > self.open_share:
            return size
        if self.names == "placeholders":
            return PLACEHOLDERS[int(rng.integers(len(PLACEHOLDERS)))]
        if self.names == "clashing":
            return f"n{int(rng.integers(2))}"
        return f"d{size}" if self.names == "shared" and size > 1 else f"{name}_{axis}"

    def model(self):
        def dims(name):
            array = self.values[name].array
            if name in self.stale or not is_tensor(array):
                return self.stale.get(name)
            return array.shape if self.static_outputs else [f"{name}_{i}" for i in range(array.ndim)]

        nodes = [node for step in self.steps for node in step.nodes]
        made = {name for step in self.steps for name in step.outputs}
        graph = helper.make_graph(
            nodes,
            "fuzz",
            [info_of(n, self.values[n].array, self.dims[n]) for n in self.inputs],
            [info_of(n, self.values[n].array, dims(n)) for n in self.outputs],
            [numpy_helper.from_array(np.asarray(self.values[n].array), n) for n in self.consts],
            value_info=[info_of(n, self.values[n].array, s) for n, s in self.stale.items() if n not in self.outputs and n in made],
        )
        return helper.make_model(graph, opset_imports=imports(nodes, self.opsets), ir_version=10)

    def feeds(self):
        return {n: self.values[n].array for n in self.inputs}

    def other_feeds(self, builder):
        """Other data, where sizes are open of other sizes, which need not suit the operators."""
        rng = builder.rng
        frozen = {s for n in self.consts for s in self.values[n].shape}
        frozen |= {s for n in self.inputs if self.values[n].keep for s in self.values[n].shape}
        frozen |= {s for n in self.inputs for s, d in zip(self.values[n].shape, self.dims[n]) if d == s}
        if self.names != "shared" and rng.random() < 0.1:
            frozen = {s for n in self.inputs for s, d in zip(self.values[n].shape, self.dims[n]) if d == s}
        sizes = {}
        for size in sorted({s for n in self.inputs for s in self.values[n].shape} - frozen - {1}):
            chance = rng.random()
            sizes[size] = 0 if chance < 0.03 else 1 if chance < 0.1 else builder.pick([s for s in builder.sizes if s > 1])
        if rng.random() < 0.1 and 1 not in frozen:
            sizes[1] = 3
        feeds = {}
        for name in self.inputs:
            value = self.values[name]
            if value.keep:
                feeds[name] = value.array
                continue
            if not is_tensor(value.array):
                feeds[name] = apply(lambda array: builder.data(array.dtype, array.shape), value.array)
                continue
            shape = [sizes.get(s, s) if isinstance(d, str) else s for s, d in zip(value.shape, self.dims[name])]
            if np.prod(shape, dtype=np.int64) > 4 * builder.theme.limit:
                return self.feeds()
            lone = [i for i, d in enumerate(self.dims[name]) if isinstance(d, str) and d.startswith(name)]
            if lone and rng.random() < 0.1:
                shape = list(shape)
                shape[builder.pick(lone)] = builder.pick([1, 1, 2, 0])
            feeds[name] = builder.data(value.dtype, tuple(shape))
        return feeds

    def step_through(self, feeds, change=None):
        """All values for these inputs. Raises Refused where no reference computes them, or they
        are not defined. `change` is applied to every array and the nodes that it comes from."""
        moving = change is not None
        change = change or (lambda array, nodes=(): array)
        arrays = Arrays({n: self.values[n].array for n in self.consts})
        arrays.update({n: apply(change, array) for n, array in feeds.items()})
        for step in self.steps:
            given = {n: arrays[n] for n in step.inputs}
            step.check(given)
            answer = evaluate(step.nodes, given, step.outputs, self.opsets)
            if answer.lenient and not step.lenient:
                raise Refused("onnxruntime refuses these sizes, and it looks closer")
            if answer.differ and len(self.steps) > 1 and not moving:
                raise Refused("the references differ")
            if answer.others is not None:
                arrays.others |= dict(zip(step.outputs, answer.others))
            if answer.differ:
                arrays.disputed |= set(step.outputs)
            of_step = functools.partial(change, nodes=step.nodes)
            arrays.update({n: apply(of_step, array) for n, array in zip(step.outputs, answer.values)})
        return arrays


def grow(builder, operators, nodes):
    """Adds about so many nodes."""
    failures = 0
    while len(builder.steps) < nodes and failures < 40:
        before = dict(builder.values)
        try:
            builder.pick(operators)(builder)
        except (Refused, onnx.defs.SchemaError):
            failures += 1
            if len(builder.values) > len(before) and not builder.steps:
                builder.values = before
