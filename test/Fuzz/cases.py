"""Faulty trials as text: what was found once stays a test.

# A comment.
# cpu: haswell
# check_bounds: True
# run: x1 = float32[2,3] 1 2 3 4 5 6; x2 = string[2] "a" "b\u0020c"; x3 = sequence(float32) float32[1] 7 | float32[0]
<ir_version: 10, opset_import: ["" : 22]> fuzz (float[2,3] x1) => (float[v2_0,v2_1] v2) { v2 = Relu (x1) }
"""

import json
import re

import ml_dtypes  # noqa: F401  (numpy knows bfloat16 by it)
import numpy as np
import onnx
from onnx import numpy_helper, parser, printer

from graphs import Step, Value
from trial import Settings, Trial
from values import STRING, Items, Map, Maps, Maybe

ARRAY = re.compile(r"(\w+)\[([\d,]*)\] ?(.*)")
MOST = 400  # elements of an array in a text


def value_text(value):
    if isinstance(value, Items):
        return f"sequence({name_of(value.dtype)}) " + " | ".join(map(array_text, value))
    return array_text(value)


def value_of(text):
    if text.startswith("sequence("):
        name, _, items = text[len("sequence(") :].partition(")")
        return Items([array_of(item.strip()) for item in items.split("|") if item.strip()], type_named(name))
    return array_of(text)


def name_of(dtype):
    return "string" if dtype == STRING else dtype.name


def type_named(name):
    return STRING if name == "string" else np.dtype(name)


def word(text):
    """A string as JSON, without what stands between values."""
    return re.sub("[;| ]", lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text))


def array_text(array):
    numbers = array.reshape(-1)
    if array.dtype == STRING:
        return f"string[{','.join(map(str, array.shape))}] {' '.join(map(word, numbers))}"
    if array.dtype.kind == "b":
        numbers = numbers.astype(int)
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}] {' '.join(str(v) for v in numbers.tolist())}"


def array_of(text):
    name, shape, text = ARRAY.fullmatch(text).groups()
    dtype = type_named(name)
    if dtype == STRING:
        return np.array([json.loads(part) for part in text.split()], STRING).reshape([int(s) for s in shape.split(",") if s])
    numbers = [float(v) if dtype.kind in "fV" else int(v) for v in text.split()]
    return (
        np.array(numbers, dtype if dtype.kind != "b" else int)
        .astype(dtype)
        .reshape([int(s) for s in shape.split(",") if s])
    )


def to_text(trial, comment):
    """None where the text form can't hold it."""
    arrays = [a for run in trial.runs for a in run.values()] + [trial.graph.values[n].array for n in trial.graph.consts]
    if any(a.size > MOST or isinstance(a, (Map, Maps, Maybe)) for a in arrays):
        return None
    model = trial.graph.model()
    text = printer.to_text(model)
    try:
        if parser.parse_model(text).graph.node != model.graph.node:
            return None
    except Exception:
        return None
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"# {name}: {value}" for name, value in trial.settings._asdict().items() if value != getattr(Settings(), name)]
    for run in trial.runs:
        lines.append("# run: " + "; ".join(f"{name} = {value_text(array)}" for name, array in run.items()))
    return "\n".join(lines) + "\n" + text + "\n"


def shortened(graph):
    """The graph as text with an end to every list of numbers."""
    return re.sub(r"\{((?:[^,{}]*,){12})[^{}]*\}", r"{\1 ...}", printer.to_text(graph.model()))


class Loaded:
    """A graph that was read: all its nodes are one step."""

    def __init__(self, model):
        graph = model.graph
        self.proto = model
        self.opsets = {entry.domain.replace("ai.onnx", "") if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
        self.consts = [t.name for t in graph.initializer]
        self.values = {t.name: Value(t.name, numpy_helper.to_array(t), "const") for t in graph.initializer}
        self.inputs = [v.name for v in graph.input if v.name not in self.values]
        self.outputs = [v.name for v in graph.output]
        self.steps = [Step(list(graph.node), [*self.inputs, *self.consts], self.outputs, None)]

    def model(self):
        return self.proto

    def step_through(self, feeds, change=None):
        from graphs import Graph

        return Graph.step_through(self, feeds, change)


def from_text(text):
    head = [line[2:] for line in text.splitlines() if line.startswith("#")]
    model = parser.parse_model("\n".join(line for line in text.splitlines() if not line.startswith("#")))
    given = dict(line.split(": ", 1) for line in head if line.partition(": ")[0] in Settings._fields)
    settings = Settings(given.get("cpu", ""), int(given.get("threads", 1)), given.get("check_bounds") == "True")
    graph, runs = Loaded(model), []
    for line in head:
        if line.startswith("run:"):
            parts = [part.strip().partition(" = ") for part in line[4:].split(";") if part.strip()]
            runs.append({name: value_of(text) for name, _, text in parts})
    for run in runs[:1]:
        graph.values |= {name: Value(name, array, "input") for name, array in run.items()}
    return Trial(graph, runs, settings)


def from_files(path):
    """A case that differential.py wrote: .onnx and .npz."""
    model, arrays = onnx.load(path), np.load(path.with_suffix(".npz"), allow_pickle=True)
    runs = arrays["runs"].tolist()
    trial = Trial(Loaded(model), runs, Settings(*arrays["settings"].tolist()))
    for run in runs[:1]:
        trial.graph.values |= {name: Value(name, array, "input") for name, array in run.items()}
    return trial
