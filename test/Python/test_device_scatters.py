"""Writes at places that data decide on a CUDA device, which libsdx-fakecuda.so stands for, against numpy."""

import numpy as np
import onnx.parser
import pytest
from device_models import run_on_device

RANDOM = np.random.default_rng(15)
TYPES = {"float": "f4", "float16": "f2", "double": "f8", "int32": "i4", "int64": "i8", "uint8": "u1", "int16": "i2", "uint32": "u4", "bool": "?"}
UFUNCS = {"none": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def parse(graph, opset=24):
    return onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : {opset}]>\n{graph}')


def numbers(type, *shape):
    """Small ones, so that sums and products are the same in any order."""
    return RANDOM.integers(0, 4, shape).astype(TYPES[type])


def scatter_elements(data, indices, updates, axis, reduction):
    """One by one: of equal places the last one stays."""
    result, ufunc = data.copy(), UFUNCS[reduction]
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place]
        at = tuple(target)
        result[at] = ufunc(result[at], updates[place]) if ufunc else updates[place]
    return result


def scatter_tuples(data, indices, updates, reduction):
    result, ufunc = data.copy(), UFUNCS[reduction]
    for place in np.ndindex(indices.shape[:-1]):
        at = tuple(indices[place])
        result[at] = ufunc(result[at], updates[place]) if ufunc else updates[place]
    return result


def sizes_of(name, shape, is_open):
    return ", ".join(f"{name}{dim}" if is_open else str(size) for dim, size in enumerate(shape))


@pytest.mark.parametrize(
    ("type", "reduction"),
    [(type, "none") for type in TYPES]
    + [("float", "add"), ("double", "add"), ("float16", "add"), ("int32", "add"), ("int64", "add"), ("int16", "add"), ("uint8", "add")]
    + [("float", "mul"), ("float16", "min"), ("float", "max"), ("double", "min"), ("int64", "mul"), ("int32", "min"), ("uint32", "max")],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_elements(type, reduction, is_open):
    """Rows before the axis, columns behind it, few updates and many, all in one model."""
    forms = [((40,), (30,), 0), ((50,), (300,), 0), ((10, 40), (20, 40), 0), ((5, 7), (4, 200), 1), ((4, 6, 3), (4, 70, 2), 1), ((200, 130), (9, 130), 0)]
    inputs, outputs, nodes, feeds, expected = [], [], [], {}, []
    for number, (data, indices, axis) in enumerate(forms):
        x, u = numbers(type, *data), numbers(type, *indices)
        i = RANDOM.integers(-data[axis], data[axis], indices)
        feeds |= {f"x{number}": x, f"i{number}": i, f"u{number}": u}
        inputs += [f"{type}[{sizes_of(f'p{number}', data, is_open)}] x{number}"]
        inputs += [f"{kind}[{sizes_of(f'q{number}', indices, is_open)}] {name}{number}" for kind, name in (("int64", "i"), (type, "u"))]
        outputs.append(f"{type}[{sizes_of(f'r{number}', data, True)}] y{number}")
        nodes.append(f'y{number} = ScatterElements <axis = {axis}, reduction = "{reduction}"> (x{number}, i{number}, u{number})')
        expected.append(scatter_elements(x, i, u, axis, reduction))
    text = f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{{chr(10).join(nodes)}}}"
    (results,) = run_on_device(parse(text, 18), [feeds])
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize(("type", "reduction"), [("float", "none"), ("float16", "none"), ("uint8", "none"), ("float", "add"), ("int32", "max"), ("float16", "mul")])
@pytest.mark.parametrize("is_open", [False, True])
def test_tuples(type, reduction, is_open):
    """Whole tuples, rows, matrices; few updates and many; the tuple's dimensions before them."""
    forms = [((30,), (50, 1)), ((9, 7), (70, 2)), ((50, 64), (6, 1)), ((50, 64), (100, 1)), ((4, 8, 16), (3, 2)), ((12, 5, 300), (4, 1)), ((6, 5), (2, 3, 1)), ((3, 4), (5, 0))]
    inputs, outputs, nodes, feeds, expected = [], [], [], {}, []
    for number, (data, indices) in enumerate(forms):
        tuple_size = indices[-1]
        x, u = numbers(type, *data), numbers(type, *indices[:-1], *data[tuple_size:])
        i = np.stack([RANDOM.integers(-size, size, indices[:-1]) for size in data[:tuple_size]] or [np.zeros((*indices[:-1], 0), "i8")], -1)
        i = i.reshape(indices).astype("i8")
        feeds |= {f"x{number}": x, f"i{number}": i, f"u{number}": u}
        outer = sizes_of(f"q{number}", indices[:-1], is_open)
        inputs += [f"{type}[{sizes_of(f'p{number}', data, is_open)}] x{number}", f"int64[{outer}, {tuple_size}] i{number}"]
        inputs += [f"{type}[{sizes_of(f's{number}', u.shape, is_open)}] u{number}"]
        outputs.append(f"{type}[{sizes_of(f'r{number}', data, True)}] y{number}")
        nodes.append(f'y{number} = ScatterND <reduction = "{reduction}"> (x{number}, i{number}, u{number})')
        expected.append(scatter_tuples(x, i, u, reduction))
    text = f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{{chr(10).join(nodes)}}}"
    (results,) = run_on_device(parse(text, 18), [feeds])
    for number, (result, right) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_array_equal(result, right, err_msg=str(number))


def test_more_updates_than_a_block_of_the_loop():
    """The conversion cuts long loops into blocks."""
    count = 70000
    x, u, i = np.zeros(5000, "f4"), np.arange(count, dtype="f4"), RANDOM.integers(0, 5000, count)
    text = f"g (float[5000] x, int64[{count}] i, float[{count}] u, int64[n] j, float[n] v) => (float[5000] y, float[5000] z) {{y = ScatterElements(x, i, u)\n z = ScatterElements(x, j, v)}}"
    (results,) = run_on_device(parse(text), [{"x": x, "i": i, "u": u, "j": i, "v": u}])
    expected = x.copy()
    for at, value in zip(i, u):
        expected[at] = value
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_what_a_model_makes_is_updated_in_place():
    x, u, i = numbers("float", 20, 64), numbers("float", 3, 64), np.array([[4], [19], [4]])
    text = "g (float[20, 64] x, int64[3, 1] i, float[3, 64] u, float[20, 64] w) => (float[20, 64] y) {a = MatMul(x, wt)\n b = ScatterND(a, i, u)\n y = ScatterND(b, j, u)}"
    text = text.replace("float[20, 64] w)", "float[64, 64] wt, int64[n, 1] j)")
    w = np.eye(64, dtype="f4")
    ((y,),) = run_on_device(parse(text), [{"x": x, "i": i, "u": u, "wt": w, "j": i + 1 - 20}])
    np.testing.assert_array_equal(y, scatter_tuples(scatter_tuples(x, i, u, "none"), i + 1 - 20, u, "none"))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(("cache", "length", "axis"), [((3, 2, 20, 64), 4, -2), ((3, 17, 5), 6, 1), ((2, 4, 9), 9, 2), ((3, 2, 20, 64), 1, 2)])
@pytest.mark.parametrize("is_open", [False, True])
def test_caches(mode, cache, length, axis, is_open):
    axis %= len(cache)
    shape = (*cache[:axis], length, *cache[axis + 1 :])
    x, u = numbers("float", *cache), numbers("float", *shape) + 5
    last = cache[axis] - (length if mode == "linear" else 1)
    at = RANDOM.integers(0, last + 1, cache[0])
    at[0] = last
    text = f"g (float[{sizes_of('p', cache, is_open)}] x, float[{sizes_of('q', shape, is_open)}] u, int64[b] at) => (float[{sizes_of('r', cache, True)}] y)"
    text += f'{{y = TensorScatter <axis = {axis}, mode = "{mode}"> (x, u, at)}}'
    ((y,),) = run_on_device(parse(text), [{"x": x, "u": u, "at": at}])
    expected = x.copy()
    for sample in range(cache[0]):
        places = (at[sample] + np.arange(length)) % cache[axis]
        np.moveaxis(expected[sample], axis - 1, 0)[places] = np.moveaxis(u[sample], axis - 1, 0)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("count", [5, 200])
def test_unpooling(count):
    """Zeros everywhere but at the places of the maxima; of equal places the last one stays."""
    x, places = RANDOM.standard_normal((1, 1, 1, count)).astype("f4"), RANDOM.integers(0, 2 * count, (1, 1, 1, count))
    places[..., 0] = places[..., -1]
    text = f"g (float[1, 1, 1, {count}] x, int64[1, 1, 1, {count}] i) => (float[a, b, c, d] y) {{y = MaxUnpool <kernel_shape = [1, 2], strides = [1, 2]> (x, i)}}"
    ((y,),) = run_on_device(parse(text), [{"x": x, "i": places}])
    expected = np.zeros(2 * count, "f4")
    for place, value in zip(places.ravel(), x.ravel()):
        expected[place] = value
    np.testing.assert_array_equal(y.ravel(), expected)


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("count", [4, 300])
def test_an_index_out_of_range(reduction, count):
    text = f'g (float[8] x, int64[{count}] i, float[{count}] u) => (float[8] y) {{y = ScatterElements <reduction = "{reduction}"> (x, i, u)}}'
    i = np.zeros(count, "i8")
    i[2] = 8
    with pytest.raises(AssertionError, match="index 8 is out of range for a dimension of size 8"):
        run_on_device(parse(text, 18), [{"x": np.zeros(8, "f4"), "i": i, "u": np.ones(count, "f4")}])
