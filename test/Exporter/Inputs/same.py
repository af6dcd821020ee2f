"""Compares what models of a float vector and a flag compute, by ONNX's reference evaluator."""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

with open(sys.argv[1]) as file:
    text = "\n".join(line for line in file if not line.startswith("#"))
models = [onnx.parser.parse_model(text), *map(onnx.load, sys.argv[2:])]
for flag in (False, True):
    feeds = {"x": np.linspace(-2, 2, 16, dtype=np.float32), "c": np.array(flag)}
    first, *others = (ReferenceEvaluator(model).run(None, feeds)[0] for model in models)
    assert np.ptp(first) > 1
    for other in others:
        np.testing.assert_array_equal(first, other)
