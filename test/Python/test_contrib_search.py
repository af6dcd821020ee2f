"""Searches for texts of com.microsoft against onnxruntime, with decoders of two layers and random weights."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx

WORDS, HIDDEN, HEADS, LAYERS, LONGEST = 50, 16, 2, 2, 32
SIZE = HIDDEN // HEADS
PAD, EOS = 0, 1
F32, I32 = TensorProto.FLOAT, TensorProto.INT32
MS = "com.microsoft"
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]


class Nodes:
    """The nodes and weights of a graph."""

    def __init__(self, seed, prefix=""):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.prefix = [], [], prefix

    def op(self, op, *inputs, outputs=None, domain="", **attributes):
        names = outputs or [f"{self.prefix}{op}{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def constant(self, value):
        name = f"{self.prefix}w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=1.0):
        return self.constant((scale * self.rng.standard_normal(shape)).astype(np.float32))

    def norm(self, x):
        return self.op("LayerNormalization", x, self.weight(HIDDEN), self.weight(HIDDEN))


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def gpt(seed, name="decoder", layers=LAYERS):
    """A decoder of GPT-2's form. A bias makes the end of the text likely."""
    n = Nodes(seed, name[0])
    table = n.weight(WORDS, HIDDEN)
    x = n.op("Add", n.op("Gather", table, "input_ids"), n.op("Gather", n.weight(LONGEST, HIDDEN), "position_ids"))
    for i in range(layers):
        out = f"attended{i}"
        n.op("Attention", n.norm(x), n.weight(HIDDEN, 3 * HIDDEN), n.weight(3 * HIDDEN), "attention_mask", f"past_{i}",
             outputs=[out, f"present_{i}"], domain=MS, num_heads=HEADS, unidirectional=1)  # fmt: skip
        x = n.op("Add", x, n.op("MatMul", out, n.weight(HIDDEN, HIDDEN)))
    logits = n.op("MatMul", n.norm(x), n.op("Transpose", table, perm=[1, 0]))
    n.op("Add", logits, n.constant(np.eye(1, WORDS, EOS, dtype=np.float32) * 4), outputs=["logits"])
    past = [value(f"past_{i}", F32, 2, "b", HEADS, "p", SIZE) for i in range(layers)]
    ids = [value(name, I32, "b", "s") for name in ("input_ids", "position_ids")] + [value("attention_mask", I32, "b", "t")]
    presents = [value(f"present_{i}", F32, 2, "b", HEADS, "t", SIZE) for i in range(layers)]
    return helper.make_graph(n.nodes, name, ids + past, [value("logits", F32, "b", "s", WORDS), *presents], n.weights)


def model(op, feeds, outputs, order, weights=(), is_open=True, **attributes):
    names = [name if name in feeds else "" for name in order]
    while not names[-1]:
        names.pop()
    attributes = {"eos_token_id": EOS, "pad_token_id": PAD, **attributes}
    node = helper.make_node(op, names, outputs, name="search", domain=MS, **attributes)
    inputs = []
    for name, v in feeds.items():
        shape = [f"{name}{i}" for i in range(v.ndim)] if is_open and v.ndim > 1 else v.shape
        inputs.append(value(name, helper.np_dtype_to_tensor_dtype(v.dtype), *shape))
    kinds = {"sequences": I32}
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    for result in results:
        result.type.tensor_type.elem_type = kinds.get(result.name, F32)
    graph = helper.make_graph([node], "g", inputs, results, list(weights))
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8).SerializeToString()


GREEDY = "input_ids max_length min_length repetition_penalty vocab_mask prefix_vocab_mask attention_mask".split()
SAMPLING = [*GREEDY, "presence_mask", "seed"]
BEAMS = [*GREEDY[:3], "num_beams", "num_return_sequences", "length_penalty", *GREEDY[3:]]
BEAMS += ["decoder_input_ids", "logits_processor"]
WHISPER = [*BEAMS, "cross_qk_layer_head", "extra_decoding_ids", "temperature"]


class Both:
    """A model in both engines."""

    def __init__(self, *arguments, **attributes):
        text = model(*arguments, **attributes)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.theirs = onnxruntime.InferenceSession(text, options)
        self.ours = sdx.InferenceSession(text)

    def check(self, feeds):
        wanted = self.theirs.run(None, feeds)
        got = self.ours.run(None, feeds)
        names = [o.name for o in self.ours.get_outputs()]
        for name, g, w in zip(names, got, wanted, strict=True):
            assert (g.dtype, g.shape) == (w.dtype, w.shape), name
            if name == "sequences" and g.ndim == 2:
                # Behind the step that ended the last text, too.
                end = (g != PAD).any(0).nonzero()[0].max() + 2
                assert (g[:, end:] == PAD).all()
                g, w = g[:, :end], w[:, :end]
            if name == "scores":
                # Behind the last step onnxruntime leaves what was in the memory.
                g, w = g[: self.steps(got)], w[: self.steps(got)]
            if g.dtype == np.float32:
                np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-4)
            else:
                np.testing.assert_array_equal(g, w)
        return got

    @staticmethod
    def steps(got):
        """How many there were, at least: a step more than the longest text that ended."""
        longest = (got[0] != PAD).any((0, 1)).nonzero()[0].max() + 1
        return max(1, longest - got[0].shape[-1] + len(got[2]))


def number(v, dtype=np.int32):
    return np.array([v], dtype)


def prompts(rng, batch, length, padded=True):
    ids = rng.integers(2, WORDS, (batch, length)).astype(np.int32)
    if padded:
        for row in range(1, batch):
            ids[row, : row % length] = PAD
    return ids


def options(rng, batch, beams=None):
    """Every input that changes scores."""
    feeds = {
        "min_length": number(rng.integers(0, 9)),
        "repetition_penalty": number(rng.choice([1.0, 1.3, 0.8]), np.float32),
        "vocab_mask": (rng.random(WORDS) < 0.8).astype(np.int32),
        "prefix_vocab_mask": (rng.random((batch, WORDS)) < 0.5).astype(np.int32),
    }
    if beams:
        feeds["num_beams"] = number(beams)
        feeds["num_return_sequences"] = number(rng.integers(1, beams + 1))
        feeds["length_penalty"] = number(rng.choice([1.0, 0.5, 2.0]), np.float32)
    return feeds


class EncoderDecoder(Nodes):
    """The nodes of a model of T5's or Whisper's form, whose weights hang on their order only."""

    def heads(self, x):
        """[batch, length, HIDDEN] as [batch, HEADS, length, SIZE]."""
        x = self.op("Reshape", x, self.constant(np.array([0, 0, HEADS, SIZE])))
        return self.op("Transpose", x, perm=[0, 2, 1, 3])

    def attend(self, query, key, value, mask=None):
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        if mask:
            hidden = self.op("Sub", self.constant(np.float32(1)), self.op("Cast", mask, to=F32))
            hidden = self.op("Mul", hidden, self.constant(np.float32(-1e4)))
            scores = self.op("Add", scores, self.op("Unsqueeze", hidden, self.constant(np.array([1, 2]))))
        x = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores), value), perm=[0, 2, 1, 3])
        return self.op("Reshape", x, self.constant(np.array([0, 0, HIDDEN])))

    def encode(self, x, mask, outputs):
        """What is encoded [batch, length, HIDDEN], and the keys and values of all layers."""
        query, key, value = (self.heads(self.op("MatMul", x, self.weight(HIDDEN, HIDDEN))) for _ in range(3))
        states = self.op("Add", x, self.attend(query, key, value, mask), outputs=["encoder_hidden_states"])
        for i in range(2 * LAYERS):
            made = self.heads(self.op("MatMul", states, self.weight(HIDDEN, HIDDEN)))
            self.op("Identity", made, outputs=[outputs[i]])

    def decode(self, ids, mask, cross, past, presents):
        """Logits of one token behind a past; that of the first token is None."""
        table = self.weight(WORDS, HIDDEN)
        x = self.op("Gather", table, ids)
        for i in range(LAYERS):
            normed = self.norm(x)
            query, *new = (self.heads(self.op("MatMul", normed, self.weight(HIDDEN, HIDDEN))) for _ in range(3))
            for j in range(2):
                old = [past[2 * i + j]] if past else []
                self.op("Concat", *old, new[j], outputs=[presents[2 * i + j]], axis=2)
            x = self.op("Add", x, self.attend(query, *presents[2 * i : 2 * i + 2]))
            query = self.heads(self.op("MatMul", self.norm(x), self.weight(HIDDEN, HIDDEN)))
            x = self.op("Add", x, self.attend(query, *cross[2 * i : 2 * i + 2], mask))
        logits = self.op("MatMul", self.norm(x), self.op("Transpose", table, perm=[1, 0]))
        self.op("Add", logits, self.constant(np.eye(1, WORDS, EOS, dtype=np.float32) * 3), outputs=["logits"])


def names(what, where):
    return [f"{what}_{kind}_{where}_{i}" for i in range(LAYERS) for kind in ("key", "value")]


def caches(what, where, length):
    return [value(name, F32, "b", HEADS, length, SIZE) for name in names(what, where)]


def encoder_decoder(seed, starts, extras, features=None):
    """The graphs of an encoder, which computes the first step of the decoder where it `starts` the texts, and of a
    decoder, which takes `extras` that it has no need of. The encoder is Whisper's where there are `features`."""
    logits = value("logits", F32, "b", 1, WORDS)
    states = value("encoder_hidden_states", F32, "b", "s", HIDDEN)
    n = EncoderDecoder(seed, "e")
    mask = None if features else "encoder_attention_mask"
    if features:
        inputs = [value("encoder_input_ids", F32, "b", features, "s")]
        x = n.op("MatMul", n.op("Transpose", "encoder_input_ids", perm=[0, 2, 1]), n.weight(features, HIDDEN))
    else:
        inputs = [value("encoder_input_ids", I32, "b", "s"), value(mask, I32, "b", "s")]
        x = n.op("Gather", n.weight(WORDS, HIDDEN), "encoder_input_ids")
    n.encode(x, mask, names("present", "cross"))
    outputs = caches("present", "cross", "s")
    if starts:
        inputs.append(value("decoder_input_ids", I32, "b", 1))
        n.rng = np.random.default_rng(seed + 100)
        n.decode("decoder_input_ids", mask, names("present", "cross"), None, names("present", "self"))
        outputs = [logits, states, *caches("present", "self", 1), *outputs]
    encoder = helper.make_graph(n.nodes, "encoder", inputs, outputs, n.weights)
    n = EncoderDecoder(seed + 100, "d")
    n.decode("input_ids", mask, names("past", "cross"), names("past", "self"), names("present", "self"))
    inputs = [value("input_ids", I32, "b", 1)]
    if "ids" in extras:
        inputs.append(value("encoder_input_ids", I32, "b", "s"))
    if mask:
        inputs.append(value(mask, I32, "b", "s"))
    if "states" in extras:
        inputs.append(states)
    inputs += caches("past", "self", "p") + caches("past", "cross", "s")
    decoder = helper.make_graph(n.nodes, "decoder", inputs, [logits, *caches("present", "self", "t")], n.weights)
    return {"encoder": encoder, "decoder": decoder}


def test_greedy_search():
    rng = np.random.default_rng(0)
    feeds = {"input_ids": prompts(rng, 3, 4), "max_length": number(14)}
    plain = Both("GreedySearch", feeds, ["sequences"], GREEDY, decoder=gpt(3))
    more = feeds | options(rng, 3) | {"attention_mask": feeds["input_ids"]}
    full = Both("GreedySearch", more, ["sequences"], GREEDY, decoder=gpt(3), no_repeat_ngram_size=2)
    for batch, length, longest in [(3, 4, 14), (1, 1, 5), (2, 6, 7), (4, 3, 20)]:
        ids = prompts(rng, batch, length)
        feeds = {"input_ids": ids, "max_length": number(longest)}
        plain.check(feeds)
        full.check(feeds | options(rng, batch) | {"attention_mask": np.ones_like(ids)})


@pytest.mark.parametrize("form", [{"early_stopping": 0, "no_repeat_ngram_size": 3}, {"early_stopping": 1}])
def test_beam_search(form):
    rng = np.random.default_rng(11)
    outputs = ["sequences", "sequences_scores", "scores"]
    feeds = {"input_ids": prompts(rng, 3, 4), "max_length": number(14)} | options(rng, 3, 3)
    both = Both("BeamSearch", feeds, outputs, BEAMS, decoder=gpt(4), **form)
    shapes = [(3, 4, 14, 3), (1, 2, 9, 1), (2, 5, 20, 4), (4, 1, 12, 2), (3, 3, 24, 5), (5, 2, 16, 2)]
    for batch, length, longest, beams in shapes:
        feeds = {"input_ids": prompts(rng, batch, length), "max_length": number(longest)}
        both.check(feeds | options(rng, batch, beams))


def test_beam_search_with_a_graph_for_the_first_step():
    rng = np.random.default_rng(12)
    feeds = {"input_ids": prompts(rng, 3, 4), "max_length": number(14)} | options(rng, 3, 3)
    feeds["attention_mask"] = (feeds["input_ids"] != PAD).astype(np.int32)
    graphs = {"decoder": gpt(4), "init_decoder": gpt(9, "init")}
    both = Both("BeamSearch", feeds, ["sequences", "sequences_scores", "scores"], BEAMS, **graphs)
    both.check(feeds)


@pytest.mark.parametrize("starts, extras", [(True, ["ids", "states"]), (True, []), (False, ["ids"])])
def test_beam_search_with_an_encoder(starts, extras):
    rng = np.random.default_rng(13)
    outputs = ["sequences", "sequences_scores", "scores"]
    feeds = {"input_ids": prompts(rng, 3, 6), "max_length": number(14)} | options(rng, 3, 3)
    graphs = encoder_decoder(21, starts, extras)
    both = Both("BeamSearch", feeds, outputs, BEAMS, model_type=1, decoder_start_token_id=2, **graphs)
    for batch, length, longest, beams in [(3, 6, 14, 3), (1, 2, 9, 1), (2, 5, 20, 4), (4, 1, 12, 2)]:
        feeds = {"input_ids": prompts(rng, batch, length), "max_length": number(longest)}
        both.check(feeds | options(rng, batch, beams))


def test_whisper_beam_search():
    rng = np.random.default_rng(14)

    def inputs(batch, length, longest, beams):
        features = rng.standard_normal((batch, 7, length)).astype(np.float32)
        feeds = {"input_ids": features, "max_length": number(longest)} | options(rng, batch, beams)
        feeds |= {"vocab_mask": np.ones(WORDS, np.int32), "logits_processor": number(0)}
        return feeds | {"temperature": number(rng.choice([1.0, 0.7]), np.float32)}

    graphs = encoder_decoder(22, True, ["states"], features=7)
    feeds = inputs(2, 9, 12, 3)
    words = {"translate_token_id": 3, "transcribe_token_id": 4, "start_of_lm_token_id": 5, "no_timestamps_token_id": 6}
    words |= {"beginning_timestamp_token_id": 30, "decoder_start_token_id": 2}
    both = Both("WhisperBeamSearch", feeds, ["sequences", "sequences_scores"], WHISPER, **words, **graphs)
    for shape in [(2, 9, 12, 3), (1, 4, 9, 2), (3, 5, 16, 4)]:
        both.check(inputs(*shape))
        # Timestamps follow rules of their own.
        both.check(inputs(*shape) | {"logits_processor": number(1), "min_length": number(0)})


@pytest.mark.parametrize(
    "form",
    [
        {"top_p": 0.9, "temperature": 1.7, "min_tokens_to_keep": 3},
        {"top_p": 0.5, "custom": 1, "filter_value": -3.0},
    ],
)
def test_sampling(form):
    rng = np.random.default_rng(15)

    def inputs(batch, length, longest, seed):
        feeds = {"input_ids": prompts(rng, batch, length), "max_length": number(longest)} | options(rng, batch)
        return feeds | {"presence_mask": rng.integers(0, 2, (batch, WORDS)).astype(np.int32), "seed": number(seed)}

    both = Both("Sampling", inputs(2, 3, 12, 0), ["sequences"], SAMPLING, decoder=gpt(7), **form)
    for shape in [(3, 3, 20, 0), (1, 2, 15, 1), (4, 4, 30, 42), (2, 1, 30, 2**31 - 1)]:
        both.check(inputs(*shape))


def refused(why, op, feeds, outputs, order, **rest):
    """While sizes are open, a model is compiled when it is run."""
    rest["is_open"] = False
    with pytest.raises(NotImplementedError, match=f"{op}.*{why}"):
        sdx.InferenceSession(model(op, feeds, outputs, order, **rest))


def test_what_is_refused():
    rng = np.random.default_rng(16)
    feeds = {"input_ids": prompts(rng, 2, 3), "max_length": number(9), "num_beams": number(2)}
    feeds |= {"num_return_sequences": number(1)}
    beam = ("BeamSearch", feeds, ["sequences"], BEAMS)
    shared = gpt(1)
    shared.input.append(value("past_sequence_length", I32, 1))
    refused("share memory", *beam, decoder=shared)
    refused("have 3 and 2 outputs", *beam, decoder=gpt(1), init_decoder=gpt(9, "init", layers=1))
    refused("n-grams of 99", *beam, decoder=gpt(1), no_repeat_ngram_size=99)
    refused("has rank 3", "BeamSearch", feeds | {"input_ids": np.ones((1, 2, 3), np.int32)}, *beam[2:], decoder=gpt(1))
    refused("'model_type' is 7", *beam, decoder=gpt(1), model_type=7)
    refused("'encoder' is left out", *beam, decoder=gpt(1), model_type=1)
    refused("not those of T5", *beam, model_type=1, **(encoder_decoder(1, True, []) | {"decoder": gpt(1)}))
    refused("'decoder_start_token_id' is -1", *beam, model_type=1, **encoder_decoder(1, True, []))
    feeds = {"input_ids": feeds["input_ids"], "max_length": number(9)}
    masked = feeds | {"presence_mask": np.ones((2, WORDS), np.int32)}
    refused("'presence_penalty'", "Sampling", masked, ["sequences"], SAMPLING, decoder=gpt(1), presence_penalty=1.0)
    refused("'model_type' is 1", "GreedySearch", feeds, ["sequences"], GREEDY, decoder=gpt(1), model_type=1)
    feeds |= {"input_ids": np.zeros((1, 7, 4), np.float32), "num_beams": number(2), "num_return_sequences": number(1)}
    whisper = ("WhisperBeamSearch", feeds)
    outputs = ["sequences", "a", "b", "cross_qk"]
    refused("'cross_qk' is not supported", *whisper, outputs, WHISPER, **encoder_decoder(1, True, [], 7))


def test_a_prompt_that_is_too_long():
    feeds = {"input_ids": np.full((2, 5), 7, np.int32), "max_length": number(4)}
    session = sdx.InferenceSession(model("GreedySearch", feeds, ["sequences"], GREEDY, decoder=gpt(1)))
    with pytest.raises((RuntimeError, ValueError)):
        session.run(None, feeds)
