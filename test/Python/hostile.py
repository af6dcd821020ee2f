"""Models that break each operator's rules, one rule at a time, and a pool that loads them.

    hostile.py [--part I/N] [--only OP] [--seconds S] [--keep FOLDER]

takes ONNX's own example of each operator and makes of it models with wrong, missing, empty and huge attributes, inputs of
other ranks, sizes and element types, and outputs that are not there. Loading such a model may succeed or be refused by an
exception of sardonyx with a sentence in ONNX's terms. Anything else is printed: a crash, a hang, another exception, words
that name the compiler's insides, and refusals that hide a fault of the compiler. Exit status 1 if there is any.
"""

import argparse
import copy
import math
import os
import re
import resource
import select
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

LEAK = re.compile(
    r"internal error|\bsdx[._]|\bscf\.|\bmemref\b|\btensor[.<]|\blinalg\b|\barith\.|\bllvm\b|\bmlir\b|\bSSA\b|null is_ok|\[(Shape|Type)Inference|"
    r"index out of range|vector::|basic_string|unordered_map|bad_alloc|_M_|' op "
)
BIG = (2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**63))

# Examples


def examples():
    """One valid model of each operator, the one with the fewest bytes, and one with the most attributes."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    best = {}
    for case in cases:
        if case.model is None or "_expanded" in case.name or len(case.model.graph.node) != 1:
            continue
        node = case.model.graph.node[0]
        key = (node.domain, node.op_type)
        feeds = [np.asarray(v) for v in case.data_sets[0][0] if isinstance(v, np.ndarray)]
        size = case.model.ByteSize() + sum(v.nbytes for v in feeds)
        entry = (size, case.name, case.model, case.data_sets[0][0])
        few, many = best.get(key, (entry, entry))
        if size < few[0]:
            few = entry
        if (-len(node.attribute), size) < (-len(many[2].graph.node[0].attribute), many[0]):
            many = entry
        best[key] = (few, many)
    for key in sorted(best):
        for _, name, model, feed in {entry[1]: entry for entry in best[key]}.values():
            yield name, model, feed


# Mutations: each yields (what was done, model)


def edited(model, what, edit):
    model = copy.deepcopy(model)
    try:
        edit(model, model.graph.node[0])
    except (IndexError, ValueError, TypeError):
        return
    yield what, model


def set_attribute(node, name, kind, value):
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    attribute = node.attribute.add(name=name, type=kind)
    if kind == AttributeProto.INT:
        attribute.i = value
    elif kind == AttributeProto.FLOAT:
        attribute.f = value
    elif kind == AttributeProto.STRING:
        attribute.s = value
    elif kind == AttributeProto.INTS:
        attribute.ints.extend(value)
    elif kind == AttributeProto.FLOATS:
        attribute.floats.extend(value)
    elif kind == AttributeProto.STRINGS:
        attribute.strings.extend(value)
    elif kind == AttributeProto.TENSOR:
        attribute.t.CopyFrom(value)


def tensor(dims, data_type=TensorProto.FLOAT, raw=b""):
    return TensorProto(dims=dims, data_type=data_type, raw_data=raw)


def attribute_values(kind, old):
    if kind == AttributeProto.INT:
        return [0, 1, -1, 2, 3, 7, -7, 64, *BIG]
    if kind == AttributeProto.FLOAT:
        return [0.0, -1.0, 1e38, math.inf, -math.inf, math.nan]
    if kind == AttributeProto.STRING:
        return [b"", b"%s%n", b"\xff\xfe", b"x" * 5000, b"NOTSET", b"VALID", b"SAME_UPPER", b"linear", b"cubic", b"i...j,->"]
    if kind == AttributeProto.INTS:
        length = len(old.ints) if old is not None else 2
        values = [[v] * n for v in (0, 1, -1, 3, 2**31, 2**62, 2**63 - 1, -(2**63)) for n in (1, length)]
        return [[], list(range(length + 1)), [0] * 70, [2] * max(length - 1, 0), *values]
    if kind == AttributeProto.FLOATS:
        return [[], [math.nan], [0.0] * 3, [math.inf] * 2]
    if kind == AttributeProto.STRINGS:
        return [[], [b""], [b"forward"] * 9, [b"\xff"]]
    if kind == AttributeProto.TENSOR:
        return [
            tensor([]), tensor([0]), tensor([1], raw=b"1234"), tensor([2], raw=bytes(8)), tensor([2**62], raw=b""), tensor([-1]),
            tensor([1], TensorProto.STRING), tensor([1], 0), tensor([1], 99), tensor([2**31, 2**31, 0]),
        ]  # fmt: skip
    return []


def mutate_attributes(model):
    node = model.graph.node[0]
    schema = onnx.defs.get_schema(node.op_type, node.domain)
    present = {a.name: a for a in node.attribute}
    for name in sorted({*schema.attributes, *present}):
        known = schema.attributes.get(name)
        old = present.get(name)
        kind = old.type if old is not None else int(known.type.value if hasattr(known.type, "value") else known.type)
        for i, value in enumerate(attribute_values(kind, old)):
            shown = value if not isinstance(value, TensorProto) else f"tensor {i}"
            yield from edited(model, f"{name} = {str(shown)[:40]}", lambda m, n: set_attribute(n, name, kind, value))
        for other, value in ((AttributeProto.INT, 1), (AttributeProto.STRING, b"x"), (AttributeProto.INTS, [1]), (AttributeProto.TENSOR, tensor([]))):
            if other != kind:
                yield from edited(model, f"{name} is of kind {other}", lambda m, n: set_attribute(n, name, other, value))
        if old is not None:
            yield from edited(model, f"{name} twice", lambda m, n: n.attribute.append(old))
            yield from edited(model, f"without {name}", lambda m, n: n.attribute.remove(old))
        if old is not None and kind == AttributeProto.GRAPH:
            yield from edited(model, f"empty graph {name}", lambda m, n: [a.g.Clear() for a in n.attribute if a.name == name])
            yield from edited(model, f"graph {name} without outputs", lambda m, n: [a.g.ClearField("output") for a in n.attribute])
            yield from edited(model, f"graph {name} without inputs", lambda m, n: [a.g.ClearField("input") for a in n.attribute])
            yield from edited(model, f"graph {name} without nodes", lambda m, n: [a.g.ClearField("node") for a in n.attribute])
    yield from edited(model, "unknown attribute", lambda m, n: set_attribute(n, "nonsense", AttributeProto.INT, 1))
    yield from edited(model, "an attribute of ours", lambda m, n: set_attribute(n, "onnx.names", AttributeProto.INT, 1))
    yield from edited(model, "segments", lambda m, n: set_attribute(n, "operandSegmentSizes", AttributeProto.INTS, [1, 2]))


def set_shape(value, sizes):
    """Sizes are numbers, names, or None for a shape that is not known."""
    shape = value.type.tensor_type
    shape.ClearField("shape")
    if sizes is None:
        return
    shape.shape.SetInParent()
    for size in sizes:
        dim = shape.shape.dim.add()
        if isinstance(size, str):
            dim.dim_param = size
        elif size is not None:
            dim.dim_value = size


def mutate_inputs(model, feed):
    names = list(model.graph.node[0].input)
    for i, value in enumerate(model.graph.input):
        if not value.type.HasField("tensor_type"):
            yield from edited(model, f"input {i} is a tensor", lambda m, n: m.graph.input[i].type.tensor_type.CopyFrom(
                helper.make_tensor_type_proto(1, [2]).tensor_type))
            continue
        old = [d.dim_value for d in value.type.tensor_type.shape.dim]
        shapes = [None, [], [0], [2], old + [2], old[1:], [1] + old, [0] * len(old), [f"d{k}" for k in range(len(old))],
                  [None] * len(old), ["n"] * len(old), [0] + ["n"] * (len(old) - 1), ["n"] + [0] * (len(old) - 1), [2**31] + old[1:],
                  [2**62] * len(old), [2**63 - 1] + old[1:], [-5] + old[1:], [1] * len(old), [1] * 70, old[::-1]]  # fmt: skip
        for k in range(len(old)):
            shapes += [old[:k] + [0] + old[k + 1 :], old[:k] + ["k"] + old[k + 1 :], old[:k] + [old[k] + 1] + old[k + 1 :]]
        for shape in shapes:
            yield from edited(model, f"input {i} is {str(shape)[:60]}", lambda m, n: set_shape(m.graph.input[i], shape))
        for data_type in (0, 1, 2, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17, 21, 23, 25, 27, 99, -1):
            def change(m, n):
                m.graph.input[i].type.tensor_type.elem_type = data_type
            yield from edited(model, f"input {i} of type {data_type}", change)
        data_type = value.type.tensor_type.elem_type
        constants = [tensor([], data_type), tensor([0], data_type), tensor([0] * max(len(old), 1), data_type), tensor([2, 0], data_type),
                     tensor([2**40], data_type)]
        if data_type in (TensorProto.INT64, TensorProto.INT32):
            dtype = helper.tensor_dtype_to_np_dtype(data_type)
            count = int(np.prod(old)) if old else 1
            for v in (0, 1, -1, 2, -(2**31), 2**31 - 1, *((2**62, -(2**63), 2**63 - 1) if dtype == np.int64 else ())):
                constants.append(numpy_helper.from_array(np.full(old, v, dtype)))
                constants.append(numpy_helper.from_array(np.full(max(count - 1, 0), v, dtype)))
                constants.append(numpy_helper.from_array(np.full(count + 1, v, dtype)))
        elif data_type == TensorProto.FLOAT:
            constants += [numpy_helper.from_array(np.full(old, v, np.float32)) for v in (0, -1, 1e30, math.nan, math.inf)]
        given = feed[i] if i < len(feed) else None
        if isinstance(given, np.ndarray) and given.dtype != object:
            try:
                constants.append(numpy_helper.from_array(given))
            except (TypeError, ValueError, KeyError):
                pass
        for k, constant in enumerate(constants):
            def fix(m, n):
                held = m.graph.initializer.add()
                held.CopyFrom(constant)
                held.name = value.name
                del m.graph.input[i]
            yield from edited(model, f"input {i} is constant {k} {list(constant.dims)}", fix)
    for i in range(len(names)):
        def leave_out(m, n):
            n.input[i] = ""
        yield from edited(model, f"without input {i}", leave_out)
        yield from edited(model, f"inputs up to {i}", lambda m, n: n.ClearField("input") or n.input.extend(names[:i]))
        for k in range(len(names)):
            def swap(m, n):
                n.input[i] = names[k]
            if names[k] != names[i]:
                yield from edited(model, f"input {i} is input {k}", swap)
    yield from edited(model, "inputs twice", lambda m, n: n.input.extend(names))
    yield from edited(model, "all inputs of any shape", lambda m, n: [set_shape(v, None) for v in m.graph.input if v.type.HasField("tensor_type")])

    def open_all(m, n):
        for k, v in enumerate(m.graph.input):
            if v.type.HasField("tensor_type"):
                set_shape(v, [f"i{k}d{d}" for d in range(len(v.type.tensor_type.shape.dim))])
    yield from edited(model, "all sizes open", open_all)


def mutate_outputs(model):
    node = model.graph.node[0]
    for i, value in enumerate(model.graph.output):
        for shape in (None, [], [0], [2**40], ["a"] * 9):
            yield from edited(model, f"output {i} is {shape}", lambda m, n: set_shape(m.graph.output[i], shape))
        for data_type in (0, 1, 7, 8, 9, 14, 99):
            def change(m, n):
                m.graph.output[i].type.tensor_type.elem_type = data_type
            yield from edited(model, f"output {i} of type {data_type}", change)
        yield from edited(model, f"output {i} without a type", lambda m, n: m.graph.output[i].ClearField("type"))
    yield from edited(model, "no output", lambda m, n: n.ClearField("output") or m.graph.ClearField("output"))
    yield from edited(model, "outputs twice", lambda m, n: n.output.extend(node.output))
    yield from edited(model, "more outputs", lambda m, n: n.output.extend([f"more{k}" for k in range(5)]))
    yield from edited(model, "no graph output", lambda m, n: m.graph.ClearField("output"))

    def rename(m, n):
        n.name, n.doc_string = "long 'name'\n\x01 " * 3000, "x"
        set_attribute(n, "nonsense", AttributeProto.INT, 1)
    yield from edited(model, "long name", rename)


def mutate_versions(model):
    for version in range(1, onnx.defs.onnx_opset_version() + 1, 3):
        def change(m, n):
            for imported in m.opset_import:
                if imported.domain in ("", "ai.onnx"):
                    imported.version = version
        yield from edited(model, f"opset {version}", change)


def mutations(only=None):
    """(name, bytes) of every mutated model, in an order that never changes."""
    for name, model, feed in examples():
        if only and model.graph.node[0].op_type != only:
            continue
        for part in (mutate_attributes(model), mutate_inputs(model, feed), mutate_outputs(model), mutate_versions(model)):
            for what, mutated in part:
                try:
                    yield f"{name}: {what}", mutated.SerializeToString()
                except ValueError:  # no protobuf holds it
                    continue


# The pool


def judge(data):
    """What is wrong with how a model is loaded; "" where nothing is."""
    import sardonyx

    options = sardonyx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    try:
        sardonyx.InferenceSession(data, options)
    except Exception as failure:
        text = str(failure)
        if not type(failure).__module__.startswith("sardonyx"):
            return f"{type(failure).__name__} {text}"
        if isinstance(failure, (sardonyx.InvalidArgument, sardonyx.NoSuchFile)) or type(failure) is sardonyx.Fail:
            return f"class {type(failure).__name__} {text}"
        if not text or len(text) > 5000 or not text.replace("\n", "").isprintable():
            return f"text {text[:200]!r}"
        if leak := LEAK.search(text):
            return f"leak {leak.group()!r}: {text}"
        if getattr(failure, "detail", ""):
            return f"internal {failure.detail}"
    return ""


def child(models, pipe, seconds):
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    for index, (_, data) in models:
        signal.alarm(seconds)
        os.write(pipe, f"{index}\t".encode())
        said = judge(data).replace("\n", " | ").encode(errors="replace")[:600]
        os.write(pipe, said + b"\n")


def load_all(models, seconds=20, workers=1):
    """Yields (name, data, verdict) for each of the models that is not handled as it must be."""
    lanes = [list(enumerate(models))[lane::workers] for lane in range(workers)]
    running = {}

    def start(lane):
        if not lane:
            return
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                child(lane, writer, seconds)
            finally:
                os._exit(0)
        os.close(writer)
        running[reader] = (pid, lane, b"")

    for lane in lanes:
        start(lane)
    while running:
        for reader in select.select(list(running), [], [])[0]:
            pid, lane, text = running[reader]
            read = os.read(reader, 1 << 16)
            *lines, text = (text + read).split(b"\n")
            running[reader] = (pid, lane, text)
            for line in lines:
                index, verdict = line.split(b"\t", 1)
                if verdict:
                    yield models[int(index)] + (verdict.decode(),)
            if read:
                continue
            os.close(reader)
            del running[reader]
            status = os.waitpid(pid, 0)[1]
            if text:
                index = int(text.split(b"\t")[0])
                what = signal.Signals(status & 127).name if status & 127 else f"exit {status}"
                yield models[index] + ("no answer" if what == "SIGALRM" else what,)
                start(lane[[i for i, _ in lane].index(index) + 1 :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", help="take each N-th model only, from the I-th")
    parser.add_argument("--only", help="an operator's name")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--keep", help="write the models at fault there")
    args = parser.parse_args()
    first, step = map(int, args.part.split("/"))
    start = time.monotonic()
    models = list(mutations(args.only))[first - 1 :: step]
    faults = 0
    for name, data, verdict in load_all(models, args.seconds):
        faults += 1
        print(f"{name}: {verdict}", flush=True)
        if args.keep:
            Path(args.keep).mkdir(parents=True, exist_ok=True)
            (Path(args.keep) / (re.sub(r"\W+", "_", name)[:100] + ".onnx")).write_bytes(data)
    print(f"{faults} faults in {len(models)} models, {time.monotonic() - start:.0f} s")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
