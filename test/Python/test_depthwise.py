"""Convolutions of single channels with large windows, in one to three dimensions, against sums in f64."""

import itertools

import numpy as np
import pytest
from numerics import constant, run, vectors  # noqa: F401
from onnx import helper


def reference(x, w, b, strides, pads, dilations):
    """Each channel by its own filter; relu(conv + b)."""
    spatial = w.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in pads)])
    sizes = [(x.shape[d + 2] - dilations[d] * (w.shape[d + 2] - 1) - 1) // strides[d] + 1 for d in range(spatial)]
    y = np.zeros((*x.shape[:2], *sizes)) + b.reshape(-1, *[1] * spatial)
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, sizes, strides))
        y += x[(slice(None), slice(None), *at)] * w[(slice(None), 0, *tap)].astype(np.float64).reshape(-1, *[1] * spatial)
    return np.maximum(y, 0)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("kernel", [(7, 7), (5, 9), (9, 9), (31, 31), (1, 13), (31,), (3, 3, 3), (3, 5, 7)])
def test_windows(kernel, is_open):
    rng = np.random.default_rng(0)
    spatial = len(kernel)
    shapes = {1: [(40,), (65,), (31,)], 2: [(14, 14), (20, 37), (56, 56)], 3: [(5, 6, 18), (7, 9, 20)]}[spatial]
    for shape, stride, dilation in itertools.product(shapes, (1, 2), (1, 2)):
        pads = [k // 2 * dilation for k in kernel]
        x = rng.standard_normal((2, 3, *shape), np.float32)
        w, b = rng.standard_normal((3, 1, *kernel), np.float32), rng.standard_normal(3, np.float32)
        options = {"strides": [stride] * spatial, "dilations": [dilation] * spatial, "pads": pads * 2, "group": 3}
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **options), helper.make_node("Relu", ["c"], ["y"])]
        shapes_of = {"x": ["n", 3, *(f"d{i}" for i in range(spatial))]} if is_open else {"x": x.shape}
        (y,) = run(nodes, {"x": x}, ["y"], shapes_of, 17, [constant("w", w, np.float32), constant("b", b, np.float32)])
        want = reference(x, w, b, [stride] * spatial, pads, [dilation] * spatial)
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=2e-6 * np.sqrt(w[0].size))
