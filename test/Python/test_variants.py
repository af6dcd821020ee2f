"""Models whose ranks hang on what a run gives: compiled once for each set of ranks and lengths."""

import threading

import numpy as np
import onnx
import onnx.reference
import pytest
import sardonyx
from onnx import parser

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def model(text, unranked=()):
    result = onnx.parser.parse_model(HEAD + text)
    for value in [*result.graph.input, *result.graph.output]:
        if value.name in unranked:
            value.type.tensor_type.ClearField("shape")
    return result


def session(text, unranked=(), **options):
    chosen = sardonyx.SessionOptions()
    chosen.cache = False
    for name, value in options.items():
        setattr(chosen, name, value)
    return sardonyx.InferenceSession(model(text, unranked).SerializeToString(), chosen)


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_inputs_of_any_rank():
    runs = session("(float[] x, float[2] w) => (float[] y) { y = Add(x, w) }", "xy")
    assert runs.get_inputs()[0].shape is None and runs.get_outputs()[0].shape is None
    for shape in [(2,), (3, 2), (1, 3, 2), (3, 2), (4, 2), (0, 2), (5, 1), ()]:
        x = ramp(*shape)
        (y,) = runs.run(None, {"x": x, "w": np.ones(2, np.float32)})
        np.testing.assert_array_equal(y, x + np.ones(2, np.float32))


def test_rank_by_length_of_a_list():
    runs = session("(float[A,B,C] x, int64[S] s) => (float[P,Q,R] y) { y = Reshape(x, s) }")
    for shape in [(4, 3, 2), (24,), (2, 12), (24,), (1, 2, 3, 4)]:
        (y,) = runs.run(None, {"x": ramp(2, 3, 4), "s": np.array(shape)})
        np.testing.assert_array_equal(y, ramp(*shape))


@pytest.mark.parametrize("axes", [[0], [1, 2], [0, 1, 2], [-1], []])
def test_rank_by_reduced_axes(axes):
    runs = session("(float[A,B,C] x, int64[K] a) => (float[] y) { y = ReduceSum <keepdims = 0> (x, a) }", "y")
    (y,) = runs.run(None, {"x": ramp(2, 3, 4), "a": np.array(axes, np.int64)})
    np.testing.assert_array_equal(y, ramp(2, 3, 4).sum(tuple(axes) or None))


def test_from_a_file_and_from_the_cache(tmp_path):
    path = tmp_path / "model.onnx"
    text = "(float[] x) => (float[] y) { s = Shape(x) t = Cast <to = 1> (s) u = ReduceSum(t) y = Add(x, u) }"
    onnx.save(model(text, "xy"), path)
    options = sardonyx.SessionOptions()
    options.cache_dir = str(tmp_path / "cache")
    for _ in range(2):
        runs = sardonyx.InferenceSession(str(path), options)
        for shape in [(3,), (2, 3)]:
            np.testing.assert_array_equal(runs.run(None, {"x": ramp(*shape)})[0], ramp(*shape) + sum(shape))
    onnx.save(model(text.replace("Add(x, u)", "Sub(x, u)"), "xy"), path)
    with pytest.raises(RuntimeError, match="changed after it was loaded"):
        runs.run(None, {"x": ramp(1, 2, 3)})
    np.testing.assert_array_equal(runs.run(None, {"x": ramp(3)})[0], ramp(3) + 3)


def test_what_no_rank_mends():
    runs = session("(float[] x, float[] w) => (float[] y) { y = MatMul(x, w) }", "xwy")
    with pytest.raises(sardonyx.errors.Fail, match="MatMul"):
        runs.run(None, {"x": ramp(2, 3), "w": ramp(2, 3)})
    (y,) = runs.run(None, {"x": ramp(2, 3), "w": ramp(3, 2)})
    np.testing.assert_array_equal(y, ramp(2, 3) @ ramp(3, 2))
    pools = session("(float[] x) => (float[] y) { y = MaxPool <kernel_shape = [2, 2]> (x) }", "xy")
    with pytest.raises(sardonyx.errors.InvalidArgument, match="MaxPool"):
        pools.run(None, {"x": ramp(2, 3)})
    assert pools.run(None, {"x": ramp(1, 1, 2, 3)})[0].tolist() == [[[[4, 5]]]]
    handed_on = session("(complex64[] x) => (complex64[] y) { y = Identity(x) }", "xy")
    assert handed_on.run(None, {"x": np.array([1j, 2], np.complex64)})[0].tolist() == [1j, 2]
    with pytest.raises(NotImplementedError):
        session("(float[2] x) => (seq(complex64[N]) y) { y = SequenceEmpty <dtype = 14> () }", "y")


def test_results_into_memory_and_limits():
    runs = session("(float[] x) => (float[] y) { y = Neg(x) }", "xy", memory_limit=100_000)
    binding = runs.io_binding()
    y = np.zeros((2, 3), np.float32)
    binding.bind_cpu_input("x", ramp(2, 3))
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    runs.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, -ramp(2, 3))
    with pytest.raises(RuntimeError, match="memory"):
        runs.run(None, {"x": ramp(300, 100, 10)})
    stopped = sardonyx.RunOptions()
    stopped.terminate = True
    with pytest.raises(RuntimeError):
        runs.run(None, {"x": ramp(1, 1, 1, 1, 1)}, stopped)


def test_threads():
    runs = session("(float[] x) => (float[] y) { y = Neg(x) }", "xy")
    wrong = []

    def work(rank):
        for _ in range(5):
            x = ramp(*[2] * rank)
            if not np.array_equal(runs.run(None, {"x": x})[0], -x):
                wrong.append(rank)

    threads = [threading.Thread(target=work, args=(rank % 5,)) for rank in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_shapes_given_with_the_options():
    text = "(float[A,B] x) => (float[P,Q] y) { y = Neg(x) }"
    options = sardonyx.SessionOptions()
    options.cache = False
    options.set_input_shape("x", [None, 3])
    runs = sardonyx.InferenceSession(model(text).SerializeToString(), options)
    assert runs.get_inputs()[0].shape == ["A", 3]
    np.testing.assert_array_equal(runs.run(None, {"x": ramp(2, 3)})[0], -ramp(2, 3))
    with pytest.raises(sardonyx.errors.InvalidArgument, match="dimension 1 must be 3"):
        runs.run(None, {"x": ramp(2, 2)})
    options.set_input_shape("nobody", [1])
    with pytest.raises(Exception, match="'nobody'"):
        sardonyx.InferenceSession(model(text).SerializeToString(), options)
    options = sardonyx.SessionOptions()
    options.set_input_shape("x", [-2])
    with pytest.raises(sardonyx.errors.InvalidArgument, match="'x'"):
        sardonyx.InferenceSession(model(text).SerializeToString(), options)


def test_attention_without_queries():
    text = "(float[1,1,0,4] q, float[1,1,3,4] k) => (float[P,Q,R,T] y) { y = Attention(q, k, k) }"
    with pytest.raises(sardonyx.errors.InvalidGraph, match="no queries"):
        m = model(text)
        m.opset_import[0].version = 23
        sardonyx.InferenceSession(m.SerializeToString())


def test_queries_that_are_none_in_a_run():
    """Also where all sizes are fixed, since the width of the projections is not declared."""
    text = """<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>
      g (float[b,s,w] x, float[w,t] k) => (float[P,Q,R] y) <float[12] bias = {0,1,2,3,4,5,6,7,8,9,10,11}>
      { y = com.microsoft.Attention<num_heads = 2>(x, k, bias) }"""
    runs = sardonyx.InferenceSession(parser.parse_model(text).SerializeToString())
    for length in (3, 0):
        got = runs.run(None, {"x": np.ones((2, length, 1), np.float32), "k": np.ones((1, 12), np.float32)})[0]
        assert got.shape == (2, length, 4)


def test_same_inputs_get_the_same_code(tmp_path):
    """Also after others, of a list too long for its length to be a part of the code, have needed all sizes fixed."""
    text = "(int64[N] s, float[A,B] x) => (int64[M] t, float[C,D] y) { t = Squeeze(s) y = Abs(x) }"
    runs = session(text, cache=True, cache_dir=tmp_path)

    def cached_after(length):
        s = np.arange(length)
        t, _ = runs.run(None, {"s": s, "x": ramp(3, 4)})
        np.testing.assert_array_equal(t, s)
        return sorted(tmp_path.rglob("*"))

    cached_after(16)
    cached = cached_after(64)
    assert cached_after(16) == cached


def test_sizes_of_filters_that_arrive(tmp_path):
    """Where the compiler needs sizes that only inputs tell, it gets all of them when they are there."""
    text = '(float[N,C,H,W] x, float[O,I,P,Q] w) => (float[N,O,R,S] y) { y = Conv <auto_pad = "SAME_UPPER"> (x, w) }'
    for cached in (False, True):
        runs = session(text, cache=True, cache_dir=tmp_path)
        assert runs.from_cache == cached
        for shape in [(4, 3, 3, 3), (2, 3, 1, 1), (4, 3, 3, 3), (5, 3, 2, 4)]:
            feeds = {"x": ramp(2, 3, 6, 7) / 100, "w": ramp(*shape) / 10}
            expected = onnx.reference.ReferenceEvaluator(model(text)).run(None, feeds)[0]
            np.testing.assert_allclose(runs.run(None, feeds)[0], expected, rtol=1e-5)
        with pytest.raises(sardonyx.errors.InvalidArgument):
            runs.run(None, {"x": ramp(2, 3, 6, 7), "w": ramp(4, 2, 3, 3)})


@pytest.mark.parametrize(
    "text",
    [
        "(complex64[N] x) => (int64 y) { u = Unique(x) y = Size(u) }",
        "(float[N] x, complex64[M] c) => (float[N] y, int64[P,Q] z) { y = Relu(x) z = NonZero(c) }",
        # Another operator needs sizes: the one that has no lowering decides.
        "(float[N,C,H] x, float[O,I,P] w, complex64[M] b) => (float[N,O,R] y, int64[A,B] z) { y = Conv(x, w) z = NonZero(b) }",
    ],
)
def test_what_no_size_helps_is_refused_at_once(text):
    with pytest.raises(NotImplementedError):
        session(text)


def test_ranks_by_the_values_of_lists(tmp_path):
    """Squeeze without axes drops whatever is 1, which only the values of `s` tell."""
    path = tmp_path / "model.onnx"
    onnx.save(model("(float[1] x, int64[3] s) => (float[] y) { e = Expand(x, s) y = Squeeze(e) }", "y"), path)
    options = sardonyx.SessionOptions()
    options.cache_dir = str(tmp_path / "cache")
    for _ in range(2):
        runs = sardonyx.InferenceSession(str(path), options)
        for shape in [(2, 1, 3), (1, 1, 1), (2, 2, 3), (2, 1, 3), (1, 4, 1), (0, 1, 2)]:
            (y,) = runs.run(None, {"x": ramp(1) + 5, "s": np.array(shape)})
            assert y.shape == np.squeeze(np.zeros(shape)).shape and (y == 5).all()


def test_branches_of_different_ranks():
    text = """(bool c, float[A, B] x) => (float[] y) {
        y = If (c) <then_branch = t () => (float[] p) { p = ReduceSum <keepdims = 0> (x) },
                    else_branch = e () => (float[] q) { q = Relu(x) }> }"""
    runs = session(text, "y")
    for c, shape in [(True, (2, 3)), (False, (2, 3)), (True, (2, 3)), (False, (4, 1))]:
        (y,) = runs.run(None, {"c": np.array(c), "x": ramp(*shape)})
        np.testing.assert_array_equal(y, ramp(*shape).sum() if c else ramp(*shape))


def test_values_that_come_from_elsewhere_are_refused_at_once():
    text = "(float[4] x, int64[2] s) => (int64 y, float[2,2] z) { n = NonZero(x) u = Squeeze(n) y = ReduceSum <keepdims = 0> (u) z = Reshape(x, s) }"
    with pytest.raises(sardonyx.errors.NotImplemented, match="Squeeze.*no axes"):
        session(text)
