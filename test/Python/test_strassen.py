"""Products by Strassen's algorithm against sums in double precision."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx

# What rounding may take of a result, in the norm of its row (docs/performance/HowItWorks.md).
BOUND = 2.5e-6


def product(w, rows, transposed=False, bias=None, relu=False):
    inputs = ["x", "w"] + (["b"] if bias is not None else [])
    nodes = [helper.make_node("Gemm", inputs, ["p" if relu else "y"], transB=int(transposed))]
    if relu:
        nodes.append(helper.make_node("Relu", ["p"], ["y"]))
    depth, columns = w.T.shape if transposed else w.shape
    held = [numpy_helper.from_array(w, "w")]
    if bias is not None:
        held.append(numpy_helper.from_array(bias, "b"))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, depth])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, columns])], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def load(model, numerics="f32", threads=1, cpu=None, check_bounds=False):
    options = sardonyx.SessionOptions()
    options.numerics = numerics
    options.split_floats = False  # these products would go by parts where there is AMX
    options.cache = False
    options.intra_op_num_threads = threads
    options.check_bounds = check_bounds
    if cpu:
        options.cpu = cpu
    return sardonyx.InferenceSession(model.SerializeToString(), options)


def run(model, x, **options):
    return load(model, **options).run(None, {"x": x})[0]


def error(y, exact):
    """The largest of all rows'."""
    norms = np.linalg.norm(exact, axis=1)
    return np.max(np.linalg.norm(y - exact, axis=1)[norms > 0] / norms[norms > 0])


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


SHAPES = [
    (300, 256, 512),
    (128, 768, 1024),
    (55, 768, 768),
    (131, 512, 1056),  # an odd number of rows, and of panels
    (500, 1536, 416),  # two ranges of k
    (600, 512, 704),  # an odd number of pairs of panels, two blocks of rows
    (1101, 288, 512),  # three blocks, of which the last is smaller
]


def processor_features():
    with open("/proc/cpuinfo") as file:
        return file.read()


@pytest.mark.parametrize("cpu", [None, "haswell", "skylake-avx512"])
@pytest.mark.parametrize("rows,depth,columns", SHAPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_against_doubles(cpu, rows, depth, columns, threads):
    if cpu == "skylake-avx512" and "avx512vl" not in processor_features():
        pytest.skip("this processor has no AVX-512")
    rng = np.random.default_rng(rows)
    w, x = normal(rng, depth, columns), normal(rng, rows, depth)
    exact = x.astype(np.float64) @ w
    for size in (rows, "m"):
        y = run(product(w, size), x, threads=threads, cpu=cpu)
        assert error(y, exact) < BOUND
        if threads == 1:
            assert not np.array_equal(y, run(product(w, size), x, numerics="exact", cpu=cpu))


def test_it_is_used_for_many_rows_only():
    rng = np.random.default_rng(0)
    w = normal(rng, 512, 512)
    fast, direct = load(product(w, "m")), load(product(w, "m"), numerics="exact")
    for rows in (1, 5, 47, 200, 1100):
        x = normal(rng, rows, 512)
        y, z = fast.run(None, {"x": x})[0], direct.run(None, {"x": x})[0]
        assert error(y, x.astype(np.float64) @ w) < BOUND
        assert np.array_equal(y, z) == (rows < 48)


def test_threads_share_it_with_the_same_results():
    rng = np.random.default_rng(1)
    w, x = normal(rng, 512, 512), normal(rng, 400, 512)
    results = [run(product(w, 400), x, threads=threads) for threads in (1, 2, 3)]
    exact = x.astype(np.float64) @ w
    assert all(error(y, exact) < BOUND for y in results)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("rows,depth,columns", [(250, 512, 1024), (250, 1536, 1024), (500, 768, 320)])
def test_who_is_done_takes_from_others(rows, depth, columns):
    """Runs beside each other have fewer threads than parts: one has those of another."""
    rng = np.random.default_rng(7)
    w, x = normal(rng, depth, columns), normal(rng, rows, depth)
    session = load(product(w, rows), threads=2)
    alone = session.run(None, {"x": x})[0]
    assert error(alone, x.astype(np.float64) @ w) < BOUND
    with ThreadPoolExecutor(4) as pool:
        for y in pool.map(lambda _: session.run(None, {"x": x})[0], range(40)):
            np.testing.assert_array_equal(y, alone)


def test_what_follows_the_product():
    rng = np.random.default_rng(2)
    w, x, bias = normal(rng, 416, 512), normal(rng, 150, 512), normal(rng, 416)
    y = run(product(w, "m", transposed=True, bias=bias, relu=True), x)
    exact = np.maximum(x.astype(np.float64) @ w.T + bias, 0)
    assert error(y, exact) < BOUND


@pytest.mark.parametrize("depth", [512, 1536])
def test_rows_of_other_sizes(depth):
    """What is between rows that are added must not be in the error of the smaller."""
    rng = np.random.default_rng(3)
    w, x = normal(rng, depth, 512), normal(rng, 200, depth)
    x[3], x[103] = 0, 0
    x[20] *= 1e-6
    x[110] *= 1e8
    x[41, :7] *= 1e-12
    x[60] *= 1e-37
    y = run(product(w, 200), x)
    assert error(y, x.astype(np.float64) @ w) < BOUND
    assert not y[3].any() and not y[103].any()


@pytest.mark.parametrize("depth", [512, 1536])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_rows_that_are_not_finite(depth, value):
    rng = np.random.default_rng(4)
    w, x = normal(rng, depth, 512), normal(rng, 200, depth)
    x[7, 5] = x[131, depth - 1] = value
    with np.errstate(invalid="ignore", over="ignore"):
        exact = x.astype(np.float64) @ w
    y = run(product(w, 200), x)
    others = np.setdiff1d(np.arange(200), [7, 131])
    assert error(y[others], exact[others]) < BOUND
    with np.errstate(over="ignore"):
        expected = exact[[7, 131]].astype(np.float32)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(y[[7, 131]][~finite], expected[~finite])
    np.testing.assert_allclose(y[[7, 131]][finite], expected[finite], rtol=1e-5)


def identity(rng):
    return np.eye(512, dtype=np.float32)


def blocks(rng):
    w = normal(rng, 512, 512)
    w[:256, 256:] = w[256:, :256] = 0
    return w


def pruned(rng):
    return normal(rng, 512, 512) * (rng.random((512, 512)) < 0.5)


def uneven_columns(rng):
    w = normal(rng, 512, 512)
    w[:, 300] *= 64
    return w


def uneven_depth(rng):
    w = normal(rng, 512, 512)
    w[44] /= 64
    return w


def infinite(rng):
    w = normal(rng, 512, 512)
    w[100, 100] = np.inf
    return w


def small(rng):
    return normal(rng, 512, 240)


@pytest.mark.parametrize("make", [identity, blocks, pruned, uneven_columns, uneven_depth, infinite, small])
def test_weights_that_are_multiplied_directly(make):
    rng = np.random.default_rng(5)
    w, x = make(rng).astype(np.float32), normal(rng, 200, 512)
    model = product(w, 200)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(model, x), run(model, x, numerics="exact"))


def test_few_bits_are_exact():
    rng = np.random.default_rng(6)
    w = rng.integers(1, 128, (512, 512)).astype(np.float32)
    x = rng.integers(-8, 8, (200, 512)).astype(np.float32)
    np.testing.assert_array_equal(run(product(w, 200), x), x @ w)


def test_no_access_is_out_of_bounds():
    rng = np.random.default_rng(7)
    w = normal(rng, 512, 544)
    x = normal(rng, 231, 512)
    exact = x.astype(np.float64) @ w
    session = load(product(w, "m"), check_bounds=True)
    for rows in [*range(48, 76), 231]:
        assert error(session.run(None, {"x": x[:rows]})[0], exact[:rows]) < BOUND
    for rows in (61, 73, 230, 231):  # of 61 in halves the last tile of the lower one has none
        assert error(run(product(w, rows), x[:rows], check_bounds=True), exact[:rows]) < BOUND
