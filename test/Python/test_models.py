"""Whole models: ONNX's light ones against their shipped outputs, exporters' against torch, and all
of them through a round trip, in onnxruntime as well."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

import sardonyx

ROOT = Path(__file__).resolve().parents[2]
TRANSLATE = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release")) / "bin" / "onnx-translate"
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


def relative_error(value, expected):
    value, expected = (np.asarray(a, np.float64).ravel() for a in (value, expected))
    return np.linalg.norm(value - expected) / max(np.linalg.norm(expected), 1e-30)


def feeds_of(path):
    model = onnx.load(path)
    held = {tensor.name for tensor in model.graph.initializer}
    info = next(value for value in model.graph.input if value.name not in held)
    return {info.name: Runner.generate_dummy_data(info, name="test_" + path.stem.removeprefix("light_"))}


def round_trip(path, folder):
    """The model imported and exported again."""
    mlir, copy = folder / "model.mlir", folder / "copy.onnx"
    subprocess.run([TRANSLATE, "--onnx-to-mlir", path, "-o", mlir], check=True)
    subprocess.run([TRANSLATE, "--mlir-to-onnx", mlir, "-o", copy], check=True)
    onnx.checker.check_model(str(copy))
    return copy


def run_onnxruntime(path, feeds):
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_model(path):
    expected = numpy_helper.to_array(onnx.load_tensor(f"{path.with_suffix('')}_output_0.pb"))
    (output,) = sardonyx.InferenceSession(str(path)).run(None, feeds_of(path))
    assert output.shape == expected.shape
    assert relative_error(output, expected) <= 1e-5


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_model_round_trip(path, tmp_path):
    copy = round_trip(path, tmp_path)
    feeds = feeds_of(path)
    (before,), (after,) = (run_onnxruntime(p, feeds) for p in (path, copy))
    assert relative_error(after, before) <= 1e-6


def export_encoder(folder):
    """A small transformer encoder with open batch and sequence, as torch exports it."""
    torch = pytest.importorskip("torch")

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(100, 64)
            layer = torch.nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True)
            self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, ids):
            return self.layers(self.embedding(ids))

    torch.manual_seed(0)
    net = Encoder().eval()
    path = folder / "encoder.onnx"
    axes = {"ids": {0: "batch", 1: "seq"}}
    # The fused inference path has no ONNX form.
    torch.backends.mha.set_fastpath_enabled(False)
    torch.onnx.export(net, (torch.zeros(2, 5, dtype=torch.long),), str(path), input_names=["ids"],
                      dynamic_axes=axes, opset_version=17, dynamo=False)  # fmt: skip
    return net, path


def test_exported_encoder_at_several_shapes(tmp_path):
    torch = pytest.importorskip("torch")
    net, path = export_encoder(tmp_path)
    session = sardonyx.InferenceSession(str(path))
    for shape in [(2, 5), (1, 1), (3, 17), (4, 64)]:
        ids = np.random.default_rng(0).integers(0, 100, shape)
        with torch.no_grad():
            expected = net(torch.from_numpy(ids)).numpy()
        (output,) = session.run(None, {"ids": ids})
        assert relative_error(output, expected) <= 1e-5


def test_exported_convolutional_network(tmp_path):
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(0)
    net = models.mobilenet_v3_small(weights=None).eval()
    x = torch.randn(1, 3, 224, 224)
    path = tmp_path / "net.onnx"
    torch.onnx.export(net, (x,), str(path), input_names=["x"], opset_version=18, dynamo=False)
    with torch.no_grad():
        expected = net(x).numpy()
    (output,) = sardonyx.InferenceSession(str(path)).run(None, {"x": x.numpy()})
    assert relative_error(output, expected) <= 1e-5
    copy = round_trip(path, tmp_path)
    assert relative_error(run_onnxruntime(copy, {"x": x.numpy()})[0], expected) <= 1e-5
