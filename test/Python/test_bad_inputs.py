"""Whatever a model, an array or a cache file holds: an exception of the right class, with a sentence."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import sardonyx as sdx

ADD = "m (float[N, 3] x, float[N, 3] b) => (float[N, 3] y) { y = Add(x, b) }"
f32 = np.float32


def sentence(failure):
    text = str(failure.value)
    assert text and len(text) < 2000 and "internal error" not in text and "Stack dump" not in text
    return text


@pytest.fixture
def load():
    options = sdx.SessionOptions()
    options.cache = False
    options.intra_op_num_threads = 1
    return lambda source: sdx.InferenceSession(source, options)


# Files


def test_files(tmp_path, load):
    with pytest.raises(sdx.NoSuchFile, match="nowhere.onnx"):
        load(tmp_path / "nowhere.onnx")
    with pytest.raises(sdx.NoSuchFile, match="folder"):
        load(tmp_path)
    os.mkfifo(tmp_path / "fifo.onnx")
    with pytest.raises(sdx.NoSuchFile, match="no regular file"):
        load(tmp_path / "fifo.onnx")
    with pytest.raises(sdx.NoSuchFile, match="no regular file"):
        load("/dev/zero")
    if os.getuid():
        (tmp_path / "secret.onnx").write_bytes(b"x")
        (tmp_path / "secret.onnx").chmod(0)
        with pytest.raises(sdx.NoSuchFile, match="Permission denied"):
            load(tmp_path / "secret.onnx")


def test_truncated_at_every_byte(model, load):
    data = model(ADD).SerializeToString()
    for end in range(len(data) - 1):
        try:
            load(data[:end])
        except sdx.Fail as failure:
            assert str(failure)


def test_names_that_are_no_text(model, load):
    for name in (b"in\xff\xfeput", b"\x80"):
        data = model("m (float[2] PLACE) => (float[2] y) { y = Relu(PLACE) }").SerializeToString()
        for wrong in (data.replace(b"PLACE", name.ljust(5, b"\xc0")[:5]), data.replace(b"Relu", b"R\xfflu")):
            with pytest.raises((sdx.Fail, sdx.NotImplemented)) as failure:
                load(wrong)
            assert sentence(failure).isprintable()


def test_sizes_beyond_any_memory(model, load):
    for size in (2**62, 2**63 - 1):
        with pytest.raises((sdx.Fail, sdx.NotImplemented)) as failure:
            load(model(f"m (float[1,3,1] x) => (float[A,B,C] y) <int64[3] s = {{3, 3, {size}}}> {{ y = Expand(x, s) }}"))
        sentence(failure)
    with pytest.raises((sdx.Fail, sdx.NotImplemented)) as failure:
        load(model("m (float[20] x, int64[1048576] s, int64[2] e) => (float[3] y) { y = Slice(x, s, e) }"))
    sentence(failure)


# Graphs


def test_functions_that_double(load):
    """Twenty-five functions, each calling the next twice: refused within a moment."""
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = []
    for i in range(25):
        inner = "Relu" if i == 24 else f"F{i + 1}"
        domain = "" if i == 24 else "f"
        nodes = [helper.make_node(inner, ["a"], ["t"], domain=domain), helper.make_node(inner, ["t"], ["b"], domain=domain)]
        functions.append(helper.make_function("f", f"F{i}", ["a"], ["b"], nodes, opset))
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("F0", ["x"], ["y"], domain="f")], "g", value[:1], value[1:])
    proto = helper.make_model(graph, opset_imports=opset, functions=functions, ir_version=9)
    start = time.monotonic()
    with pytest.raises(sdx.InvalidGraph, match="more than 250000 nodes"):
        load(proto)
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    "graph, what",
    [
        ("m (float[2] x) => (float[2] y) { y = Relu(z) z = Relu(y) }", "cycle"),
        ("m (float[2] x) => (float[2] y) { y = NoSuchOp(x) }", "node 'y'"),
        ("m (float[2] x) => (float[2] y) { y = Relu(ghost) }", "ghost"),
        ("m (float[2] x) => (float[2] y) { y = Relu(x, x) }", "Relu"),
        ("m (float[2] x) => (float[2] y) { y = Concat(x, x) }", "axis"),
        ("m (float[2] x) => (float[2] y) { y = Softmax <axis = 7> (x) }", "axis"),
        ("m (float[2] x) => (float[2] y) { y = Softmax <axis = \"one\"> (x) }", "axis"),
        ("m (float[2,3] x, float[4,5] z) => (float[2,5] y) { y = MatMul(x, z) }", "MatMul"),
        ("m (float[2] x) => (float[2] y) { y = Transpose <perm = [3]> (x) }", "Transpose|perm|axis"),
    ],
)
def test_wrong_graphs(model, load, graph, what):
    with pytest.raises((sdx.InvalidGraph, sdx.NotImplemented), match=what) as failure:
        load(model(graph))
    sentence(failure)


# Runs

RUNS = {
    "gather": ("float[K,4] x, int64[N] i", "float[N,4] y", "y = Gather(x, i)", [(5, 4), [0, 5]], "out of range"),
    "gather far": ("float[K,4] x, int64[N] i", "float[N,4] y", "y = Gather(x, i)", [(5, 4), [-(2**62)]], "out of range"),
    "gather elements": ("float[K,L] x, int64[M,N] i", "float[M,N] y", "y = GatherElements(x, i)",
                        [(5, 4), np.zeros((5, 90000), np.int64)], "do not fit"),
    "gather nd": ("float[K,L] x, int64[N,1] i", "float[N] y", "y = GatherND <batch_dims = 1> (x, i)",
                  [(5, 4), np.zeros((90000, 1), np.int64)], "batch sizes"),
    "scatter elements": ("float[K,L] x, int64[M,N] i, float[M,N] u", "float[K,L] y", "y = ScatterElements(x, i, u)",
                         [(5, 4), np.zeros((5, 90000), np.int64), (5, 90000)], "do not fit"),
    "scatter updates": ("float[K,64] x, int64[N,1] i, float[M,64] u", "float[K,64] y", "y = ScatterND(x, i, u)",
                        [(9, 64), np.zeros((900, 1), np.int64), (2, 64)], "do not fit"),
    "reshape": ("float[K,L] x, int64[2] s", "float[A,B] y", "y = Reshape(x, s)", [(1000, 64), [3, 3]], "as many elements"),
    "reshape up": ("float[K,L] x, int64[2] s", "float[A,B] y", "y = Reshape(x, s)", [(10, 4), [10000, 64]], "as many elements"),
    "reshape rest": ("float[K,L] x, int64[2] s", "float[A,B] y", "y = Reshape(x, s)", [(10, 4), [-1, 3]], "as many elements"),
    "reshape between": ("float[K,L] x, int64[2] s", "float[A,B] y", "z = Add(x, x) w = Reshape(z, s) y = Mul(w, w)",
                        [(10, 4), [6000, 64]], "as many elements"),
    "squeeze": ("float[N,C] x", "float[N] y", "a = Constant <value_ints = [1]> () y = Squeeze(x, a)", [(5, 7)], "size|elements"),
    "split": ("float[N,4] x, int64[2] s", "float[K,4] y, float[L,4] z", "y, z = Split(x, s)", [(10, 4), [600, 600]], "Split|size"),
    "expand": ("float[N,4] x, int64[2] s", "float[K,4] y", "y = Expand(x, s)", [(1000, 4), [7, 4]], "broadcast"),
    "concat": ("float[N,C] x, float[M,D] z", "float[N,E] y", "y = Concat <axis = 1> (x, z)", [(2, 30), (500, 5)], "Concat"),
    "batch norm": ("float[N,C,H] x, float[D] s", "float[N,C,H] y", "y = BatchNormalization(x, s, s, s, s)", [(1, 300, 9), (2,)], "number of channels: 2 and 300"),
    "instance norm": ("float[N,C,H] x, float[D] s", "float[N,C,H] y", "y = InstanceNormalization(x, s, s)", [(1, 300, 9), (2,)], "number of channels: 2 and 300"),
    "one hot": ("int64[N] i, int64 d, float[K] v", "float[N,L] y", "y = OneHot(i, d, v)",
                [[0, 1], np.array(4), np.ones(1, f32)], "input 'values' has another length"),
    "dequantize": ("uint8[N,C] x, float[K] s", "float[N,C] y", "y = DequantizeLinear(x, s)",
                   [np.ones((3, 4000), np.uint8), (2,)], "fit"),
    "resize": ("float[1,1,H,W] x, int64[4] s", "float[a,b,c,d] y", "y = Resize <mode = \"linear\"> (x, , , s)",
               [(1, 1, 0, 8), [1, 1, 3, 8]], "empty"),
    "pad": ("float[K,L] x, int64[4] s", "float[A,B] y", "y = Pad <mode = \"reflect\"> (x, s)", [(0, 4), [2, 0, 2, 0]], "repeat"),
    "huge": ("int64[2] s", "float[A,B] y", "y = ConstantOfShape(s)", [[2**40, 2**40]], "impossible"),
    "huge between": ("int64[1] s", "float y", "z = ConstantOfShape(s) y = ReduceSum <keepdims = 0> (z)", [[2**50]], "memory|shape"),
    "negative": ("int64[2] s", "float[A,B] y", "y = ConstantOfShape(s)", [[-5, -5]], "shape \\[-5, -5\\] is impossible"),
    "matmul": ("float[K,L] x, float[M,N] z", "float[K,N] y", "y = MatMul(x, z)", [(5, 4), (500, 3)], "MatMul"),
    "conv": ("float[N,C,H,W] x, float[O,D,3,3] w", "float[N,O,A,B] y", "y = Conv(x, w)", [(1, 3, 8, 8), (4, 700, 3, 3)], "Conv"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_refused(model, load, name):
    """In a child: memory that was written past its end would end the tests' own process."""
    inputs, outputs, body, values, what = RUNS[name]
    session_model = model(f"m ({inputs}) => ({outputs}) {{ {body} }}")
    arrays = []
    for value in values:
        arrays.append(np.ones(value, f32) if isinstance(value, tuple) else np.asarray(value))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "ran"
        try:
            session = load(session_model)
            feeds = {arg.name: array for arg, array in zip(session.get_inputs(), arrays)}
            session.run(None, feeds)
        except sdx.Fail as failure:
            text = str(failure)
        except BaseException as failure:
            text = repr(failure)
        finally:
            os.write(writer, text.encode()[:4000])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    assert os.waitpid(child, 0)[1] == 0
    assert re.search(what, text), text


# Operators of x that is as wide as their weights say, and what they say of one that is wider.
WIDTHS = {
    "LSTM": ("W = Constant <value = float[1,8,4] {WEIGHTS}> () R = Constant <value = float[1,8,2] {WEIGHTS}> () "
             "y = LSTM <hidden_size = 2> (x, W, R)", (3, 2, 4), "W takes another size than the input has: 4 and 5"),
    "Scaler": ("y = ai.onnx.ml.Scaler <scale = [1.0, 2.0, 3.0, 4.0], offset = [0.0]> (x)", (2, 4),
               "attribute 'scale' is not as long as there are features: 5 and 4"),
    "LinearRegressor": ("y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0, 4.0]> (x)", (2, 4),
                        "there are not as many coefficients as features: 5 and 4"),
    "SVMRegressor": ('y = ai.onnx.ml.SVMRegressor <coefficients = [1.0], support_vectors = [1.0, 2.0, 3.0, 4.0], n_supports = 1, rho = [0.0], '
                     'kernel_type = "LINEAR"> (x)', (2, 4), "the support vectors have not as many features as the input: 5 and 4"),
    "Einsum": ('w = Constant <value = float[4,1] {WEIGHTS}> () y = Einsum <equation = "ij,jk->ik"> (x, w)', (2, 4),
               "sizes of a label cannot be broadcast: 5 and 4"),
    "PRelu": ("w = Constant <value = float[4] {WEIGHTS}> () y = PRelu (x, w)", (2, 4), "(the slope does not fit X|cannot be broadcast)"),
    "MatMulNBits": ("b = Constant <value = uint8[1,1,16] {WEIGHTS}> () s = Constant <value = float[1] {1}> () "
                    "y = com.microsoft.MatMulNBits <K = 32, N = 1, bits = 4, block_size = 32> (x, b, s)", (2, 32), "A has not as many columns as K says: 33 and 32"),
    "RotaryEmbedding": ("c = Constant <value = float[2,3,2] {WEIGHTS}> () y = RotaryEmbedding (x, c, c)", (2, 1, 3, 4), "a cache does not fit the input: 2 and 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDTHS)
def test_inputs_of_another_width(load, name):
    """A fault of the model where it says so, of the run where inputs tell: never something that is not supported."""
    body, right, says = WIDTHS[name]
    wrong = (*right[:-1], right[-1] + (2 if name == "RotaryEmbedding" else 1))

    def fill(found):
        count = int(np.prod([int(size) for size in found[1].split(",")]))
        return f"[{found[1]}] {{{', '.join(['0'] * count)}}}"

    body = re.sub(r"\[([\d,]*)\] \{WEIGHTS\}", fill, body)
    head = '<ir_version: 9, opset_import: ["" : 23, "ai.onnx.ml" : 3, "com.microsoft" : 1]>'

    def model(shape):
        made = parser.parse_model(f"{head} m (float{list(shape)} x) => (float y) {{ {body} }}")
        made.graph.output[0].type.tensor_type.ClearField("shape")
        return made

    def unranked(shape):
        made = model(shape)
        made.graph.input[0].type.tensor_type.ClearField("shape")
        return made

    load(unranked(right)).run(None, {"x": np.ones(right, f32)})
    with pytest.raises(sdx.InvalidGraph, match=f"{name}.*{says}") as failure:
        load(model(wrong))
    sentence(failure)
    with pytest.raises((sdx.Fail, sdx.InvalidArgument), match=f"{name}.*{says.partition(':')[0]}") as failure:
        load(unranked(right)).run(None, {"x": np.ones(wrong, f32)})
    sentence(failure)


def test_inputs(model, load):
    session = load(model(ADD))
    good = {"x": np.ones((2, 3), f32), "b": np.ones((2, 3), f32)}
    for wrong in (
        good | {"x": np.ones((2, 3, 1), f32)},
        good | {"x": np.ones((2, 3), np.int64)},
        good | {"x": np.array([["a", "b", "c"]] * 2)},
        good | {"x": np.array([[object()] * 3] * 2)},
        good | {"x": np.zeros((2, 3), np.dtype([("a", "f4")]))},
        good | {"x": np.zeros((2, 3), "M8[s]")},
        good | {"x": None},
        good | {"x": [[1, 2, 3], [4]]},
        good | {"z": np.ones(1, f32)},
        {"x": good["x"]},
        {},
    ):
        with pytest.raises(sdx.InvalidArgument) as failure:
            session.run(None, wrong)
        sentence(failure)
    with pytest.raises(sdx.Fail, match="cannot be broadcast.*dimension 'N' has different sizes") as failure:
        session.run(None, good | {"x": np.ones((3, 3), f32)})
    sentence(failure)
    for wrong in (np.zeros((2, 3), np.float64), np.zeros((2, 3), np.int32).T, np.frombuffer(bytes(24), f32).reshape(2, 3)):
        with pytest.raises(sdx.InvalidArgument) as failure:
            session.run(None, good, out={"y": wrong})
        sentence(failure)
    np.testing.assert_array_equal(session.run(None, good)[0], 2)


# The cache


def test_damaged_cache_files(model, tmp_path):
    options = sdx.SessionOptions()
    options.cache_dir = tmp_path / "c"
    sdx.InferenceSession(model(ADD), options)
    (file,) = options.cache_dir.iterdir()
    good, rng = file.read_bytes(), random.Random(1)
    damaged = [b"", b"x", good[:20], good[:-1], good + b"x", bytes(len(good)), good[:40] + bytes(100) + good[140:]]
    for _ in range(10):
        at = rng.randrange(len(good))
        damaged.append(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    for data in damaged:
        file.write_bytes(data)
        session = sdx.InferenceSession(model(ADD), options)
        assert not session.from_cache
        np.testing.assert_array_equal(session.run(None, {"x": np.ones((1, 3), f32), "b": np.ones((1, 3), f32)})[0], 2)


def test_cache_folders_that_cannot_be(model, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        options = sdx.SessionOptions()
        options.cache_dir = folder
        assert not sdx.InferenceSession(model(ADD), options).from_cache


def test_processes_share_a_cache(model, tmp_path):
    onnx.save(model(ADD), tmp_path / "m.onnx")
    code = (
        "import sys, numpy as np, sardonyx as sdx\n"
        "x = np.ones((2, 3), np.float32)\n"
        "for _ in range(5): assert (sdx.InferenceSession(sys.argv[1]).run(None, {'x': x, 'b': x})[0] == 2).all()"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m.onnx")]) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4


# Damage at random

SEEDS = (
    ADD,
    "m (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,8,8] y) { y = Conv <pads = [1,1,1,1]> (x, w) }",
    "m (float[2,3] x) => (float[6] y) { s = Constant <value_ints = [-1]> () y = Reshape(x, s) }",
    "m (bool c, float[3] x) => (float[3] y) { y = If(c) <then_branch = a () => (float[3] p) { p = Neg(x) },"
    " else_branch = b () => (float[3] q) { q = Abs(x) }> }",
)


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randrange(1, 6)]
        else:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
    return bytes(data)


@pytest.mark.parametrize("graph", SEEDS)
def test_mutations(model, load, graph):
    data, rng = model(graph).SerializeToString(), random.Random(graph)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(30)
            for _ in range(100):
                try:
                    load(mutate(data, rng))
                except (sdx.Fail, sdx.NotImplemented, sdx.InvalidArgument, sdx.NoSuchFile):
                    pass
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_initial_state_of_another_batch(load, op, gates):
    """Refused when the model says it, and by the run where only that knows."""
    text = """<ir_version: 10, opset_import: ["" : 15]>
    m (float[2, %s, 1] x, float[1, %d, 1] w, float[1, %d, 5] r, float[1, 1, 5] h) => (float[s, d, b, k] y) {
        y = %s <hidden_size = 5> (x, w, r, "", "", h)
    }"""
    feeds = {n: np.ones(s, f32) for n, s in (("w", (1, 5 * gates, 1)), ("r", (1, 5 * gates, 5)), ("h", (1, 1, 5)))}

    def source(batch):
        return onnx.parser.parse_model(text % (batch, 5 * gates, 5 * gates, op)).SerializeToString()

    with pytest.raises(sdx.InvalidGraph, match="wrong batch size: 1 and 3"):
        load(source("3"))
    session = load(source("N"))
    assert session.run(None, {**feeds, "x": np.ones((2, 1, 1), f32)})[0].shape == (2, 1, 1, 5)
    with pytest.raises(sdx.Fail, match="wrong batch size: 1 and 3"):
        session.run(None, {**feeds, "x": np.ones((2, 3, 1), f32)})
