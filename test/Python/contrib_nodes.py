"""Models of one node of com.microsoft, which onnxruntime and Sardonyx run."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx


def model(op, feeds, outputs, constants=(), is_open=False, **attributes):
    """`feeds` are arrays by the node's inputs, None for one that is left out. Those that `constants` names are
    initializers. Of the others all sizes but the last are open, or none."""
    names = [name if value is not None else "" for name, value in feeds.items()]
    while not names[-1]:
        names.pop()
    given = {name: np.asarray(value) for name, value in feeds.items() if value is not None}
    node = helper.make_node(op, names, outputs, name="n", domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(value.dtype),
                [f"{name}{axis}" if is_open else size for axis, size in enumerate(value.shape[:-1])]
                + list(value.shape[-1:]),
            )
            for name, value in given.items()
            if name not in constants
        ],
        # onnxruntime infers no type for the scores of an attention.
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            if name == "qk"
            else onnx.ValueInfoProto(name=name)
            for name in outputs
            if name
        ],
        [numpy_helper.from_array(given[name], name) for name in constants if name in given],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def inputs(feeds, constants):
    return {name: np.asarray(v) for name, v in feeds.items() if v is not None and name not in constants}


def by_onnxruntime(op, feeds, outputs, constants=(), **attributes):
    """onnxruntime's results, of one thread: with more, it quantizes some operators' rows in parts."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # Without VNNI sums of two products of u8 and s8 saturate at 16 bits, unless one asks for all bits.
    options.add_session_config_entry("session.x64quantprecision", "1")
    source = model(op, feeds, outputs, constants, **attributes)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs(feeds, constants))


def check(op, feeds, outputs, wanted, constants=(), tolerance=1e-5, is_open=(True,), **attributes):
    """Runs the node, for each of `is_open` once, and compares results with `wanted`, an array each. Integers may differ
    by `tolerance`, floats by that part of the largest."""
    for open_sizes in is_open:
        session = sdx.InferenceSession(model(op, feeds, outputs, constants, open_sizes, **attributes))
        for got, want in zip(session.run(None, inputs(feeds, constants)), wanted, strict=True):
            want = np.asarray(want)
            assert got.shape == want.shape
            scale = 1 if want.dtype.kind in "iu" else max(1, np.abs(want).max(initial=0))
            difference = np.abs(got.astype(float) - want.astype(float)).max(initial=0)
            assert difference <= tolerance * scale, (op, open_sizes, difference, scale)


def agree(op, feeds, outputs, constants=(), **rest):
    """Compares with onnxruntime."""
    attributes = {k: v for k, v in rest.items() if k not in ("tolerance", "is_open")}
    check(op, feeds, outputs, by_onnxruntime(op, feeds, outputs, constants, **attributes), constants, **rest)


def refused(why, op, feeds, outputs, constants=(), error=NotImplementedError, **attributes):
    """Loading says `why`, and which operator it is."""
    with pytest.raises(error, match=why) as told:
        sdx.InferenceSession(model(op, feeds, outputs, constants, **attributes))
    assert op in str(told.value), told.value
