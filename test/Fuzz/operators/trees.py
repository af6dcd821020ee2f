"""Ensembles of trees."""

import numpy as np
from onnx import numpy_helper

from references import Refused

from .learned import ML, classes, floats, rows

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


class Trees:
    """The attributes of the first form of ensembles. Roots come first: to onnxruntime a tree begins there."""

    def __init__(self, g, features, count):
        self.g, self.features = g, features
        self.nodes, self.leaves = [], []
        self.modes = MODES[:1] if g.maybe(0.6) else MODES
        for tree in range(count):
            self.next = 0
            self.grow(tree, g.int(0, 5))

    def grow(self, tree, depth):
        g, me = self.g, self.next
        self.next += 1
        if depth == 0 or g.maybe(0.15):
            self.nodes.append((tree, me, 0, "LEAF", 0.0, 0, 0, 0))
            self.leaves.append((tree, me))
            return me
        threshold = float(g.pick([-1.5, -0.5, 0.0, 0.5, 1.0, 2.0]))
        at = len(self.nodes)
        self.nodes.append(None)
        left = self.grow(tree, depth - 1)
        right = self.grow(tree, depth - 1)
        self.nodes[at] = (tree, me, g.int(0, self.features - 1), g.pick(self.modes), threshold, left, right, g.int(0, 1))
        return me

    def attributes(self):
        names = "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true".split()
        result = {f"nodes_{name}": [node[i] for node in self.nodes] for i, name in enumerate(names)}
        if self.g.maybe():
            del result["nodes_missing_value_tracks_true"]
        return result

    def weights(self, prefix, of):
        """A weight for each of `of` targets or classes at each leaf: to onnxruntime one that has none is not there."""
        g, entries = self.g, []
        for tree, node in self.leaves:
            ids = [int(i) for i in g.rng.permutation(of)]
            entries += [(tree, node, i, float(np.float32(g.rng.uniform(-1, 1)))) for i in ids]
        names = "treeids nodeids ids weights".split()
        return {f"{prefix}_{name}": [e[i] for e in entries] for i, name in enumerate(names)}


def features_of(g, among=None):
    features = g.pick([1, 2, 3, 7])
    kinds = [np.dtype(t) for t in (np.float32, np.float32, np.float64, np.int64, np.int32)]
    x = rows(g, among or kinds, features=features, low=2)
    if x.dtype.kind == "f" and g.maybe(0.5):
        array = np.round(x.array * 2) / 2
        array[g.rng.random(array.shape) < 0.1] = np.nan if g.maybe() else 0.5
        x = g.hold(array.astype(x.dtype), 0)
    return features, x


def regressor(g):
    features, x = features_of(g)
    trees = Trees(g, features, g.int(1, 6))
    targets = g.pick([1, 1, 2, 4])
    base = {"base_values": floats(g, targets)} if g.maybe() else {}
    g.emit("TreeEnsembleRegressor", [x], n_targets=targets, aggregate_function=g.pick([None, "SUM", "AVERAGE", "MIN", "MAX"]),
           post_transform=g.pick(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"] if targets > 1 else ["NONE"]), domain=ML, **base,
           **trees.attributes(), **trees.weights("target", targets))  # fmt: skip


def classifier(g):
    features, x = features_of(g)
    trees = Trees(g, features, g.int(1, 6))
    count = g.pick([2, 2, 3, 4])
    weights = trees.weights("class", count)
    transforms = ["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
    base = {"base_values": floats(g, count)} if g.maybe(0.4) else {}
    if count == 2:  # one score for both; two of them and base values onnxruntime takes otherwise than ONNX
        weights = {key: values[::2] for key, values in weights.items()}
        weights["class_ids"] = [0] * len(weights["class_ids"])
        base = {}
        transforms = ["NONE", "LOGISTIC"]
    g.emit("TreeEnsembleClassifier", [x], outputs=2, post_transform=g.pick(transforms),
           domain=ML, **base, **classes(g, count), **trees.attributes(), **weights)  # fmt: skip


def ensemble(g):
    """TreeEnsemble of version 5. Its branches are of one kind: others, and sets, onnxruntime mixes up."""
    if g.opsets[ML] < 5:
        raise Refused("version")
    kind = g.pick([np.float32, np.float32, np.float64])
    features, x = features_of(g, [np.dtype(kind)])
    nodes, leaves, roots = [], [], []
    targets, mode = g.pick([1, 1, 2, 4]), g.int(0, 5)

    def grow(depth):
        """(index, whether it is a leaf)"""
        if depth == 0 or g.maybe(0.15):
            leaves.append((g.int(0, targets - 1), float(np.float32(g.rng.uniform(-1, 1)))))
            return len(leaves) - 1, 1
        me = len(nodes)
        nodes.append(None)
        split = float(g.pick([-1.5, -0.5, 0.0, 0.5, 1.0, 2.0]))
        yes, no = grow(depth - 1), grow(depth - 1)
        nodes[me] = (g.int(0, features - 1), mode, split, yes, no, g.int(0, 1))
        return me, 0

    for _ in range(g.int(1, 5)):
        root, is_leaf = grow(g.int(1, 5))
        if is_leaf:  # a tree of one leaf is a node both of whose ends are this one
            nodes.append((0, mode, 0.0, (root, 1), (root, 1), 0))
            root = len(nodes) - 1
        roots.append(root)
    def tensor(values, dtype=kind):
        return numpy_helper.from_array(np.array(values, dtype), "t")

    attributes = {
        "tree_roots": roots,
        "nodes_featureids": [n[0] for n in nodes],
        "nodes_modes": tensor([n[1] for n in nodes], np.uint8),
        "nodes_splits": tensor([n[2] for n in nodes]),
        "nodes_truenodeids": [n[3][0] for n in nodes],
        "nodes_trueleafs": [n[3][1] for n in nodes],
        "nodes_falsenodeids": [n[4][0] for n in nodes],
        "nodes_falseleafs": [n[4][1] for n in nodes],
        "leaf_targetids": [leaf[0] for leaf in leaves],
        "leaf_weights": tensor([leaf[1] for leaf in leaves]),
    }
    if g.maybe():
        attributes["nodes_missing_value_tracks_true"] = [n[5] for n in nodes]
    # To onnxruntime 1 is LOGISTIC and 2 SOFTMAX.
    g.emit("TreeEnsemble", [x], n_targets=targets, aggregate_function=g.pick([0, 1, 1, 2, 3]), post_transform=g.pick([0, 0, 3]) if targets > 1 else 0,
           domain=ML, **attributes)  # fmt: skip


OPERATORS = [regressor, regressor, classifier, classifier, ensemble, ensemble]
