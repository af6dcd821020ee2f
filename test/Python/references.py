"""What results are compared with, in f64."""

import numpy as np


def convolve(x, w):
    """The convolution of x [C,H,W] with 3x3 filters w [OC,C,3,3] that is as large as x, exact, near enough."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    rows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", rows, w.astype(np.float64), optimize=True)
