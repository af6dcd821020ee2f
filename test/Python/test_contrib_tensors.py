"""Operators of com.microsoft that move elements, take matrices as a whole or read tokens, against onnxruntime."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import sardonyx as sdx

RNG = np.random.default_rng(42)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


class Case:
    """A node; the inputs that `constants` names are initializers. `kinds`: with fixed sizes, with open ones."""

    def __init__(self, op, feeds, outputs=("out",), constants=(), tolerance=0, kinds=(False, True), **attributes):
        self.op, self.outputs, self.constants, self.attributes = op, outputs, constants, attributes
        self.tolerance, self.kinds = tolerance, kinds
        self.feeds = {name: None if value is None else np.asarray(value) for name, value in feeds.items()}


def model(cases, is_open=False):
    """All nodes in one graph, and what it is fed with."""
    nodes, inputs, outputs, weights, feeds = [], [], [], [], {}
    for i, case in enumerate(cases):
        names = [f"{name}_{i}" if value is not None else "" for name, value in case.feeds.items()]
        while not names[-1]:
            names.pop()
        results = [f"{name}_{i}" for name in case.outputs]
        nodes.append(helper.make_node(case.op, names, results, name=f"n{i}", domain="com.microsoft", **case.attributes))
        outputs += [onnx.ValueInfoProto(name=name) for name in results]
        for name, value in case.feeds.items():
            if value is None:
                continue
            if name in case.constants:
                weights.append(numpy_helper.from_array(value, f"{name}_{i}"))
                continue
            feeds[f"{name}_{i}"] = value
            shape = [f"{name}{i}_{d}" for d in range(value.ndim)] if is_open else value.shape
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(f"{name}_{i}", kind, shape))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(), feeds


def check(*cases):
    """Both engines on all cases, with fixed and with open sizes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for is_open in (False, True):
        chosen = [case for case in cases if is_open in case.kinds]
        if not chosen:
            continue
        text, feeds = model(chosen, is_open)
        wanted = onnxruntime.InferenceSession(text, options).run(None, feeds)
        got = sdx.InferenceSession(text).run(None, feeds)
        tolerances = [case.tolerance for case in chosen for _ in case.outputs]
        for g, w, tolerance in zip(got, wanted, tolerances, strict=True):
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            if tolerance:
                np.testing.assert_allclose(g.astype(float), w.astype(float), rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(g, w)


def refused(why, op, feeds, outputs=("out",), kind=NotImplementedError, **rest):
    with pytest.raises(kind, match=f"{op}.*{why}"):
        sdx.InferenceSession(model([Case(op, feeds, outputs, **rest)])[0])


def fails(why, case, **feeds):
    """A run with open sizes."""
    text, given = model([case], True)
    with pytest.raises((RuntimeError, ValueError), match=why):
        sdx.InferenceSession(text).run(None, given | {f"{name}_0": value for name, value in feeds.items()})


DTYPES = [np.float32, np.float64, np.int64]


def test_trilu():
    cases = []
    for dtype, upper in itertools.product(DTYPES, [0, 1]):
        x = (10 * floats(2, 4, 5)).astype(dtype)
        cases.append(Case("Trilu", {"X": x}, upper=upper))
        for k in (-7, -1, 0, 2, 9):
            cases.append(Case("Trilu", {"X": x, "k": np.int64(k)}, constants=["k"] if k % 2 else [], upper=upper))
    check(*cases)


def test_pad():
    x, pads, cases = floats(3, 4), np.array([1, 2, 0, 1]), []
    for mode in ["constant", "reflect", "edge"]:
        cases.append(Case("Pad", {"data": x, "pads": pads}, constants=["pads"], mode=mode))
        cases.append(Case("Pad", {"data": x, "pads": pads[None]}, kinds=[True], mode=mode))
    for value in (np.float32(2), np.array([3], np.float32)):
        cases.append(Case("Pad", {"data": x, "pads": np.array([-1, 0, 2, -2]), "value": value}, constants=["pads"]))
    check(*cases)


def test_range():
    cases = []
    for dtype in [np.float32, np.float64, np.int16, np.int32, np.int64]:
        for start, limit, delta in [(2, 9, 3), (5, -4, -2), (3, 3, 1), (4, 1, 1)]:
            for wrap in (np.asarray, np.atleast_1d):
                feeds = {name: wrap(dtype(v)) for name, v in zip(["start", "limit", "delta"], (start, limit, delta))}
                cases.append(Case("Range", feeds, kinds=[False]))
                cases.append(Case("Range", feeds, constants=list(feeds), kinds=[False]))
        cases.append(Case("Range", {"start": dtype(1), "limit": dtype(6)}))
    check(*cases)


def test_gather_nd():
    x, words, cases = floats(3, 4, 2), np.array([["a", "b"], ["c", "d"]], object), []
    for dtype in (np.int32, np.int64):
        for at in ([[0, 1], [2, -1]], [[[2]], [[0]]], [1, 2, 1]):
            cases.append(Case("GatherND", {"data": x, "indices": np.array(at, dtype)}, kinds=[False]))
        cases.append(Case("GatherND", {"data": words, "indices": np.array([[1], [0]], dtype)}, kinds=[False]))
    check(*cases)


def test_expand_dims():
    x = floats(3, 4)
    check(*(Case("ExpandDims", {"X": x, "axis": np.int32(axis)}, constants=["axis"]) for axis in range(-3, 3)))


def test_unique():
    lists = ([2, 1, 1, 3, 4, 3], [], [-0.0, 0.0, 5], [7])
    check(*(Case("Unique", {"x": np.array(x, np.float32)}, ["y", "idx", "counts"]) for x in lists))
    refused("rank 2", "Unique", {"x": floats(2, 2)}, ["y", "idx", "counts"])


def test_unfold_tensor():
    cases = []
    for dim, size, step in [(-1, 3, 1), (0, 2, 2), (1, 2, 3), (-2, 5, 1), (2, 4, 4)]:
        cases.append(Case("UnfoldTensor", {"input": floats(4, 5, 9)}, dim=dim, size=size, step=step))
        cases.append(Case("UnfoldTensor", {"input": np.arange(9)}, dim=-1, size=size, step=step))
    check(*cases)
    refused("'dim' is 3", "UnfoldTensor", {"input": floats(4, 5)}, dim=3, size=1)
    refused("must be positive", "UnfoldTensor", {"input": floats(4, 5)}, size=2, step=0)
    refused("'size' is 6", "UnfoldTensor", {"input": floats(4, 5)}, size=6)


def test_grid_sample():
    feeds = {"X": floats(2, 3, 5, 4), "Grid": 1.3 * floats(2, 6, 3, 2)}
    forms = itertools.product(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"], [0, 1])
    check(*(Case("GridSample", feeds, tolerance=2e-5, mode=m, padding_mode=p, align_corners=a) for m, p, a in forms))
    refused("mode 'cubic'", "GridSample", feeds, mode="cubic")


def test_crop_and_resize():
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.3, 0.8, 0.7], [0.9, 0.8, 0.2, 0.1], [-0.2, 0.1, 0.5, 1.3]], np.float32)
    feeds = {"X": floats(2, 3, 6, 7), "rois": boxes, "batch_indices": np.array([0, 1, 1, 0], np.int32)}
    for mode, size in itertools.product(["bilinear", "nearest"], [(4, 5), (1, 3), (2, 1)]):
        feeds = feeds | {"crop_size": np.array(size, np.int32)}
        rest = {"constants": ["crop_size"], "kinds": [False], "tolerance": 1e-5, "mode": mode}
        check(Case("CropAndResize", feeds, extrapolation_value=-3.0, **rest))
    check(Case("CropAndResize", feeds, tolerance=1e-5))
    refused("mode 'cubic'", "CropAndResize", feeds, mode="cubic")


def test_inverse():
    cases = []
    for dtype, tolerance in [(np.float32, 1e-3), (np.float64, 1e-9), (np.float16, 2e-2)]:
        for shape in [(1, 1), (2, 2), (3, 4, 4), (2, 2, 9, 9), (0, 3, 3), (20, 20)]:
            # Pivots are needed: the diagonal is small.
            x = floats(*shape) / shape[-1] ** 0.5 + np.roll(4 * np.eye(shape[-1]), 1, 0)
            cases.append(Case("Inverse", {"X": x.astype(dtype)}, tolerance=tolerance))
    check(*cases)
    refused("not square", "Inverse", {"X": floats(2, 3)}, kind=sdx.InvalidGraph)
    fails("not square", Case("Inverse", {"X": floats(3, 3)}), X=floats(3, 2))


def test_cdist():
    cases = []
    types = [(np.float32, 1e-4), (np.float64, 1e-10)]
    for (dtype, tolerance), metric in itertools.product(types, ["euclidean", "sqeuclidean"]):
        a, b = floats(5, 7, dtype=dtype), floats(3, 7, dtype=dtype)
        cases += [Case("CDist", {"A": a, "B": v}, tolerance=tolerance, metric=metric) for v in (b, b[:1])]
    check(*cases)
    refused("metric 'cosine'", "CDist", {"A": a, "B": b}, metric="cosine")


def test_dynamic_time_warping():
    cases = []
    for shape in [(1, 1), (4, 6), (1, 7), (7, 1), (1, 13, 11), (40, 33)]:
        # Costs that are equal leave several paths.
        for costs in (floats(*shape), RNG.integers(0, 2, shape).astype(np.float32)):
            cases.append(Case("DynamicTimeWarping", {"input": costs}))
    check(*cases)
    refused("one matrix", "DynamicTimeWarping", {"input": floats(3)})


def test_ngram_repeat_block():
    cases = []
    for length, shape in itertools.product([1, 2, 3, 5], [(3, 20), (2, 4), (2, 1), (1, 3)]):
        ids = RNG.integers(0, 4, shape)
        cases.append(Case("NGramRepeatBlock", {"input_ids": ids, "scores": floats(shape[0], 6)}, ngram_size=length))
    # Only tokens that are forbidden need a score.
    ids = np.array([[9, 1, 2, 3, 1, 2], [1, 2, 0, 1, 7, 8]])
    cases.append(Case("NGramRepeatBlock", {"input_ids": ids, "scores": floats(2, 4)}, ngram_size=3))
    check(*cases)
    refused("'ngram_size' is 0", "NGramRepeatBlock", {"input_ids": ids, "scores": floats(1, 6)}, ngram_size=0)


def test_murmur_hash():
    words = np.array([["", "a", "ab", "abc"], ["abcd", "hello world", "größe", "日本語"]], object)
    cases = []
    for positive in (0, 1):
        for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
            x = (1e6 * floats(3, 4, dtype=np.float64)).astype(np.int64).astype(dtype)
            cases.append(Case("MurmurHash3", {"X": x}, positive=positive))
            cases.append(Case("MurmurHash3", {"X": x}, positive=positive, seed=42))
        cases.append(Case("MurmurHash3", {"X": words}, positive=positive, seed=7))
    check(*cases)


TEXTS = np.array([["Hello World", "I love computer science !"], ["", " aa  bb,größe 日本語 "]], object)


SPLITS = [
    {"separators": [" "], "mincharnum": 1},
    {"separators": [" ", ","], "mincharnum": 2},
    {"separators": ["[ ,]+", "l", "ö"], "mincharnum": 1},
    {"separators": [""], "mincharnum": 1},
    {"tokenexp": ".", "mincharnum": 1},
    {"tokenexp": "[a-z]+", "mincharnum": 1},
    {"tokenexp": "[a-zö]+|本", "mincharnum": 3},
    {"tokenexp": "a*b*", "mincharnum": 1},
    {"separators": ["Z"], "mincharnum": 40},
]


def test_tokenizer():
    cases = []
    for split, mark in itertools.product(SPLITS, [0, 1]):
        cases.append(Case("Tokenizer", {"X": TEXTS}, mark=mark, pad_value="#", **split))
        cases.append(Case("Tokenizer", {"X": TEXTS[1]}, mark=mark, pad_value="", **split))
        for shape in [(0,), (2, 0)]:
            none = {"X": np.zeros(shape, object)}
            cases.append(Case("Tokenizer", none, kinds=[False], mark=mark, pad_value="#", **split))
    check(*cases)


def test_tokenizer_that_cannot_be():
    feeds, rest = {"X": TEXTS}, {"mark": 0, "pad_value": "#"}
    refused("mincharnum is 0", "Tokenizer", feeds, separators=[" "], mincharnum=0, **rest)
    refused("neither separators", "Tokenizer", feeds, mincharnum=1, **rest)
    refused("each token is one character", "Tokenizer", feeds, tokenexp=".", mincharnum=2, **rest)
    refused("rank 3", "Tokenizer", {"X": TEXTS[None]}, separators=[" "], mincharnum=1, **rest)
    fails("RE2", Case("Tokenizer", feeds, separators=["("], mincharnum=1, **rest))


def test_bifurcation_detector():
    source, current = np.array([1, 5, 3, 4, 2, 7, 3, 9]), np.array([2, 3])
    outputs, cases = ["tokens", "match"], []
    for start, predicted in [(0, None), (0, source), (3, [4, 2, 7, 3, 0]), (3, [4, 2, 8, 3, 0]), (8, [])]:
        feeds = {"src": source, "cur": current, "prev": np.array([start])}
        if predicted is not None:
            feeds["pred"] = np.append(np.array(predicted, np.int64), 6)[: len(source) + 1 - start]
        cases.append(Case("BifurcationDetector", feeds, outputs))
        cases.append(Case("BifurcationDetector", feeds, outputs, min_ngram_size=2, max_ngram_size=4))
    check(*cases)
    fails("one predicted token more", cases[-1], prev=np.array([2]))


def test_branches():
    flat, grouped, cases = floats(2, 3, 12), floats(2, 3, 4, 3), []
    for x, rest in [(flat, {"num_branches": 4}), (grouped, {})]:
        rest = {"tolerance": 1e-5, "kinds": [False]} | rest
        for scale in (None, floats(3), floats(4, 3), floats(12)):
            cases.append(Case("BranchwiseRMSNorm", {"X": x, "scale": scale}, epsilon=1e-3, **rest))
        gates = [floats(2, 3, 4), floats(2, 3, 4, 1), floats(2, 3, 4, 3)]
        for gate in gates + [floats(2, 3, 12)] * bool(rest.get("num_branches")):
            cases.append(Case("HyperConnectionPreMix", {"streams": x, "pre_mix": gate}, reduction_scale=0.5, **rest))
        for gate, mix in itertools.product(gates, [None, floats(2, 3, 4, 4)]):
            feeds = {"streams": x, "block_output": floats(2, 3, 3), "post_mix": gate, "stream_mix": mix}
            cases.append(Case("HyperConnectionPostMix", feeds, **rest))
    for dtype, tolerance in [(np.float32, 1e-6), (np.float16, 2e-3)]:
        x = floats(3, 5, dtype=dtype)
        cases.append(Case("ScaledSiLU", {"X": x}, tolerance=tolerance, alpha=1.7))
        cases.append(Case("ScaledSiLU", {"X": x, "scale": np.float32(0.3)}, tolerance=tolerance))
    for empty in [floats(0, 2, 12), floats(2, 0, 12)]:
        feeds = {"streams": empty, "pre_mix": floats(*empty.shape[:2], 4)}
        cases.append(Case("HyperConnectionPreMix", feeds, kinds=[False], num_branches=4))
        cases.append(Case("BranchwiseRMSNorm", {"X": empty, "scale": floats(12)}, kinds=[False], num_branches=4))
    check(*cases)
    refused("rank 1", "HyperConnectionPreMix", {"streams": grouped, "pre_mix": floats(4)})


def test_engram():
    cases = []
    for dtype, tolerance in [(np.float32, 1e-5), (np.float16, 4e-3)]:
        names, scales = ["key", "query"], ["key_norm_scale", "query_norm_scale", "conv_norm_scale"]
        feeds = {name: floats(2, 3, 4, 8, dtype=dtype) for name in names} | {"value": floats(2, 3, 8, dtype=dtype)}
        feeds |= {name: floats(4, 8, dtype=dtype) for name in scales}
        cases.append(Case("EngramGate", feeds, ["output", "normed"], tolerance=tolerance, epsilon=1e-3))
    for dtype in (np.int32, np.int64):
        ids, past = RNG.integers(0, 99, (2, 7)).astype(dtype), RNG.integers(0, 99, (2, 2)).astype(dtype)
        factors, offsets = RNG.integers(1, 2**31 - 1, 3).astype(dtype), np.arange(4, dtype=dtype)
        feeds = {"input_ids": ids, "multipliers": factors, "vocab_sizes": np.array([7, 11, 13, 17], dtype)}
        rest = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 5}
        for more in ({}, {"past_ids": past, "head_offsets": offsets}):
            cases.append(Case("NGramHashMapping", feeds | more, ["hashes", "present"], **rest))
    check(*cases)
    feeds = {"input_ids": ids, "multipliers": factors, "vocab_sizes": offsets, "a": None, "b": None, "eos": past[0, 0]}
    refused("input 'eos_token_id'", "NGramHashMapping", feeds, **rest)


def test_rotary_embedding_of_three_streams():
    cases = []
    tables = {name: floats(20, 6) for name in ("cos", "sin")}
    places = RNG.integers(0, 20, (3, 2, 5))
    for x, layout, interleaved in itertools.product([floats(2, 5, 36), floats(2, 3, 5, 12)], [0, 1], [0, 1]):
        sections = [2, 3, 1] if layout == 0 else [2, 2, 2]
        feeds = {"input": x, "places": places, **tables}
        rest = {"mrope_section": sections, "mrope_layout": layout, "interleaved": interleaved}
        rest |= {"num_heads": 3} if x.ndim == 3 else {}
        cases.append(Case("MRotaryEmbedding", feeds, tolerance=1e-5, kinds=[False], **rest))
    check(*cases)
    refused("add up to 5", "MRotaryEmbedding", feeds, mrope_section=[1, 2, 2])


def test_conv_transpose_with_dynamic_pads():
    cases, x, w, b = [], floats(1, 2, 5, 4), floats(2, 3, 3, 2), floats(3)
    for pads in (np.array([0, 0, 0, 0]), np.array([1, 0, 2, 1])):
        feeds = {"X": x, "W": w, "Pads": pads, "B": b}
        cases.append(Case("ConvTransposeWithDynamicPads", feeds, tolerance=1e-5, strides=[2, 1], kernel_shape=[3, 2]))
    cases.append(Case("SampleOp", {"X": x}))
    check(*cases)
    refused("auto_pad", "ConvTransposeWithDynamicPads", feeds, auto_pad="SAME_UPPER")
