"""Sizes that arrive at run time: computed rightly, or refused by a sentence that names node, input and value.

Inputs end at a page that cannot be touched, so that reading past them ends the process.
"""

import ctypes
import mmap

import graphs
import numpy as np
import pytest
from onnx import parser

import sardonyx as sdx

i8, f4 = np.int64, np.float32


def f(*shape):
    return np.ones(shape, f4)


def n(*values):
    return np.array(values, i8)


def r(*shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=f4).reshape(shape)


def guarded(array):
    """A copy that ends where a page begins that cannot be touched."""
    array = np.asarray(array)
    if not array.nbytes:
        return array
    page = mmap.PAGESIZE
    size = (array.nbytes + page - 1) // page * page
    memory = mmap.mmap(-1, size + page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(page), 0)
    result = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    result[...] = array
    return result


@pytest.fixture
def load():
    def make(graph, opset=17):
        options = sdx.SessionOptions()
        options.cache, options.intra_op_num_threads = False, 1
        model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> m {graph}')
        return sdx.InferenceSession(model.SerializeToString(), options)

    return make


def run(session, *feed):
    return session.run(None, {a.name: guarded(v) for a, v in zip(session.get_inputs(), feed)})


def same_as_ort(graph, opset, *feeds):
    """One session, several shapes; onnxruntime is the reference."""
    ort = pytest.importorskip("onnxruntime")
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> m {graph}').SerializeToString()
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    session = sdx.InferenceSession(model, options)
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    reference = ort.InferenceSession(model, quiet)
    for feed in feeds:
        got = run(session, *feed)
        want = reference.run(None, {a.name: v for a, v in zip(reference.get_inputs(), feed)})
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
            assert a.shape == b.shape


# Refusals: (graph, opset, inputs, what the sentence says).
REFUSED = {
    "reshape-length": ("(float[A,B,C] x, int64[2] s, bool[2] c) => (float[P,Q,R] y) { t = Compress(s, c) [view] y = Reshape(x, t) }", 25,
                       [f(2, 3, 4), n(24, 1), np.array([True, False])], r"^node 'view' \(Reshape\): input 'shape' has another length.*: 1 and 3$"),
    "reshape-count": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Reshape(x, s) }", 17,
                      [f(2, 3), n(4, 2)], r"^node 'y' \(Reshape\): .*not hold as many elements: 6 and 8$"),
    "reshape-indivisible": ("(float[A,3,4] x) => (float[P,Q,R] y) <int64[3] s = {0, -1, 5}> { y = Reshape(x, s) }", 17,
                            [f(0, 3, 4)], r"not hold as many elements: 12 and 10$"),
    "reshape-wraps": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Reshape <allowzero = 1> (x, s) }", 17,
                      [f(0, 3), n(2**32, 2**32)], r"a tensor of shape \[4294967296, 4294967296\] is impossible"),
    "reshape-two-negative": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Reshape(x, s) }", 17,
                             [f(2, 3), n(-1, -1)], r"'shape' has 2 elements that are -1"),
    "reshape-minus-two": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Reshape(x, s) }", 17,
                          [f(2, 3), n(-2, -3)], r"element 0 of input 'shape' is no size: -2"),
    "reshape-nothing-to-copy": ("(float[A] x, int64[2] s) => (float[P,Q] y) { y = Reshape(x, s) }", 17,
                                [f(3), n(3, 0)], r"element 1 of input 'shape' is 0"),
    "constantofshape-length": ("(int64[2] s, bool[2] c) => (float[P,Q,R] y) { t = Compress(s, c) y = ConstantOfShape(t) }", 17,
                               [n(2, 4), np.array([False, True])], r"'input' has another length.*: 1 and 3"),
    "constantofshape-negative": ("(int64[2] s) => (float[P,Q] y) { y = ConstantOfShape(s) }", 17,
                                 [n(2, -1)], r"a tensor of shape \[2, -1\] is impossible"),
    "constantofshape-huge": ("(int64[3] s) => (float[P,Q,R] y) { y = ConstantOfShape(s) }", 17,
                             [n(2**31, 2**31, 4)], r"is impossible"),
    "expand-huge": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Expand(x, s) }", 17,
                    [f(1, 1), n(2**32, 2**32)], r"shape \[4294967296, 4294967296\] is impossible"),
    "expand-huge-inner": ("(float[A,B] x, int64[2] s) => (float y) { t = Expand(x, s) y = ReduceMax <keepdims = 0> (t) }", 17,
                          [f(1, 1), n(2**31, 2**31)], r"Expand.*is impossible"),
    "expand-negative": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Expand(x, s) }", 17,
                        [f(1, 1), n(2, -4)], r"Expand.*is impossible"),
    "expand-differs": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Expand(x, s) }", 17,
                       [f(2, 3), n(2, 4)], r"dimension 1 cannot be broadcast: 3 and 4"),
    "tile-length": ("(float[A,B] x, int64[S] s) => (float[P,Q] y) { y = Tile(x, s) }", 17,
                    [f(2, 3), n(1)], r"'repeats' has another length.*: 1 and 2"),
    "tile-negative": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Tile(x, s) }", 17,
                      [f(2, 3), n(1, -2)], r"'repeats' is impossible: -2"),
    "tile-huge": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Tile(x, s) }", 17,
                  [f(2, 3), n(2**40, 2**40)], r"is impossible"),
    "pad-length": ("(float[A,B] x, int64[S] s) => (float[P,Q] y) { y = Pad(x, s) }", 17,
                   [f(2, 3), n(1)], r"'pads' has another length.*: 1 and 4"),
    "pad-negative": ("(float[A,B] x, int64[4] s) => (float[P,Q] y) { y = Pad(x, s) }", 17,
                     [f(2, 3), n(-2, 0, -1, 0)], r"a tensor of shape \[-1, 3\] is impossible"),
    "pad-huge": ("(float[A,B] x, int64[4] s) => (float[P,Q] y) { y = Pad(x, s) }", 17,
                 [f(2, 3), n(2**62, 0, 2**62, 0)], r"'pads' is impossible: 4611686018427387904"),
    "pad-nothing-to-repeat": ('(float[A,B] x, int64[4] s) => (float[P,Q] y) { y = Pad <mode = "edge"> (x, s) }', 17,
                              [f(0, 3), n(1, 0, 1, 0)], r"nothing to repeat"),
    "slice-lengths": ("(float[A,B,C] x, int64[E] e, int64[X] a) => (float[P,Q,R] y) <int64[3] s = {0, 0, 0}> { y = Slice(x, s, e, a) }", 13,
                      [f(2, 3, 4), n(1), n(0)], r"'ends' has another length.*: 1 and 3"),
    "slice-step-zero": ("(float[A] x, int64[1] t) => (float[P] y) <int64[1] s = {0}, int64[1] e = {9}, int64[1] a = {0}> { y = Slice(x, s, e, a, t) }", 13,
                        [f(5), n(0)], r"a step is zero"),
    "slice-axis": ("(float[A,B] x, int64[1] a) => (float[P,Q] y) <int64[1] s = {0}, int64[1] e = {9}> { y = Slice(x, s, e, a) }", 13,
                   [f(5, 2), n(2)], r"an axis is out of range: 2"),
    "slice-axis-twice": ("(float[A,B] x, int64[2] a) => (float[P,Q] y) <int64[2] s = {0, 0}, int64[2] e = {9, 9}> { y = Slice(x, s, e, a) }", 13,
                         [f(5, 2), n(1, -1)], r"axis 1 occurs twice"),
    "split-count": ("(float[N] x, int64[S] s) => (float[M] y, float[K] z) { y, z = Split(x, s) }", 18,
                    [f(4), n(4)], r"'split' has another length.*: 1 and 2"),
    "split-sum": ("(float[N] x, int64[2] s) => (float[M] y, float[K] z) { y, z = Split(x, s) }", 18,
                  [f(4), n(4, 1)], r"do not add up.*: 5 and 4"),
    "split-wraps": ("(float[N] x, int64[2] s) => (float[M] y, float[K] z) { y, z = Split(x, s) }", 18,
                    [f(4), n(2**63 - 1, -(2**63) + 5)], r"a part has an impossible size: 9223372036854775807"),
    "resize-scales": ('(float[A,B,C,D] x, float[S] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest"> (x, , s) }', 19,
                      [f(1, 1, 2, 2), f(1)], r"'scales' has another length.*: 1 and 4"),
    "resize-scale-zero": ('(float[A,B,C,D] x, float[4] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest"> (x, , s) }', 19,
                          [f(1, 1, 2, 2), np.array([1, 1, 0, 1], f4)], r"'scales' is not positive"),
    "resize-scale-nan": ('(float[A,B,C,D] x, float[4] s) => (float[P,Q,R,T] y) { y = Resize <mode = "linear"> (x, , s) }', 19,
                         [f(1, 1, 2, 2), np.array([1, 1, np.nan, 1], f4)], r"'scales' is not positive"),
    "resize-sizes-zero": ('(float[A,B,C,D] x, int64[4] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest"> (x, , , s) }', 19,
                          [f(1, 1, 2, 2), n(1, 1, 4, 0)], r"no other becomes so: sizes 0 and 2"),
    "resize-huge": ('(float[A,B,C,D] x, int64[4] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest"> (x, , , s) }', 19,
                    [f(1, 1, 2, 2), n(1, 1, 2**40, 2**40)], r"is impossible"),
    "batchnorm": ("(float[A,B,C] x, float[D] s, float[D] b, float[D] m, float[D] w) => (float[P,Q,R] y) { y = BatchNormalization(x, s, b, m, w) }", 17,
                  [f(2, 3, 4)] + 4 * [f(3000)], r"'scale' is not the number of channels: 3000 and 3"),
    "batchnorm-const": ("(float[A,B,C] x) => (float[P,Q,R] y) <float[5] s = {1,1,1,1,1}> { y = BatchNormalization(x, s, s, s, s) }", 17,
                        [f(3, 4, 1)], r"'scale' is not the number of channels: 5 and 4"),
    "instancenorm": ("(float[A,B,C] x, float[D] s, float[E] b) => (float[P,Q,R] y) { y = InstanceNormalization(x, s, b) }", 17,
                     [f(2, 3, 4), f(3), f(2)], r"'B' is not the number of channels: 2 and 3"),
    "groupnorm": ("(float[A,B,C] x, float[D] s, float[E] b) => (float[P,Q,R] y) { y = GroupNormalization <num_groups = 2> (x, s, b) }", 21,
                  [f(2, 4, 4), f(4), f(5)], r"'bias' is not the number of channels: 5 and 4"),
    "quantize-axis": ("(float[A,B] x, float[C] s, uint8[C] z) => (uint8[P,Q] y) { y = QuantizeLinear <axis = 1> (x, s, z) }", 17,
                      [f(2, 3), f(2), np.zeros(2, np.uint8)], r"a scale or zero point does not fit.*: 2 and 3"),
    "quantize-blocks": ("(float[A,B] x, float[C,D] s) => (uint8[P,Q] y) { y = QuantizeLinear <axis = 1, block_size = 2> (x, s) }", 21,
                        [f(2, 5), f(2, 2)], r"a scale or zero point does not fit.*: 2 and 3"),
    "gemm-c": ("(float[A,B] x, float[B,C] w, float[D,E] c) => (float[P,Q] y) { y = Gemm(x, w, c) }", 17,
               [f(1, 3), f(3, 4), f(5, 4)], r"sizes 5 and 1 of the operands cannot be broadcast"),
    "prelu": ("(float[A,B] x, float[C,D] s) => (float[P,Q] y) { y = PRelu(x, s) }", 17,
              [f(1, 3), f(4, 3)], r"sizes 4 and 1 of the operands cannot be broadcast"),
    "col2im": ("(float[1,4,5] x, int64[2] b) => (float[1,1,6,6] y) <int64[2] i = {64, 3}> { y = Col2Im <dilations = [1, 5]> (x, i, b) }", 18,
               [f(1, 4, 5), n(0, 0)], r"'block_shape' is impossible: 0"),
    "centercroppad": ("(float[A,B,C] x, int64[3] s) => (float[P,Q,R] y) { y = CenterCropPad(x, s) }", 18,
                      [f(17, 5, 17), n(2**62, 1, 2**31 - 1)], r"impossible"),
    "onehot": ("(int64[A] x, int64 d, float[2] v) => (float[P,Q] y) { y = OneHot(x, d, v) }", 17,
               [n(0, 1), np.array(-3, i8), f(2)], r"'depth' is impossible: -3"),
    "range-zero": ("(float a, float b, float d) => (float[N] y) { y = Range(a, b, d) }", 17,
                   [np.array(0, f4), np.array(5, f4), np.array(0, f4)], r"'delta' is zero"),
    "range-nan": ("(float a, float b, float d) => (float[N] y) { y = Range(a, b, d) }", 17,
                  [np.array(0, f4), np.array(np.nan, f4), np.array(1, f4)], r"no possible number of elements"),
    "range-far": ("(int64 a, int64 b, int64 d) => (int64[N] y) { y = Range(a, b, d) }", 17,
                  [np.array(-2**62 - 1, i8), np.array(2**62, i8), np.array(1, i8)], r"too far apart|impossible"),
    "topk": ("(float[A] x, int64[1] k) => (float[P] y, int64[P] i) { y, i = TopK(x, k) }", 17,
             [f(3), n(4)], r"k is 4, and the axis has 3 elements"),
    "cumsum-axis": ("(float[A,B] x, int64 a) => (float[P,Q] y) { y = CumSum(x, a) }", 17,
                    [f(3, 2), np.array(-3, i8)], r"axis -3 is out of range"),
    "gather": ("(float[A,B] x, int64[C] i) => (float[P,Q] y) { [pick] y = Gather(x, i) }", 17,
               [f(3, 2), n(0, 3)], r"^node 'pick' \(Gather\): index 3 is out of range for a dimension of size 3$"),
    "reversesequence": ("(float[A,B] x, int64[C] l) => (float[P,Q] y) { y = ReverseSequence <batch_axis = 1, time_axis = 0> (x, l) }", 17,
                        [f(3, 4), n(1, 1)], r"'sequence_lens' does not fit the batch: 2 and 4"),
    "matmul-inner": ("(float[A,B] x, float[C,D] w) => (float[P,Q] y) { y = MatMul(x, w) }", 17,
                     [f(2, 3), f(4, 2)], r"inner sizes of the operands differ: 3 and 4"),
    "matmul-batch": ("(float[A,B,C] x, float[D,E,F] w) => (float[P,Q,R] y) { y = MatMul(x, w) }", 17,
                     [f(2, 3, 4), f(3, 4, 5)], r"batch sizes of the operands cannot be broadcast: 2 and 3"),
    "einsum": ('(float[A,B] x, float[C,D] w) => (float[P,Q] y) { y = Einsum <equation = "ij,jk->ik"> (x, w) }', 17,
               [f(2, 3), f(4, 5)], r"sizes of a label cannot be broadcast: 3 and 4"),
    "concat": ("(float[A,B] x, float[C,D] w) => (float[P,Q] y) { y = Concat <axis = 0> (x, w) }", 17,
               [f(2, 3), f(2, 4)], r"operands disagree in dimension 1: 4 and 3"),
    "spacetodepth": ("(float[A,B,C,D] x) => (float[P,Q,R,T] y) { y = SpaceToDepth <blocksize = 2> (x) }", 13,
                     [f(1, 1, 4, 5)], r"no multiple of the block's: 4 and 5"),
    "depthtospace": ("(float[A,B,C,D] x) => (float[P,Q,R,T] y) { y = DepthToSpace <blocksize = 2> (x) }", 13,
                     [f(1, 6, 1, 1)], r"no multiple of the block's: 4 and 6"),
    "add": ("(float[A,B] x, float[C,D] w) => (float[P,Q] y) { [sum] y = Add(x, w) }", 17,
            [f(2, 3), f(2, 4)], r"^node 'sum' \(Add\): sizes 4 and 3 of the operands cannot be broadcast"),
    "outer-product": ("(float[A,B] x, float[C,D] w) => (float y) { t = MatMul(x, w) u = Relu(t) v = Softmax(u) y = ReduceMax <keepdims = 0> (v) }", 17,
                      [f(2**32, 0), f(0, 2**32)], r"impossible|out of memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(load, name):
    graph, opset, feed, says = REFUSED[name]
    session = load(graph, opset)
    with pytest.raises(sdx.Fail, match=says) as failure:
        run(session, *feed)
    assert "internal error" not in str(failure.value) and "sdx." not in str(failure.value)


def test_long_and_odd_names(load):
    from onnx import TensorProto, helper

    for name in ("n" * 5000, "{0} {1}", "line\nbreak", "ünï"):
        node = helper.make_node("Add", ["x", "b"], ["y"], name=name)
        infos = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [d]) for v, d in (("x", "A"), ("b", "B"), ("y", "C"))]
        model = helper.make_model(helper.make_graph([node], "g", infos[:2], infos[2:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
        session = sdx.InferenceSession(model.SerializeToString())
        with pytest.raises(sdx.Fail, match=r"^node '.*' \(Add\): sizes 3 and 2 of the operands cannot be broadcast$") as failure:
            run(session, f(2), f(3))
        assert len(str(failure.value)) < 200


# What works with sizes that the run tells.
WORKS = {
    "reshape": ("(float[A,B,C] x, int64[3] s) => (float[P,Q,R] y) { y = Reshape(x, s) }", 17,
                [r(2, 3, 4), n(0, -1, 2)], [r(2, 3, 4), n(4, 3, 2)], [r(1, 1, 6), n(-1, 0, 3)]),
    "reshape-nothing": ("(float[A,B,C] x, int64[3] s) => (float[P,Q,R] y) { y = Reshape(x, s) }", 17,
                        [r(0, 3, 4), n(0, 5, 7)], [r(2, 3, 0), n(5, 7, 0)], [r(2, 0, 3), n(5, 0, 7)], [r(2, 3, 5), n(3, 2, 0)]),
    "reshape-nothing-copied": ("(float[A,B,C,D] x) => (float[P,Q,R] y) <int64[3] s = {0, 0, 63}> { t = Reshape(x, s) y = Relu(t) }", 17,
                               [r(7, 0, 2, 3)], [r(0, 4, 2, 3)], [r(2, 4, 7, 9)]),
    "reshape-nothing-summed": ("(float[A,4,D] x) => (float[1,P,Q] y) <int64[3] s = {0, 3, 7}, int64[1] a = {0}> { t = Reshape(x, s) y = ReduceSum <keepdims = 1> (t, a) }", 17,
                               [r(0, 4, 2)], [r(0, 4, 0)]),
    "expand": ("(float[A,B] x, int64[3] s) => (float[P,Q,R] y) { y = Expand(x, s) }", 17,
               [r(2, 1), n(3, 2, 4)], [r(2, 3), n(2, 1, 1)], [r(1, 1), n(1, 1, 1)], [r(1, 3), n(1, 0, 3)]),
    "tile": ("(float[A,B] x, int64[2] s) => (float[P,Q] y) { y = Tile(x, s) }", 17,
             [r(2, 3), n(1, 1)], [r(2, 3), n(3, 2)], [r(2, 3), n(0, 2)]),
    "pad": ("(float[A,B] x, int64[4] s) => (float[P,Q] y) { y = Pad(x, s) }", 17,
            [r(2, 3), n(1, 0, 2, 1)], [r(2, 3), n(-1, 1, 0, -1)]),
    "pad-empty": ('(float[A,B] x, int64[4] s) => (float[P,Q] y) { y = Pad <mode = "edge"> (x, s) }', 17,
                  [r(0, 3), n(0, 1, 0, 1)], [r(2, 3), n(1, 1, 0, 1)]),
    "slice": ("(float[A,B] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[P,Q] y) { y = Slice(x, s, e, a, t) }", 13,
              [r(5, 6), n(0, 1), n(4, 6), n(1, 0), n(1, 2)], [r(5, 6), n(-1, 5), n(-9, 0), n(-2, -1), n(-1, -2)],
              [r(5, 6), n(0, 0), n(9, 9), n(0, 1), n(2**63 - 1, 1)], [r(5, 6), n(4, 4), n(-9, -9), n(0, 1), n(-(2**62), -(2**62))]),
    "split": ("(float[N,C] x, int64[2] s) => (float[M,C] y, float[K,C] z) { y, z = Split(x, s) }", 18,
              [r(4, 2), n(1, 3)], [r(4, 2), n(4, 0)], [r(0, 2), n(0, 0)]),
    "range": ("(int64 a, int64 b, int64 d) => (int64[N] y) { y = Range(a, b, d) }", 17,
              [np.array(0, i8), np.array(7, i8), np.array(2, i8)], [np.array(5, i8), np.array(0, i8), np.array(-2, i8)],
              [np.array(5, i8), np.array(0, i8), np.array(2, i8)]),
    "matmul": ("(float[A,B,C] x, float[D,E,F] w) => (float[P,Q,R] y) { y = MatMul(x, w) }", 17,
               [r(2, 3, 4), r(1, 4, 5)], [r(1, 3, 4), r(2, 4, 5)], [r(2, 3, 4), r(2, 4, 5)], [r(1, 1, 4), r(1, 4, 1)]),
    "matmul-4d": ("(float[A,B,C,D] x, float[E,F,G,H] w) => (float[P,Q,R,S] y) { y = MatMul(x, w) }", 17,
                  [r(2, 1, 3, 4), r(1, 5, 4, 2)], [r(1, 5, 3, 4), r(2, 1, 4, 2)], [r(2, 5, 3, 4), r(2, 5, 4, 2)]),
    "matmul-ranks": ("(float[A,B,C,D] x, float[E,F,G] w) => (float[P,Q,R,S] y) { y = MatMul(x, w) }", 17,
                     [r(2, 1, 3, 4), r(5, 4, 2)], [r(2, 5, 3, 4), r(1, 4, 2)], [r(2, 5, 3, 4), r(5, 4, 2)]),
    "matmul-known": ("(float[A,B,4] x, float[3,4,F] w) => (float[P,Q,R] y) { y = MatMul(x, w) }", 17,
                     [r(1, 3, 4), r(3, 4, 5)], [r(3, 3, 4), r(3, 4, 5)]),
    "matmulinteger": ("(uint8[A,B,C] x, uint8[D,E,F] w) => (int32[P,Q,R] y) { y = MatMulInteger(x, w) }", 17,
                      [r(2, 3, 4).astype(np.uint8), r(1, 4, 5).astype(np.uint8)], [r(1, 3, 4).astype(np.uint8), r(2, 4, 5).astype(np.uint8)]),
    "einsum": ('(float[A,B,C] x, float[D,E,F] w) => (float[P,Q,R] y) { y = Einsum <equation = "...ij,...jk->...ik"> (x, w) }', 17,
               [r(2, 3, 4), r(1, 4, 5)], [r(1, 3, 4), r(2, 4, 5)], [r(2, 3, 4), r(2, 4, 5)]),
    "einsum-product": ('(float[A,B] x, float[C,D] w) => (float[P,Q] y) { y = Einsum <equation = "...,..."> (x, w) }', 17,
                       [r(2, 3), r(1, 3)], [r(2, 1), r(1, 3)], [r(2, 3), r(2, 3)]),
    "elementwise": ("(float[A,B] x, float[C,D] w, float[E] v) => (float[P,Q] y) { t = Add(x, w) y = Mul(t, v) }", 17,
                    [r(2, 3), r(1, 3), r(1)], [r(1, 1), r(2, 3), r(3)], [r(2, 1), r(2, 1), r(4)], [r(2, 3), r(2, 3), r(3)]),
    "gemm": ("(float[A,B] x, float[B,C] w, float[D,E] c) => (float[P,Q] y) { y = Gemm(x, w, c) }", 17,
             [r(2, 3), r(3, 4), r(1, 4)], [r(2, 3), r(3, 4), r(2, 1)], [r(1, 3), r(3, 4), r(1, 1)]),
    "pad-unsorted-axes": ("(float[A,B] x) => (float[P,Q] y) <int64[4] p = {3, 1, 0, 1}, int64[2] a = {1, 0}> { y = Pad(x, p, , a) }", 18,
                          [r(2, 3)], [r(1, 1)]),
    "pad-negative-axes": ("(float[A,B,C] x) => (float[P,Q,R] y) <int64[4] p = {3, 1, 0, 2}, int64[2] a = {-1, 0}> { y = Pad(x, p, , a) }", 18,
                          [r(2, 3, 4)], [r(1, 1, 1)]),
    "pad-unsorted-axes-edge": ('(float[A,B] x) => (float[P,Q] y) <int64[4] p = {3, 1, 0, 1}, int64[2] a = {1, 0}> { y = Pad <mode = "edge"> (x, p, , a) }', 18,
                               [r(2, 3)]),
    "centercroppad-unsorted-axes": ("(float[4,5,6] x, int64[2] s) => (float[P,Q,R] y) { y = CenterCropPad <axes = [2, 0]> (x, s) }", 18,
                                    [r(4, 5, 6), n(3, 7)], [r(4, 5, 6), n(9, 2)]),
    "resize-unsorted-axes": ('(float[A,B,C,D] x, int64[2] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest", axes = [3, 2]> (x, , , s) }', 19,
                             [r(1, 1, 2, 3), n(6, 4)]),
    "resize-empty": ('(float[A,B,C] x, float[3] s) => (float[P,Q,R] y) { y = Resize <mode = "nearest"> (x, , s) }', 19,
                     [r(0, 1, 3), np.array([1, 1, 2], f4)], [r(2, 1, 3), np.array([1, 1, 2], f4)]),
    "slice-unsorted-axes": ("(float[A,B,C] x) => (float[P,Q,R] y) <int64[2] s = {1, 0}, int64[2] e = {4, 1}, int64[2] a = {-1, 0}> { y = Slice(x, s, e, a) }", 17,
                            [r(2, 3, 4)]),
    "squeeze-unsorted-axes": ("(float[A,B,C,D] x) => (float[P,Q] y) <int64[2] a = {-1, 0}> { y = Squeeze(x, a) }", 17, [r(1, 3, 4, 1)]),
    "unsqueeze-unsorted-axes": ("(float[A,B] x) => (float[P,Q,R,S] y) <int64[2] a = {-1, 0}> { y = Unsqueeze(x, a) }", 17, [r(3, 4)]),
    "reduce-unsorted-axes": ("(float[A,B,C] x) => (float[P] y) <int64[2] a = {-1, 0}> { y = ReduceSum <keepdims = 0> (x, a) }", 17, [r(2, 3, 4)]),
    "scan-open-states": ("(float[A] s, float[A] p, float[N,B] x) => (float[C] t, float[E] r, float[M,D] z) { t, r, z = Scan <num_scan_inputs = 1, body = b (float[2] si, float[2] pi, float[2] xi) => (float[2] so, float[2] po, float[2] zi) { so = Add(si, xi) po = Mul(pi, xi) zi = Identity(so) }> (s, p, x) }", 9,
                         [r(2), r(2), r(3, 2)], [r(2), r(2), r(1, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
def test_same_as_onnxruntime(name):
    same_as_ort(*WORKS[name])


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel,stride,extra,dilation", [(3, 2, 1, 1), (2, 3, 1, 1), (1, 3, 0, 1), (4, 2, 1, 1), (3, 3, 2, 2), (3, 1, 0, 1)])
def test_conv_transpose_same(pad, kernel, stride, extra, dilation):
    w = ",".join(str(v) for v in range(1, kernel + 1))
    for dims in ("1,1,4", "A,B,C"):
        same_as_ort(f'(float[{dims}] x) => (float[P,Q,R] y) <float[1,1,{kernel}] w = {{{w}}}> '
                    f'{{ y = ConvTranspose <auto_pad = "{pad}", strides = [{stride}], dilations = [{dilation}], output_padding = [{extra}]> (x, w) }}',
                    17, [r(1, 1, 4)])  # fmt: skip


@pytest.mark.parametrize("attributes,low,high", [("max = 6.0", -np.finfo(f4).max, 6), ("min = -1.0", -1, np.finfo(f4).max), ("", -np.finfo(f4).max, np.finfo(f4).max)])
def test_clip_without_a_bound(load, attributes, low, high):
    attributes = f"<{attributes}>" if attributes else ""
    session = load(f"(float[N] x) => (float[N] y) {{ y = Clip {attributes} (x) }}", 6)
    x = np.array([-np.inf, -5, 5, 7, np.inf], f4)
    np.testing.assert_array_equal(run(session, x)[0], np.clip(x, f4(low), f4(high)))


def test_resize_to_sizes_of_an_open_length(load):
    """The schemas' own inference takes a length that is not known for 0."""
    text = '(float[A,B,C,D] x, int64[S] s) => (float[P,Q,R,T] y) { y = Resize <mode = "nearest"> (x, , , s) }'
    x = r(1, 1, 4, 4)
    (y,) = run(load(text, 19), x, n(1, 1, 8, 8))
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_a_result_that_is_declared_with_one_row_has_as_many_as_the_input():
    """LightGBM's exporter says so of labels, whatever the batch."""
    session = graphs.load(
        """(float[n, 3] x) => (float[1] y, float[1, 3] z, int64[1] count) {
          axis = Constant<value_ints = [1]>()
          y = ReduceSum<keepdims = 0>(x, axis)
          z = Neg(x)
          zero = Constant<value_ints = [0]>()
          s = Shape(x)
          count = Slice(s, zero, axis)
        }"""
    )
    for rows in (0, 1, 5):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        y, z, count = graphs.run(session, x)
        np.testing.assert_array_equal(y, x.sum(1))
        np.testing.assert_array_equal(z, -x)
        assert count.tolist() == [rows]
    # What a declaration says of an output is told.
    fixed = graphs.load("(float[2, 3] x, int64[1] axis) => (float[1, 3] y) { y = ReduceSum(x, axis) }")
    assert fixed.get_outputs()[0].shape == [1, 3]


@pytest.mark.parametrize("step", [1, 3])
def test_slices_that_keep_one_dimension_of_size_1_and_drop_another(load, step):
    """Of a view with open strides it is not plain which one is gone."""
    session = load(
        """(float[1, A, B, C] x) => (float[1, P, Q, 2, C] stacked, float[1, P, Q, 2, C] some, float[1, P, Q, C] second) {
          zero = Constant<value_ints = [0]>()
          one = Constant<value_ints = [1]>()
          two = Constant<value_ints = [2]>()
          third = Constant<value_ints = [3]>()
          end = Constant<value_ints = [99]>()
          step = Constant<value_ints = [%d]>()
          u = Unsqueeze(x, third)
          v = Neg(u)
          stacked = Concat<axis = 3>(u, v)
          some = Slice(stacked, zero, end, two, step)
          w = Slice(some, one, two, third)
          second = Squeeze(w, third)
        }""" % step
    )
    for sizes in [(5, 6, 3), (1, 2, 7), (4, 1, 1)]:
        x = r(1, *sizes)
        stacked, some, second = run(session, x)
        expected = np.stack([x, -x], axis=3)
        np.testing.assert_array_equal(stacked, expected)
        np.testing.assert_array_equal(some, expected[:, :, ::step])
        np.testing.assert_array_equal(second, -x[:, :, ::step])


def test_a_size_that_is_known_of_a_loop_and_not_of_its_type(load):
    """What Split has cut to size goes through ScatterElements, whose type leaves it open."""
    session = load(
        """(float[1, N] x, int64[1, 6] k) => (float[1] y) {
          sizes = Constant<value_ints = [6, 6]>()
          a, b = Split<axis = 1>(x, sizes)
          i = Constant<value_int = 3>()
          c = ScatterElements<axis = 0>(a, k, b)
          y = Gather<axis = 1>(c, i)
        }"""
    )
    x = r(1, 12)
    np.testing.assert_array_equal(run(session, x, np.zeros((1, 6), np.int64))[0], x[:, 9])
