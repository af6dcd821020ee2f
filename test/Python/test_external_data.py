"""External data behind links: in the cache of the Hugging Face hub, beside the model, and elsewhere."""

import os

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import sardonyx

X = np.linspace(-1, 2, 12).astype(np.float32).reshape(3, 4)


def run(path):
    return sardonyx.InferenceSession(path).run(None, {"x": X})[0]


@pytest.fixture
def hub(tmp_path):
    """A snapshot of the Hugging Face hub's cache, and what its files hold."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[3,4] x) => (float[3,3] y) { y = MatMul(x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(X.T.copy(), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.onnx_data", size_threshold=0)
    snapshot = tmp_path / "models--a--b" / "snapshots" / "rev" / "onnx"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir()
    return snapshot, blobs, [(tmp_path / name).read_bytes() for name in ("m.onnx", "m.onnx_data")]


def place(folder, blobs, data, links):
    for name, content, is_link in zip(("m.onnx", "m.onnx_data"), data, links):
        target = blobs / f"{name}-blob" if is_link else folder / name
        target.write_bytes(content)
        if is_link:
            os.symlink(os.path.relpath(target, folder), folder / name)


@pytest.mark.parametrize("links", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_links_into_the_blobs_of_a_cache(hub, links, tmp_path):
    snapshot, blobs, data = hub
    place(snapshot, blobs, data, links)
    np.testing.assert_allclose(run(snapshot / "m.onnx"), X @ X.T, rtol=1e-5)
    os.symlink(snapshot, tmp_path / "there")
    np.testing.assert_allclose(run(tmp_path / "there" / "m.onnx"), X @ X.T, rtol=1e-5)


def test_links_beside_the_model_behind_a_link(hub, tmp_path):
    """Any folder will do for the real files: the model's own."""
    _, _, data = hub
    real, folder = tmp_path / "real", tmp_path / "plain"
    (real / "sub").mkdir(parents=True)
    folder.mkdir()
    place(folder, real, data, (1, 0))
    (folder / "m.onnx_data").rename(real / "sub" / "weights")
    os.symlink(real / "sub" / "weights", folder / "m.onnx_data")
    np.testing.assert_allclose(run(folder / "m.onnx"), X @ X.T, rtol=1e-5)


def test_links_to_anywhere_else_are_refused(hub, tmp_path):
    snapshot, blobs, data = hub
    other = tmp_path / "models--evil--c" / "blobs"
    other.mkdir(parents=True)
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder, target in ((snapshot, other), (plain, blobs), (plain, tmp_path / "blobs")):
        target.mkdir(exist_ok=True)
        for name in ("m.onnx", "m.onnx_data"):
            (folder / name).unlink(missing_ok=True)
        place(folder, target, data, (0, 1))
        with pytest.raises(sardonyx.errors.InvalidGraph, match="is a link that leaves the model's folder"):
            run(folder / "m.onnx")
    # A folder that is called so is no cache, and blobs that are a link are not the cache's own.
    fake = tmp_path / "snapshots" / "rev"
    fake.mkdir(parents=True)
    place(fake, tmp_path / "blobs", data, (0, 1))
    with pytest.raises(sardonyx.errors.InvalidGraph, match="is a link that leaves the model's folder"):
        run(fake / "m.onnx")
    # Nor does a folder that the caller names bring the model's along.
    (tmp_path / "given").mkdir()
    options = sardonyx.SessionOptions()
    options.external_data_dir = tmp_path / "given"
    (snapshot / "m.onnx_data").unlink()
    place(snapshot, blobs, data, (0, 1))
    os.symlink(snapshot / "m.onnx_data", tmp_path / "given" / "m.onnx_data")
    with pytest.raises(sardonyx.errors.InvalidGraph, match="is a link that leaves the model's folder"):
        sardonyx.InferenceSession(snapshot / "m.onnx", options)
