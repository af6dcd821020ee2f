"""How results are compared with those of the library that a model comes from."""

import numpy as np

# Batches of so many of the rows.
BATCHES = (0, 1, 7, None)


def close(got, want, tolerance):
    """`tolerance` is relative to the largest number there."""
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.kind in "OUS" or got.dtype.kind in "OUS":
        assert got.tolist() == want.tolist()
        return
    scale = max(1.0, float(np.nanmax(np.abs(want.astype(np.float64)), initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


def shaped(got, rows, want):
    """A result in the shape that the library gives: a score of two classes is that of the second, and
    a list may come as a column."""
    got = np.asarray(got)
    assert got.shape[0] == rows
    if got.ndim == 2 and want.ndim == 1:
        got = got[:, -1] if got.shape[1] <= 2 else got
    assert got.shape == (rows, *want.shape[1:]), (got.shape, want.shape)
    return got


def compare(run, x, wants, tolerances, batches=BATCHES):
    """`run` gives as many results as there are `wants`, which are those for all of `x`."""
    for count in batches:
        rows = len(x) if count is None else count
        results = run(x[:rows])
        for got, want, tolerance in zip(results, wants, tolerances):
            close(shaped(got, rows, want), want[:rows], tolerance)


def unzipped(results, estimator):
    """The same with maps by class as rows of a matrix."""
    return [of_maps(r, estimator.classes_) if isinstance(r, list) else r for r in results]


def of_maps(maps, classes):
    return np.array([[row[c] for c in classes] for row in maps], np.float32).reshape(-1, len(classes))
