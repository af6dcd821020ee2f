"""Models that bend ONNX's rules as tools do, against onnxruntime where it takes them, else against numpy."""

import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, parser

import sardonyx

X = np.linspace(-1, 2, 12).astype(np.float32).reshape(3, 4)


def model_of(nodes, inits=(), opset=17, shape=(3, 4), domains=(), **more):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, shape)], [onnx.ValueInfoProto(name="y")], list(inits)
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def run(model, x=X, engine=sardonyx):
    options = engine.SessionOptions()
    options.log_severity_level = 4
    session = engine.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def same_as_onnxruntime(model, x=X, **tolerance):
    np.testing.assert_allclose(run(model, x), run(model, x, onnxruntime), **{"rtol": 1e-5, "atol": 1e-6} | tolerance)


def floats(name, values, *shape):
    return helper.make_tensor(name, TensorProto.FLOAT, shape or [len(values)], values)


# Imports and order


def test_domains_that_everybody_knows_need_no_import():
    same_as_onnxruntime(model_of([helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")]))
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    same_as_onnxruntime(model_of([scaler]))
    with pytest.raises(Exception, match="does not import domain 'org.example'"):
        run(model_of([helper.make_node("Neg", ["x"], ["y"], domain="org.example")]))


def test_domains_of_functions_and_graphs():
    node = helper.make_node("QuickGelu", ["a"], ["b"], domain="com.microsoft")
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 17)])
    call = helper.make_node("F", ["x"], ["y"], domain="local")
    want = X / (1 + np.exp(-1.702 * X))
    np.testing.assert_allclose(run(model_of([call], domains=["local"], functions=[function])), want, rtol=1e-5)
    node = helper.make_node("QuickGelu", ["x"], ["b"], domain="com.microsoft")
    branch = helper.make_graph([node], "branch", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4])])
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["some"], to=TensorProto.BOOL),
        helper.make_node("If", ["some"], ["y"], then_branch=branch, else_branch=branch),
    ]
    np.testing.assert_allclose(run(model_of(nodes)), want, rtol=1e-5)


def test_nodes_in_any_order():
    nodes = [
        helper.make_node("Exp", ["c"], ["y"]),
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node("Abs", ["x"], ["b"]),
    ]
    same_as_onnxruntime(model_of(nodes))
    function = helper.make_function("local", "F", ["x"], ["y"], nodes, [helper.make_opsetid("", 17)])
    call = helper.make_node("F", ["x"], ["y"], domain="local")
    np.testing.assert_allclose(
        run(model_of([call], domains=["local"], functions=[function])), np.exp(-np.abs(X)), rtol=1e-6
    )


def test_a_branch_reads_what_is_made_later():
    info = helper.make_tensor_value_info("r", TensorProto.FLOAT, [3, 4])
    branch = helper.make_graph([helper.make_node("Neg", ["late"], ["r"])], "branch", [], [info])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Abs", ["x"], ["late"]),
    ]
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    np.testing.assert_array_equal(run(model_of(nodes, [condition])), -np.abs(X))


def test_names_of_inner_graphs_say_nothing_of_order():
    """What a branch calls `t` is its own, though a later node makes another `t` of what the branch gives."""
    info = helper.make_tensor_value_info("t", TensorProto.FLOAT, [3, 4])
    branch = helper.make_graph([helper.make_node("Abs", ["x"], ["t"])], "branch", [], [info])
    nodes = [
        helper.make_node("If", ["c"], ["a"], then_branch=branch, else_branch=branch),
        helper.make_node("Neg", ["a"], ["t"]),
        helper.make_node("Exp", ["t"], ["y"]),
    ]
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    np.testing.assert_allclose(run(model_of(nodes, [condition])), np.exp(-np.abs(X)), rtol=1e-6)


# Constants of one name, axes that repeat


def test_the_last_constant_of_a_name_counts():
    two, three = floats("w", [2.0] * 4), floats("w", [3.0] * 4)
    mul = helper.make_node("Mul", ["x", "w"], ["y"])
    same_as_onnxruntime(model_of([mul], [two, three]))
    constant = helper.make_node("Constant", [], ["w"], value=two)
    same_as_onnxruntime(model_of([constant, mul], [three]))
    other = helper.make_node("Constant", [], ["w"], value=three)
    same_as_onnxruntime(model_of([constant, other, mul]))
    with pytest.raises(Exception, match="'y' is defined twice"):
        run(model_of([helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]))


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axes", [[0, 2, 0], [0, -1, -3]])
def test_squeeze_of_repeated_axes(opset, axes):
    x = X.reshape(1, 12, 1)
    if opset < 13:
        model = model_of([helper.make_node("Squeeze", ["x"], ["y"], axes=axes)], opset=opset, shape=x.shape)
    else:
        init = helper.make_tensor("a", TensorProto.INT64, [3], axes)
        model = model_of([helper.make_node("Squeeze", ["x", "a"], ["y"])], [init], opset, x.shape)
    same_as_onnxruntime(model, x)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"])
def test_reductions_over_repeated_axes(op):
    for axes in ([1, 1], [1, -1], [0, 1, 0]):
        init = helper.make_tensor("a", TensorProto.INT64, [len(axes)], axes)
        same_as_onnxruntime(model_of([helper.make_node(op, ["x", "a"], ["y"])], [init], 18))
        if op != "ReduceSum":
            same_as_onnxruntime(model_of([helper.make_node(op, ["x"], ["y"], axes=axes)], opset=13))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_erf_of_integers(dtype):
    # Until 13; as onnx.reference, in single precision and towards zero.
    x = np.arange(10).astype(dtype) if dtype.startswith("u") else np.arange(-9, 9).astype(dtype)
    model = model_of([helper.make_node("Erf", ["x"], ["y"])], opset=9, shape=x.shape)
    model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    model.graph.output[0].ClearField("type")
    y = run(model, x)
    assert y.dtype == x.dtype
    assert y.tolist() == [int(np.float32(math.erf(v))) for v in x.tolist()]


# Operators before their time, and after it


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 16])
def test_layer_normalization_before_17(opset):
    inits = [floats("w", [1.0, 2.0, 0.5, -1.0]), floats("b", [0.0, 1.0, 2.0, 3.0])]
    node = helper.make_node("LayerNormalization", ["x", "w", "b"], ["n"], axis=-1, epsilon=1e-3)
    # Softmax changed its meaning with 13: it looks at the type.
    same_as_onnxruntime(model_of([node, helper.make_node("Softmax", ["n"], ["y"])], inits, opset))
    with pytest.raises(Exception, match="LayerNormalization"):
        run(model_of([helper.make_node("LayerNormalization", ["x"], ["y"])], opset=opset))


@pytest.mark.parametrize("opset", [1, 7, 9])
def test_thresholded_relu_before_10(opset):
    same_as_onnxruntime(model_of([helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=0.5)], opset=opset))


@pytest.mark.parametrize("attributes", [{}, {"across_channels": 1}, {"normalize_variance": 0}])
def test_mean_variance_normalization_before_9(attributes):
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **attributes)
    same_as_onnxruntime(model_of([node], opset=7, shape=x.shape), x, rtol=1e-4, atol=1e-5)


EXPERIMENTAL = {
    "Affine": [{}, {"alpha": 2.0, "beta": -1.0}],
    "Crop": [{"border": [1, 0, 2, 1]}, {"border": [1, 2, 0, 0], "scale": [3, 2]}],
    "ImageScaler": [{"scale": 2.0, "bias": [1.0, -1.0, 0.5]}],
    "ParametricSoftplus": [{"alpha": 2.0, "beta": 3.0}],
    "Scale": [{}, {"scale": 0.25}],
    "ScaledTanh": [{"alpha": 2.0, "beta": 0.5}],
}


@pytest.mark.parametrize("op", EXPERIMENTAL)
@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_experimental(op, is_open):
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 5)).astype(np.float32)
    for attributes in EXPERIMENTAL[op]:
        node = helper.make_node(op, ["x"], ["y"], **attributes)
        same_as_onnxruntime(model_of([node], opset=7, shape=list("nchw") if is_open else x.shape), x)


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_experimental_that_do_not_fit(is_open):
    shape = list("nchw") if is_open else [1, 2, 3, 4]
    x = np.zeros((1, 2, 3, 4), np.float32)
    for op, attributes in (
        ("Crop", {"border": [3, 0, 2, 0]}),
        ("Crop", {"border": [0, 1, 0, 0], "scale": [3, 1]}),
        ("Crop", {"border": [-1, 0, 0, 0]}),
        ("Crop", {"border": [1, 1]}),
        ("ImageScaler", {"bias": [1.0]}),
        ("ScaledTanh", {"alpha": 1.0}),
    ):
        with pytest.raises(Exception, match="node 'y'"):
            run(model_of([helper.make_node(op, ["x"], ["y"], **attributes)], opset=7, shape=shape), x)


def test_dynamic_slice():
    lists = {"s": [1, 0], "e": [3, -1], "a": [0, 1]}
    inits = [helper.make_tensor(name, TensorProto.INT64, [2], values) for name, values in lists.items()]
    for inputs in (["x", "s", "e"], ["x", "s", "e", "a"]):
        same_as_onnxruntime(model_of([helper.make_node("DynamicSlice", inputs, ["y"])], inits, 7))


def test_given_tensor_fill():
    fill = {"values": list(np.arange(12.0))}
    for inputs, attributes in (([], {"shape": [3, 4]}), (["x"], {}), (["z"], {"extra_shape": [2, 2]})):
        nodes = [
            helper.make_node("ReduceMax", ["x"], ["z"], axes=[1], keepdims=0),
            helper.make_node("GivenTensorFill", inputs, ["f"], **fill, **attributes),
            helper.make_node("Add", ["f", "zero"], ["y"]),
        ]
        got = run(model_of(nodes, [floats("zero", [0.0], 1)], 7))
        want = np.arange(12, dtype=np.float32).reshape((3, 2, 2) if "extra_shape" in attributes else (3, 4))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("opset", [11, 13, 18, 22])
def test_the_mode_of_tensorflow_after_its_time(opset):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    sizes = helper.make_tensor("s", TensorProto.INT64, [4], [1, 1, 3, 7])
    empty = floats("e", [], 0)
    node = helper.make_node(
        "Resize",
        ["x", "e", "e", "s"] if opset < 13 else ["x", "", "", "s"],
        ["y"],
        mode="nearest",
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        nearest_mode="floor",
    )
    same_as_onnxruntime(model_of([node], [sizes, empty] if opset < 13 else [sizes], opset, x.shape), x)
    node.attribute[2].s = b"ceil"
    with pytest.raises(sardonyx.errors.InvalidGraph, match="nearest_mode 'floor' only"):
        run(model_of([node], [sizes, empty] if opset < 13 else [sizes], opset, x.shape), x)


def test_text_that_is_not_sorted():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[3,4] x) => (float[3,4] y) { y = Neg(a)  a = Abs(x) }'
    )
    np.testing.assert_array_equal(run(model), -np.abs(X))
