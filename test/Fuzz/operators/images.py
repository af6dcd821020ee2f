"""Sampling, regions of interest, boxes."""

import io

import numpy as np
from PIL import Image

from references import Refused

F32 = np.dtype(np.float32)
FLOATS = [F32, F32, F32, np.dtype(np.float64), np.dtype(np.float16)]


def grid_sample(g):
    if g.opset < 16:
        raise Refused("GridSample")
    spatial = 2 if g.opset < 20 or g.maybe(0.7) else 3
    dtype = g.pick([F32, F32, F32, np.dtype(np.float64)])
    batch, channels = g.int(1, 3), g.int(0 if g.maybe(0.05) else 1, 3)
    sizes = [g.int(1, 7) for _ in range(spatial)]
    x = g.new(dtype, (batch, channels, *sizes))
    grid = g.new(dtype, (batch, *(g.int(1, 5) for _ in range(spatial)), spatial), low=-1.6, high=1.6)
    modes = (["bilinear", "nearest", "bicubic"] if g.opset < 20 else ["linear", "nearest", "cubic"])[: 3 if spatial == 2 else 2]
    mode = g.pick([None, *modes])

    def valid(x, grid):
        if not np.isfinite(x.astype(float)).all() or not np.isfinite(grid.astype(float)).all():
            return False
        # Points half way between two pixels go either way.
        return mode != "nearest" or bool((np.abs(grid) > 1e-3).all())

    g.emit("GridSample", [x, grid], mode=mode, padding_mode=g.pick([None, "zeros", "border", "reflection"]), align_corners=g.pick([None, 0, 1]), valid=valid)


def affine_grid(g):
    if g.opset < 20:
        raise Refused("AffineGrid")
    spatial, batch = g.pick([2, 2, 3]), g.int(1, 3)
    theta = g.new(g.pick([F32, F32, np.dtype(np.float64), np.dtype(np.float16)]), (batch, spatial, spatial + 1))
    fits = lambda theta, size: theta.shape[1:] == (spatial, spatial + 1)  # noqa: E731
    g.emit("AffineGrid", [theta, g.ints([batch, g.int(1, 3), *(g.int(1, 6) for _ in range(spatial))])], align_corners=g.pick([None, 0, 1]), valid=fits)


def boxes_of(g, count, height, width, scale):
    """Corners of boxes, now and then outside and of no size."""
    corners = g.rng.uniform(-0.2, 1.2, (count, 2, 2)) * [width, height] / scale
    first, second = corners.min(1), corners.max(1)
    return np.concatenate([first, second], 1)


def roi_align(g):
    dtype = g.pick([F32, F32, F32, np.dtype(np.float64)])
    batch, channels, height, width = g.int(1, 3), g.int(1, 3), g.int(1, 9), g.int(1, 9)
    x = g.new(dtype, (batch, channels, height, width))
    count, scale = g.int(0 if g.maybe(0.1) else 1, 4), g.pick([None, 1.0, 0.5, 0.25])
    rois = g.hold(boxes_of(g, count, height, width, scale or 1).astype(dtype), 0.2, keep=True)
    at = g.hold(g.rng.integers(0, batch, (count,)), 0.2, keep=True)
    g.emit("RoiAlign", [x, rois, at], mode=g.pick([None, "avg", "max"]), output_height=g.int(1, 4), output_width=g.int(1, 4), sampling_ratio=g.int(0, 3),
           spatial_scale=scale, coordinate_transformation_mode=g.pick([None, "half_pixel", "output_half_pixel"]),
           valid=lambda x, *_: bool(np.isfinite(x.astype(float)).all()) and 0 not in x.shape[2:])  # fmt: skip


def roi_pool(g):
    batch, channels, height, width = g.int(1, 3), g.int(1, 3), g.int(1, 9), g.int(1, 9)
    x = g.new(F32, (batch, channels, height, width))
    count, scale = g.int(1, 4), g.pick([None, 1.0, 0.5])
    boxes = boxes_of(g, count, height, width, scale or 1).clip(0)
    rois = np.concatenate([g.rng.integers(0, batch, (count, 1)), np.floor(boxes)], 1)
    g.emit("MaxRoiPool", [x, g.hold(rois.astype(np.float32), 0.2, keep=True)], pooled_shape=[g.int(1, 4), g.int(1, 4)], spatial_scale=scale,
           valid=lambda x, *_: bool(np.isfinite(x.astype(float)).all()))  # fmt: skip


def deform_conv(g):
    if g.opset < 19:
        raise Refused("DeformConv")
    spatial = 2
    dtype = g.pick([F32, F32, F32, np.dtype(np.float64)])
    groups, share = g.int(1, 2), g.int(1, 2)
    channels = groups * share * g.int(1, 2)
    kernel, strides, dilations = ([g.int(1, 3) for _ in range(spatial)], [g.int(1, 2) for _ in range(spatial)], [g.int(1, 2) for _ in range(spatial)])
    pads = [g.int(0, 1) for _ in range(2 * spatial)]
    sizes = [g.int(d * (k - 1) + 1, 7) for k, d in zip(kernel, dilations)]
    outs = [(s + pads[i] + pads[i + spatial] - d * (k - 1) - 1) // t + 1 for i, (s, k, t, d) in enumerate(zip(sizes, kernel, strides, dilations))]
    batch = g.int(1, 2)
    x = g.new(dtype, (batch, channels, *sizes))
    w = g.new(dtype, (groups * g.int(1, 2), channels // groups, *kernel))
    taps = int(np.prod(kernel))
    offset = g.new(dtype, (batch, share * taps * spatial, *outs))
    bias = g.new(dtype, (w.shape[0],)) if g.maybe() else None
    mask = g.new(dtype, (batch, share * taps, *outs), low=0, high=1) if g.maybe() else None
    g.emit("DeformConv", [x, w, offset, bias, mask], kernel_shape=kernel if g.maybe() else None, strides=strides, dilations=dilations, pads=pads,
           group=groups, offset_group=share, valid=lambda *arrays: all(bool((np.abs(a) < 1e4).all()) for a in arrays))  # fmt: skip


def suppress(g):
    batches, classes, count = g.int(1, 2), g.int(1, 3), g.int(0 if g.maybe(0.1) else 1, 12)
    center = g.int(0, 1)
    corners = g.rng.uniform(0, 4, (batches, count, 2, 2))
    boxes = np.concatenate([corners.mean(2), np.abs(corners[:, :, 0] - corners[:, :, 1])], 2) if center else corners.reshape(batches, count, 4)
    if g.maybe(0.3):
        boxes = np.round(boxes)
    scores = g.rng.permutation(batches * classes * count).reshape(batches, classes, count) / 40
    inputs = [g.hold(boxes.astype(np.float32), 0.2, keep=True), g.hold(scores.astype(np.float32), 0.2, keep=True)]
    if g.maybe(0.9):
        inputs.append(g.hold(np.array(g.pick([0, 1, 3, 100]), np.int64).reshape(g.pick([(), (1,)])), 0.5, keep=True))
        inputs.append(g.hold(np.array(g.pick([0.0, 0.3, 0.5, 1.0]), np.float32).reshape(g.pick([(), (1,)])), 0.5, keep=True) if g.maybe(0.8) else None)
        inputs.append(g.hold(np.array(g.pick([0.0, 0.2, 0.5]), np.float32).reshape(g.pick([(), (1,)])), 0.5, keep=True) if g.maybe(0.6) else None)
    g.emit("NonMaxSuppression", inputs, center_point_box=g.pick([None, center]) if not center else 1)


FORMS = [("PNG", {}), ("BMP", {}), ("JPEG", {"quality": 80}), ("JPEG", {"subsampling": 0}), ("JPEG", {"progressive": True}), ("JPEG2000", {}),
         ("PPM", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WEBP", {"lossless": True}), ("WEBP", {"quality": 70})]  # fmt: skip
MODES = {"PNG": ["1", "L", "LA", "P", "RGB", "RGBA"], "BMP": ["1", "L", "RGB"], "JPEG": ["L", "RGB"], "JPEG2000": ["L", "RGB"], "PPM": ["1", "L", "RGB"],
         "TIFF": ["1", "L", "RGB"], "WEBP": ["RGB"]}  # fmt: skip


def decode(g):
    form, options = g.pick(FORMS)
    mode = g.pick(MODES[form])
    height, width = g.int(1, 40), g.int(1, 40)
    slopes = np.add.outer(np.arange(height) * g.int(0, 9), np.arange(width) * g.int(0, 9))[..., None] + g.rng.integers(0, g.pick([1, 30]), (height, width, 3))
    picture = Image.fromarray((slopes % 256).astype(np.uint8), "RGB").convert(mode)
    out = io.BytesIO()
    picture.save(out, form, **options)
    data = g.hold(np.frombuffer(out.getvalue(), np.uint8).copy(), 0.1, keep=True)
    g.emit("ImageDecoder", [data], pixel_format=g.pick([None, "RGB", "BGR", "Grayscale"]))


OPERATORS = [decode, grid_sample, grid_sample, affine_grid, roi_align, roi_align, roi_pool, deform_conv, suppress, suppress]
