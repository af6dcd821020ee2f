"""The host program's buffers: nothing is copied for each element, nothing outlives its iteration, no two share memory."""

import json
import subprocess
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest

import sardonyx as sdx

RUN = """
import json, resource, sys
import numpy as np, sardonyx as sdx
options = sdx.SessionOptions()
options.cache, options.intra_op_num_threads = False, 1
session = sdx.InferenceSession(sys.argv[1], options)
feeds = dict(np.load(sys.argv[2]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = session.run(None, feeds)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.savez(sys.argv[3], *results)
print(json.dumps((after - before) / 1024))
"""


def run_apart(model, feeds, folder):
    """The results of a run in a process of its own, and by how many MiB its memory grew."""
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "in.npz", **feeds)
    command = [sys.executable, "-c", RUN, *(str(folder / name) for name in ("m.onnx", "in.npz", "out.npz"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results = np.load(folder / "out.npz")
    return [results[name] for name in results.files], json.loads(done.stdout)


def check(model, feeds):
    """One session, run twice, against ONNX Runtime."""
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    session = sdx.InferenceSession(model)
    for _ in range(2):
        for got, want in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def floats(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


SCATTERS = {
    "elements": ("ScatterElements <axis = 0> (x, i, u)", np.repeat(np.arange(10), 1000).reshape(10, 1000), (10, 1000)),
    "add": ('ScatterElements <axis = 1, reduction = "add"> (x, i, u)', np.zeros((10, 1000), np.int64), (10, 1000)),
    "nd": ("ScatterND (x, i, u)", np.arange(10).reshape(10, 1), (10, 1000)),
}


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("name", SCATTERS)
def test_scatter_copies_once(model, tmp_path, name, open_sizes):
    text, indices, updates = SCATTERS[name]
    kinds = ["A,B", f"C,{indices.shape[1] if name == 'nd' else 'D'}", "E,F"] if open_sizes else [
        "1000,1000", ",".join(map(str, indices.shape)), ",".join(map(str, updates))]  # fmt: skip
    proto = model(f"m (float[{kinds[0]}] x, int64[{kinds[1]}] i, float[{kinds[2]}] u) => (float[P,Q] y) {{ y = {text} }}")
    feeds = {"x": floats(1000, 1000), "i": indices, "u": floats(*updates)}
    (got,), grown = run_apart(proto, feeds, tmp_path)
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert grown < 40  # the tensor takes 4 MiB


LOOPS = {
    # The state is made anew in each iteration.
    "state": ("float[N] s", "s2 = Add(s, o)", "float[M] s2"),
    # Two states change places.
    "swap": ("float[N] s, float[N] t", "s2 = Identity(t) t2 = Add(s, o)", "float[M] s2, float[M] t2"),
    # A branch makes it.
    "branch": (
        "float[N] s",
        "z = Mod(i, two) e = Cast<to = 9>(z)"
        " s2 = If (e) <then_branch = a () => (float[P] p) { p = Add(s, o) },"
        " else_branch = b () => (float[Q] q) { q = Identity(s) }>",
        "float[M] s2",
    ),
    # A loop in the loop makes it.
    "nested": (
        "float[N] s",
        "s2 = Loop (two, c, s) <body = n (int64 j, bool d, float[K] r) => (bool d2, float[L] r2)"
        " { d2 = Identity(d) r2 = Add(r, o) }>",
        "float[M] s2",
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_iterations_free_what_they_make(model, tmp_path, name):
    states, body, results = LOOPS[name]
    names = [part.split()[1] for part in states.split(", ")]
    outs = ", ".join(f"float[R{i}] y{i}" for i in range(len(names)))
    proto = model(
        f"m (int64 n, float[N] x) => ({outs}) <int64 two = {{2}}, float o = {{1}}> {{"
        f" {', '.join(f'y{i}' for i in range(len(names)))} = Loop (n, , {', '.join('x' for _ in names)})"
        f" <body = b (int64 i, bool c, {states}) => (bool c2, {results}) {{ c2 = Identity(c) {body} }}> }}"
    )
    for trips in (0, 1, 2, 5):
        check(proto, {"n": np.array(trips), "x": floats(7)})
    if name == "swap":
        return  # what changes its place is not freed before the run ends
    _, grown = run_apart(proto, {"n": np.array(2000), "x": floats(100_000)}, tmp_path)
    assert grown < 40  # the state takes 0.4 MiB


def test_results_do_not_change_once_made(model):
    feeds = {"a": floats(4, 4), "i": np.array([[1, 2]], np.int64)}
    check(model("m (float[4,4] a, int64[1,2] i) => (float[4,4] z, float[4,4] y) <float[1] u = {-99}>"
                " { y = Neg(a) z = ScatterND (y, i, u) }"), feeds)  # fmt: skip
    check(model("m (float[4,4] a, int64[1,2] i) => (float[4,4] z, float[16] y) <float[1] u = {-99}, int64[1] s = {16}>"
                " { t = Neg(a) y = Reshape(t, s) z = ScatterND (t, i, u) }"), feeds)  # fmt: skip
    check(model("m (float[4,4] a, int64[1,2] i) => (float[4,8] y, float[4,8] z) <float[1] u = {-99}>"
                " { b = Neg(a) y = Concat<axis = 1>(a, b) z = ScatterND (y, i, u) }"), feeds)  # fmt: skip
    scan = ("m (float[2] a, float[3,2] x) => (float[2] v, float[2] s, float[3,2] y) { v = Neg(a) s, y = Scan <num_scan_inputs = 1,"
            " body = b (float[2] p, float[2] q) => (float[2] r, float[2] t) { r = Add(p, q) t = Identity(r) }> (v, x) }")  # fmt: skip
    check(model(scan), {"a": floats(2), "x": floats(3, 2)})


JOINS = [
    # Slices that kernels write in place, and that others read afterwards.
    "(float[2,3] x) => (float[6,3] y, float[2,3] z) { a = Exp(x) b = Neg(x) c = Concat<axis = 0>(a, b, a) y = Relu(c) z = Softmax(b) }",
    # Dense blocks: each layer reads all before it.
    "(float[1,2,4] x) => (float[1,8,4] y) { a = Exp(x) c = Concat<axis = 1>(x, a) d = Softmax(c) e = Concat<axis = 1>(x, a, d) y = Relu(e) }",
    # Of concatenations.
    "(float[1,2] x) => (float[4,2] y) { a = Exp(x) b = Sin(x) c = Concat<axis = 0>(a, b) d = Concat<axis = 0>(c, b, x) y = Softmax(d) }",
    # The result itself, and one of its parts is a result.
    "(float[2,3] x) => (float[4,3] y, float[2,3] a) { a = Exp(x) y = Concat<axis = 0>(a, x) }",
    "(float[2,3] x) => (float[4,3] y, float[4,3] z) { a = Exp(x) y = Concat<axis = 0>(a, x) z = Identity(y) }",
    "(float[2,3] x) => (float[2,2,3] y) <int64[3] s = {2,2,3}> { a = Exp(x) c = Concat<axis = 0>(a, x) y = Reshape(c, s) }",
    # Written over by what reads it.
    "(float[2,3] x, int64[1,1] i, float[1,3] u) => (float[4,3] y, float[4,3] z)"
    " { a = Exp(x) c = Concat<axis = 0>(a, x) d = ScatterND(c, i, u) y = Relu(d) z = Softmax(c) }",
    # Padding.
    "(float[2,3] x) => (float[4,7] y, float[4,7] z) <int64[4] p = {1,2,1,2}> { a = Exp(x) y = Pad(a, p) b = Pad(x, p) z = Softmax(b) }",
    # Open sizes.
    "(float[N,3] x) => (float[M,3] y, float[N,3] z) { a = Exp(x) b = Sin(x) c = Concat<axis = 0>(a, b, x) y = Relu(c) z = Neg(b) }",
    "(float[N,3] x) => (float[M,7] y) <int64[4] p = {1,2,1,2}> { a = Exp(x) b = Pad(a, p) y = Softmax(b) }",
]


@pytest.mark.parametrize("text", JOINS)
def test_parts_of_a_whole(model, text):
    rows = 1 if "[1,2]" in text.split("=>")[0] else 2
    feeds = {"x": floats(1, 2, 4) if "[1,2,4]" in text.split("=>")[0] else floats(rows, 2 if rows == 1 else 3)}
    if "int64[1,1] i" in text:
        feeds |= {"i": np.array([[2]], np.int64), "u": floats(1, 3)}
    check(model("m " + text), feeds)


def test_joins_in_a_loop(model):
    check(
        model(
            "m (float[2,3] x) => (float[4,3] y, float[K,4,3] z) <int64 n = {3}> { a = Exp(x) b = Concat<axis = 0>(a, x)"
            " y, z = Loop (n, , b) <body = l (int64 i, bool c, float[4,3] s) => (bool c2, float[4,3] s2, float[4,3] t)"
            " { c2 = Identity(c) e = Tanh(s) f = Neg(x) g = Concat<axis = 0>(x, f) s2 = Add(e, g) t = Identity(g) }> }"
        ),
        {"x": floats(2, 3)},
    )


def test_weights_outlive_a_model_of_bytes():
    """What runs read of the bytes outlives them; the caller's memory is not counted on after the load."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50_000, 256), np.float32)  # 51 MB, which runs read as it is
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "i"], ["y"])],
        "m",
        [onnx.helper.make_tensor_value_info("i", 7, ["N"])],
        [onnx.helper.make_tensor_value_info("y", 1, ["N", 256])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)])
    proto.ir_version = 10
    for cached in (False, True, True):
        data = bytearray(proto.SerializeToString())
        options = sdx.SessionOptions()
        options.cache = cached
        session = sdx.InferenceSession(bytes(data), options)
        data[:] = bytes(len(data))
        i = np.array([0, 49_999, 7])
        np.testing.assert_array_equal(session.run(None, {"i": i})[0], table[i])
