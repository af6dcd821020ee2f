"""Maps, in and out: Python's dicts are the reference."""

import numpy as np
import onnxruntime
import pytest
from graphs import make, run
from onnx import TensorProto, helper

import sardonyx as sdx

NUMBERS = {np.int64: TensorProto.INT64, np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, str: TensorProto.STRING}


def map_type(key, value):
    return helper.make_map_type_proto(NUMBERS[key], helper.make_tensor_type_proto(NUMBERS[value], None))


def model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", [helper.make_value_info(*i) for i in inputs], [helper.make_value_info(*o) for o in outputs])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def tensor_type(dtype, shape=None):
    return helper.make_tensor_type_proto(NUMBERS[dtype], shape)


def zip_map(labels, shape, key):
    attribute = {"classlabels_strings" if key is str else "classlabels_int64s": labels}
    node = helper.make_node("ZipMap", ["x"], ["z"], name="zip", domain="ai.onnx.ml", **attribute)
    return model([node], [("x", tensor_type(np.float32, shape))], [("z", helper.make_sequence_type_proto(map_type(key, np.float32)))])


def on_map(op, key, value, result, **attributes):
    node = helper.make_node(op, ["m"], ["y"], name="node", domain="ai.onnx.ml", **attributes)
    return model([node], [("m", map_type(key, value))], [("y", tensor_type(result))])


@pytest.mark.parametrize("key, labels", [(np.int64, [3, -1, 2**40]), (str, ["b", "", "ä ☃"]), (np.int64, [0]), (str, ["only"])])
@pytest.mark.parametrize("shape", [["n", "c"], ["n", None], None])
def test_zip_map(key, labels, shape):
    onnx_model = zip_map(labels, shape, key)
    session, other = make(onnx_model), onnxruntime.InferenceSession(onnx_model.SerializeToString())
    assert session.get_outputs()[0].type == other.get_outputs()[0].type == f"seq(map({'string' if key is str else 'int64'},tensor(float)))"
    for rows in (0, 1, 5, 300):
        x = np.random.default_rng(rows).standard_normal((rows, len(labels))).astype(np.float32)
        got = run(session, x)[0]
        assert got == [dict(zip(labels, row.tolist())) for row in x]
        assert got == other.run(None, {"x": x})[0]
        assert [list(d) for d in got] == [sorted(labels)] * rows
        assert all(type(v) is float for d in got for v in d.values())
    with pytest.raises(sdx.Fail, match="node 'zip' .ml.ZipMap.: there are not as many class labels as columns"):
        run(session, np.zeros((2, len(labels) + 1), np.float32))


def test_zip_map_of_a_row():
    session = make(zip_map([5, 4], ["c"], np.int64))
    assert run(session, np.float32([0.25, 0.75]))[0] == [{5: 0.25, 4: 0.75}]


@pytest.mark.parametrize("labels, shape, why", [
    (["a", "b", "a"], [2, 3], "no class labels, or one twice"),
    (["a", "b"], [2, 3], "not as many class labels as columns"),
])  # fmt: skip
def test_zip_maps_that_are_refused(labels, shape, why):
    with pytest.raises((sdx.NotImplemented, sdx.InvalidGraph), match=why):
        make(zip_map(labels, shape, str))


KINDS = [(k, v) for k in (np.int64, str) for v in (np.int64, np.float32, np.float64, str)]


def a_map(key, value, count, seed=1):
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.arange(-count, count))[:count].tolist()
    values = (rng.standard_normal(count) * 100).astype(np.int64 if value is np.int64 else np.float32).tolist()
    text = lambda items, t: [f"t{i}" for i in items] if t is str else items
    return dict(zip(text(keys, key), text(values, value)))


@pytest.mark.parametrize("key, value", KINDS)
def test_maps_pass_through(key, value):
    kind = map_type(key, value)
    # Identity takes no map; a graph may give its input back.
    for kind, wrap in ((kind, lambda m: m), (helper.make_sequence_type_proto(kind), lambda m: [m, {}, m])):
        session = make(model([], [("m", kind)], [("m", kind)]))
        assert session.get_inputs()[0].type == session.get_outputs()[0].type
        for count in (0, 1, 40):
            m = wrap(a_map(key, value, count))
            assert run(session, m)[0] == m


@pytest.mark.parametrize("key, value", [(k, v) for k, v in KINDS if (k, v) not in ((np.int64, np.int64), (str, str))])
def test_dict_vectorizer(key, value):
    for count in (1, 2, 17):
        m = a_map(key, value, count)
        vocabulary = [*reversed(m), *(["other", ""] if key is str else [10**6, 10**7])]
        name = "string_vocabulary" if key is str else "int64_vocabulary"
        session = make(on_map("DictVectorizer", key, value, value, **{name: vocabulary}))
        # A key that the vocabulary lacks has no column.
        for given in (m, {}, {**m, ("new" if key is str else 77777): next(iter(m.values()))}):
            got = run(session, given)[0]
            assert got.shape == (1, len(vocabulary)) and got.dtype == (object if value is str else value)
            assert got[0].tolist() == [given.get(k, "" if value is str else 0) for k in vocabulary]


def test_dict_vectorizers_that_are_refused():
    with pytest.raises(sdx.NotImplemented, match="no vocabulary of the type of the map's keys"):
        make(on_map("DictVectorizer", str, np.float32, np.float32, int64_vocabulary=[1]))
    with pytest.raises(sdx.NotImplemented, match="its vocabulary has a key twice"):
        make(on_map("DictVectorizer", str, np.float32, np.float32, string_vocabulary=["a", "b", "a"]))


CASTS = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": str}


@pytest.mark.parametrize("cast_to", CASTS)
@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
def test_cast_map_of_floats(cast_to, form):
    attributes = {"cast_to": cast_to, "map_form": form, **({"max_map": 6} if form == "SPARSE" else {})}
    onnx_model = on_map("CastMap", np.int64, np.float32, CASTS[cast_to], **attributes)
    session, other = make(onnx_model), onnxruntime.InferenceSession(onnx_model.SerializeToString())
    for m in ({3: 1.5, 1: -2.75, 5: 1e7}, {0: 0.125}):
        got, want = run(session, m)[0], other.run(None, {"m": m})[0]
        assert got.shape == want.shape and got.dtype == want.dtype and got.tolist() == want.tolist()
    assert run(session, {})[0].shape == (1, 6 if form == "SPARSE" else 0)
    if form == "SPARSE":
        for key in (-1, 6):
            with pytest.raises(sdx.Fail, match=f"node 'node' .ml.CastMap.: key {key} is none from 0 to 5"):
                run(session, {key: 1.0})
    else:
        assert run(session, {-7: 2.0, -9: 1.0})[0].tolist() == [[1, 2] if cast_to != "TO_STRING" else ["1.000000", "2.000000"]]


@pytest.mark.parametrize("cast_to, want", [("TO_FLOAT", [[0, 1.5, -3]]), ("TO_STRING", [["0.f", "1.5", "-3"]])])
def test_cast_map_of_strings(cast_to, want):
    session = make(on_map("CastMap", np.int64, str, CASTS[cast_to], cast_to=cast_to, map_form="SPARSE", max_map=3))
    assert run(session, {2: "-3", 1: "1.5"})[0].tolist() == want
    integers = make(on_map("CastMap", np.int64, str, np.int64, cast_to="TO_INT64"))
    assert run(integers, {2: "-3", 1: "15"})[0].tolist() == [[15, -3]]
    with pytest.raises(sdx.Fail, match="CastMap.: the string 'x' is no number"):
        run(integers, {2: "x"})


def test_cast_maps_that_are_refused():
    with pytest.raises(sdx.errors.InvalidGraph, match="attribute 'map_form' is 'DENS'"):
        make(on_map("CastMap", np.int64, np.float32, np.float32, map_form="DENS"))
    with pytest.raises(sdx.NotImplemented, match="'max_map' is no length of a row"):
        make(on_map("CastMap", np.int64, np.float32, np.float32, map_form="SPARSE", max_map=0))
    with pytest.raises(sdx.errors.InvalidGraph, match="attribute 'cast_to' is 'TO_DOUBLE'"):
        make(on_map("CastMap", np.int64, np.float32, np.float32, cast_to="TO_DOUBLE"))


@pytest.mark.parametrize("value, kind, feed, why", [
    (np.int64, str, {"a": 1.5}, r"input 'm' is a map with values of int64, got the value 1.5"),
    (np.int64, str, {"a": True}, r"values of int64, got the value True"),
    (np.int64, str, {"a": 2**63}, r"got one that is too large"),
    (np.float32, str, {"a": "x"}, r"values of float, got the value 'x'"),
    (np.float32, str, {1: 1.0}, r"keys of string, got the key 1"),
    (np.float32, np.int64, {"a": 1.0}, r"keys of int64, got the key 'a'"),
    (str, np.int64, {1: 2}, r"values of string, got the value 2"),
    (np.float32, str, [1.0], r"input 'm' is a map, got list"),
    (np.float32, str, None, r"has the type map\(string,tensor\(float\)\), got nothing"),
])  # fmt: skip
def test_wrong_maps(value, kind, feed, why):
    name, words = ("string_vocabulary", ["a"]) if kind is str else ("int64_vocabulary", [1])
    session = make(on_map("DictVectorizer", kind, value, value, **{name: words}))
    with pytest.raises(sdx.InvalidArgument, match=why):
        run(session, feed)


def test_numpy_scalars_are_numbers():
    session = make(on_map("DictVectorizer", str, np.int64, np.int64, string_vocabulary=["a", "b"]))
    assert run(session, {"b": np.int32(3)})[0].tolist() == [[0, 3]]


def test_maps_outlive_the_session_and_feed_the_next_operator():
    """A batch of maps that share their keys is taken apart again, one by one."""
    session = make(zip_map(["x", "y"], ["n", 2], str))
    maps = run(session, np.arange(2000, dtype=np.float32).reshape(1000, 2))[0]
    del session
    assert maps[999] == {"x": 1998.0, "y": 1999.0}
    vectorizer = make(on_map("DictVectorizer", str, np.float32, np.float32, string_vocabulary=["y", "x"]))
    assert [run(vectorizer, m)[0].tolist() for m in maps[:3]] == [[[1, 0]], [[3, 2]], [[5, 4]]]


def test_maps_come_from_the_cache(tmp_path):
    options = sdx.SessionOptions()
    options.cache_dir = str(tmp_path)
    bytes = zip_map(["x", "y"], ["n", 2], str).SerializeToString()
    for from_cache in (False, True):
        session = sdx.InferenceSession(bytes, options)
        assert session.from_cache == from_cache
        assert run(session, np.float32([[1, 2]]))[0] == [{"x": 1.0, "y": 2.0}]
