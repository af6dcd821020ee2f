"""Values that are no tensors of numbers: strings (arrays of objects), sequences, optionals and maps."""

import numpy as np
from onnx import TensorProto, helper

STRING = np.dtype(object)
KINDS = {f"tensor({name})": getattr(TensorProto, name.upper()) for name in
         "float16 bfloat16 double float int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string".split()}  # fmt: skip
TEXTS = ["", "", "a", "b", "A", "ab", "abc", "Ab c", " ", " a ", "a b", "a,b,,c", ",", "a  b", "the", "The", "0", "1", "-3", "1.5",
         "é", "É", "ß", "☃ snow", "日本", "𝔘", "e\u0301", "x" * 40, "ab" * 120, "www.google.com", "user@example.org", "tab\tnew\nline"]  # fmt: skip


class Items(list):
    """A sequence of tensors of one type."""

    def __init__(self, items, dtype):
        super().__init__(np.asarray(item) for item in items)
        self.dtype = np.dtype(dtype)

    shape, ndim = (), 0
    size = property(lambda self: sum(item.size for item in self))

    def astype(self, dtype):
        return Items([item.astype(dtype) for item in self], dtype)


class Maybe:
    """An optional: a tensor, a sequence, or (None) nothing; `like` has the type of what it holds."""

    def __init__(self, value, like):
        self.value, self.like = value, like

    shape, ndim = (), 0
    dtype = property(lambda self: self.like.dtype)
    size = property(lambda self: 0 if self.value is None else self.value.size)

    def astype(self, dtype):
        return Maybe(None if self.value is None else self.value.astype(dtype), self.like.astype(dtype))


class Map:
    """A map of ai.onnx.ml, and an array of its values in the order of its keys."""

    def __init__(self, keys, array):
        self.keys, self.array = list(keys), np.asarray(array)

    shape, ndim = (), 0
    dtype = property(lambda self: self.array.dtype)
    size = property(lambda self: self.array.size)

    def astype(self, dtype):
        return Map(self.keys, self.array.astype(dtype))

    def in_order(self):
        """The same, by ascending keys."""
        order = sorted(range(len(self.keys)), key=lambda i: self.keys[i])
        return Map([self.keys[i] for i in order], self.array[order])


class Maps(list):
    """A sequence of maps, each of which is `like` this one."""

    def __init__(self, maps, like):
        super().__init__(maps)
        self.like = like

    shape, ndim = (), 0
    dtype = property(lambda self: self.like.dtype)
    size = property(lambda self: sum(item.size for item in self))

    def astype(self, dtype):
        return Maps([item.astype(dtype) for item in self], self.like.astype(dtype))


def map_of(value, like):
    """Of a dict."""
    return Map(value, np.array(list(value.values()), like.dtype))


def is_tensor(value):
    return isinstance(value, (np.ndarray, np.generic))


def held(value, like):
    """What `raw` made of one, as one again."""
    if isinstance(like, Maybe):
        return Maybe(None if value is None else held(value, like.like), like.like)
    if isinstance(like, Map) and isinstance(value, dict):
        return map_of(value, like)
    if isinstance(like, Maps) and isinstance(value, list):
        return Maps([held(item, like.like) for item in value], like.like)
    return Items(value, like.dtype) if isinstance(like, Items) and isinstance(value, list) else value


def raw(value):
    """As onnxruntime and sardonyx take it."""
    if isinstance(value, Maybe):
        return None if value.value is None else raw(value.value)
    if isinstance(value, Map):
        return dict(zip(value.keys, value.array.tolist()))
    return [raw(item) for item in value] if isinstance(value, (Items, Maps)) else value


def apply(function, value):
    """The function on each tensor."""
    if isinstance(value, Items):
        return Items([function(item) for item in value], value.dtype)
    if isinstance(value, Map):
        return Map(value.keys, function(value.array))
    if isinstance(value, Maps):
        return Maps([apply(function, item) for item in value], value.like)
    if isinstance(value, Maybe):
        return Maybe(None if value.value is None else apply(function, value.value), value.like)
    return function(value)


def type_of(value, dims=None):
    """Its TypeProto. Items of a sequence have the rank that all of them have, and open sizes."""
    if isinstance(value, Maybe):
        return helper.make_optional_type_proto(type_of(value.like))
    if isinstance(value, Items):
        ranks = {item.ndim for item in value}
        shape = [None] * ranks.pop() if len(ranks) == 1 else None
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element_of(value), shape))
    if isinstance(value, Map):
        key = TensorProto.STRING if value.keys and isinstance(value.keys[0], str) else TensorProto.INT64
        return helper.make_map_type_proto(key, helper.make_tensor_type_proto(element_of(value), None))
    if isinstance(value, Maps):
        return helper.make_sequence_type_proto(type_of(value.like))
    return helper.make_tensor_type_proto(element_of(value), value.shape if dims is None else dims)


def element_of(value):
    return helper.np_dtype_to_tensor_dtype(value.dtype)


def info_of(name, value, dims=None):
    return helper.make_value_info(name, type_of(value, dims))


def of_answer(value, kind):
    """A result of onnxruntime or onnx.reference as one of ours; `kind` as onnxruntime writes types."""
    if kind.startswith("optional("):
        inner = kind[len("optional(") : -1]
        like = Items([], np_type(inner[4:-1])) if inner.startswith("seq(") else np.zeros((), np_type(inner))
        return Maybe(None if value is None else of_answer(value, inner), like)
    if kind.startswith("map("):
        return map_of(value, like_of(kind))
    if kind.startswith("seq(map("):
        like = like_of(kind[4:-1])
        return Maps([map_of(item, like) for item in value], like)
    if kind.startswith("seq("):
        return Items(value, np_type(kind[4:-1]))
    if value is None:
        raise ValueError("no result")
    value = np.asarray(value)
    return value.astype(STRING) if value.dtype.kind in "US" else value


def like_of(kind):
    """A map of this type, map(int64,tensor(float))."""
    key, _, values = kind[4:-1].partition(",")
    return Map(["" if key == "string" else 0], np.zeros(1, np_type(values)))


def np_type(kind):
    return helper.tensor_dtype_to_np_dtype(KINDS[kind])


def same(a, b):
    """Whether two answers agree in every bit."""
    if a is None or b is None:
        return a is b
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a == b or repr(a) == repr(b)
    if a.dtype == STRING:
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.tobytes() == b.tobytes()
