"""What a model brings along, or a caller in its place: files of weights, options in its metadata, entries that tell of them."""

import json

import numpy as np
import onnx
import pytest

import sardonyx as sdx

ort = pytest.importorskip("onnxruntime")

SCALE = "m (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }"
X = np.ones((2, 3), np.float32)


def external(model, tmp_path):
    """The path of a model whose weights lie in m.data, and what they are; and its bytes."""
    proto = model("m (float[N, 1000] x) => (float[N, 1000] y) { s = Mul(x, w) y = Add(s, b) }")
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(1000).astype(np.float32) for name in "wb"}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="sub/m.data", size_threshold=0)
    return str(tmp_path / "m.onnx"), weights


@pytest.mark.parametrize("engine", [ort, sdx], ids=["onnxruntime", "sardonyx"])
@pytest.mark.parametrize("by", ["path", "bytes"])
def test_files_in_memory(engine, by, model, tmp_path):
    (tmp_path / "sub").mkdir()
    path, weights = external(model, tmp_path)
    data = (tmp_path / "sub" / "m.data").read_bytes()
    (tmp_path / "sub" / "m.data").unlink()
    source = path if by == "path" else open(path, "rb").read()
    x = np.ones((2, 1000), np.float32)
    for buffer in (data, bytearray(data + b"more"), np.frombuffer(data, np.uint8)):
        options = engine.SessionOptions()
        options.add_external_initializers_from_files_in_memory(["sub/m.data"], [buffer], [len(data)])
        session = engine.InferenceSession(source, options)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x * weights["w"] + weights["b"])
    file = ["sub/m.data"]
    for names, buffers, lengths in ((["a", "b"], [data], [1]), (file, [data[:100]], [200]), (file, [data[:100]], [100])):
        with pytest.raises(Exception):
            options = engine.SessionOptions()
            options.add_external_initializers_from_files_in_memory(names, buffers, lengths)
            engine.InferenceSession(source, options)


def test_names_of_files_in_memory():
    options = sdx.SessionOptions()
    for name in ("", "/etc/passwd", "../m.data", "a/../../b"):
        with pytest.raises(sdx.InvalidArgument, match="named relative to the model"):
            options.add_external_initializers_from_files_in_memory([name], [b"x"], [1])
    options.add_external_initializers_from_files_in_memory(["a"], [b"x"], [1])
    with pytest.raises(sdx.Fail, match="'a' has already been added"):
        options.add_external_initializers_from_files_in_memory(["a"], [b"x"], [1])
    with pytest.raises(sdx.InvalidArgument, match="'b' is to have 2 bytes, its buffer has 1"):
        options.add_external_initializers_from_files_in_memory(["b"], [b"x"], [2])


def test_a_folder_for_the_data_of_a_model_in_memory(model, tmp_path):
    (tmp_path / "sub").mkdir()
    path, weights = external(model, tmp_path)
    data, x = open(path, "rb").read(), np.ones((1, 1000), np.float32)
    for engine in (ort, sdx):
        options = engine.SessionOptions()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
        (y,) = engine.InferenceSession(data, options).run(None, {"x": x})
        np.testing.assert_array_equal(y[0], weights["w"] + weights["b"])


@pytest.mark.parametrize("least, outside", [("", 1), ("100", 2), ("10000", 0)])
def test_weights_of_the_optimised_model_in_a_file(model, tmp_path, least, outside):
    proto = model("m (float[N, 300] x) => (float[N, 300] y) { a = Identity(x) b = Mul(a, w) y = Mul(b, v) }")
    for name, array in (("w", np.arange(300)), ("v", np.full(50, 2))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    proto.graph.node[2].input[1] = "t"
    proto.graph.node.insert(2, onnx.helper.make_node("Tile", ["v", "six"], ["t"]))
    proto.graph.input.append(onnx.helper.make_tensor_value_info("six", 7, [1]))
    options = sdx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
    if least:
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", least)
    feed = {"x": np.ones((2, 300), np.float32), "six": np.array([6])}
    want = sdx.InferenceSession(proto, options).run(None, feed)[0]
    bare = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    places = [{e.key: e.value for e in t.external_data}.get("location") for t in bare.graph.initializer if t.external_data]
    # Quantisers add operators of com.microsoft to the file and rely on onnxruntime's import of it.
    assert ("com.microsoft", 1) in [(entry.domain, entry.version) for entry in bare.opset_import]
    assert places == ["weights.bin"] * outside and (tmp_path / "weights.bin").exists() == bool(outside)
    for engine in (ort, sdx):
        np.testing.assert_array_equal(engine.InferenceSession(str(tmp_path / "m.onnx")).run(None, feed)[0], want)


def test_wrong_entries(model, tmp_path):
    for key, text, kind in (
        ("optimized_model_external_initializers_file_name", "../weights.bin", sdx.InvalidArgument),
        ("optimized_model_external_initializers_min_size_in_bytes", "much", sdx.InvalidArgument),
        ("load_model_format", "ORT", sdx.NotImplemented),
        ("save_model_format", "ORT", sdx.NotImplemented),
    ):
        options = sdx.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "m.onnx")
        options.add_session_config_entry(f"session.{key}", text)
        with pytest.raises(kind, match="weights.bin|much|ORT"):
            sdx.InferenceSession(model(SCALE), options)
        assert not list(tmp_path.glob("*.onnx"))


def test_options_of_the_model_itself(model, monkeypatch):
    proto = model(SCALE)
    given = {"intra_op_num_threads": 2, "inter_op_num_threads": 5, "graph_optimization_level": 99, "execution_mode": 0, "enable_profiling": 0}
    onnx.helper.set_model_props(proto, {"ort_config": json.dumps({"session_options": given})})
    own = sdx.SessionOptions()
    for options in (own, None):
        session = sdx.InferenceSession(proto, options, read_config_from_model=1)
        assert session.get_session_options().intra_op_num_threads == 2
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * [1, 2, 3])
    assert own.intra_op_num_threads == 0  # the caller's own stay as they are
    assert sdx.InferenceSession(proto).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert sdx.InferenceSession(proto).get_session_options().intra_op_num_threads == 2
    assert sdx.InferenceSession(model(SCALE)).get_session_options().intra_op_num_threads == 0
    for wrong in ("no json", "[1]", '{"session_options": {"execution_mode": 7}}', '{"session_options": {"intra_op_num_threads": "x"}}'):
        onnx.helper.set_model_props(proto, {"ort_config": wrong})
        with pytest.raises(sdx.InvalidGraph, match="ort_config"):
            sdx.InferenceSession(proto)
