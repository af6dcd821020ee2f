"""What results are compared with, in f64."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import sardonyx


def convolve(x, w, strides=None, dilations=None, pads=None, groups=1):
    """The convolution of x [N,C,...] with filters w [OC,C/groups,...], exact, near enough; as large as x by default,
    with filters of odd sizes."""
    spatial = x.ndim - 2
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    pads = pads or [(taps - 1) // 2 for taps in w.shape[2:]] * 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:])])
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    sizes = [
        (size - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, dilation, stride in zip(x.shape[3:], w.shape[3:], dilations, strides)
    ]
    y = np.zeros((x.shape[0], groups, w.shape[1], *sizes))
    for tap in np.ndindex(*w.shape[3:]):
        window = tuple(
            slice(k * dilation, k * dilation + stride * (size - 1) + 1, stride)
            for k, dilation, stride, size in zip(tap, dilations, strides, sizes)
        )
        y += np.einsum("ngc...,gfc->ngf...", x[(..., *window)], w[(..., *tap)], optimize=True)
    return y.reshape(x.shape[0], -1, *sizes)


def attention(q, k, v, scale, change=lambda scores: scores):
    """q is [B,H,M,D], k [B,K,N,D], v [B,K,N,E]; H is a multiple of K. Everything in f64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = change(q @ k.swapaxes(2, 3) * scale)
    with np.errstate(invalid="ignore"):
        terms = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        return terms / terms.sum(axis=-1, keepdims=True) @ v


def check_convolution(x, w, cpu, tolerance, is_open=False, has_open_sizes=False, **attributes):
    """Compares Relu(Conv(x, w) + bias) in the norm of all results: by one thread, by two, and by more than there are
    chunks, which kernels then cut smaller. The number of images may be open, or that and the sizes of each."""
    bias = np.random.default_rng(0).standard_normal(w.shape[0]).astype(np.float32)
    shape = ["images", x.shape[1], *x.shape[2:]] if is_open else x.shape
    if has_open_sizes:
        shape = ["images", x.shape[1], *(f"d{i}" for i in range(x.ndim - 2))]
    names = {"groups": "group"}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["c"], **{names.get(k, k): v for k, v in attributes.items()}),
         helper.make_node("Relu", ["c"], ["y"])],
        "convolution",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected = np.maximum(convolve(x, w, **attributes) + bias.reshape(-1, *[1] * (x.ndim - 2)), 0)
    options = sardonyx.SessionOptions()
    options.cpu = cpu
    for threads in (1, 2, 16):
        options.intra_op_num_threads = threads
        (y,) = sardonyx.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        assert y.shape == expected.shape
        assert np.linalg.norm(y - expected) <= tolerance * np.linalg.norm(expected)
