"""Models that break operators' rules: loaded, or refused by a sentence in ONNX's terms. See hostile.py."""

import hashlib

import hostile
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

import sardonyx as sdx

# Of all mutated models those that a minute has time for; `hostile.py` takes all.
SHARE = 96


@pytest.fixture
def load():
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads = False, 1
    return lambda source: sdx.InferenceSession(source, options)


def test_mutated_examples():
    models = [
        (name, data)
        for name, data in hostile.mutations()
        if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % SHARE == 0
    ]
    assert len(models) > 300
    faults = [(name, verdict) for name, _, verdict in hostile.load_all(models, workers=2)]
    hidden = [fault for fault in faults if fault[1].startswith("internal")]
    assert [fault for fault in faults if fault not in hidden] == []
    # Forms that the compiler itself trips over, and refuses politely: few.
    assert len(hidden) <= len(models) // 100, hidden


# What was found, by cause. The class and words of the refusal; None: it loads.
X = "float[A] x", "float[B] y"
KNOWN = {
    "element type 0": ("m (float[A] x) => (float[B] y) { t = Cast <to = 0> (x) y = Cast <to = 1> (t) }", 23,
                       sdx.InvalidGraph, "'to' is 0.*no element type"),
    "element type 2^40": ("m (float[A] x) => (float[B] y) { t = Cast <to = 1099511627776> (x) y = Cast <to = 1> (t) }", 23,
                          sdx.InvalidGraph, "'to' is 1099511627776.*no element type"),
    "element type 2^32 + 1": ("m (float[A] x) => (float[B] y) { y = Cast <to = 4294967297> (x) }", 23,
                              sdx.InvalidGraph, "'to' is 4294967297.*no element type"),
    "element type of EyeLike": ("m (float[2,2] x) => (float[2,2] y) { t = EyeLike <dtype = 99> (x) y = Cast <to = 1> (t) }", 22,
                                sdx.InvalidGraph, "'dtype' is 99.*no element type"),
    "declared otherwise": ("m (float[A] x) => (float[A] y) { y = Cast <to = 7> (x) }", 21,
                           sdx.InvalidGraph, "declared as 'float"),
    "equation of other signs": ('m (int64[4,5] x) => (int64[N] y) { y = Einsum <equation = "%s%n"> (x) }', 17,
                                sdx.InvalidGraph, "%s%n.*letters"),
    "two ellipses in a term": ('m (float[4,5] x) => (float[A,B] y) { y = Einsum <equation = "...i...->..."> (x) }', 17,
                               sdx.InvalidGraph, "ellipsis"),
    "a single full stop": ('m (float[4,5] x) => (float[A,B] y) { y = Einsum <equation = "i.j->ij"> (x) }', 17, sdx.InvalidGraph, "ellipsis"),
    "no sizes": ("m (float[A,B] x) => (float[P,Q] y, float[R,T] z) <int64[0] s = {}> { y, z = Split <axis = 1> (x, s) }", 13, None, ""),
    "sizes for other outputs": ("m (float[A,B] x) => (float[P,Q] y, float[R,T] z) <int64[1] s = {4}> { y, z = Split <axis = 1> (x, s) }", 13,
                                sdx.InvalidGraph, "1 sizes are given for 2 outputs"),
    "2^40 outputs": ("m (float[4] x) => (float[P] y, float[Q] z) { y, z = Split <num_outputs = 1099511627776> (x) }", 18,
                     sdx.InvalidGraph, "num_outputs"),
    "negative batch_dims": ("m (float[4,5] x, int64[4,1] i) => (float[A,B] y) { y = GatherND <batch_dims = -2147483648> (x, i) }", 13,
                            sdx.InvalidGraph, "batch_dims is -2147483648"),
    "rank of a condition": ("m (float[A] x, bool c) => (float[B] y) { y = Compress <axis = 0> (x, c) }", 17,
                            sdx.InvalidGraph, "input 1 has the rank 0"),
    "rank of a scale": ("m (float[1,2,3] x, float s) => (float[1,2,3] y) { y = InstanceNormalization(x, s, s) }", 17,
                        sdx.InvalidGraph, "input 1 has the rank 0"),
    "Scan with open states": ("m (float[A] s, float[N,B] x) => (float[C] t, float[M,D] z) { t, z = Scan <num_scan_inputs = 1, body = b "
                              "(float[2] si, float[2] xi) => (float[2] so, float[2] zi) { so = Add(si, xi) zi = Identity(so) }> (s, x) }",
                              9, None, ""),
    "no whole blocks": ("m (float[1,1,3,4] x) => (float[A,B,C,D] y) { y = SpaceToDepth <blocksize = 2> (x) }", 13,
                        sdx.InvalidGraph, "dimension 2 of input 0 has the size 3, which is no multiple of 2"),
    "depth of no whole blocks": ("m (float[1,6,3,4] x) => (float[A,B,C,D] y) { y = DepthToSpace <blocksize = 2> (x) }", 13,
                                 sdx.InvalidGraph, "dimension 1 of input 0 has the size 6, which is no multiple of 4"),
    "channels of a convolution": ("m (float[N,3,A,B] x, float[4,2,3,3] w) => (float[N,4,C,D] y) { y = Conv(x, w) }", 17,
                                  sdx.InvalidGraph, "3 channels, and the filters take 2, in 1 group"),
    "channels of a group": ("m (float[N,4,A,B] x, float[4,4,3,3] w) => (float[N,4,C,D] y) { y = Conv <group = 2> (x, w) }", 17,
                            sdx.InvalidGraph, "4 channels, and the filters take 4, in 2 groups"),
    "filters of a group": ("m (float[N,4,A] x, float[3,2,3] w) => (float[N,3,C] y) { y = Conv <group = 2> (x, w) }", 17,
                           sdx.InvalidGraph, "first size, 3, is no multiple of group, 2"),
    "channels of a transposed convolution": ("m (float[N,4,A] x, float[3,2,3] w) => (float[N,2,C] y) { y = ConvTranspose(x, w) }", 17,
                                             sdx.InvalidGraph, "4 channels, and the filters take 3"),
    "no groups": ("m (float[N,4,A] x, float[4,4,3] w) => (float[N,4,C] y) { y = Conv <group = 0> (x, w) }", 17,
                  sdx.InvalidGraph, "group is 0"),
    "complex numbers": ("m (complex64[N] x) => (int64[P, Q] y) { y = NonZero(x) }", 17, sdx.NotImplemented, "NonZero.*computes on complex numbers"),
    "another domain": ("m (float[N] x) => (float[N] y) { y = com.example.Foo(x) }", 17, sdx.NotImplemented, "Foo"),
    "types that differ": ("m (float[N] x, int64[N] z) => (float[N] y) { y = Add(x, z) }", 17,
                          sdx.InvalidGraph, r"'int64\[\?\]'.*'float\[\?\]'|one element type"),
    "number of a trip": ('m (float[2] x, int64 n) => (float[2] y) { y = Loop(n, "", x) <body = b (float i, bool c, float[2] z) => (bool d, float[2] q) { d = Identity(c) q = Neg(z) }> }',
                         17, sdx.InvalidGraph, "node 'y' .Loop.: input 0 of its body must be a tensor of int64, but is 'float'"),
    "condition of a body": ('m (float[2] x, int64 n) => (float[2] y) { y = Loop(n, "", x) <body = b (int64 i, int64 c, float[2] z) => (bool d, float[2] q) { d = Cast <to = 9> (c) q = Neg(z) }> }',
                            17, sdx.InvalidGraph, "input 1 of its body must be a tensor of bool"),
    "condition that a body makes": ('m (float[2] x, int64 n) => (float[2] y) { y = Loop(n, "", x) <body = b (int64 i, bool c, float[2] z) => (float[2] d, float[2] q) { d = Identity(z) q = Neg(z) }> }',
                                    17, sdx.InvalidGraph, "output 0 of its body must be a tensor of bool"),
    "what is scanned": ("m (float[2,3] x) => (int64[2,3] y) { y = Scan <num_scan_inputs = 1, body = b (int64[3] i) => (int64[3] q) { q = Neg(i) }> (x) }",
                        17, sdx.InvalidGraph, "input 0 of its body is 'int64.*fed elements of 'float"),
    "rows of gates": ("m (float[2,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[A,B,C,D] y) { y = LSTM <hidden_size = 3> (x, w, r) }", 17,
                      sdx.InvalidGraph, "dimension 1 of input 1 has the size 8, but 4 gates of 3 hidden numbers want 12"),
    "numbers of a state": ("m (float[2,1,3] x, float[1,6,3] w, float[1,6,3] r) => (float[A,B,C,D] y) { y = GRU <hidden_size = 2> (x, w, r) }", 17,
                           sdx.InvalidGraph, "dimension 2 of input 2 has the size 3, but 2 hidden numbers want 2"),
    "size of keys": ("m (float[1,2,3,4] q, float[1,2,3,5] k) => (float[A,B,C,D] y) { y = Attention(q, k, k) }", 23,
                     sdx.InvalidGraph, "Attention.*dimension 3 of input 1 has the size 5, but the queries of input 0 want 4"),
    "heads of a row": ("m (float[1,3,8] q) => (float[A,B,C] y) { y = Attention <q_num_heads = 3, kv_num_heads = 3> (q, q, q) }", 23,
                       sdx.InvalidGraph, "Attention.*size 8, which is no multiple of 3 heads"),
    "heads that share keys": ("m (float[1,3,5,4] q, float[1,2,5,4] k) => (float[A,B,C,D] y) { y = Attention(q, k, k) }", 23,
                              sdx.InvalidGraph, "3 heads of queries are no multiple of 2 heads of keys"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known(model, load, name):
    text, opset, kind, words = KNOWN[name]
    if "com.example" in text:
        source = model(text.replace("m (", "m (", 1), opset)
        source.opset_import.append(helper.make_opsetid("com.example", 1))
    else:
        source = model(text, opset)
    if kind is None:
        load(source)
        return
    with pytest.raises((sdx.Fail, sdx.NotImplemented), match=words) as failure:
        load(source)
    assert type(failure.value) is kind
    assert not failure.value.detail and not hostile.LEAK.search(str(failure.value))


def test_long_and_odd_names(load):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    for name in ("n" * 100000, "a\nb\x01c'" * 500, "\u00e9" * 3000):
        node = helper.make_node("Softmax", ["x"], ["y"], name=name, axis=7)
        with pytest.raises(sdx.InvalidGraph) as failure:
            load(helper.make_model(helper.make_graph([node], "g", value[:1], value[1:])))
        text = str(failure.value)
        assert len(text) < 4200 and text.replace("\n", "").isprintable() and "\u2026" in text


def test_an_attribute_given_twice(load):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    node.attribute.append(helper.make_attribute("axis", 0))
    with pytest.raises(sdx.InvalidGraph, match="'axis' appeared multiple times"):
        load(helper.make_model(helper.make_graph([node], "g", value[:1], value[1:])))


def test_many_attributes(load):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    node = helper.make_node("Softmax", ["x"], ["y"])
    node.attribute.extend(AttributeProto(name=f"a{i}", type=AttributeProto.INT, i=i) for i in range(20000))
    with pytest.raises(sdx.InvalidGraph, match="a0"):
        load(helper.make_model(helper.make_graph([node], "g", value[:1], value[1:])))


def nested(depth):
    """Conditionals in the branches of conditionals."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y0"])], "g", [], [helper.make_tensor_value_info("y0", 1, [2])])
    for i in range(1, depth):
        inner = helper.make_node("If", ["c"], [f"y{i}"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([inner], "g", [], [helper.make_tensor_value_info(f"y{i}", 1, [2])])
    graph.input.append(helper.make_tensor_value_info("x", 1, [2]))
    graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_nesting(load):
    load(nested(4))
    load(nested(7))  # 127 of them


def test_details_of_inner_faults(model, load, monkeypatch):
    """Refusals have none."""
    for text in ("m (float[N] x) => (float[N] y) { y = Concat(x, x) }", "m (complex64[N] x) => (int64[P, Q] y) { y = NonZero(x) }"):
        with pytest.raises((sdx.InvalidGraph, sdx.NotImplemented)) as failure:
            load(model(text))
        assert failure.value.detail == ""
