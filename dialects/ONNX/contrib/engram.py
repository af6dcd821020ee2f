"""Engram: look-ups by hashes of the last tokens, and their gates."""

from .schema import HALVES, Contrib

_IDS = {"M": ["int32", "int64"]}

OPS = [
    Contrib(
        "EngramGate",
        "What was looked up, times a gate for each of the residual streams.",
        types={"T": HALVES + ["bfloat16"]},
        inputs="key: T, query: T, value: T, key_norm_scale: T, query_norm_scale: T, conv_norm_scale?: T",
        outputs="output: T, gated_value_normed?: T",
        attributes="epsilon: float = 1e-5",
        builder="buildEngramGate",
    ),
    Contrib(
        "NGramHashMapping",
        "Several hashes of the n-grams that end at each token.",
        types=_IDS,
        inputs="input_ids: M, multipliers: M, vocab_sizes: M, past_ids?: M, head_offsets?: M, eos_token_id?: M, "
        "segment_ids?: int32",
        outputs="hash_ids: M, present_ids?: M",
        attributes="max_ngram_size: int, n_head_per_ngram: int, pad_id: int, reset_on_eos: int = 0",
        builder="buildNGramHashMapping",
    ),
]
