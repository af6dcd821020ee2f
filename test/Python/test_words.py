"""Words that no attribute knows are refused."""

import numpy as np
import pytest
from numerics import constant
from onnx import helper
from operators import run

import sardonyx


BAD_WORDS = [
    ("DepthToSpace", "mode", 13, {"blocksize": 2}),
    ("Pad", "mode", 17, {}),
    ("Resize", "mode", 17, {}),
    ("Resize", "nearest_mode", 17, {}),
    ("Resize", "coordinate_transformation_mode", 17, {}),
    ("Resize", "keep_aspect_ratio_policy", 18, {}),
    ("Upsample", "mode", 9, {}),
    ("GridSample", "mode", 16, {}),
    ("GridSample", "padding_mode", 20, {}),
    ("MaxPool", "auto_pad", 17, {"kernel_shape": [2, 2]}),
    ("Conv", "auto_pad", 17, {}),
    ("ScatterElements", "reduction", 16, {}),
    ("ScatterND", "reduction", 18, {}),
    ("Gelu", "approximate", 20, {}),
    ("Normalizer", "norm", 3, {}),
]


@pytest.mark.parametrize("op, attribute, opset, more", BAD_WORDS, ids=lambda v: v if isinstance(v, str) else "")
def test_words_that_no_attribute_knows(op, attribute, opset, more):
    x = np.ones((1, 4, 4, 4), np.float32)
    integers = {"p": [0, 0, 1, 1, 0, 0, 1, 1], "i": np.zeros((1, 1, 1, 1)), "n": [[0, 0, 0, 0]]}
    inits = [constant(n, v) for n, v in integers.items()] + [constant("s", [1, 1, 2, 2], np.float32)]
    inits += [constant("g", np.zeros((1, 2, 2, 2)), np.float32), constant("w", np.ones((4, 4, 2, 2)), np.float32)]
    inits += [constant("u", np.ones((1, 1, 1, 1)), np.float32), constant("v", [1.0], np.float32)]
    inputs = {
        "Pad": ["p"], "Resize": ["", "s"], "Upsample": ["s"], "GridSample": ["g"], "Conv": ["w"],
        "ScatterElements": ["i", "u"], "ScatterND": ["n", "v"],
    }  # fmt: skip
    domain = "ai.onnx.ml" if op == "Normalizer" else ""
    x = x.reshape(4, 16) if domain else x
    node = helper.make_node(op, ["x", *inputs.get(op, [])], ["y"], domain=domain, **{attribute: "bogus"}, **more)
    with pytest.raises(sardonyx.errors.InvalidGraph, match=f"attribute '{attribute}' is 'bogus'"):
        run([node], {"x": x}, opset=opset, inits=inits)


def test_words_of_lists():
    tree = {
        "nodes_modes": ["BRANCH_LEQ", "bogus", "LEAF"], "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0] * 3, "nodes_values": [0.0] * 3, "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0], "target_ids": [0, 0], "target_nodeids": [1, 2], "target_treeids": [0, 0],
        "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **tree)
    with pytest.raises(sardonyx.errors.InvalidGraph, match="attribute 'nodes_modes' is 'bogus'"):
        run([node], {"x": np.ones((1, 1), np.float32)})


def test_an_empty_word_for_no_automatic_padding():
    x = np.ones((1, 1, 4, 4), np.float32)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="")
    assert run([node], {"x": x})[0].shape == (1, 1, 3, 3)
