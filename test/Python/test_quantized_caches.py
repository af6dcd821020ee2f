"""GroupQueryAttention whose cache of keys and values is of 8 or 4 bits, against numpy and onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from numerics import OPTIONS, vectors  # noqa: F401
from onnx import helper, numpy_helper

import sardonyx as sdx

HEADS, GROUPS = 4, 2
NAMES = ["q", "k", "v", "pk", "pv", "last", "total", "cos", "sin", "ids", "bias", "sink", "ks", "vs"]


def packed(numbers, bits):
    """Two numbers of 4 bits share a byte: the first has its lower half, and all are 8 larger."""
    if bits == 8:
        return numbers.astype(np.int8)
    whole = (numbers + 8).astype(np.uint8)
    return whole[..., ::2] | whole[..., 1::2] << 4


def unpacked(cache, bits):
    if bits == 8:
        return cache.astype(np.float64)
    return np.stack([cache & 15, cache >> 4], -1).reshape(*cache.shape[:-1], -1).astype(np.float64) - 8


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Case:
    """One call. `kinds` are those of keys and values; `lengths` the tokens of each batch with those of this call."""

    def __init__(self, seed, bits, kinds, batch, length, past, lengths=None, room=None, size=16, window=0, softcap=0.0,
                 sink=False, bias=False, dtype=np.float32):  # fmt: skip
        rng = np.random.default_rng(seed)
        floats = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
        self.bits, self.batch, self.length, self.size, self.window = bits, batch, length, size, window
        self.room, total = past if room is None else room, past + length
        self.lengths = np.array([total] * batch if lengths is None else lengths, np.int32)
        self.before = np.zeros(batch, int) if past == 0 else self.lengths - length
        q, k, v = (floats(batch, length, n * size) for n in (HEADS, GROUPS, GROUPS))
        end = 1 << (bits - 1)
        cache = [packed(rng.integers(-end, end, (batch, GROUPS, self.room, size)), bits) for _ in range(2)]
        shapes = [[1] if kind == "PER_TENSOR" else [1, GROUPS, 1, size] for kind in kinds]
        scales = [((1 + rng.random(shape)) / end).astype(np.float32) for shape in shapes]
        self.feeds = {"q": q, "k": k, "v": v, "pk": cache[0], "pv": cache[1], "last": self.lengths - 1,
                      "total": np.array(total, np.int32), "ks": scales[0], "vs": scales[1]}  # fmt: skip
        if sink:
            self.feeds["sink"] = floats(HEADS)
        self.places = max(self.room, total)
        if bias:
            self.feeds["bias"] = floats(1, HEADS, length, self.places)
        self.attributes = dict(num_heads=HEADS, kv_num_heads=GROUPS, kv_cache_bit_width=bits, k_quant_type=kinds[0],
                               v_quant_type=kinds[1], softcap=softcap)  # fmt: skip
        if window:
            self.attributes["local_window_size"] = window

    def model(self, is_open, constants=("ks", "vs")):
        names = [name if name in self.feeds else "" for name in NAMES]
        node = helper.make_node("GroupQueryAttention", names, ["y", "k1", "v1"], domain="com.microsoft", **self.attributes)
        inputs = [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(a.dtype),
                [f"{name}{i}" if is_open and (i in (0, 2) if a.ndim == 4 else i < 2) and a.ndim > 2 else n for i, n in enumerate(a.shape)],
            )
            for name, a in self.feeds.items()
            if name not in constants
        ]
        graph = helper.make_graph(
            [node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("y", "k1", "v1")],
            [numpy_helper.from_array(self.feeds[name], name) for name in constants],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    def inputs(self, constants=("ks", "vs")):
        return {name: a for name, a in self.feeds.items() if name not in constants}

    def wanted(self):
        f, present = self.feeds, []
        split = lambda x, n: x.reshape(self.batch, self.length, n, self.size).swapaxes(1, 2).astype(np.float64)  # noqa: E731
        end = 1 << (self.bits - 1)
        for cache, new, scale in (("pk", "k", "ks"), ("pv", "v", "vs")):
            whole = np.rint(split(f[new], GROUPS).astype(np.float32) / f[scale])
            whole = packed(np.clip(whole, -end, end - 1).astype(int), self.bits)
            made = np.zeros((self.batch, GROUPS, self.places, f[cache].shape[-1]), f[cache].dtype)
            made[:, :, : self.room] = f[cache]
            for b in range(self.batch):
                made[b, :, self.before[b] : self.before[b] + self.length] = whole[b]
            present.append(made)
        keys, values = (
            np.repeat(unpacked(c, self.bits) * f[s].reshape(1, *([1] * 3 if f[s].size == 1 else f[s].shape)[1:]), HEADS // GROUPS, 1)
            for c, s in zip(present, ("ks", "vs"))
        )
        scores = split(f["q"], HEADS) @ keys.swapaxes(2, 3) / np.sqrt(self.size)
        if self.attributes["softcap"]:
            scores = np.tanh(scores / self.attributes["softcap"]) * self.attributes["softcap"]
        if "bias" in f:
            scores = scores + f["bias"]
        at = self.before[:, None] + np.arange(self.length)
        place = np.arange(self.places)
        seen = place <= at[..., None]
        if self.window:
            seen &= place > at[..., None] - self.window
        scores = np.where(seen[:, None], scores, -1e30)
        if "sink" in f:
            sinks = np.broadcast_to(f["sink"].reshape(1, HEADS, 1, 1), (*scores.shape[:3], 1))
            weights = softmax(np.concatenate([scores, sinks], -1))[..., :-1]
        else:
            weights = softmax(scores)
        y = (weights @ values).swapaxes(1, 2).reshape(self.batch, self.length, HEADS * self.size)
        filled = (place < self.lengths[:, None])[:, None, :, None]
        return y, *(np.where(filled, p, 0) for p in present), filled

    def check(self, is_open, tolerance=2e-5, constants=("ks", "vs")):
        y, keys, values, filled = self.wanted()
        session = sdx.InferenceSession(self.model(is_open, constants), OPTIONS)
        got = session.run(None, self.inputs(constants))
        assert got[0].dtype == self.feeds["q"].dtype
        for b, length in enumerate(self.lengths - self.before):
            want = y[b, : min(length, self.length)]
            np.testing.assert_allclose(got[0][b, : len(want)].astype(float), want, tolerance, tolerance)
        for cache, want in zip(got[1:], (keys, values)):
            assert cache.dtype == want.dtype
            np.testing.assert_array_equal(np.where(filled, cache, 0), want)


KINDS = [("PER_TENSOR", "PER_TENSOR"), ("PER_CHANNEL", "PER_CHANNEL"), ("PER_CHANNEL", "PER_TENSOR")]
FORMS = {
    "one-token": dict(batch=1, length=1, past=5),
    "long": dict(batch=1, length=1, past=700, size=64),
    "few-queries": dict(batch=1, length=3, past=321, size=40),
    "many-queries": dict(batch=1, length=40, past=100, size=72),
    "prompt": dict(batch=2, length=20, past=0, lengths=[20, 7], size=64),
    "ragged": dict(batch=3, length=1, past=35, lengths=[36, 3, 20], size=64),
    "room": dict(batch=2, length=1, past=35, lengths=[36, 9], room=260, size=64),
    "window": dict(batch=1, length=2, past=300, window=33, size=32),
    "softcap": dict(batch=1, length=4, past=40, softcap=2.0),
    "sink": dict(batch=2, length=1, past=40, sink=True),
    "bias": dict(batch=1, length=5, past=270, bias=True, size=64),
}


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "-".join(kind[4:] for kind in kinds))
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("form", FORMS)
def test_against_numpy(form, bits, kinds):
    case = Case(sum(map(ord, form)), bits, kinds, **FORMS[form])
    for is_open in (False, True):
        case.check(is_open)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
def test_against_onnxruntime(bits, kind):
    case = Case(3, bits, (kind, kind), batch=1, length=2, past=130, size=64)
    reference = onnxruntime.InferenceSession(case.model(True), providers=["CPUExecutionProvider"])
    got = sdx.InferenceSession(case.model(True), OPTIONS).run(None, case.inputs())
    want = reference.run(None, case.inputs())
    np.testing.assert_allclose(got[0], want[0], 2e-5, 2e-5)
    for cache, other in zip(got[1:], want[1:]):
        np.testing.assert_array_equal(cache, other)


@pytest.mark.parametrize("bits", [8, 4])
def test_halves_and_scales_that_a_run_brings(bits):
    case = Case(4, bits, KINDS[1], batch=1, length=1, past=300, size=64, dtype=np.float16)
    case.check(True, tolerance=2e-3, constants=())


def test_numbers_at_the_ends():
    case = Case(5, 8, KINDS[0], batch=1, length=2, past=3)
    for name in ("k", "v"):
        case.feeds[name] *= 1e4
        case.feeds[name][0, 0, :4] = np.float32([0.5, 1.5, -2.5, -0.5]) * case.feeds["ks" if name == "k" else "vs"]
    case.check(False)


@pytest.mark.parametrize(
    "why, changes, without",
    [
        ("only one is quantized", dict(v_quant_type="NONE"), ()),
        ("a cache of 2 bits", dict(kv_cache_bit_width=2), ()),
        ("input 'past_key' has another type", dict(kv_cache_bit_width=4), ()),
        ("input 'v_scale' is missing", {}, ("vs",)),
        ("input 'k_scale'", dict(k_quant_type="NONE", v_quant_type="NONE"), ()),
        ("'sliding_window_cache' is 1", dict(sliding_window_cache=1), ()),
    ],
)
def test_refusals(why, changes, without):
    case = Case(6, 8, KINDS[0], batch=1, length=1, past=4)
    case.attributes |= changes
    for name in without:
        del case.feeds[name]
    constants = [name for name in ("ks", "vs") if name in case.feeds]
    with pytest.raises(sdx.NotImplemented, match=why):
        sdx.InferenceSession(case.model(False, constants))
