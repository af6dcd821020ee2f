"""Transposes and gathers on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx.parser
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(13)
TYPES = {"double": "f8", "float": "f4", "float16": "f2", "int8": "i1", "bool": "?"}


def numbers(dtype, *shape):
    return RANDOM.integers(-100, 100, shape).astype(dtype)


def parse(graph):
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + graph)


# The order, the sizes that the model says, and those of runs.
TRANSPOSES = [
    ((1, 0), "64, 96", [(64, 96)]),
    ((1, 0), "a, b", [(65, 33), (1, 70), (70, 1), (0, 5), (5, 0), (130, 9)]),
    ((0, 2, 1), "n, 33, 66", [(3, 33, 66)]),
    ((0, 2, 3, 1), "2, 3, 17, 20", [(2, 3, 17, 20)]),
    ((0, 3, 1, 2), "2, 17, 20, 3", [(2, 17, 20, 3)]),
    ((0, 2, 1, 3), "n, s, 12, 64", [(2, 5, 12, 64)]),
    ((0, 2, 1, 3), "2, 7, 4, w", [(2, 7, 4, 5)]),
    ((2, 1, 0), "20, 3, 40", [(20, 3, 40)]),
    ((3, 1, 2, 0), "a, 2, b, 36", [(9, 2, 5, 36)]),
    ((1, 2, 0), "40, 2, 70", [(40, 2, 70)]),
]


@pytest.mark.parametrize("type", TYPES)
def test_transposes(type):
    """All in one model, each with sizes of its own."""
    inputs, outputs, nodes, feeds = [], [], [], {}
    for number, (order, sizes, runs) in enumerate(TRANSPOSES):
        for run, shape in enumerate(runs):
            name = f"{number}_{run}"
            sizes_of_run = ", ".join(size if size.isdigit() else f"{size}{name}" for size in sizes.split(", "))
            inputs.append(f"{type}[{sizes_of_run}] x{name}")
            outputs.append(f"{type}[{', '.join(f'o{name}{dim}' for dim in range(len(shape)))}] y{name}")
            nodes.append(f"y{name} = Transpose <perm = [{', '.join(map(str, order))}]> (x{name})")
            feeds[f"x{name}"] = numbers(TYPES[type], *shape)
    model = parse(f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{{chr(10).join(nodes)}}}")
    (results,) = run_on_device(model, [feeds])
    orders = [order for order, _, runs in TRANSPOSES for _ in runs]
    for x, order, y in zip(feeds.values(), orders, results, strict=True):
        np.testing.assert_array_equal(y, x.transpose(order))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("axis", "sizes", "shape", "indices"),
    [
        (0, "100, 64", (100, 64), (3, 7)),
        (0, "n, 30", (9, 30), (20,)),
        (0, "n, w", (9, 7), (20,)),
        (1, "4, 9, 16", (4, 9, 16), (5,)),
        (1, "n, 9, h, w", (2, 9, 3, 5), (2, 2)),
        (2, "4, 9, 16", (4, 9, 16), (5,)),
        (0, "n", (50,), (11,)),
        (0, "5, 8", (5, 8), ()),
        (0, "5, 0", (5, 0), (3,)),
    ],
)
def test_gathers(type, axis, sizes, shape, indices):
    x = numbers(TYPES[type], *shape)
    at = RANDOM.integers(-shape[axis], shape[axis], indices)
    ranks = ", ".join("pqrstu"[: len(shape) - 1 + len(indices)])
    at_sizes = ", ".join("abc"[: len(indices)])
    at_type = f"int64[{at_sizes}]" if at_sizes else "int64"
    model = parse(f"g ({type}[{sizes}] x, {at_type} at) => ({type}[{ranks}] y) {{y = Gather <axis = {axis}> (x, at)}}")
    ((y,),) = run_on_device(model, [{"x": x, "at": np.asarray(at)}])
    np.testing.assert_array_equal(y, np.take(x, at, axis))


def test_an_index_out_of_range():
    model = parse("g (float[8, 64] x, int64[n] at) => (float[n, 64] y) {y = Gather(x, at)}")
    with pytest.raises(AssertionError, match="index 8 is out of range for a dimension of size 8"):
        run_on_device(model, [{"x": numbers("f4", 8, 64), "at": np.array([1, 8])}])
