"""Single layers whose sums cancel, or are of numbers of very different size: `LAYERS` has a function of a seed for each."""

import numpy as np
from network import Network


def decades(net, size, spread=3):
    """Factors from 10^-spread to 10^spread."""
    return 10 ** net.rng.uniform(-spread, spread, size)


def filters_of(net, kind, filters, channels, taps=3):
    """Filters [filters, channels, taps, taps] of a kind that `CONVOLUTIONS` names."""
    w = net.normal(filters, channels, taps, taps, scale=(channels * taps * taps) ** -0.5)
    if kind == "cancelling":  # what all inputs of a window have in common
        w -= w.mean((2, 3) if taps > 1 else 1, keepdims=True)
    elif kind == "scaled":
        w *= decades(net, (1, channels, 1, 1))
    elif kind == "singular":
        u, _, v = np.linalg.svd(w.reshape(filters, -1), full_matrices=False)
        w = ((u * np.logspace(0, -5, filters)) @ v).reshape(w.shape)
    elif kind == "opposite":  # each channel against its neighbour
        w[:, 1::2] = -w[:, ::2] * (1 + 1e-3 * net.rng.standard_normal(w[:, ::2].shape))
    elif kind == "sharp":  # one large value in a filter
        w *= 1e-3
        w[..., taps // 2, taps // 2] *= 1e3
    elif kind == "smooth":
        w = np.abs(w)
    return w


def inputs_of(net, kind):
    """What a kind of filters reads: changes the network's input [1,C,H,W]."""
    x = net.feeds["x"].astype(np.float64)
    if kind == "cancelling":  # flat pictures, but for a thousandth
        x = 1 + 1e-3 * x
    elif kind == "scaled":
        x *= decades(net, (1, x.shape[1], 1, 1))
    elif kind == "opposite":
        x[:, 1::2] = x[:, ::2]
    elif kind == "spikes":
        x *= np.where(net.rng.random(x.shape) < 0.001, 1e4, 1)
    elif kind == "ramp":  # from left to right over six decades
        x *= np.logspace(-6, 0, x.shape[3])
    net.feeds["x"] = x.astype(np.float32)
    net.input.data = net.feeds["x"].astype(np.float64)


def convolution(seed, kind, channels=64, filters=64, side=28, taps=3, stride=1):
    net = Network(seed, (1, channels, side, side))
    inputs_of(net, kind)
    w = filters_of(net, kind, filters, channels, taps)
    return net, net.finish(net.conv(net.input, filters, taps, stride, weights=w))


def product(seed, kind, rows, depth=768, columns=768):
    net = Network(seed, (rows, depth))
    x = net.feeds["x"].astype(np.float64)
    w = net.normal(depth, columns, scale=depth**-0.5)
    if kind == "cancelling":  # sums a thousandth of their products
        x = 1 + 1e-3 * x
        w -= w.mean(0)
    elif kind == "scaled":  # what is small in x is large in w
        factors = decades(net, depth)
        x, w = x * factors, w / factors[:, None]
    elif kind == "scaled halves":
        factors = np.repeat([1e3, 1e-3], depth // 2)
        x, w = x * factors, w / factors[:, None]
    elif kind == "columns of decades":
        w *= decades(net, columns)
    elif kind == "rows of decades":
        x *= decades(net, (rows, 1))
    elif kind == "positive":
        x, w = np.abs(x), np.abs(w)
    elif kind == "heavy tails":
        w *= np.exp(net.rng.standard_normal(w.shape) * 2)
    elif kind == "few weights":
        w *= net.rng.random(w.shape) < 0.02
    net.feeds["x"] = x.astype(np.float32)
    net.input.data = net.feeds["x"].astype(np.float64)
    return net, net.finish(net.matmul(net.input, net.constant(w)))


CONVOLUTIONS = ("plain", "cancelling", "scaled", "singular", "opposite", "sharp", "smooth", "spikes", "ramp")
PRODUCTS = (
    "plain", "cancelling", "scaled", "scaled halves", "columns of decades", "rows of decades", "positive", "heavy tails", "few weights",
)  # fmt: skip
LAYERS = {}
for kind in CONVOLUTIONS:
    LAYERS[f"3x3, {kind}"] = lambda s, kind=kind: convolution(s, kind)
    LAYERS[f"3x3 of 7x7, {kind}"] = lambda s, kind=kind: convolution(s, kind, 512, 512, 7)
    LAYERS[f"3x3 of stride 2, {kind}"] = lambda s, kind=kind: convolution(s, kind, 64, 64, 56, 3, 2)
    LAYERS[f"1x1, {kind}"] = lambda s, kind=kind: convolution(s, kind, 256, 64, 14, 1)
for kind in PRODUCTS:
    for rows in (1, 128):
        LAYERS[f"product of {rows} rows, {kind}"] = lambda s, kind=kind, rows=rows: product(s, kind, rows)
