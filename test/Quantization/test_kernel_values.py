"""Values that a kernel makes and uses up stay float: which these are, and that results lose less by it."""

import numpy as np
import onnx
import pytest
from running import check, decibels, ours, peers

from sardonyx.quantization import Plan, apply_plan, quantize_static
from sardonyx.quantization.graph_index import GraphIndex
from sardonyx.quantization.kernel_values import values_within_kernels


def draw(random, *shape):
    return random.normal(0, 0.4, shape).astype(np.float32)


def within(text, **constants):
    weights = "".join(f", float {name} = {{{value}}}" for name, value in constants.items())
    graph = onnx.parser.parse_graph(text.replace("<>", f"<{weights[2:]}>"))
    return values_within_kernels(GraphIndex(graph))


def test_chains_behind_products():
    found = within(
        """g (float[1, 4, 8, 8] x, float[4, 4, 1, 1] w) => (float[1, 4, 8, 8] y) <> {
            c = Conv(x, w)
            s = Add(c, three)
            t = Clip(s, zero, six)
            h = Mul(c, t)
            y = Conv(h, w)
        }""",
        three=3.0, zero=0.0, six=6.0,
    )  # fmt: skip
    assert found == {"c", "s", "t", "three", "zero", "six"}


@pytest.mark.parametrize(
    "nodes, found",
    [
        ("a = Conv(x, w)  b = Conv(x, w)  s = Add(a, b)  y = Conv(s, w)", {"b"}),  # one sum is of the last kernel
        ("a = Conv(x, w)  b = Conv(a, w)  s = Add(a, b)  y = Conv(s, w)", {"b"}),  # a product reads the other
        ("a = Conv(x, w)  b = Relu(a)  y = Conv(b, w)", set()),  # Relu is removed instead
        ("a = Conv(x, w)  b = Relu(a)  c = HardSigmoid(b)  y = Conv(c, w)", {"a", "b"}),
        ("a = Conv(x, w)  y = Abs(a)", {"a"}),
        ("a = Conv(x, w)  b = HardSigmoid(a)  y = Add(a, b)", {"a", "b"}),
        ("a = MaxPool<kernel_shape = [1, 1]>(x)  b = Abs(a)  y = Conv(b, w)", set()),  # bytes are faster moved
        ("s = Abs(x)  y = Conv(s, w)", {"x"}),  # inputs come as floats
        ("a = Conv(x, w)  b = Sigmoid(a)  c = Mul(a, b)  y = Conv(c, w)", {"b"}),  # a table
        ("a = Conv(x, w)  b = Neg(a)  c = Erf(b)  d = Mul(a, c)  y = Conv(d, w)", {"b", "c"}),
        ("a = Conv(x, w)  b = Conv(x, w)  c = Neg(b)  d = Tanh(c)  e = Abs(d)  f = Mul(a, e)  y = Conv(f, w)", {"c", "d"}),
    ],
)
def test_kernels_end_at_memory(nodes, found):
    lines = nodes.replace("  ", "\n")
    assert within(f"g (float[1, 4, 8, 8] x, float[4, 4, 1, 1] w) => (float[1, 4, 8, 8] y) {{ {lines} }}") == found


def test_outputs_are_memory():
    text = "g (float[1, 4, 8, 8] x, float[4, 4, 1, 1] w) => (float[1, 4, 8, 8] a, float[1, 4, 8, 8] y) { a = Conv(x, w)\n y = Sigmoid(a) }"
    assert within(text) == set()


@pytest.fixture
def network(model, random):
    return model(
        """g (float[1, 8, 12, 12] x) => (float[1, 8, 12, 12] y) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
            a = Mul(c, gain)
            s = Add(a, shift)
            t = Add(s, three)
            u = Clip(t, zero, six)
            v = Mul(s, u)
            h = Div(v, six)
            n = BatchNormalization(h, scale, bias, mean, var)
            d = Conv(n, w2, b2)
            r = Add(n, d)
            y = Conv(r, w2, b2)
        }""",
        w1=draw(random, 8, 8, 3, 3), b1=draw(random, 8), w2=draw(random, 8, 8, 1, 1), b2=draw(random, 8),
        gain=1 + draw(random, 1), shift=draw(random, 1), three=np.float32([3]), zero=np.float32(0), six=np.float32(6),
        scale=1 + draw(random, 8), bias=draw(random, 8), mean=draw(random, 8), var=np.abs(draw(random, 8)) + 0.5,
    )  # fmt: skip


def test_results(network, random, tmp_path):
    samples = [{"x": draw(random, 1, 8, 12, 12)} for _ in range(8)]
    float_ = [ours(network, feeds)[0] for feeds in samples]
    noise = {}
    for inside in (False, True):
        small = quantize_static(network, None, samples, per_channel=True, extra_options={"FloatWithinKernels": inside})
        check(small)
        found = [ours(small, feeds)[0] for feeds in samples]
        for a, feeds in zip(found, samples):
            b = peers(small, feeds)[0]
            assert np.linalg.norm(a - b) < 0.01 * np.linalg.norm(b)
        noise[inside] = decibels(float_, found)
    assert noise[True] > noise[False]
    rounded = {node.input[0] for node in small.graph.node if node.op_type == "QuantizeLinear"}
    assert rounded == {"x", "n", "r", "y_QuantizeLinear_Input"}
    assert not {"gain", "shift", "three", "scale", "bias"} & {name.removesuffix("_quantized") for name in weights_of(small)}
    plan = Plan.of_model(small)
    makers = {node.output[0]: plan.nodes[node.name] for node in small.graph.node if node.name in plan.nodes}
    assert makers["a"].precision == "float" and "kernel" in makers["a"].reason
    assert makers["c"].precision == "int8"
    again = apply_plan(network, None, plan)
    assert ours(again, samples[0])[0].tobytes() == found[0].tobytes()


def weights_of(model):
    return {tensor.name for tensor in model.graph.initializer if tensor.name.endswith("_quantized")}
