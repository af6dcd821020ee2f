"""Code for every kind of processor: products of odd widths, networks of the onnx package, and what LLVM cannot compile."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import sardonyx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cross  # noqa: E402
import web  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
DEPTH = 24
WIDTHS = [33, 40, 100, 1000]
TARGETS = ["wasm", "aarch64", "x86-64", "haswell"]


def products():
    """Gemm of one row, of five and of as many as a run brings, with and without a bias, of each width."""
    rng = np.random.default_rng(0)
    nodes, initializers, outputs, inputs = [], [], [], {}
    for rows in (1, 5, "n"):
        inputs[f"x{rows}"] = rng.standard_normal((3 if rows == "n" else rows, DEPTH), np.float32)
        for width in WIDTHS:
            for bias in (True, False):
                name = f"{rows}_{width}_{bias}"
                initializers.append(numpy_helper.from_array(rng.standard_normal((DEPTH, width), np.float32), "w" + name))
                initializers.append(numpy_helper.from_array(rng.standard_normal(width).astype(np.float32), "b" + name))
                operands = [f"x{rows}", "w" + name, *(["b" + name] if bias else [])]
                nodes.append(helper.make_node("Gemm", operands, ["y" + name], name="fc" + name))
                outputs.append(helper.make_tensor_value_info("y" + name, TensorProto.FLOAT, [rows, width]))
    declared = [helper.make_tensor_value_info(f"x{rows}", TensorProto.FLOAT, [rows, DEPTH]) for rows in (1, 5, "n")]
    graph = helper.make_graph(nodes, "products", declared, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    weights = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in initializers}
    expected = {}
    for node in nodes:
        x, w, *b = node.input
        expected[node.output[0]] = inputs[x].astype(np.float64) @ weights[w] + (weights[b[0]] if b else 0)
    return model, inputs, expected


def answers(model, inputs, target, folder):
    """What a file for the target answers, by the names of outputs."""
    names = [output.name for output in model.graph.output]
    if target == "wasm":
        sardonyx.build(model, folder / "m.wasm")
        outputs = web.run(folder / "m.mjs", inputs)["outputs"]
        return {o.name: web.decode(outputs[o.name], o.type) for o in model.graph.output}
    if target == "aarch64":
        return dict(zip(names, cross.prepare(model).run(list(inputs.values()))))
    sardonyx.build(model, folder / "m.so", cpus=[target])
    return dict(zip(names, sardonyx.load(folder / "m.so").run(None, inputs)))


def require(target):
    """What the target's files are run by."""
    machine = os.uname().machine
    if target == "wasm" and shutil.which("node") is None:
        pytest.fail("nodejs is missing")
    if target == "aarch64" and (machine == "aarch64" or shutil.which("qemu-aarch64") is None):
        pytest.skip("there is no qemu-aarch64")
    if target in ("x86-64", "haswell") and machine != "x86_64":
        pytest.skip("names of x86")
    if target == "haswell" and "avx2" not in open("/proc/cpuinfo").read():
        pytest.skip("the processor is older than haswell")


@pytest.mark.parametrize("target", TARGETS)
def test_products(target, tmp_path):
    require(target)
    model, inputs, expected = products()
    given = answers(model, inputs, target, tmp_path)
    assert given.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(given[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


BYTES = """<ir_version: 10, opset_import: ["": 21]>
m (uint8[2, n, 40] a, int8[2, 40, 37] b, uint8[2, n, k] p, uint8[2, k, 33] v) => (int32[2, n, 37] x, int32[2, n, 33] y) {
    z = Constant <value = uint8 {131}> ()
    w = Constant <value = int8 {-7}> ()
    x = MatMulInteger (a, b, z, w)
    y = MatMulInteger (p, v, z, z)
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_computed_bytes(target, tmp_path):
    """By integers, or by floats where no instruction multiplies bytes and sums are exact."""
    require(target)
    rng = np.random.default_rng(2)
    shapes = {"a": (2, 5, 40), "b": (2, 40, 37), "p": (2, 5, 530), "v": (2, 530, 33)}
    inputs = {name: rng.integers(0, 256, shape).astype(np.uint8) for name, shape in shapes.items()}
    inputs["p"][0], inputs["v"][0] = 255, 0
    inputs["b"] = inputs["b"].view(np.int8)
    given = answers(parser.parse_model(BYTES), inputs, target, tmp_path)
    whole = {name: value.astype(np.int64) for name, value in inputs.items()}
    np.testing.assert_array_equal(given["x"], (whole["a"] - 131) @ (whole["b"] + 7))
    np.testing.assert_array_equal(given["y"], (whole["p"] - 131) @ (whole["v"] - 131))


MASKS = """<ir_version: 10, opset_import: ["": 21]>
m (float[n, 40] x, float16[n, 70] h, uint8[n, 75] u, double[n, 9] d, int64[n, 35] i)
    => (float[n, 40] a, float16[n, 70] b, uint8[n, 75] c, double[n, 9] e, int64[n, 35] f, float[n, 1] g, bool[n, 35] k) {
    a = Softmax (x)
    b = Add (h, h)
    c = Max (u, u)
    e = Neg (d)
    f = Mul (i, i)
    axis = Constant <value_ints = [1]> ()
    g = ReduceMax (x, axis)
    k = Greater (i, i)
}"""


@pytest.mark.parametrize("target", ["wasm", "aarch64", "haswell"])
def test_tails_of_all_widths(target, tmp_path):
    """Masks of 16, 32 and 64 lanes over elements of one to eight bytes."""
    require(target)
    model = parser.parse_model(MASKS)
    rng = np.random.default_rng(1)
    inputs = {
        "x": rng.standard_normal((3, 40), np.float32),
        "h": rng.standard_normal((3, 70)).astype(np.float16),
        "u": rng.integers(0, 256, (3, 75), np.uint8),
        "d": rng.standard_normal((3, 9)),
        "i": rng.integers(-1000, 1000, (3, 35)),
    }
    e = np.exp(inputs["x"].astype(np.float64))
    expected = {
        "a": e / e.sum(1, keepdims=True), "b": inputs["h"] + inputs["h"], "c": inputs["u"], "e": -inputs["d"],
        "f": inputs["i"] ** 2, "g": inputs["x"].max(1, keepdims=True), "k": np.zeros((3, 35), bool),
    }  # fmt: skip
    given = answers(model, inputs, target, tmp_path)
    for name, value in expected.items():
        np.testing.assert_allclose(given[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("network, target", [*(("shufflenet", target) for target in TARGETS), ("squeezenet", "wasm")])
def test_light_models_compile(network, target, tool):
    """Every kernel of a classifier becomes code. Its numbers are those of any machine, which other tests look at."""
    triple = {"wasm": "wasm32-wasi", "aarch64": "aarch64-linux-gnu"}.get(target)
    if not triple and os.uname().machine != "x86_64":
        pytest.skip("names of x86")
    arguments = ["--target", triple] if triple else ["--cpu", target]
    command = [tool, "compile", LIGHT / f"light_{network}.onnx", "--to", "asm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "sdx_main" in done.stdout, done.stderr


# An operator that computes in 80 bits, which only x86 has, and only with its first floating-point unit.
LONG_DOUBLE = """
#map = affine_map<(i) -> (i)>
func.func @test.Long(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %e = arith.extf %a : f32 to f80
      %s = arith.mulf %e, %e : f80
      %d = arith.divf %s, %e : f80
      %q = arith.addf %d, %s : f80
      %r = arith.truncf %q : f80 to f32
      linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""
LONG = """<ir_version: 10, opset_import: ["": 21, "test": 1]> m (float[n] x) => (float[n] y, float[n] z) {
    y = test.Long (x)
    z = Exp (x)
}"""


@pytest.fixture
def long_double(tmp_path):
    (tmp_path / "long.mlir").write_text(LONG_DOUBLE)
    onnx.save(parser.parse_model(LONG), tmp_path / "m.onnx")
    return tmp_path


@pytest.mark.parametrize("output, arguments", [("m.so", ["--target", "aarch64-linux-gnu"]), ("m.wasm", [])])
def test_no_code_is_an_error(long_double, tool, output, arguments):
    """What LLVM would end the process with is a sentence, and nothing is left behind."""
    before = sorted(long_double.iterdir())
    command = [tool, "build", "m.onnx", "-o", output, "--custom-mlir", "long.mlir", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=long_double)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("sardonyx: the model 'm.onnx' cannot be compiled for the processor 'generic' of "), done
    assert done.stderr.count("\n") == 1 and "LLVM makes no code of node 'y' (Long)" in done.stderr, done
    assert sorted(long_double.iterdir()) == before
    command = [tool, "compile", "m.onnx", "--to", "asm", "--custom-mlir", "long.mlir", "--target", "aarch64-linux-gnu"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=long_double)
    assert done.returncode == 1 and "LLVM makes no code of node 'y' (Long)" in done.stderr, done


def test_session_outlives_no_code():
    """A session is refused by an exception, and the process goes on, in which the next model compiles."""
    if os.uname().machine != "x86_64":
        pytest.skip("names of x86")
    code = f"""if True:
        import numpy, sardonyx
        from onnx import parser
        sardonyx.register_custom_mlir({LONG_DOUBLE!r})
        model = parser.parse_model({LONG!r})
        for threads in (1, 4):
            for cpu, features, words in (("x86-64", "-x87", "unsupported library call"), ("i386", "", "64-bit code")):
                options = sardonyx.SessionOptions()
                options.cache, options.intra_op_num_threads = False, threads
                options.cpu, options.cpu_features = cpu, features
                try:
                    sardonyx.InferenceSession(model, options)
                except sardonyx.NotImplemented as error:
                    assert words in str(error) and cpu in str(error), error
                else:
                    raise AssertionError("it compiles")
            options.cpu, options.cpu_features = "", ""
            y, z = sardonyx.InferenceSession(model, options).run(None, {{"x": numpy.ones(3, numpy.float32)}})
            assert y.tolist() == [2] * 3
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "LLVM ERROR" not in done.stderr, done.stderr
