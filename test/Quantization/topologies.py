"""Small networks of many topologies, whose channels, heads or features can be removed."""

import numpy as np
import onnx
from onnx import parser

# Of a ConvTranspose whose strides are its sizes, equal: what a constant gives is the same at all places then.
_TAPS = np.random.default_rng(0).normal(0, 0.5, (6, 5, 1, 1)).astype(np.float32)

# name: (opset, text of the graph, {weight: sizes or array}, {input: sizes}, axes on which units are expected)
TOPOLOGIES = {
    "chain": (17, """g (float[N, 3, 9, 9] x) => (float[N, 4, M, M] y) {
        a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
        r = Relu(a)
        c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(r, w2, b2)
        p = MaxPool<kernel_shape = [2, 2]>(c)
        y = Conv(p, w3)
    }""", {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (6, 8, 3, 3), "b2": (6,), "w3": (4, 6, 1, 1)}, {"x": (2, 3, 9, 9)}, 2),
    "residual": (17, """g (float[N, 3, 8, 8] x) => (float[N, 5] y) {
        a = Conv<pads = [1, 1, 1, 1]>(x, w1)
        b = Conv<pads = [1, 1, 1, 1]>(a, w2, b2)
        r = Relu(b)
        c = Conv<pads = [1, 1, 1, 1]>(r, w3)
        s = Add(a, c)
        n = BatchNormalization(s, gain, shift, mean, var)
        l = PRelu(n, slope)
        m = GlobalAveragePool(l)
        f = Flatten(m)
        y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(f, w4, b4)
    }""", {"w1": (8, 3, 3, 3), "w2": (6, 8, 3, 3), "b2": (6,), "w3": (8, 6, 3, 3), "gain": (8,), "shift": (8,), "mean": (8,),
           "var": np.arange(1, 9, dtype=np.float32), "slope": (8, 1, 1), "w4": (5, 8), "b4": (5,)}, {"x": (2, 3, 8, 8)}, 2),
    "concat": (17, """g (float[N, 3, 6, 6] x) => (float[N, 4, 6, 6] y, float[N, 2, 6, 6] z) {
        a = Conv(x, w1, b1)
        b = Conv(x, w2)
        c = Concat<axis = 1>(a, b)
        d = Relu(c)
        e = Slice(d, two, nine, one)
        y = Conv(e, w3, b3)
        f, h = Split<axis = 1>(d, parts)
        k = Conv<pads = [1, 1, 1, 1]>(h, w4)
        m = Sigmoid(k)
        z = Conv(m, w5)
    }""", {"w1": (5, 3, 1, 1), "b1": (5,), "w2": (6, 3, 1, 1), "two": np.array([2]), "nine": np.array([9]),
           "one": np.array([1]), "parts": np.array([4, 7]), "w3": (4, 7, 1, 1), "b3": (4,), "w4": (6, 7, 3, 3),
           "w5": (2, 6, 1, 1)}, {"x": (2, 3, 6, 6)}, 5),
    "grouped": (17, """g (float[N, 4, 6, 6] x) => (float[N, 3, 6, 6] y) {
        a = Conv(x, w1, b1)
        b = Conv<group = 4, pads = [1, 1, 1, 1]>(a, w2, b2)
        r = Relu(b)
        y = Conv(r, w3, b3)
    }""", {"w1": (8, 4, 1, 1), "b1": (8,), "w2": (12, 2, 3, 3), "b2": (12,), "w3": (3, 12, 1, 1), "b3": (3,)},
        {"x": (2, 4, 6, 6)}, 1),
    "depthwise": (17, """g (float[N, 4, 6, 6] x) => (float[N, 3, 4, 4] y) {
        a = Conv(x, w1, b1)
        b = Conv<group = 6>(a, w2, b2)
        r = Clip(b, low, high)
        y = Conv(r, w3)
    }""", {"w1": (6, 4, 1, 1), "b1": (6,), "w2": (12, 1, 3, 3), "b2": (12,), "low": np.float32(0), "high": np.float32(6),
           "w3": (3, 12, 1, 1)}, {"x": (2, 4, 6, 6)}, 1),
    "turned": (17, """g (float[N, 3, 5, 5] x) => (float[N, 3, 10, 10] y) {
        a = Conv<auto_pad = "SAME_UPPER">(x, w1, b1)
        r = Relu(a)
        u = ConvTranspose<strides = [2, 2]>(r, w2, b2)
        s = Resize<mode = "nearest">(r, , , sizes)
        j = Concat<axis = 1>(u, s)
        y = Conv(j, w3)
    }""", {"w1": (6, 3, 2, 2), "b1": (6,), "w2": np.repeat(np.repeat(_TAPS, 2, 2), 2, 3), "b2": (5,), "sizes": np.array([2, 6, 10, 10]),
           "w3": (3, 11, 1, 1)}, {"x": (2, 3, 5, 5)}, 2),
    "padded": (17, """g (float[N, 3, 5, 5] x) => (float[N, 2, 5, 5] y) {
        a = Conv(x, w1)
        r = Relu(a)
        p = Pad(r, pads)
        b = Conv(x, w2)
        s = Add(p, b)
        t = Tanh(s)
        y = Conv(t, w3)
    }""", {"w1": (4, 3, 1, 1), "pads": np.array([0, 1, 0, 0, 0, 2, 0, 0]), "w2": (7, 3, 1, 1), "w3": (2, 7, 1, 1)},
        {"x": (2, 3, 5, 5)}, 1),
    "flattened": (17, """g (float[N, 2, 6, 6] x) => (float[N, 3] y) {
        a = Conv<strides = [2, 2]>(x, w1, b1)
        r = Relu(a)
        f = Reshape(r, target)
        h = Gemm(f, w2, b2)
        q = Erf(h)
        y = MatMul(q, w3)
    }""", {"w1": (5, 2, 2, 2), "b1": (5,), "target": np.array([-1, 45]), "w2": (45, 7), "b2": (1, 7), "w3": (7, 3)},
        {"x": (2, 2, 6, 6)}, 2),
    "channels_last": (17, """g (float[N, 3, 4, 4] x) => (float[N, 4, 4, 2] y) {
        a = Conv(x, w1, b1)
        t = Transpose<perm = [0, 2, 3, 1]>(a)
        m = MatMul(t, w2)
        s = Add(m, b2)
        r = Relu(s)
        q = MatMul(r, w3)
        y = Add(q, b3)
    }""", {"w1": (6, 3, 1, 1), "b1": (6,), "w2": (6, 8), "b2": (8,), "w3": (8, 2), "b3": (2,)}, {"x": (2, 3, 4, 4)}, 2),
    "attention": (17, """g (float[N, S, 8] x) => (float[N, S, 8] y) {
        n = LayerNormalization(x, gain, shift)
        q0 = MatMul(n, wq)
        q1 = Add(q0, bq)
        k0 = MatMul(n, wk)
        v0 = MatMul(n, wv)
        q2 = Reshape(q1, split)
        k2 = Reshape(k0, split)
        v2 = Reshape(v0, split)
        q = Transpose<perm = [0, 2, 1, 3]>(q2)
        k = Transpose<perm = [0, 2, 3, 1]>(k2)
        v = Transpose<perm = [0, 2, 1, 3]>(v2)
        s = MatMul(q, k)
        p = Softmax<axis = -1>(s)
        o = MatMul(p, v)
        t = Transpose<perm = [0, 2, 1, 3]>(o)
        m = Reshape(t, merge)
        d = MatMul(m, wo)
        y = Add(d, x)
    }""", {"gain": (8,), "shift": (8,), "wq": (8, 12), "bq": (12,), "wk": (8, 12), "wv": (8, 12), "wo": (12, 8),
           "split": np.array([0, 0, 4, 3]), "merge": np.array([0, 0, 12])}, {"x": (2, 5, 8)}, 1),
    "one_weight_for_queries_keys_and_values": (17, """g (float[N, S, 8] x) => (float[N, S, 8] y) {
        a0 = MatMul(x, w)
        a1 = Add(a0, b)
        shape = Shape(x)
        batch = Gather(shape, zero)
        length = Gather(shape, one)
        target = Concat<axis = 0>(batch, length, three, four, two)
        a2 = Reshape(a1, target)
        a3 = Transpose<perm = [2, 0, 3, 1, 4]>(a2)
        q = Gather<axis = 0>(a3, i0)
        k = Gather<axis = 0>(a3, i1)
        v = Gather<axis = 0>(a3, i2)
        kt = Transpose<perm = [0, 1, 3, 2]>(k)
        s = MatMul(q, kt)
        p = Softmax<axis = -1>(s)
        o = MatMul(p, v)
        t = Transpose<perm = [0, 2, 1, 3]>(o)
        rest = Concat<axis = 0>(batch, length, minus)
        m = Reshape(t, rest)
        y = MatMul(m, wo)
    }""", {"w": (8, 24), "b": (24,), "zero": np.array([0]), "one": np.array([1]), "three": np.array([3]), "four": np.array([4]),
           "two": np.array([2]), "i0": np.array(0), "i1": np.array(1), "i2": np.array(2), "minus": np.array([-1]),
           "wo": (8, 8)}, {"x": (2, 5, 8)}, 1),
    "grouped_queries": (17, """g (float[N, S, 6] x) => (float[N, S, 4] y) {
        q0 = MatMul(x, wq)
        k0 = MatMul(x, wk)
        v0 = MatMul(x, wv)
        q1 = Reshape(q0, six)
        k1 = Reshape(k0, three)
        v1 = Reshape(v0, three)
        q = Transpose<perm = [0, 2, 1, 3]>(q1)
        k2 = Transpose<perm = [0, 2, 3, 1]>(k1)
        v2 = Transpose<perm = [0, 2, 1, 3]>(v1)
        k3 = Unsqueeze(k2, axis)
        v3 = Unsqueeze(v2, axis)
        k4 = Expand(k3, wide)
        v4 = Expand(v3, wide)
        k5 = Reshape(k4, keys)
        v5 = Reshape(v4, values)
        s = MatMul(q, k5)
        p = Softmax<axis = -1>(s)
        o = MatMul(p, v5)
        t = Transpose<perm = [0, 2, 1, 3]>(o)
        m = Reshape(t, merge)
        y = MatMul(m, wo)
    }""", {"wq": (6, 12), "wk": (6, 6), "wv": (6, 6), "six": np.array([0, 0, 6, 2]), "three": np.array([0, 0, 3, 2]),
           "axis": np.array([2]), "wide": np.array([1, 1, 2, 1, 1]), "keys": np.array([0, 6, 2, -1]),
           "values": np.array([0, 6, -1, 2]), "merge": np.array([0, 0, 12]), "wo": (12, 4)}, {"x": (2, 5, 6)}, 1),
    "attention_operator": (23, """g (float[N, 5, 6] x) => (float[N, 5, 4] y) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        o = Attention<q_num_heads = 6, kv_num_heads = 3>(q, k, v)
        y = MatMul(o, wo)
    }""", {"wq": (6, 12), "wk": (6, 6), "wv": (6, 9), "wo": (18, 4)}, {"x": (2, 5, 6)}, 1),
    "embedding": (17, """g (int64[N, S] i) => (float[N, S, 3] y) {
        e = Gather(table, i)
        a = Add(e, place)
        g = Gelu_like(a)
        y = MatMul(g, w)
    }""".replace("Gelu_like", "Softplus"), {"table": (9, 8), "place": (4, 8), "w": (8, 3)}, {"i": np.array([[1, 2, 3, 8], [0, 0, 7, 4]])}, 1),
    "lines_and_volumes": (17, """g (float[N, 2, 12] x, float[N, 2, 4, 4, 4] z) => (float[N, 3, M] y, float[N, 3, K, K, K] v) {
        a = Conv<dilations = [2], pads = [1, 2]>(x, w1, b1)
        r = LeakyRelu(a)
        y = Conv<strides = [2], pads = [1, 0]>(r, w2)
        b = Conv(z, w3)
        c = InstanceNormalization(b, gain, shift)
        v = Conv<pads = [1, 1, 1, 0, 0, 0]>(c, w4)
    }""", {"w1": (6, 2, 3), "b1": (6,), "w2": (3, 6, 2), "w3": (5, 2, 2, 2, 2), "gain": (5,), "shift": (5,), "w4": (3, 5, 2, 2, 2)},
        {"x": (2, 2, 12), "z": (2, 2, 4, 4, 4)}, 2),
}  # fmt: skip

# Where nothing may go: what mixes channels, tells their number, or shows them to the outside.
FROZEN = {
    "layer normalisation": "n = LayerNormalization<axis = 1>(h, g4, g4) \n y = Conv(n, w2)",
    "mean of channels": "n = ReduceMean<axes = [1]>(h) \n s = Sub(h, n) \n y = Conv(s, w2)",
    "softmax of channels": "n = Softmax<axis = 1>(h) \n y = Conv(n, w2)",
    "size that is read": "s = Shape(h) \n f = Cast<to = 1>(s) \n m = ReduceSum(f) \n c = Conv(h, w2) \n y = Mul(c, m)",
    "channels shuffled": "a = Reshape(h, t1) \n b = Transpose<perm = [0, 2, 1, 3, 4]>(a) \n c = Reshape(b, t2) \n y = Conv<group = 2>(c, w4)",
    "operator without a rule": "d = DepthToSpace<blocksize = 2>(h) \n y = Relu(d)",
}


def weights_of(given, random):
    def value(of):
        return of if isinstance(of, (np.ndarray, np.generic)) else random.normal(0, 0.5, of).astype(np.float32)

    return {name: value(of) for name, of in given.items()}


def topology(name, random):
    """(model, feeds, groups that are expected)."""
    opset, text, weights, inputs, groups = TOPOLOGIES[name]
    return made(text, opset, weights_of(weights, random)), weights_of(inputs, random), groups


def made(text, opset, weights):
    graph = parser.parse_graph(text)
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=9)
