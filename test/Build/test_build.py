"""Models as files: what they answer, what they need, and what is refused."""

import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.backend.test.runner import _normalize_tensor

import sardonyx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ahead  # noqa: E402

PASSING = (HERE.parent / "Conformance" / "passing.txt").read_text().split()
# Their libraries are no part of a built file, which test_refused looks at.
SESSIONS_ONLY = ("test_regex_full_match", "test_image_decoder")
FIRST = """<ir_version: 10, opset_import: ["" : 21]> first (float[n, 4] x) => (float[n, 8] y) {
    w = Constant <value = float[4, 8] {%s}> ()
    p = MatMul (x, w)
    y = Relu (p)
}""" % ", ".join(str(k + j) for k in range(4) for j in range(8))
SECOND = """<ir_version: 10, opset_import: ["" : 21]> second (string[2] t) => (string[2] joined) {
    mark = Constant <value = string {"!"}> ()
    joined = StringConcat (t, mark)
}"""
SEQUENCE = """<ir_version: 10, opset_import: ["" : 21]> m (seq(float[n]) s, float[k] x) => (seq(float[k]) longer, int64 count) {
    longer = SequenceInsert (s, x)
    count = SequenceLength (longer)
}"""

ENDLESS = """<ir_version: 10, opset_import: ["" : 21]> m (float x) => (float y) {
    yes = Constant <value = bool {1}> ()
    most = Constant <value = int64 {9223372036854775807}> ()
    y = Loop (most, yes, x) <body = b (int64 i, bool c, float a) => (bool co, float ao) { co = Identity (c) ao = Add (a, x) }>
}"""


def graph(text):
    return parser.parse_model(text)


def build(text, output, **options):
    return sardonyx.build(graph(text) if isinstance(text, str) else text, output, **options)


def needed(path):
    """The libraries that a file asks for."""
    shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].rstrip("]") for line in shown.splitlines() if "(NEEDED)" in line}


def libraries():
    """What is called the C library: also its loader, whose job thread-local memory is."""
    return {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.fixture
def cc():
    path = shutil.which("cc") or shutil.which("clang-22")
    if path is None:
        pytest.skip("there is no C compiler")
    return path


def compile_and_run(cc, folder, source, *inputs, flags=()):
    program = folder / "program"
    command = [cc, *flags, "-Wall", "-Wextra", "-Werror", f"-I{folder}", str(HERE / source)]
    subprocess.run([*command, *map(str, inputs), "-lm", "-lpthread", "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=60)


def test_library(tmp_path):
    files = build(FIRST, tmp_path / "first.so")
    assert [os.path.basename(file) for file in files] == ["first.so", "first.h", "first.hpp"]
    assert needed(tmp_path / "first.so") <= libraries()
    model = sardonyx.load(tmp_path / "first.so")
    session = sardonyx.InferenceSession(graph(FIRST))
    assert [(a.name, a.type, a.shape) for a in model.get_inputs()] == [("x", "tensor(float)", ["n", 4])]
    for n in (0, 1, 7, 100):
        feeds = {"x": np.random.default_rng(n).standard_normal((n, 4), np.float32)}
        for ours, theirs in zip(model.run(None, feeds), session.run(None, feeds)):
            np.testing.assert_array_equal(ours, theirs)
    out = np.empty((3, 8), np.float32)
    (given,) = model.run(["y"], {"x": np.ones((3, 4), np.float32)}, out={"y": out})
    assert given is out and out[0, 1] == 10
    with pytest.raises(sardonyx.InvalidArgument, match="n, 4"):
        model.run(None, {"x": np.ones((3, 5), np.float32)})
    options = sardonyx.RunOptions()
    options.terminate = True
    with pytest.raises(sardonyx.Fail, match="terminated"):
        model.run(None, feeds, options)
    assert model.get_modelmeta().graph_name == "first"
    assert model.run_async(None, feeds).result()[0].shape == (100, 8)


def test_needs_no_compiler(tmp_path):
    """Neither LLVM nor MLIR is in a process that only loads."""
    build(FIRST, tmp_path / "first.so")
    code = f"""if True:
        import sys
        import numpy, sardonyx
        model = sardonyx.load({str(tmp_path / "first.so")!r})
        assert model.run(None, {{"x": numpy.ones((1, 4), numpy.float32)}})[0][0, 0] == 6
        maps = open("/proc/self/maps").read()
        assert "libLLVM" not in maps and "libMLIR" not in maps, maps
        assert "sardonyx._sardonyx" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_models_in_one_c_program(tmp_path, cc):
    for form in ("a", "o"):
        build(FIRST, tmp_path / f"first.{form}")
        build(SECOND, tmp_path / f"second.{form}")
        done = compile_and_run(cc, tmp_path, "two_models.c", tmp_path / f"first.{form}", tmp_path / f"second.{form}",
                               flags=["-std=gnu99"])  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "first: 0 wrong\n"), done


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("name", ["first.so", "first.o", "first.a", "first"])
def test_one_thread(name, threads, tmp_path):
    """What is built for one thread cannot start any, even if its caller asks for more."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    build(FIRST, tmp_path / name, options=options)
    symbols = ["nm", "--undefined-only", *([] if name.endswith((".o", ".a")) else ["-D"]), tmp_path / name]
    shown = subprocess.run(symbols, capture_output=True, text=True, check=True).stdout
    assert ("pthread_create" in shown) == (threads == 0)
    x = np.arange(40000, dtype=np.float32).reshape(10000, 4) / 40000
    if name == "first.so":
        (y,) = sardonyx.load(tmp_path / name, threads=4).run(None, {"x": x})
        weights = np.add.outer(np.arange(4), np.arange(8)).astype(np.float32)
        np.testing.assert_allclose(y, x @ weights, rtol=1e-5)


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_sanitizers_find_nothing(tmp_path, sanitizer):
    """What a sanitizer sees of files by the functions that it replaces: memory, leaks, locks, threads."""
    clang = shutil.which("clang-22")
    if clang is None:
        pytest.skip("there is no clang-22")
    for name, text in (("first", FIRST), ("second", SECOND)):
        build(text, tmp_path / f"{name}.a")
    done = compile_and_run(clang, tmp_path, "two_models.c", tmp_path / "first.a", tmp_path / "second.a",
                           flags=["-std=gnu99", "-g", f"-fsanitize={sanitizer}"])  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "first: 0 wrong\n", ""), done


def test_header_for_cpp(tmp_path):
    cpp = shutil.which("c++") or shutil.which("clang++-22")
    if cpp is None:
        pytest.skip("there is no C++ compiler")
    build(FIRST, tmp_path / "first.a")
    done = compile_and_run(cpp, tmp_path, "one_model.cpp", tmp_path / "first.a", flags=["-std=c++17"])
    assert done.returncode == 0
    first, second = done.stdout.splitlines()
    assert first == "24 10" and second


def test_names_that_c_does_not_have(tmp_path, cc):
    """Of models, values and dimensions, and in comments."""
    model = graph("""<ir_version: 10, opset_import: ["" : 21]>
        m (float[n, k] x, float[n] other) => (float[n, k] y) { y = Identity (x) }""")
    model.graph.name, model.graph.doc_string = 'evil */ #error "', "two\n*/ lines; /* \\"
    names = {"x": "int", "other": 'a b/*c\n"', "y": "int_"}
    for value in [*model.graph.input, *model.graph.output]:
        value.name = names[value.name]
    model.graph.node[0].input[0], model.graph.node[0].output[0] = "int", "int_"
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[1].dim_param = "*/ x"
    for file, name in (("odd name-1", "odd_name_1"), ("1", "model_1"), ("main", "main_model"), ("linux", "linux_model"),
                       ("printf", "printf_model")):  # fmt: skip
        build(model, tmp_path / f"{file}.a")
        (tmp_path / "use.c").write_text(
            f'#include "{file}.h"\nint main(void) {{ sdx_error *error = NULL; return {name}_open(&error) == NULL; }}\n'
        )
        command = [cc, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", tmp_path / "use.c"]
        subprocess.run([*command, tmp_path / f"{file}.a", "-lm", "-lpthread", "-o", tmp_path / "use"], check=True)
        assert subprocess.run([tmp_path / "use"]).returncode == 0


def test_program(tmp_path):
    build(FIRST, tmp_path / "first")
    assert needed(tmp_path / "first") <= libraries()
    x = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [tmp_path / "first", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y: float [5, 8]")
    (expected,) = sardonyx.InferenceSession(graph(FIRST)).run(None, {"x": x})
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), expected)
    for arguments, sentence in (
        (["--input", "z=x.npy"], "the model has no input 'z'; it has x"),
        (["--input", f"x={HERE / 'test_build.py'}"], "is no .npy file"),
        (["--dim", "n=many"], "takes a number"),
        (["--what", "ever"], "Runs the model 'first'"),
    ):
        done = subprocess.run([tmp_path / "first", *arguments], capture_output=True, text=True)
        assert done.returncode and sentence in done.stderr, done


def test_static_program(tmp_path):
    try:
        build(FIRST, tmp_path / "first", static=True)
    except sardonyx.NoSuchFile as missing:
        assert "libc6-dev" in str(missing)
        pytest.skip("there is no static C library")
    shown = subprocess.run(["readelf", "-l", tmp_path / "first"], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in shown and "DYNAMIC" not in shown
    done = subprocess.run([tmp_path / "first", "--dim", "n=2"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y: float [2, 8] 0 0")


def test_strings_and_sequences(tmp_path):
    build(SECOND, tmp_path / "second.so")
    model = sardonyx.load(tmp_path / "second.so")
    (joined,) = model.run(None, {"t": np.array(["a", "\u00e4"])})
    assert joined.tolist() == ["a!", "\u00e4!"]
    build(SEQUENCE, tmp_path / "sequence.so")
    model = sardonyx.load(tmp_path / "sequence.so")
    x = np.arange(3, dtype=np.float32)
    longer, count = model.run(None, {"s": [x, x], "x": x + 1})
    assert count == 3 and [v.tolist() for v in longer] == [[0, 1, 2], [0, 1, 2], [1, 2, 3]]


def test_runs_end_when_they_are_told(tmp_path):
    build(ENDLESS, tmp_path / "m.so")
    model, x = sardonyx.load(tmp_path / "m.so"), np.float32(1)
    options = sardonyx.RunOptions()
    options.timeout = 0.2
    with pytest.raises(sardonyx.Fail, match="longer than its limit"):
        model.run(None, {"x": x}, options)
    options = sardonyx.RunOptions()
    threading.Timer(0.2, setattr, (options, "terminate", True)).start()
    with pytest.raises(sardonyx.Fail, match="terminated"):
        model.run(None, {"x": x}, options)
    options = sardonyx.RunOptions()
    options.max_trip_count = 100
    with pytest.raises(sardonyx.Fail, match="node 'y'.*100 trips"):
        model.run(None, {"x": x}, options)


def test_runs_in_a_forked_child(tmp_path):
    build(FIRST, tmp_path / "m.so")
    model, x = sardonyx.load(tmp_path / "m.so", threads=2), np.ones((5000, 4), np.float32)
    (expected,) = model.run(None, {"x": x})
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(model.run(None, {"x": x})[0], expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_weights_beside(tmp_path):
    rng = np.random.default_rng(0)
    model = graph(FIRST)
    del model.graph.node[0]
    weights = rng.standard_normal((4, 8), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    (tmp_path / "here").mkdir()
    files = build(model, tmp_path / "here" / "m.so", weights=tmp_path / "here" / "m.weights")
    assert len(files) == 4
    (tmp_path / "here").rename(tmp_path / "there")
    x = rng.standard_normal((3, 4), np.float32)
    (y,) = sardonyx.load(tmp_path / "there" / "m.so").run(None, {"x": x})
    np.testing.assert_allclose(y, np.maximum(x @ weights, 0), rtol=1e-5, atol=1e-6)
    path = tmp_path / "there" / "m.weights"
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.raises(sardonyx.InvalidGraph, match="does not hold the weights"):
        sardonyx.load(tmp_path / "there" / "m.so")
    path.unlink()
    with pytest.raises(sardonyx.NoSuchFile, match="m.weights"):
        sardonyx.load(tmp_path / "there" / "m.so")


def test_code_for_several_processors(tmp_path):
    if os.uname().machine != "x86_64":
        pytest.skip("names of x86")
    flags = open("/proc/cpuinfo").read()
    if "avx2" not in flags:
        pytest.skip("the processor is older than x86-64-v3")
    rng = np.random.default_rng(1)
    model = graph(FIRST.replace("float[n, 4]", "float[n, 64]").replace("float[n, 8]", "float[n, 48]"))
    del model.graph.node[0]
    weights = rng.standard_normal((64, 48), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    x = rng.standard_normal((9, 64), np.float32)
    expected = np.maximum(x @ weights, 0)
    for cpus in (["x86-64-v4", "x86-64-v3", "x86-64"], ["x86-64-v3"], ["x86-64"], ["sapphirerapids", "x86-64-v2"]):
        output = tmp_path / f"{'_'.join(cpus).replace('-', '')}.so"
        build(model, output, cpus=cpus)
        (y,) = sardonyx.load(output).run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source, target", [(16, 1), (1, 16), (10, 1), (1, 10), (11, 16), (11, 10)])
def test_short_floats_without_instructions(tmp_path, source, target):
    """Old processors convert by functions, which not every C compiler's library has."""
    model = graph(f'<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) {{ y = Cast <to = {target}> (x) }}')
    model.graph.input[0].type.tensor_type.elem_type = source
    model.graph.output[0].type.tensor_type.elem_type = target
    dtypes = [onnx.helper.tensor_dtype_to_np_dtype(kind) for kind in (source, target)]
    x = np.linspace(-70000, 70000, 1001).astype(dtypes[0])
    build(model, tmp_path / "m.so", cpus=["x86-64"] if os.uname().machine == "x86_64" else [])
    (y,) = sardonyx.load(tmp_path / "m.so").run(None, {"x": x})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.asarray(y, np.float64), x.astype(dtypes[1]).astype(np.float64))


def cases():
    from onnx.backend.test.loader import load_model_tests

    warnings.filterwarnings("ignore")
    wanted = {name for name in PASSING if not name.startswith(SESSIONS_ONLY)}
    wanted = set(sorted(wanted)[7::50])
    return [case for case in load_model_tests(kind="node") if case.name in wanted and case.model is not None]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_conformance(case, monkeypatch):
    """Code for the oldest processors, whose weights are packed by code for this one."""
    monkeypatch.setattr(ahead, "CPUS", ["x86-64"] if os.uname().machine == "x86_64" else [])
    inputs, outputs = (list(map(_normalize_tensor, values)) for values in case.data_sets[0])
    for answer, expected in zip(ahead.prepare(case.model).run(inputs), outputs):
        if isinstance(expected, (list, str)) or np.asarray(expected).dtype.kind in "OUS":
            assert np.array_equal(np.asarray(answer, object), np.asarray(expected, object)), case.name
            continue
        expected = np.asarray(expected)
        assert answer.dtype == expected.dtype and answer.shape == expected.shape
        ours, theirs = (np.asarray(v, np.float64) if v.dtype.kind == "V" else v for v in (answer, expected))
        np.testing.assert_allclose(ours, theirs, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-6))


def test_for_another_processor(tmp_path):
    if "amx_tile" in open("/proc/cpuinfo").read() or os.uname().machine != "x86_64":
        pytest.skip("this one has all that is tried")
    build(FIRST, tmp_path / "m.so", cpus=["graniterapids"])
    with pytest.raises(sardonyx.NotImplemented, match="for other processors than this one.*lacks.*amx-tile"):
        sardonyx.load(tmp_path / "m.so")


@pytest.mark.parametrize(
    "text, options, kind, sentence",
    [
        ("m (float x) => (float y) { y = Neg (x) }", {"name": "a b"}, sardonyx.InvalidArgument, "'a b' is no name"),
        ("m (float x) => (float y) { y = Neg (x) }", {"name": "printf"}, sardonyx.InvalidArgument, "'printf' is no name"),
        ("m (float x) => (float y) { y = Neg (x) }", {"static": True}, sardonyx.InvalidArgument, "can be static"),
        ("m (float x) => (float y) { y = Neg (x) }", {"cpus": ["i8086"]}, sardonyx.InvalidArgument, "'i8086'"),
        ("m (uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }", {}, sardonyx.NotImplemented, "ImageDecoder"),
        ("m (float x) => (float y) { y = ai.example.What (x) }", {}, sardonyx.NotImplemented, "What"),
    ],
)
def test_refuses(tmp_path, text, options, kind, sentence):
    model = graph(f'<ir_version: 10, opset_import: ["": 21, "ai.example": 1]> {text}')
    with pytest.raises(kind, match=sentence):
        sardonyx.build(model, tmp_path / "m.so", **options)
    assert not (tmp_path / "m.so").exists()


def test_refuses_open_ranks(tmp_path):
    model = graph('<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Neg (x) }')
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(sardonyx.NotImplemented, match="the rank of its input 'x'"):
        sardonyx.build(model, tmp_path / "m.so")


def test_refuses_files_that_it_cannot_write(tmp_path):
    with pytest.raises(sardonyx.Fail, match="no/such"):
        build(FIRST, tmp_path / "no" / "such" / "m.so")
    with pytest.raises(sardonyx.Fail, match="no/such"):
        build(FIRST, tmp_path / "m.so", weights=tmp_path / "no" / "such" / "w")


def test_fixed_dimensions(tmp_path):
    build(FIRST, tmp_path / "m.so", dims={"n": 3})
    model = sardonyx.load(tmp_path / "m.so")
    assert model.get_inputs()[0].shape == [3, 4]
    with pytest.raises(sardonyx.InvalidArgument):
        model.run(None, {"x": np.ones((2, 4), np.float32)})
    with pytest.raises(sardonyx.InvalidArgument, match="no open dimension 'N'; it has n .did you mean n?"):
        build(FIRST, tmp_path / "other.so", dims={"N": 3})
    options = sardonyx.SessionOptions()
    options.add_free_dimension_override_by_name("m", 3)
    with pytest.raises(sardonyx.InvalidArgument, match="no open dimension 'm'; it has n"):
        build(FIRST, tmp_path / "other.so", options=options)


def test_damaged(tmp_path):
    build(FIRST, tmp_path / "m.so")
    data = (tmp_path / "m.so").read_bytes()
    damaged = tmp_path / "damaged.so"
    for change in (data[:-1], data[: len(data) // 2], b"", b"no library", data + b"x"):
        damaged.write_bytes(change)
        with pytest.raises(sardonyx.Fail):
            sardonyx.load(damaged)
    with pytest.raises(sardonyx.NoSuchFile):
        sardonyx.load(tmp_path / "none.so")


def test_damaged_weights(tmp_path):
    """Many weights are looked at by the first run, and by each until they are whole; all else when the file is loaded."""
    weights = np.random.default_rng(3).standard_normal((1024, 2048)).astype(np.float32)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
            "large",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1024])],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            [onnx.numpy_helper.from_array(weights, "w")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 21)],
        ir_version=10,
    )
    build(model, tmp_path / "m.so")
    x = np.ones((1, 1024), np.float32)
    np.testing.assert_allclose(sardonyx.load(tmp_path / "m.so").run(None, {"x": x})[0], x @ weights, rtol=1e-3, atol=1e-3)
    data = bytearray((tmp_path / "m.so").read_bytes())
    data[len(data) // 2] ^= 4
    (tmp_path / "damaged.so").write_bytes(data)
    damaged = sardonyx.load(tmp_path / "damaged.so")
    for _ in range(2):
        with pytest.raises(sardonyx.Fail, match="the weights of the model 'm' are damaged"):
            damaged.run(None, {"x": x})
    data[len(data) // 2] ^= 4
    data[-100] ^= 1
    (tmp_path / "elsewhere.so").write_bytes(data)
    with pytest.raises(sardonyx.Fail, match="is damaged"):
        sardonyx.load(tmp_path / "elsewhere.so")


def test_tool(tmp_path, tool):
    onnx.save(graph(FIRST), tmp_path / "first.onnx")
    subprocess.run([tool, "build", "-q", tmp_path / "first.onnx", "-o", tmp_path / "first.so"], check=True)
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    command = [tool, "run", tmp_path / "first.so", "-i", f"x={tmp_path / 'x.npy'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y: float [2, 8]")
    done = subprocess.run([tool, "build", tmp_path / "none.onnx", "-o", tmp_path / "m.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "none.onnx" in done.stderr


def test_pip_builds_all_extensions():
    root = HERE.parents[1]
    cmake = (root / "python" / "CMakeLists.txt").read_text()
    extensions = set(re.search(r"install\(TARGETS ([\w ]+) LIBRARY DESTINATION sardonyx\b", cmake)[1].split())
    targets = set(re.findall(r'"(\w+)"', re.search(r"build.targets = (.*)", (root / "pyproject.toml").read_text())[1]))
    stubs = {f"{extension}_stub" for extension in extensions}
    assert len(extensions) == 2 and targets == {*extensions, *stubs, "SardonyxArtifactRuntime"}


def test_names_of_sizes(tmp_path):
    """There is one code, which counts on equal names; placeholders are no names, and each is a size of its own in C."""
    ones = np.ones((3, 4), np.float32)
    for name, file, fits in (("?", "apart", True), ("N", "equal", False)):
        model = graph("""<ir_version: 10, opset_import: ["" : 21]>
            m (float[N, 4] x, float[N, 4] b) => (float[1, 4] y) { y = Add (x, b) }""")
        for value in model.graph.input:
            value.type.tensor_type.shape.dim[0].dim_param = name
        build(model, tmp_path / f"{file}.so")
        loaded = sardonyx.load(tmp_path / f"{file}.so")
        assert loaded.get_outputs()[0].shape[0] != 1  # which nobody has checked
        np.testing.assert_array_equal(loaded.run(None, {"x": ones, "b": ones})[0], 2 * ones)
        header = (tmp_path / f"{file}.h").read_text()
        assert [f"sizes->{size}," in header for size in ("x_0", "b_0", "N")] == [fits, fits, not fits]
        if fits:
            np.testing.assert_array_equal(loaded.run(None, {"x": ones, "b": ones[:1]})[0], 2 * ones)
            continue
        with pytest.raises(sardonyx.InvalidArgument, match="dimension 'N' has different sizes: 3 in .* and 1 in"):
            loaded.run(None, {"x": ones, "b": ones[:1]})
