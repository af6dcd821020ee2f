#!/usr/bin/env python3
"""Whole networks between quantised tensors, beside a reference and beside their float models.

    quantized_networks.py steps MODEL.onnx [FEED.npz] [--integers]
    quantized_networks.py top1 MODEL.onnx FLOAT.onnx [--inputs 100]

`steps` makes a result of each QuantizeLinear and evaluates each operator on what the session gave for the ones
before it, as test/Python/quantized_graphs.py does: node by node in f32, with sums in f64. It tells how many integers
differ, of these, how many are no tie (a quotient that is further than 1e-4 from the middle of two integers), and
whether the model's own results are the same without the others. Scales that are no powers of two make products of
the integers and sums of dequantised numbers differ in the last bits: one tie in a million falls to the other side.
With --integers the reference, too, sums the integers of convolutions and products and multiplies by the product of both
scales, in f32; then nothing may differ.
`top1` counts on how many random inputs the model's largest result is the float model's, here and with onnxruntime;
also of results less their mean over all inputs, since networks of random weights answer all inputs alike.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "Python"))

import quantized_graphs as q  # noqa: E402

import sardonyx  # noqa: E402

TIE = 1e-4  # how near to the middle of two integers a quotient may be rounded to either


def convolve(node, x, w, b=None):
    """A convolution of two dimensions in f64, by products of matrices."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    pads, group = given.get("pads", [0] * 4), given.get("group", 1)
    strides, steps = given.get("strides", [1, 1]), given.get("dilations", [1, 1])
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    sides = [(side - 1) * step + 1 for side, step in zip(w.shape[2:], steps)]
    windows = np.lib.stride_tricks.sliding_window_view(x, sides, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: steps[0], :: steps[1]]
    n, c, h, v = windows.shape[:4]
    parts = windows.reshape(n, group, c // group, h, v, *w.shape[2:]).transpose(0, 1, 2, 5, 6, 3, 4)
    y = w.astype(np.float64).reshape(group, w.shape[0] // group, -1) @ parts.reshape(n, group, -1, h * v)
    y = y.reshape(n, w.shape[0], h, v)
    return (y if b is None else y + b.astype(np.float64).reshape(-1, 1, 1)).astype(np.float32)


def step(node, inputs):
    auto = any(a.name == "auto_pad" and a.s != b"NOTSET" for a in node.attribute)
    if node.op_type == "Conv" and inputs[0].ndim == 4 and not auto:
        return [convolve(node, *inputs)]
    return q.step(node, inputs)


def scaled(node, inputs, sources):
    """A product of dequantised tensors: of the integers in `sources` and their scales. None if it is none."""
    if node.op_type not in ("Conv", "Gemm", "MatMul") or None in sources[:2] or sources[0][1].size > 1:
        return None
    (x, xs), (w, ws) = ((value.astype(np.float32), scale) for value, scale in sources[:2])
    product, bias = (xs * ws).astype(np.float32).reshape(-1), inputs[2] if len(inputs) > 2 else None
    is_integer = bias is not None and sources[2] is not None and np.array_equal(sources[2][1].reshape(-1), product)
    total = step(node, [x, w, sources[2][0].astype(np.float32)] if is_integer else [x, w])[0]
    row = (-1, *[1] * (x.ndim - 2)) if node.op_type == "Conv" else (-1,)
    total = total * product.reshape(row)
    return [total if bias is None or is_integer else total + bias.reshape(row)]


def random_feeds(model, rng):
    known = {i.name for i in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name not in known:
            shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            # Smooth ones, of some contrast: networks tell noise from noise badly.
            x = rng.standard_normal(shape)
            for axis in range(2, len(shape)):
                x = np.cumsum(x, axis)
            x -= x.mean(tuple(range(1, len(shape))), keepdims=True)
            feeds[value.name] = (x / x.std() * rng.uniform(0.5, 1.5)).astype(np.float32)
    return feeds


def run(model, feeds):
    options = sardonyx.SessionOptions()
    options.cache = False
    session = sardonyx.InferenceSession(model.SerializeToString(), options)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})))


def steps(args):
    model = onnx.load(args.model)
    feeds = dict(np.load(args.feeds)) if args.feeds else random_feeds(model, np.random.default_rng(0))
    alone = run(model, feeds)
    seen = {o.name for o in model.graph.output}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.output[0] not in seen:
            model.graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    answers = run(model, feeds)
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer} | feeds
    integers = {}  # of what is dequantised: integers less their zero point, and the scale
    total = differ = wrong = 0
    for node in model.graph.node:
        inputs = [known.get(i) for i in node.input]
        if node.op_type == "DequantizeLinear":
            zero = inputs[2] if len(inputs) > 2 else np.zeros((), inputs[0].dtype)
            whole = inputs[0].astype(np.int64) - q.along(zero, inputs[0], q.axis_of(node)).astype(np.int64)
            integers[node.output[0]] = whole, inputs[1]
        results = scaled(node, inputs, [integers.get(i) for i in node.input]) if args.integers else None
        results = results or step(node, inputs)
        known.update(zip(node.output, results))
        name = node.output[0]
        if node.op_type != "QuantizeLinear":
            continue
        other = answers[name] != results[0]
        exact = q.quotient(node, *inputs[:2])
        far = other & (np.abs(exact - np.floor(exact) - 0.5) > TIE)
        total, differ, wrong = total + other.size, differ + other.sum(), wrong + far.sum()
        if other.any():
            print(f"{name} ({node.name}): {other.sum()} of {other.size}, {far.sum()} no ties")
        known[name] = answers[name]
    same = all(np.array_equal(alone[name], answers[name]) for name in alone)
    print(
        f"{Path(args.model).stem}: {differ} of {total} integers differ ({differ / max(total, 1):.1e}), {wrong} of them are"
        f" no ties; without the others the model's results are {'the same' if same else 'OTHERS'}"
    )
    return int(wrong > 0 or not same)


def top1(args):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    exact = onnxruntime.InferenceSession(args.float, options, providers=["CPUExecutionProvider"])
    own = sardonyx.InferenceSession(args.model)
    model, rng = onnx.load(args.float), np.random.default_rng(1)
    all_feeds = [random_feeds(model, rng) for _ in range(args.inputs)]
    want, ours, theirs = (np.array([s.run(None, feeds)[0] for feeds in all_feeds]) for s in (exact, own, peer))
    mean = want.mean(0)
    for name, less in [("as they are", 0), ("less the float model's mean", mean)]:
        classes = (want - less).argmax(-1)
        equal = [int(((other - less).argmax(-1) == classes).sum()) for other in (ours, theirs)]
        print(
            f"{Path(args.model).stem}: results {name}, {classes.size} inputs of {np.unique(classes).size} classes: top-1 is"
            f" the float model's {equal[0]} times, with onnxruntime {equal[1]} times"
        )
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("steps")
    one.add_argument("model")
    one.add_argument("feeds", nargs="?")
    one.add_argument("--integers", action="store_true")
    one.set_defaults(run=steps)
    two = commands.add_parser("top1")
    two.add_argument("model")
    two.add_argument("float")
    two.add_argument("--inputs", type=int, default=100)
    two.set_defaults(run=top1)
    args = parser.parse_args()
    started = time.monotonic()
    status = args.run(args)
    print(f"{time.monotonic() - started:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
