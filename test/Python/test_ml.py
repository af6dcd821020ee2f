"""Operators of ai.onnx.ml that are no trees, against numpy and dicts of Python."""

from statistics import NormalDist

import numpy as np
import onnxruntime
import pytest
from graphs import make, run
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx

KINDS = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.int64: TensorProto.INT64, np.int32: TensorProto.INT32, np.int16: TensorProto.INT16, str: TensorProto.STRING}


def proto(op, inputs, outputs, **attributes):
    """`inputs`: (type, shape) each; `outputs`: (type, rank) each."""
    names = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, *names, name="node", domain="ai.onnx.ml", **attributes)
    ins = [helper.make_tensor_value_info(n, KINDS[t], s) for n, (t, s) in zip(names[0], inputs)]
    outs = [helper.make_tensor_value_info(n, KINDS[t], None) for n, (t, _) in zip(names[1], outputs)]
    graph = helper.make_graph([node], "g", ins, outs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def load(op, inputs, outputs, **attributes):
    return make(proto(op, inputs, outputs, **attributes))


def ort(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})


def matrix(seed, rows, columns, dtype=np.float32):
    return (np.random.default_rng(seed).standard_normal((rows, columns)) * 3).astype(dtype)


#
# LabelEncoder, CategoryMapper, OneHotEncoder
#

STRINGS = np.array(["cat", "", "dog", "bird", "a ☃", "cat"], dtype=object)


@pytest.mark.parametrize("values, kind, default", [([3, -1, 7], "int64s", -5), ([0.5, 1.5, -2.0], "floats", 9.5), (["x", "", "z"], "strings", "none")])
def test_labels_of_strings(values, kind, default):
    to = {"int64s": np.int64, "floats": np.float32, "strings": str}[kind]
    session = load("LabelEncoder", [(str, ["n"])], [(to, 1)], keys_strings=["dog", "", "fish"],
                   **{f"values_{kind}": values, f"default_{kind[:-1]}": default})  # fmt: skip
    want = dict(zip(["dog", "", "fish"], values))
    assert run(session, STRINGS)[0].tolist() == [want.get(text, default) for text in STRINGS]
    assert run(session, np.array(["fish" * 3] * 2, dtype=object))[0].tolist() == [default] * 2


@pytest.mark.parametrize("dtype, kind", [(np.int64, "int64s"), (np.float32, "floats")])
@pytest.mark.parametrize("count", [1, 2, 5, 16, 33])
def test_labels_of_numbers(dtype, kind, count):
    rng = np.random.default_rng(count)
    keys = rng.permutation(np.arange(-count, count))[:count].astype(dtype).tolist()
    if kind == "floats" and count > 2:
        keys[1] = float("nan")
    values = [f"v{i}" for i in range(count)]
    session = load("LabelEncoder", [(dtype, ["n", "m"])], [(str, 2)], default_string="?", values_strings=values, **{f"keys_{kind}": keys})
    x = np.arange(-count - 2, count + 2).astype(dtype).reshape(2, -1)
    if kind == "floats":
        x[0, 0] = np.nan
    want = dict(zip(keys, values))
    nan = [v for k, v in want.items() if k != k]
    assert run(session, x)[0].tolist() == [[nan[0] if v != v and nan else want.get(v, "?") for v in row] for row in x.tolist()]


def test_labels_in_tensors():
    keys, values = np.array([5, 2, 9], np.int64), np.array([0.25, 1e300, -1], np.float64)
    session = load("LabelEncoder", [(np.int64, ["n"])], [(np.float64, 1)],
                   **{"keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values),
                      "default_tensor": numpy_helper.from_array(np.array([np.nan]))})  # fmt: skip
    np.testing.assert_array_equal(run(session, np.array([2, 3, 9, 5]))[0], [1e300, np.nan, -1, 0.25])


def test_defaults_that_do_not_fit_are_refused():
    tables = {"keys_tensor": numpy_helper.from_array(np.array([1, 2])), "values_tensor": numpy_helper.from_array(np.array([5, -6], np.int16))}
    small = load("LabelEncoder", [(np.int64, ["n"])], [(np.int16, 1)], **tables)
    assert run(small, np.array([2, 7, 1]))[0].tolist() == [-6, -1, 5]
    with pytest.raises(sdx.NotImplemented, match="too large for its type"):
        load("LabelEncoder", [(np.int64, [3])], [(np.int16, 1)], default_int64=100000, **tables)


def test_categories():
    cats = {"cats_strings": ["cat", "dog", ""], "cats_int64s": [10, 20, 30]}
    there = load("CategoryMapper", [(str, ["n"])], [(np.int64, 1)], default_int64=-9, **cats)
    assert run(there, STRINGS)[0].tolist() == [10, 30, 20, -9, -9, 10]
    back = load("CategoryMapper", [(np.int64, ["n"])], [(str, 1)], default_string="what", **cats)
    assert run(back, np.array([20, 21, 30]))[0].tolist() == ["dog", "what", ""]


def test_one_hot():
    words = load("OneHotEncoder", [(str, ["n", "m"])], [(np.float32, 3)], cats_strings=["dog", "cat"])
    x = STRINGS.reshape(2, 3)
    np.testing.assert_array_equal(run(words, x)[0], np.stack([x == "dog", x == "cat"], -1).astype(np.float32))
    numbers = load("OneHotEncoder", [(np.float32, ["n"])], [(np.float32, 2)], cats_int64s=[3, 1])
    np.testing.assert_array_equal(run(numbers, np.float32([1, 1.5, 3]))[0], [[0, 1], [0, 0], [1, 0]])
    strict = load("OneHotEncoder", [(np.int64, ["n"])], [(np.float32, 2)], cats_int64s=[3, 1], zeros=0)
    assert run(strict, np.array([1, 3]))[0].tolist() == [[0, 1], [1, 0]]
    with pytest.raises(sdx.Fail, match="OneHotEncoder.: an input is none of the categories"):
        run(strict, np.array([1, 2]))


#
# Features
#


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("count", [1, 3])
def test_scaler(dtype, count):
    offset, scale = [1.5, -2.0, 0.0][:count], [2.0, 0.5, 3.0][:count]
    session = load("Scaler", [(dtype, ["n", "m"])], [(np.float32, 2)], offset=offset, scale=scale)
    for rows in (0, 1, 5):
        x = matrix(rows, rows, 3, dtype)
        np.testing.assert_allclose(run(session, x)[0], (x.astype(np.float32) - np.float32(offset)) * np.float32(scale), rtol=1e-6)
    if count > 1:
        with pytest.raises(sdx.Fail, match="is not as long as there are features"):
            run(session, matrix(1, 2, 4, dtype))


@pytest.mark.parametrize("norm, size", [("MAX", lambda x: np.abs(x).max(1)), ("L1", lambda x: np.abs(x).sum(1)), ("L2", lambda x: np.sqrt((x * x).sum(1)))])
def test_normalizer(norm, size):
    session = load("Normalizer", [(np.float32, ["n", "m"])], [(np.float32, 2)], norm=norm)
    x = matrix(1, 6, 5)
    x[2] = 0
    want = x / np.where(size(x) == 0, 1, size(x))[:, None]
    np.testing.assert_allclose(run(session, x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_binarizer(dtype):
    session = load("Binarizer", [(dtype, ["n", "m"])], [(dtype, 2)], threshold=0.5)
    x = matrix(2, 4, 5, dtype)
    got = run(session, x)[0]
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x > 0.5)


def test_imputer():
    x = matrix(3, 5, 3)
    x[::2, 1] = np.nan
    x[1, 0] = 7
    missing = load("Imputer", [(np.float32, ["n", 3])], [(np.float32, 2)], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    np.testing.assert_array_equal(run(missing, x)[0], np.where(np.isnan(x), np.float32([1, 2, 3]), x))
    seven = load("Imputer", [(np.float32, ["n", 3])], [(np.float32, 2)], imputed_value_floats=[-1.0], replaced_value_float=7.0)
    np.testing.assert_array_equal(run(seven, x)[0], np.where(x == 7, np.float32(-1), x))
    whole = load("Imputer", [(np.int64, ["n", 2])], [(np.int64, 2)], imputed_value_int64s=[5, 6], replaced_value_int64=0)
    assert run(whole, np.array([[0, 1], [2, 0]]))[0].tolist() == [[5, 1], [2, 6]]


@pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 3, 7)])
def test_feature_extractor(shape):
    session = load("ArrayFeatureExtractor", [(np.float32, [f"d{i}" for i in range(len(shape))]), (np.int64, [1, "k"])], [(np.float32, 2)])
    x = matrix(4, int(np.prod(shape[:-1])), 7).reshape(shape)
    at = np.array([[6, 0, 3, 3]])
    want = x[..., at[0]]
    np.testing.assert_array_equal(run(session, x, at)[0], want[None] if x.ndim == 1 else want)
    with pytest.raises(sdx.Fail, match="index 7 lies outside of 7 features"):
        run(session, x, np.array([[7]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_vectorizer_cuts_and_fills(dtype):
    inputs = [(dtype, ["n", 3]), (dtype, ["n"]), (dtype, ["n", "m"])]
    session = load("FeatureVectorizer", inputs, [(np.float32, 2)], inputdimensions=[2, 1, 4])
    a, b, c = matrix(5, 3, 3, dtype), matrix(7, 3, 1, dtype)[:, 0], matrix(6, 3, 2, dtype)
    want = np.concatenate([a[:, :2], b[:, None], c, np.zeros((3, 2))], 1)
    np.testing.assert_allclose(run(session, a, b, c)[0], want.astype(np.float32))


#
# Linear models
#


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets):
    weights, bias = matrix(7, targets, 4), matrix(8, 1, targets)[0]
    session = load("LinearRegressor", [(np.float32, ["n", "m"])], [(np.float32, 2)], coefficients=weights.ravel().tolist(), intercepts=bias.tolist(), targets=targets)
    for rows in (0, 1, 9):
        x = matrix(rows, rows, 4)
        np.testing.assert_allclose(run(session, x)[0], x @ weights.T + bias, rtol=1e-4, atol=1e-4)
    with pytest.raises(sdx.Fail, match="not as many coefficients as features"):
        run(session, matrix(1, 2, 5))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


TRANSFORMS = {"NONE": lambda x: x, "SOFTMAX": softmax, "LOGISTIC": lambda x: 1 / (1 + np.exp(-x))}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[4, 2, 9], ["b", "a", "c"]])
def test_linear_classifier(transform, labels):
    weights, bias = matrix(9, 3, 4), matrix(10, 1, 3)[0]
    kind = "strings" if isinstance(labels[0], str) else "ints"
    session = load("LinearClassifier", [(np.float32, ["n", 4])], [(type(labels[0]) if kind == "strings" else np.int64, 1), (np.float32, 2)],
                   coefficients=weights.ravel().tolist(), intercepts=bias.tolist(), post_transform=transform, **{f"classlabels_{kind}": labels})  # fmt: skip
    x = matrix(11, 8, 4)
    scores = x @ weights.T + bias
    y, z = run(session, x)
    assert y.tolist() == [labels[k] for k in scores.argmax(1)]
    np.testing.assert_allclose(z, TRANSFORMS[transform](scores), rtol=1e-4, atol=1e-5)


def test_two_classes_of_one_row():
    weights = matrix(12, 1, 4)
    session = load("LinearClassifier", [(np.float32, ["n", 4])], [(np.int64, 1), (np.float32, 2)],
                   coefficients=weights[0].tolist(), intercepts=[0.5], classlabels_ints=[3, 8], post_transform="LOGISTIC")  # fmt: skip
    x = matrix(13, 8, 4)
    s = x @ weights[0] + 0.5
    y, z = run(session, x)
    assert y.tolist() == np.where(s > 0, 8, 3).tolist()
    np.testing.assert_allclose(z, TRANSFORMS["LOGISTIC"](np.stack([-s, s], 1)), rtol=1e-4, atol=1e-6)


def test_one_row_of_open_width_without_intercepts():
    weights = matrix(14, 1, 4)
    session = load("LinearClassifier", [(np.float32, ["n", "m"])], [(np.int64, 1), (np.float32, 2)],
                   coefficients=weights[0].tolist(), classlabels_ints=[3, 8])  # fmt: skip
    x = matrix(15, 8, 4)
    s = x @ weights[0]
    y, z = run(session, x)
    assert y.tolist() == np.where(s > 0, 8, 3).tolist()
    np.testing.assert_allclose(z, np.stack([-s, s], 1), rtol=1e-4, atol=1e-5)


#
# What becomes of scores
#


def identity(op, transform, columns):
    """A linear model whose scores are its inputs."""
    labels = {"classlabels_ints": list(range(columns))} if op == "LinearClassifier" else {"targets": columns}
    outputs = [(np.int64, 1), (np.float32, 2)] if op == "LinearClassifier" else [(np.float32, 2)]
    return proto(op, [(np.float32, ["n", columns])], outputs, coefficients=np.eye(columns).ravel().tolist(), intercepts=[0.0] * columns, post_transform=transform, **labels)


@pytest.mark.parametrize("op", ["LinearClassifier", "LinearRegressor"])
def test_probit_is_the_quantile_of_the_normal_distribution(op):
    model = identity(op, "PROBIT", 3)
    x = np.linspace(0.001, 0.999, 300, dtype=np.float32).reshape(100, 3)
    got = run(make(model), x)[-1]
    exact = np.array([[NormalDist().inv_cdf(float(v)) for v in row] for row in x])
    np.testing.assert_allclose(got, exact, atol=6e-3)  # the error of the approximation
    y = x.astype(np.float64) * 2 - 1
    log = np.log((1 - y) * (1 + y))
    half, tail = 2 / (3.14159 * 0.147) + log / 2, log / 0.147
    np.testing.assert_allclose(got, np.sign(y) * np.sqrt(2 * (np.sqrt(half**2 - tail) - half)), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(got, ort(model, x)[-1], rtol=1e-5, atol=3e-4)  # onnxruntime loses digits around 0.5
    assert run(make(model), np.float32([[0, 1, 2]]))[-1].tolist()[0][:2] == [-np.inf, np.inf]


@pytest.mark.parametrize("op", ["LinearClassifier", "LinearRegressor"])
def test_softmax_zero_leaves_zeros_out(op):
    model = identity(op, "SOFTMAX_ZERO", 4)
    x = np.round(matrix(16, 40, 4)) * np.float32(0.7)
    x[np.all(x == 0, 1)] = 1
    assert (x == 0).any() and (x != 0).all(1).any()
    weights = np.where(x == 0, 0, np.exp(x.astype(np.float64)))
    got = run(make(model), x)[-1]
    np.testing.assert_allclose(got, weights / weights.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(got, ort(model, x)[-1], rtol=1e-5, atol=1e-7)
    # A row of nothing but zeros has nothing that its weights could sum up to.
    assert run(make(model), np.zeros((1, 4), np.float32))[-1].tolist() == [[0, 0, 0, 0]]
