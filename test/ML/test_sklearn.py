"""scikit-learn's estimators, as skl2onnx writes them, against scikit-learn itself.

Rounding: skl2onnx computes in f32 what scikit-learn often computes in f64. Probabilities are to be
the same within 1e-5; other results within 1e-5 of the largest of them, about a hundred roundings.
"""

import numpy as np
import onnxruntime
import pytest
import zoo
from comparing import BATCHES, compare, unzipped
from exporting import OPSETS, export, load, run
from skl2onnx import to_onnx
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType
from sklearn import feature_extraction, gaussian_process, linear_model, multioutput, neighbors

import sardonyx as sdx

# What skl2onnx does not write as scikit-learn computes it: onnxruntime gives what Sardonyx gives.
OTHERWISE_WRITTEN = {
    ("CalibratedIsotonic", "binary"): "calibration is not interpolated",
    ("CalibratedIsotonic", "several"): "calibration is not interpolated",
    ("KNeighborsByDistance", "binary"): "the neighbours' votes count alike",
    ("KNeighborsByDistance", "several"): "the neighbours' votes count alike",
    ("LinearDiscriminantAnalysis", "binary"): "the score of the first class is minus that of the second, not zero",
    ("SGDOfHuber", "several"): "the label is that of the largest probability, which several have",
    ("CountVectorizerOfPairs", "texts"): "pairs are counted otherwise where words of one letter are between",
    ("TfidfSublinear", "texts"): "log(1 + count), not 1 + log(count)",
    ("DecisionTreeOfGaps", "gaps_of_numbers"): "which way missing values go is lost",
}
# Whose labels come as a row.
ROW_OF_LABELS = {"QuadraticDiscriminantAnalysis"}


def query(x):
    """Rows that were learned from, and such that were not."""
    return np.concatenate([x[:30], x[30:60] * x.dtype.type(0.9)]) if x.dtype.kind == "f" else x[:60]


def fit(estimator, x, y):
    return estimator.fit(x) if y is None else estimator.fit(x, y)


def check(name, data, estimator, methods, tolerances, x, **options):
    model = export(estimator, x, **options)
    session = load(model)
    rows = query(x)
    if (name, data) in OTHERWISE_WRITTEN:
        other = onnxruntime.InferenceSession(model.SerializeToString())
        wants = [np.asarray(w) for w in unzipped(other.run(None, {"X": rows}), estimator)]
        assert not all(is_near(w.reshape(np.shape(m(rows))), dense(m(rows))) for w, m in zip(wants, methods))
    else:
        wants = [np.asarray(dense(method(rows))) for method in methods]

    def results(batch):
        label, *scores = unzipped(run(session, batch), estimator)
        return [label[0] if name in ROW_OF_LABELS else label, *scores]

    # StringNormalizer makes one empty string of none.
    compare(results, rows, wants, tolerances, BATCHES[1:] if rows.ndim == 1 else BATCHES)


def is_near(got, want):
    return np.allclose(got, want, atol=1e-3) if got.dtype.kind == "f" else got.tolist() == want.tolist()


def dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def scores_of(estimator):
    """How a classifier scores, and what is to be asked of the converter for that."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba, {}
    if not hasattr(estimator, "decision_function"):
        return None, {}
    return estimator.decision_function, {} if type(estimator).__name__ == "OneVsOneClassifier" else {"raw_scores": True}


def classify(name, estimator, data, zipmap):
    x, y = data()
    fit(estimator, x, y)
    scores, options = scores_of(estimator)
    if type(estimator).__name__ != "LinearSVC":
        options["zipmap"] = zipmap
    methods = [estimator.predict] + [scores] * (scores is not None)
    check(name, data.__name__, estimator, methods, [0, 1e-5], x, **options)


@pytest.mark.parametrize("data", [zoo.binary, zoo.several], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name, estimator", zoo.CLASSIFIERS, ids=lambda v: v if isinstance(v, str) else "")
def test_classifiers(name, estimator, data):
    classify(name, estimator, data, zipmap=data is zoo.binary)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("data", [zoo.binary, zoo.several], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", ["LogisticRegression", "RandomForest", "GaussianNB", "MLP", "Pipeline", "SVCWithProbabilities"])
def test_classifiers_with_and_without_maps(name, data, zipmap):
    classify(name, dict(zoo.CLASSIFIERS)[name], data, zipmap)


def test_a_result_for_each_class():
    x, y = zoo.several()
    estimator = fit(dict(zoo.CLASSIFIERS)["LogisticRegression"], x, y)
    session = load(export(estimator, x, zipmap="columns"))
    assert [o.name[1:] for o in session.get_outputs()[1:]] == ["ash", "beech", "cedar", "fir"]
    label, *columns = run(session, x)
    np.testing.assert_allclose(np.stack(columns, 1).reshape(len(x), -1), estimator.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("name, estimator, data", zoo.OTHER_CLASSIFIERS, ids=lambda v: v if isinstance(v, str) else "")
def test_other_classifiers(name, estimator, data):
    classify(name, estimator, data, zipmap=False)


@pytest.mark.parametrize("name, estimator, data", zoo.REGRESSORS, ids=lambda v: v if isinstance(v, str) else "")
def test_regressors(name, estimator, data):
    x, y = data()
    fit(estimator, x, y)
    check(name, data.__name__, estimator, [estimator.predict], [1e-5], x)


@pytest.mark.parametrize("name, estimator, data", zoo.TRANSFORMERS, ids=lambda v: v if isinstance(v, str) else "")
def test_transformers(name, estimator, data):
    x, y = data()
    fit(estimator, x, y)
    check(name, data.__name__, estimator, [estimator.transform], [1e-5], x)


@pytest.mark.parametrize("name, estimator", zoo.DETECTORS, ids=lambda v: v if isinstance(v, str) else "")
def test_detectors(name, estimator):
    x, _ = zoo.plain()
    fit(estimator, x, None)
    check(name, "plain", estimator, [estimator.predict, estimator.decision_function], [0, 1e-5], x)


@pytest.mark.parametrize("name, estimator", zoo.CLUSTERS, ids=lambda v: v if isinstance(v, str) else "")
def test_clusters(name, estimator):
    x, _ = zoo.plain()
    fit(estimator, x, None)
    check(name, "plain", estimator, [estimator.predict, estimator.transform], [0, 1e-5], x)


@pytest.mark.parametrize("name, estimator", zoo.MIXTURES, ids=lambda v: v if isinstance(v, str) else "")
def test_mixtures(name, estimator):
    x, _ = zoo.plain()
    fit(estimator, x, None)
    check(name, "plain", estimator, [estimator.predict, estimator.predict_proba], [0, 1e-5], x)


def test_maps_as_features():
    rows = [{"a": 1.0, "b": 2.0}, {"c": 3.5}, {"b": -1.0, "unknown": 4.0}, {}]
    estimator = feature_extraction.DictVectorizer(sparse=False).fit(rows[:2])
    kind = DictionaryType(StringTensorType([1]), FloatTensorType([1]))
    session = load(to_onnx(estimator, initial_types=[("X", kind)], target_opset=OPSETS))
    for row in rows:
        np.testing.assert_array_equal(run(session, row)[0], estimator.transform([row]))


def test_several_outputs():
    x, y = zoo.labels()
    estimator = fit(multioutput.MultiOutputClassifier(linear_model.LogisticRegression()), x, y)
    session = load(export(estimator, x, zipmap=False))
    for rows in (1, 7, 60):
        label, scores = run(session, x[:rows])
        np.testing.assert_array_equal(label, estimator.predict(x[:rows]))
        np.testing.assert_allclose(scores, estimator.predict_proba(x[:rows]), atol=1e-5)


def test_neighbors():
    x, _ = zoo.plain()
    estimator = fit(neighbors.NearestNeighbors(n_neighbors=3, radius=None), x, None)
    session = load(export(estimator, x))
    for rows in (1, 7, 60):
        distances, places = estimator.kneighbors(x[:rows] * np.float32(0.9))
        got = run(session, x[:rows] * np.float32(0.9))
        np.testing.assert_array_equal(got[0], places)
        np.testing.assert_allclose(got[1], distances, atol=1e-4)


# Operators of com.microsoft that there is no lowering for.
REFUSED = [
    (gaussian_process.GaussianProcessClassifier(), zoo.binary, "Solve of domain 'com.microsoft'"),
]


@pytest.mark.parametrize("estimator, data, operator", REFUSED, ids=lambda v: type(v).__name__)
def test_what_is_refused_by_name(estimator, data, operator):
    x, y = data()
    fit(estimator, x, y)
    with pytest.raises(sdx.NotImplemented, match=operator):
        load(export(estimator, x))


# What has no row above, and why.
LEFT_OUT = {
    "RadiusNeighborsClassifier": "ArrayFeatureExtractor gets indices of -1, which onnxruntime refuses, too",
    "RadiusNeighborsRegressor": "ArrayFeatureExtractor gets indices of -1, which onnxruntime refuses, too",
    "CastRegressor": "is skl2onnx's own",
    "CastTransformer": "is skl2onnx's own",
    "ReplaceTransformer": "is skl2onnx's own",
    "_ConstantPredictor": "is part of OneVsRestClassifier",
}


def test_all_that_skl2onnx_writes_is_here():
    rows = [*zoo.CLASSIFIERS, *zoo.OTHER_CLASSIFIERS, *zoo.REGRESSORS, *zoo.TRANSFORMERS, *zoo.DETECTORS, *zoo.CLUSTERS, *zoo.MIXTURES]
    here = {type(row[1]).__name__ for row in rows}
    here |= {type(row[0]).__name__ for row in REFUSED} | {"DictVectorizer", "MultiOutputClassifier", "NearestNeighbors"}
    there = {estimator.__name__ for estimator in sklearn_operator_name_map}
    assert sorted(there - here) == sorted(LEFT_OUT)
