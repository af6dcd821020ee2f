"""Operators that users bring along: numpy is the reference."""

import gc
import os
import subprocess
import threading
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser

import sardonyx as sdx

T = sdx.TensorType
OPSETS = 'opset_import: ["" : 22, "test" : 1]'


@pytest.fixture(autouse=True)
def nothing_registered():
    yield
    sdx.clear_custom_ops()


def options(*, cache=False):
    made = sdx.SessionOptions()
    made.cache, made.intra_op_num_threads = cache, 1
    return made


def load(graph, own=None, opsets=OPSETS, functions=""):
    model = parser.parse_model(f"<ir_version: 10, {opsets}> m {graph} {functions}")
    return sdx.InferenceSession(model.SerializeToString(), own or options())


def run(session, *feed):
    return session.run(None, {a.name: v for a, v in zip(session.get_inputs(), feed)})


def like(x, *others, **attributes):
    return x


def register(function, infer=like, name="Op", **more):
    sdx.register_custom_op("test", name, function, infer, **more)


X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


# Python functions


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (1, 1)])
@pytest.mark.parametrize("declared", ["N, M", "2, 3"])
def test_between_other_operators(shape, declared):
    if declared == "2, 3" and shape != (2, 3):
        return
    register(lambda x, y, *, scale: np.float32(scale) * (x + y))
    session = load(f"(float[{declared}] x) => (float[{declared}] z) {{ a = Relu(x) b = test.Op<scale = 2.5>(a, x) z = Neg(b) }}")
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_array_equal(run(session, x)[0], -(np.float32(2.5) * (np.maximum(x, 0) + x)))


TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]
ONNX_NAMES = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2"}


@pytest.mark.parametrize("name", TYPES + SMALL)
@pytest.mark.parametrize("size", ["N", "4"])
def test_every_element_type(name, size):
    dtype = np.dtype(name if name in TYPES else getattr(ml_dtypes, name))
    seen = []

    def reverse(x):
        seen.append(x.dtype)
        return x[::-1]

    register(reverse)
    kind = ONNX_NAMES.get(name, name)
    session = load(f"({kind}[{size}] x) => ({kind}[{size}] y) {{ y = test.Op(x) }}")
    x = np.array([1, 0, 3, 2]).astype(dtype)
    (y,) = run(session, x)
    assert y.dtype == dtype and seen == [dtype]
    np.testing.assert_array_equal(y, x[::-1])


def test_strings():
    register(lambda x, *, tail: np.array([[t + tail for t in x.tolist()]], object), lambda x, *, tail: T(object, (1, None)))
    session = load('(string[N] x) => (string[1, N] y) { y = test.Op<tail = "☃">(x) }')
    (y,) = run(session, np.array(["a", "", "ü"], object))
    assert y.tolist() == [["a☃", "☃", "ü☃"]]
    assert run(session, np.array([], object))[0].shape == (1, 0)


def test_scalars_and_no_inputs():
    register(lambda: np.float32(3), lambda: sdx.TensorType(np.float32, ()))
    session = load("() => (float y) { a = test.Op() y = Neg(a) }")
    assert run(session)[0] == np.float32(-3) and run(session)[0].shape == ()


def test_attributes():
    seen = {}

    def function(x, **attributes):
        seen.update(attributes)
        return x

    register(function, lambda x, **attributes: x)
    session = load(
        '(float[N] x) => (float[N] y) { y = test.Op<i = -3, f = 0.5, s = "ä", is = [1, 2], fs = [0.5], '
        'ss = ["a", ""], t = int64[2, 1] {7, 8}, u = string[1] {"x"}>(x) }'
    )
    run(session, X[0])
    tensor, text = seen.pop("t"), seen.pop("u")
    assert seen == {"i": -3, "f": 0.5, "s": "ä", "is": [1, 2], "fs": [0.5], "ss": ["a", ""]}
    assert tensor.tolist() == [[7], [8]] and tensor.dtype == np.int64 and text.tolist() == ["x"]


def test_optional_inputs_and_several_results():
    def split(x, low, high):
        assert low is None
        return np.minimum(x, high), np.maximum(x, high), x

    register(split, lambda x, low, high: (x, x, x))
    session = load("(float[N] x, float h) => (float[N] a, float[N] b) { a, , b = test.Op(x, , h) }")
    a, b = run(session, X[0], np.float32(2))
    assert a.tolist() == [1, -2, 2] and b.tolist() == X[0].tolist()
    session = load("(float[N] x, float h) => (float[N] b) { a, b = test.Op(x, , h) }")
    assert run(session, X[0], np.float32(2))[0].tolist() == [2, 2, 3]


def test_sizes_of_the_run():
    register(lambda x: x[x > 0], lambda x: T(x.dtype, (None,)))
    session = load("(float[N, M] x) => (float[K] y, int64[1] n) { y = test.Op(x) n = Shape(y) }")
    for x in (X, -np.abs(X), X[:0]):
        y, n = run(session, x)
        assert y.tolist() == x[x > 0].tolist() and n == len(y)


def test_the_model_declares():
    register(lambda x: x * 2, None)
    session = load("(float[N] x) => (float[N] y) { y = test.Op(x) }")
    assert run(session, X[0])[0].tolist() == [2, -4, 6]
    with pytest.raises(sdx.NotImplemented, match="tells the types of its results"):
        load("(float[N] x) => (float[N] y) { a = test.Op(x) y = Neg(a) }")


def test_inputs_are_the_functions_own():
    kept = []

    def function(x):
        kept.append(x)
        x += 1
        return x

    register(function)
    session = load("(float[N] x) => (float[N] y, float[N] z) { y = test.Op(x) z = Neg(x) }")
    x = X[0].copy()
    y, z = run(session, x)
    assert x.tolist() == X[0].tolist() and z.tolist() == (-X[0]).tolist()
    kept[0][:] = 99
    assert y.tolist() == (X[0] + 1).tolist()
    run(session, np.zeros(3, np.float32))
    assert kept[0].tolist() == [99] * 3


def test_in_graphs_and_local_functions():
    register(lambda x: x[1:], lambda x: T(x.dtype, (None,)))
    session = load(
        "(int64 n, bool c, float[N] x) => (float[M] y) { y = Loop (n, c, x) < body = g (int64 i, bool e, float[K] a) "
        "=> (bool f, float[L] b) { f = Identity(e) b = local.Twice(a) }> }",
        opsets='opset_import: ["" : 22, "test" : 1, "local" : 1]',
        functions='<domain: "local", opset_import: ["" : 22, "test" : 1]> Twice (x) => (y) { t = test.Op(x) y = test.Op(t) }',
    )
    x = np.arange(9, dtype=np.float32)
    assert run(session, np.int64(3), np.True_, x)[0].tolist() == [6, 7, 8]


def test_versions():
    register(lambda x: x + 1)
    register(lambda x: x + 3, since_version=3)
    for version, add in ((1, 1), (2, 1), (3, 3), (9, 3)):
        session = load("(float[N] x) => (float[N] y) { y = test.Op(x) }", opsets=f'opset_import: ["" : 22, "test" : {version}]')
        assert run(session, X[0])[0].tolist() == (X[0] + add).tolist()


def test_old_models():
    register(lambda x: x * 2)
    graph = "(float[N, 3] x) => (float[M] y) { a = test.Op(x) b = Unsqueeze<axes = [0]>(a) y = ReduceSum<axes = [0, 1, 2], keepdims = 0>(b) }"
    session = load(graph.replace("float[M]", "float"), opsets='opset_import: ["" : 9, "test" : 1]')
    assert run(session, X)[0] == 2 * X.sum()


def test_sessions_have_operators_of_their_own():
    register(lambda x: x + 1)
    graph = "(float[N] x) => (float[N] y) { y = test.Op(x) }"
    everybodys = load(graph, options(cache=True))
    mine = options(cache=True)
    mine.custom_ops.register_op("test", "Op", lambda x: x + 2, like)
    own = load(graph, mine)
    assert own.from_cache  # the code is the same, what it calls is not
    register(lambda x: x + 3)
    later = load(graph, options(cache=True))
    for session, add in ((everybodys, 1), (own, 2), (later, 3)):
        assert run(session, X[0])[0].tolist() == (X[0] + add).tolist()


def test_stateful_functions_are_always_called():
    calls = []
    register(lambda x: (calls.append(1), x)[1], stateful=True)
    session = load("(float[N] x) => (float[N] y) { a = test.Op(x) b = test.Op(x) y = Neg(x) }")
    run(session, X[0])
    assert len(calls) == 2


def test_runs_within_runs_and_threads():
    inner = load("(float[N] x) => (float[N] y) { y = Neg(x) }")
    register(lambda x: run(inner, x)[0])
    session = load("(float[N] x) => (float[N] y) { a = test.Op(x) y = test.Op(a) }")
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(100 + seed, np.float32)
        for _ in range(20):
            if not np.array_equal(run(session, x)[0], x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_kept():
    class Function:
        def __call__(self, x):
            return x

    function = Function()
    gone = weakref.ref(function)
    own = options()
    own.custom_ops.register_op("test", "Op", function, like)
    session = load("(float[N] x) => (float[N] y) { y = test.Op(x) }", own)
    del function, own
    assert run(session, X[0])[0].tolist() == X[0].tolist()
    del session
    gc.collect()
    assert gone() is None


# What goes wrong


@pytest.mark.parametrize(
    "function, sentence",
    [
        (lambda x: x.astype(np.float64), "result 0 the element type double, where the model has float"),
        (lambda x: x[None], r"result 0 the shape \[1, 2\], where the model has \[2\]"),
        (lambda x: x[:1], r"result 0 the shape \[1\], where the model has \[2\]"),
        (lambda x: (), "it returned 0 for the node's 1 results"),
        (lambda x: None, "raised ValueError: a result of strings|raised TypeError"),
        (lambda x: np.zeros(2, "datetime64[s]"), "no ONNX tensor has the dtype"),
        (lambda x: 1 // 0, "raised ZeroDivisionError"),
        (lambda: 1, "raised TypeError"),
    ],
)
@pytest.mark.parametrize("size", ["2", "N"])
def test_wrong_results(function, sentence, size):
    if size == "N" and sentence.endswith(r"\[2\]"):
        sentence = r"result 0 the shape \[1, 2\], where the model has \[\?\]" if "1, 2" in sentence else None
    register(function)
    session = load(f"(float[{size}] x) => (float[{size}] y) {{ [bad] y = test.Op(x) }}")
    if sentence is None:
        return
    for _ in range(2):  # the session survives
        with pytest.raises(sdx.Fail, match=r"node 'bad' \(Op\): .*" + f"(?:{sentence})"):
            run(session, np.zeros(2, np.float32))


def test_exceptions_are_causes():
    error = KeyError("what")

    def function(x):
        raise error

    register(function)
    session = load("(float[N] x) => (float[N] y) { y = test.Op(x) }")
    with pytest.raises(sdx.Fail, match="its function raised KeyError: 'what'") as raised:
        run(session, X[0])
    assert raised.value.__cause__ is error
    with pytest.raises(sdx.InvalidArgument) as raised:
        session.run(None, {"x": X})
    assert raised.value.__cause__ is None


def test_interrupts_end_more_than_the_run():
    def function(x):
        raise KeyboardInterrupt

    register(function)
    session = load("(float[N] x) => (float[N] y) { y = test.Op(x) }")
    with pytest.raises(KeyboardInterrupt):
        run(session, X[0])


@pytest.mark.parametrize(
    "infer, sentence",
    [
        (lambda x: 1 / 0, "its shape function raised ZeroDivisionError"),
        (lambda x: T(np.float32, (-5,)), "the size -5"),
        (lambda x: T(np.float32, (1,) * 65), "a rank of 65"),
        (lambda x: T("datetime64[s]", (1,)), "no ONNX tensor has the dtype"),
        (lambda x: (), "it told the types of 0 for the node's 1 results"),
        (lambda x: T("float64", (None,)), "declared"),
        (lambda x: ("float32", (None,)), "TensorType"),
    ],
)
def test_wrong_shape_functions(infer, sentence):
    register(like, lambda x: infer(x))
    with pytest.raises(sdx.Fail, match="node 'n'.*" + sentence):
        load("(float[N] x) => (float[N] y) { [n] y = test.Op(x) }")


def test_no_rank_is_refused():
    register(like, lambda x: T(x.dtype, None))
    with pytest.raises(sdx.NotImplemented, match="rank"):
        load("(float[N] x) => (float[N] y) { [n] a = test.Op(x) y = Neg(a) }")


def test_all_that_is_missing():
    graph = "(float[N] x) => (float[N] y) { [n] a = test.A(x) [o] b = other.B(a) c = test.A(b) y = Neg(c) }"
    with pytest.raises(sdx.NotImplemented) as raised:
        load(graph, opsets='opset_import: ["" : 22, "test" : 1, "other" : 1]')
    assert "A of domain 'test' (node 'n') and 1 more: no such operator is registered" in str(raised.value)
    assert "B of domain 'other' (node 'o'): no such operator is registered" in str(raised.value)
    with pytest.raises(sdx.NotImplemented, match="B of domain 'other'"):
        register(like, name="A")
        load(graph, opsets='opset_import: ["" : 22, "test" : 1, "other" : 1]')


def test_the_cache_needs_the_registration():
    graph = "(float[N] x) => (float[N] y) { [n] y = test.Op(x) }"
    register(like)
    load(graph, options(cache=True))
    sdx.clear_custom_ops()
    with pytest.raises(sdx.NotImplemented, match=r"not registered: Op of domain 'test' \(node 'n'\)"):
        load(graph, options(cache=True))
    register(lambda x: x[:1], lambda x: T(x.dtype, (1,)))
    session = load("(float[N] x) => (float[M] y) { [n] y = test.Op(x) }", options(cache=True))
    assert run(session, X[0])[0].tolist() == [1]


def test_wrong_registrations():
    with pytest.raises(sdx.InvalidArgument, match="cannot be called"):
        sdx.register_custom_op("test", "Op", 3)
    with pytest.raises(sdx.InvalidArgument, match="has itself"):
        sdx.register_custom_op("", "Relu", like)
    with pytest.raises(sdx.InvalidArgument, match="version 0"):
        sdx.register_custom_op("test", "Op", like, since_version=0)
    with pytest.raises(sdx.NoSuchFile):
        sdx.SessionOptions().register_custom_ops_library("/no/such/library.so")


# Functions of other operators

SWISH = """<domain: "test", opset_import: ["" : 22]> Swish <beta: float = 1.0> (x) => (y) {
  b = Constant<value_float: float = @beta>() s = Mul(b, x) t = Sigmoid(s) y = Mul(x, t) }"""


def swish(x, beta):
    return x / (1 + np.exp(-beta * x))


@pytest.mark.parametrize("form", ["text", "bytes", "proto", "model", "file"])
def test_functions(form, tmp_path):
    function = parser.parse_function(SWISH)
    model = onnx.helper.make_model(onnx.GraphProto(name="none"), functions=[function])
    (tmp_path / "f.onnx").write_bytes(model.SerializeToString())
    source = {"text": SWISH, "bytes": function.SerializeToString(), "proto": function, "model": model}.get(form, tmp_path / "f.onnx")
    sdx.register_custom_functions(source)
    session = load("(float[N, M] x) => (float[N, M] y) { a = test.Swish<beta = 2.0>(x) y = test.Swish(a) }")
    np.testing.assert_allclose(run(session, X)[0], swish(swish(X, 2), 1), rtol=1e-5)


def test_functions_are_part_of_the_cache_key():
    graph = "(float[N] x) => (float[N] y) { y = test.F(x) }"

    def session(body):
        own = options(cache=True)
        own.custom_ops.register_functions(f'<domain: "test", opset_import: ["" : 22]> F (x) => (y) {{ {body} }}')
        return load(graph, own)

    assert run(session("y = Neg(x)"), X[0])[0].tolist() == (-X[0]).tolist()
    assert run(session("y = Abs(x)"), X[0])[0].tolist() == np.abs(X[0]).tolist()
    assert session("y = Abs(x)").from_cache
    with pytest.raises(sdx.NotImplemented):
        load(graph, options(cache=True))


def test_the_models_own_functions_count_first():
    sdx.register_custom_functions('<domain: "test", opset_import: ["" : 22]> F (x) => (y) { y = Neg(x) }')
    graph = "(float[N] x) => (float[N] y) { y = test.F(x) }"
    own = '<domain: "test", opset_import: ["" : 22]> F (x) => (y) { y = Abs(x) }'
    assert run(load(graph), X[0])[0].tolist() == (-X[0]).tolist()
    assert run(load(graph, functions=own), X[0])[0].tolist() == np.abs(X[0]).tolist()


@pytest.mark.parametrize("source", [b"nothing", b"<nothing", b"", '<domain: "", opset_import: ["" : 22]> Relu (x) => (y) { y = Neg(x) }'])
def test_wrong_functions(source):
    with pytest.raises(sdx.InvalidArgument):
        sdx.register_custom_functions(source)


# Functions of MLIR

MLIR = """
func.func @test.Affine(%x: tensor<?x?xTYPE>ARG, %factor: f32 {sardonyx.attribute = "factor", sardonyx.default = 2.0 : f32})
    -> (tensor<?x?xTYPE>ARG) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xTYPE>
  %n = tensor.dim %x, %c1 : tensor<?x?xTYPE>
  %empty = tensor.empty(%m, %n) : tensor<?x?xTYPE>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?xTYPE>) outs(%empty : tensor<?x?xTYPE>) {
    ^bb0(%a: TYPE, %b: TYPE):
      BODY
      linalg.yield %r : TYPE
  } -> tensor<?x?xTYPE>
  return %y : tensor<?x?xTYPE>
}
"""


def affine(kind, body, argument=""):
    return MLIR.replace("TYPE", kind).replace("BODY", body).replace("ARG", argument)


SCALE = affine("f32", "%r = arith.mulf %a, %factor : f32")


@pytest.mark.parametrize("declared", ["N, M", "2, 3", "N, 3"])
def test_mlir(declared):
    sdx.register_custom_mlir(SCALE)
    session = load(f"(float[{declared}] x) => (float[{declared}] y) {{ a = Relu(x) b = test.Affine<factor = 3.0>(a) y = Neg(b) }}")
    np.testing.assert_array_equal(run(session, X)[0], -3 * np.maximum(X, 0))
    assert run(load("(float[N, M] x) => (float[N, M] y) { y = test.Affine(x) }"), X)[0].tolist() == (2 * X).tolist()


def test_mlir_fuses():
    sdx.register_custom_mlir(SCALE)
    graph = "(float[64, 64] x) => (float[64, 64] y) { a = Relu(x) b = test.Affine(a) y = Neg(b) }"
    model = parser.parse_model(f"<ir_version: 10, {OPSETS}> m {graph}")
    text = sdx.compile(model.SerializeToString(), to="dispatch", options=options())
    assert text.count("sdx.kernel") == 1


def test_mlir_is_chosen_by_types():
    sdx.register_custom_mlir(SCALE)
    sdx.register_custom_mlir(affine("i8", "%r = arith.addi %a, %a : i8"))
    sdx.register_custom_mlir(affine("i8", "%c = arith.constant 7 : i8 %r = arith.shrui %a, %c : i8", " {sardonyx.unsigned}"))
    sdx.register_custom_mlir(affine("i1", "%t = arith.constant true %r = arith.xori %a, %t : i1"))
    numbers = np.array([[1, 100, 255]])
    for kind, dtype, want in (
        ("float", np.float32, [[2, 200, 510]]),
        ("int8", np.int8, [[2, -56, -2]]),
        ("uint8", np.uint8, [[0, 0, 1]]),
    ):
        session = load(f"({kind}[N, M] x) => ({kind}[N, M] y) {{ y = test.Affine(x) }}")
        assert run(session, numbers.astype(dtype))[0].tolist() == want
    session = load("(bool[N, M] x) => (bool[N, M] y) { y = test.Affine(x) }")
    assert run(session, np.array([[True, False]]))[0].tolist() == [[False, True]]
    with pytest.raises(sdx.NotImplemented, match="none of the functions registered for it takes these types"):
        load("(double[N, M] x) => (double[N, M] y) { y = test.Affine(x) }")
    with pytest.raises(sdx.NotImplemented, match="none of the functions registered for it takes these types"):
        load("(float[N] x) => (float[N] y) { y = test.Affine(x) }")


def test_mlir_states_sizes():
    sdx.register_custom_mlir("""
        func.func @test.Three(%x: tensor<3xf32>) -> tensor<3xf32> attributes {sardonyx.version = 1 : i64} {
          return %x : tensor<3xf32>
        }""")
    session = load("(float[N] x) => (float[M] y) { [n] a = test.Three(x) y = Neg(a) }")
    assert run(session, X[0])[0].tolist() == (-X[0]).tolist()
    with pytest.raises(sdx.Fail, match=r"node 'n' \(Three\): a size of input 0 is not what the operator takes: 2 and 3"):
        run(session, X[0, :2])


def test_mlir_before_python():
    sdx.register_custom_mlir(SCALE)
    register(lambda x, **more: x + 1, lambda x, **more: x, name="Affine")
    assert run(load("(float[N, M] x) => (float[N, M] y) { y = test.Affine(x) }"), X)[0].tolist() == (2 * X).tolist()
    assert run(load("(double[N, M] x) => (double[N, M] y) { y = test.Affine(x) }"), X.astype(float))[0].tolist() == (X + 1).tolist()


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("func.func @test.F(", "does not parse"),
        ("func.func private @test.F(tensor<4xf32>) -> tensor<4xf32>", "a body of one block"),
        ("func.func @F(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }", "domain.operator"),
        ("func.func @ai.onnx.Relu(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }", "has itself"),
        ("func.func @test.F(%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }", "its argument 0"),
        ("func.func @test.F(%x: tensor<4xf32>) { return }", "no results"),
        ("func.func @test.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {sardonyx.version = 9 : i128} { return %x : tensor<4xf32> }", "version"),
        (
            "func.func @test.F(%x: tensor<4xf32>, %y: i64 {sardonyx.attribute = \"a\", sardonyx.default = 9 : i128}) "
            "-> tensor<4xf32> { return %x : tensor<4xf32> }",
            "default of another type",
        ),
        ("func.func @test.F(%x: tensor<4xf32>, %y: i8) -> tensor<4xf32> { return %x : tensor<4xf32> }", "its argument 1"),
        (
            "func.func @test.F(%x: tensor<4xf32>) -> tensor<4xf32> "
            "{ %y = func.call @test.F(%x) : (tensor<4xf32>) -> tensor<4xf32> return %y : tensor<4xf32> }",
            "calls a function",
        ),
        (
            'func.func @test.F(%x: tensor<4xf32>) -> tensor<4xf32> { "llvm.trap"() : () -> () return %x : tensor<4xf32> }',
            "does not parse",
        ),
        (
            'func.func @test.F(%x: tensor<4xf32>) -> tensor<4xf32> { %y = sdx.runtime_call "sdx_rt_x"() outs(%x : tensor<4xf32>) '
            "-> tensor<4xf32> return %y : tensor<4xf32> }",
            "does not parse",
        ),
    ],
)
def test_wrong_mlir(text, sentence):
    with pytest.raises(sdx.InvalidArgument, match=sentence):
        sdx.register_custom_mlir(text)


# Libraries; test/Session/CustomOpsTest.cpp has more


def test_library(tool):
    path = os.path.join(os.environ["SARDONYX_BUILD"], "lib", "custom-ops")
    own = options()
    own.register_custom_ops_library(os.path.join(path, "TestOps.so"))
    session = load("(float[N] x) => (float[N] y) { y = test.Sum<scale = 0.5>(x, x, x) }", own)
    assert run(session, X[0])[0].tolist() == (1.5 * X[0]).tolist()
    with pytest.raises(sdx.InvalidArgument, match="version 99 of the interface"):
        own.register_custom_ops_library(os.path.join(path, "WrongVersion.so"))


def test_tool(tool, tmp_path):
    graph = "() => (float[1, 2] y) <float[1, 2] x = {-1, 2}> { a = test.Swish(x) b = test.Affine(a) y = test.Sum(b, b) }"
    onnx.save(parser.parse_model(f"<ir_version: 10, {OPSETS}> m {graph}"), tmp_path / "m.onnx")
    (tmp_path / "f.txt").write_text(SWISH)
    (tmp_path / "f.mlir").write_text(SCALE)
    library = os.path.join(os.environ["SARDONYX_BUILD"], "lib", "custom-ops", "TestOps.so")
    given = ["--custom-functions", "f.txt", "--custom-mlir", "f.mlir", "--custom-ops", library]

    def call(*arguments):
        result = subprocess.run([tool, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        return result.returncode, result.stdout + result.stderr

    status, text = call("run", "m.onnx", "--output-dir", ".", *given)
    assert status == 0, text
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), 4 * swish(np.array([[-1, 2]]), 1), rtol=1e-5)
    status, text = call("compile", "m.onnx", *given)
    assert status == 0 and "sdx_rt_custom" in text
    assert call("inspect", "m.onnx", *given)[0] == 0
    status, text = call("run", "m.onnx", *given[:-2])
    assert status == 1 and "not registered: Sum of domain 'test' (node 'y')" in text
    status, text = call("run", "m.onnx", *given[:-2], "--no-cache")
    assert status == 1 and "Sum of domain 'test' (node 'y'): no such operator is registered" in text
    status, text = call("run", "m.onnx", "--custom-mlir", "f.txt")
    assert status == 1 and "does not parse" in text


def test_attributes_in_files(tmp_path):
    seen = []
    register(lambda *, t: (seen.append(t.tolist()), np.float32(len(t)))[1], lambda *, t: T(np.float32, ()))
    model = parser.parse_model(f"<ir_version: 10, {OPSETS}> m () => (float y) {{ y = test.Op<t = int32[2] {{0, 0}}>() }}")
    tensor = model.graph.node[0].attribute[0].t
    tensor.ClearField("int32_data")
    tensor.dims[0] = 40
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="t.bin")
    onnx.save(model, tmp_path / "m.onnx")
    for numbers in ([1] * 40, [2] * 40):
        (tmp_path / "t.bin").write_bytes(np.array(numbers, np.int32).tobytes())
        session = sdx.InferenceSession(str(tmp_path / "m.onnx"), options(cache=True))
        session.run(None, {})
        assert seen[-1] == numbers


def test_inspect_and_compile_know_them():
    register(like)
    model = parser.parse_model(f"<ir_version: 10, {OPSETS}> m (float[N] x) => (float[N] y) {{ a = test.Op(x) y = Neg(a) }}")
    assert not sdx.inspect(model.SerializeToString())["unsupported"]
    assert "sdx_rt_custom" in sdx.compile(model.SerializeToString(), options=options())
    sdx.clear_custom_ops()
    assert "no such operator" in sdx.inspect(model.SerializeToString())["unsupported"][0]
