"""Maps of ai.onnx.ml."""

import numpy as np

from references import Refused
from values import STRING, Map

from .learned import LABELS, ML, label_of

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
NUMBERS = ["0", "1", "-3", "1.5", "12", "2.25"]


def keys_of(g, kind, count):
    return label_of(g, kind, min(count, len(LABELS)))


def some(g, kind, dtype, keys):
    """A map of some of these keys, and now and then of others."""
    keys = [k for k in keys if g.maybe(0.7)] or list(keys[:1])
    if g.maybe(0.3):
        keys += [k for k in (["new", "~"] if kind == "string" else [10**6, -(10**12)])]
    keys = [keys[int(i)] for i in g.rng.permutation(len(keys))]
    return g.hold(Map(keys, g.data(dtype, (len(keys),))), 0)


def zip_map(g):
    kind, count = g.pick(["int64", "string"]), g.int(1, 8)
    keys = keys_of(g, kind, count)
    rows = () if g.maybe(0.15) else (g.size(),)
    x = g.value(F32, shape=(*rows, len(keys)), reuse=0.5)
    # Of rows as long as the labels only.
    g.emit("ZipMap", [x], domain=ML, valid=lambda x: x.shape[-1] == len(keys),
           **{"classlabels_strings" if kind == "string" else "classlabels_int64s": keys})  # fmt: skip


def vectorize(g):
    kind = g.pick(["int64", "string"])
    dtype = g.pick([F32, np.dtype(np.float64), I64, STRING])
    if (kind, dtype) in (("int64", I64), ("string", STRING)):
        raise Refused("not in the schema")
    keys = keys_of(g, kind, g.int(1, 8))
    vocabulary = [keys[int(i)] for i in g.rng.permutation(len(keys))]
    g.emit("DictVectorizer", [some(g, kind, dtype, keys)], domain=ML,
           **{"string_vocabulary" if kind == "string" else "int64_vocabulary": vocabulary})  # fmt: skip


def cast(g):
    dtype, to = g.pick([F32, F32, STRING]), g.pick(["TO_FLOAT", "TO_STRING", "TO_INT64", None])
    sparse = g.maybe()
    most = g.int(1, 9)
    keys = [int(k) for k in g.rng.permutation(most)[: g.int(1, most)]] if sparse else keys_of(g, "int64", g.int(1, 8))
    if dtype == STRING:
        numbers = NUMBERS[:3] if to == "TO_INT64" else NUMBERS
        x = Map(keys, np.array([g.pick(numbers) for _ in keys], STRING))
    else:
        x = Map(keys, g.data(F32, (len(keys),), low=-100.0, high=100.0))
    # Texts of other numbers are written as the machine's C++ library does, and some maps hold no numbers.
    g.emit("CastMap", [g.hold(x, 0, keep=dtype == STRING)], domain=ML, cast_to=to, map_form=g.pick(["SPARSE"] if sparse else ["DENSE", None]),
           max_map=most if sparse else None, valid=lambda m: m.dtype == STRING or bool(np.isfinite(m.array).all()))  # fmt: skip


OPERATORS = [zip_map, zip_map, vectorize, vectorize, cast, cast]
