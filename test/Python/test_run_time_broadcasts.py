"""Operands of which only the run knows whether they are broadcast: kernels read them where they are, and what is read once
more, or by more than elementwise kernels, is made whole."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx

SIZES = [(1, 1, 1), (3, 1, 5), (1, 4, 1), (3, 4, 5), (3, 4, 1), (1, 1, 5)]
GRAPHS = {
    "add": ("y = Add (x, z)", lambda x, z: x + z),
    "both ways": ("a = Sub (x, z) b = Neg (a) y = Mul (b, z)", lambda x, z: -(x - z) * z),
    "twice": ("a = Add (x, x) y = Sub (a, z)", lambda x, z: x + x - z),
    "compared": ("a = Less (x, z) y = Cast <to = 1> (a)", lambda x, z: (x < z).astype(np.float32)),
    "read again": ("a = Add (x, z) b = Mul (a, x) y = Sub (b, z)", lambda x, z: (x + z) * x - z),
    "turned": ("t = Transpose <perm = [0, 1, 2]> (x) y = Max (t, z)", np.maximum),
    "summed": ("a = Add (x, z) y = ReduceSum <keepdims = 1> (a)", lambda x, z: np.sum(x + z, keepdims=True)),
    "power": ("one = Constant <value_floats = [1.0]> () a = Add (x, z) b = Mul (a, a) y = Add (b, one)", lambda x, z: (x + z) ** 2 + 1),
}


def session_of(text, dims, threads=1):
    """The graph `text` of open tensors x and z."""
    names = {n: ", ".join(f"{n}{i}" for i in range(d)) for n, d in dims.items()}
    graph = onnx.parser.parse_graph(f"g (float[{names['x']}] x, float[{names['z']}] z) => (float y) {{ {text} }}")
    graph.output[0].type.tensor_type.ClearField("shape")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    return sardonyx.InferenceSession(model.SerializeToString(), options)


def numbers(rng, shape):
    return rng.integers(-9, 10, shape).astype(np.float32)


@pytest.mark.parametrize("name", GRAPHS)
def test_sizes(name):
    text, expected = GRAPHS[name]
    session, rng = session_of(text, dict(x=3, z=3)), np.random.default_rng(1)
    for a, b in itertools.product([*SIZES, (0, 4, 5), (3, 1, 100)], SIZES):
        if any(i != j and 1 not in (i, j) for i, j in zip(a, b, strict=True)):
            continue
        x, z = numbers(rng, a), numbers(rng, b)
        np.testing.assert_array_equal(session.run(None, {"x": x, "z": z})[0], expected(x, z))


@pytest.mark.parametrize("threads", [1, 3])
def test_ranks_and_long_rows(threads):
    session, rng = session_of("y = Add (x, z)", dict(x=3, z=2), threads), np.random.default_rng(2)
    for a, b in [((2, 300, 400), (300, 1)), ((2, 300, 400), (1, 400)), ((1, 1, 1), (300, 401)), ((5, 1, 7000), (3, 7000)), ((5, 2, 1), (2, 9000))]:
        x, z = numbers(rng, a), numbers(rng, b)
        np.testing.assert_array_equal(session.run(None, {"x": x, "z": z})[0], x + z)


def test_what_does_not_fit_is_refused():
    session, rng = session_of("y = Add (x, z)", dict(x=2, z=2)), np.random.default_rng(3)
    with pytest.raises(Exception, match="broadcast"):
        session.run(None, {"x": numbers(rng, (2, 3)), "z": numbers(rng, (2, 4))})
    with pytest.raises(Exception, match="broadcast"):
        session.run(None, {"x": numbers(rng, (2, 3)), "z": numbers(rng, (3, 1))})
