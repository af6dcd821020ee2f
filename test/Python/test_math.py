"""Math functions where they are hard: subnormal numbers, signed zeros, infinities, NaN, the ends of the range."""

import math

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx

# numpy's type, the largest relative error
TYPES = {
    "f32": (np.float32, 4e-6),
    "f64": (np.float64, 1e-13),
    "f16": (np.float16, 2e-3),
    "bf16": (ml_dtypes.bfloat16, 1.6e-2),
}


def has_avx2():
    with open("/proc/cpuinfo") as info:
        return " avx2 " in info.read()


CPUS = ["", "x86-64"] + (["haswell"] if has_avx2() else [])


def erf(x):
    return np.vectorize(lambda v: v if math.isnan(v) else math.erf(v), otypes=[np.float64])(x)


FUNCTIONS = {
    "Log": np.log,
    "Exp": np.exp,
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
    "Erf": erf,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.logaddexp(0, x),
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Reciprocal": lambda x: 1 / x,
}


def run(nodes, feeds, cpu, outputs=("y",)):
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{d}" for d in range(a.ndim)]
        )
        for name, a in feeds.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads, options.cpu = False, 1, cpu
    return sdx.InferenceSession(model.SerializeToString(), options).run(list(outputs), feeds)


def specials(dtype):
    info = ml_dtypes.finfo(dtype)
    tiny, least, most = (float(v) for v in (info.smallest_subnormal, info.tiny, info.max))
    values = [0.0, np.inf, np.nan, tiny, 3 * tiny, 50 * tiny, least * 0.75, least, most / 2, most]
    values += [1, 1 + float(info.eps), 1 - float(info.eps), 0.5, 2, 0.7071, 0.70711, 1.41421, 3e-4, 1e-3]
    values += [10, 20, 50, 80, 86, 87.3, 87.5, 88.5, 88.73, 88.8, 90, 95, 100, 103, 104, 110, 150, 175.9, 176, 177, 200, 700, 709, 740, 745, 750]
    random = np.random.default_rng(0)
    values += list(np.abs(random.standard_normal(100))) + list(np.exp(random.uniform(-100, 80, 100)))
    with np.errstate(all="ignore"):
        return np.array(values + [-v for v in values]).astype(dtype)


def compare(got, want, dtype, relative):
    """Equal up to `relative` and two of the smallest steps there are; `want` is exact."""
    with np.errstate(all="ignore"):
        want = np.asarray(want).astype(dtype).astype(np.float64)
        got = np.asarray(got).astype(np.float64)
        step = float(ml_dtypes.finfo(dtype).smallest_subnormal)
        near = np.abs(got - want) <= relative * np.abs(want) + 2 * step
        return (got == want) | (np.isnan(got) & np.isnan(want)) | near


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", TYPES)
def test_functions(kind, cpu):
    dtype, relative = TYPES[kind]
    x = specials(dtype)
    exact = x.astype(np.float64)
    nodes = [helper.make_node(name, ["x"], [name]) for name in FUNCTIONS]
    results = run(nodes, {"x": x}, cpu, tuple(FUNCTIONS))
    for (name, function), got in zip(FUNCTIONS.items(), results):
        with np.errstate(all="ignore"):
            want = function(exact)
        if name == "Sigmoid":  # 1 / (1 + exp(-x)) is 0 where exp(-x) is infinite
            want = np.where((want < 1e-37) & (got == 0), 0, want)
        right = compare(got, want, dtype, relative)
        assert right.all(), (name, [(exact[i], got[i], want[i]) for i in np.where(~right)[0][:5]])


@pytest.mark.parametrize("cpu", CPUS)
def test_products_with_a_sigmoid(cpu):
    sizes = np.logspace(-40, 38, 20001)
    x = np.concatenate([np.linspace(-87, 87, 20001), sizes, -sizes, [0.0, -0.0]]).astype(np.float32)
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["s", "z"], ["y"])]
    for z in (x, np.full_like(x, 3)):
        (y,) = run(nodes, {"x": x, "z": z}, cpu)
        with np.errstate(over="ignore"):
            want = z / (1 + np.exp(-x.astype(np.float64)))
        # A sigmoid is 0 where exp(-x) is infinite.
        near = np.abs(y - want) <= 4e-7 * np.abs(want) + 1e-44
        assert (near | (x < -87) & (np.abs(y) <= np.abs(want))).all(), cpu
    (y,) = run(nodes, {"x": np.float32([np.inf, -np.inf, np.nan]), "z": np.float32([2, 2, 2])}, cpu)
    np.testing.assert_array_equal(y, np.float32([2, 0, np.nan]))


@pytest.mark.parametrize("cpu", CPUS)
def test_erf_in_units_of_the_last_place(cpu):
    x = np.concatenate([np.linspace(0, 5, 100001), np.logspace(-40, 1, 10000)]).astype(np.float32)
    x = np.concatenate([x, -x])
    (y,) = run([helper.make_node("Erf", ["x"], ["y"])], {"x": x}, cpu)
    want = erf(x.astype(np.float64))
    step = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert (np.abs(y - want) / step).max() <= 4
    assert np.abs(y).max() == 1
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x))


# The largest distance from the exact number, in units of the last place.
ANGLES = {"Sin": 2.5, "Cos": 2.5, "Tan": 5, "Asin": 3, "Acos": 3, "Atan": 2}


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", ANGLES)
def test_angles_in_units_of_the_last_place(name, cpu):
    rng = np.random.default_rng(4)
    if name in ("Asin", "Acos"):
        x = np.concatenate([np.linspace(0, 1, 100001), np.logspace(-40, 0, 10000), 1 - np.logspace(-7, 0, 1000)])
    elif name == "Atan":
        x = np.concatenate([np.linspace(0, 3, 100001), np.logspace(-40, 38, 10000)])
    else:
        multiples = np.arange(1, 8000) * (math.pi / 4)
        x = np.concatenate([rng.uniform(0, 10, 100000), rng.uniform(0, 12800, 100000), multiples, np.logspace(-40, 4, 10000)])
        if "x86-64" not in cpu:
            x = np.concatenate([x, rng.uniform(0, 131000, 100000), np.arange(1, 166000) * (math.pi / 4)])
    x = x.astype(np.float32)
    # Of one kind in a row, whose vectors need no library; then one that needs it in each.
    large = np.float32([1e9, np.inf, np.nan, -3e38])[:, None]
    x = np.concatenate([x, -x])
    mixed = np.concatenate([np.repeat(large, 40, 1), np.tile(x[:40], (4, 1))], 1).reshape(-1) if name in ("Sin", "Cos", "Tan") else x[:7]
    function = {"Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan}.get(name) or getattr(np, name.lower())
    for values in (x, mixed):
        (y,) = run([helper.make_node(name, ["x"], ["y"])], {"x": values}, cpu)
        with np.errstate(invalid="ignore"):
            want = function(values.astype(np.float64))
        known = np.isfinite(want)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
        step = np.spacing(np.abs(want[known]).astype(np.float32)).astype(np.float64)
        error = np.abs(y[known] - want[known]) / step
        assert error.max() <= ANGLES[name], (values[known][error.argmax()], error.max())
        np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(want[known]))


@pytest.mark.parametrize("cpu", CPUS)
def test_doubles_in_units_of_the_last_place(cpu):
    """Against 80 bits; what is beyond an angle of 2^31 is the library's."""
    random = np.random.default_rng(0)
    scales = [1e-9, 0.1, 1, 20, 700, 1e5, 1e12]
    everywhere = np.concatenate([random.standard_normal(400) * s for s in scales])
    unit = random.uniform(-1, 1, 3000)
    domains = {"Asin": unit, "Acos": unit, "Atanh": unit, "Acosh": 1 + abs(everywhere), "Log": abs(everywhere)}
    for name, function in FUNCTIONS.items():
        if name in ("Erf", "Sigmoid", "Softplus", "Reciprocal"):
            continue
        x = domains.get(name, everywhere)
        if name in ("Sin", "Cos", "Tan"):
            x = np.sort(x)  # so that most vectors have no large angle
        (y,) = run([helper.make_node(name, ["x"], ["y"])], {"x": x}, cpu)
        with np.errstate(all="ignore"):
            want = function(x.astype(np.longdouble)).astype(np.float64)
        known = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(y), known, name)
        assert (abs(y[known] - want[known]) / np.spacing(abs(want[known]))).max() <= 4, name


@pytest.mark.parametrize("cpu", CPUS)
def test_pow_in_units_of_the_last_place(cpu):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0.5, 2, 100000), np.exp(rng.uniform(-87, 88, 100000)), np.exp(rng.uniform(-103, -87, 1000))])
    y = np.concatenate([rng.uniform(-90, 90, 100000), rng.uniform(-1, 1, 100000), rng.uniform(-1, 1, 1000)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    (z,) = run([helper.make_node("Pow", ["x", "y"], ["z"])], {"x": x, "y": y}, cpu, ("z",))
    want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    normal = (want > np.finfo(np.float32).tiny) & (want < np.finfo(np.float32).max)
    error = np.abs(z - want)[normal] / np.spacing(want[normal].astype(np.float32))
    assert error.max() <= 1


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_remainders_are_exact(dtype, cpu):
    rng = np.random.default_rng(6)
    with np.errstate(over="ignore"):
        x = np.concatenate([rng.uniform(-1000, 1000, 20000), np.exp(rng.uniform(-80, 80, 2000)), np.arange(-500, 500)]).astype(dtype)
        y = np.concatenate([rng.uniform(-3, 3, 20000), np.exp(rng.uniform(-80, 80, 2000)), np.tile([-3, 7, 0.5, 1, 2.5], 200)]).astype(dtype)
        whole = np.round(rng.uniform(-100, 100, 1000)).astype(dtype)
        divisors = rng.uniform(0.1, 9, 1000).astype(dtype)
        # Quotients that are nearly whole numbers.
        products = (whole * divisors).astype(dtype)
        x = np.concatenate([x, products, np.nextafter(products, dtype(np.inf)), np.nextafter(products, dtype(-np.inf))])
        y = np.concatenate([y, divisors, divisors, divisors])
        special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3, 1e-7], dtype)
        first, second = (part.ravel() for part in np.meshgrid(special, special))
        x, y = np.concatenate([x, first]), np.concatenate([y, second])
    (z,) = run([helper.make_node("Mod", ["x", "y"], ["z"], fmod=1)], {"x": x, "y": y}, cpu, ("z",))
    with np.errstate(invalid="ignore"):
        want = np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(z, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(z)[known], np.signbit(want)[known])


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", TYPES)
def test_pow(kind, cpu):
    dtype, relative = TYPES[kind]
    x = specials(dtype)[::3]
    y = np.array([0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1 / 3, 7, -7, np.inf, -np.inf, np.nan, 100, 101]).astype(dtype)
    (got,) = run([helper.make_node("Pow", ["x", "y"], ["y_"])], {"x": x[:, None], "y": y[None]}, cpu, ("y_",))
    with np.errstate(all="ignore"):
        want = np.power(x[:, None].astype(np.float64), y[None].astype(np.float64))
    right = compare(got, want, dtype, relative)
    assert right.all(), [(x[i], y[j], got[i, j], want[i, j]) for i, j in zip(*np.where(~right))][:5]


def test_log_of_what_is_nearly_nothing():
    """The logarithm of a probability that is a subnormal number is finite."""
    x = np.array([[0, -90, -95], [-100, 0, -87.5]], np.float32)
    nodes = [helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("Log", ["p"], ["y"])]
    (y,) = run(nodes, {"x": x}, "")
    np.testing.assert_allclose(y, x, rtol=1e-2)


def test_division_by_a_tiny_sum():
    x = np.array([[1e-39, 2e-39, 0, 3e-39] * 8, [1, 2, 3, 4] * 8], np.float32)
    nodes = [helper.make_node("ReduceL1", ["x", "axes"], ["n"]), helper.make_node("Div", ["x", "n"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 32])],
        [onnx.ValueInfoProto(name="y")],
        [onnx.numpy_helper.from_array(np.array([1]), "axes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    options = sdx.SessionOptions()
    options.cache = False
    (y,) = sdx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    np.testing.assert_allclose(y, x.astype(np.float64) / x.astype(np.float64).sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("keys", [49, 512])
def test_masked_scores_before_a_product(keys, cpu):
    """What a mask of -100 leaves out counts for nothing, and is right."""
    rng = np.random.default_rng(keys)
    x = (rng.standard_normal((3, 64, keys)) * 2 + np.where(rng.random((3, 64, keys)) < 0.4, -100, 0)).astype(np.float32)
    x[..., :8] = -np.linspace(86, 89, 8)
    x[..., 8] = 0
    v = rng.standard_normal((3, keys, 32)).astype(np.float32)
    nodes = [helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("MatMul", ["p", "v"], ["y"])]
    (y,) = run(nodes, {"x": x, "v": v}, cpu)
    terms = np.exp(x.astype(float) - x.max(-1, keepdims=True))
    np.testing.assert_allclose(y, terms / terms.sum(-1, keepdims=True) @ v.astype(float), rtol=1e-5, atol=2e-6)
