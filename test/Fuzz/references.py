"""What a node should compute: onnxruntime's and onnx.reference's answers.

A node is evaluated by itself, on known inputs. Both references are wrong now and then; where they
differ, `evaluate` tells it and the caller decides.
"""

import warnings
from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)

FLOAT = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
HALF = np.dtype(np.float16)
BFLOAT = np.dtype(ml_dtypes.bfloat16)
SMALL = (HALF, BFLOAT)
FLOATS = (FLOAT, DOUBLE, HALF, BFLOAT)
# Relative precision.
EPSILON = {FLOAT: 2.0**-23, DOUBLE: 2.0**-52, HALF: 2.0**-10, BFLOAT: 2.0**-7}


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


def type_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def model_of(nodes, feeds, outputs, opset):
    """A model of some nodes whose inputs are `feeds`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, type_of(a), a.shape) for name, a in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check_types(nodes, feeds, outputs, opset):
    """Raises Refused for what the schemas don't allow; references may compute it all the same."""
    try:
        onnx.shape_inference.infer_shapes(model_of(nodes, feeds, outputs, opset), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as problem:
        raise Refused(str(problem)) from None


def by_onnxruntime(nodes, feeds, outputs, opset):
    if any(a.dtype.kind == "V" or a.dtype.name not in np.sctypeDict for a in feeds.values()):
        raise Refused("a type that onnxruntime's binding lacks")
    session = onnxruntime.InferenceSession(model_of(nodes, feeds, outputs, opset).SerializeToString(), options())
    return session.run(None, feeds)


def by_reference(nodes, feeds, outputs, opset):
    model = model_of(nodes, feeds, outputs, opset)
    values = ReferenceEvaluator(model).run(None, feeds)
    if not all(isinstance(v, (np.ndarray, np.generic)) for v in values):
        raise Refused("no tensor")
    # numpy sums small integers in larger ones; the schema knows the type.
    known = [v.type.tensor_type.elem_type for v in onnx.shape_inference.infer_shapes(model).graph.output]
    return [
        np.asarray(v).astype(helper.tensor_dtype_to_np_dtype(t)) if t else np.asarray(v) for v, t in zip(values, known)
    ]


def in_single_precision(nodes, feeds, outputs, opset, types):
    """Computed in float32 and rounded once, as a processor without narrow arithmetic does it."""
    as_float = {name: a.astype(np.float32) if a.dtype in EPSILON else a for name, a in feeds.items()}
    values = by_onnxruntime(nodes, as_float, outputs, opset)
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


def evaluate(nodes, feeds, outputs, opset):
    ours = attempt(by_onnxruntime, nodes, feeds, outputs, opset)
    theirs = attempt(by_reference, nodes, feeds, outputs, opset)
    if ours is None and theirs is None:
        raise Refused(nodes[0].op_type)
    types = [v.dtype for v in (ours or theirs)]
    given = {a.dtype for a in feeds.values()}
    if given & set(SMALL):
        # The reference rounds at every step.
        ours = attempt(in_single_precision, nodes, feeds, outputs, opset, types) or ours
    elif ours is None and DOUBLE in given:
        # onnxruntime lacks many operators for double; the reference is wrong for some.
        single = attempt(in_single_precision, nodes, feeds, outputs, opset, types)
        if single and not all(alike(a, b) for a, b in zip(theirs, single)):
            return Answer(theirs, single, differ=True)
    if ours is None:
        return Answer(theirs, lenient=True)
    if theirs is None:
        return Answer(ours)
    return Answer(ours, theirs, differ=not all(alike(a, b) for a, b in zip(ours, theirs)))


def alike(a, b, relative=1e-3, absolute=1e-4):
    """Whether two references mean the same."""
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
