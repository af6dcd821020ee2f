"""The estimators and transformers that skl2onnx converts, one of each at least, and data for them.

A row is (name, estimator, data). `data` names a function below, which gives what to fit with and what
to compute on.
"""

import numpy as np
from sklearn import (
    calibration, cluster, compose, covariance, cross_decomposition, decomposition, discriminant_analysis, dummy, ensemble, feature_extraction,
    feature_selection, gaussian_process, impute, kernel_approximation, linear_model, mixture, model_selection, multiclass, multioutput,
    naive_bayes, neighbors, neural_network, pipeline, preprocessing, random_projection, svm, tree,
)  # fmt: skip
from sklearn.datasets import make_classification, make_regression

_ = (covariance, dummy, kernel_approximation)

ROWS, COLUMNS = 150, 6


def features(seed=0):
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def classes(count, seed=1):
    x, y = make_classification(ROWS, COLUMNS, n_informative=5, n_redundant=0, n_classes=count, random_state=seed)
    return x.astype(np.float32), y


def binary():
    return classes(2)


def several():
    """Four classes that have names."""
    x, y = classes(4, 2)
    return x, np.array(["ash", "beech", "cedar", "fir"])[y]


def counts():
    x, y = several()
    return np.floor(np.abs(x) * 4).astype(np.float32), y


def categories():
    x, y = binary()
    return np.clip(np.floor(np.abs(x) * 2), 0, 3).astype(np.int64), y


def labels():
    """Several labels of each row."""
    x, y = binary()
    return x, np.stack([y, (x[:, 0] > 0).astype(np.int64)], 1)


def numbers():
    x, y = make_regression(ROWS, COLUMNS, noise=3, random_state=3)
    return x.astype(np.float32), (y / 50).astype(np.float32)


def doubles():
    x, y = numbers()
    return x.astype(np.float64), y


def positive_numbers():
    x, y = numbers()
    return x, np.exp(y / 3)


def vectors():
    x, y = make_regression(ROWS, COLUMNS, n_targets=3, noise=3, random_state=4)
    return x.astype(np.float32), (y / 50).astype(np.float32)


def plain():
    return features(), None


def positive():
    return np.abs(features()) + 0.1, None


def gaps():
    x = features()
    x[np.random.default_rng(5).random(x.shape) < 0.2] = np.nan
    return x, None


def gaps_of_numbers():
    x, y = numbers()
    x[np.random.default_rng(5).random(x.shape) < 0.2] = np.nan
    return x, y


def products():
    x = features()
    return x @ x.T, None


def words():
    rng = np.random.default_rng(6)
    return np.array(["red", "green", "", "blue ☃"], dtype=object)[rng.integers(0, 4, (ROWS, 3))], None


def integers():
    return np.random.default_rng(7).integers(-3, 4, (ROWS, 3)), None


def targets_of_words():
    x, _ = words()
    return x, (x[:, 0] == "red").astype(np.float64) + np.arange(ROWS) % 3


def list_of_words():
    return words()[0][:, 0], None


def list_of_integers():
    return integers()[0][:, 0], None


def texts():
    rng = np.random.default_rng(8)
    vocabulary = np.array("the a cat dog sat ran and not fast over under it's 12 x".split())
    return np.array([" ".join(rng.choice(vocabulary, rng.integers(1, 12))) for _ in range(ROWS)], dtype=object), None


_lm, _nb, _nn = linear_model, naive_bayes, neighbors
_logistic = lambda: _lm.LogisticRegression()

CLASSIFIERS = [
    ("AdaBoost", ensemble.AdaBoostClassifier(n_estimators=8)),
    ("Bagging", ensemble.BaggingClassifier(n_estimators=5, random_state=0)),
    ("BaggingOfSome", ensemble.BaggingClassifier(_logistic(), n_estimators=4, max_features=0.5, random_state=0)),
    ("BernoulliNB", _nb.BernoulliNB()),
    ("Calibrated", calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=3)),
    ("CalibratedIsotonic", calibration.CalibratedClassifierCV(_nb.GaussianNB(), cv=2, method="isotonic")),
    ("DecisionTree", tree.DecisionTreeClassifier(max_depth=6, random_state=0)),
    ("ExtraTree", tree.ExtraTreeClassifier(random_state=0)),
    ("ExtraTrees", ensemble.ExtraTreesClassifier(12, random_state=0)),
    ("GaussianNB", _nb.GaussianNB()),
    ("GradientBoosting", ensemble.GradientBoostingClassifier(n_estimators=10)),
    ("GridSearchCV", model_selection.GridSearchCV(_logistic(), {"C": [0.1, 1]}, cv=2)),
    ("HistGradientBoosting", ensemble.HistGradientBoostingClassifier(max_iter=8)),
    ("KNeighbors", _nn.KNeighborsClassifier()),
    ("KNeighborsByDistance", _nn.KNeighborsClassifier(3, weights="distance")),
    ("LinearDiscriminantAnalysis", discriminant_analysis.LinearDiscriminantAnalysis()),
    ("LinearSVC", svm.LinearSVC()),
    ("LogisticRegression", _logistic()),
    ("LogisticRegressionCV", _lm.LogisticRegressionCV(cv=2, Cs=2)),
    ("MLP", neural_network.MLPClassifier((10, 5), max_iter=40, random_state=0)),
    ("MLPOfTanh", neural_network.MLPClassifier((10,), activation="tanh", max_iter=40, random_state=0)),
    ("NuSVC", svm.NuSVC(nu=0.2)),
    ("NuSVCWithProbabilities", svm.NuSVC(nu=0.2, probability=True, random_state=0)),
    ("OneVsRest", multiclass.OneVsRestClassifier(_logistic())),
    ("PassiveAggressive", _lm.PassiveAggressiveClassifier(random_state=0)),
    ("Perceptron", _lm.Perceptron(random_state=0)),
    ("Pipeline", pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), _logistic())),
    ("QuadraticDiscriminantAnalysis", discriminant_analysis.QuadraticDiscriminantAnalysis()),
    ("RandomForest", ensemble.RandomForestClassifier(12, random_state=0)),
    ("RidgeClassifier", _lm.RidgeClassifier()),
    ("RidgeClassifierCV", _lm.RidgeClassifierCV()),
    ("SGD", _lm.SGDClassifier(random_state=0)),
    ("SGDOfLogistic", _lm.SGDClassifier(loss="log_loss", random_state=0)),
    ("SGDOfHuber", _lm.SGDClassifier(loss="modified_huber", random_state=0)),
    ("SVC", svm.SVC()),
    ("SVCOfPolynomials", svm.SVC(kernel="poly", probability=True, random_state=0)),
    ("SVCWithProbabilities", svm.SVC(probability=True, random_state=0)),
    ("Stacking", ensemble.StackingClassifier([("a", _logistic()), ("b", _nb.GaussianNB())], cv=2)),
    ("VotingHard", ensemble.VotingClassifier([("a", _logistic()), ("b", _nb.GaussianNB()), ("c", tree.DecisionTreeClassifier(max_depth=2))], flatten_transform=False)),
    ("VotingSoft", ensemble.VotingClassifier([("a", _logistic()), ("b", _nb.GaussianNB())], voting="soft", flatten_transform=False)),
]  # fmt: skip

OTHER_CLASSIFIERS = [
    ("CategoricalNB", _nb.CategoricalNB(), categories),
    ("ComplementNB", _nb.ComplementNB(), counts),
    ("MultinomialNB", _nb.MultinomialNB(), counts),
    ("OneVsOne", multiclass.OneVsOneClassifier(_logistic()), binary),
    ("OneVsOneOfFour", multiclass.OneVsOneClassifier(_logistic()), lambda: classes(4)),
    ("TunedThreshold", model_selection.TunedThresholdClassifierCV(_logistic(), cv=2), binary),
]

REGRESSORS = [
    *((type(e).__name__, e, numbers) for e in [
        _lm.ARDRegression(), ensemble.AdaBoostRegressor(n_estimators=6, random_state=0), ensemble.BaggingRegressor(n_estimators=5, random_state=0),
        _lm.BayesianRidge(), tree.DecisionTreeRegressor(max_depth=6), _lm.ElasticNet(0.1), _lm.ElasticNetCV(cv=2), tree.ExtraTreeRegressor(random_state=0),
        ensemble.ExtraTreesRegressor(8, random_state=0), ensemble.GradientBoostingRegressor(n_estimators=10),
        ensemble.HistGradientBoostingRegressor(max_iter=8), _lm.HuberRegressor(), _nn.KNeighborsRegressor(4), _lm.Lars(), _lm.LarsCV(cv=2), _lm.Lasso(0.1),
        _lm.LassoCV(cv=2), _lm.LassoLars(0.01), _lm.LassoLarsCV(cv=2), _lm.LassoLarsIC(), _lm.LinearRegression(), svm.LinearSVR(),
        neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=60, random_state=0), svm.NuSVR(), _lm.OrthogonalMatchingPursuit(), _lm.OrthogonalMatchingPursuitCV(cv=2),
        _lm.PassiveAggressiveRegressor(random_state=0), _lm.QuantileRegressor(alpha=0.01), _lm.RANSACRegressor(random_state=0),
        ensemble.RandomForestRegressor(8, random_state=0), _lm.Ridge(), _lm.RidgeCV(), _lm.SGDRegressor(random_state=0),
        svm.SVR(), ensemble.StackingRegressor([("a", _lm.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))], cv=2), _lm.TheilSenRegressor(random_state=0),
        ensemble.VotingRegressor([("a", _lm.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    ]),
    ("HistGradientBoostingOfGaps", ensemble.HistGradientBoostingRegressor(max_iter=8), gaps_of_numbers),
    ("DecisionTreeOfGaps", tree.DecisionTreeRegressor(max_depth=5, random_state=0), gaps_of_numbers),
    ("GaussianProcessRegressor", gaussian_process.GaussianProcessRegressor(alpha=0.1), doubles),
    ("SVROfPolynomials", svm.SVR(kernel="poly", degree=2), numbers),
    ("SVROfSigmoids", svm.SVR(kernel="sigmoid"), numbers),
    ("GammaRegressor", _lm.GammaRegressor(), positive_numbers),
    ("PoissonRegressor", _lm.PoissonRegressor(), positive_numbers),
    ("TweedieRegressor", _lm.TweedieRegressor(power=1.5, link="log"), positive_numbers),
    *((type(e).__name__ + "OfVectors", e, vectors) for e in [
        _lm.LinearRegression(), tree.DecisionTreeRegressor(max_depth=6), ensemble.RandomForestRegressor(6, random_state=0), _nn.KNeighborsRegressor(4),
        multioutput.MultiOutputRegressor(_lm.Ridge()), _lm.MultiTaskElasticNet(0.1),
        _lm.MultiTaskElasticNetCV(cv=2), _lm.MultiTaskLasso(0.1), _lm.MultiTaskLassoCV(cv=2), cross_decomposition.PLSRegression(2),
    ]),
]  # fmt: skip

TRANSFORMERS = [
    *((type(e).__name__, e, plain) for e in [
        preprocessing.Binarizer(threshold=0.2), preprocessing.FunctionTransformer(), random_projection.GaussianRandomProjection(3, random_state=0),
        decomposition.IncrementalPCA(3), preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"), decomposition.KernelPCA(3, kernel="rbf"), preprocessing.MaxAbsScaler(),
        preprocessing.MinMaxScaler((-1, 2), clip=True), preprocessing.Normalizer(), decomposition.PCA(3), preprocessing.PolynomialFeatures(3),
        preprocessing.PowerTransformer(), preprocessing.QuantileTransformer(n_quantiles=20), preprocessing.RobustScaler(), preprocessing.StandardScaler(),
        decomposition.TruncatedSVD(3), feature_selection.VarianceThreshold(0.9), _nn.KNeighborsTransformer(n_neighbors=3),
        ensemble.RandomTreesEmbedding(4, max_depth=3, sparse_output=False, random_state=0),
    ]),
    ("NormalizerL1", preprocessing.Normalizer("l1"), plain),
    ("NormalizerMax", preprocessing.Normalizer("max"), plain),
    ("PCAWhitened", decomposition.PCA(3, whiten=True), plain),
    ("PolynomialInteractions", preprocessing.PolynomialFeatures(2, interaction_only=True, include_bias=False), plain),
    ("PowerBoxCox", preprocessing.PowerTransformer("box-cox"), positive),
    ("QuantileNormal", preprocessing.QuantileTransformer(n_quantiles=20, output_distribution="uniform"), plain),
    ("KBinsOneHot", preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"), plain),
    ("ColumnTransformer", compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 2]), ("b", "passthrough", [3]), ("c", preprocessing.MinMaxScaler(), [5, 1])]), plain),
    ("FeatureUnion", pipeline.FeatureUnion([("a", preprocessing.StandardScaler()), ("b", decomposition.PCA(2))]), plain),
    ("PipelineOfTransformers", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()), gaps),
    ("ImputeMean", impute.SimpleImputer(), gaps),
    ("ImputeMostFrequent", impute.SimpleImputer(strategy="most_frequent"), gaps),
    ("ImputeConstant", impute.SimpleImputer(strategy="constant", fill_value=-1.5), gaps),
    ("ImputeNeighbors", impute.KNNImputer(n_neighbors=3), gaps),
    ("ImputeWords", impute.SimpleImputer(missing_values="", strategy="most_frequent"), words),
    *((type(e).__name__, e, numbers) for e in [
        feature_selection.GenericUnivariateSelect(feature_selection.f_regression, param=60), feature_selection.RFE(_lm.Ridge(), n_features_to_select=3),
        feature_selection.RFECV(_lm.Ridge(), cv=2), feature_selection.SelectFdr(feature_selection.f_regression), feature_selection.SelectFpr(feature_selection.f_regression),
        feature_selection.SelectFromModel(_lm.Lasso(0.1)), feature_selection.SelectFwe(feature_selection.f_regression),
        feature_selection.SelectKBest(feature_selection.f_regression, k=2), feature_selection.SelectPercentile(feature_selection.f_regression, percentile=50),
    ]),
    ("NeighborhoodComponentsAnalysis", _nn.NeighborhoodComponentsAnalysis(3, max_iter=10, random_state=0), binary),
    ("OneHotOfWords", preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), words),
    ("OneHotDroppingFirst", preprocessing.OneHotEncoder(sparse_output=False, drop="first"), words),
    ("OneHotOfIntegers", preprocessing.OneHotEncoder(sparse_output=False), integers),
    ("OrdinalOfWords", preprocessing.OrdinalEncoder(), words),
    ("OrdinalOfIntegers", preprocessing.OrdinalEncoder(), integers),
    ("TargetEncoder", preprocessing.TargetEncoder(target_type="continuous", cv=2, random_state=0), targets_of_words),
    ("LabelEncoder", preprocessing.LabelEncoder(), list_of_words),
    ("LabelEncoderOfIntegers", preprocessing.LabelEncoder(), list_of_integers),
    ("LabelBinarizer", preprocessing.LabelBinarizer(), list_of_integers),
    ("KernelCenterer", preprocessing.KernelCenterer(), products),
    ("TfidfTransformer", feature_extraction.text.TfidfTransformer(), lambda: (counts()[0], None)),
    ("FeatureHasher", feature_extraction.FeatureHasher(8, input_type="string"), words),
    ("CountVectorizer", feature_extraction.text.CountVectorizer(), texts),
    ("CountVectorizerOfPairs", feature_extraction.text.CountVectorizer(ngram_range=(1, 2), lowercase=False), texts),
    ("CountVectorizerOfCase", feature_extraction.text.CountVectorizer(lowercase=False, stop_words=["the", "and"], max_features=6, binary=True), texts),
    ("TfidfVectorizer", feature_extraction.text.TfidfVectorizer(), texts),
    ("TfidfSublinear", feature_extraction.text.TfidfVectorizer(lowercase=False, sublinear_tf=True, norm="l1", smooth_idf=False), texts),
]  # fmt: skip

# What says how far a row lies outside, or of which cluster it is.
DETECTORS = [
    ("IsolationForest", ensemble.IsolationForest(n_estimators=8, random_state=0)),
    ("OneClassSVM", svm.OneClassSVM(nu=0.3)),
    ("SGDOneClassSVM", _lm.SGDOneClassSVM(nu=0.3, random_state=0)),
    ("LocalOutlierFactor", _nn.LocalOutlierFactor(n_neighbors=5, novelty=True)),
]
CLUSTERS = [
    ("KMeans", cluster.KMeans(3, n_init=1, random_state=0)),
    ("MiniBatchKMeans", cluster.MiniBatchKMeans(3, n_init=1, random_state=0)),
]
MIXTURES = [
    *((f"GaussianMixture-{kind}", mixture.GaussianMixture(n_components=3, covariance_type=kind, random_state=0)) for kind in ("full", "tied", "diag", "spherical")),
    ("BayesianGaussianMixture", mixture.BayesianGaussianMixture(n_components=3, random_state=0)),
]
