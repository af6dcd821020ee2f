"""How many kernels a run starts on a CUDA device, which libsdx-fakecuda.so stands for, and that they compute the same."""

import numpy as np
import onnxruntime
from device_models import run_and_count
from onnx import numpy_helper, parser

RANDOM = np.random.default_rng(47)


def run(text, feeds, weights, precision="f32", tolerance=1e-5):
    """The kernels of a run of a graph, whose results are those of onnxruntime."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    for name, shape in weights.items():
        value = (RANDOM.standard_normal(shape) / np.sqrt(shape[0])).astype("f4")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    (results,), use = run_and_count(model, [feeds], precision)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for given, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(given, right, rtol=0, atol=tolerance * np.abs(right).max(initial=1))
    return use["kernels"]


def draw(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def test_rotations_and_caches():
    """Queries and keys are rotated by halves, and keys and values come behind those of before."""
    text = """m (float[1,4,1,16] q, float[1,2,1,16] k, float[1,2,1,16] v, float[1,2,9,16] pk, float[1,2,9,16] pv, float[1,16] c, float[1,16] s)
        => (float[1,4,1,16] rq, float[1,2,10,16] ck, float[1,2,10,16] cv) <int64[1] zero = {0}, int64[1] mid = {8}, int64[1] end = {16}, int64[1] axis = {3}> {
        q1 = Slice(q, zero, mid, axis)  q2 = Slice(q, mid, end, axis)  nq = Neg(q2)  hq = Concat<axis = 3>(nq, q1)
        q3 = Mul(q, c)  q4 = Mul(hq, s)  rq = Add(q3, q4)
        k1 = Slice(k, zero, mid, axis)  k2 = Slice(k, mid, end, axis)  nk = Neg(k2)  hk = Concat<axis = 3>(nk, k1)
        k3 = Mul(k, c)  k4 = Mul(hk, s)  rk = Add(k3, k4)
        ck = Concat<axis = 2>(pk, rk)  cv = Concat<axis = 2>(pv, v) }"""
    feeds = {"q": draw(1, 4, 1, 16), "k": draw(1, 2, 1, 16), "v": draw(1, 2, 1, 16), "pk": draw(1, 2, 9, 16), "pv": draw(1, 2, 9, 16)}
    assert run(text, {**feeds, "c": draw(1, 16), "s": draw(1, 16)}, {}) == 3


def test_parts_and_padding():
    """Parts along several axes, of numbers of other types, and zeros around a part."""
    text = """m (float[3,5] x, float[3,2] y, float[2,7] z) => (float[5,7] a, float[7,9] b) <int64[4] pads = {1, 0, 1, 2}> {
        t = Concat<axis = 1>(x, y)  u = Relu(t)  a = Concat<axis = 0>(u, z)  b = Pad(a, pads) }"""
    assert run(text, {"x": draw(3, 5), "y": draw(3, 2), "z": draw(2, 7)}, {}) <= 2
