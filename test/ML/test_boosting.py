"""Models of xgboost and lightgbm, as onnxmltools writes them, against the libraries themselves."""

import boosters
import numpy as np
import onnxmltools
import onnxruntime
import pytest
import xgboost
from comparing import compare, unzipped
from exporting import load, run
from onnxmltools.convert.common.data_types import FloatTensorType

# What onnxmltools does not write as the library computes it: onnxruntime gives what Sardonyx gives.
OTHERWISE_WRITTEN = {
    "xgboost-numbers-logistic": "the logistic function is left out",
    "lightgbm-classes-ova": "the classes' probabilities are made to sum up to one",
    "lightgbm-forest": "the trees are summed up, not averaged",
}


def learn(estimator, data, gaps):
    x, y = data(gaps)
    estimator.fit(x, y, **({"group": [10] * (len(x) // 10)} if data is boosters.grades else {}))
    return x


def ranker_as_regressor(ranker):
    """onnxmltools knows no ranker, whose trees are those of a regressor."""
    proxy = xgboost.XGBRegressor()
    proxy.load_model(ranker.get_booster().save_raw("json"))
    return proxy


def write(estimator, columns, **options):
    types = [("X", FloatTensorType([None, columns]))]
    if isinstance(estimator, xgboost.XGBModel):
        return onnxmltools.convert_xgboost(estimator, initial_types=types, target_opset=15)
    return onnxmltools.convert_lightgbm(estimator, initial_types=types, target_opset=15, **options)


def check(library, name, estimator, data, gaps, model):
    x, _ = data(gaps)
    new = x[50:100] if data is boosters.categories else x[50:100] * np.float32(0.9)
    rows = np.concatenate([x[:50], new])
    wants, tolerances = [estimator.predict(rows)], [0 if hasattr(estimator, "predict_proba") else 1e-5]
    if hasattr(estimator, "predict_proba"):
        wants.append(estimator.predict_proba(rows))
        tolerances.append(1e-5)
    if f"{library}-{name}" in OTHERWISE_WRITTEN:
        other = unzipped(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"X": rows}), estimator)
        others = [np.asarray(o).reshape(w.shape) for o, w in zip(other, wants)]
        assert not np.allclose(others[-1], wants[-1], atol=1e-3)
        wants = others
    session = load(model)
    compare(lambda batch: unzipped(run(session, batch), estimator), rows, wants, tolerances)


@pytest.mark.parametrize("gaps", [False, True], ids=["full", "gaps"])
@pytest.mark.parametrize("name, estimator, data", boosters.XGBOOST, ids=lambda v: v if isinstance(v, str) else "")
def test_xgboost(name, estimator, data, gaps):
    x = learn(estimator, data, gaps)
    written = ranker_as_regressor(estimator) if data is boosters.grades else estimator
    check("xgboost", name, estimator, data, gaps, write(written, x.shape[1]))


@pytest.mark.parametrize("gaps", [False, True], ids=["full", "gaps"])
@pytest.mark.parametrize("name, estimator, data", boosters.LIGHTGBM, ids=lambda v: v if isinstance(v, str) else "")
def test_lightgbm(name, estimator, data, gaps):
    x = learn(estimator, data, gaps)
    check("lightgbm", name, estimator, data, gaps, write(estimator, x.shape[1], zipmap=not gaps))


def test_what_onnxmltools_refuses():
    """If it learns to write these, they belong into the tables above."""
    x, y = boosters.classes(2)(False)
    dart = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, booster="dart").fit(x, y)
    with pytest.raises(KeyError):
        write(dart, x.shape[1])
    with pytest.raises(ValueError, match="No proper operator name"):
        ranks = xgboost.XGBRanker(n_estimators=3, n_jobs=1).fit(x, y, group=[len(x)])
        write(ranks, x.shape[1])
