"""Strings: what is computed of their text, and what moves them as it moves numbers."""

import numpy as np
from onnx import TensorProto

from references import Refused
from values import STRING

from . import elementwise, movement, selection, shapes

PATTERNS = ["", "a", "a.*", ".*", "[a-z]+", "[A-Za-z0-9 ]*", r"\d+(\.\d+)?", r"www\.[\w.-]+\.\w+", "(a|b)+", r"(\w+)@\w+\.\w+", "x{40}",
            r"\s*a\s*", "[^,]*", "☃.*", "[é-ü]", ".", "..", r"-?\d+"]  # fmt: skip
NUMBERS = ["0", "1", "-3", "1.5", "1e3", "-2.5E-2", "+7", "100", "0.1", "NaN", "inf", "-inf", "INF", "1e-50", "3.4028235e38", "127"]
MOVERS = [movement, shapes, selection]


def text(g, rank=None, low=0, high=3, **limits):
    return g.value(STRING, rank, low, high, reuse=0.5, **limits)


def concat(g):
    a = text(g)
    b = g.new(STRING, g.broadcast(a.shape))
    g.emit("StringConcat", [a, b] if g.maybe() else [b, a])


def split(g):
    x = text(g)
    delimiter = g.pick([None, None, "", ",", " ", "a", "b,", "aa", "☃"])
    # Of an empty text and a delimiter Python makes one empty part, onnxruntime none, to which only a blank is white.
    g.emit("StringSplit", [x], outputs=2, delimiter=delimiter, maxsplit=g.pick([None, None, 0, 1, 2, 7]),
           valid=lambda x: all(x.reshape(-1)) if delimiter else not any(set(text) & set("\t\n") for text in x.reshape(-1)))  # fmt: skip


def normalise(g):
    shape = g.pick([(g.size(),), (1, g.size())])
    pool = ["a", "A", "the", "The", "b,c", "ab", "aB", "1.5", "long" * 20]
    x = g.hold(np.array([g.pick(pool) for _ in range(int(np.prod(shape)))], STRING).reshape(shape), keep=True)
    words = [g.pick(["a", "A", "the", "É", "é", "ab"]) for _ in range(g.int(0, 3))]
    # Other locales are the system's to have.
    # onnx.reference looks at the case in any case where it changes none, and onnxruntime wants a locale.
    sensitive = g.pick([None, 0, 1])
    g.emit("StringNormalizer", [x], case_change_action=g.pick(["LOWER", "UPPER"] if words and not sensitive else [None, "NONE", "LOWER", "UPPER"]),
           is_case_sensitive=sensitive, stopwords=words or None, locale=g.pick([None, "en_US"]))  # fmt: skip


def full_match(g):
    g.emit("RegexFullMatch", [text(g)], pattern=g.pick(PATTERNS))


def of_numbers(g):
    x = g.value(high=3)
    g.emit("Cast", [x], to=TensorProto.STRING, valid=lambda x: x.dtype.kind in "iub")


def to_numbers(g):
    to = g.pick([TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8,
                 TensorProto.INT16, TensorProto.UINT64, TensorProto.UINT32, TensorProto.FLOAT16])  # fmt: skip
    floats = to in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
    numbers = [n for n in NUMBERS if floats or n.isdigit()]
    shape = g.shape(high=3)
    array = np.array([g.pick(numbers) for _ in range(int(np.prod(shape)))], STRING).reshape(shape)
    x = g.hold(array, 0.2, keep=True)
    if to == TensorProto.FLOAT16:
        return g.emit("Cast", [x], to=to, valid=lambda x: all(abs(float(t)) < 6e4 and not 0 < abs(float(t)) < 1e-4 for t in x.reshape(-1)))
    g.emit("Cast", [x], to=to)


def and_back(g):
    x = g.value(g.pick([np.int64, np.int32, np.uint8, np.int8, np.uint64]), high=3)
    (y,) = g.emit("Cast", [x], to=TensorProto.STRING)
    g.emit("Cast", [y], to=TensorProto.INT64, valid=lambda y: all(abs(int(t)) < 2**62 for t in y.reshape(-1)))


def equal(g):
    a = text(g)
    g.emit("Equal", [a, g.new(STRING, g.broadcast(a.shape))])


def unique(g):
    x = text(g, low=1)
    axis = g.pick([None, g.int(-x.rank, x.rank - 1)])
    g.emit("Unique", [x], outputs=[True] + [g.maybe() for _ in range(3)], axis=axis, sorted=g.pick([None, 0, 1]))


def moved(g):
    """An operator that moves numbers, on strings."""
    g.only = STRING
    try:
        g.pick([*g.pick(MOVERS).OPERATORS, elementwise.where])(g)
    finally:
        g.only = None


def words(g):
    """TfIdfVectorizer, of strings or integers."""
    of_text = g.maybe(0.6)
    longest, skip = g.int(1, 3), g.int(0, 3)
    shortest = g.int(1, longest)
    pool, counts, indexes = [], [], []
    vocabulary = ["a", "b", "", "é", "the", "c d"] if of_text else [0, 1, 2, 3, 5, 2**40]
    for length in range(1, longest + 1):
        counts.append(len(pool))
        grams = {tuple(g.pick(vocabulary) for _ in range(length)) for _ in range(g.int(0 if length < longest else 1, 4))}
        for gram in sorted(grams):
            pool += gram
            indexes.append(len(indexes))
    if not indexes:
        raise Refused("no words")
    indexes = [int(i) for i in g.rng.permutation(len(indexes))] if g.maybe() else indexes
    weights = [float(np.float32(g.rng.uniform(0.1, 2))) for _ in indexes] if g.maybe() else None
    shape = g.pick([(g.size(),), (g.int(1, 4), g.size())])
    array = np.empty(shape, STRING if of_text else g.pick([np.int64, np.int32]))
    for at in np.ndindex(*shape):
        value = g.pick(vocabulary)
        array[at] = value if of_text else min(value, 7)
    x = g.hold(array, 0.1, keep=True)
    pools = {"pool_strings": pool} if of_text else {"pool_int64s": pool}
    g.emit("TfIdfVectorizer", [x], max_gram_length=longest, min_gram_length=shortest, max_skip_count=skip, mode=g.pick(["TF", "IDF", "TFIDF"]),
           ngram_counts=counts, ngram_indexes=indexes, weights=weights, **pools)  # fmt: skip


OPERATORS = [concat, concat, split, split, normalise, full_match, of_numbers, to_numbers, and_back, equal, unique,
             moved, moved, moved, moved, words, words]  # fmt: skip
