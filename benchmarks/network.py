"""Networks of random weights as ONNX models, with what they compute in f64.

A `Network` computes each operator by numpy as it is added, in f64 on weights that f32 holds, so that batch normalisations can take the
mean and variance of what reaches them, and the result needs no other engine. Values are [N,C,...] for pictures and lines and
[N,S,D] for sequences.
"""

import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ERF = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0),
    "LeakyRelu": lambda x: np.where(x < 0, np.float64(np.float32(0.01)) * x, x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Gelu": lambda x: x * (1 + ERF(x / np.sqrt(2))) / 2,
    "Exp": np.exp,
}


class Value:
    """A tensor of the graph, and what it is for the network's input."""

    def __init__(self, name, data):
        self.name, self.data = name, data

    @property
    def shape(self):
        return self.data.shape


def windows(x, sizes, taps, strides, dilations):
    """For each place in a window: that place, and the elements of x [..., S...] that all windows have there."""
    for tap in np.ndindex(*taps):
        at = tuple(
            slice(t * d, t * d + s * (size - 1) + 1, s) for t, d, s, size in zip(tap, dilations, strides, sizes)
        )
        yield tap, x[(..., *at)]


class Network:
    def __init__(self, seed, shape, offset=0.0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.held = [], []
        x = (self.rng.standard_normal(shape) + offset).astype(np.float32)
        self.feeds = {"x": x}
        self.input = Value("x", x.astype(np.float64))

    def constant(self, data, kind=np.float32):
        """A weight, as f32 holds it."""
        data = np.asarray(data).astype(kind)
        name = f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(data, name))
        return Value(name, data.astype(np.float64) if kind == np.float32 else data)

    def add(self, op, inputs, data, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [i.name for i in inputs], [name], **attributes))
        return Value(name, data)

    def normal(self, *shape, scale):
        return self.rng.standard_normal(shape) * scale

    # Pictures and lines.

    def conv(self, x, filters, taps=3, stride=1, groups=1, dilation=1, bias=False, weights=None):
        """As large as x, but for strides. `weights` are random unless they are given."""
        spatial = x.data.ndim - 2
        channels = x.shape[1] // groups
        taps = [taps] * spatial if isinstance(taps, int) else list(taps)
        depth = channels * math.prod(taps)
        if weights is None:
            weights = self.normal(filters, channels, *taps, scale=math.sqrt(2 / depth))
        w = self.constant(weights)
        pads = [(t - 1) * dilation // 2 for t in taps]
        strides, dilations = [stride] * spatial, [dilation] * spatial
        padded = np.pad(x.data, [(0, 0), (0, 0), *((p, p) for p in pads)])
        padded = padded.reshape(x.shape[0], groups, channels, *padded.shape[2:])
        sizes = [
            (n - (t - 1) * dilation - 1) // stride + 1 for n, t in zip(padded.shape[3:], taps)
        ]
        grouped = w.data.reshape(groups, filters // groups, channels, *taps)
        y = np.zeros((x.shape[0], groups, filters // groups, *sizes))
        for tap, inputs in windows(padded, sizes, taps, strides, dilations):
            flat = inputs.reshape(x.shape[0], groups, channels, -1)
            y += (grouped[(..., *tap)] @ flat).reshape(y.shape)
        y = y.reshape(x.shape[0], filters, *sizes)
        inputs = [x, w]
        if bias:
            inputs.append(self.constant(self.normal(filters, scale=0.1)))
            y = y + inputs[2].data.reshape(-1, *[1] * spatial)
        attributes = {"strides": strides, "dilations": dilations, "pads": pads * 2, "group": groups}
        return self.add("Conv", inputs, y, **attributes)

    def deconv(self, x, filters):
        """Twice as large as x, by 2x2 filters that do not overlap."""
        w = self.constant(self.normal(x.shape[1], filters, 2, 2, scale=math.sqrt(2 / x.shape[1])))
        n, _, height, width = x.shape
        y = np.einsum("nchw,cfij->nfhiwj", x.data, w.data, optimize=True)
        return self.add("ConvTranspose", [x, w], y.reshape(n, filters, 2 * height, 2 * width), strides=[2, 2])

    def norm(self, x, gain=1.0):
        """Batch normalisation by the mean and variance of x, to a deviation of `gain`."""
        axes = tuple(i for i in range(x.data.ndim) if i != 1)
        channels = x.shape[1]
        mean, var = x.data.mean(axes), x.data.var(axes) + 1e-6
        scale = gain * self.rng.uniform(0.5, 1.5, channels)
        values = [self.constant(v) for v in (scale, self.normal(channels, scale=0.1), mean, var)]
        s, b, m, v = (c.data.reshape(-1, *[1] * (x.data.ndim - 2)) for c in values)
        y = (x.data - m) / np.sqrt(v + np.float64(np.float32(1e-5))) * s + b
        return self.add("BatchNormalization", [x, *values], y, epsilon=1e-5)

    def pool(self, x, size=2, stride=None, kind="MaxPool"):
        stride = stride or size
        pad = (size - 1) // 2 if stride != size else 0
        spatial = x.data.ndim - 2
        fill = -np.inf if kind == "MaxPool" else 0.0
        padded = np.pad(x.data, [(0, 0), (0, 0)] + [(pad, pad)] * spatial, constant_values=fill)
        sizes = [(n - size) // stride + 1 for n in padded.shape[2:]]
        seen = [w for _, w in windows(padded, sizes, [size] * spatial, [stride] * spatial, [1] * spatial)]
        y = np.max(seen, 0) if kind == "MaxPool" else np.mean(seen, 0)
        attributes = {"kernel_shape": [size] * spatial, "strides": [stride] * spatial, "pads": [pad] * 2 * spatial}
        if kind == "AveragePool":
            attributes["count_include_pad"] = 1
        return self.add(kind, [x], y, **attributes)

    def spread(self, x):
        """Twice as large, each element four times."""
        scales = self.constant([1, 1, 2, 2])
        roi = Value("", None)
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.add("Resize", [x, roi, scales], x.data.repeat(2, 2).repeat(2, 3), **attributes)

    def mean(self, x):
        """Of each channel."""
        axes = tuple(range(2, x.data.ndim))
        return self.add("GlobalAveragePool", [x], x.data.mean(axes, keepdims=True))

    def shuffle(self, x, groups):
        """The channels of the groups by turns."""
        n, c, *sizes = x.shape
        y = self.reshape(x, [n, groups, c // groups, *sizes])
        return self.reshape(self.transpose(y, [0, 2, 1, *range(3, len(sizes) + 3)]), [n, c, *sizes])

    # What any shape may have.

    def act(self, x, op="Relu"):
        if op == "Silu":
            return self.mul(x, self.act(x, "Sigmoid"))
        if op == "Relu6":
            ends = [self.constant(np.float32(v)) for v in (0, 6)]
            return self.add("Clip", [x, *ends], np.clip(x.data, 0, 6))
        return self.add(op, [x], ACTIVATIONS[op](x.data))

    def plus(self, x, y):
        return self.add("Add", [x, y], x.data + y.data)

    def minus(self, x, y):
        return self.add("Sub", [x, y], x.data - y.data)

    def mul(self, x, y):
        return self.add("Mul", [x, y], x.data * y.data)

    def concat(self, values, axis=1):
        return self.add("Concat", values, np.concatenate([v.data for v in values], axis), axis=axis)

    def reshape(self, x, shape):
        return self.add("Reshape", [x, self.constant(shape, np.int64)], x.data.reshape(shape))

    def transpose(self, x, order):
        return self.add("Transpose", [x], x.data.transpose(order), perm=order)

    def cut(self, x, first, end, axis=1):
        at = [slice(None)] * x.data.ndim
        at[axis] = slice(first, end)
        ends = [self.constant([v], np.int64) for v in (first, end, axis)]
        return self.add("Slice", [x, *ends], x.data[tuple(at)])

    # Sequences.

    def dense(self, x, columns, bias=True, weights=None):
        depth = x.shape[-1]
        w = self.constant(self.normal(depth, columns, scale=depth**-0.5) if weights is None else weights)
        y = self.matmul(x, w)
        return self.plus(y, self.constant(self.normal(columns, scale=0.1))) if bias else y

    def matmul(self, x, y):
        return self.add("MatMul", [x, y], x.data @ y.data)

    def softmax(self, x):
        e = np.exp(x.data - x.data.max(-1, keepdims=True))
        return self.add("Softmax", [x], e / e.sum(-1, keepdims=True), axis=-1)

    def layer_norm(self, x):
        size = x.shape[-1]
        scale = self.constant(self.rng.uniform(0.5, 1.5, size))
        shift = self.constant(self.normal(size, scale=0.1))
        mean, var = x.data.mean(-1, keepdims=True), x.data.var(-1, keepdims=True)
        y = (x.data - mean) / np.sqrt(var + np.float64(np.float32(1e-5))) * scale.data + shift.data
        return self.add("LayerNormalization", [x, scale, shift], y, axis=-1, epsilon=1e-5)

    def attention(self, x, heads, keys=None, causal=False):
        """Of x [N,S,D] to itself, or to `keys` [N,T,D]."""
        keys = keys or x
        width = x.shape[-1] // heads

        def project(value, order):
            n, length, depth = value.shape
            y = self.reshape(self.dense(value, depth), [n, length, heads, width])
            return self.transpose(y, order)

        scores = self.matmul(project(x, [0, 2, 1, 3]), project(keys, [0, 2, 3, 1]))
        scores = self.mul(scores, self.constant(np.float32(width**-0.5)))
        if causal:
            mask = np.triu(np.full(scores.shape[-2:], -1e4), 1)
            scores = self.plus(scores, self.constant(mask))
        y = self.matmul(self.softmax(scores), project(keys, [0, 2, 1, 3]))
        y = self.reshape(self.transpose(y, [0, 2, 1, 3]), list(x.shape))
        return self.dense(y, x.shape[-1])

    def recurrent(self, x, kind, hidden):
        """LSTM, GRU or RNN over x [S,N,D]; gives [S,N,H]."""
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        length, n, depth = x.shape
        scale = hidden**-0.5
        w = self.constant(self.normal(1, gates * hidden, depth, scale=depth**-0.5))
        r = self.constant(self.normal(1, gates * hidden, hidden, scale=scale))
        b = self.constant(self.normal(1, 2 * gates * hidden, scale=0.1))
        h, c, ys = np.zeros((n, hidden)), np.zeros((n, hidden)), []
        bias, rest = np.split(b.data[0], 2)
        sigmoid = ACTIVATIONS["Sigmoid"]
        for t in range(length):
            of_x, of_h = x.data[t] @ w.data[0].T + bias, h @ r.data[0].T + rest
            if kind == "LSTM":
                i, o, f, g = np.split(of_x + of_h, 4, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            elif kind == "GRU":
                (zx, rx, gx), (zh, rh, gh) = np.split(of_x, 3, axis=1), np.split(of_h, 3, axis=1)
                z = sigmoid(zx + zh)
                h = (1 - z) * np.tanh(gx + sigmoid(rx + rh) * gh) + z * h
            else:
                h = np.tanh(of_x + of_h)
            ys.append(h)
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        y = self.add(kind, [x, w, r, b], np.stack(ys)[:, None], hidden_size=hidden, **more)
        return self.reshape(y, [length, n, hidden])

    def finish(self, y):
        """The model as bytes; its output is `y`, expected to be `self.expected`."""
        self.expected = y.data
        self.nodes.append(helper.make_node("Identity", [y.name], ["y"]))
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.input.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, y.shape)], self.held)  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()
