"""The inputs of products as rows: one row [K] for each place of the output, in the order of the weight's own axes."""

from __future__ import annotations

import numpy as np

from ..quant_utils import attribute


def weight_as_rows(node, weight: np.ndarray) -> np.ndarray:
    """A product's weight as [outputs, K]; K is channels by the kernel's places, or the inner size."""
    if node.op_type == "Conv":
        return weight.reshape(len(weight), -1)
    return weight if node.op_type == "Gemm" and attribute(node, "transB", 0) else weight.T


def rows_as_weight(node, rows: np.ndarray, shape) -> np.ndarray:
    if node.op_type == "Conv":
        return rows.reshape(shape)
    return rows if node.op_type == "Gemm" and attribute(node, "transB", 0) else rows.T


def can_be_rows(node) -> bool:
    """Whether a product's inputs can be written as rows: Gemm, MatMul, and Conv without groups."""
    if node.op_type == "Conv":
        return attribute(node, "group", 1) == 1
    return node.op_type in ("Gemm", "MatMul")


def choose(node, value_shape, kernel, limit: int, random):
    """Places of the output of which rows are made, at most `limit`: index arrays of the batch and the output's axes."""
    if node.op_type != "Conv":
        count = int(np.prod(value_shape)) // max(value_shape[1 if not attribute(node, "transA", 0) else 0], 1)
        if node.op_type == "MatMul":
            count = int(np.prod(value_shape[:-1]))
        return _some(count, limit, random)
    sizes = (value_shape[0], *_output_sizes(node, value_shape[2:], kernel))
    return np.unravel_index(_some(int(np.prod(sizes)), limit, random), sizes)


def _some(count, limit, random):
    return np.arange(count) if count <= limit else np.sort(random.choice(count, limit, replace=False))


def _window(node, kernel):
    spatial = len(kernel)
    return attribute(node, "strides") or [1] * spatial, attribute(node, "dilations") or [1] * spatial


def _pads(node, sizes, kernel):
    """(before, after) of each axis."""
    spatial = len(kernel)
    strides, dilations = _window(node, kernel)
    auto = attribute(node, "auto_pad", b"NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = []
        for axis in range(spatial):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            whole = max((-(-sizes[axis] // strides[axis]) - 1) * strides[axis] + reach - sizes[axis], 0)
            less, more = whole // 2, whole - whole // 2
            pads.append((less, more) if auto == "SAME_UPPER" else (more, less))
        return pads
    given = attribute(node, "pads") or [0] * (2 * spatial)
    return [(0, 0)] * spatial if auto == "VALID" else list(zip(given[:spatial], given[spatial:]))


def _output_sizes(node, sizes, kernel):
    strides, dilations = _window(node, kernel)
    return tuple(
        (size + sum(pad) - ((reach - 1) * dilation + 1)) // stride + 1
        for size, pad, reach, dilation, stride in zip(sizes, _pads(node, sizes, kernel), kernel, dilations, strides)
    )


def rows_of(node, value: np.ndarray, kernel, places) -> np.ndarray:
    """f32 [rows, K] of places that `choose` gave. `kernel` are the weight's sizes beyond its first two axes."""
    if node.op_type == "Gemm" and attribute(node, "transA", 0):
        value = value.T
    if node.op_type != "Conv":
        return np.asarray(value, np.float32).reshape(-1, value.shape[-1])[places]
    strides, dilations = _window(node, kernel)
    padded = np.pad(value, [(0, 0), (0, 0), *_pads(node, value.shape[2:], kernel)])
    batch, *starts = places
    spatial = len(kernel)
    ones = [1] * (spatial + 2)
    indices = [batch.reshape(-1, *ones[1:]), np.arange(value.shape[1]).reshape(1, -1, *ones[2:])]
    for axis in range(spatial):
        offsets = np.arange(kernel[axis]) * dilations[axis]
        shape = list(ones)
        shape[axis + 2] = kernel[axis]
        indices.append((starts[axis] * strides[axis]).reshape(-1, *ones[1:]) + offsets.reshape(shape))
    return np.asarray(padded[tuple(indices)], np.float32).reshape(len(batch), -1)
