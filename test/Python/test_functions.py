"""Functions that models bring along, against ONNX's own inliner and reference evaluator."""

import re

import numpy as np
import onnx
import pytest
from onnx import inliner, parser
from onnx.reference import ReferenceEvaluator

import sardonyx as sdx
from graphs import make

HEAD = '<ir_version: 10, opset_import: ["" : 22, "local" : 1]>'
LOCAL = '<domain: "local", opset_import: ["" : 22, "local" : 1]>'

SCALE = f"""{LOCAL}
Scale <by: float = 3.0> (a) => (b) {{
  f = Constant <value_float: float = @by> ()
  b = Mul (a, f)
}}"""

X = np.arange(-6, 6, dtype=np.float32)

# Each with its inputs: the graph, its functions, and what it is fed.
MODELS = {
    "attributes": (
        "m (float[N] x) => (float[N] y) { t = local.Scale <by = 0.5> (x) y = local.Scale (t) }",
        [SCALE],
        [X],
    ),
    # What a call leaves out is absent in the body, also one function further.
    "left-out": (
        "m (float[N] x, float high) => (float[N] y, float[N] z) { y = local.Cut (x, , high) z = local.Cut (x) }",
        [
            f"{LOCAL} Cut (a, low, high) => (b) {{ b = local.Inner (a, low, high) }}",
            f"{LOCAL} Inner (a, low, high) => (b) {{ b = Clip (a, low, high) }}",
        ],
        [X, np.float32(2)],
    ),
    "two-ranks": (
        "m (float[N] x, float[2, K] m) => (float[N] y, float[2, K] z) { y = local.Center (x) z = local.Center (m) }",
        [f"{LOCAL} Center (a) => (b) {{ n = ReduceMean <keepdims = 0> (a) b = Sub (a, n) }}"],
        [X, X.reshape(2, 6)],
    ),
    "two-types": (
        "m (float[N] x, int64[N] i) => (float[N] y, int64[N] z) { y = local.Twice (x) z = local.Twice (i) }",
        [f"{LOCAL} Twice (a) => (b) {{ b = Add (a, a) }}"],
        [X, np.arange(12)],
    ),
    # The shape hangs on the value that the caller passes.
    "values": (
        """m (float[12] x) => (float[A, B] y, float[C, D, E] z) {
          s = Constant <value_ints = [3, 4]> () t = Constant <value_ints = [2, 3, 2]> ()
          y = local.As (x, s) z = local.As (x, t)
        }""",
        [f"{LOCAL} As (a, s) => (b) {{ r = Reshape (a, s) b = Relu (r) }}"],
        [X],
    ),
    "in-branches": (
        """m (float[N] x, bool c) => (float[N] y) {
          y = If (c) <
            then_branch = t () => (p) { p = local.Scale <by = 2.0> (x) },
            else_branch = e () => (q) { r = local.Scale (x) q = local.Scale <by = 2.0> (r) }>
        }""",
        [SCALE],
        [X, np.bool_(False)],
    ),
    "in-loops": (
        """m (float[N] x, int64 n) => (float[N] y) {
          yes = Constant <value = bool {1}> ()
          y = Loop (n, yes, x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c) e = local.Step (a) }>
        }""",
        [f"{LOCAL} Step (a) => (b) {{ s = local.Scale <by = 0.5> (a) b = Add (s, a) }}", SCALE],
        [X, np.int64(3)],
    ),
    "control-flow": (
        "m (float[N] x, bool c) => (float[N] y) { t = local.Choose (c, x) y = local.Choose (c, t) }",
        [
            f"""{LOCAL} Choose (c, a) => (b) {{
              b = If (c) <then_branch = t () => (p) {{ p = local.Scale (a) }},
                          else_branch = e () => (q) {{ q = Neg (a) }}> }}""",
            SCALE,
        ],
        [X, np.bool_(True)],
    ),
    # Softmax of version 11 takes all axes from 1 on as one.
    "versions": (
        "m (float[2, 3, 2] x) => (float[2, 3, 2] y, float[2, 3, 2] z) { y = local.Old (x) z = Softmax (x) }",
        ['<domain: "local", opset_import: ["" : 11]> Old (a) => (b) { b = Softmax (a) }'],
        [X.reshape(2, 3, 2)],
    ),
    "same-input": (
        "m (float[N] x, float[N] w) => (float[N] y, float[N] z) { y = local.Less (x, x) z = local.Less (x, w) }",
        [f"{LOCAL} Less (a, b) => (c) {{ s = Sub (a, b) c = Abs (s) }}"],
        [X, X * X],
    ),
    "some-outputs": (
        "m (float[N] x) => (float[N] y, float[N] z) { , y = local.Both (x) z, _ = local.Both (x) }",
        [f"{LOCAL} Both (a) => (b, c) {{ b = Neg (a) c = Abs (a) }}"],
        [X],
    ),
    "through": (
        "m (float[N] x) => (float[N] y, float[N] z) { y, z = local.Pass (x) }",
        [f"{LOCAL} Pass (a) => (a, a) {{ }}"],
        [X],
    ),
}


def build(graph, functions):
    return parser.parse_model("\n".join([HEAD, graph, *functions]))


def run(model, feeds):
    session = make(model)
    return session.run(None, {a.name: v for a, v in zip(session.get_inputs(), feeds)})


def give_defaults(model):
    """The reference knows no defaults in functions."""
    defaults = {f.name: f.attribute_proto for f in model.functions}

    def visit(nodes):
        for node in nodes:
            given = {a.name for a in node.attribute}
            if node.domain == "local":
                node.attribute.extend(a for a in defaults[node.op_type] if a.name not in given)
            for attribute in node.attribute:
                visit(attribute.g.node)

    for graph in [model.graph, *model.functions]:
        visit(graph.node)


def expected(name, model, feeds):
    # The reference has one version of each operator in a model.
    if name == "versions":
        e = np.exp(feeds[0])
        return [e / e.sum((1, 2), keepdims=True), e / e.sum(2, keepdims=True)]
    # It wants outputs to be made by a node.
    if name == "through":
        return [feeds[0], feeds[0]]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    give_defaults(copy)
    reference = ReferenceEvaluator(inliner.inline_local_functions(copy))
    return reference.run(None, dict(zip(reference.input_names, feeds)))


def check(actual, wanted):
    assert len(actual) == len(wanted)
    for a, w in zip(actual, wanted):
        np.testing.assert_allclose(a, w, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    graph, functions, feeds = MODELS[name]
    model = build(graph, functions)
    check(run(model, feeds), expected(name, model, feeds))


@pytest.mark.parametrize("name", MODELS)
def test_optimized_models(name, tmp_path):
    """The model after the phase that inlines has no functions, and means the same."""
    graph, functions, feeds = MODELS[name]
    model = build(graph, functions)
    path = tmp_path / "o.onnx"
    options = sdx.SessionOptions()
    options.cache, options.optimized_model_filepath = False, str(path)
    sdx.InferenceSession(model.SerializeToString(), options)
    saved = onnx.load(path)
    assert not saved.functions
    check(run(saved, feeds), expected(name, model, feeds))


def test_graphs_as_attributes():
    """A graph that the call gives sees the caller's values inside the function."""
    model = build(
        "m (float[N] x, float[N] w, bool c) => (float[N] y) { s = Neg (w) y = local.Choose (c, x) }",
        [f"{LOCAL} Choose <then, other> (c, a) => (b) {{ d = local.Inner (c) b = Add (a, d) }}",
         f"{LOCAL} Inner <then, other> (c) => (b) {{ b = If (c) }}"],
    )  # fmt: skip
    branch = lambda text: parser.parse_graph(text)
    given = {"then": branch("t () => (float[N] p) { p = Mul (w, s) }"),
             "other": branch("e () => (float[N] q) { q = Identity (s) }")}  # fmt: skip

    def refer(node, **names):
        for name, to in names.items():
            attribute = node.attribute.add()
            attribute.name, attribute.ref_attr_name = name, to
            attribute.type = onnx.AttributeProto.GRAPH

    refer(model.functions[0].node[0], then="then", other="other")
    refer(model.functions[1].node[0], then_branch="then", else_branch="other")
    for name, graph in given.items():
        model.graph.node[1].attribute.append(onnx.helper.make_attribute(name, graph))
    w = np.linspace(1, 2, 12, dtype=np.float32)
    check(run(model, [X, w, np.bool_(True)]), [X - w * w])
    check(run(model, [X, w, np.bool_(False)]), [X - w])


def test_inspect_names_functions():
    graph, functions, _ = MODELS["in-loops"]
    report = sdx.inspect(build(graph, functions).SerializeToString())
    assert report["functions"] == {"local.Scale": 1, "local.Step": 1}
    assert report["ops"] == {"Loop": 1, "Identity": 1, "Mul": 1, "Add": 1}
    assert not report["unsupported"]


@pytest.mark.parametrize(
    "graph, functions, message",
    [
        ("m (float[N] x) => (float[N] y) { y = local.F (x) }", [f"{LOCAL} F (a) => (b) {{ b = local.F (a) }}"], "function 'F' calls itself"),
        ("m (float[N] x) => (float[N] y) { y = local.G (x) }", [f"{LOCAL} F (a) => (b) {{ b = Neg (a) }}"], "G of domain 'local' .node 'y'."),
        ("m (float[N] x) => (float[N] y) { y = local.F (x, x) }", [f"{LOCAL} F (a) => (b) {{ b = Neg (a) }}"], "takes 1 inputs, found 2"),
        ("m (float[N] x) => (float[N] y) { y, z = local.F (x) }", [f"{LOCAL} F (a) => (b) {{ b = Neg (a) }}"], "has 1 outputs, found 2"),
        ("m (float[N] x) => (float[N] y) { y = local.F (x) }", [f"{LOCAL} F <to> (a) => (b) {{ b = Cast <to: int = @to> (a) }}"], "(?s)node 'y' .Cast.*to"),
        ("m (float[N] x) => (float[N] y) { y = local.F (x) }", [f"{LOCAL} F (a) => (b) {{ c = Neg (a) }}"], "output 'b' of function 'F' is defined nowhere in it"),
        ("m (float[N] x) => (float[N] y) { y = local.F (none) }", [f"{LOCAL} F (a) => (b) {{ b = Neg (a) }}"], "input 'none' is defined nowhere"),
    ],
)  # fmt: skip
def test_refusals(graph, functions, message):
    with pytest.raises(Exception) as error:
        make(build(graph, functions))
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize("name", ["end", "0", "7"])
@pytest.mark.parametrize("inside", [False, True])
def test_marks_are_refused(name, inside):
    """A file cannot have what the importer puts around bodies."""
    model = build("m (float[N] x) => (float[N] y) { t = Neg (x) y = local.F (t) }", [f"{LOCAL} F (a) => (b) {{ b = Neg (a) }}"])
    node = model.functions[0].node[0] if inside else model.graph.node[0]
    node.domain, node.op_type = "sardonyx.call", name
    with pytest.raises(sdx.InvalidGraph, match="the domain 'sardonyx.call' is reserved"):
        make(model)


def test_nodes_of_functions_have_the_names_of_their_calls(tmp_path):
    model = build(
        "m (float[N] x) => (float[N] y) { t = local.Step (x) y = local.Step (t) }",
        [f"{LOCAL} Step (a) => (b) {{ s = local.Lift (a) b = Sin (s) }}",
         f"{LOCAL} Lift (a) => (b) {{ c = Exp (a) b = Tan (c) }}"],
    )  # fmt: skip
    model.graph.node[0].name = "first"
    model.functions[0].node[0].name = "lift"
    model.functions[1].node[0].name = "exp"
    path = tmp_path / "o.onnx"
    options = sdx.SessionOptions()
    options.cache, options.optimized_model_filepath = False, str(path)
    sdx.InferenceSession(model.SerializeToString(), options)
    nodes = onnx.load(path).graph.node
    # Calls without a name are called after their function.
    names = ["first/0/lift/1/exp", "first/0/s", "t", "Step/2/lift/3/exp", "Step/2/s", "y"]
    assert [node.name for node in nodes] == names
    assert [node.output[0] for node in nodes] == ["first/0/lift/1/c", "first/0/s", "t", "Step/2/lift/3/c", "Step/2/s", "y"]
