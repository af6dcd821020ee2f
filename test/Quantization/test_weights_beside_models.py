"""Models whose weights lie in files beside them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from sardonyx.quantization.matmul_nbits_quantizer import GPTQWeightOnlyQuantConfig, MatMulNBitsQuantizer
from sardonyx.quantization.model_files import array_of

TEXT = "m (float[N, 64] x) => (float[N, 64] y) { a = MatMul(x, w) b = Add(a, c) y = MatMul(b, v) }"


@pytest.fixture
def made(model, random, tmp_path):
    weights = {"w": (64, 96), "c": (96,), "v": (96, 64)}
    result = model(TEXT, **{name: random.normal(0, 1, shape).astype(np.float32) for name, shape in weights.items()})
    folder = tmp_path / "model"
    folder.mkdir()
    copy = onnx.ModelProto.FromString(result.SerializeToString())
    onnx.save_model(copy, folder / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    return result, folder / "m.onnx"


def test_arrays_are_mapped(made):
    whole, path = made
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        exact = next(numpy_helper.to_array(each) for each in whole.graph.initializer if each.name == tensor.name)
        np.testing.assert_array_equal(array_of(tensor, str(path.parent)), exact)
        assert isinstance(array_of(tensor, str(path.parent)), np.memmap)


def test_arrays_outside_of_the_folder_are_refused(made, tmp_path):
    _, path = made
    tensor = onnx.load(path, load_external_data=False).graph.initializer[0]
    (tmp_path / "secret.bin").write_bytes(bytes(10**5))
    next(entry for entry in tensor.external_data if entry.key == "location").value = "../secret.bin"
    with pytest.raises(ValueError, match="the data of '.*' lie outside of the model's folder"):
        array_of(tensor, str(path.parent))


@pytest.mark.parametrize("samples", [False, True])
def test_weights_of_few_bits_are_those_of_the_whole_model(samples, made, random, tmp_path):
    whole, path = made
    data = [{"x": random.normal(0, 1, (8, 64)).astype(np.float32)}]

    def quantise(source):
        config = GPTQWeightOnlyQuantConfig(data, block_size=32) if samples else None
        quantizer = MatMulNBitsQuantizer(source, 4, 32, True, algo_config=config)
        quantizer.process()
        return quantizer.model.model

    mine, exact = quantise(str(path)), quantise(whole)
    mine_tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in mine.graph.initializer}
    exact_tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in exact.graph.initializer}
    assert mine_tensors.keys() == exact_tensors.keys()
    for name, value in exact_tensors.items():
        np.testing.assert_array_equal(mine_tensors[name], value)
