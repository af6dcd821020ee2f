"""Pools over many shapes against numpy: windows that see a part of a row, one output, steps, holes, borders."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as sdx


def pool(kind, x, kernel, strides, pads, dilations, p=2):
    """`pads` as ONNX gives them; the border is counted by "AveragePool with pads" only."""
    rank = len(kernel)
    border = {"MaxPool": -np.inf}.get(kind, 0)
    wide = [(0, 0), (0, 0)] + [(pads[i], pads[rank + i]) for i in range(rank)]
    padded = np.pad(x.astype(np.float64), wide, constant_values=border)
    there = np.pad(np.ones(x.shape), wide, constant_values=float(kind == "AveragePool with pads"))
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    sizes = [(n - s) // t + 1 for n, s, t in zip(padded.shape[2:], span, strides)]
    y = np.empty(x.shape[:2] + tuple(sizes))
    for at in itertools.product(*map(range, sizes)):
        box = tuple(slice(o * t, o * t + s, d) for o, t, s, d in zip(at, strides, span, dilations))
        window = padded[(slice(None), slice(None)) + box].reshape(*x.shape[:2], -1)
        if kind == "MaxPool":
            value = window.max(-1)
        elif kind.startswith("AveragePool"):
            value = window.sum(-1) / there[(slice(None), slice(None)) + box].reshape(*x.shape[:2], -1).sum(-1)
        else:
            value = (np.abs(window) ** p).sum(-1) ** (1 / p)
        y[(slice(None), slice(None)) + at] = value
    return y


def check(
    kind, shape, kernel, strides=None, pads=None, dilations=None, open_sizes=False, nans=0, relu=False, **options
):
    rank = len(kernel)
    strides, pads, dilations = strides or [1] * rank, pads or [0] * 2 * rank, dilations or [1] * rank
    random = np.random.default_rng(0)
    x = random.standard_normal(shape).astype(np.float32)
    x[random.random(shape) < nans] = np.nan
    names = [f"d{i}" for i in range(len(shape))] if open_sizes else shape
    attributes = {"count_include_pad": 1} if kind == "AveragePool with pads" else {}
    node = helper.make_node(
        kind.split()[0],
        ["x"],
        ["p" if relu else "y"],
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        dilations=dilations,
        **attributes,
    )
    graph = helper.make_graph(
        [node] + relu * [helper.make_node("Relu", ["p"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, names)],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    settings = sdx.SessionOptions()
    settings.cache, settings.intra_op_num_threads = False, 1
    for name, value in options.items():
        setattr(settings, name, value)
    (y,) = sdx.InferenceSession(model.SerializeToString(), settings).run(None, {"x": x})
    want = pool(kind, x, kernel, strides, pads, dilations)
    want = np.maximum(want, 0) if relu else want
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


KINDS = ["MaxPool", "AveragePool", "AveragePool with pads", "LpPool"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape, kernel",
    [
        ([1, 1, 3, 3], [2, 2]),
        ([1, 2, 8, 8], [7, 7]),
        ([2, 3, 5, 9], [5, 4]),
        ([2, 3, 5, 9], [4, 9]),
        ([1, 2, 33], [32]),
        ([1, 2, 40], [35]),
        ([1, 2, 4, 5, 6], [3, 4, 5]),
        ([1, 2, 4, 5, 6], [3, 5, 6]),
    ],
)
@pytest.mark.parametrize("open_sizes", [False, True])
def test_one_output(kind, shape, kernel, open_sizes):
    strides = [n for n in shape[2:]]
    check(kind, shape, kernel, strides, open_sizes=open_sizes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_any_window(kind, seed):
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    kernel = [int(k) for k in random.integers(1, 5, rank)]
    dilations = [int(d) for d in random.integers(1, 3, rank)]
    pads = [int(p) for p in [min(k - 1, random.integers(0, 2)) for k in kernel * 2]]
    shape = [int(n) for n in random.integers(1, 4, 2)]
    shape += [int((k - 1) * d + 1 + random.integers(0, 20)) for k, d in zip(kernel, dilations)]
    strides = [int(s) for s in random.integers(1, 4, rank)]
    check(kind, shape, kernel, strides, pads, dilations, open_sizes=bool(seed % 2))


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
def test_other_vector_widths(cpu):
    with open("/proc/cpuinfo") as info:
        if cpu == "haswell" and " avx2 " not in info.read():
            pytest.skip("this processor cannot run code for haswell")
    for kind in KINDS:
        check(kind, [1, 2, 8, 8], [7, 7], [7, 7], cpu=cpu)
        check(kind, [2, 3, 17, 19], [3, 2], [2, 2], [1, 0, 1, 1], cpu=cpu)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    "size, kernel, strides, pads",
    [
        ([111, 111], [3, 3], [2, 2], [0, 0, 0, 0]),
        ([75, 75], [3, 3], [2, 2], [1, 1, 1, 1]),
        ([8, 200], [1, 5], [1, 2], [0, 4, 0, 4]),
        ([13, 13], [5, 5], [1, 1], [2, 2, 2, 2]),
        ([40, 7], [16, 2], [3, 3], [15, 1, 0, 0]),
        ([5, 31], [2, 16], [1, 5], [0, 3, 1, 8]),
        ([2, 1], [2, 1], [1, 1], [1, 0, 1, 0]),
    ],
)
@pytest.mark.parametrize("planes", [[1, 2], [2, 9]])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "AveragePool with pads"])
def test_over_plane(kind, size, kernel, strides, pads, planes, relu):
    """Windows at the edges, NaN, what follows in the kernel, planes too few for threads, and open sizes."""
    check(kind, planes + size, kernel, strides, pads, nans=0.002 if kind == "MaxPool" else 0, relu=relu)
    check(kind, planes + size, kernel, strides, pads, open_sizes=True, relu=relu)
    if relu:
        check(kind, planes + size, kernel, strides, pads, cpu="x86-64")


@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_rows_of_any_length(stride, open_sizes):
    """Whole vectors, a last one that begins earlier, and fewer elements than one."""
    for width in [1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 64, 67, 81]:
        shape = [1, 2, 3, 4, (width - 1) * stride + 2]
        check("MaxPool", shape, [2, 2, 2], [1, 2, stride], nans=0.05, open_sizes=open_sizes)
        check("MaxPool", shape[:4] + [width * stride], [1, 1, stride], [1, 1, stride], open_sizes=open_sizes)


@pytest.mark.parametrize("kind, empty", [("MaxPool", -np.inf), ("AveragePool", np.nan)])
@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)])
def test_empty_images(kind, empty, size):
    """Windows that see nothing, as only an image without rows or columns has them."""
    node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, "h", "w"])
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    (y,) = sdx.InferenceSession(model.SerializeToString()).run(None, {"x": np.ones((1, 2) + size, np.float32)})
    np.testing.assert_array_equal(y, np.full((1, 2, size[0] + 1, size[1] + 1), empty))
