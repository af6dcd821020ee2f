"""Tree ensembles against a walk written in Python, over random trees."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
ANSWERS = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]


def random_trees(rng, trees, depth, features, targets, votes, modes, missing):
    """A dict of lists, one entry a node, in the manner of the attributes."""
    nodes = {key: [] for key in ("tree", "id", "mode", "feature", "value", "yes", "no", "missing")}
    ballots = []

    def grow(tree, left):
        place = len([t for t in nodes["tree"] if t == tree])
        leaf = left == 0 or rng.random() < 0.15
        for key, value in dict(tree=tree, id=place, mode="LEAF" if leaf else MODES[rng.choice(modes)],
                               feature=int(rng.integers(features)), value=float(rng.integers(-2, 3)) / 2,
                               yes=0, no=0, missing=int(missing and rng.random() < 0.5)).items():  # fmt: skip
            nodes[key].append(value)
        at = len(nodes["id"]) - 1
        if leaf:
            for target in rng.permutation(targets)[: votes if votes else int(rng.integers(0, targets + 1))]:
                ballots.append((tree, place, int(target), float(np.float32(rng.standard_normal()))))
        else:
            nodes["yes"][at] = grow(tree, left - 1)
            nodes["no"][at] = grow(tree, left - 1)
        return place

    for tree in range(trees):
        grow(tree, depth)
    return nodes, ballots


def walk(nodes, ballots, x, targets, aggregate, dtype):
    places = {(t, i): k for k, (t, i) in enumerate(zip(nodes["tree"], nodes["id"]))}
    init = {"MIN": np.finfo(dtype).max, "MAX": np.finfo(dtype).min}.get(aggregate, 0)
    scores = np.full((len(x), targets), init, dtype)
    trees = sorted(set(nodes["tree"]))
    for row, values in enumerate(x):
        for tree in trees:
            k = places[tree, 0]
            while nodes["mode"][k] != "LEAF":
                value = dtype(values[nodes["feature"][k]])
                answer = ANSWERS[MODES.index(nodes["mode"][k])](value, dtype(nodes["value"][k]))
                answer |= bool(nodes["missing"][k]) and np.isnan(value)
                k = places[tree, nodes["yes"][k] if answer else nodes["no"][k]]
            for t, i, target, weight in ballots:
                if (t, i) == (tree, nodes["id"][k]):
                    combine = {"MIN": min, "MAX": max}.get(aggregate, lambda a, b: a + b)
                    scores[row, target] = combine(scores[row, target], dtype(weight))
    if init:
        scores[scores == init] = 0  # nobody has voted
    return scores / len(trees) if aggregate == "AVERAGE" else scores


def model(op, nodes, ballots, prefix, features, outputs, type=TensorProto.FLOAT, rows="n", **more):
    tree, node, target, weight = (list(column) for column in zip(*ballots)) if ballots else ([], [], [], [])
    wide = type == TensorProto.DOUBLE
    numbers = {"nodes_values": nodes["value"], f"{prefix}_weights": weight}
    if wide:
        numbers = {f"{k}_as_tensor": helper.make_tensor(k, TensorProto.DOUBLE, [len(v)], v) for k, v in numbers.items()}
    attributes = {
        "nodes_treeids": nodes["tree"], "nodes_nodeids": nodes["id"], "nodes_modes": nodes["mode"],
        "nodes_featureids": nodes["feature"], "nodes_truenodeids": nodes["yes"], "nodes_falsenodeids": nodes["no"],
        "nodes_missing_value_tracks_true": nodes["missing"], f"{prefix}_treeids": tree, f"{prefix}_nodeids": node,
        f"{prefix}_ids": target, **numbers, **more,
    }  # fmt: skip
    made = helper.make_node(op, ["X"], [o.name for o in outputs], name="trees", domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([made], "g", [helper.make_tensor_value_info("X", type, [rows, features])], outputs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def load(proto):
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    return sdx.InferenceSession(proto.SerializeToString(), options)


def inputs(rng, rows, features, dtype, missing):
    x = (rng.integers(-4, 5, (rows, features)) / 4).astype(dtype)
    if missing and rows:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("trees, depth, targets, votes", [(1, 3, 1, 1), (3, 0, 1, 1), (13, 5, 1, 1), (9, 10, 1, 1), (5, 4, 3, 1), (10, 4, 3, 0)])
def test_regressor(aggregate, trees, depth, targets, votes):
    for seed, (modes, dtype) in enumerate([([0], np.float32), (range(6), np.float32), ([1], np.float64)]):
        rng = np.random.default_rng(100 * trees + seed)
        features, missing = 5, seed == 1
        nodes, ballots = random_trees(rng, trees, depth, features, targets, votes, list(modes), missing)
        type = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
        outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", targets])]
        session = load(model("TreeEnsembleRegressor", nodes, ballots, "target", features, outputs, type,
                             n_targets=targets, aggregate_function=aggregate))  # fmt: skip
        for rows in (0, 1, 6):
            x = inputs(rng, rows, features, dtype, missing)
            want = walk(nodes, ballots, x, targets, aggregate, dtype).astype(np.float32)
            np.testing.assert_allclose(session.run(None, {"X": x})[0], want, rtol=1e-5, atol=1e-5)


def test_base_values_and_integers():
    rng = np.random.default_rng(3)
    nodes, ballots = random_trees(rng, 4, 3, 3, 2, 2, [0], False)
    outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    session = load(model("TreeEnsembleRegressor", nodes, ballots, "target", 3, outputs, TensorProto.INT64, n_targets=2, base_values=[1.0, -2.0]))
    x = rng.integers(-2, 3, (5, 3))
    want = walk(nodes, ballots, x, 2, "SUM", np.float32) + np.float32([1, -2])
    np.testing.assert_allclose(session.run(None, {"X": x})[0], want, rtol=1e-5)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def logistic(x):
    return 1 / (1 + np.exp(-x))


TRANSFORMS = {"NONE": lambda x: x, "SOFTMAX": softmax, "LOGISTIC": logistic}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[3, -1, 7], ["b", "a", ""], [0, 1]])
def test_classifier(transform, labels):
    rng = np.random.default_rng(5)
    classes = len(labels)
    nodes, ballots = random_trees(rng, 7, 4, 4, classes, classes, [0], False)
    strings = isinstance(labels[0], str)
    outputs = [
        helper.make_tensor_value_info("Y", TensorProto.STRING if strings else TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("Z", TensorProto.FLOAT, ["n", classes]),
    ]
    more = {"classlabels_strings" if strings else "classlabels_int64s": labels}
    session = load(model("TreeEnsembleClassifier", nodes, ballots, "class", 4, outputs, post_transform=transform, **more))
    x = inputs(rng, 20, 4, np.float32, False)
    scores = walk(nodes, ballots, x, classes, "SUM", np.float32)
    y, z = session.run(None, {"X": x})
    np.testing.assert_allclose(z, TRANSFORMS[transform](scores), rtol=1e-4, atol=1e-5)
    assert y.tolist() == [labels[k] for k in scores.argmax(1)]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("voted", [0, 1])
def test_two_classes_of_one_sum(positive, transform, voted):
    """As onnxruntime has it: votes for the first class are for the second, those for the second leave the first at 0."""
    rng = np.random.default_rng(6)
    nodes, ballots = random_trees(rng, 7, 4, 4, 1, 1, [0], False)
    if positive:
        ballots = [(*ballot[:3], abs(ballot[3]) / 8) for ballot in ballots]
    outputs = [helper.make_tensor_value_info("Y", TensorProto.INT64, ["n"]), helper.make_tensor_value_info("Z", TensorProto.FLOAT, ["n", 2])]
    named = [(*ballot[:2], voted, ballot[3]) for ballot in ballots]
    session = load(model("TreeEnsembleClassifier", nodes, named, "class", 4, outputs, classlabels_int64s=[5, 9], post_transform=transform))
    x = inputs(rng, 20, 4, np.float32, False)
    s = walk(nodes, ballots, x, 1, "SUM", np.float32)[:, 0]
    y, z = session.run(None, {"X": x})
    first = 0 * s if voted == 1 else 1 - s if positive and transform == "NONE" else -s
    want = np.stack([first, s], 1)
    want = logistic(want) if transform == "LOGISTIC" else want
    np.testing.assert_allclose(z, want, rtol=1e-4, atol=1e-5)
    assert y.tolist() == np.where(s > (0.5 if positive else 0), 9, 5).tolist()


def broken(change):
    rng = np.random.default_rng(8)
    nodes, ballots = random_trees(rng, 2, 3, 4, 1, 1, [0], False)
    while nodes["mode"][0] == "LEAF":
        nodes, ballots = random_trees(rng, 2, 3, 4, 1, 1, [0], False)
    change(nodes, ballots)
    return model("TreeEnsembleRegressor", nodes, ballots, "target", 4, [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 1])], rows=3, n_targets=1)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda n, b: n["yes"].__setitem__(0, 999), "followed by one that is not there"),
        (lambda n, b: n["yes"].__setitem__(0, 0), "in a circle"),
        (lambda n, b: n["feature"].__setitem__(0, 4), "more features than the input has"),
        (lambda n, b: n["feature"].__setitem__(0, 2**63 - 1), "unknown mode or feature"),
        (lambda n, b: n["id"].__setitem__(1, 0), "two nodes of one number"),
        (lambda n, b: b.append((0, 999, 0, 1.0)), "a node that is not there"),
        (lambda n, b: b.append((*b[0][:2], 5, 1.0)), "a target that is not there"),
        (lambda n, b: n["value"].pop(), "differ in length"),
    ],
)
def test_broken_trees_are_refused(change, words):
    kind = sdx.InvalidGraph if "more features" in words else sdx.NotImplemented
    with pytest.raises(kind, match=f"node 'trees'.*{words}"):
        load(broken(change))


def test_unknown_words_are_refused():
    with pytest.raises(sdx.errors.InvalidGraph, match="attribute 'nodes_modes' is 'BRANCH_MAYBE'"):
        load(broken(lambda nodes, ballots: nodes["mode"].__setitem__(0, "BRANCH_MAYBE")))
    proto = broken(lambda nodes, ballots: None)
    proto.graph.node[0].attribute.append(helper.make_attribute("post_transform", "SOFTPLUS"))
    with pytest.raises(sdx.errors.InvalidGraph, match="attribute 'post_transform' is 'SOFTPLUS'"):
        load(proto)


def split_model(dtype, features, splits, roots, leaves, targets, aggregate):
    """A TreeEnsemble of `splits`: (feature, mode, value or set, yes, no, missing), where yes and no are (place, is leaf)."""
    feature, mode, value, yes, no, missing = zip(*splits)
    members = [x for m, v in zip(mode, value) if m == 6 for x in (*v, np.nan)]
    tensors = {"nodes_modes": np.uint8(mode), "nodes_splits": dtype([0 if m == 6 else v for m, v in zip(mode, value)]),
               "leaf_weights": dtype([w for _, w in leaves])}  # fmt: skip
    if members:
        tensors["membership_values"] = dtype(members)
    made = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], name="trees", domain="ai.onnx.ml", tree_roots=roots, n_targets=targets, aggregate_function=aggregate,
        nodes_featureids=feature, nodes_truenodeids=[p for p, _ in yes], nodes_trueleafs=[leaf for _, leaf in yes],
        nodes_falsenodeids=[p for p, _ in no], nodes_falseleafs=[leaf for _, leaf in no], nodes_missing_value_tracks_true=missing,
        leaf_targetids=[t for t, _ in leaves], **{k: numpy_helper.from_array(np.asarray(v)) for k, v in tensors.items()},
    )  # fmt: skip
    type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph([made], "g", [helper.make_tensor_value_info("X", type, ["n", features])], [helper.make_tensor_value_info("Y", type, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 5)], ir_version=10)


def answer_split(mode, value, missing, x):
    answer = x in value if mode == 6 else ANSWERS[mode](x, value)
    return answer or (missing and np.isnan(x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("aggregate, modes", [(0, range(7)), (1, range(7)), (2, range(7)), (3, range(7)), *((1, [mode]) for mode in range(4))])
def test_splits(dtype, aggregate, modes):
    """Of one mode, some nodes answer with yes where a feature is missing: a form of its own."""
    thresholds = [-1, 0, 0.5, np.nan] if len(modes) > 1 else [-1, 0, 0.5, np.inf, -np.inf]
    for seed in range(3):
        rng = np.random.default_rng(10 * aggregate + seed)
        splits, leaves, targets = [], [], 1 + seed

        def grow(left):
            at = len(splits)
            splits.append(None)
            mode = int(rng.choice(modes))
            value = set(rng.choice(np.arange(-4, 5), int(rng.integers(0, 4)), replace=False) / 2) if mode == 6 else rng.choice(thresholds)
            ends = []
            for _ in range(2):
                if left == 0 or rng.random() < 0.2:
                    leaves.append((int(rng.integers(targets)), float(rng.integers(-8, 9)) / 8))
                    ends.append((len(leaves) - 1, 1))
                else:
                    ends.append((grow(left - 1), 0))
            splits[at] = (int(rng.integers(3)), mode, value, *ends, int(rng.random() < 0.5))
            return at

        roots = [grow(int(rng.integers(0, 5))) for _ in range([1, 3, 10][seed])]
        x = inputs(rng, 9, 3, dtype, True)
        init = {2: np.finfo(dtype).max, 3: np.finfo(dtype).min}.get(aggregate, 0)
        want = np.full((len(x), targets), init, np.float64)
        for row, values in enumerate(x):
            for root in roots:
                place, is_leaf = root, 0
                while not is_leaf:
                    feature, mode, value, yes, no, missing = splits[place]
                    place, is_leaf = yes if answer_split(mode, value, missing, values[feature]) else no
                target, weight = leaves[place]
                want[row, target] = {2: min, 3: max}.get(aggregate, lambda a, b: a + b)(want[row, target], weight)
        if aggregate == 0:
            want /= len(roots)
        got = load(split_model(dtype, 3, splits, roots, leaves, targets, aggregate)).run(None, {"X": x})[0]
        assert got.dtype == dtype
        scored = np.abs(want) < 1e4  # what a target has that no leaf is for, the standard does not say
        np.testing.assert_allclose(got[scored], want[scored], rtol=1e-3 if dtype == np.float16 else 1e-6, atol=1e-3 if dtype == np.float16 else 1e-6)


def test_more_columns_than_declared():
    """Exporters declare one column where there are more."""
    rng = np.random.default_rng(9)
    nodes, ballots = random_trees(rng, 3, 3, 3, 2, 2, [0], False)
    proto = model("TreeEnsembleRegressor", nodes, ballots, "target", 3, [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 1])], n_targets=2)
    x = inputs(rng, 4, 3, np.float32, False)
    got = load(proto).run(None, {"X": x})[0]
    np.testing.assert_allclose(got, walk(nodes, ballots, x, 2, "SUM", np.float32), rtol=1e-5)
    onnx.checker.check_model(proto)
