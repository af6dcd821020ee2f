"""Operators that move elements and compute nothing."""

import numpy as np

from references import Refused


def transpose(g):
    x = g.value(high=5)
    g.emit("Transpose", [x], perm=[int(p) for p in g.rng.permutation(x.rank)] if g.maybe(0.8) else None)


def concat(g):
    x = g.value(low=1)
    axis = g.int(0, x.rank - 1)
    inputs = [x]
    for _ in range(g.int(0, 4)):
        shape = list(x.shape)
        shape[axis] = g.pick([0, 1, 2, 3, 5, 16]) if g.maybe() else shape[axis]
        inputs.append(x if g.maybe(0.1) else g.value(x.dtype, shape=shape))
    g.emit("Concat", [inputs[i] for i in g.rng.permutation(len(inputs))], axis=axis - x.rank if g.maybe(0.3) else axis, valid=beside(axis))


def beside(axis):
    """Whether tensors have the same sizes but for this one; onnxruntime leaves out what has no elements."""
    return lambda *arrays: len({(a.ndim, *a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}) == 1


def split(g):
    x = g.value(low=1)
    axis = g.int(-x.rank, x.rank - 1)
    total, count = x.shape[axis], g.int(1, 4)
    if g.maybe() or g.opset < 18:
        cuts = sorted(g.int(0, total) for _ in range(count - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, total])]
        g.emit("Split", [x, g.ints(parts)], outputs=len(parts), axis=axis)
    else:
        if (count - 1) * -(-total // count) > total:
            raise Refused("libonnx makes the last part negative")
        g.emit("Split", [x], outputs=count, axis=axis, num_outputs=count)


def slices(g):
    x = g.value(low=1)
    axes = [int(a) for a in g.rng.permutation(x.rank)[: g.int(1, x.rank)]]
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = g.pick([1, 1, 1, 2, 3, -1, -1, -2])
        a, b = g.int(-size - 1, size + 1), g.int(-size - 1, size + 1)
        if g.maybe(0.5) and (a < b) != (step > 0) and a * b >= 0:
            a, b = b, a
        starts.append(a if g.maybe(0.8) else g.pick([0, np.iinfo(np.int64).max, np.iinfo(np.int64).min]))
        # Backwards to the largest number is nothing; onnxruntime takes it for the beginning.
        far = [np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1] if step > 0 else [np.iinfo(np.int64).min + 1]
        ends.append(b if g.maybe(0.8) else g.pick(far))
        steps.append(step)
    axes = [a - x.rank if g.maybe(0.3) else a for a in axes]
    inputs = [x, g.ints(starts), g.ints(ends)]
    if g.maybe(0.2):
        count = len(axes)
        g.emit("Slice", [*inputs, *([] if g.maybe() else [None, g.ints(steps)])]) if count <= x.rank else None
    else:
        g.emit("Slice", [*inputs, g.ints(axes), g.ints(steps) if g.maybe(0.7) else None])


def pad(g):
    x = g.value(low=1, op="Pad")
    mode = g.pick(
        ["constant", "constant", "reflect", "edge", "wrap"] if g.opset >= 19 else ["constant", "reflect", "edge"]
    )
    axes = (
        [int(a) for a in g.rng.permutation(x.rank)[: g.int(1, x.rank)]]
        if g.opset >= 18 and g.maybe(0.4)
        else list(range(x.rank))
    )
    counts = [
        min(g.int(0, 3), max(x.shape[a] - 1, 0)) if mode != "constant" else g.int(-1 if g.maybe(0.2) else 0, 3)
        for a in [*axes, *axes]
    ]
    inputs = [x, g.ints(counts)]
    value = g.hold(g.data(x.dtype, ()), 0.7, keep=True) if mode == "constant" and g.maybe() else None
    if axes != list(range(x.rank)):
        inputs += [value, g.ints([a - x.rank if g.maybe(0.2) else a for a in axes])]
    elif value is not None:
        inputs.append(value)
    g.emit("Pad", inputs, mode=mode)


def expand(g):
    x = g.value()
    shape = [g.pick([1, 2, 5, 17]) if s == 1 and g.maybe(0.7) else g.pick([s, 1]) for s in x.shape]
    if g.maybe(0.3):
        shape = [g.pick([1, 2, 3]), *shape]
    g.emit("Expand", [x, g.ints(shape)])


def tile(g):
    x = g.value(high=3)
    g.emit("Tile", [x, g.ints([g.pick([0, 1, 1, 2, 3]) if g.maybe(0.9) else 4 for _ in range(x.rank)])])


def depth(g):
    op, block = g.pick(["DepthToSpace", "SpaceToDepth"]), g.int(1, 3)
    n, c, h, w = g.int(1, 2), g.int(1, 3), g.int(1, 5), g.int(1, 9)
    dtype = g.dtype(op)
    if op == "DepthToSpace":
        x = g.new(dtype, (n, c * block * block, h, w), const=0.1)
        g.emit(op, [x], blocksize=block, mode=g.pick([None, "DCR", "CRD"]))
    else:
        g.emit(op, [g.new(dtype, (n, c, h * block, w * block), const=0.1)], blocksize=block)


def resize(g):
    x = g.value(low=1, high=4, op="Resize", test=lambda v: 0 not in v.shape)
    if x.dtype.kind not in "fV":
        x = g.new(np.float32, (1, g.int(1, 3), g.int(2, 9), g.int(2, 9)), const=0.1)
    mode = g.pick(["nearest", "nearest", "linear", "cubic"])
    if mode == "cubic" and x.rank not in (2, 4):
        mode = "linear"  # onnxruntime refuses, and onnx.reference errs by a sample where a position is a whole number
    kept = x.rank - g.int(1, min(x.rank, 2))
    scaled = [i >= kept for i in range(x.rank)]
    how = g.pick(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + ["half_pixel_symmetric"] * (g.opset >= 19)
    )
    attributes = {"mode": mode, "coordinate_transformation_mode": how}
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.pick([None, -0.5])
        attributes["exclude_outside"] = g.pick([None, 1])
    if mode != "nearest" and g.opset >= 18:
        attributes["antialias"] = g.pick([None, None, 1])
    # Of a weight of zero and an infinity ours makes NaN.
    attributes["valid"] = lambda v, *_: mode == "nearest" or bool(np.isfinite(v.astype(float)).all())
    # Before opset 13 it needed a region of interest, if only one of no numbers; before 11 it had none.
    if g.opset < 11:
        raise Refused("another form")
    region = g.hold(np.zeros(0, np.float32), 1.0, keep=True) if g.opset < 13 else None
    if g.maybe():
        # Others give sizes that hang on the precision of one multiplication.
        scales = [g.pick([0.5, 2.0, 1.5, 0.625, 3.0]) if s else 1.0 for s in scaled]
        g.emit("Resize", [x, region, g.hold(np.array(scales, np.float32), 0.8, keep=True)], **attributes)
    else:
        none = g.hold(np.zeros(0, np.float32), 1.0, keep=True) if g.opset < 13 else None
        sizes = [g.int(1, 2 * n + 1) if s else n for s, n in zip(scaled, x.shape)]
        g.emit("Resize", [x, region, none, g.ints(sizes)], **attributes)


def trilu(g):
    x = g.value(low=2)
    k = g.ints(g.int(-4, 4)) if g.maybe(0.6) else None
    g.emit("Trilu", [x, k], upper=g.pick([None, 0, 1]))


def reverse(g):
    x = g.value(low=2)
    time = g.int(0, 1)
    if 0 in x.shape:
        raise Refused("empty")
    lengths = g.hold(g.rng.integers(1, x.shape[time] + 1, x.shape[1 - time]), 0.5, keep=True)
    g.emit("ReverseSequence", [x, lengths], time_axis=time, batch_axis=1 - time)


def crop(g):
    x = g.value(low=1)
    axes = [int(a) for a in g.rng.permutation(x.rank)[: g.int(1, x.rank)]] if g.maybe() else None
    shape = [g.int(0, x.shape[a] + 3) for a in (range(x.rank) if axes is None else axes)]
    g.emit("CenterCropPad", [x, g.ints(shape)], axes=axes)


OPERATORS = [
    transpose,
    transpose,
    concat,
    concat,
    split,
    slices,
    slices,
    pad,
    pad,
    expand,
    tile,
    depth,
    resize,
    resize,
    trilu,
    reverse,
    crop,
]
