"""The models of onnxruntime's Python tests that a checkout does not have: made by the generators that lie beside, or as the
tests describe them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

ML = helper.make_opsetid("ai.onnx.ml", 1)
CPU = helper.make_opsetid("", 15)


def model(nodes, inputs, outputs, tensors=(), opsets=(CPU, ML)):
    """`inputs` and `outputs`: (name, element type, shape) or (name, TypeProto)."""

    def info(value):
        if len(value) == 2:
            return helper.make_value_info(*value)
        return helper.make_tensor_value_info(*value)

    tensors = [numpy_helper.from_array(array, name) for name, array in tensors]
    graph = helper.make_graph(nodes, "graph", [info(v) for v in inputs], [info(v) for v in outputs], tensors)
    return helper.make_model(graph, opset_imports=list(opsets), ir_version=8)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def tensor_of(element_type):
    return helper.make_tensor_type_proto(element_type, [])


def sequence_of(element_type):
    return helper.make_sequence_type_proto(tensor_of(element_type))


def mul_1():
    w = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    return model([node("Mul", "X W", "Y")], [("X", T.FLOAT, [3, 2])], [("Y", T.FLOAT, [3, 2])], [("W", w)])


def matmul(rows):
    w = np.array([[1], [2]], np.float32)
    return model([node("MatMul", "X W", "Y")], [("X", T.FLOAT, [rows, 2])], [("Y", T.FLOAT, [rows, 1])], [("W", w)])


def logical_and():
    inputs = [(name, T.BOOL, [2, 2]) for name in ("input1:0", "input:0")]
    return model([node("And", "input1:0 input:0", "output:0")], inputs, [("output:0", T.BOOL, [2, 2])])


def identity(kind):
    return model([node("Identity", "input:0", "output:0")], [("input:0", *kind)], [("output:0", *kind)])


def identity_optional():
    kind = helper.make_optional_type_proto(sequence_of(T.FLOAT))
    opsets = [helper.make_opsetid("", 16)]
    return model([node("Identity", "opt_in", "opt_out")], [("opt_in", kind)], [("opt_out", kind)], opsets=opsets)


def mnist():
    rng = np.random.default_rng(0)
    weights = [("w", (8, 1, 5, 5)), ("v", (8 * 14 * 14, 10)), ("b", (1, 10))]
    tensors = [(name, rng.standard_normal(shape).astype(np.float32)) for name, shape in weights]
    nodes = [
        node("Conv", "Input3 w", "c", pads=[2, 2, 2, 2]),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f v", "m"),
        node("Add", "m b", "Plus214_Output_0"),
    ]
    return model(nodes, [("Input3", T.FLOAT, [1, 1, 28, 28])], [("Plus214_Output_0", T.FLOAT, [1, 10])], tensors)


def sequence_length():
    return model([node("SequenceLength", "X", "Y")], [("X", sequence_of(T.FLOAT))], [("Y", T.INT64, [])])


def sequence_construct():
    inputs = [(name, T.INT64, [2, 3]) for name in ("tensor1", "tensor2")]
    nodes = [node("SequenceConstruct", "tensor1 tensor2", "output_sequence")]
    return model(nodes, inputs, [("output_sequence", sequence_of(T.INT64))])


def sequence_insert():
    inputs = [("input_seq", sequence_of(T.INT64)), ("tensor", T.INT64, [2, 3])]
    nodes = [node("SequenceInsert", "input_seq tensor", "output_sequence")]
    return model(nodes, inputs, [("output_sequence", sequence_of(T.INT64))])


def with_options():
    made = mul_1()
    options = {"inter_op_num_threads": 5, "intra_op_num_threads": 2, "graph_optimization_level": 99, "enable_profiling": 1}
    helper.set_model_props(made, {"ort_config": json.dumps({"session_options": options})})
    return made


def free_dimensions():
    made = model([node("Abs", "x", "y")], [("x", T.FLOAT, ["Dim1", "Dim2", 5])], [("y", T.FLOAT, ["Dim1", "Dim2", 5])])
    dims = made.graph.input[0].type.tensor_type.shape.dim
    dims[0].denotation, dims[1].denotation = "DATA_BATCH", "DATA_CHANNEL"
    return made


def tensor_reuse():
    nodes = [
        node("Add", "inp0 inp1", "tsor0"), node("Sub", "inp0 inp1", "tsor1"),
        node("Neg", "tsor0", "outp0"), node("Neg", "tsor1", "outp1"),
    ]  # fmt: skip
    vectors = lambda *names: [(name, T.FLOAT, [10]) for name in names]
    return model(nodes, vectors("inp0", "inp1"), vectors("outp0", "outp1"))


def zip_map(**labels):
    key = T.STRING if "classlabels_strings" in labels else T.INT64
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, tensor_of(T.FLOAT)))
    return model([node("ZipMap", "X", "Z", domain="ai.onnx.ml", **labels)], [("X", T.FLOAT, [None, 3])], [("Z", kind)])


def label_encoder():
    encode = node("LabelEncoder", "input", "variable", domain="ai.onnx.ml", classes_strings=["1", "2", "3", "4"])
    return model([encode], [("input", T.STRING, [1, 1])], [("variable", T.INT64, [1, 1])])


def vectorize():
    kind = helper.make_map_type_proto(T.INT64, tensor_of(T.FLOAT))
    nodes = [
        node("DictVectorizer", "float_input", "v", domain="ai.onnx.ml", int64_vocabulary=[0, 1, 2, 3, 4]),
        node("LinearRegressor", "v", "variable1", domain="ai.onnx.ml", coefficients=[1.0, 0.5, 3.0, -2.0, 0.25], intercepts=[21.602254]),
    ]
    return model(nodes, [("float_input", kind)], [("variable1", T.FLOAT, [1, 1])])


def encoder():
    categories = ["B\0B\0", "D\0D\0", "C\0C\0", "E\0E\0"]
    nodes = [
        node("Identity", "C0", "C00"),
        node("OneHotEncoder", "C1", "C12", domain="ai.onnx.ml", cats_strings=categories, zeros=1),
    ]
    inputs = [("C0", T.FLOAT, [1, 1]), ("C1", T.STRING, [1, 3])]
    return model(nodes, inputs, [("C00", T.FLOAT, [1, 1]), ("C12", T.FLOAT, [1, 3, 4])])


def tree():
    doubles = {"nodes_values": [1.7999999523162842, 0, 0], "target_weights": [0.7284910678863525, 0.9134243130683899]}
    attributes = {
        f"{name}_as_tensor": helper.make_tensor(name, T.DOUBLE, [len(values)], values) for name, values in doubles.items()
    }
    regress = node(
        "TreeEnsembleRegressor", "X", "f", domain="ai.onnx.ml", n_targets=1, post_transform="NONE",
        nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[2, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2],
        target_ids=[0, 0], **attributes,
    )  # fmt: skip
    opsets = [CPU, helper.make_opsetid("ai.onnx.ml", 3)]
    nodes = [regress, node("Cast", "f", "Y", to=T.DOUBLE)]
    return model(nodes, [("X", T.DOUBLE, [None, 4])], [("Y", T.DOUBLE, [None, 1])], opsets=opsets)


def low_rank():
    weights = [
        ("weight_x", np.arange(1, 17, dtype=np.float32).reshape(4, 4)),
        ("lora_param_a", np.zeros((4, 0), np.float32)),
        ("lora_param_b", np.zeros((0, 4), np.float32)),
    ]
    nodes = [
        node("MatMul", "input_x weight_x", "x"),
        node("MatMul", "input_x lora_param_a", "a"),
        node("MatMul", "a lora_param_b", "b"),
        node("Add", "x b", "output"),
    ]
    inputs = [("input_x", T.FLOAT, [4, 4]), ("lora_param_a", T.FLOAT, [4, "dim"]), ("lora_param_b", T.FLOAT, ["dim", 4])]
    return model(nodes, inputs, [("output", T.FLOAT, [4, 4])], weights)


MODELS = {
    "mul_1.onnx": mul_1,
    "matmul_1.onnx": lambda: matmul(3),
    "matmul_2.onnx": lambda: matmul("None"),
    "mnist.onnx": mnist,
    "logicaland.onnx": logical_and,
    "identity_string.onnx": lambda: identity((T.STRING, [2, 2])),
    "identity_opt.onnx": identity_optional,
    "sequence_length.onnx": sequence_length,
    "sequence_construct.onnx": sequence_construct,
    "sequence_insert.onnx": sequence_insert,
    "model_with_valid_ort_config_json.onnx": with_options,
    "abs_free_dimensions.onnx": free_dimensions,
    "alloc_tensor_reuse.onnx": tensor_reuse,
    "zipmap_stringfloat.onnx": lambda: zip_map(classlabels_strings=["class1", "class2", "class3"]),
    "zipmap_int64float.onnx": lambda: zip_map(classlabels_int64s=[10, 20, 30]),
    "LabelEncoder.onnx": label_encoder,
    "pipeline_vectorize.onnx": vectorize,
    "mlnet_encoder.onnx": encoder,
    "tree_ensemble_as_tensor.onnx": tree,
    "lora/two_params_lora_model.onnx": low_rank,
}
# Made by the checkout's own programs: (file, program, its words).
GENERATED = (
    ("model_with_orig_ext_data.onnx", "model_with_external_initializers.py", ()),
    ("model_with_external_initializer_come_from_user.onnx", "model_with_external_initializer_come_from_user.py", ()),
    (
        "sparse_initializer_as_output.onnx",
        "sparse_initializer_as_output.py",
        ("--node_name", "Constant", "--output_file", "sparse_initializer_as_output.onnx"),
    ),
    ("sparse_to_dense_matmul.onnx", "sparse_to_dense_matmul.py", ("--output_file", "sparse_to_dense_matmul.onnx")),
)


def assemble(testdata: Path, folder: Path) -> None:
    """Fills `folder` with copies of a checkout's test data, and with the models that it lacks."""
    shutil.copytree(testdata, folder)
    for name, make in MODELS.items():
        if not (folder / name).exists():
            onnx.save(make(), folder / name)
    for name, program, words in GENERATED:
        if not (folder / name).exists() and (folder / program).exists():
            subprocess.run([sys.executable, program, *words], cwd=folder, check=True, capture_output=True)
