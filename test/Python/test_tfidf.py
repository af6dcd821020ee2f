"""TfIdfVectorizer against a count of all n-grams."""

import numpy as np
import pytest
from numerics import run
from onnx import helper


def expected(x, pool, starts, columns, weights, mode, shortest, longest, skips):
    rows = np.atleast_2d(x)
    counts = np.zeros((len(rows), max(columns) + 1))
    grams, number = {}, 0
    for length, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)]), 1):
        for at in range(start, end - length + 1, length):
            if shortest <= length <= longest:
                grams[tuple(pool[at : at + length])] = columns[number]
            number += 1
    for r, row in enumerate(rows):
        for gram, column in grams.items():
            for step in range(1, 2 if len(gram) == 1 else skips + 2):
                for start in range(len(row) - step * (len(gram) - 1)):
                    counts[r, column] += all(row[start + k * step] == item for k, item in enumerate(gram))
    if mode == "IDF":
        counts = np.minimum(counts, 1)
    if mode != "TF" and weights is not None:
        counts = counts * weights[: counts.shape[1]]
    return counts.reshape(*x.shape[:-1], counts.shape[1])


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_random(mode, is_static):
    rng = np.random.default_rng(43)
    for case in range(6):
        numbers = [int(n) for n in rng.integers(0, 7, 3)]
        lengths = [n * (i + 1) for i, n in enumerate(numbers)]
        pool = [int(n) for n in rng.integers(-2, 3, sum(lengths) or 1)]
        total = sum(numbers) or 1
        columns = [int(n) for n in rng.permutation(total)] if case % 2 else [int(n) for n in rng.integers(0, 5, total)]
        weights = [float(w) for w in rng.random(max(total, 5)).astype(np.float32)] if case % 3 else None
        longest = int(rng.integers(1, 4))
        shortest, skips = int(rng.integers(1, longest + 1)), int(rng.integers(0, 4))
        starts = [0, lengths[0], lengths[0] + lengths[1]]
        shape = [(12,), (3, 9), (2, 1), (0,), (1, 30)][case % 5]
        x = rng.integers(-2, 3, shape).astype([np.int32, np.int64][case % 2])
        attributes = {
            "pool_int64s": pool, "ngram_counts": starts, "ngram_indexes": columns, "mode": mode,
            "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips,
        }  # fmt: skip
        if weights:
            attributes["weights"] = weights
        node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
        [got] = run([node], {"x": np.asarray(x)}, ["y"], {"x": list(shape)} if is_static else None)
        want = expected(x, pool, starts, columns, weights and np.array(weights), mode, shortest, longest, skips)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.dtype == np.float32


@pytest.mark.parametrize("change", [{"ngram_indexes": [-1, 0]}, {"ngram_indexes": [0]}, {"ngram_counts": [0, 9]}, {"ngram_indexes": [2**40, 0]}])
def test_refusals(change):
    attributes = {
        "pool_int64s": [1, 2], "ngram_counts": [0], "ngram_indexes": [0, 1], "mode": "TF",
        "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
    } | change  # fmt: skip
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    with pytest.raises(Exception):
        run([node], {"x": np.array([1, 2])}, ["y"])
