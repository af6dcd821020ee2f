"""Running sums, TopK and what else data order on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx.parser
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(14)
FLOATS = {"float": "f4", "float16": "f2", "double": "f8"}
INTEGERS = {"int32": "i4", "int64": "i8", "uint8": "u1", "int8": "i1", "uint32": "u4", "int16": "i2", "uint16": "u2", "uint64": "u8"}
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
    is_nan = np.isnan(x)
    order = np.unique(np.where(is_nan, x.dtype.type(0), x), return_inverse=True)[1].reshape(x.shape)
    keys = (-order, ~is_nan) if largest else (order, is_nan)
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
        ("double", "2, w", (2, 5000), 100, 0),
        ("int64", "1, w", (1, 2500), 2500, 0),
        ("uint64", "n, 300", (2, 300), 40, 1),
        ("uint8", "n, 100", (3, 100), 60, 1),
        ("int8", "n, 100", (3, 100), 60, 0),
        ("uint32", "n, 100", (3, 100), 60, 0),
        ("int16", "n, 100", (3, 100), 60, 1),
        ("uint16", "n, 100", (3, 100), 60, 1),
    ],
)
def test_top_k(type, sizes, shape, k, largest):
    x = numbers(type, *shape)
    if type in ("uint32", "uint64", "int64"):
        x = x << (8 * x.itemsize - 8)
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


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 1)])
def test_long_rows(operator, exclusive, reverse):
    """Few rows that are cut into parts, whether that is known or not, and columns."""
    arrays = {"a": (1, 20000), "b": (2, 9000), "c": (2, 8192), "d": (1, 1000, 3), "e": (2, 600, 2), "f": (2, 500)}
    sizes = {"a": "1, 20000", "b": "n, w", "c": "2, v", "d": "1, 1000, 3", "e": "2, u, t", "f": "n, w2"}
    feeds = {name: RANDOM.choice(np.array([1, -1] if operator == "CumProd" else [0, 1, 2, 3], "i4"), shape) for name, shape in arrays.items()}
    inputs = ", ".join(f"int32[{sizes[name]}] {name}" for name in arrays)
    outputs = ", ".join(f"int32[{', '.join(f'{name}{dim}' for dim in range(len(shape)))}] y{name}" for name, shape in arrays.items())
    nodes = "\n".join(f"y{name} = {operator} <exclusive = {exclusive}, reverse = {reverse}> ({name}, one)" for name in arrays)
    (results,) = run_on_device(parse(f"g ({inputs}) => ({outputs}) <int64 one = {{1}}> {{{nodes}}}", 26), [feeds])
    for x, y in zip(feeds.values(), results, strict=True):
        run = np.cumprod if operator == "CumProd" else np.cumsum
        turned = np.flip(x, 1) if reverse else x
        expected = run(turned, axis=1)
        if exclusive:
            expected = np.concatenate([np.full_like(x[:, :1], operator == "CumProd"), expected[:, :-1]], 1)
        np.testing.assert_array_equal(y, (np.flip(expected, 1) if reverse else expected).astype("i4"))


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize(("type", "shape", "axis"), [("float", (700,), None), ("int64", (5000,), None), ("uint8", (20, 5), None), ("float", (60, 2), 0), ("int32", (2, 9, 3), 1), ("double", (1,), None)])
def test_unique(type, shape, axis, is_sorted):
    x = numbers(type, *shape) if axis is None else numbers(type, *shape) % 2
    if type == "float" and axis is None:
        x[::50] = np.inf
    where = "" if axis is None else f"axis = {axis}, "
    names = ", ".join(f"n{dim}" for dim in range(len(shape)))
    result = "a" if axis is None else ", ".join(f"m{dim}" for dim in range(len(shape)))
    text = f"g ({type}[{names}] x) => ({type}[{result}] y, int64[b] i, int64[c] inverse, int64[d] counts) {{y, i, inverse, counts = Unique <{where}sorted = {is_sorted}> (x)}}"
    ((y, first, inverse, counts),) = run_on_device(parse(text), [{"x": x}])
    right = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    order = np.arange(len(right[1])) if is_sorted else np.argsort(right[1])
    np.testing.assert_array_equal(y, np.take(right[0], order, axis or 0))
    np.testing.assert_array_equal(first, right[1][order])
    np.testing.assert_array_equal(inverse, np.argsort(order)[right[2].ravel()])
    np.testing.assert_array_equal(counts, right[3][order])


def test_unique_of_nothing():
    text = "g (float[n] x) => (float[a] y, int64[b] i, int64[c] inverse, int64[d] counts) {y, i, inverse, counts = Unique(x)}"
    for part in run_on_device(parse(text), [{"x": np.zeros(0, "f4")}])[0]:
        assert part.shape == (0,)


def suppress(boxes, scores, most, overlap, least):
    """One box after the other; all in f32, as the operator says."""
    kept = []
    for batch, group in np.ndindex(scores.shape[:2]):
        order = [i for i in np.argsort(-scores[batch, group], kind="stable") if least is None or scores[batch, group, i] > least]
        chosen = []
        for i in order:
            y0, x0, y1, x1 = boxes[batch, i]
            for j in chosen:
                v0, u0, v1, u1 = boxes[batch, j]
                height, width = min(y1, v1) - max(y0, v0), min(x1, u1) - max(x0, u0)
                common = height * width
                if height > 0 and width > 0 and common / ((y1 - y0) * (x1 - x0) + (v1 - v0) * (u1 - u0) - common) > overlap:
                    break
            else:
                if len(chosen) < most:
                    chosen.append(i)
        kept += [(batch, group, i) for i in chosen]
    return np.array(kept, np.int64).reshape(-1, 3)


@pytest.mark.parametrize(("shape", "most", "least"), [((1, 1, 200), 50, 0.3), ((2, 3, 70), 200, None), ((2, 4, 40), 3, 0.5), ((1, 2, 30), 0, 0.2), ((1, 5, 20), 10, 2.0)])
def test_non_max_suppression(shape, most, least):
    batches, _, count = shape
    corners, sizes = RANDOM.integers(0, 40, (batches, count, 2)), RANDOM.integers(1, 20, (batches, count, 2))
    boxes = np.concatenate([corners, corners + sizes], -1).astype("f4")
    scores = (RANDOM.integers(0, 100, shape) / 100).astype("f4")
    given = "" if least is None else ", float[1] least"
    text = f"g (float[b, n, 4] boxes, float[b, c, n] scores, int64[1] most, float[1] overlap{given}) => (int64[k, 3] y) {{y = NonMaxSuppression (boxes, scores, most, overlap{', least' if given else ''})}}"
    feeds = {"boxes": boxes, "scores": scores, "most": np.array([most]), "overlap": np.array([0.4], "f4")}
    if least is not None:
        feeds["least"] = np.array([least], "f4")
    ((y,),) = run_on_device(parse(text), [feeds])
    np.testing.assert_array_equal(y, suppress(boxes, scores, most, np.float32(0.4), None if least is None else np.float32(least)))


def test_what_is_found_in_ranges():
    """NonZero and Compress count in ranges, more of them than a processor has threads."""
    x, chosen = RANDOM.integers(0, 2, (60, 70)).astype("f4"), RANDOM.integers(0, 2, 3000).astype(bool)
    text = "g (float[n, m] x, bool[k] b, float[k, 3] z) => (int64[2, p] y, float[q, 3] c) {y = NonZero(x)\n c = Compress <axis = 0> (z, b)}"
    z = RANDOM.standard_normal((3000, 3)).astype("f4")
    ((y, c),) = run_on_device(parse(text, 21), [{"x": x, "b": chosen, "z": z}])
    np.testing.assert_array_equal(y, np.nonzero(x))
    np.testing.assert_array_equal(c, z[chosen])
