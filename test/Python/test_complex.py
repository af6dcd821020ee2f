"""Complex numbers, which operators move."""

import numpy as np
import onnx
import onnx.reference
import pytest
import sardonyx

TYPES = {"complex64": np.complex64, "complex128": np.complex128}
# Text of a graph from T[A, B] x, and what numpy makes of it.
MOVES = {
    "Transpose": ("y = Transpose(x)", lambda x: x.T),
    "Concat": ("y = Concat <axis = 1> (x, x, x)", lambda x: np.concatenate([x, x, x], 1)),
    "Slice": (
        "b = Constant <value_ints = [0, 1]> () e = Constant <value_ints = [99, 99]> () y = Slice (x, b, e)",
        lambda x: x[:, 1:],
    ),
    "Gather": ("i = Constant <value_ints = [1, 0, 1]> () y = Gather (x, i)", lambda x: x[[1, 0, 1]]),
    "Pad": ("p = Constant <value_ints = [1, 0, 0, 2]> () y = Pad (x, p)", lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "Tile": ("r = Constant <value_ints = [2, 3]> () y = Tile (x, r)", lambda x: np.tile(x, (2, 3))),
    "Where": (
        "s = Shape (x) o = Constant <value_int = 1> () f = Cast <to = 9> (o) t = Transpose (x) u = Transpose (t) y = Where (f, x, u)",
        lambda x: x,
    ),
    "Expand": (
        "s = Constant <value_ints = [2, 1, 1]> () y = Expand (x, s)",
        lambda x: np.broadcast_to(x, (2, *x.shape)),
    ),
    "Trilu": ("y = Trilu (x)", np.triu),
    "Sequence": (
        "s = SequenceConstruct (x, x) i = Constant <value_int = -1> () y = SequenceAt (s, i)",
        lambda x: x,
    ),
    "If": (
        """n = Size (x) k = Constant <value_int = 3> () c = Greater (n, k)
           y = If (c) <then_branch = t () => (p) { p = Concat <axis = 0> (x, x) },
                       else_branch = e () => (q) { q = Concat <axis = 0> (x) }>""",
        lambda x: np.concatenate([x, x]) if x.size > 3 else x,
    ),
}


def session(text):
    return sardonyx.InferenceSession(onnx.parser.parse_model(text).SerializeToString())


def numbers(dtype, shape):
    rng = np.random.default_rng(7)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("sizes", ["fixed", "open"])
def test_moves(move, type, sizes):
    text, expected = MOVES[move]
    shape = "3, 4" if sizes == "fixed" else "A, B"
    rank = np.ndim(expected(np.zeros((3, 4))))
    result = ", ".join("PQR"[:rank])
    runs = session(f'<ir_version: 10, opset_import: ["" : 21]> g ({type}[{shape}] x) => ({type}[{result}] y) {{ {text} }}')
    assert runs.get_inputs()[0].type == f"tensor({type})"
    for size in [(3, 4)] if sizes == "fixed" else [(3, 4), (2, 1), (2, 7), (40, 33)]:
        x = numbers(TYPES[type], size)
        (y,) = runs.run(None, {"x": x})
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, expected(x))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("rows", [1, 2, 20])
@pytest.mark.parametrize("same", [False, True])
def test_constants_and_bits(type, rows, same):
    real = {"complex64": "double", "complex128": None}[type]
    value = numbers(TYPES[type], (rows, 3))
    if same:
        value[:] = value[0, 0]
    nodes = [onnx.helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(value)),
             onnx.helper.make_node("Concat", ["x", "c"], ["y"], axis=0)]  # fmt: skip
    code = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    outputs = [onnx.helper.make_tensor_value_info("y", code, [None, 3])]
    if real:
        nodes.append(onnx.helper.make_node("BitCast", ["y"], ["z"], to=onnx.TensorProto.DOUBLE))
        outputs.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.DOUBLE, [None, 3]))
    graph = onnx.helper.make_graph(nodes, "g", [onnx.helper.make_tensor_value_info("x", code, [None, 3])], outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 26)])
    x = numbers(TYPES[type], (4, 3))
    y, *z = sardonyx.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.concatenate([x, value]))
    for bits in z:
        np.testing.assert_array_equal(bits.view(np.uint64), y.view(np.uint64))


@pytest.mark.parametrize(
    "text",
    ["n = NonZero (x) y = Cast <to = 1> (n)", "u = Unique (x) y = Size (u)", "s = ScatterElements <reduction = \"add\", axis = 0> (x, i, x) y = Size (s)"],
)
def test_computing_is_refused(text):
    kind = "float[P, Q]" if "NonZero" in text else "int64"
    with pytest.raises(sardonyx.errors.NotImplemented, match="it computes on complex numbers"):
        session(f'<ir_version: 10, opset_import: ["" : 21]> g (complex64[A, B] x, int64[A, B] i) => ({kind} y) {{ {text} }}')
