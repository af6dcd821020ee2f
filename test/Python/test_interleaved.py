"""Planes that become pixels of a few channels, and pixels that become planes: vectors of all planes are interleaved and
stored together, or loaded together and taken apart."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sardonyx

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64}


def run(nodes, x, y, shape, out_shape):
    inputs = [helper.make_tensor_value_info("x", TYPES[x.dtype.name], shape)]
    outputs = [helper.make_tensor_value_info("y", TYPES[y.name], out_shape)]
    scale, zero = helper.make_tensor("scale", TensorProto.FLOAT, [], [0.0173]), helper.make_tensor("zero", TensorProto.UINT8, [], [117])
    graph = helper.make_graph(nodes, "pixels", inputs, outputs, [scale, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return sardonyx.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", range(1, 10))
@pytest.mark.parametrize("open_dims", ["", "nhw", "nchw"], ids=["fixed", "open_images", "open"])
@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (0, 3, 1, 2)], ids=["pixels", "planes"])
def test_transposes(perm, dtype, channels, open_dims):
    rng = np.random.default_rng(channels)
    for images, height, width in [(1, 13, 17), (3, 5, 64), (2, 1, 3), (1, 70, 70), (1, 1, 2), (0, 4, 4)]:
        names = dict(n=images, c=channels, h=height, w=width)
        dims = "nchw" if perm[1] == 2 else "nhwc"
        x = (rng.standard_normal([names[d] for d in dims]) * 50).astype(np.int8).astype(dtype)
        node = helper.make_node("Transpose", ["x"], ["y"], perm=perm)
        shape = [d if d in open_dims else size for d, size in zip(dims, x.shape, strict=True)]
        y = run([node], x, x.dtype, shape, [shape[i] for i in perm])
        np.testing.assert_array_equal(y, x.transpose(perm))


@pytest.mark.parametrize("threads", [1, 3])
def test_few_channels_in_what_is_fused(threads):
    """Cases of few channels compute what else the kernel does, with tensors that have no channels, or only these."""
    graph = onnx.parser.parse_graph("""
        g (float[n, c, h, w] x, float[c] s, float[n, h, w] m) => (uint8[n, h, w, c] y) <int64 one = {-1}> {
            t = Transpose <perm = [0, 2, 3, 1]> (x)
            u = Mul (t, s)
            k = Unsqueeze (m, one)
            v = Add (u, k)
            y = Cast <to = 2> (v)
        }""")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    session = sardonyx.InferenceSession(model.SerializeToString(), options)
    rng = np.random.default_rng(5)
    for channels in range(6):
        for images, height, width in [(1, 90, 101), (3, 5, 7), (1, 1, 1), (2, 2, 2), (1, 0, 3)]:
            x = rng.integers(0, 9, (images, channels, height, width)).astype(np.float32)
            s, m = rng.integers(0, 9, channels).astype(np.float32), rng.integers(0, 9, (images, height, width)).astype(np.float32)
            y = session.run(None, {"x": x, "s": s, "m": m})[0]
            np.testing.assert_array_equal(y, (x.transpose(0, 2, 3, 1) * s + m[..., None]).astype(np.uint8))


@pytest.mark.parametrize("block", [2, 3, 8])
def test_blocks_that_become_channels(block):
    rng = np.random.default_rng(block)
    x = rng.standard_normal((2, 3, 5 * block, 18 * block)).astype(np.float32)
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("SpaceToDepth", ["n"], ["y"], blocksize=block)]
    y = run(nodes, x, x.dtype, list(x.shape), None)
    blocks = -x.reshape(2, 3, 5, block, 18, block)
    np.testing.assert_array_equal(y, blocks.transpose(0, 3, 5, 1, 2, 4).reshape(2, -1, 5, 18))


@pytest.mark.parametrize("size", [2, 5, 8, 9])
def test_diagonals(size):
    """No dimension lies between others along itself."""
    x = np.random.default_rng(size).standard_normal((3, size, size)).astype(np.float32)
    y = run([helper.make_node("Einsum", ["x"], ["y"], equation="nii->ni")], x, x.dtype, list(x.shape), None)
    np.testing.assert_array_equal(y, np.einsum("nii->ni", x))


@pytest.mark.parametrize("channels", [2, 3, 4, 5, 7])
def test_what_is_quantized_on_the_way(channels):
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((2, channels, 21, 19), np.float32)
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), helper.make_node("Transpose", ["q"], ["y"], perm=[0, 2, 3, 1])]
    y = run(nodes, x, np.dtype(np.uint8), list(x.shape), [2, 21, 19, channels])
    expected = np.clip(np.rint(x / np.float32(0.0173)) + 117, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(y, expected.transpose(0, 2, 3, 1))
