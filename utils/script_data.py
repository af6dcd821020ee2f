"""Small networks, images and texts for the scripts that quantization_scripts.py runs, from fixed random numbers."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = (
    "the a city river of and in was its house people old new garden water small large great north south east west under "
    "over between first second year day night made found named after which who where when lived built school library road"
).split()


class Network:
    """An ONNX graph that is written operator by operator; weights come from one generator."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def op(self, kind, *inputs, outputs=None, **attributes):
        """Appends a node of the name of its first result, and gives that."""
        names = outputs or [f"{kind}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"node_{names[0]}", **attributes))
        return names[0]

    def weight(self, array):
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=1.0):
        return self.weight((self.random.standard_normal(shape) * scale).astype(np.float32))

    def save(self, path, inputs, outputs, opset=14):
        """Inputs and outputs: name → (type, shape)."""
        values = [[helper.make_tensor_value_info(name, *form) for name, form in side.items()] for side in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "main", *values, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(path))
        return Path(path)

    def linear(self, value, size, result, **names):
        product = self.op("MatMul", value, self.normal(size, result, scale=size**-0.5))
        return self.op("Add", product, self.normal(result, scale=0.1), **names)

    def convolve(self, value, size, result, kernel=3, stride=1, group=1):
        weights = self.normal(result, size // group, kernel, kernel, scale=(size // group * kernel * kernel / 2) ** -0.5)
        inputs = (value, weights, self.normal(result, scale=0.1))
        border = [kernel // 2] * 4
        return self.op("Conv", *inputs, kernel_shape=[kernel] * 2, pads=border, strides=[stride] * 2, group=group)

    def normalize(self, value, size):
        """A layer normalisation by its parts, as exporters wrote it before opset 17."""
        centred = self.op("Sub", value, self.op("ReduceMean", value, axes=[-1]))
        variance = self.op("ReduceMean", self.op("Pow", centred, self.weight(np.float32(2))), axes=[-1])
        deviation = self.op("Sqrt", self.op("Add", variance, self.weight(np.float32(1e-5))))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(np.ones(size, np.float32)))
        return self.op("Add", scaled, self.normal(size, scale=0.1))


def classifier(path, size, classes=10, name="input", batch=1, opset=13, pooled=True):
    """An image classifier [batch, 3, size, size] → [batch, classes] with a residual and a depthwise convolution."""
    net = Network(size)
    value = net.op("Relu", net.convolve(net.op("Mul", name, net.weight(np.float32(0.5))), 3, 16, 3, 2))
    narrow = net.op("Relu", net.convolve(value, 16, 32, 3, 2))
    deep = net.op("Relu", net.convolve(narrow, 32, 32, 3, 1, 32))
    value = net.op("Relu", net.op("Add", net.convolve(deep, 32, 32, 1), narrow))
    value = net.op("Relu", net.convolve(net.op("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2]), 32, 64, 3, 2))
    places = 1 if pooled else (size // 16) ** 2
    flat = net.op("Flatten", net.op("GlobalAveragePool", value) if pooled else value)
    weights = net.normal(classes, 64 * places, scale=0.125), net.normal(classes, scale=0.1)
    net.op("Gemm", flat, *weights, outputs=["output"], transB=1)
    inputs = {name: (TensorProto.FLOAT, [batch, 3, size, size])}
    return net.save(path, inputs, {"output": (TensorProto.FLOAT, [batch, classes])}, opset)


def detector(path, size=608):
    """A network with three heads of 255 channels, a 32nd, a 16th and an 8th of the picture's width, as YOLO's."""
    net = Network(3)
    value, channels, heads = "000_net", 3, {}
    for width in (8, 16, 16, 32, 32):
        value = net.op("LeakyRelu", net.convolve(value, channels, width, 3, 2), alpha=0.1)
        channels, heads[len(heads)] = width, (value, width)
    outputs = {}
    for level, name in ((4, "082_convolutional"), (3, "094_convolutional"), (2, "106_convolutional")):
        value, width = heads[level]
        net.op("Identity", net.convolve(value, width, 255, 1), outputs=[name])
        outputs[name] = (TensorProto.FLOAT, [1, 255, size >> (level + 1), size >> (level + 1)])
    return net.save(path, {"000_net": (TensorProto.FLOAT, [1, 3, size, size])}, outputs)


def transformer(path, form, layers=2, hidden=64, heads=4, vocabulary=1000, positions=512):
    """A transformer with the inputs and results of `form`: bert, glue, llama, or gpt2, which has past keys."""
    net = Network(layers)
    long = lambda array: net.weight(np.array(array, np.int64))  # noqa: E731
    inputs = {"input_ids": (TensorProto.INT64, ["batch", "sequence"])}
    inputs["attention_mask"] = (TensorProto.INT64, ["batch", "total" if form == "gpt2" else "sequence"])
    value = net.op("Gather", net.normal(vocabulary, hidden), "input_ids")
    if form in ("bert", "glue"):
        inputs["token_type_ids"] = inputs["input_ids"]
        value = net.op("Add", value, net.op("Gather", net.normal(2, hidden, scale=0.3), "token_type_ids"))
    else:
        inputs["position_ids"] = inputs["input_ids"]
        value = net.op("Add", value, net.op("Gather", net.normal(positions, hidden, scale=0.3), "position_ids"))
    seen = net.op("Cast", net.op("Unsqueeze", "attention_mask", long([1, 2])), to=TensorProto.FLOAT)
    if form in ("llama", "gpt2"):
        length = net.op("Gather", net.op("Shape", "input_ids"), long([1]))
        total = net.op("Gather", net.op("Shape", "attention_mask"), long([1]))
        square = net.op("Expand", net.weight(np.ones((1, 1), np.float32)), net.op("Concat", length, total, axis=0))
        shift = net.op("Squeeze", net.op("Sub", total, length))
        seen = net.op("Mul", seen, net.op("Trilu", square, shift, upper=0))
    mask = net.op("Mul", net.op("Sub", net.weight(np.float32(1)), seen), net.weight(np.float32(-10000)))
    outputs, split = {}, long([0, 0, heads, hidden // heads])
    for layer in range(layers):
        normal = net.normalize(value, hidden)
        parts = [net.op("Reshape", net.linear(normal, hidden, hidden), split) for _ in range(3)]
        query, key, content = (net.op("Transpose", part, perm=[0, 2, 1, 3]) for part in parts)
        if form == "gpt2":
            inputs[f"past_{layer}"] = (TensorProto.FLOAT, [2, "batch", heads, "past", hidden // heads])
            outputs[f"present_{layer}"] = (TensorProto.FLOAT, [2, "batch", heads, "total", hidden // heads])
            pasts = [net.op("Gather", f"past_{layer}", net.weight(np.int64(part)), axis=0) for part in (0, 1)]
            key, content = (net.op("Concat", past, new, axis=2) for past, new in zip(pasts, (key, content)))
            parts = [net.op("Unsqueeze", part, long([0])) for part in (key, content)]
            net.op("Concat", *parts, axis=0, outputs=[f"present_{layer}"])
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net.op("Div", scores, net.weight(np.float32((hidden // heads) ** 0.5)))
        mixed = net.op("MatMul", net.op("Softmax", net.op("Add", scores, mask), axis=-1), content)
        mixed = net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1, 3]), long([0, 0, hidden]))
        value = net.op("Add", value, net.linear(mixed, hidden, hidden))
        wide = net.linear(net.normalize(value, hidden), hidden, 4 * hidden)
        bell = net.op("Add", net.op("Erf", net.op("Div", wide, net.weight(np.float32(2**0.5)))), net.weight(np.float32(1)))
        bell = net.op("Mul", net.op("Mul", wide, bell), net.weight(np.float32(0.5)))
        value = net.op("Add", value, net.linear(bell, 4 * hidden, hidden))
    value = net.normalize(value, hidden)
    if form == "bert":
        both = net.linear(value, hidden, 2)
        for index, name in enumerate(("output_start_logits", "output_end_logits")):
            net.op("Gather", both, net.weight(np.int64(index)), axis=2, outputs=[name])
            outputs[name] = (TensorProto.FLOAT, ["batch", "sequence"])
    elif form == "glue":
        first = net.op("Gather", value, net.weight(np.int64(0)), axis=1)
        net.linear(net.op("Tanh", net.linear(first, hidden, hidden)), hidden, 2, outputs=["logits"])
        outputs["logits"] = (TensorProto.FLOAT, ["batch", 2])
    else:
        net.op("MatMul", value, net.normal(hidden, vocabulary, scale=hidden**-0.5), outputs=["logits"])
        outputs = {"logits": (TensorProto.FLOAT, ["batch", "sequence", vocabulary]), **outputs}
    return net.save(path, inputs, outputs)


def tokens(count=4, sequence=24, vocabulary=1000, past=None, layers=2, hidden=64, heads=4, kinds=("token_type_ids",)):
    """Feeds for a `transformer`."""
    random = np.random.default_rng(5)
    feeds = []
    for _ in range(count):
        feed = {"input_ids": random.integers(0, vocabulary, (1, sequence))}
        feed["attention_mask"] = np.ones((1, sequence + (past or 0)), np.int64)
        if "token_type_ids" in kinds:
            feed["token_type_ids"] = (np.arange(sequence)[None] > sequence // 2).astype(np.int64)
        if "position_ids" in kinds:
            feed["position_ids"] = np.arange(sequence)[None] + (past or 0)
        for layer in range(layers if past is not None else 0):
            feed[f"past_{layer}"] = random.standard_normal((2, 1, heads, past, hidden // heads)).astype(np.float32)
        feeds.append(feed)
    return feeds


def image(random, size):
    """Smooth colours with a few edges, u8 [size, size, 3]."""
    rows, columns = np.mgrid[0:size, 0:size] / size
    waves = [np.sin(random.uniform(1, 9) * rows + random.uniform(1, 9) * columns + random.uniform(0, 6)) for _ in range(3)]
    picture = np.stack(waves, -1) * 90 + 128 + random.normal(0, 8, (size, size, 3))
    top, left = random.integers(0, size // 2, 2)
    picture[top : top + size // 3, left : left + size // 3] += random.uniform(-80, 80, 3)
    return picture.clip(0, 255).astype(np.uint8)


def images(folder, count=6, size=96, names="{:012d}.jpg"):
    """Writes pictures, and gives their names."""
    from PIL import Image

    random = np.random.default_rng(11)
    folder.mkdir(parents=True, exist_ok=True)
    made = [names.format(index) for index in range(count)]
    for name in made:
        Image.fromarray(image(random, size)).save(folder / name)
    return made


def pictures(name, size, count=4, scale=1 / 64, shift=-2.0):
    """Feeds for a `classifier` or a `detector`."""
    random = np.random.default_rng(12)
    made = [image(random, size) * np.float32(scale) + np.float32(shift) for _ in range(count)]
    return [{name: picture.transpose(2, 0, 1)[None].copy()} for picture in made]


def sentence(random, words=12):
    return " ".join(random.choice(WORDS, words)) + "."


def squad(path, count=100):
    """Questions in the form of SQuAD 1.1."""
    random = np.random.default_rng(21)
    paragraphs = []
    for index in range(count):
        context = " ".join(sentence(random) for _ in range(4))
        answer = context.split()[5]
        place = context.index(answer)
        answers = [{"text": answer, "answer_start": place}]
        question = {"id": f"q{index}", "question": sentence(random, 6)[:-1] + "?", "answers": answers}
        paragraphs.append({"context": context, "qas": [question]})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "made", "paragraphs": paragraphs}]}))


def coco(path, names, size, categories):
    """Annotations in the form of COCO: one box a picture."""
    entries = [{"id": index + 1, "file_name": name, "width": size, "height": size} for index, name in enumerate(names)]
    box = {"category_id": categories[0]["id"], "bbox": [8, 8, 40, 40], "area": 1600, "iscrowd": 0}
    boxes = [{"id": entry["id"], "image_id": entry["id"], **box} for entry in entries]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"images": entries, "annotations": boxes, "categories": categories, "info": {}}))


def texts(path, count=40, sentences=30):
    """A data set of one column `text`, as lines of JSON."""
    random = np.random.default_rng(31)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"text": " ".join(sentence(random) for _ in range(sentences))}) for _ in range(count)]
    path.write_text("\n".join(rows) + "\n")


def glue(folder, count=32):
    """Pairs of sentences in the form of MRPC's files."""
    random = np.random.default_rng(41)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.tsv", "dev.tsv"):
        rows = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        rows += [f"{index % 2}\t{index}\t{index + 1}\t{sentence(random)}\t{sentence(random)}" for index in range(count)]
        (folder / name).write_text("\n".join(rows) + "\n")


def word_pieces(folder):
    """A BERT tokenizer's files with the words of the texts."""
    from transformers import BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return len(pieces)


def llama(folder, hidden=64, heads=4):
    """A tokenizer and a configuration of Llama's; gives the size of the vocabulary."""
    import sentencepiece
    from transformers import LlamaConfig

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(51)
    (folder / "text.txt").write_text("\n".join(sentence(random) for _ in range(400)))
    trainer = sentencepiece.SentencePieceTrainer
    trainer.train(input=str(folder / "text.txt"), model_prefix=str(folder / "tokenizer"), vocab_size=64, minloglevel=2)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))
    LlamaConfig(vocab_size=64, hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=2).save_pretrained(folder)
    return 64
