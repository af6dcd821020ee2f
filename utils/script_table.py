"""The scripts that quantization_scripts.py runs: where each lies, what it calls, and what is made for it to run on."""

import script_data as data
from quantization_scripts import Job, Script, Step

EXAMPLES = "microsoft/onnxruntime-inference-examples"
LLAMA_FEEDS = {"kinds": ("position_ids",), "vocabulary": 64}

# Modules that two scripts import and do not call when they quantise: the evaluation, and where temporary files go.
LLAMA_MODULES = """
import types
names = ["neural_compressor", "intel_extension_for_transformers"]
for part in ("llm", "evaluation", "lm_eval"):
    names.append(names[-1] + "." + part)
for name in names:
    sys.modules[name] = types.ModuleType(name)
sys.modules[names[-1]].evaluate = None
sys.modules["neural_compressor"].set_workspace = lambda folder: None
"""
LLAMA_NOTE = (
    "stand-ins for what is imported and does not quantise: intel_extension_for_transformers' evaluation, "
    "neural_compressor.set_workspace"
)
TRANSFORMERS_NOTE = "onnxruntime.transformers (its optimiser) is the installed onnxruntime's"
# Pillow took this name away in release 10; the notebook is older.
PILLOW = """
from PIL import Image
Image.ANTIALIAS = Image.LANCZOS
"""
# numpy took this name away in release 1.24.
NUMPY = """
import numpy
numpy.int = int
"""
# onnx 1.8 did not look at its argument `format`, to which the script gives False; later releases refuse that.
ONNX_FORMAT = """
import onnx
onnx.load_model = lambda f, format=None, *rest, load=onnx.load_model, **named: load(f, format or None, *rest, **named)
"""
# Releases of torch before 2.9 export by tracing when they are not told how, and keep the opset that is asked for.
EXPORT = """
import functools, torch
torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
"""
# Deleted models are kept beside, so that they can be judged.
KEEP = """
import pathlib
def unlink(path, missing_ok=False, remove=pathlib.Path.unlink):
    if path.suffix == ".onnx":
        path.rename(path.with_suffix(".kept.onnx"))
    else:
        remove(path, missing_ok)
pathlib.Path.unlink = unlink
"""


def classification(folder):
    data.classifier(folder / "model.onnx", 224)
    data.images(folder / "test_images")
    run = Step("run.py", ("--input_model", "model.onnx", "--output_model", "model.quant.onnx", "--per_channel", "1"))
    feeds = data.pictures("input", 224, scale=1, shift=-114)
    return Job([run], [("model.onnx", "model.quant.onnx")], feeds)


def classification_debug(folder):
    job = classification(folder)
    job.steps.append(Step("run_qdq_debug.py", ("--float_model", "model.onnx", "--qdq_model", "model.quant.onnx")))
    job.says = r"(?:Cross model|QDQ) error of '[^']+': \d"
    return job


def gpt2(folder):
    import numpy as np

    data.transformer(folder / "model.onnx", "gpt2")
    feeds = data.tokens(past=4, kinds=("position_ids",))
    (folder / "test_input").mkdir()
    for index, feed in enumerate(feeds):
        np.savez(folder / "test_input" / f"batch_{index}.npz", **feed)
    run = Step("run_qdq.py", ("--input_model", "model.onnx", "--output_model", "model.quant.onnx"))
    # Static quantisation at its defaults rounds the scores after the mask of -10000 is added: onnxruntime's own file is 0.34
    # away. sardonyx.quantization.quantize with a bound leaves them in float.
    return Job([run], [("model.onnx", "model.quant.onnx")], feeds, 0.4, note="the masked scores are rounded, as by onnxruntime")


def gpt2_debug(folder):
    job = gpt2(folder)
    job.steps.append(Step("run_qdq_debug.py", ("--float_model", "model.onnx", "--qdq_model", "model.quant.onnx")))
    job.says = r"(?:Cross model|QDQ) error of '[^']+': \d"
    return job


def bert_tensorrt(folder):
    vocabulary = len((folder / "squad" / "vocab.txt").read_text(encoding="utf-8").splitlines())
    data.transformer(folder / "model.onnx", "bert", vocabulary=vocabulary)
    data.squad(folder / "squad" / "dev-v1.1.json")
    feeds = data.tokens(vocabulary=vocabulary, sequence=128)
    note = "on the CPU, where it asks for TensorRT and CUDA; onnx.load_model's `format` may be False, as in onnx 1.8"
    step = Step("e2e_tensorrt_bert_example.py", prelude=ONNX_FORMAT)
    return Job([step], [("model.onnx", "qdq_model.onnx")], feeds, says="exact_match", note=note)


def yolo_table(folder):
    """The table's ranges beside the tensors' greatest magnitudes, which onnxruntime computes."""
    import numpy as np
    import onnx
    import onnxruntime

    lines = (folder / "calibration.cache").read_text().splitlines()
    ranges = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    model = onnx.load(str(folder / "yolov3-608.onnx"))
    names = [name for node in model.graph.node for name in node.output]
    results = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in results)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = data.pictures("000_net", 608, 1, 1 / 255, 0)[0]
    largest = {name: float(np.abs(value).max()) for name, value in zip(names, session.run(names, feed))}
    assert set(names) <= set(ranges), f"the table lacks {sorted(set(names) - set(ranges))}"
    odd = [name for name in names if not largest[name] / 4 < ranges[name] < largest[name] * 4]
    assert not odd, f"ranges that the tensors don't have: {odd}"
    return f"a table of {len(ranges)} ranges, each within a factor of 4 of a picture's"


def yolo(folder):
    import json

    data.detector(folder / "yolov3-608.onnx")
    data.images(folder / "train2017" / "calib", 4)
    names = data.images(folder / "val2017", 3)
    categories = json.loads((folder / "coco-object-categories-2017.json").read_text())
    data.coco(folder / "annotations" / "instances_val2017.json", names, 96, categories)
    note = "it writes no model; numpy.int is given back, which numpy 1.24 dropped; on the CPU, where it asks for TensorRT"
    step = Step("e2e_user_yolov3_example.py", prelude=NUMPY)
    return Job([step], check=yolo_table, says="Average Precision", note=note)


def llama(folder, *arguments, bound):
    vocabulary = data.llama(folder / "float")
    data.transformer(folder / "float" / "model.onnx", "llama", vocabulary=vocabulary)
    data.texts(folder / "NeelNanda" / "pile-10k" / "train.jsonl")
    (folder / "written").mkdir()
    arguments = ("--model_input", "float", "--model_output", "written", "--quantize", *arguments)
    pairs = [("float/model.onnx", "written/model.onnx")]
    return Job([Step("main.py", arguments, LLAMA_MODULES)], pairs, data.tokens(**LLAMA_FEEDS), bound, note=LLAMA_NOTE)


def smooth_quant(folder):
    return llama(folder, bound=0.1)


def weight_only(folder):
    return llama(folder, "--algorithm", "RTN", bound=0.25)


def weight_only_gptq(folder):
    return llama(folder, "--algorithm", "GPTQ", "--seqlen", "32", bound=0.25)


def mobilenet(folder):
    import json

    import numpy as np
    import torch
    import torchvision

    torch.manual_seed(0)
    names = data.images(folder / "calibration_imagenet", 6, names="made_{}.jpg")
    (folder / "cat.jpg").unlink(missing_ok=True)
    for picture in (folder / "calibration_imagenet").iterdir():
        if picture.name not in names:
            picture.unlink()
    data.images(folder, 1, names="cat.jpg")
    network = torchvision.models.mobilenet_v2()
    feeds = data.pictures("input", 224, 4, 1 / 57, -2)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # its statistics are then those of the one run below, and values keep their size
    with torch.no_grad():
        network(torch.from_numpy(np.concatenate([feed["input"] for feed in feeds])))
    file = torchvision.models.MobileNet_V2_Weights.IMAGENET1K_V1.url.split("/")[-1]
    weights = folder / ".torch" / "hub" / "checkpoints" / file
    weights.parent.mkdir(parents=True)
    torch.save(network.state_dict(), weights)
    (folder / "imagenet_classes.txt").write_text("\n".join(f"class {index}" for index in range(1000)))
    cells = [cell for cell in json.loads((folder / "mobilenet.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    # Lines for the shell install packages and download the classes' names.
    (folder / "mobilenet.py").write_text("\n".join(line for line in lines if not line.startswith("!")))
    pairs = [("mobilenet_v2_float.onnx", "mobilenet_v2_uint8.onnx")]
    note = "the notebook's cells, without its lines for the shell; weights are random"
    # Roundings grow in a deep network of random weights: onnxruntime's own file is 0.27 away.
    return Job([Step("mobilenet.py", prelude=PILLOW)], pairs, feeds, 0.35, note=note)


def question_answering(folder):
    import numpy as np
    import transformers

    name = "csarron/mobilebert-uncased-squad-v2"
    vocabulary = data.word_pieces(folder / name)
    config = transformers.MobileBertConfig(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=2, intermediate_size=64, embedding_size=32,
        intra_bottleneck_size=32,
    )  # fmt: skip
    transformers.MobileBertForQuestionAnswering(config).save_pretrained(folder / name)
    (folder / "app/src/main/res/raw").mkdir(parents=True, exist_ok=True)
    stem = "app/src/main/res/raw/csarron_mobilebert_uncased_squad_v2"
    feeds = data.tokens(vocabulary=vocabulary)
    pairs = [(f"{stem}.kept.onnx", f"{stem}_quant.kept.onnx")]
    note = "torch exports by tracing, as before release 2.9"

    def answer(folder):
        import onnxruntime
        import onnxruntime_extensions

        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
        path = folder / f"{stem}_quant_with_pre_post_processing.onnx"
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        text = ["where was the river ?", "the old city was found in the north under a great river ."]
        given = session.run(None, {session.get_inputs()[0].name: np.array([text])})
        return f"the whole pipeline answers {given[0].ravel()[0]!r}"

    return Job([Step("prepare_model.py", prelude=KEEP + EXPORT)], pairs, feeds, check=answer, note=note)


OLIVE_START = """
from pathlib import Path
import numpy as np, torch
from olive.data.config import DataComponentConfig, DataConfig
from olive.data.registry import Registry
from olive.model import ONNXModelHandler
from olive.passes.olive_pass import create_pass_from_dict

@Registry.register_dataset()
def made_pictures(**options):
    images = np.load("pictures.npy")
    return [({"input": torch.from_numpy(image)}, torch.tensor(0)) for image in images]

def run(kind, name, source, **config):
    create_pass_from_dict(kind, config, disable_search=True).run(ONNXModelHandler(source), str(Path("written") / name))
"""
OLIVE_QUANTIZATION = """
from olive.passes.onnx.quantization import OnnxDynamicQuantization, OnnxStaticQuantization
made = DataConfig(name="made", load_dataset_config=DataComponentConfig(type="made_pictures"))
run(OnnxStaticQuantization, "static.onnx", "model.onnx", data_config=made, per_channel=True)
operators = {"calibrate_method": "Entropy", "quant_format": "QOperator"}
run(OnnxStaticQuantization, "entropy.onnx", "model.onnx", data_config=made, **operators)
whole = {"prepare_qdq_config": True, "activation_type": "uint8"}
run(OnnxStaticQuantization, "config.onnx", "model.onnx", data_config=made, **whole)
run(OnnxDynamicQuantization, "dynamic.onnx", "model.onnx", precision="uint8")
"""
OLIVE_PRECISION = """
from olive.passes.onnx.mixed_precision import OrtMixedPrecision
run(OrtMixedPrecision, "mixed.onnx", "model.onnx")
"""
OLIVE_BNB = """
from olive.passes.onnx.bnb_quantization import OnnxBnb4Quantization
run(OnnxBnb4Quantization, "nf4.onnx", "model.onnx", precision="nf4")
run(OnnxBnb4Quantization, "fp4.onnx", "model.onnx", precision="fp4")
"""


def olive_quantization(folder):
    import numpy as np

    data.classifier(folder / "model.onnx", 96)
    feeds = data.pictures("input", 96, 8)
    np.save(folder / "pictures.npy", np.concatenate([feed["input"] for feed in feeds]))
    (folder / "passes.py").write_text(OLIVE_START + OLIVE_QUANTIZATION)
    pairs = [("model.onnx", f"written/{name}.onnx") for name in ("static", "entropy", "config", "dynamic")]
    return Job([Step("passes.py", optimiser=True)], pairs, feeds)


def olive_precision(folder):
    data.transformer(folder / "model.onnx", "llama")
    (folder / "passes.py").write_text(OLIVE_START + OLIVE_PRECISION)
    pairs = [("model.onnx", "written/mixed.onnx")]
    feeds = data.tokens(kinds=("position_ids",))
    return Job([Step("passes.py", optimiser=True)], pairs, feeds, 0.01, note=TRANSFORMERS_NOTE)


def olive_bnb(folder):
    data.transformer(folder / "model.onnx", "llama")
    (folder / "passes.py").write_text(OLIVE_START + OLIVE_BNB)
    pairs = [("model.onnx", f"written/{name}.onnx") for name in ("nf4", "fp4")]
    return Job([Step("passes.py")], pairs, data.tokens(kinds=("position_ids",)), 0.25)


OPTIMUM = """
import numpy as np
from datasets import Dataset
from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import AutoCalibrationConfig, AutoQuantizationConfig
feeds = np.load("feeds.npz")
rows = Dataset.from_dict({name: feeds[name].tolist() for name in feeds.files})
quantizer = ORTQuantizer.from_pretrained("model")
dynamic = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=False)
quantizer.quantize(dynamic, "written", file_suffix="dynamic")
methods = {"minmax": AutoCalibrationConfig.minmax(rows),
           "percentiles": AutoCalibrationConfig.percentiles(rows, percentile=99.99),
           "average": AutoCalibrationConfig.minmax(rows, moving_average=True)}
for name, method in methods.items():
    static = AutoQuantizationConfig.avx512_vnni(is_static=True, per_channel=True)
    operators = static.operators_to_quantize
    ranges = quantizer.fit(rows, method, operators_to_quantize=operators)
    quantizer.quantize(static, "written", file_suffix=name, calibration_tensors_range=ranges)
parts = AutoQuantizationConfig.arm64(is_static=True, per_channel=False, operators_to_quantize=["MatMul"])
for half in (range(0, 2), range(2, 4)):
    quantizer.partial_fit(rows.select(half), methods["minmax"], operators_to_quantize=["MatMul"])
quantizer.quantize(parts, "written", file_suffix="partial", calibration_tensors_range=quantizer.compute_ranges())
"""


def optimum(folder):
    import numpy as np
    from transformers import BertConfig

    data.transformer(folder / "model" / "model.onnx", "glue")
    BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4).save_pretrained(folder / "model")
    feeds = data.tokens()
    np.savez(folder / "feeds.npz", **{name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]})
    (folder / "quantize.py").write_text(OPTIMUM)
    names = ("dynamic", "minmax", "percentiles", "average", "partial")
    pairs = [("model/model.onnx", f"written/model_{name}.onnx") for name in names]
    return Job([Step("quantize.py", optimiser=True)], pairs, feeds, 0.25, note=TRANSFORMERS_NOTE)


def compressor_static(folder):
    data.classifier(folder / "model.onnx", 224, batch="batch")
    names = data.images(folder / "pictures")
    (folder / "labels.txt").write_text("".join(f"{name} {index}\n" for index, name in enumerate(names)))
    arguments = ("--model_path", "model.onnx", "--dataset_location", "pictures", "--label_path", "labels.txt")
    step = Step("main.py", (*arguments, "--output_model", "written.onnx", "--tune"))
    return Job([step], [("model.onnx", "written.onnx")], data.pictures("input", 224, 4, 1 / 57, -2))


def compressor_dynamic(folder):
    vocabulary = data.word_pieces(folder / "bert")
    (folder / "bert" / "config.json").write_text('{"model_type": "bert"}')
    data.transformer(folder / "model.onnx", "glue", vocabulary=vocabulary)
    data.glue(folder / "MRPC")
    arguments = ("--model_path", "model.onnx", "--model_name_or_path", "bert", "--data_path", "MRPC")
    arguments = (*arguments, "--max_seq_length", "32", "--output_model", "written.onnx", "--tune")
    step = Step("main.py", arguments, optimiser=True)
    return Job([step], [("model.onnx", "written.onnx")], data.tokens(vocabulary=vocabulary), note=TRANSFORMERS_NOTE)


def ryzen(folder):
    import pickle

    import numpy as np

    # amd-quark puts its nodes for a GlobalAveragePool last, where onnx.checker does not take them.
    data.classifier(folder / "models" / "resnet_trained_for_cifar10.onnx", 32, batch="batch", pooled=False)
    random = np.random.default_rng(3)
    batches = folder / "data" / "cifar-10-batches-py"
    batches.mkdir(parents=True, exist_ok=True)
    names = [f"data_batch_{index}" for index in range(1, 6)]
    some = np.stack([data.image(random, 32).transpose(2, 0, 1).ravel() for _ in range(100)])
    for name in (*names, "test_batch"):
        content = {"data": np.tile(some, (100, 1)), "labels": [index % 10 for index in range(10000)]}
        (batches / name).write_bytes(pickle.dumps(content))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class {index}" for index in range(10)]}))
    pairs = [("models/resnet_trained_for_cifar10.onnx", "models/resnet_quantized.onnx")]
    prelude = "\nimport torchvision.datasets\ntorchvision.datasets.CIFAR10._check_integrity = lambda self: True\n"
    prelude += "import torchvision.datasets.cifar as cifar\ncifar.check_integrity = lambda *names: True\n"
    note = "its own names are Sardonyx'; the quantiser is amd-quark's, on onnxruntime's inner classes by operator"
    step = Step("resnet_quantize.py", prelude=prelude, alone=True)
    return Job([step], pairs, data.pictures("input", 32, 4, 1 / 255, 0), 0.2, note=note)


def opencv_zoo(folder):
    """The script opens every network of its list, so each of these files must be there; three are quantised."""
    import re

    script = (folder / "tools/quantize/quantize-ort.py").read_text()
    place = folder / "tools/quantize"
    (place / "path/to").mkdir(parents=True)
    data.images(place / "path/to/dataset", 4)
    for path in re.findall(r"'\.\./\.\./(benchmark/data/\w+)'", script):
        data.images(folder / path, 4)
    sizes = {}
    for path, rest in re.findall(r"model_path='\.\./\.\./(models/[^']+)'(.*?)(?=model_path|\Z)", script, re.S):
        sizes[path] = max(int(number) for number in re.search(r"Resize\(size=\((\d+), (\d+)\)", rest).groups())
        data.classifier(folder / path, sizes[path], opset=11)
    palms = folder / "models/palm_detection_mediapipe/mp_palmdet.py"
    palms.write_text("class MPPalmDet:\n    def __init__(self, **options): pass\n    def infer(self, image): return []\n")
    chosen = ("sface", "pphumanseg", "ppresnet50")
    paths = [next(path for path in sizes if key in path) for key in ("face_recognition_sface", "pphumanseg", "ppresnet50")]
    pairs = [(f"../../{path}", f"../../{path[:-5]}_int8.onnx") for path in paths]
    return Job([Step("quantize-ort.py", chosen)], pairs[:1], data.pictures("input", 112, 4, 1, 0), 0.2, folder="tools/quantize")


CPU = "quantization/image_classification/cpu"
MODELS = "quantization/language_model"
WEIGHTS = f"{MODELS}/llama/weight_only_quant"
TENSORRT = "create_calibrator(Percentile), compute_range, write_calibration_table, QDQQuantizer"
TABLE = "create_calibrator(Entropy), write_calibration_table"
OLIVE = "quant_pre_process, quantize_static, quantize_dynamic, get_qdq_config, a patched MinMaxCalibrater"
OPTIMUM_CALLS = "registries, create_calibrator, compute_data, QDQQuantizer, ONNXQuantizer"
HALF = "float_to_float16_max_diff, convert_float_to_float16"
YOLO = "quantization/object_detection/trt/yolov3"
RESNET = "examples/image_recognition/resnet50/quantization/ptq_static"
SCRIPTS = [
    Script(1, EXAMPLES, CPU, f"{CPU}/run.py", "quantize_static(QDQ, per_channel)", classification),
    Script(2, EXAMPLES, CPU, f"{CPU}/run_qdq_debug.py", "qdq_loss_debug", classification_debug),
    Script(2, EXAMPLES, f"{MODELS}/gpt2", f"{MODELS}/gpt2/run_qdq_debug.py", "qdq_loss_debug", gpt2_debug),
    Script(3, EXAMPLES, f"{MODELS}/gpt2", f"{MODELS}/gpt2/run_qdq.py", "quantize_static(QDQ)", gpt2),
    Script(
        4, EXAMPLES, "quantization/nlp/bert/trt", "quantization/nlp/bert/trt/e2e_tensorrt_bert_example.py", TENSORRT,
        bert_tensorrt,
    ),
    Script(5, EXAMPLES, YOLO, f"{YOLO}/e2e_user_yolov3_example.py", TABLE, yolo),
    Script(
        6, EXAMPLES, f"{MODELS}/llama/smooth_quant", f"{MODELS}/llama/smooth_quant/main.py",
        "quantize_static(QOperator, SmoothQuant)", smooth_quant,
    ),
    Script(7, EXAMPLES, WEIGHTS, f"{WEIGHTS}/main.py (RTN)", "MatMul4BitsQuantizer", weight_only),
    Script(7, EXAMPLES, WEIGHTS, f"{WEIGHTS}/main.py (GPTQ)", "MatMul4BitsQuantizer", weight_only_gptq),
    Script(
        8, EXAMPLES, "quantization/notebooks/imagenet_v2", "quantization/notebooks/imagenet_v2/mobilenet.ipynb",
        "quantize_static", mobilenet,
    ),
    Script(
        8, EXAMPLES, "mobile/examples/question_answering/android",
        "mobile/examples/question_answering/android/prepare_model.py", "quantize_dynamic", question_answering,
    ),
    Script(9, "microsoft/Olive", "", "olive/passes/onnx/quantization.py", OLIVE, olive_quantization),
    Script(9, "microsoft/Olive", "", "olive/passes/onnx/mixed_precision.py", HALF, olive_precision),
    Script(9, "microsoft/Olive", "", "olive/passes/onnx/bnb_quantization.py", "MatMulBnb4Quantizer", olive_bnb),
    Script(10, "huggingface/optimum-onnx", "", "ORTQuantizer", OPTIMUM_CALLS, optimum),
    Script(11, "onnx/neural-compressor", RESNET, f"{RESNET}/main.py", "subclass of StaticQuantConfig", compressor_static),
    Script(
        11, "onnx/neural-compressor", "examples/nlp/bert/quantization/ptq_dynamic",
        "examples/nlp/bert/quantization/ptq_dynamic/main.py", "subclass of DynamicQuantConfig", compressor_dynamic,
    ),
    Script(
        12, "amd/RyzenAI-SW", "CNN-examples/getting_started_resnet/int8",
        "CNN-examples/getting_started_resnet/int8/resnet_quantize.py", "CalibrationDataReader, QuantType, QuantFormat", ryzen,
    ),
    Script(
        12, "opencv/opencv_zoo", ".", "tools/quantize/quantize-ort.py", "quant_pre_process, quantize_static(QOperator)",
        opencv_zoo,
    ),
]  # fmt: skip
