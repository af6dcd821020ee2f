"""Writes damaged and hostile models, one a function, for the importer's tests.

usage: hostile.py DIR     writes DIR/<name>.onnx for each of them
"""

import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def info(name, shape=(4,), elem=FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, initializers=(), inputs=("x",), outputs=("y",), functions=(), opset=17):
    graph = helper.make_graph(
        nodes,
        "g",
        [info(i) for i in inputs],
        [info(o) for o in outputs],
        initializers,
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("local", 1)] * bool(functions)
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)


def add_weight(tensor):
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


def tensor(dims, raw=None, data_type=FLOAT):
    t = TensorProto(name="w", data_type=data_type, dims=dims)
    if raw is not None:
        t.raw_data = raw
    return t


def external(location, offset=None, length=None, dims=(4,)):
    t = tensor(dims)
    t.data_location = TensorProto.EXTERNAL
    entries = dict(location=location, offset=offset, length=length)
    for key, value in entries.items():
        if value is not None:
            t.external_data.add(key=key, value=str(value))
    return add_weight(t)


def relu(a, b, name=""):
    return helper.make_node("Relu", [a], [b], name=name)


def function(name, nodes, inputs=("a",), outputs=("b",)):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, inputs, outputs, nodes, imports)


def call(name, a, b):
    return helper.make_node(name, [a], [b], domain="local")


def doubling():
    """Each function calls the next one twice."""
    functions = [
        function(f"F{i}", [call(f"F{i + 1}", "a", "t"), call(f"F{i + 1}", "t", "b")])
        for i in range(60)
    ]
    functions.append(function("F60", [relu("a", "b")]))
    return model([call("F0", "x", "y")], functions=functions)


def field(number, content):
    """A length-delimited field in protobuf's wire format."""
    size, length = len(content), b""
    while True:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            return bytes([number << 3 | 2]) + length + content


def nested(depth):
    """If in If in If; written by hand, as protobuf refuses to build it."""
    graph = helper.make_graph([relu("x", "y")], "g", [], [info("y")]).SerializeToString()
    for _ in range(depth):
        branch = lambda name: field(1, name) + field(6, graph) + b"\xa0\x01\x05"
        node = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, branch(b"then_branch"))
        graph = field(1, node) + field(2, b"g") + field(12, info("y").SerializeToString())
    shell = helper.make_model(
        helper.make_graph([], "g", [info("x"), info("c", (), TensorProto.BOOL)], []),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    # A second graph field is merged with the first.
    return shell.SerializeToString() + field(7, graph)


def chain(length):
    """Functions that call each other, one deeper each."""
    functions = [function(f"F{i}", [call(f"F{i + 1}", "a", "b")]) for i in range(length)]
    functions.append(function(f"F{length}", [relu("a", "b")]))
    return model([call("F0", "x", "y")], functions=functions)


def write(directory):
    def save(name, content):
        if not isinstance(content, bytes):
            content = content.SerializeToString()
        with open(os.path.join(directory, name + ".onnx"), "wb") as file:
            file.write(content)

    def link(name, target):
        path = os.path.join(directory, name)
        if not os.path.islink(path):
            os.symlink(target, path)

    good = add_weight(numpy_helper.from_array(np.zeros(4, np.float32), "w"))
    with open(os.path.join(directory, "weights.bin"), "wb") as file:
        file.write(bytes(64))
    outside = directory.rstrip("/") + ".outside"
    os.makedirs(outside, exist_ok=True)
    with open(os.path.join(outside, "secret.bin"), "wb") as file:
        file.write(bytes(64))

    # Files that are no models.
    save("empty", b"")
    save("garbage", bytes(range(256)) * 4)
    save("truncated", add_weight(tensor([400], bytes(1600))).SerializeToString()[:-600])
    save("png", b"\x89PNG\r\n\x1a\n" + bytes(100))
    save("no-graph", helper.make_model(helper.make_graph([], "", [], [])).SerializeToString()[:4])
    os.makedirs(os.path.join(directory, "directory.onnx"), exist_ok=True)
    future = add_weight(numpy_helper.from_array(np.zeros(4, np.float32), "w"))
    future.ir_version = 99
    save("future-ir", future)
    save("future-opset", model([relu("x", "y")], opset=99))

    # External data.
    save("external-good", external("weights.bin", 16, 16))
    save("external-parent", external("../" + os.path.basename(outside) + "/secret.bin"))
    save("external-absolute", external("/etc/passwd"))
    save("external-empty", external(""))
    save("external-missing", external("nowhere.bin"))
    link("link.bin", os.path.join(outside, "secret.bin"))
    save("external-link", external("link.bin"))
    link("linked-dir", outside)
    save("external-linked-dir", external("linked-dir/secret.bin"))
    link("device.bin", "/dev/zero")
    save("external-device", external("device.bin"))
    os.makedirs(os.path.join(directory, "folder"), exist_ok=True)
    save("external-folder", external("folder"))
    fifo = os.path.join(directory, "fifo.bin")
    if not os.path.exists(fifo):
        os.mkfifo(fifo)
    save("external-fifo", external("fifo.bin"))
    save("external-offset", external("weights.bin", 1 << 40))
    save("external-length", external("weights.bin", 56, 16))
    save("external-negative", external("weights.bin", -8))
    save("external-huge", external("weights.bin", (1 << 64) - 8, 16))
    save("external-size", external("weights.bin", 0, 12))

    # Tensors.
    save("raw-size", add_weight(tensor([4], bytes(15))))
    save("raw-size-large", add_weight(tensor([4000], bytes(15999))))
    save("typed-size", add_weight(TensorProto(name="w", data_type=FLOAT, dims=[4], float_data=[1.0])))
    save("negative-dim", add_weight(tensor([-4], bytes(16))))
    save("overflow-dims", add_weight(tensor([1 << 32, 1 << 32, 1 << 32], bytes(16))))
    save("overflow-bytes", add_weight(tensor([1 << 62], bytes(16))))
    save("unknown-dtype", add_weight(tensor([4], bytes(16), 77)))
    reserved = add_weight(tensor([4]))
    reserved.graph.initializer[0].external_data.add(key="sdx.cut", value="0")
    save("reserved-key", reserved)

    # Graphs.
    save("cycle", model([relu("b", "a"), relu("a", "b"), relu("b", "y")]))
    save("duplicate", model([relu("x", "y"), relu("x", "y", "second")]))
    save("duplicate-input", model([relu("x", "y")], inputs=("x", "x")))
    save("missing-input", model([relu("ghost", "y", "n1")]))
    text = model([relu("WRONG", "y")]).SerializeToString()
    save("no-text", text.replace(b"WRONG", b"\xffa\nb\xc0"))
    save("missing-output", model([relu("x", "z")]))
    save("no-attribute", model([helper.make_node("Concat", ["x", "x"], ["y"], name="c")]))
    save("attribute-type", model([helper.make_node("Concat", ["x", "x"], ["y"], name="c", axis=1.5)]))
    save("too-new", model([helper.make_node("Gelu", ["x"], ["y"], name="g")], opset=13))
    save("nested-deep", nested(60))
    negative = model([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("GatherND", ["x", "a"], ["y"])])
    negative.graph.value_info.append(info("a", (2, -(1 << 31))))
    save("negative-size", negative)
    save("unused-output", model([helper.make_node("LSTM", ["x"], ["", "y"])]))
    save("upgraded-cycle", model([helper.make_node("LogSoftmax", ["y"], ["y"])], opset=6))
    save("map-of-nothing", model([helper.make_node("SequenceMap", [], ["y"], body=model([relu("x", "y")]).graph)]))

    # Functions.
    save("recursion", model([call("F", "x", "y")], functions=[function("F", [call("F", "a", "b")])]))
    mutual = [function("F", [call("G", "a", "b")]), function("G", [call("F", "a", "b")])]
    save("mutual-recursion", model([call("F", "x", "y")], functions=mutual))
    save("doubling", doubling())
    save("chain", chain(1000))
    save("good", good)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write(sys.argv[1])
