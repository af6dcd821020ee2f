"""Strings: what Python does with them is the reference."""

import random

import numpy as np
import pytest
from graphs import load, run
from onnx import TensorProto, parser

import sardonyx as sdx

WORDS = ["", "a", "Ab", "äÖ ü", "snow ☃ man", " x  y ", "a,b,,c", ",", "\t tab\n", "日本語", "ſ", "a" * 300]


def words(seed, *shape):
    rng = random.Random(seed)
    result = np.empty(shape, dtype=object)
    for i in np.ndindex(*shape):
        result[i] = rng.choice(WORDS) + rng.choice(["", "z", "!"])
    return result


def same(got, want):
    assert got.dtype == object and got.shape == want.shape
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("left, right", [((3,), (3,)), ((2, 3), (3,)), ((), (4,)), ((2, 1), (1, 3)), ((0,), (1,))])
def test_concat_broadcasts(left, right):
    def of(name, shape):
        return f"string[{','.join(f'{name}{i}' for i in range(len(shape)))}]" if shape else "string"

    rank = max(left, right, key=len)
    session = load(f"({of('a', left)} x, {of('b', right)} y) => ({of('c', rank)} z) {{ z = StringConcat(x, y) }}")
    x, y = words(1, *left), words(2, *right)
    same(run(session, x, y)[0], np.asarray(x + y, dtype=object))


@pytest.mark.parametrize("separator, most", [(None, None), ("", 1), (",", None), (",", 0), (",", 2), ("☃", None), (None, 2)])
def test_split_is_that_of_python(separator, most):
    attributes = ([] if separator is None else [f'delimiter = "{separator}"']) + ([] if most is None else [f"maxsplit = {most}"])
    tag = f"<{', '.join(attributes)}>" if attributes else ""
    session = load(f"(string[n] x) => (string[n, m] y, int64[n] z) {{ y, z = StringSplit{tag}(x) }}")
    for seed in range(4):
        x = words(seed, seed * 3)
        y, z = run(session, x)
        want = [t.split(separator or None, -1 if most is None else most) for t in x]
        assert z.tolist() == [len(parts) for parts in want]
        width = max([len(parts) for parts in want], default=0)
        assert y.shape == (len(x), width)
        assert y.tolist() == [parts + [""] * (width - len(parts)) for parts in want]


@pytest.mark.parametrize("action, change", [("LOWER", str.lower), ("UPPER", str.upper), ("NONE", str)])
def test_normalizer(action, change):
    session = load(
        "(string[n] x) => (string[m] y) "
        f'{{ y = StringNormalizer<case_change_action = "{action}", is_case_sensitive = 0, stopwords = ["AB", "a"]>(x) }}'
    )
    x = np.array(["A", "ab", "aB", "Δέλτα", "Äpfel", "ab "], dtype=object)
    same(run(session, x)[0], np.array([change(t) for t in x if t.lower() not in ("ab", "a")], dtype=object))
    same(run(session, np.array(["a", "Ab"], dtype=object))[0], np.array([""], dtype=object))

@pytest.mark.parametrize("words", ["", ', stopwords = ["a"]'])
@pytest.mark.parametrize("size", ["0", "n", "1, n"])
def test_normalizer_of_no_strings(words, size):
    """One empty string, as of strings that are all stopped."""
    out = "k" if "," not in size else "1, k"
    session = load(f'(string[{size}] x) => (string[{out}] y) {{ y = StringNormalizer<case_change_action = "NONE"{words}>(x) }}')
    x = np.zeros((0,) if "," not in size else (1, 0), object)
    assert run(session, x)[0].reshape(-1).tolist() == [""]


def test_normalizer_takes_one_row_only():
    session = load('(string[n, m] x) => (string[k, l] y) { y = StringNormalizer<case_change_action = "UPPER">(x) }')
    same(run(session, words(3, 1, 4))[0], np.array([[t.upper() for t in words(3, 1, 4)[0]]], dtype=object))
    with pytest.raises(sdx.Fail, match="one row"):
        run(session, words(3, 2, 4))


def test_regular_expressions():
    session = load(r'(string[n] x) => (bool[n] y) { y = RegexFullMatch<pattern = "[a-z]+([.][0-9])?">(x) }')
    assert run(session, np.array(["abc", "abc.1", "abc.12", "", "ABC"], dtype=object))[0].tolist() == [True, True, False, False, False]
    wrong = load('(string[n] x) => (bool[n] y) { y = RegexFullMatch<pattern = "(">(x) }')
    with pytest.raises(sdx.Fail, match=r"'\(' is none that RE2 knows"):
        run(wrong, np.array(["a"], dtype=object))


NUMBERS = {
    "float": np.array([0, -0.0, 1, 1 / 3, 1e-5, 123456.7, 1e16, 3.4e38, 1e-45, np.inf, -np.inf, np.nan], np.float32),
    "double": np.array([0.1, 1e22, -1e-7, 12345678.9, 5e-324], np.float64),
    "float16": np.array([0.1, 65504, 6e-8, 1, -2.5], np.float16),
    "int64": np.array([0, -1, 2**63 - 1, -(2**63)], np.int64),
    "uint64": np.array([0, 2**64 - 1], np.uint64),
    "int8": np.array([-128, 127], np.int8),
    "bool": np.array([True, False]),
}


@pytest.mark.parametrize("type", NUMBERS)
def test_numbers_as_strings_and_back(type):
    x = NUMBERS[type]
    session = load(f"({type}[n] x) => (string[n] y) {{ y = Cast<to = 8>(x) }}")
    text = run(session, x)[0]
    if type != "float16":  # of which numpy says 6.55e+04
        same(text, x.astype(np.str_).astype(object))
    if type == "bool":
        return
    back = load(f"(string[n] x) => ({type}[n] y) {{ y = Cast<to = {getattr(TensorProto, type.upper())}>(x) }}")
    np.testing.assert_array_equal(run(back, text)[0], x)


def test_what_is_no_number():
    session = load("(string[n] x) => (int32[n] y) { y = Cast<to = 6>(x) }")
    assert run(session, np.array([" +7 ", "-3"], dtype=object))[0].tolist() == [7, -3]
    for text in ["", "1.5", "seven", "99999999999999999999"]:
        with pytest.raises(sdx.Fail, match="node 'y' .Cast.: the string '"):
            run(session, np.array([text], dtype=object))


def test_movement_and_comparison_keep_strings():
    session = load(
        """(string[n] x, string[m] y, int64[k] i) => (string[a, b] t, string[k] g, bool[n] e, string[n] w, string[p] q) {
          two = Constant<value_ints = [-1, 1]>()
          joined = Concat<axis = 0>(x, y)
          t = Reshape(joined, two)
          g = Gather(joined, i)
          first = Constant<value_string = "a">()
          e = Equal(x, first)
          w = Where(e, first, x)
          pads = Constant<value_ints = [1, 0]>()
          q = Pad(x, pads)
        }"""
    )
    x, y = np.array(["a", "b", "a☃"], dtype=object), np.array(["b", ""], dtype=object)
    t, g, e, w, q = run(session, x, y, np.array([4, 0, -1], np.int64))
    assert t.tolist() == [["a"], ["b"], ["a☃"], ["b"], [""]]
    assert g.tolist() == ["", "a", ""]
    assert e.tolist() == [True, False, False]
    assert w.tolist() == x.tolist()
    assert q.tolist() == ["", "a", "b", "a☃"]


@pytest.mark.parametrize("order", [0, 1])
def test_unique_sorts_by_text(order):
    session = load(f"(string[n] x) => (string[m] y, int64[m] f, int64[n] i, int64[m] c) {{ y, f, i, c = Unique<sorted = {order}>(x) }}")
    x = np.array(["pear", "apple", "☃", "pear", "", "fig", "apple"], dtype=object)
    y, first, inverse, counts = run(session, x)
    want = sorted(set(x), key=str.encode) if order else list(dict.fromkeys(x))
    assert y.tolist() == want
    assert x[first].tolist() == want and y[inverse].tolist() == x.tolist()
    assert counts.tolist() == [x.tolist().count(t) for t in want]


def test_strings_of_one_run_are_not_those_of_another():
    session = load("(string[n] x, string[n] y) => (string[n] z, bool[n] e) { z = StringConcat(x, y) e = Equal(x, y) }")
    for seed in range(20):
        x, y = words(seed, 5), words(seed + 100, 5)
        z, e = run(session, x, y)
        same(z, np.asarray(x + y, dtype=object))
        assert e.tolist() == (x == y).tolist()


def test_wrong_inputs():
    session = load("(string[n] x) => (string[n] y) { y = StringConcat(x, x) }")
    assert run(session, ["a", "b"])[0].tolist() == ["aa", "bb"]
    assert run(session, np.array(["a"]))[0].tolist() == ["aa"]
    assert run(session, [b"a"])[0].tolist() == ["aa"]
    with pytest.raises(sdx.InvalidArgument, match="element type string"):
        run(session, np.zeros(2, np.float32))
    with pytest.raises(sdx.InvalidArgument, match="is of strings, got 1"):
        run(session, np.array(["a", 1], dtype=object))
    with pytest.raises(sdx.InvalidArgument, match="no memory can be given"):
        session.run(None, {"x": ["a"]}, out={"y": np.zeros(1, np.int64)})


@pytest.mark.parametrize(
    "graph",
    [
        "(string[3] x) => (bool[3] y) { y = Cast<to = 9>(x) }",
        "(string[3] x) => (float8e4m3fn[3] y) { y = Cast<to = 17>(x) }",
        '(string[3] x, int64[3] i, string[3] u) => (string[3] y) { y = ScatterElements<reduction = "max">(x, i, u) }',
        '(string[1, 1, 3] x, int64[3] s) => (string[1, 1, 6] y) { y = Resize<mode = "linear">(x, , , s) }',
    ],
)
def test_what_strings_cannot_do_is_refused(graph):
    with pytest.raises(sdx.NotImplemented):
        load(graph)


def test_counts_of_words():
    session = load(
        "(string[n, m] x) => (float[n, k] y) { y = TfIdfVectorizer<mode = \"TF\", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0, "
        'ngram_counts = [0, 2], ngram_indexes = [1, 0, 2], pool_strings = ["a", "b☃", "a", "a"]>(x) }'
    )
    x = np.array([["a", "a", "b☃", "c"], ["", "b☃", "b☃", "a"]], dtype=object)
    assert run(session, x)[0].tolist() == [[1, 2, 1], [2, 1, 0]]


def test_strings_count_against_the_memory_limit():
    graph = """(int64 n, string[1] x) => (string[1] y) {
      true = Constant<value = bool {1}>()
      y = Loop(n, true, x) <body = body (int64 i, bool c, string[1] s) => (bool c_out, string[1] t) {
        c_out = Identity(c)
        t = StringConcat(s, s)
        }>
    }"""
    options = sdx.SessionOptions()
    options.cache, options.intra_op_num_threads, options.memory_limit = False, 1, 64 << 20
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> m {graph}')
    session = sdx.InferenceSession(model.SerializeToString(), options)
    x = np.array(["ab"], dtype=object)
    assert run(session, np.array(3), x)[0].tolist() == ["ab" * 8]
    with pytest.raises(sdx.Fail, match="StringConcat.*out of memory"):
        run(session, np.array(60), x)
    assert run(session, np.array(1), x)[0].tolist() == ["abab"]


def test_literals_and_types_come_back_from_the_cache(tmp_path):
    graph = """(string[n] x, seq(string[m]) s) => (bool[n] e, string[n] w, seq(string[k]) t) {
      word = Constant<value_string = "☃">()
      other = Constant<value_string = "">()
      e = Equal(x, word)
      w = Where(e, other, x)
      t = SequenceInsert(s, w)
    }"""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> m {graph}').SerializeToString()
    for cached in (False, True):
        options = sdx.SessionOptions()
        options.cache_dir = tmp_path
        session = sdx.InferenceSession(model, options)
        assert session.from_cache == cached
        e, w, t = run(session, np.array(["☃", "a"], dtype=object), [["b"]])
        assert e.tolist() == [True, False] and w.tolist() == ["", "a"]
        assert [item.tolist() for item in t] == [["b"], ["", "a"]]
