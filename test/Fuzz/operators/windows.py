"""Convolutions and pools with all their attributes."""

import numpy as np

from references import Refused


def image(g, op, channels=None, low=1, high=3, limit=34):
    """An input N, C and one to three spatial sizes."""

    def suits(v):
        return (
            (channels is None or v.shape[1] == channels) and max(v.shape[2:], default=0) <= limit and 0 not in v.shape
        )

    spatial = g.int(low, high)
    x = g.value(rank=spatial + 2, op=op, test=suits)
    if x.dtype.kind == "i" and op != "MaxPool":
        raise Refused("integers")
    return x


def window(g, spatial, most=(7, 5, 3)):
    kernel = [g.int(1, most[spatial - 1]) for _ in range(spatial)]
    if g.maybe(0.3) and spatial == 2:
        kernel = [3, 3]
    strides = [g.int(1, 3) if g.maybe(0.5) else 1 for _ in range(spatial)]
    dilations = [g.int(1, 3) if g.maybe(0.3) else 1 for _ in range(spatial)]
    return kernel, strides, dilations


def padding(g, kernel):
    kind = g.pick(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if kind != "NOTSET":
        return {"auto_pad": kind}
    if g.maybe(0.4):
        return {}
    return {"pads": [g.int(0, k - 1) for k in kernel] + [g.int(0, k - 1) for k in kernel]}


def conv(g):
    x = image(g, "Conv", limit=34)
    channels, spatial = x.shape[1], x.rank - 2
    groups = g.pick([1, 1, 1] + [d for d in range(1, channels + 1) if channels % d == 0])
    kernel, strides, dilations = window(g, spatial)
    filters = groups * g.pick([1, 1, 2, 3, 4, 8, 16, 17] if groups < 8 else [1, 1, 2])
    w = g.hold(g.data(x.dtype, (filters, channels // groups, *kernel)), 0.8)
    b = g.hold(g.data(x.dtype, (filters,)), 0.8) if g.maybe() else None
    pads = padding(g, kernel)
    # onnxruntime refuses dilations with SAME, and onnx.reference puts zeros between the weights, which make
    # NaN of an infinity.
    # Ours leaves out what lies in the padding; an infinite weight there makes NaN of its zero.
    same = pads.get("auto_pad", "").startswith("SAME")
    padded = same or any(pads.get("pads", []))

    def valid(x, w, *_):
        finite = [bool(np.isfinite(v.astype(float)).all()) for v in (x, w)]
        return (finite[0] or not same) and (finite[1] or not padded)

    g.emit(
        "Conv",
        [x, w, b],
        valid=valid,
        **pads,
        group=groups,
        strides=strides if g.maybe(0.8) else None,
        dilations=dilations if g.maybe(0.6) else None,
        kernel_shape=kernel if g.maybe() else None,
    )


def conv_transpose(g):
    x = image(g, "ConvTranspose", limit=17)
    channels, spatial = x.shape[1], x.rank - 2
    groups = g.pick([1, 1] + [d for d in range(1, channels + 1) if channels % d == 0])
    kernel, strides, dilations = window(g, spatial, (5, 4, 3))
    w = g.hold(g.data(x.dtype, (channels, g.pick([1, 2, 3, 8]), *kernel)), 0.8)
    b = g.hold(g.data(x.dtype, (w.shape[1] * groups,)), 0.8) if g.maybe() else None
    extra = [g.int(0, max(s, d) - 1) for s, d in zip(strides, dilations)] if g.maybe(0.4) else None
    # Of an infinite weight ours makes NaN where the inserted zeros meet it.
    g.emit(
        "ConvTranspose",
        [x, w, b],
        valid=lambda x, w, *_: bool(np.isfinite(w.astype(float)).all()),
        **padding(g, kernel),
        group=groups,
        strides=strides,
        output_padding=extra,
        dilations=dilations if g.maybe(0.5) else None,
        kernel_shape=kernel if g.maybe() else None,
    )


def pool(g):
    op = g.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    x = image(g, op)
    kernel, strides, dilations = window(g, x.rank - 2)
    if g.maybe(0.15):
        kernel = list(x.shape[2:])
    more = {}
    if op == "AveragePool":
        more["count_include_pad"] = g.int(0, 1)
    if op == "LpPool":
        more["p"] = g.int(1, 3)
    if op == "MaxPool" and g.maybe(0.15):
        more["storage_order"] = g.int(0, 1)
    pads = padding(g, kernel)
    outputs = [True] if op != "MaxPool" else [True, g.maybe(0.2)]
    is_valid = pads.get("auto_pad") == "VALID"
    if is_valid and op != "MaxPool":
        dilations = [1] * len(kernel)  # onnxruntime's size leaves them out
    if pads.get("auto_pad", "").startswith("SAME"):
        # With dilations onnxruntime's size is not the ceil(input / stride) of ONNX; where windows leave gaps
        # its pools and the reference's take pads below zero, each in another way. Of SAME_LOWER the reference
        # puts the odd pad at the end where there are dilations.
        dilations = [1] * len(kernel)
        strides = [min(s, k) for s, k in zip(strides, kernel)]

    def valid(v):
        # Where no window fits ONNX has an empty result, the references one of a window or more.
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]
        given = pads.get("pads", [0] * 2 * len(kernel))
        padded = [size + a + b for size, a, b in zip(v.shape[2:], given, given[len(kernel) :])]
        fits = all(size >= r for size, r in zip(padded, reach)) or pads.get("auto_pad", "").startswith("SAME")
        return fits and bool((v == v).all())

    g.emit(
        op,
        [x],
        outputs=outputs if outputs[-1] else 1,
        valid=valid,
        kernel_shape=kernel,
        strides=strides if g.maybe(0.8) else None,
        dilations=dilations if g.maybe(0.4) else None,
        # Of VALID windows ONNX makes as many with it as without, onnxruntime one more.
        ceil_mode=g.int(0, 1) if not is_valid and ("pads" in pads or g.maybe()) else None,
        **pads,
        **more,
    )


def global_pool(g):
    op = g.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    x = image(g, op, limit=100)
    g.emit(op, [x], valid=lambda v: bool((v == v).all()), **({"p": g.int(1, 3)} if op == "GlobalLpPool" else {}))


def conv_integer(g):
    x = g.value(np.uint8, rank=4, test=lambda v: max(v.shape[2:]) <= 20 and 0 not in v.shape)
    kernel, strides, dilations = window(g, 2, (5, 3, 3))
    w = g.hold(g.data(g.pick([np.uint8]), (g.pick([1, 2, 8]), x.shape[1], *kernel), low=0, high=9), 0.8)
    zeros = [g.hold(np.array(g.int(0, 9), v.dtype), 0.8, keep=True) if g.maybe() else None for v in (x, w)]
    g.emit("ConvInteger", [x, w, *zeros], **padding(g, kernel), strides=strides, dilations=dilations)


def unpool(g):
    x = image(g, "MaxPool", low=1, high=2)
    if x.dtype.kind == "i":
        raise Refused("integers")
    kernel = [g.int(1, 3) for _ in range(x.rank - 2)]
    y, where = g.emit(
        "MaxPool", [x], outputs=2, kernel_shape=kernel, strides=kernel, valid=lambda v: bool((v == v).all())
    )
    g.emit("MaxUnpool", [y, where], kernel_shape=kernel, strides=kernel)


def lrn(g):
    x = image(g, "LRN")
    # With an infinity onnxruntime loses the neighbours too: it keeps a running sum. Of doubles the references
    # take the attributes, which are single precision, differently; large numbers leave rounding errors in the sum.
    g.emit(
        "LRN",
        [x],
        valid=lambda v: v.dtype != np.float64 and bool((np.abs(v.astype(float)) < 1e6).all()),
        size=g.pick([1, 3, 5]),
        alpha=0.01 * g.int(1, 5),
        beta=0.75,
        bias=1.0 if g.maybe() else None,
    )


def col2im(g):
    block = [g.int(1, 3), g.int(1, 3)]
    sizes = [g.int(4, 9), g.int(4, 9)]
    strides = [g.int(1, 2), g.int(1, 2)] if g.maybe() else None
    steps = strides or [1, 1]
    count = int(np.prod([(s - b) // t + 1 for s, b, t in zip(sizes, block, steps)]))
    channels = g.int(1, 3)
    x = g.new(
        g.pick([np.float32, np.float32, np.float64]), (g.int(1, 2), channels * block[0] * block[1], count), const=0
    )
    g.emit("Col2Im", [x, g.ints(sizes), g.ints(block)], strides=strides)


OPERATORS = [
    conv,
    conv,
    conv,
    conv,
    conv_transpose,
    conv_transpose,
    pool,
    pool,
    pool,
    global_pool,
    conv_integer,
    unpool,
    lrn,
    col2im,
]
