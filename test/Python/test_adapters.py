"""Adapters: files to and from onnxruntime, damaged ones, and runs that take their tensors."""

import random
import struct

import ml_dtypes
import numpy as np
import onnx
import pytest

import sardonyx as sdx

ort = pytest.importorskip("onnxruntime")
ENGINES = {"onnxruntime": ort, "sardonyx": sdx}
A = np.array([3, 4, 5, 6], np.float32).reshape(4, 1)
B = np.array([7, 8, 9, 10], np.float32).reshape(1, 4)


def write(engine, path, arrays, adapter_version=7, model_version=-3):
    adapter = engine.AdapterFormat()
    adapter.set_adapter_version(adapter_version)
    adapter.set_model_version(model_version)
    adapter.set_parameters({name: engine.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()})
    adapter.export_adapter(str(path))


@pytest.mark.parametrize("reader", ENGINES)
@pytest.mark.parametrize("writer", ENGINES)
def test_files(reader, writer, tmp_path):
    arrays = {
        "a": A, "a longer name": B, "empty": np.zeros((4, 0), np.float32), "ü": np.arange(5, dtype=np.int8),
        "i": np.arange(6, dtype=np.int64).reshape(1, 2, 3), "h": np.ones(3, np.float16),
    }  # fmt: skip
    write(ENGINES[writer], tmp_path / "adapter", arrays)
    found = ENGINES[reader].AdapterFormat.read_adapter(str(tmp_path / "adapter"))
    assert (found.get_format_version(), found.get_adapter_version(), found.get_model_version()) == (1, 7, -3)
    parameters = found.get_parameters()
    assert set(parameters) == set(arrays)
    for name, array in arrays.items():
        assert parameters[name].shape() == list(array.shape)
        np.testing.assert_array_equal(parameters[name].numpy(), array)
        assert parameters[name].numpy().dtype == array.dtype


def test_bfloat16(tmp_path):
    bits = np.array([0x3F80, 0xC040], np.uint16)
    write(sdx, tmp_path / "ours", {"w": bits.view(ml_dtypes.bfloat16)})
    value = ort.AdapterFormat.read_adapter(str(tmp_path / "ours")).get_parameters()["w"]
    assert value.element_type() == 16 and value.shape() == [2]
    back = sdx.AdapterFormat.read_adapter(tmp_path / "ours").get_parameters()["w"]
    np.testing.assert_array_equal(back.numpy().view(np.uint16), bits)


def test_an_adapter_without_tensors(tmp_path):
    write(sdx, tmp_path / "none", {})
    assert ort.AdapterFormat.read_adapter(str(tmp_path / "none")).get_parameters() == {}
    assert sdx.AdapterFormat.read_adapter(tmp_path / "none").get_parameters() == {}


def test_wrong_files(tmp_path):
    with pytest.raises(sdx.NoSuchFile, match="nowhere"):
        sdx.LoraAdapter().Load(tmp_path / "nowhere")
    for data in (b"", b"TORT", b"no adapter at all", bytes(100)):
        (tmp_path / "wrong").write_bytes(data)
        for read in (sdx.LoraAdapter().Load, sdx.AdapterFormat.read_adapter):
            with pytest.raises(sdx.Fail, match="is no adapter"):
                read(str(tmp_path / "wrong"))
    write(sdx, tmp_path / "good", {"a": A})
    newer = bytearray((tmp_path / "good").read_bytes())
    (root,) = struct.unpack_from("<I", newer)
    struct.pack_into("<i", newer, root + 4, 2)
    (tmp_path / "newer").write_bytes(newer)
    with pytest.raises(sdx.Fail, match="version 2 of the format; only 1"):
        sdx.AdapterFormat.read_adapter(tmp_path / "newer")
    with pytest.raises(sdx.Fail, match="folder|directory"):
        sdx.AdapterFormat().export_adapter(tmp_path)
    for wrong in ({"a": A}, {"a": sdx.OrtValue(np.array(["x"], object))}, {"a": sdx.OrtValue(np.array(2.5))}):
        with pytest.raises(sdx.Fail, match="parameter 'a'"):
            sdx.AdapterFormat().set_parameters(wrong)


@pytest.mark.parametrize("writer", ENGINES)
def test_damaged_files(writer, tmp_path):
    """Whatever bytes there are: an adapter or a sentence."""
    write(ENGINES[writer], tmp_path / "good", {"a": A, "b": B})
    good, rng = (tmp_path / "good").read_bytes(), random.Random(1)
    for trial in range(600):
        data = bytearray(good[: rng.randrange(8, len(good))] if trial % 3 == 0 else good)
        for _ in range(rng.choice((1, 1, 4))):
            data[rng.randrange(8, len(data)) if len(data) > 8 else 0] = rng.randrange(256)
        data[4:8] = b"TORT"
        (tmp_path / "damaged").write_bytes(data)
        try:
            for value in sdx.AdapterFormat.read_adapter(tmp_path / "damaged").get_parameters().values():
                value.numpy().sum()
        except sdx.Fail as failure:
            assert "damaged adapter" in str(failure) or "of the format" in str(failure)


LORA = """m (float[4, 4] x, float[4, r] a, float[r, 4] b) => (float[4, 4] y) {
    l = MatMul(x, a) d = MatMul(l, b) y = Add(x, d) }"""


def test_runs_take_tensors_in_the_place_of_initializers(model, tmp_path):
    """As onnxruntime does, of inputs that have defaults of rank zero."""
    proto = model(LORA)
    for name, shape in (("a", (4, 0)), ("b", (0, 4))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name))
    onnx.save(proto, tmp_path / "m.onnx")
    write(ort, tmp_path / "first", {"a": A, "b": B})
    write(ort, tmp_path / "second", {"a": 2 * A, "b": B, })
    x = np.ones((4, 4), np.float32)
    for source in (str(tmp_path / "m.onnx"), proto.SerializeToString()):
        answers = []
        for engine in (ort, sdx):
            session = engine.InferenceSession(source, providers=["CPUExecutionProvider"])
            found = session.get_overridable_initializers()
            assert [(arg.name, arg.type, list(arg.shape)) for arg in found] == [
                ("a", "tensor(float)", [4, "r"]), ("b", "tensor(float)", ["r", 4]),
            ]  # fmt: skip
            assert [arg.name for arg in session.get_inputs()] == ["x"]
            given = []
            for name in ("", "first", "second", "first"):
                options = engine.RunOptions()
                if name:
                    adapter = engine.LoraAdapter()
                    adapter.Load(str(tmp_path / name))
                    options.add_active_adapter(adapter)
                given.append(session.run(None, {"x": x}, options)[0])
            answers.append(given)
        np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[1][1], x + x @ A @ B)
    (again,) = session.run_async(None, {"x": x}, run_options=options).result()
    np.testing.assert_array_equal(again, answers[1][1])
    adapter._parameters = {"c": sdx.OrtValue(A)}
    other = sdx.RunOptions()
    other.add_active_adapter(adapter)
    with pytest.raises(sdx.InvalidArgument, match="no input 'c'; it has x, a, b"):
        session.run(None, {"x": x}, other)
    for ask in (lambda: session.run(None, {"x": x, "a": A}), lambda: session.io_binding().bind_cpu_input("a", A)):
        with pytest.raises(sdx.InvalidArgument, match="'a' is an initializer of the model, .* SessionOptions.add_initializer"):
            ask()


def test_a_model_is_compiled_once_for_adapters(model, tmp_path):
    proto = model(LORA)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((4, 0), np.float32), "a"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((0, 4), np.float32), "b"))
    write(sdx, tmp_path / "first", {"a": A, "b": B})
    session, adapter = sdx.InferenceSession(proto), sdx.LoraAdapter()
    adapter.Load(tmp_path / "first")
    x = np.ones((4, 4), np.float32)
    for _ in range(3):
        options = sdx.RunOptions()
        options.add_active_adapter(adapter)
        session.run(None, {"x": x}, options)
    assert len(session._variants) == 1
    # IR versions before 4 know no defaults of inputs; what has none is not kept.
    proto.ir_version = 3
    assert sdx.InferenceSession(proto).get_overridable_initializers() == []
    assert sdx.InferenceSession(model(LORA))._source == b""


def test_runs_take_what_the_caller_leaves_out(model, tmp_path):
    session = sdx.InferenceSession(model(LORA))
    x = np.ones((4, 4), np.float32)
    write(ort, tmp_path / "first", {"a": A, "b": B})
    write(sdx, tmp_path / "second", {"b": -B})
    adapters = [sdx.LoraAdapter(), sdx.LoraAdapter()]
    for adapter, name in zip(adapters, ("first", "second")):
        adapter.Load(str(tmp_path / name))
    for count, b in ((1, B), (2, -B)):
        options = sdx.RunOptions()
        for adapter in adapters[:count]:
            options.add_active_adapter(adapter)
        np.testing.assert_array_equal(session.run(None, {"x": x}, options)[0], x + x @ A @ b)
        np.testing.assert_array_equal(session.run(None, {"x": x, "a": 2 * A}, options)[0], x + 2 * x @ A @ b)
    with pytest.raises(sdx.InvalidArgument, match="Required inputs"):
        session.run(None, {"x": x})
    write(sdx, tmp_path / "third", {"c": A})
    other, options = sdx.LoraAdapter(), sdx.RunOptions()
    other.Load(tmp_path / "third")
    options.add_active_adapter(other)
    with pytest.raises(sdx.InvalidArgument, match="no input 'c'"):
        session.run(None, {"x": x, "a": A, "b": B}, options)
    with pytest.raises(TypeError, match="LoraAdapter"):
        options.add_active_adapter("first")
