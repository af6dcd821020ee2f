"""Models of xgboost and lightgbm, and the data that they learn from."""

import lightgbm
import numpy as np
import xgboost

ROWS, COLUMNS = 300, 5


def features(gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    if gaps:
        x[rng.random(x.shape) < 0.15] = np.nan
    return x


def filled(x):
    return np.nan_to_num(x, nan=0.3)


def classes(count):
    def make(gaps):
        x = features(gaps)
        score = filled(x)[:, 0] * 2 + filled(x)[:, 1] ** 2 - filled(x)[:, 2]
        return x, np.digitize(score, np.quantile(score, np.arange(1, count) / count))

    return make


def numbers(gaps):
    x = features(gaps)
    return x, (filled(x)[:, 0] * 3 + np.sin(filled(x)[:, 1] * 3) + 7).astype(np.float32)


def counts(gaps):
    x, y = numbers(gaps)
    return x, np.floor(np.abs(y)).astype(np.float32)


def positive_counts(gaps):
    x, y = counts(gaps)
    return x, y + 1


def grades(gaps):
    """Lists of ten to be ranked."""
    x, y = classes(3)(gaps)
    return x, y


def categories(gaps):
    """The last two columns are the numbers of categories; `gaps` leaves out some."""
    rng = np.random.default_rng(1)
    x = features()
    x[:, 3], x[:, 4] = rng.integers(0, 12, ROWS), rng.integers(0, 40, ROWS)
    y = np.sin(x[:, 3] * 5) * 3 + np.cos(x[:, 4] * 7) + x[:, 0]
    if gaps:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x, y.astype(np.float32)


_x = dict(n_estimators=12, max_depth=4, n_jobs=1)
_kinds = ["q"] * 3 + ["c"] * 2
_l = dict(n_estimators=12, num_leaves=9, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True)

XGBOOST = [
    ("binary", xgboost.XGBClassifier(**_x), classes(2)),
    ("binary-base-score", xgboost.XGBClassifier(base_score=0.2, **_x), classes(2)),
    ("classes-3", xgboost.XGBClassifier(**_x), classes(3)),
    ("classes-40", xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1), classes(40)),
    ("forest", xgboost.XGBRFClassifier(**_x), classes(2)),
    ("numbers", xgboost.XGBRegressor(**_x), numbers),
    ("numbers-base-score", xgboost.XGBRegressor(base_score=-3.25, **_x), numbers),
    ("numbers-poisson", xgboost.XGBRegressor(objective="count:poisson", **_x), counts),
    ("numbers-gamma", xgboost.XGBRegressor(objective="reg:gamma", **_x), positive_counts),
    ("numbers-absolute", xgboost.XGBRegressor(objective="reg:absoluteerror", **_x), numbers),
    ("numbers-logistic", xgboost.XGBRegressor(objective="reg:logistic", **_x), classes(2)),
    ("forest-of-numbers", xgboost.XGBRFRegressor(**_x), numbers),
    ("ranks", xgboost.XGBRanker(**_x), grades),
    ("categories", xgboost.XGBRegressor(enable_categorical=True, feature_types=_kinds, max_cat_to_onehot=1, **_x), categories),
    ("categories-one-by-one", xgboost.XGBRegressor(enable_categorical=True, feature_types=_kinds, max_cat_to_onehot=100, **_x), categories),
]
LIGHTGBM = [
    ("binary", lightgbm.LGBMClassifier(**_l), classes(2)),
    ("binary-unbalanced", lightgbm.LGBMClassifier(is_unbalance=True, **_l), classes(2)),
    ("classes-3", lightgbm.LGBMClassifier(**_l), classes(3)),
    ("classes-40", lightgbm.LGBMClassifier(n_estimators=3, num_leaves=5, n_jobs=1, verbose=-1, min_child_samples=2), classes(40)),
    ("classes-ova", lightgbm.LGBMClassifier(objective="multiclassova", **_l), classes(3)),
    ("dart", lightgbm.LGBMClassifier(boosting_type="dart", **_l), classes(2)),
    ("forest", lightgbm.LGBMClassifier(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **_l), classes(2)),
    ("numbers", lightgbm.LGBMRegressor(**_l), numbers),
    ("numbers-l1", lightgbm.LGBMRegressor(objective="l1", **_l), numbers),
    ("numbers-poisson", lightgbm.LGBMRegressor(objective="poisson", **_l), counts),
    ("numbers-of-zero-as-missing", lightgbm.LGBMRegressor(zero_as_missing=True, **_l), counts),
    ("ranks", lightgbm.LGBMRanker(**_l), grades),
    ("categories", lightgbm.LGBMRegressor(categorical_feature=[3, 4], min_data_per_group=3, cat_smooth=1, **_l), categories),
]
