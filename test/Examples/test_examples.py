"""The examples as a reader would run them, on small models, against numbers computed otherwise."""

import collections
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def run(example, *arguments):
    command = [sys.executable, ROOT / "examples" / example, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_all_are_told():
    told = (ROOT / "examples" / "README.md").read_text()
    for path in (ROOT / "examples").iterdir():
        assert f"`{path.name}`" in told or path.name == "README.md"


def test_read_digit(tmp_path):
    """The answer that README shows, which is also onnxruntime's; the network and the picture are what the script makes."""
    folder = ROOT / "examples" / "digits"
    assert run("read_digit.py", folder / "seven.png", folder / "digits.onnx") == ["7, with a probability of 0.949"]
    pixels = np.asarray(Image.open(folder / "seven.png").resize((8, 8), Image.BOX), np.float32)[None, None] / 127.5 - 1
    (scores,) = onnxruntime.InferenceSession(folder / "digits.onnx").run(None, {"x": pixels})
    assert scores.argmax() == 7 and round(float(1 / np.exp(scores - scores.max()).sum()), 3) == 0.949
    subprocess.run([sys.executable, ROOT / "utils" / "digits_example.py", tmp_path], check=True)
    for name in ("seven.png", "digits.onnx"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_classify_image(tmp_path):
    """A model that answers with the mean of each colour: the answers follow from the picture."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]> m (float[n, 3, 32, 32] x) => (float[n, 3] y) {
        p = GlobalAveragePool (x)
        y = Flatten (p)
    }""")
    onnx.save(model, tmp_path / "model.onnx")
    Image.new("RGB", (80, 50), (255, 0, 0)).save(tmp_path / "red.png")
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    colours = (np.array([1, 0, 0]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    expected = np.exp(colours) / np.exp(colours).sum()
    lines = run("classify_image.py", tmp_path / "red.png", tmp_path / "model.onnx", "--labels", tmp_path / "labels.txt")
    assert [line.split()[1] for line in lines] == ["red", "blue", "green"]
    np.testing.assert_allclose([float(line.split()[0]) for line in lines], -np.sort(-expected), atol=6e-5)


def test_classify_image_by_a_network(tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (300, 400, 3), np.uint8)).save(tmp_path / "noise.jpg")
    lines = run("classify_image.py", tmp_path / "noise.jpg", LIGHT / "light_squeezenet.onnx", "--top", 3)
    assert len(lines) == 3 and all(0 <= float(line.split()[0]) <= 1 for line in lines)


def test_plugin():
    model = LIGHT / "light_squeezenet.onnx"
    command = [ROOT / "examples" / "plugin" / "count_ops", model]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = dict(reversed(line.split(" x ")) for line in done.stdout.splitlines())
    expected = collections.Counter(node.op_type for node in onnx.load(model).graph.node)
    assert int(counts["onnx.Conv"]) == expected["Conv"] and int(counts["onnx.Concat"]) == expected["Concat"], counts


def test_embed_text(tmp_path):
    """Vectors of tokens out of a table, whose mean is known."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "##s", "sit", ",", "dog", "cafe"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    table = np.random.default_rng(0).standard_normal((len(words), 8)).astype(np.float32)
    ints, int_type = ["batch", "tokens"], onnx.TensorProto.INT64
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["v"])], "g",
        [helper.make_tensor_value_info(n, int_type, ints) for n in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [*ints, 8])],
        [numpy_helper.from_array(table, "table")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "model.onnx")
    sentences = {"A cat": [4, 5], "Cats, sit!": [5, 6, 8, 7, 1], "a CAFÉ dog": [4, 10, 9], "zebra": [1]}
    vectors = []
    for tokens in sentences.values():
        vector = table[[2, *tokens, 3]].mean(0, dtype=np.float64)
        vectors.append(vector / np.linalg.norm(vector))
    lines = run("embed_text.py", tmp_path / "model.onnx", tmp_path / "vocab.txt", *sentences)
    assert [line.split(maxsplit=1)[1] for line in lines] == list(sentences)[1:]
    np.testing.assert_allclose([float(line.split()[0]) for line in lines], vectors[1:] @ vectors[0], atol=6e-5)


def decoder(rng, heads=2, size=4, words=11):
    """One layer of attention with a cache, as optimum names its inputs and outputs."""
    width = heads * size
    weights = {n: rng.standard_normal(s).astype(np.float32) for n, s in (
        ("table", (words, width)), ("wq", (width, width)), ("wk", (width, width)), ("wv", (width, width)), ("out", (width, words)))}  # fmt: skip
    weights["heads"], weights["flat"] = np.array([0, 0, heads, size]), np.array([0, 0, width])
    node = helper.make_node
    nodes = [node("Gather", ["table", "input_ids"], ["e"])]
    for name in "qkv":
        nodes += [
            node("MatMul", ["e", f"w{name}"], [f"{name}0"]),
            node("Reshape", [f"{name}0", "heads"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [f"{name}2"], perm=[0, 2, 1, 3]),
        ]
    past = [f"past_key_values.0.{n}" for n in ("key", "value")]
    present = [f"present.0.{n}" for n in ("key", "value")]
    nodes += [
        node("Concat", [past[0], "k2"], [present[0]], axis=2),
        node("Concat", [past[1], "v2"], [present[1]], axis=2),
        node("Transpose", [present[0]], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q2", "kt"], ["s"]),
        node("Softmax", ["s"], ["p"]),
        node("MatMul", ["p", present[1]], ["a0"]),
        node("Transpose", ["a0"], ["a1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["a1", "flat"], ["a2"]),
        node("Add", ["a2", "e"], ["a3"]),
        node("MatMul", ["a3", "out"], ["logits"]),
    ]
    info, f, i = helper.make_tensor_value_info, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs = [info("input_ids", i, ["b", "n"]), info("attention_mask", i, ["b", "t"])]
    inputs += [info(n, f, ["b", heads, "past", size]) for n in past]
    outputs = [info("logits", f, ["b", "n", words])] + [info(n, f, ["b", heads, "t", size]) for n in present]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(w, n) for n, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("seed", range(3))
def test_generate_tokens(tmp_path, seed):
    """The same tokens as by onnxruntime, one by one from the first on."""
    model = decoder(np.random.default_rng(seed))
    onnx.save(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    past = [np.zeros((1, 2, 0, 4), np.float32)] * 2
    tokens, expected = [3, 1, 4], []
    for _ in range(8):
        names = ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"]
        length = past[0].shape[2] + len(tokens)
        feeds = dict(zip(names, [np.array([tokens]), np.ones((1, length), np.int64), *past]))
        logits, *past = session.run(None, feeds)
        tokens = [int(logits[0, -1].argmax())]
        expected += tokens
    lines = run("generate_tokens.py", tmp_path / "model.onnx", 3, 1, 4, "--count", 8)
    assert list(map(int, lines[0].split())) == expected and lines[1].endswith("ms a token")
    stopped = run("generate_tokens.py", tmp_path / "model.onnx", 3, 1, 4, "--stop", expected[0])
    assert stopped == [""]
