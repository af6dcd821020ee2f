"""Trained networks with held-out data, for accuracies that mean something.

`Networks` holds, each as NAME.onnx with weights of f16 (the training rounds to them) and NAME.npz with data of bytes:

    digits_cnn   MobileNet-like, scikit-learn's digits of 8 x 8; top-1 of 898 held-out images, in %
    text_lm      GPT of two layers on characters, scikit-learn's docstrings; minus nats a character of held-out text
    image_unet   U-Net that takes noise (25/255) from scikit-learn's images; dB of PSNR of a held-out part

utils/train_networks.py makes them again. Of these `network` makes others, equal in f32 and hard to quantise:

    digits_planted  an offset of 400 before the last Gemm, and out of it again
    digits_skewed   channels between convolutions larger and smaller by up to 64
    text_outliers   six channels of every LayerNormalization larger by 8 to 64
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

FOLDER = Path(__file__).parent / "Networks"
STORED = "f16 of f32"  # the doc string of a weight that is stored in half


def pack(model):
    """Stores weights of f32 that f16 holds exactly in that; the model isn't valid until `load` undoes it."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            if values.size > 16 and np.array_equal(values, values.astype(np.float16).astype(np.float32)):
                tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), tensor.name))
                tensor.doc_string = STORED
    return model


def load(name):
    model = onnx.load(FOLDER / f"{name}.onnx")
    for tensor in model.graph.initializer:
        if tensor.doc_string == STORED:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    onnx.checker.check_model(model)
    return model


def inputs(name, data):
    """What a network takes of stored bytes, at training, calibration and test."""
    if name.startswith("digits"):
        return (data[:, None].astype(np.float32) / 16 - 0.5) * 2
    if name.startswith("image"):
        clean = data.astype(np.float32) / 255
        return clean + np.random.default_rng(7).standard_normal(clean.shape).astype(np.float32) * (25 / 255)
    return data.astype(np.int64)


class Network:
    """A model with samples to calibrate it by (`cal`) and to judge it by (`x`, `y`)."""

    def __init__(self, name):
        base = {"digits_planted": "digits_cnn", "digits_skewed": "digits_cnn", "text_outliers": "text_lm"}.get(name, name)
        change = {"digits_planted": plant, "digits_skewed": skew, "text_outliers": add_outliers}.get(name)
        self.name, self.model = name, load(base)
        if change is not None:
            change(self.model)
        data = np.load(FOLDER / f"{base}.npz")
        self.calibration, self.x = inputs(name, data["cal"]), inputs(name, data["x"])
        self.y = data["y"] if "y" in data else data["x"]
        self.input = self.model.graph.input[0].name

    def samples(self, batch=32):
        return [{self.input: self.calibration[at : at + batch]} for at in range(0, len(self.calibration), batch)]

    def score(self, model, run=None, batch=64):
        """Higher is better: % of digits, minus nats a character, dB."""
        if run is None:
            import sardonyx

            session = sardonyx.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

            def run(feeds):
                return session.run(None, feeds)

        parts = [run({self.input: self.x[at : at + batch]})[0] for at in range(0, len(self.x), batch)]
        found = np.concatenate(parts)
        if self.name.startswith("digits"):
            return 100.0 * (found.argmax(1) == self.y).mean()
        if self.name.startswith("image"):
            return -10 * np.log10(((found.clip(0, 1) - self.y.astype(np.float32) / 255) ** 2).mean())
        logits = found - found.max(-1, keepdims=True)
        chosen = np.take_along_axis(logits, self.y[..., None].astype(np.int64), -1)
        return float(chosen.mean() - np.log(np.exp(logits).sum(-1)).mean())


def _scale(tensor, factors):
    tensor.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(tensor) * factors).astype(np.float32), tensor.name))


def plant(model, offset=400.0):
    """An offset after the first Gemm's Relu, taken off again in the last Gemm's bias. No rescaling of channels mends it."""
    graph = model.graph
    last = [node for node in graph.node if node.op_type == "Gemm"][-1]
    weights = {tensor.name: tensor for tensor in graph.initializer}
    weight = numpy_helper.to_array(weights[last.input[1]]).astype(np.float64)
    turned = next((entry.i for entry in last.attribute if entry.name == "transB"), 0)
    bias = numpy_helper.to_array(weights[last.input[2]]) - offset * weight.sum(1 if turned else 0)
    weights[last.input[2]].CopyFrom(numpy_helper.from_array(bias.astype(np.float32), last.input[2]))
    graph.initializer.append(numpy_helper.from_array(np.float32(offset), "planted_offset"))
    add = helper.make_node("Add", [last.input[0], "planted_offset"], ["planted"], "planted_add")
    graph.node.insert(list(graph.node).index(last), add)
    last.input[0] = "planted"


def skew(model, factor=64.0):
    """Channels between a depthwise and a pointwise convolution times powers of two, which the latter's weights undo."""
    random = np.random.default_rng(3)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = {name: node for node in model.graph.node for name in node.input}
    for node in model.graph.node:
        groups = next((entry.i for entry in node.attribute if entry.name == "group"), 1)
        if node.op_type != "Conv" or groups == 1 or len(node.input) < 3:
            continue
        relu = readers[node.output[0]]
        after = readers[relu.output[0]]
        if relu.op_type == "Relu" and after.op_type == "Conv":
            factors = 2.0 ** np.round(np.log2(factor) * random.uniform(-1, 1, weights[node.input[1]].dims[0]))
            _scale(weights[node.input[1]], factors.reshape(-1, 1, 1, 1))
            _scale(weights[node.input[2]], factors)
            _scale(weights[after.input[1]], 1 / factors.reshape(1, -1, 1, 1))


def add_outliers(model, count=6):
    """Some channels of each LayerNormalization times powers of two, which the products that read them undo."""
    random = np.random.default_rng(5)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "LayerNormalization":
            continue
        factors = np.ones(weights[node.input[1]].dims[0])
        factors[random.choice(len(factors), count, False)] = 2.0 ** random.integers(3, 7, count)
        for name in node.input[1:]:
            _scale(weights[name], factors)
        for reader in model.graph.node:
            if reader.op_type == "MatMul" and reader.input[0] == node.output[0]:
                _scale(weights[reader.input[1]], 1 / factors[:, None])
