#!/usr/bin/env python3
"""Tree ensembles beside onnxruntime, one thread each, as Markdown.

    trees.py [--rounds R]

Needs scikit-learn, skl2onnx and onnxruntime. The models are trained here, on data made up. Each cell is Sardonyx' time to
onnxruntime's, the shortest of R runs of each in turn, for batches of so many rows; labels are equal and scores agree to 1e-5, or
it says so.
"""

import argparse
import time
import warnings

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

import sardonyx

BATCHES = [1, 100, 10000]
TRAINED = 2000


def models():
    """(name, model, inputs, targets)"""
    rows = TRAINED + max(BATCHES)
    two = make_classification(rows, 12, n_informative=8, random_state=1)
    four = make_classification(rows, 12, n_informative=8, n_classes=4, random_state=2)
    numbers = make_regression(rows, 12, random_state=3)
    yield "one tree, depth 7, regression", DecisionTreeRegressor(max_depth=7), *numbers
    yield "100 trees, depth 6, regression", RandomForestRegressor(100, max_depth=6), *numbers
    yield "100 trees, depth 12, regression", RandomForestRegressor(100, max_depth=12), *numbers
    yield "100 trees, depth 6, 2 classes", RandomForestClassifier(100, max_depth=6), *two
    yield "100 trees, depth 12, 4 classes", RandomForestClassifier(100, max_depth=12), *four
    yield "50 trees of any depth, 4 classes", ExtraTreesClassifier(50), *four
    yield "boosted, 50 x 4 trees, depth 3, 4 classes", GradientBoostingClassifier(n_estimators=50), *four
    yield "boosted, 100 trees, depth 6, regression", GradientBoostingRegressor(n_estimators=100, max_depth=6), *numbers


def sessions(model, inputs):
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    proto = to_onnx(model, inputs[:1], options=options, target_opset={"": 20, "ai.onnx.ml": 3}).SerializeToString()
    ours, theirs = sardonyx.SessionOptions(), onnxruntime.SessionOptions()
    ours.intra_op_num_threads = theirs.intra_op_num_threads = 1
    return sardonyx.InferenceSession(proto, ours), onnxruntime.InferenceSession(proto, theirs)


def shortest(pair, feed, rounds):
    best = [float("inf")] * 2
    for _ in range(rounds):
        for i, session in enumerate(pair):
            start = time.perf_counter()
            session.run(None, feed)
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def agree(pair, feed):
    for ours, theirs in zip(*(session.run(None, feed) for session in pair)):
        same = np.allclose(ours, theirs, rtol=1e-5, atol=1e-5) if ours.dtype == np.float32 else (ours == theirs).all()
        if not same:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| model | " + " | ".join(f"{rows} rows" for rows in BATCHES) + " |")
    print("|---|" + "---|" * len(BATCHES))
    for name, model, inputs, targets in models():
        inputs = inputs.astype(np.float32)
        pair = sessions(model.fit(inputs[:TRAINED], targets[:TRAINED]), inputs)
        cells = []
        for rows in BATCHES:
            # Rows that are all different, and none that the model was trained on: a processor learns the
            # way that a few rows take through a tree.
            feed = {"X": inputs[TRAINED : TRAINED + rows]}
            ours, theirs = shortest(pair, feed, arguments.rounds)
            cells.append(f"{ours / theirs:.2f}" + ("" if agree(pair, feed) else " (differs)"))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
