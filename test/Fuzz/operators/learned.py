"""Operators of ai.onnx.ml that are no trees."""

import numpy as np

from references import Refused
from values import STRING

ML = "ai.onnx.ml"
NUMBERS = [np.dtype(t) for t in "float32 float32 float32 float64 int64 int32".split()]
TRANSFORMS = ["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
LABELS = ["a", "b", "é", "", "the", "c d", "0", "1"]


def wide(features):
    """Finite, also as a power, and of so many columns: onnxruntime reads what it wants of others."""
    return lambda x: finite(x) and x.shape[-1] == features and bool((np.abs(x.astype(float)) < 1e6).all())


def finite(x, *_):
    return x.dtype.kind not in "fV" or bool(np.isfinite(x).all())


def floats(g, count, low=-2.0, high=2.0):
    return [float(np.float32(v)) for v in g.rng.uniform(low, high, count)]


def rows(g, among=None, features=None, low=1):
    """A matrix or (low rank) one row of features."""
    shape = (g.size(), g.pick([1, 2, 3, 4, 5, 8, 17]) if features is None else features)
    if low == 1 and g.maybe(0.1):
        shape = shape[1:]
    return g.value(g.pick(among or NUMBERS), shape=shape, reuse=0.5)


def extract(g):
    x = g.value(g.pick([*NUMBERS, STRING]), low=1)
    if not x.shape[-1]:
        raise Refused("no feature")
    count = g.int(1, 6)
    at = g.rng.integers(0, x.shape[-1], g.pick([(count,), (1, count)]))
    g.emit("ArrayFeatureExtractor", [x, g.hold(at, 0.5, keep=True)], domain=ML)


def binarize(g):
    x = g.value(g.pick(NUMBERS), high=3)
    threshold = g.pick([None, 0.5, -1.0])
    # A probability of nearly 0 rounds to 0 in onnxruntime, which takes it from 1.
    g.emit("Binarizer", [x], threshold=threshold, domain=ML, valid=lambda x: x.dtype.kind == "i" or bool((np.abs(x - (threshold or 0)) > 1e-6).all()))


def category(g):
    count = g.int(1, 6)
    names = [str(n) for n in g.rng.permutation(LABELS)[:count]]
    numbers = [int(n) for n in g.rng.permutation(9)[:count]]
    if g.maybe():
        x = np.array([g.pick(LABELS) for _ in range(g.int(0, 6))], STRING)
    else:
        x = g.rng.integers(-1, 10, g.shape(high=2))
    default = {"default_int64": g.pick([None, 77]), "default_string": g.pick([None, "?"])}
    g.emit("CategoryMapper", [g.hold(x, 0.1, keep=True)], cats_strings=names, cats_int64s=numbers, domain=ML, **default)


KINDS = {"int64": np.int64, "float": np.float32, "string": STRING}


def label_of(g, kind, count):
    """Different ones."""
    if kind == "string":
        return [str(n) for n in g.rng.permutation(LABELS)[:count]]
    numbers = [int(n) for n in g.rng.permutation(12)[:count] - 3]
    return numbers if kind == "int64" else [n / 2 for n in numbers]


def labels(g):
    """LabelEncoder: from one type of label to another."""
    version = g.opsets[ML]
    count = g.int(1, 8)
    if version == 1:
        names = label_of(g, "string", count)
        x = np.array([g.pick(LABELS) for _ in range(5)], STRING) if g.maybe() else g.rng.integers(-1, 9, (5,))
        x = g.hold(x, 0.1, keep=True)
        return g.emit("LabelEncoder", [x], classes_strings=names, default_int64=g.pick([None, 9]), default_string=g.pick([None, "?"]), domain=ML)
    pairs = [("string", "int64"), ("int64", "string"), ("float", "string"), ("string", "float"), ("int64", "float"), ("float", "int64"), ("string", "string"), ("int64", "int64"), ("float", "float")]  # fmt: skip
    source, target = g.pick(pairs)
    keys, values = label_of(g, source, count), label_of(g, target, 8)
    values = [g.pick(values) for _ in keys]
    pool = label_of(g, source, 8) + keys + ([float("nan")] if source == "float" else [])
    shape = g.shape(high=2)
    x = np.array([g.pick(pool) for _ in range(int(np.prod(shape)))], KINDS[source]).reshape(shape)
    if source == "float" and g.maybe(0.2):
        keys[0] = float("nan") if version >= 4 else keys[0]
    x = g.hold(x, 0.1, keep=True)
    default = {f"default_{target}": g.pick([None, {"int64": 5, "float": 0.25, "string": "none"}[target]])}
    g.emit("LabelEncoder", [x], domain=ML, **{f"keys_{source}s": keys, f"values_{target}s": values}, **default)


def one_hot(g):
    zeros = g.pick([None, 1, 1, 0])
    if g.maybe():
        cats, shape = label_of(g, "string", g.int(1, 6)), g.shape(high=2)
        pool = LABELS if zeros != 0 else cats
        x = np.array([g.pick(pool) for _ in range(int(np.prod(shape)))], STRING).reshape(shape)
        return g.emit("OneHotEncoder", [g.hold(x, 0.1, keep=True)], cats_strings=cats, zeros=zeros, domain=ML)
    cats, shape = label_of(g, "int64", g.int(1, 6)), g.shape(high=2)
    x = np.array([g.pick(cats if zeros == 0 else [-9, *cats]) for _ in range(int(np.prod(shape)))]).reshape(shape)
    x = g.hold(x.astype(g.pick([np.int64, np.int64, np.int32, np.float32, np.float64])), 0.1, keep=True)
    g.emit("OneHotEncoder", [x], cats_int64s=cats, zeros=zeros, domain=ML)


def vectorize(g):
    count = g.size()
    inputs = [g.value(g.pick(NUMBERS), shape=(count, g.int(1, 5))) for _ in range(g.int(1, 4))]
    inputs = [v if v.dtype == inputs[0].dtype else g.new(inputs[0].dtype, v.shape) for v in inputs]
    g.emit("FeatureVectorizer", inputs, inputdimensions=[v.shape[-1] for v in inputs], domain=ML)


def impute(g):
    x = rows(g, [np.dtype(t) for t in (np.float32, np.float64, np.int64, np.int32)], low=2)
    features = x.shape[-1]
    count = features if g.maybe() else 1

    def suits(x):
        return count in (1, x.shape[-1])

    if x.dtype.kind == "f":
        value = g.pick([float("nan"), 0.0, -1.0])
        array = x.array.copy()
        array[g.rng.random(array.shape) < 0.3] = value
        g.emit("Imputer", [g.hold(array, 0.1)], imputed_value_floats=floats(g, count), replaced_value_float=value if g.maybe(0.8) else None, domain=ML, valid=suits)
    else:
        g.emit("Imputer", [x], imputed_value_int64s=[g.int(-5, 5) for _ in range(count)], replaced_value_int64=g.pick([None, 1, -1]), domain=ML, valid=suits)


def scale(g):
    x = rows(g)
    counts = [g.pick([1, x.shape[-1]])] * 2
    g.emit("Scaler", [x], offset=floats(g, counts[0]), scale=floats(g, counts[1]), domain=ML)


def normalise(g):
    """onnxruntime divides by the largest number, whatever its sign, and squares integers as such."""
    norm = g.pick(["MAX", "L1", "L2", None])

    def valid(x):
        return finite(x) and (norm in ("L1", "L2") or bool((x >= 0).all())) and bool((np.abs(x.astype(float)) < 1000).all())

    g.emit("Normalizer", [rows(g)], norm=norm, domain=ML, valid=valid)


def regress(g):
    targets, features = g.pick([1, 1, 2, 5]), g.pick([1, 2, 5, 17])
    x = rows(g, features=features, low=2)
    transforms = ["NONE", "NONE", *TRANSFORMS[:4]] if targets > 1 else ["NONE"]  # of one onnxruntime makes nothing
    g.emit("LinearRegressor", [x], coefficients=floats(g, targets * features), intercepts=g.pick([None, floats(g, targets)]),
           targets=targets if targets > 1 or g.maybe() else None, post_transform=g.pick(transforms), domain=ML, valid=wide(features))  # fmt: skip


def classes(g, count):
    if g.maybe():
        return {"classlabels_ints": [int(n) for n in g.rng.permutation(12)[:count] - 3]}
    return {"classlabels_strings": [str(n) for n in g.rng.permutation(LABELS)[:count]]}


def classify(g):
    count, features = g.pick([2, 2, 3, 5]), g.pick([1, 2, 5, 17])
    rows_of = count if count > 2 or g.maybe(0.4) else 1
    x = rows(g, features=features, low=2)
    labels = classes(g, count)
    # Of one score for two classes references make this and that.
    transforms = TRANSFORMS[:5] if rows_of > 1 else ["LOGISTIC"]
    g.emit("LinearClassifier", [x], outputs=2, coefficients=floats(g, rows_of * features), intercepts=floats(g, rows_of) if g.maybe(0.8) else None,
           multi_class=g.int(0, 1), post_transform=g.pick(transforms), domain=ML, valid=wide(features), **labels)  # fmt: skip


def kernel(g):
    kind = g.pick(["LINEAR", "POLY", "RBF", "SIGMOID"])
    return {"kernel_type": kind, "kernel_params": [*floats(g, 2, 0.05, 0.5), float(g.int(1, 3))]}


def svm_regress(g):
    features = g.pick([1, 2, 5, 17])
    x = rows(g, [np.dtype(np.float32)], features=features, low=2)
    count = g.int(1, 9)
    if g.maybe(0.3):  # a linear model
        return g.emit("SVMRegressor", [x], coefficients=floats(g, features), rho=floats(g, 1), n_supports=0, kernel_type="LINEAR",
                      kernel_params=floats(g, 3), post_transform="NONE", domain=ML, valid=wide(features))  # fmt: skip
    g.emit("SVMRegressor", [x], coefficients=floats(g, count), support_vectors=floats(g, count * features), rho=floats(g, 1), n_supports=count,
           one_class=g.pick([None, 0, 1]), post_transform="NONE", domain=ML, valid=wide(features), **kernel(g))  # fmt: skip


def svm_classify(g):
    features, count = g.pick([1, 2, 5]), g.pick([2, 2, 3, 4])
    x = rows(g, [np.dtype(t) for t in (np.float32, np.float32, np.float64, np.int64)], features=features, low=2)
    per = [g.int(1, 4) for _ in range(count)]
    total, pairs = sum(per), count * (count - 1) // 2
    prob = {}
    if g.maybe(0.4):
        prob = {"prob_a": floats(g, pairs, -2, -0.5), "prob_b": floats(g, pairs, -0.5, 0.5)}
    g.emit("SVMClassifier", [x], outputs=2, coefficients=floats(g, (count - 1) * total), support_vectors=floats(g, total * features),
           vectors_per_class=per, rho=floats(g, pairs), post_transform=g.pick(TRANSFORMS[:5] if count > 2 else ["NONE"]), domain=ML, valid=wide(features), **prob, **kernel(g), **classes(g, count))  # fmt: skip


OPERATORS = [extract, binarize, category, category, labels, labels, labels, one_hot, one_hot, vectorize, impute, impute, scale, normalise,
             regress, classify, classify, classify, svm_regress, svm_classify, svm_classify]  # fmt: skip
