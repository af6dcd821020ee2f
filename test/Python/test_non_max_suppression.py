"""NonMaxSuppression against onnx's reference."""

import numpy as np
import pytest
from numerics import constant, run
from onnx import helper
from onnx.reference import ReferenceEvaluator


def make(feeds, center):
    names = ["boxes", "scores", "most", "iou", "score"]
    present = [name if name in feeds else "" for name in names]
    while not present[-1]:
        present.pop()
    return helper.make_node("NonMaxSuppression", present, ["y"], center_point_box=center)


def expected(feeds, center):
    feeds = {"boxes": feeds["boxes"], "scores": feeds["scores"], "iou": scalar(0)} | feeds
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    result = [helper.make_tensor_value_info("y", 7, [None, 3])]
    graph = helper.make_graph([make(feeds, center)], "g", values, result)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])).run(None, feeds)[0]


def check(feeds, center, is_static):
    shapes = {n: list(a.shape) for n, a in feeds.items()} if is_static else None
    [got] = run([make(feeds, center)], feeds, ["y"], shapes)
    np.testing.assert_array_equal(got, expected(feeds, center))
    assert got.dtype == np.int64 and got.shape[1] == 3
    return got


def scalar(value, dtype=np.float32):
    return np.array([value], dtype)


def random_boxes(rng, batches, count, center):
    low = rng.integers(0, 20, (batches, count, 2))
    size = rng.integers(0, 12, (batches, count, 2))
    pair = [low, size] if center else [low, low + size]
    if not center and rng.random() < 0.5:
        pair.reverse()
    return np.concatenate(pair, 2).astype(np.float32)


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("center", [0, 1])
def test_random(center, is_static):
    rng = np.random.default_rng(23)
    for case in range(8):
        batches, groups, count = (int(n) for n in rng.integers(1, [4, 4, 40]))
        if case == 6:
            count = 0
        if case == 7:
            groups = 0
        feeds = {
            "boxes": random_boxes(rng, batches, count, center),
            "scores": rng.integers(0, 10, (batches, groups, count)).astype(np.float32) / 10,
            "most": scalar(rng.integers(0, 20), np.int64),
        }
        if case % 4:
            feeds["iou"] = scalar(rng.random())
        if case % 4 > 1:
            feeds["score"] = scalar(0.3)
        check(feeds, center, is_static)


def test_threshold_is_kept():
    """A box whose overlap equals the threshold stays; of equal scores the lower index is first."""
    boxes = np.array([[[0, 0, 1, 2], [0, 1, 1, 3], [0, 0, 1, 2]]], np.float32)
    feeds = {"boxes": boxes, "scores": np.full((1, 1, 3), 0.5, np.float32), "most": scalar(9, np.int64)}
    third = np.float32(1) / np.float32(3)
    assert check(feeds | {"iou": scalar(third)}, 0, False)[:, 2].tolist() == [0, 1]
    assert check(feeds | {"iou": scalar(np.nextafter(third, np.float32(0)))}, 0, False)[:, 2].tolist() == [0]


@pytest.mark.parametrize("most", [None, -5, 0, 2**62])
def test_most(most):
    rng = np.random.default_rng(3)
    feeds = {"boxes": random_boxes(rng, 1, 9, 0), "scores": rng.random((1, 2, 9), np.float32)}
    if most is not None:
        feeds["most"] = scalar(most, np.int64)
    [got] = run([make(feeds, 0)], feeds, ["y"])
    want = expected(feeds | {"most": scalar(9, np.int64)}, 0) if most and most > 0 else np.zeros((0, 3))
    np.testing.assert_array_equal(got, want)


def test_constants_and_many_boxes():
    rng = np.random.default_rng(4)
    low = rng.random((1, 3000, 2), np.float32) * 50
    feeds = {"boxes": np.concatenate([low, low + 5], 2), "scores": rng.random((1, 2, 3000), np.float32)}
    node = make(feeds | {"most": 0, "iou": 0, "score": 0}, 0)
    held = [constant("most", 50), constant("iou", 0.4, np.float32), constant("score", 0.2, np.float32)]
    [got] = run([node], feeds, ["y"], {"boxes": [1, 3000, 4], "scores": [1, 2, 3000]}, initializers=held)
    want = expected(feeds | {"most": scalar(50, np.int64), "iou": scalar(0.4), "score": scalar(0.2)}, 0)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("count", [1, 2, 47, 48, 49, 600])
def test_scores_of_both_signs(count, is_static):
    """Few candidates are sorted in another way than many; of equal scores the lower index is first."""
    rng = np.random.default_rng(count)
    few = rng.choice(np.array([-np.inf, -3e38, -1, -1e-40, -0.0, 0.0, 1e-40, 1, 3e38, np.inf], np.float32), (1, 1, count))
    scores = np.concatenate([few, rng.standard_normal((1, 1, count)).astype(np.float32), np.full((1, 1, count), 0.5, np.float32)], 1)
    feeds = {"boxes": random_boxes(rng, 1, count, 0), "scores": scores, "most": scalar(count, np.int64), "iou": scalar(0.3)}
    check(feeds, 0, is_static)
    check(feeds | {"score": scalar(-0.5)}, 0, is_static)


@pytest.mark.parametrize("boxes, scores", [((1, 4, 3), (1, 1, 4)), ((1, 4, 4), (1, 1, 5)), ((2, 4, 4), (1, 1, 4))])
def test_sizes_are_checked(boxes, scores):
    feeds = {"boxes": np.zeros(boxes, np.float32), "scores": np.zeros(scores, np.float32), "most": scalar(1, np.int64)}
    for shapes in (None, {"boxes": boxes, "scores": scores}):
        with pytest.raises(Exception, match="boxes"):
            run([make(feeds, 0)], feeds, ["y"], shapes)
