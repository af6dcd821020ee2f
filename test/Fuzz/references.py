"""What a node should compute: onnxruntime's and onnx.reference's answers.

A node is evaluated by itself, on known inputs. Both references are wrong now and then; where they
differ, `evaluate` tells it and the caller decides.
"""

import copy
import io
import warnings
from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator
from PIL import Image

from values import STRING, Items, Map, Maybe, info_of, is_tensor, of_answer, raw

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)

FLOAT = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
HALF = np.dtype(np.float16)
BFLOAT = np.dtype(ml_dtypes.bfloat16)
SMALL = (HALF, BFLOAT)
FLOATS = (FLOAT, DOUBLE, HALF, BFLOAT)
NEWEST = 26  # opset of onnxruntime
# Relative precision.
EPSILON = {FLOAT: 2.0**-23, DOUBLE: 2.0**-52, HALF: 2.0**-10, BFLOAT: 2.0**-7}
MOST = 1 << 23  # elements of results


class Refused(Exception):
    """No reference computes this."""


def options():
    result = onnxruntime.SessionOptions()
    result.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    result.intra_op_num_threads = result.inter_op_num_threads = 1
    result.log_severity_level = 4
    return result


def is_float(dtype):
    return dtype in EPSILON or dtype.name.startswith("float")


def domains(nodes):
    """The domains of nodes, those of their bodies included."""
    return {node.domain for node in every(nodes)}


def imports(nodes, opsets):
    return [helper.make_opsetid(domain, opsets[domain]) for domain in sorted(domains(nodes) | {""})]


def model_of(nodes, feeds, outputs, opsets):
    """A model of some nodes whose inputs are `feeds`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [info_of(name, a) for name, a in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=imports(nodes, opsets), ir_version=10)


def check_types(nodes, feeds, outputs, opsets):
    """Raises Refused for what the schemas don't allow; references may compute it all the same."""
    try:
        onnx.shape_inference.infer_shapes(model_of(nodes, feeds, outputs, opsets), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as problem:
        raise Refused(str(problem)) from None


def taken_by_onnxruntime(nodes, opsets):
    """The opsets, or the newest that it has where the nodes are the same there."""
    if opsets[""] <= NEWEST:
        return opsets
    for node in every(nodes):
        if not node.domain and onnx.defs.has(node.op_type) and onnx.defs.get_schema(node.op_type, opsets[""]).since_version > NEWEST:
            raise Refused("newer than onnxruntime")
    return opsets | {"": NEWEST}


def every(nodes):
    """The nodes, and those of their bodies."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from every(body.node)


def by_onnxruntime(nodes, feeds, outputs, opsets):
    opsets = taken_by_onnxruntime(nodes, opsets)
    if any(a.dtype != STRING and (a.dtype.kind == "V" or a.dtype.name not in np.sctypeDict) for a in feeds.values()):
        raise Refused("a type that onnxruntime's binding lacks")
    session = onnxruntime.InferenceSession(model_of(nodes, feeds, outputs, opsets).SerializeToString(), options())
    values = session.run(None, {name: raw(value) for name, value in feeds.items()})
    return [of_answer(value, arg.type) for value, arg in zip(values, session.get_outputs())]


def by_reference(nodes, feeds, outputs, opsets):
    model = model_of(nodes, feeds, outputs, opsets)
    if domains(nodes) & {"com.microsoft", "ai.onnx.ml"}:
        raise Refused("it takes little care of types there, and of what is optional")
    if any(node.op_type == "Loop" and len(node.output) > len(node.input) - 2 for node in every(nodes)):
        raise Refused("it joins what a Loop collects along the first axis that there is, not along a new one")
    if any(node.op_type == "Loop" and not (node.input[1:2] and node.input[1]) for node in every(nodes)):
        raise Refused("a Loop without a condition does nothing there")
    values = ReferenceEvaluator(model).run(None, {name: raw(value) for name, value in feeds.items()})
    known = [v.type for v in onnx.shape_inference.infer_shapes(model).graph.output]
    return [of_reference(value, kind) for value, kind in zip(values, known)]


def of_reference(value, kind):
    name = kind.WhichOneof("value")
    if name == "optional_type" or isinstance(value, list) != (name == "sequence_type"):
        raise Refused("a type that is not known")
    if name == "sequence_type":
        dtype = helper.tensor_dtype_to_np_dtype(kind.sequence_type.elem_type.tensor_type.elem_type)
        return Items([np.asarray(v).astype(dtype) for v in value], dtype)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise Refused("no tensor")
    # numpy sums small integers in larger ones; the schema knows the type.
    element = kind.tensor_type.elem_type
    value = np.asarray(value)
    if value.dtype == STRING and not all(isinstance(text, str) for text in value.reshape(-1)):
        raise Refused("numbers among strings")
    return value.astype(helper.tensor_dtype_to_np_dtype(element) if element else STRING if value.dtype.kind in "US" else value.dtype)


def in_single_precision(nodes, feeds, outputs, opsets, types):
    """Computed in float32 and rounded once, as a processor without narrow arithmetic does it."""
    as_float = {name: a.astype(np.float32) if a.dtype in EPSILON else a for name, a in feeds.items()}
    values = by_onnxruntime(nodes, as_float, outputs, opsets)
    return [v.astype(d) if d in EPSILON and v.dtype == FLOAT else v for v, d in zip(values, types)]


def attempt(how, *arguments):
    try:
        with np.errstate(all="ignore"):
            return how(*arguments)
    except Exception:  # whatever it raises, it has no answer
        return None


class Answer(NamedTuple):
    """What the references say of some nodes. `others`: the second's values, or None; `differ`: they mean
    something else; `lenient`: only onnx.reference has an answer."""

    values: list
    others: list | None = None
    differ: bool = False
    lenient: bool = False


def evaluate(nodes, feeds, outputs, opsets):
    if nodes[-1].op_type == "Gradient":
        values = attempt(by_differences, nodes, feeds, outputs, opsets)
        if values is None:
            raise Refused("no slope")
        return Answer(values, lenient=True)
    if nodes[-1].op_type == "ImageDecoder":
        values = attempt(by_pillow, nodes[-1], feeds)
        if values is None:
            raise Refused("no picture")
        return Answer(values)
    ours = attempt(by_onnxruntime, nodes, feeds, outputs, opsets)
    if ours is not None and sum(v.size for v in ours) > MOST:
        raise Refused("too large to be compared")
    theirs = attempt(by_reference, nodes, feeds, outputs, opsets)
    if ours is None and theirs is None:
        raise Refused(nodes[0].op_type)
    types = [v.dtype for v in (ours or theirs)]
    given = {a.dtype for a in feeds.values()}
    if given & set(SMALL):
        # The reference rounds at every step.
        ours = attempt(in_single_precision, nodes, feeds, outputs, opsets, types) or ours
    elif ours is None and DOUBLE in given:
        # onnxruntime lacks many operators for double; the reference is wrong for some.
        single = attempt(in_single_precision, nodes, feeds, outputs, opsets, types)
        if single and not all(alike(a, b) for a, b in zip(theirs, single)):
            return Answer(theirs, single, differ=True)
    if ours is None and not all(is_tensor(a) for a in feeds.values()):
        raise Refused("onnx.reference alone, which mixes up sequences of no items, and of tensors of one element")
    if ours is None:
        return Answer(theirs, lenient=True)
    if theirs is None:
        return Answer(ours)
    return Answer(ours, theirs, differ=not all(alike(a, b) for a, b in zip(ours, theirs)))


def by_pillow(node, feeds):
    """ImageDecoder, where onnx.reference gives what channels there are."""
    image = Image.open(io.BytesIO(feeds[node.input[0]].tobytes()))
    layout = next((a.s.decode() for a in node.attribute), "RGB")
    if layout == "Grayscale":
        return [np.array(image.convert("L"))[..., None]]
    rgb = np.array(image.convert("RGB"))
    return [rgb if layout == "RGB" else rgb[..., ::-1].copy()]


def by_differences(nodes, feeds, outputs, opsets):
    """Of Gradient, the last of the nodes, with what it differentiates: central differences, in double precision."""
    *forward, gradient = [copy.deepcopy(node) for node in nodes]
    for node in forward:  # onnx.reference takes a result without a name for every input that is left out
        while not node.output[-1]:
            node.output.pop()
    given = {a.name: helper.get_attribute_value(a) for a in gradient.attribute}
    names = [name.decode() for name in given["xs"] + given.get("zs", [])]
    inner = [n for n in forward if not set(n.output) & set(names)]  # what lies before an x is not asked
    y, types = given["y"].decode(), {name: a.dtype for name, a in feeds.items()}
    wide = {name: a.astype(np.float64) if is_float(a.dtype) else a for name, a in feeds.items()}

    def evaluator_of(which, values, results):
        return ReferenceEvaluator(model_of(which, values, results, opsets))

    everything = dict(wide)
    made = [name for n in forward for name in n.output if name]
    if made:
        evaluator = evaluator_of(forward, wide, made)
        everything |= dict(zip(made, evaluator.run(None, wide)))
    at = {x: np.asarray(everything[value]) for x, value in zip(names, gradient.input)}
    if any(np.abs(v).max(initial=0) > 1000 for v in (wide | at).values()):
        raise Refused("digits are lost")
    between = [name for n in inner for name in n.output if name]
    if between:
        evaluator = evaluator_of(inner, wide | at, between)
        if not all(np.isfinite(v).all() for v in evaluator.run(None, wide | at)):
            raise Refused("a pole")
    evaluator = evaluator_of(inner, wide | at, [y])

    def total(values):
        return float(np.sum(evaluator.run(None, wide | values)[0]))

    slopes = {}
    for name, result in zip(names, gradient.output):
        if result:
            slopes[result] = np.asarray(slope(total, at, name))
    kinds = {result: types.get(value, FLOAT) for value, result in zip(gradient.input, gradient.output)}
    values = slopes | everything
    return [values[name].astype(kinds[name]) if name in kinds else values[name] for name in outputs]


def slope(function, values, name):
    """Raises Refused where two steps disagree: beside a kink, or a jump."""
    result, middle = np.zeros(values[name].shape), function(values)
    for place in np.ndindex(result.shape):
        found = []
        for step in (1e-5, 3e-6):
            ends = []
            for sign in (1, -1):
                moved = values[name].copy()
                moved[place] += sign * step
                ends.append(function(values | {name: moved}))
            found.append((ends[0] - ends[1]) / (2 * step))
        # What double precision leaves of a difference of such values.
        size = max(1, *map(abs, ends))
        sides = (ends[0] - middle) / step, (middle - ends[1]) / step
        if not np.isclose(*found, rtol=1e-5, atol=1e-8 * size) or not np.isclose(*sides, rtol=1e-4, atol=1e-4):
            raise Refused("no slope")
        result[place] = found[0]
    return result


def alike(a, b, relative=1e-3, absolute=1e-4):
    """Whether two references mean the same."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Maybe):
        return (a.value is None) == (b.value is None) and (a.value is None or alike(a.value, b.value))
    if isinstance(a, Map):
        a, b = a.in_order(), b.in_order()
        return a.keys == b.keys and alike(a.array, b.array)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_float(a.dtype):
        return bool((a == b).all())
    if a.dtype in SMALL or a.dtype.itemsize == 1:
        relative, absolute = 0.05, 0.05
    x, y = a.astype(np.float64), b.astype(np.float64)
    if a.dtype == FLOAT:  # one may overflow a little sooner
        x, y = (np.where(np.abs(v) > 3e38, np.sign(v) * np.inf, v) for v in (x, y))
    return bool(np.allclose(x, y, relative, absolute * max(1.0, scale_of(y)), equal_nan=True))


def scale_of(array):
    finite = np.abs(array[np.isfinite(array)])
    return float(min(finite.max(initial=0.0), 1e300))
