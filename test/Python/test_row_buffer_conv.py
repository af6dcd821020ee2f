"""Convolutions of few channels, which are read from lines, against sums in double precision."""

import numpy as np
import pytest
from references import check_convolution


@pytest.mark.parametrize("images, channels, height, width, filters, kernel, strides, pads", [
    (1, 3, 96, 112, 32, (3, 3), (2, 2), (1, 1, 1, 1)),
    (1, 3, 96, 112, 64, (3, 3), (2, 2), (0, 0, 0, 0)),  # the last vector is cut
    (1, 3, 64, 128, 16, (7, 7), (2, 2), (3, 3, 3, 3)),
    (2, 1, 40, 33, 5, (3, 3), (1, 1), (1, 1, 1, 1)),  # fewer filters than a tile has
    (1, 4, 37, 70, 12, (5, 3), (1, 2), (0, 2, 3, 1)),  # strides and pads all differ
    (3, 2, 9, 64, 17, (8, 8), (2, 1), (9, 9, 9, 9)),  # rows and columns of nothing but padding
    (1, 3, 5, 36, 9, (3, 1), (1, 1), (5, 0, 0, 6)),
    (1, 1, 3, 500, 3, (3, 7), (2, 2), (1, 0, 1, 0)),  # one row
    (1, 3, 300, 48, 19, (3, 3), (1, 1), (0, 0, 0, 0)),
    (1, 3, 50, 400, 16, (3, 4), (2, 2), (0, 40, 0, 40)),  # more padding than a vector
    (1, 4, 24, 4000, 8, (3, 3), (2, 2), (1, 1, 1, 1)),  # lines too long for the first cache
    (1, 2, 6, 7, 10, (3, 3), (1, 1), (1, 1, 1, 1)),  # less than a vector
    (1, 3, 1, 1, 4, (3, 3), (2, 2), (1, 1, 1, 1)),
    (2, 1, 5, 9000, 3, (3, 3), (2, 2), (1, 1, 1, 1)),
])  # fmt: skip
@pytest.mark.parametrize("has_open_sizes", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
def test_against_doubles(images, channels, height, width, filters, kernel, strides, pads, cpu, has_open_sizes):
    rng = np.random.default_rng(width)
    x = rng.standard_normal((images, channels, height, width)).astype(np.float32)
    w = rng.standard_normal((filters, channels, *kernel)).astype(np.float32)
    check_convolution(x, w, cpu, 5e-7, has_open_sizes=has_open_sizes, strides=strides, pads=pads)
