"""Running sums, TopK and what else data order on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx.parser
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(14)
FLOATS = {"float": "f4", "float16": "f2", "double": "f8"}
INTEGERS = {"int32": "i4", "int64": "i8", "uint8": "u1", "int8": "i1", "uint32": "u4", "int16": "i2", "uint16": "u2"}
TYPES = {**FLOATS, **INTEGERS}


def parse(graph, opset=24):
    return onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : {opset}]>\n{graph}')


def numbers(type, *shape):
    """Few of them, so that many are equal."""
    if type in FLOATS:
        return (RANDOM.integers(-30, 30, shape) / 4).astype(TYPES[type])
    return RANDOM.integers(0, 256, shape).astype(TYPES[type])


def best(x, k, largest):
    """The places of the best of rows: of equals the lower index first, NaN more than all else."""
    numbers = x.astype("f8" if x.dtype.kind == "f" else "i8")
    is_nan = np.isnan(numbers)
    keys = (-numbers, ~is_nan) if largest else (numbers, is_nan)
    places = np.broadcast_to(np.arange(x.shape[1]), x.shape)
    return np.lexsort((places, *keys), axis=-1)[:, :k]


@pytest.mark.parametrize(
    ("type", "sizes", "shape", "k", "largest"),
    [
        ("float", "n, 5000", (2, 5000), 7, 1),
        ("float", "n, w", (2, 3000), 1024, 0),
        ("float", "n, w", (3, 1), 1, 1),
        ("float", "1, w", (1, 9001), 2048, 1),
        ("float", "n, 40", (5, 40), 40, 1),
        ("float", "0, 40", (0, 40), 3, 1),
        ("float", "2, 4096", (2, 4096), 4096, 0),
        ("float", "2, 20", (2, 20), 3, 0),
        ("float16", "n, 700", (3, 700), 50, 1),
        ("double", "n, 700", (3, 700), 50, 1),
        ("int32", "n, 64", (3, 64), 5, 0),
        ("int64", "n, 64", (3, 64), 5, 1),
        ("uint8", "n, 100", (3, 100), 60, 1),
        ("int8", "n, 100", (3, 100), 60, 0),
        ("uint32", "n, 100", (3, 100), 60, 0),
        ("int16", "n, 100", (3, 100), 60, 1),
        ("uint16", "n, 100", (3, 100), 60, 1),
    ],
)
def test_top_k(type, sizes, shape, k, largest):
    x = numbers(type, *shape)
    if type == "uint32":
        x = x << 24
    if type in FLOATS and x.size > 100:
        x[0, 3::50], x[0, 5::60], x[0, 9::70], x[0, 11::70] = np.nan, -0.0, np.inf, -np.inf
    text = f"g ({type}[{sizes}] x) => ({type}[a, b] y, int64[a, b] i) <int64[1] k = {{{k}}}> {{y, i = TopK <axis = 1, largest = {largest}> (x, k)}}"
    ((y, i),) = run_on_device(parse(text), [{"x": x}])
    expected = best(x, k, largest)
    np.testing.assert_array_equal(i, expected)
    np.testing.assert_array_equal(y, np.take_along_axis(x, expected, -1))


@pytest.mark.parametrize(("length", "k"), [(300, 11), (300, 300), (1, 1), (5000, 2048), (2500, 2050), (40, 0)])
def test_top_k_of_another_axis_and_an_open_number(length, k):
    x = numbers("float", 2, length, 3)
    text = "g (float[2, n, 3] x, int64[1] k) => (float[a, b, c] y, int64[a, b, c] i) {y, i = TopK <axis = 1> (x, k)}"
    ((y, i),) = run_on_device(parse(text), [{"x": x, "k": np.array([k])}])
    expected = best(x.transpose(0, 2, 1).reshape(6, length), k, 1).reshape(2, 3, k).transpose(0, 2, 1)
    np.testing.assert_array_equal(i, expected)
    np.testing.assert_array_equal(y, np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize("type", ["float", "float16", "double", "int32", "int64"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_running_sums(type, exclusive, reverse):
    """Of rows, in one piece or several, and of columns."""
    dtype = TYPES[type]
    arrays = {"a": numbers(type, 3, 33), "b": numbers(type, 2, 1024), "c": numbers(type, 2, 2500), "d": numbers(type, 2, 40, 70), "e": numbers(type, 0, 50)}
    sizes = {"a": "3, 33", "b": "n, 1024", "c": "m, w", "d": "2, 40, 70", "e": "0, 50"}
    inputs = ", ".join(f"{type}[{sizes[name]}] {name}" for name in arrays)
    outputs = ", ".join(f"{type}[{', '.join(f'{name}{dim}' for dim in range(array.ndim))}] y{name}" for name, array in arrays.items())
    nodes = "\n".join(f"y{name} = CumSum <exclusive = {exclusive}, reverse = {reverse}> ({name}, one)" for name in arrays)
    (results,) = run_on_device(parse(f"g ({inputs}) => ({outputs}) <int64 one = {{1}}> {{{nodes}}}", 14), [arrays])
    for x, y in zip(arrays.values(), results, strict=True):
        exact = x.astype("f8" if type in FLOATS else "i8")
        if reverse:
            exact = np.flip(exact, 1)
        expected = np.cumsum(exact, axis=1)
        if exclusive:
            expected = expected - exact
        if reverse:
            expected = np.flip(expected, 1)
        assert y.dtype == dtype
        if type in FLOATS:
            tolerance = {"float": 1e-5, "float16": 1e-3, "double": 1e-13}[type]
            np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance * 100)
        else:
            np.testing.assert_array_equal(y, expected.astype(dtype))


def test_what_is_found_in_ranges():
    """NonZero and Compress count in ranges, more of them than a processor has threads."""
    x, chosen = RANDOM.integers(0, 2, (60, 70)).astype("f4"), RANDOM.integers(0, 2, 3000).astype(bool)
    text = "g (float[n, m] x, bool[k] b, float[k, 3] z) => (int64[2, p] y, float[q, 3] c) {y = NonZero(x)\n c = Compress <axis = 0> (z, b)}"
    z = RANDOM.standard_normal((3000, 3)).astype("f4")
    ((y, c),) = run_on_device(parse(text, 21), [{"x": x, "b": chosen, "z": z}])
    np.testing.assert_array_equal(y, np.nonzero(x))
    np.testing.assert_array_equal(c, z[chosen])
