"""Quantized operators of com.microsoft as onnxruntime computes them on a CPU: recurrent networks, convolutions, pools,
embeddings, experts and weights of 4 bits."""

import itertools

import numpy as np
import pytest
from contrib_nodes import agree, by_onnxruntime, check, refused

RNG = np.random.default_rng(11)


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def integers(*shape, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# DynamicQuantizeLSTM


def lstm(steps=5, batch=3, width=6, hidden=4, directions=1, dtype=np.int8, by_column=False, **rest):
    """Inputs of the node; `rest` are optional ones by name."""
    w, r = floats(directions, width, 4 * hidden, scale=0.5), floats(directions, hidden, 4 * hidden, scale=0.5)
    axes = (1,) if by_column else (1, 2)
    zero = 0 if dtype == np.int8 else 128

    def quantized(m):
        scale = np.abs(m).max(axes, keepdims=True) / 127
        points = np.full(scale.shape, zero, dtype).reshape(directions, -1)
        values = (np.round(m / scale) + zero).astype(dtype)
        scale = scale.astype(np.float32).reshape(directions, -1)
        return (values, scale, points) if by_column else (values, scale[:, 0], points[:, 0])

    (wq, ws, wz), (rq, rs, rz) = quantized(w), quantized(r)
    feeds = {"x": floats(steps, batch, width), "W": wq, "R": rq}
    for name in ("B", "lens", "h", "c", "P"):
        feeds[name] = rest.get(name)
    return feeds | {"ws": ws, "wz": wz, "rs": rs, "rz": rz}


WEIGHTS = ("W", "R", "B", "P", "ws", "wz", "rs", "rz")
STATES = ["y", "yh", "yc"]
# One step of a quantized hidden state, which rounding may move, changes what follows.
LSTM = dict(constants=WEIGHTS, tolerance=2e-3)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype, by_column", [(np.int8, False), (np.uint8, False), (np.int8, True)])
def test_lstm_of_quantized_weights(direction, dtype, by_column):
    directions = 1 + (direction == "bidirectional")
    feeds = lstm(directions=directions, dtype=dtype, by_column=by_column, B=floats(directions, 32))
    is_open = (dtype == np.int8,)
    agree("DynamicQuantizeLSTM", feeds, STATES, hidden_size=4, direction=direction, is_open=is_open, **LSTM)


@pytest.mark.parametrize("lens", [[5, 2, 3], [3, 3, 0], [1, 4, 4]])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_lstm_of_sequences_of_several_lengths(lens, direction):
    feeds = lstm(lens=np.array(lens, np.int32), h=floats(1, 3, 4), c=floats(1, 3, 4), P=floats(1, 12), B=floats(1, 32))
    agree("DynamicQuantizeLSTM", feeds, STATES, hidden_size=4, direction=direction, **LSTM)


@pytest.mark.parametrize(
    "attributes",
    [
        dict(input_forget=1, clip=0.5),
        dict(activations=["HardSigmoid", "Elu", "Softsign"], activation_alpha=[0.3, 0.7], activation_beta=[0.4]),
        dict(activations=["Sigmoid", "LeakyRelu", "relu"], activation_alpha=[0.2]),
        dict(activations=["Sigmoid", "ScaledTanh", "Affine"], activation_alpha=[0.9, 1.1], activation_beta=[0.8, 0.1]),
    ],
    ids=lambda a: "-".join(a.get("activations", list(a))),
)
def test_lstm_attributes(attributes):
    agree("DynamicQuantizeLSTM", lstm(), STATES, hidden_size=4, **attributes, **LSTM)


def test_lstm_results_that_nobody_asks_for():
    feeds = lstm()
    for outputs in (["y"], ["", "yh"], ["", "", "yc"]):
        agree("DynamicQuantizeLSTM", feeds, outputs, hidden_size=4, **LSTM)


@pytest.mark.parametrize("steps, batch, lens", [(0, 3, None), (5, 0, None), (5, 3, np.zeros(3, np.int32))])
def test_lstm_of_nothing(steps, batch, lens):
    wanted = [np.zeros(shape) for shape in [(steps, 1, batch, 4), (1, batch, 4), (1, batch, 4)]]
    feeds = lstm(steps=steps, batch=batch, lens=lens)
    check("DynamicQuantizeLSTM", feeds, STATES, wanted, WEIGHTS, 0, hidden_size=4)


def test_lstm_refusals():
    feeds = lstm()
    for why, attributes in [
        ("direction 'sideways'", dict(direction="sideways")),
        ("activation 'Foo'", dict(activations=["Foo", "Tanh", "Tanh"])),
        ("6 activations for 1 directions", dict(activations=["Tanh"] * 6)),
        ("clip is not positive", dict(clip=0.0)),
        ("hidden_size is 0", dict(hidden_size=0)),
    ]:
        refused(why, "DynamicQuantizeLSTM", feeds, ["y"], WEIGHTS, **dict(hidden_size=4) | attributes)


# Channels last


@pytest.mark.parametrize("dtype, weights", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_convolution_of_channels_last(dtype, weights, channels_last):
    x = integers(2, 9, 7, 6, dtype=dtype)
    if not channels_last:
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    # Of 7 bits, as onnxruntime's sums of two products saturate at 16 bits on processors without VNNI.
    w = integers(8, 3, 3, 2, dtype=weights) // weights(2)
    feeds = {
        "x": x, "xs": np.float32(0.02), "xz": dtype(3), "w": w,
        "ws": np.full(8, 0.01, np.float32), "wz": weights(0) if weights == np.int8 else weights(120),
        "ys": np.float32(0.1), "yz": dtype(5), "B": RNG.integers(-200, 200, 8).astype(np.int32),
    }  # fmt: skip
    attributes = dict(group=2, strides=[2, 1], pads=[1, 0, 1, 1], dilations=[1, 2], channels_last=channels_last)
    constants = ("xs", "xz", "w", "ws", "wz", "ys", "yz", "B")
    agree("QLinearConv", feeds, ["y"], constants, tolerance=1, **attributes)
    feeds["B"] = None
    attributes = dict(auto_pad="SAME_UPPER", group=2, channels_last=channels_last)
    agree("QLinearConv", feeds, ["y"], constants, tolerance=1, is_open=(False,), **attributes)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_maximum_of_channels_last(dtype):
    for shape, attributes in [
        ((2, 9, 7, 3), dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 1, 1])),
        ((2, 9, 7, 3), dict(kernel_shape=[3, 2], dilations=[2, 1], ceil_mode=1, strides=[3, 2])),
        ((2, 9, 7, 3), dict(kernel_shape=[2, 2], auto_pad="SAME_LOWER")),
        ((1, 12, 5), dict(kernel_shape=[3])),
        ((1, 4, 5, 6, 2), dict(kernel_shape=[2, 2, 2])),
    ]:
        agree("NhwcMaxPool", {"x": integers(*shape, dtype=dtype)}, ["y"], tolerance=0, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_fused_convolution_of_channels_last(dtype):
    """onnxruntime has no kernel on a CPU; its FusedConv is the same of channels that come first."""
    x, w, b, z = floats(2, 6, 9, 7), floats(8, 3, 3, 2), floats(8), floats(2, 8, 9, 6)
    attributes = dict(group=2, pads=[1, 0, 1, 0], activation="Relu")
    (wanted,) = by_onnxruntime("FusedConv", {"x": x, "w": w, "b": b, "z": z}, ["y"], **attributes)
    last = {n: np.ascontiguousarray(v.transpose(0, 2, 3, 1)) for n, v in [("x", x), ("z", z)]}
    feeds = {n: v.astype(dtype) for n, v in {"x": last["x"], "w": w, "b": b, "z": last["z"]}.items()}
    tolerance = 1e-5 if dtype == np.float32 else 3e-3
    check("NhwcFusedConv", feeds, ["y"], [wanted.transpose(0, 2, 3, 1)], ("w", "b"), tolerance, **attributes)


# Elements


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_choice_of_quantized_tensors(dtype):
    for shapes in ([(3, 4), (3, 4), (3, 4)], [(1, 4), (3, 1), (2, 1, 1)], [(), (5,), (1,)]):
        c, x, y = (RNG.integers(0, 2, shapes[0]) > 0, integers(*shapes[1], dtype=dtype), integers(*shapes[2], dtype=dtype))
        feeds = {
            "c": np.asarray(c), "x": x, "xs": np.float32(0.03), "xz": dtype(4), "y": y, "ys": np.float32(0.05),
            "yz": dtype(9), "zs": np.float32(0.04), "zz": dtype(7),
        }  # fmt: skip
        agree("QLinearWhere", feeds, ["z"], ("xs", "xz", "ys", "yz", "zs", "zz"), tolerance=1)
        feeds |= {"xs": np.float32(0.04), "xz": dtype(7)}
        agree("QLinearWhere", feeds, ["z"], tolerance=1)


@pytest.mark.parametrize("axes, keep", [([1], 0), ([0, -1], 1)])
def test_quantized_mean(axes, keep):
    """onnxruntime has no kernel; the definition is its text's."""
    x, scale, zero = integers(3, 4, 5), np.float32(0.05), 9
    mean = ((x.astype(np.float64) - zero) * scale).mean(tuple(axes), keepdims=bool(keep))
    wanted = np.clip(np.round(mean / 0.02) + 3, 0, 255).astype(np.uint8)
    feeds = {"x": x, "s": scale, "z": np.uint8(zero), "ys": np.float32(0.02), "yz": np.uint8(3)}
    check("QLinearReduceMean", feeds, ["y"], [wanted], ("s", "z", "ys", "yz"), 1, axes=axes, keepdims=keep)


def test_products_of_int16():
    a, b = integers(2, 3, 5, dtype=np.int16), integers(5, 4, dtype=np.int16)
    agree("MatMulInteger16", {"a": a, "b": b}, ["y"], tolerance=0)
    agree("MatMulInteger16", {"a": a, "b": b}, ["y"], ("b",), tolerance=0)
    agree("MatMulInteger16", {"a": np.full((1, 3), -32768, np.int16), "b": np.full((3, 1), -32768, np.int16)}, ["y"])
    refused("'A' is of uint16", "MatMulInteger16", {"a": a.astype(np.uint16), "b": b}, ["y"])


# Embeddings


def embeddings(dtype, has_segments, has_mask):
    tables = {name: integers(*shape, dtype=dtype) for name, shape in
              [("word", (20, 8)), ("place", (10, 8)), ("segment", (2, 8)), ("gamma", (8,)), ("beta", (8,))]}  # fmt: skip
    if not has_segments:
        tables["segment"] = None
    ids, mask = RNG.integers(0, 20, (2, 6)).astype(np.int32), RNG.integers(0, 2, (2, 6)).astype(np.int32)
    feeds = {"ids": ids, "segments": ids % 2 if has_segments else None} | tables
    feeds["mask"] = mask if has_mask else None
    for i, (name, table) in enumerate(tables.items()):
        feeds[f"{name}_scale"] = None if table is None else np.float32(0.01 * (i + 1))
    for i, (name, table) in enumerate(tables.items()):
        feeds[f"{name}_zero"] = None if table is None else dtype(3 * i)
    return feeds


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("has_segments, has_mask", [(True, True), (False, False)])
def test_embeddings_of_quantized_tables(dtype, has_segments, has_mask):
    feeds = embeddings(dtype, has_segments, has_mask)
    constants = [name for name in feeds if name not in ("ids", "segments", "mask")]
    agree("QEmbedLayerNormalization", feeds, ["y", "count"], constants, epsilon=1e-3)


def test_embeddings_with_half_of_the_segments_are_refused():
    feeds = embeddings(np.uint8, True, False)
    constants = [name for name in feeds if name not in ("ids", "segments")]
    feeds["segment_scale"] = None
    refused("'segment_embedding_scale' do not come together", "QEmbedLayerNormalization", feeds, ["y", "c"], constants)


# Weights of 4 bits

NF4 = [
    -1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
]  # fmt: skip


@pytest.mark.parametrize("kind, n, k, block", [(0, 8, 32, 16), (1, 8, 32, 64), (1, 3, 21, 16), (0, 5, 7, 128)])
def test_weights_of_bitsandbytes(kind, n, k, block):
    packed = integers((n * k + 1) // 2)
    scales = np.abs(floats((n * k + block - 1) // block))
    feeds = {"a": floats(2, 3, k), "b": packed, "s": scales}
    attributes = dict(K=k, N=n, block_size=block, quant_type=kind)
    agree("MatMulBnb4", feeds, ["y"], ("b", "s"), **attributes)
    if kind == 0:
        return
    # onnxruntime's kernel is wrong without transB.
    codes = np.stack([packed >> 4, packed & 15], 1).reshape(-1)[: n * k]
    weights = (np.array(NF4)[codes] * np.repeat(scales, block)[: n * k]).reshape(n, k)
    a = floats(4, n)
    check("MatMulBnb4", {"a": a, "b": packed, "s": scales}, ["y"], [a @ weights], ("b", "s"), transB=0, **attributes)


def test_weights_of_bitsandbytes_refusals():
    feeds = {"a": floats(2, 32), "b": integers(128), "s": floats(16)}
    for why, block, kind in [("its sizes cannot be", 24, 0), ("its sizes cannot be", 8, 0), ("quant_type is 2", 16, 2)]:
        refused(why, "MatMulBnb4", feeds, ["y"], ("b", "s"), K=32, N=8, block_size=block, quant_type=kind)


# Experts


def packed(numbers, bits):
    """Along the last axis, which is filled up."""
    each = 8 // bits
    rest = -numbers.shape[-1] % each
    numbers = np.concatenate([numbers, np.zeros((*numbers.shape[:-1], rest), np.uint8)], -1)
    parts = numbers.reshape(*numbers.shape[:-1], -1, each) << (bits * np.arange(each)).astype(np.uint8)
    return np.bitwise_or.reduce(parts, -1).astype(np.uint8)


NAMES = ["x", "r", "w1", "s1", "b1", "w2", "s2", "b2", "w3", "s3", "b3", "z1", "z2", "z3", "rw"]


def experts(bits=4, block=0, zeros=False, bias=False, inner=32, hidden=64, count=4, rows=6, fused=1, third=False):
    """Inputs of QMoE, and its matrices as floats."""
    feeds = dict.fromkeys(NAMES)
    feeds |= {"x": floats(rows, hidden), "r": floats(rows, count)}
    matrices = {}
    for i, n, k in [(1, fused * inner, hidden), (2, hidden, inner)] + third * [(3, inner, hidden)]:
        blocks = k // block if block else 1
        numbers = integers(count, n, k) >> (8 - bits)
        scale = np.abs(floats(count, n, blocks, scale=0.3 / 2 ** (bits - 1))) + 1e-4
        zero = integers(count, n, blocks) >> (8 - bits) if zeros else np.full((count, n, blocks), 1 << (bits - 1))
        values = numbers.reshape(count, n, blocks, -1).astype(int) - zero[..., None].astype(int)
        matrices[i] = (values * scale[..., None]).reshape(count, n, k)
        feeds |= {f"w{i}": packed(numbers, bits), f"s{i}": scale if block else scale[..., 0]}
        if zeros:
            feeds[f"z{i}"] = packed(zero if block else zero[..., 0], bits)
        if bias:
            feeds[f"b{i}"] = floats(count, n)
    return feeds, matrices


def agree_experts(feeds, tolerance=1e-4, is_open=(True,), **attributes):
    constants = [name for name in feeds if name not in ("x", "r", "rw")]
    agree("QMoE", feeds, ["y"], constants, tolerance=tolerance, is_open=is_open, **attributes)


@pytest.mark.parametrize("bits, block", list(itertools.product([2, 4, 8], [0, 16])))
@pytest.mark.parametrize("zeros", [False, True])
def test_quantized_experts(bits, block, zeros):
    feeds, _ = experts(bits, block, zeros)
    # Of blocks of bytes onnxruntime quantizes the rows, too.
    tolerance = 2e-2 if bits == 8 and block else 1e-4
    sizes = dict(block_size=block) if block else {}
    agree_experts(feeds, tolerance, (zeros,), k=2, expert_weight_bits=bits, **sizes)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity", "swiglu"])
def test_activations_of_experts(activation):
    fused = 2 if activation == "swiglu" else 1
    feeds, _ = experts(bias=True, fused=fused)
    attributes = dict(activation_type=activation, swiglu_fusion=fused - 1, k=1)
    agree_experts(feeds, **attributes)
    attributes |= dict(k=3, normalize_routing_weights=1)
    if fused == 2:
        attributes |= dict(activation_alpha=1.7, activation_beta=1.0, swiglu_limit=1.5)
    feeds["x"] = feeds["x"].reshape(2, 3, 64)
    agree_experts(feeds, is_open=(False,), **attributes)


@pytest.mark.parametrize("normalize", [0, 1])
def test_weights_of_experts_that_are_given(normalize):
    feeds, _ = experts()
    for rows in (floats(6, 4), np.abs(floats(6, 4))):
        agree_experts(feeds | {"rw": rows}, k=2, normalize_routing_weights=normalize)


def test_experts_of_halves():
    feeds, _ = experts()
    half = {name: None if v is None or v.dtype == np.uint8 else v.astype(np.float16) for name, v in feeds.items()}
    agree_experts({name: v if half[name] is None else half[name] for name, v in feeds.items()}, 2e-3, (False,), k=2)


def test_experts_with_a_gate():
    """A third projection, which onnxruntime has on other devices only."""
    feeds, m = experts(third=True)
    x, r = (feeds[name].astype(np.float64) for name in "xr")
    kept = np.where(r >= np.sort(r, -1)[:, -2:-1], np.exp(r), 0)
    first, third = (np.einsum("th,eih->eti", x, m[i]) for i in (1, 3))
    for activation, attributes in [("silu", {}), ("swiglu", dict(activation_alpha=1.0))]:
        each = np.einsum("eti,ehi->teh", first * sigmoid(first) * third, m[2])
        wanted = (each * (kept / kept.sum(-1, keepdims=True))[..., None]).sum(1)
        constants = [name for name in feeds if name not in ("x", "r")]
        rest = dict(activation_type=activation, tolerance=1e-4, **attributes)
        check("QMoE", feeds, ["y"], [wanted], constants, k=2, **rest)


@pytest.mark.parametrize("rows, count", [(1, 4), (1, 33), (7, 4), (7, 33), (40, 4)])
@pytest.mark.parametrize("bits, block", [(2, 16), (4, 16), (8, 0)])
def test_experts_that_no_row_takes(rows, count, bits, block):
    """A reference of its own, sizes that do not fill panels, and scales of NaN of the experts that nobody takes."""
    feeds, m = experts(bits, block, zeros=True, bias=True, inner=48, hidden=96, count=count, rows=rows)
    x, r = (feeds[name].astype(np.float64) for name in "xr")
    r[:, 1] = feeds["r"][:, 1] = -9
    kept = np.where(r >= np.sort(r, -1)[:, -2:-1], np.exp(r), 0)
    inner = np.maximum(np.einsum("th,eih->eti", x, m[1]) + feeds["b1"][:, None], 0)
    each = np.einsum("eti,ehi->teh", inner, m[2]) + feeds["b2"]
    wanted = (each * (kept / kept.sum(-1, keepdims=True))[..., None]).sum(1)
    feeds["s1"][1] = feeds["s2"][1] = np.nan
    constants = [name for name in feeds if name not in ("x", "r")]
    rest = dict(expert_weight_bits=bits, tolerance=1e-4, is_open=(False, True))
    check("QMoE", feeds, ["y"], [wanted], constants, k=2, **dict(block_size=block) if block else {}, **rest)
    # Weights that arrive with the run.
    feeds["s1"][1] = feeds["s2"][1] = 0
    check("QMoE", feeds, ["y"], [wanted], (), k=2, **dict(block_size=block) if block else {}, **rest | dict(is_open=(False,)))


def test_no_rows_of_experts():
    feeds, _ = experts(rows=0)
    constants = [name for name in feeds if name not in ("x", "r")]
    check("QMoE", feeds, ["y"], [np.zeros((0, 64))], constants, k=2, is_open=(False, True))


def test_float_experts_by_swiglu():
    rows, hidden, inner, count = 5, 8, 6, 4
    feeds = {
        "x": floats(rows, hidden), "r": floats(rows, count), "w1": floats(count, 2 * inner, hidden),
        "b1": floats(count, 2 * inner), "w2": floats(count, hidden, inner), "b2": floats(count, hidden),
    }  # fmt: skip
    attributes = dict(activation_type="swiglu", activation_alpha=1.7, activation_beta=1.0, swiglu_limit=2.0, k=2)
    weights = ("w1", "b1", "w2", "b2")
    agree("MoE", feeds, ["y"], weights, tolerance=1e-4, swiglu_fusion=1, **attributes)
    # With halves behind each other in place of pairs the result is that of rows in another order.
    pairs = np.concatenate([np.arange(0, 2 * inner, 2), np.arange(1, 2 * inner, 2)])
    wanted = by_onnxruntime("MoE", feeds, ["y"], weights, swiglu_fusion=1, **attributes)
    halves = feeds | {"w1": feeds["w1"][:, pairs], "b1": feeds["b1"][:, pairs]}
    check("MoE", halves, ["y"], wanted, weights, 1e-4, swiglu_fusion=2, **attributes)
    refused("swiglu_fusion is 0, without", "MoE", feeds, ["y"], weights, **attributes)


def test_experts_refusals():
    feeds, _ = experts()
    constants = [name for name in feeds if name not in ("x", "r")]
    for why, attributes in [
        ("quant_type 'fp8'", dict(quant_type="fp8")),
        ("weights of 5 bits", dict(expert_weight_bits=5)),
        ("block_size does not divide", dict(block_size=24)),
        ("are no whole bytes", dict(block_size=1)),
        ("activation 'tanh'", dict(activation_type="tanh")),
        ("'use_sparse_mixer' is 1", dict(use_sparse_mixer=1)),
    ]:
        refused(why, "QMoE", feeds, ["y"], constants, **attributes)
    refused("'fc1_scales' is missing", "QMoE", feeds | {"s1": None}, ["y"], constants)
