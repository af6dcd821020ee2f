"""Operators of com.microsoft that move elements, take matrices as a whole, or read tokens."""

import numpy as np

from references import HALF, Refused
from values import STRING

from .fused import F32, finite, node, some
from .strings import text

I64, I32 = np.dtype(np.int64), np.dtype(np.int32)


def held(g, array, const=0.5):
    return g.hold(np.asarray(array), const, keep=True)


def triangle(g):
    x = g.value(g.pick([F32, np.dtype(np.float64), I64]), low=2)
    k = held(g, np.int64(g.int(-4, 4))) if g.maybe() else None
    node(g, "Trilu", [x, k], upper=g.pick([None, 0, 1]))


def pad(g):
    x = g.value(F32, low=1, test=lambda v: 0 not in v.shape)
    mode = g.pick([None, "constant", "edge", "reflect"])
    pads = [g.int(0, min(2, s - 1) if mode == "reflect" else 3) for s in x.shape * 2]
    value = held(g, np.full(g.pick([(), (1,)]), 2.5, np.float32)) if mode in (None, "constant") and g.maybe() else None
    node(g, "Pad", [x, held(g, np.array(pads)[None] if g.maybe(0.3) else pads, 0.8), value], mode=mode)


def numbers(g):
    """Range."""
    dtype = g.pick([np.float32, np.float64, np.int16, np.int32, np.int64])
    start, delta = g.int(-9, 9), g.pick([1, 2, 3, -1, -2])
    ends = [start, start + delta * g.int(-1, 9)] + ([delta] if delta != 1 or g.maybe() else [])
    shape = g.pick([(), (1,)])
    node(g, "Range", [held(g, np.full(shape, v, dtype), 0.8) for v in ends])


def gather(g):
    x = g.value(g.pick([F32, I64, HALF, STRING]), low=1, test=lambda v: 0 not in v.shape)
    depth = g.int(1, x.rank)
    at = np.array([g.int(-s, s - 1) for _ in range(4) for s in x.shape[:depth]]).reshape(g.pick([(4,), (2, 2)]) + (depth,))
    node(g, "GatherND", [x, held(g, at.astype(g.pick([np.int32, np.int64])))])


def expand(g):
    x = g.value(g.pick([F32, I64, STRING]), high=3, test=lambda v: v.array.size > v.rank)  # onnxruntime takes the size for the rank
    node(g, "ExpandDims", [x, held(g, np.int32(g.int(-x.rank - 1 if x.rank else 0, x.rank)), 1.0)], valid=lambda x, a: -x.size <= a <= x.size)


def unique(g):
    node(g, "Unique", [held(g, g.rng.integers(-2, 3, g.size()).astype(np.float32), 0.2)], 3)


def unfold(g):
    x = g.value(g.pick([F32, I64, STRING]), low=1, test=lambda v: 0 not in v.shape)
    dim = g.int(-x.rank, x.rank - 1)
    node(g, "UnfoldTensor", [x], dim=dim, size=g.int(1, x.shape[dim]), step=g.pick([None, 1, 2, 3]))


def sample(g):
    x = some(g, F32, (g.int(1, 2), g.int(1, 3), g.int(1, 5), g.int(1, 5)))
    grid = g.hold(g.rng.uniform(-1.5, 1.5, (x.shape[0], g.int(1, 4), g.int(1, 4), 2)).astype(np.float32), 0.3)
    # Where a place is as near to one as to another, rounding decides.
    node(g, "GridSample", [x, grid], mode=g.pick([None, "bilinear", "bicubic"]), align_corners=g.int(0, 1),
         padding_mode=g.pick([None, "zeros", "border", "reflection"]))  # fmt: skip


def crop(g):
    x, boxes = some(g, F32, (g.int(1, 2), g.int(1, 3), g.int(2, 6), g.int(2, 6))), g.int(1, 3)
    rois = g.hold(g.rng.uniform(-0.1, 1.1, (boxes, 4)).astype(np.float32), 0.3)
    images = held(g, g.rng.integers(0, x.shape[0], boxes).astype(np.int32))
    size = held(g, np.array([g.int(1, 4), g.int(1, 4)], np.int32))
    node(g, "CropAndResize", [x, rois, images, size], mode=g.pick([None, "bilinear"]), extrapolation_value=g.pick([None, -2.0]))


def inverse(g):
    size, dtype = g.int(1, 6), g.pick([F32, np.dtype(np.float64)])
    x = g.rng.uniform(-0.3, 0.3, (*g.shape(g.int(0, 2)), size, size)) + 2 * g.rng.permutation(np.eye(size))
    node(g, "Inverse", [g.hold(x.astype(dtype), 0.2, keep=True)])


def distances(g):
    dtype, width = g.pick([F32, np.dtype(np.float64)]), g.int(1, 9)
    a, b = (some(g, dtype, (g.int(1, 6), width)) for _ in range(2))
    node(g, "CDist", [a, b], metric=g.pick(["euclidean", "sqeuclidean"]), valid=finite)


def warp(g):
    shape = (g.int(1, 9), g.int(1, 9))
    costs = g.rng.integers(0, 9, shape if g.maybe(0.7) else (1, *shape))
    node(g, "DynamicTimeWarping", [held(g, costs.astype(np.float32), 0.2)])


def hashes(g):
    kind = g.pick([np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64, None])
    x = text(g) if kind is None else held(g, (1e5 * g.rng.standard_normal(g.shape(high=3))).astype(kind), 0.2)
    node(g, "MurmurHash3", [x], seed=g.pick([None, 1, 123456]), positive=g.pick([None, 0, 1]))


def tokens(g):
    pool = ["a b", "b,c  d", "", "aab", "größe ab", "日本 語"]
    shape = g.pick([(g.int(1, 4),), (g.int(1, 3), g.int(1, 3))])
    x = np.array([g.pick(pool) for _ in range(int(np.prod(shape)))], STRING).reshape(shape)
    how = g.pick([{"separators": [" "]}, {"separators": [" ", ","]}, {"separators": ["[ ,]+"]}, {"separators": [""]},
                  {"tokenexp": "."}, {"tokenexp": "[a-z]+"}, {"tokenexp": "a+|語"}])  # fmt: skip
    least = 1 if how in ({"separators": [""]}, {"tokenexp": "."}) else g.int(1, 3)
    node(g, "Tokenizer", [held(g, x, 0.2)], mark=g.int(0, 1), pad_value=g.pick(["", "#"]), mincharnum=least, **how)


def repeats(g):
    batch, words = g.int(1, 3), g.int(2, 5)
    ids = held(g, g.rng.integers(0, words, (batch, g.int(1, 12))), 0.2)
    # What is not finite goes nowhere else.
    node(g, "NGramRepeatBlock", [ids, some(g, F32, (batch, words))], ngram_size=g.int(1, 4))


def bifurcation(g):
    source, current = g.rng.integers(0, 5, g.int(1, 9)), g.rng.integers(0, 5, g.int(1, 5))
    start = g.int(0, len(source))
    predicted = np.append(source[start:], 7)
    predicted[g.int(0, len(predicted) - 1) :] = g.int(0, 5)
    inputs = [source, current, np.array([start])] + ([predicted] if g.maybe(0.7) else [])
    node(g, "BifurcationDetector", [held(g, v, 0.2) for v in inputs], 2, min_ngram_size=g.pick([None, 1, 2]), max_ngram_size=g.pick([None, 3, 4]))


def transposed_conv(g):
    x, w = some(g, F32, (1, 2, g.int(2, 5), g.int(2, 5))), some(g, F32, (2, 3, 3, 3))
    pads = held(g, [g.int(0, 1) for _ in range(4)]) if g.maybe() else None
    node(g, "ConvTransposeWithDynamicPads", [x, w, pads], strides=[g.int(1, 2)] * 2, kernel_shape=[3, 3])


def branches(g):
    count, width, flat = g.int(1, 3), g.int(1, 6), g.maybe()
    lead = g.shape(g.int(1, 2), low=1)
    x = some(g, F32, (*lead, count * width) if flat else (*lead, count, width))
    kind, more = g.int(0, 2), {"num_branches": count} if flat else {}
    if kind == 0:
        scale = some(g, F32, g.pick([(width,), (count, width), (count * width,)])) if g.maybe() else None
        return node(g, "BranchwiseRMSNorm", [x, scale], epsilon=g.pick([None, 1e-3]), **more)
    gates = some(g, F32, (*lead, *g.pick([(count,), (count, 1), (count, width)])))
    if kind == 1:
        return node(g, "HyperConnectionPreMix", [x, gates], reduction_scale=g.pick([None, 0.5]), **more)
    mix = some(g, F32, (*lead, count, count)) if g.maybe() else None
    node(g, "HyperConnectionPostMix", [x, some(g, F32, (*lead, width)), gates, mix], **more)


def engram(g):
    batch, length, streams, width = g.int(1, 2), g.int(1, 4), g.int(1, 3), g.int(1, 8)
    if g.maybe():
        key, query = (some(g, F32, (batch, length, streams, width)) for _ in range(2))
        value, scales = some(g, F32, (batch, length, width)), [some(g, F32, (streams, width)) for _ in range(3)]
        return node(g, "EngramGate", [key, query, value, *scales], [True, g.maybe()])
    longest, hashes, dtype = g.int(2, 4), g.int(1, 3), g.pick([np.int32, np.int64])
    ids, past = g.rng.integers(0, 99, (batch, length)), g.rng.integers(0, 99, (batch, longest - 1))
    factors, sizes = g.rng.integers(1, 2**30, longest), g.rng.integers(1, 99, (longest - 1) * hashes)
    inputs = [held(g, v.astype(dtype)) for v in (ids, factors, sizes, past)]
    node(g, "NGramHashMapping", inputs if g.maybe() else inputs[:3], 2, max_ngram_size=longest, n_head_per_ngram=hashes, pad_id=3)


def rotary(g):
    batch, length, heads, sections = g.int(1, 2), g.int(1, 4), g.int(1, 3), [g.int(1, 3)] * 3
    half = sum(sections)
    flat, angles = g.maybe(), g.rng.uniform(-3, 3, (9, half))
    x = some(g, F32, (batch, length, heads * 2 * half) if flat else (batch, heads, length, 2 * half))
    cos, sin = (held(g, f(angles).astype(np.float32)) for f in (np.cos, np.sin))
    places = held(g, g.rng.integers(0, 9, (3, batch, length)))
    node(g, "MRotaryEmbedding", [x, places, cos, sin], mrope_section=sections, mrope_layout=g.pick([None, 0, 1]), interleaved=g.int(0, 1),
         num_heads=heads if flat else None)  # fmt: skip


def simple(g):
    x = g.value(F32, low=1)
    if g.maybe():
        return node(g, "SampleOp", [x])
    scale = held(g, np.float32(1.5)) if g.maybe() else None
    node(g, "ScaledSiLU", [x, scale], alpha=g.pick([None, 0.5]))


OPERATORS = [triangle, pad, numbers, gather, expand, unique, unfold, sample, crop, inverse, distances, warp, hashes, tokens, repeats,
             bifurcation, transposed_conv, branches, branches, engram, engram, rotary, simple]  # fmt: skip
