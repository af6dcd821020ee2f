"""Attention of com.microsoft that decodes token after token, by blocks and by states, as onnxruntime computes it on a
CPU."""

import numpy as np
import onnxruntime
import pytest
from contrib_nodes import agree, by_onnxruntime, check, model, refused

RNG = np.random.default_rng(13)


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def ints(*values):
    return np.array(values, np.int32)


# MultiHeadAttention with a shared buffer

BATCH, HEADS, SIZE, ROOM = 4, 2, 8, 12
WIDTH = HEADS * SIZE
OUTPUTS = ["y", "key", "value", "qk"]


def shared(length, past):
    """Inputs of MultiHeadAttention whose past is the beginning of a buffer."""
    feeds = {name: floats(BATCH, length, WIDTH) for name in "qkv"}
    feeds |= {"bias": floats(3 * WIDTH), "mask": None, "added": None}
    feeds |= {"pk": floats(BATCH, HEADS, ROOM, SIZE), "pv": floats(BATCH, HEADS, ROOM, SIZE)}
    return feeds | {"past": np.array(past, np.int32)}


@pytest.mark.parametrize("length, past", [(1, 0), (1, [5]), (3, 5), (3, [9])])
def test_past_sequence_length(length, past):
    feeds = shared(length, past)
    total = length + int(np.max(past))
    agree("MultiHeadAttention", feeds, OUTPUTS, num_heads=HEADS, unidirectional=int(length > 1), is_open=(False,))
    mask = RNG.integers(0, 2, (BATCH, total)).astype(np.int32)
    mask[:, -1] = 1
    more = feeds | {"mask": mask, "added": floats(1, HEADS, length, total)}
    agree("MultiHeadAttention", more, OUTPUTS, num_heads=HEADS, mask_filter_value=-1e3, scale=0.3)


@pytest.mark.parametrize("length, past", [(1, 0), (1, 5), (3, 5)])
def test_beams(length, past):
    """The past of a beam is that of the beams it came from; a prompt has its own."""
    feeds = shared(length, past) | {"beams": RNG.integers(0, 2, (BATCH // 2, 2, ROOM)).astype(np.int32)}
    agree("MultiHeadAttention", feeds, OUTPUTS, num_heads=HEADS, is_open=(length == 1,))


def test_scores_of_an_attention():
    feeds = {name: floats(2, length, WIDTH) for name, length in [("q", 3), ("k", 5), ("v", 5)]}
    mask = np.ones((2, 5), np.int32)
    mask[0, 3:] = 0
    agree("MultiHeadAttention", feeds, ["y", "", "", "qk"], num_heads=HEADS)
    feeds |= {"bias": None, "mask": mask}
    agree("MultiHeadAttention", feeds, ["y", "", "", "qk"], num_heads=HEADS, unidirectional=1)


def test_shared_buffer_refusals():
    feeds = shared(1, 5)
    refused("without past_value", "MultiHeadAttention", feeds | {"pv": None}, ["y"], num_heads=HEADS)
    feeds |= {"past": None, "beams": np.zeros((2, 2, ROOM), np.int32)}
    refused("without a shared buffer", "MultiHeadAttention", feeds, ["y"], num_heads=HEADS)


# DecoderMaskedMultiHeadAttention


def decoder(past, **rest):
    """Inputs of one token's attention to itself and the past."""
    feeds = {name: floats(BATCH, 1, WIDTH) for name in "qkv"} | {"mask": None, "added": None}
    feeds |= {"pk": floats(BATCH, HEADS, ROOM, SIZE), "pv": floats(BATCH, HEADS, ROOM, SIZE), "past": ints(past)}
    return feeds | {"width": None, "beams": None, "bias": None} | rest


@pytest.mark.parametrize("past", [0, 5])
def test_one_token_of_a_decoder(past):
    own = dict(num_heads=HEADS, past_present_share_buffer=1)
    agree("DecoderMaskedMultiHeadAttention", decoder(past), OUTPUTS[:3], **own)
    mask = RNG.integers(0, 2, (BATCH, past + 1)).astype(np.int32)
    for batches, heads in [(1, HEADS), (BATCH, 1)]:
        feeds = decoder(past, bias=floats(3 * WIDTH), mask=mask, added=floats(batches, heads, 1, past + 1))
        agree("DecoderMaskedMultiHeadAttention", feeds, OUTPUTS, output_qk=1, scale=0.4, **own)


@pytest.mark.parametrize("past", [0, 5])
def test_beams_of_a_decoder(past):
    beams = RNG.integers(0, 2, (BATCH // 2, 2, ROOM)).astype(np.int32)
    mask = RNG.integers(0, 2, (BATCH, past + 1)).astype(np.int32)
    feeds = decoder(past, width=ints(2), beams=beams, mask=mask, added=floats(BATCH, HEADS, 1, past + 1))
    agree(
        "DecoderMaskedMultiHeadAttention", feeds, OUTPUTS, num_heads=HEADS, past_present_share_buffer=1, output_qk=1
    )  # fmt: skip


def test_one_token_and_an_encoder():
    mask = RNG.integers(0, 2, (BATCH, 7)).astype(np.int32)
    feeds = {"q": floats(BATCH, 1, WIDTH), "k": floats(BATCH, HEADS, 7, SIZE), "v": floats(BATCH, HEADS, 7, SIZE)}
    agree("DecoderMaskedMultiHeadAttention", feeds, ["y"], num_heads=HEADS)
    feeds |= {"mask": mask}
    agree("DecoderMaskedMultiHeadAttention", feeds, ["y", "", "", "qk"], num_heads=HEADS, output_qk=1)


def test_packed_token():
    """Queries, keys and values behind one another are those apart."""
    own = dict(num_heads=HEADS, past_present_share_buffer=1)
    apart = decoder(5, bias=floats(3 * WIDTH))
    wanted = by_onnxruntime("DecoderMaskedMultiHeadAttention", apart, OUTPUTS[:3], **own)
    together = np.concatenate([apart[name] for name in "qkv"], 2)
    feeds = apart | {"q": together, "k": None, "v": None}
    check("DecoderMaskedMultiHeadAttention", feeds, OUTPUTS[:3], wanted, is_open=(False,), **own)


def test_decoder_refusals():
    own = dict(num_heads=HEADS, past_present_share_buffer=1)
    feeds = decoder(5)
    name = "DecoderMaskedMultiHeadAttention"
    refused("no past_sequence_length", name, feeds | {"past": None}, ["y"], **own)
    refused("the query has 2 tokens", name, feeds | {k: floats(BATCH, 2, WIDTH) for k in "qkv"}, ["y"], **own)
    refused("the mask has rank 3", name, feeds | {"mask": np.ones((BATCH, 1, 6), np.int32)}, ["y"], **own)


# SparseAttention


def layouts(mask):
    """Compressed rows of a mask [layouts, rows, columns] of blocks."""
    lists = [[np.flatnonzero(row) for row in layout] for layout in mask]
    rows = np.array([np.cumsum([0] + [len(r) for r in layout]) for layout in lists], np.int32)
    columns = np.full((len(mask), rows.max()), -1, np.int32)
    for target, layout in zip(columns, lists):
        target[: sum(map(len, layout))] = np.concatenate(layout)
    return rows, columns


BLOCKS = np.array(
    [
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]],
    ]
)


def sparse(length, total, keys, packed=False, rotary=None, size=16, heads=4, groups=2, room=70, dtype=np.float32):
    batch = len(keys)
    count = heads + 2 * groups if packed else heads
    feeds = {"q": floats(batch, length, count * size)}
    feeds |= {name: None if packed else floats(batch, length, groups * size) for name in "kv"}
    feeds |= {"pk": floats(batch, groups, room, size), "pv": floats(batch, groups, room, size)}
    feeds["rows"], feeds["columns"] = layouts(BLOCKS)
    feeds |= {"total": ints(total), "keys": ints(*keys)}
    if rotary:
        angles = np.outer(np.arange(64), 0.1 ** np.arange(rotary // 2))
        feeds |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    return {n: v.astype(dtype) if v is not None and v.dtype == np.float32 else v for n, v in feeds.items()}


def sparse_by_onnxruntime(feeds, outputs, constants, **attributes):
    """onnxruntime wants past and present in the same memory."""
    source = model("SparseAttention", feeds, outputs, constants, **attributes)
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    # An OrtValue holds no reference of the array whose memory it is.
    arrays = {name: v.copy() for name, v in feeds.items() if v is not None and name not in constants}
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(v) for name, v in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y")
    binding.bind_ortvalue_output("key", values["pk"])
    binding.bind_ortvalue_output("value", values["pv"])
    session.run_with_iobinding(binding)
    return [value.numpy().copy() for value in binding.get_outputs()]


def agree_sparse(feeds, tolerance=1e-5, **attributes):
    """With onnxruntime batch by batch, since it mixes up batches of several lengths."""
    attributes = dict(num_heads=4, kv_num_heads=2, sparse_block_size=16) | attributes
    outputs, constants = ["y", "key", "value"], ("rows", "columns")
    wanted = []
    for i, keys in enumerate(feeds["keys"]):
        one = {n: v[i : i + 1] if n in ("q", "k", "v", "pk", "pv") and v is not None else v for n, v in feeds.items()}
        one |= {"total": ints(keys), "keys": ints(keys)}
        wanted.append(sparse_by_onnxruntime(one, outputs, constants, **attributes))
    wanted = [np.concatenate(parts) for parts in zip(*wanted)]
    is_open = (len(wanted[0]) > 1 and feeds["q"].shape[1] > 1,)
    check("SparseAttention", feeds, outputs, wanted, constants, tolerance, is_open, **attributes)


@pytest.mark.parametrize(
    "length, total, keys, packed, rotary",
    [
        (50, 50, [50, 50], False, None),
        (50, 50, [50, 50], True, 16),
        (1, 60, [60, 37], True, None),
        (1, 60, [60, 37], False, 16),
        (3, 48, [48, 36], True, 16),
    ],
)
def test_attention_to_blocks(length, total, keys, packed, rotary):
    attributes = dict(do_rotary=1, rotary_interleaved=int(packed)) if rotary else {}
    agree_sparse(sparse(length, total, keys, packed, rotary), **attributes)


def test_attention_to_blocks_of_halves():
    agree_sparse(sparse(20, 20, [20], dtype=np.float16), 3e-3, scale=0.2)


def test_attention_to_blocks_refusals():
    feeds = sparse(1, 60, [60, 37])
    own = dict(num_heads=4, kv_num_heads=2, sparse_block_size=16)
    outputs, constants = ["y", "key", "value"], ("rows", "columns")
    refused("there is no value", "SparseAttention", feeds | {"v": None}, outputs, constants, **own)
    refused("caches of cosines", "SparseAttention", feeds, outputs, constants, do_rotary=1, **own)
    own["kv_num_heads"] = 3
    refused("no multiple of kv_num_heads", "SparseAttention", feeds, outputs, constants, **own)


# States of fixed size


@pytest.mark.parametrize("heads, states, keys", [(4, 2, 2), (2, 4, 4), (2, 2, 1)])
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(heads, states, keys, rule):
    batch, length, size, width = 2, 5, 8, 6
    feeds = {
        "q": floats(batch, length, heads * size), "k": floats(batch, length, keys * size, scale=0.3),
        "v": floats(batch, length, states * width), "past": floats(batch, states, size, width),
        "decay": -np.abs(floats(batch, length, states)), "beta": np.abs(floats(batch, length, states, scale=0.3)),
    }  # fmt: skip
    own = dict(q_num_heads=heads, kv_num_heads=states, update_rule=rule, is_open=(False,))
    agree("LinearAttention", feeds, ["y", "state"], **own)
    feeds["past"] = None
    feeds["decay"] = -np.abs(floats(batch, length, states * size)) if "gated" in rule else None
    feeds["beta"] = floats(batch, length, 1) if "delta" in rule else None
    agree("LinearAttention", feeds, ["y", "state"], scale=0.5, **own)


def test_linear_attention_refusals():
    feeds = {name: floats(2, 5, 16) for name in "qkv"}
    own = dict(q_num_heads=2, kv_num_heads=2)
    for why, attributes in [
        ("update_rule 'gated' has no input 'decay'", dict(update_rule="gated")),
        ("update_rule 'odd' is not known", dict(update_rule="odd")),
        ("'state_window' is 2", dict(state_window=2, update_rule="linear")),
        ("do not divide each other", dict(q_num_heads=3, update_rule="linear")),
    ]:
        refused(why, "LinearAttention", feeds, ["y", "state"], **own | attributes)


@pytest.mark.parametrize("dilation, has_past, activation", [(1, 0, "none"), (1, 1, "silu"), (2, 1, "swish")])
@pytest.mark.parametrize("taps", [1, 4])
def test_causal_convolution(dilation, has_past, activation, taps):
    state = (taps - 1) * dilation
    feeds = {"x": floats(2, 3, 7), "w": floats(3, 1, taps), "b": floats(3) if has_past else None}
    feeds["past"] = floats(2, 3, state) if has_past else None
    own = dict(dilation=dilation, activation=activation)
    agree("CausalConvWithState", feeds, ["y", "state"], ("w", "b"), **own)
    feeds |= {"x": floats(2, 7, 3), "past": floats(2, state, 3) if has_past else None}
    agree("CausalConvWithState", feeds, ["y", "state"], ("w", "b"), channels_last=1, **own)
    feeds |= {"x": floats(2, 7, 1, 3), "past": floats(2, state, 1, 3) if has_past else None}
    agree("CausalConvWithState", feeds, ["y", "state"], ("w", "b"), channels_last=1, is_open=(False,), **own)


def test_causal_convolution_refusals():
    feeds = {"x": floats(2, 3, 7), "w": floats(3, 1, 4)}
    for why, attributes in [
        ("'ndim' is 2", dict(ndim=2)),
        ("'state_window' is 1", dict(state_window=1)),
        ("activation 'tanh' is not known", dict(activation="tanh")),
        ("dilation is 0", dict(dilation=0)),
    ]:
        refused(why, "CausalConvWithState", feeds, ["y", "state"], **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gates(dtype):
    tolerance = 1e-5 if dtype == np.float32 else 2e-3
    a, b = (floats(2, 5, 3).astype(dtype) for _ in range(2))
    feeds = {"a": a, "bias": floats(3), "scale": -np.abs(floats(3)), "b": b}
    agree("LinearAttentionGate", feeds, ["decay", "rate"], tolerance=tolerance)
    agree("LinearAttentionGate", feeds | {"b": None}, ["decay"], tolerance=tolerance)
    gate = floats(2, 5, 1).astype(dtype)
    agree("GatedAdd", {"x": a, "y": b, "gate": gate}, ["out"], tolerance=tolerance)
    x, z = (floats(2, 5, 12).astype(dtype) for _ in range(2))
    for length, activation in [(12, "silu"), (4, "swish"), (3, "sigmoid")]:
        feeds = {"x": x, "scale": floats(length).astype(dtype), "z": z}
        own = dict(activation=activation, epsilon=1e-3, tolerance=tolerance)
        agree("GatedRMSNorm", feeds, ["y"], ("scale",), is_open=(False,), **own)
    refused("needs input 'b'", "LinearAttentionGate", {"a": a, "b": floats(3), "s": floats(3)}, ["decay", "rate"])
    refused("activation 'tanh'", "GatedRMSNorm", feeds, ["y"], ("scale",), activation="tanh")
