"""Forms of operators that few models have, against numpy or onnxruntime."""

import numpy as np
import pytest
from numerics import constant
from onnx import helper, parser
from operators import run, same_as_onnxruntime

import sardonyx


def test_slice_whose_number_of_starts_only_axes_tell():
    x, index = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([2, 0], np.int32)
    nodes = [
        helper.make_node("Slice", ["index", "i", "j"], ["start"]),
        helper.make_node("Add", ["start", "one"], ["end"]),
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["y"]),
    ]
    inits = [constant("one", [1], np.int32), constant("axis", [0], np.int32)]
    feeds = {"x": x, "index": index, "i": np.array([0]), "j": np.array([1])}
    np.testing.assert_array_equal(run(nodes, feeds, opset=11, inits=inits)[0], x[2:3])
    with pytest.raises(Exception, match="node 'y' .Slice.*length"):
        run(nodes, feeds | {"j": np.array([2])}, opset=11, inits=inits)
    # The steps may be the only list of known length, too.
    nodes[2] = helper.make_node("Slice", ["x", "start", "end", "", "step"], ["y"])
    inits[1] = constant("step", [1], np.int32)
    np.testing.assert_array_equal(run(nodes, feeds, opset=11, inits=inits)[0], x[2:3])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("has_steps", [False, True])
def test_slice_by_a_number_of_starts_that_the_run_knows(has_steps, dtype):
    """torch's embedding_bag has slices by what another slice may leave of a list."""
    names = ["starts", "ends", *(["", "steps"] if has_steps else [])]
    nodes = [helper.make_node("Compress", [name, "kept"], [f"{name}_kept"]) for name in names if name]
    nodes.append(helper.make_node("Slice", ["x", *(f"{name}_kept" if name else "" for name in names)], ["y"]))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    feeds = {"x": x, "starts": np.array([-1, 1, 0], dtype), "ends": np.array([-9, 3, 1], dtype), "kept": np.ones(3, bool)}
    if has_steps:
        feeds["steps"] = np.array([-2, 1, 1], dtype)
    else:
        feeds["starts"][0], feeds["ends"][0] = 1, 2
    steps = feeds.get("steps", [1, 1, 1])
    for count in (0, 1, 2):
        want = x[tuple(slice(feeds["starts"][i], None if feeds["ends"][i] < 0 else feeds["ends"][i], steps[i]) for i in range(count))]
        [got] = run(nodes, feeds | {"kept": np.arange(3) < count}, opset=17)
        np.testing.assert_array_equal(got, want)
    with pytest.raises(sardonyx.errors.Fail, match="node 'y' .Slice.: there are 3 starts for 2 dimensions"):
        run(nodes, feeds, opset=17)


@pytest.mark.parametrize("opset", [9, 11, 22])
@pytest.mark.parametrize("given", ["constant", "input"])
@pytest.mark.parametrize("after", ["", "Relu", "MatMul"])
def test_max_unpool_to_a_given_shape(opset, given, after):
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    feeds = {"x": x, "i": np.array([[[[5, 7], [13, 15]]]])}
    want = np.zeros((1, 1, 5, 5), np.float32)
    want[0, 0, 1, 1], want[0, 0, 1, 3], want[0, 0, 3, 1], want[0, 0, 3, 3] = 1, 2, 3, 4
    shape, inits = [1, 1, 5, 5], []
    if given == "constant":
        inits.append(constant("o", shape))
    else:
        feeds["o"] = np.array(shape)
    nodes = [helper.make_node("MaxUnpool", ["x", "i", "o"], ["h"], kernel_shape=[2, 2], strides=[2, 2])]
    nodes.append(helper.make_node(after or "Identity", ["h", "h"] if after == "MatMul" else ["h"], ["y"]))
    [got] = run(nodes, feeds, opset=opset, inits=inits)
    np.testing.assert_array_equal(got, want @ want if after == "MatMul" else want)


def test_max_unpool_to_a_shape_that_is_too_small():
    feeds = {"x": np.ones((1, 1, 2, 2), np.float32), "i": np.zeros((1, 1, 2, 2), np.int64)}
    node = helper.make_node("MaxUnpool", ["x", "i", "o"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(Exception, match="'output_shape' is less than the attributes ask for"):
        run([node], feeds, inits=[constant("o", [1, 1, 4, 3])])
    with pytest.raises(sardonyx.errors.Fail, match="'output_shape' is less than the attributes ask for"):
        run([node], feeds | {"o": np.array([1, 1, 4, 3])})


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_batch_normalization_of_a_list(is_open):
    x = np.arange(4, dtype=np.float32)
    inits = [constant(n, [v], np.float32) for n, v in (("s", 2), ("b", 1), ("m", 3), ("v", 4))]
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    same_as_onnxruntime([node], {"x": x}, inits=inits, is_open=is_open)


@pytest.mark.parametrize("shape", [(2, 1, 3), (1, 2, 1), (2, 2, 3), (3,), (1,), (1, 1, 3)])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_scales_that_broadcast(shape, axis, op):
    rng = np.random.default_rng(0)
    x, scale, bias = (rng.normal(size=s).astype(np.float32) for s in ((2, 2, 3), shape, shape))
    axes = tuple(range(axis % 3, 3))
    centred = x.astype(np.float64)
    if op == "LayerNormalization":
        centred = centred - centred.mean(axes, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5) * scale
    inputs, feeds = ["x", "s"], {"x": x, "s": scale}
    if op == "LayerNormalization":
        inputs, feeds, want = [*inputs, "b"], {**feeds, "b": bias}, want + bias
    node = helper.make_node(op, inputs, ["y"], axis=axis, epsilon=1e-5)
    for is_open in (False, True):
        [got] = run([node], feeds, opset=23, is_open=is_open)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_scales_that_do_not_fit():
    x = np.ones((2, 3), np.float32)
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"])
    with pytest.raises(Exception, match="LayerNormalization"):
        run([node], {"x": x, "s": np.ones((1, 2, 3), np.float32)})


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_stft_of_signals_without_parts(is_open):
    x = np.random.default_rng(0).standard_normal((2, 400)).astype(np.float32)
    inits = [constant("step", 5), constant("window", np.hanning(20), np.float32), constant("length", 20)]
    for inputs in (["x", "step", "window", "length"], ["x", "step", "window"], ["x", "step", "", "length"]):
        node = helper.make_node("STFT", inputs, ["y"], onesided=1)
        same_as_onnxruntime([node], {"x": x}, inits=inits, is_open=is_open, atol=1e-4)


def test_attention_of_no_queries():
    """Only a run may give none: a model that never has any is refused, as onnxruntime refuses it."""
    feeds = {"q": np.ones((2, 3, 0, 4), np.float32), "k": np.ones((2, 3, 5, 4), np.float32)}
    [got] = run([helper.make_node("Attention", ["q", "k", "k"], ["y"])], feeds, opset=23, is_open=True)
    assert got.shape == (2, 3, 0, 4)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_sequences_of_no_steps(op, gates, direction):
    """The last state of a sequence without steps is zero, whatever it begins with."""
    rng, directions = np.random.default_rng(0), 1 + (direction == "bidirectional")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    feeds = {"x": normal(4, 3, 2), "w": normal(directions, gates * 5, 2), "r": normal(directions, gates * 5, 5)}
    feeds["h"] = normal(directions, 3, 5)
    names, outputs = ["x", "w", "r", "", "n", "h"], ["y", "yh"]
    if op == "LSTM":
        feeds["c"] = normal(directions, 3, 5)
        names, outputs = [*names, "c"], [*outputs, "yc"]
    node = helper.make_node(op, names, outputs, hidden_size=5, direction=direction)
    for lengths in ([4, 0, 2], [0, 0, 0]):
        same_as_onnxruntime([node], {**feeds, "n": np.array(lengths, np.int32)}, outputs, 14)


@pytest.mark.parametrize("sizes", [[5, 4], ["A", "B"]])
def test_shape_of_what_nobody_reads(sizes):
    text = ", ".join(map(str, sizes))
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (int64[N] i, float[{text}] t) => (int64[2] s, int64 n) '
        "{ y = Gather<axis = 0>(t, i) s = Shape(y) z = Add(y, y) n = Size(z) }"
    )
    session = sardonyx.InferenceSession(model.SerializeToString())
    shape, size = session.run(None, {"i": np.array([0, 1, 2]), "t": np.zeros((5, 4), np.float32)})
    assert shape.tolist() == [3, 4] and size == 12


@pytest.mark.parametrize("of_values", [np.float16, np.float64])
@pytest.mark.parametrize("heads", [{}, {"q_num_heads": 2, "kv_num_heads": 2}], ids=["heads", "rows"])
def test_attention_to_values_of_another_type(heads, of_values):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 2, size, 4)) for size in (3, 5, 5))
    scores = q @ k.swapaxes(2, 3) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    put = (lambda x: x.swapaxes(1, 2).reshape(2, -1, 8)) if heads else (lambda x: x)
    feeds = {"q": put(q).astype(np.float32), "k": put(k).astype(np.float32), "v": put(v).astype(of_values)}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y", "keys", "present"], **heads)
    got, present = run([node], feeds, ["y", "present"], opset=24)
    assert got.dtype == np.float32 and present.dtype == of_values
    np.testing.assert_allclose(got, put(want), rtol=1e-2 if of_values == np.float16 else 1e-4, atol=1e-3)
    np.testing.assert_array_equal(present, v.astype(of_values))


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_center_crop_pad_to_sizes_of_each_type(dtype, is_open):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    node = helper.make_node("CenterCropPad", ["x", "s"], ["y"], axes=[-1, 0])
    [got] = run([node], {"x": x, "s": np.array([2, 5], dtype)}, opset=18, is_open=is_open)
    np.testing.assert_array_equal(got, np.pad(x, ((1, 1), (0, 0)))[:, 1:3])


def test_a_loop_of_trips_alone_around_a_function_of_onnx():
    """Its condition is left out, and nothing is carried: the last input that is there is the first one."""
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (int64 n, int64 size) => (float[A, B] y) { y = Loop(n, "") <body = b (int64 i, bool c) '
        "=> (bool d, float[B] w) { d = Identity(c) w = HannWindow(size) }> }"
    )
    session = sardonyx.InferenceSession(model.SerializeToString())
    [got] = session.run(None, {"n": np.array(2), "size": np.array(5)})
    np.testing.assert_allclose(got, [0.5 - 0.5 * np.cos(2 * np.pi * np.arange(5) / 5)] * 2, atol=1e-6)


@pytest.mark.parametrize("body", ["y = Identity(x)", "y = Max(x)", "y = ai.onnx.preview.FlexAttention(x, x, x)"])
def test_inputs_of_no_rank(body):
    """The run tells it, also where nothing is computed, or inference wants to know it."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview" : 1]> g (float[N] x) => (float[N] y) {{ {body} }}')
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.ClearField("shape")
    session = sardonyx.InferenceSession(model.SerializeToString())
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    [got] = session.run(None, {"x": x})
    want = x
    if "Flex" in body:
        weights = np.exp(x @ x.swapaxes(2, 3) / np.sqrt(5))
        want = weights / weights.sum(-1, keepdims=True) @ x
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
