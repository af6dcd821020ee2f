"""Strings and the numbers that stand for words."""

from .schema import F32, Contrib

_IDS = {"T": ["int64"]}

OPS = [
    Contrib(
        "MurmurHash3",
        "A hash of 32 bits of the bytes of each element.",
        types={
            "T1": ["uint32", "int32", "uint64", "int64", "float", "double", "string"],
            "T2": ["uint32", "int32"],
        },
        inputs="X: T1",
        outputs="Y: T2",
        attributes="seed: int = 0, positive: int = 1",
        infer="inferMurmurHash3",
    ),
    Contrib(
        "Tokenizer",
        "The parts of each string that expressions match, or that lie between matches.",
        types={"T": ["string"]},
        inputs="X: T",
        outputs="Y: T",
        attributes="mark: int, pad_value: string, separators?: strings, tokenexp?: string, mincharnum: int",
        infer="inferTokenizer",
    ),
    Contrib(
        "NGramRepeatBlock",
        "Scores with -inf for tokens that would repeat an n-gram of their row.",
        types={"Tid": ["int64"], "T": F32},
        inputs="input_ids: Tid, scores: T",
        outputs="scores_out: T",
        attributes="ngram_size: int",
        builder="buildNGramRepeatBlock",
    ),
    Contrib(
        "BifurcationDetector",
        "The tokens with those predicted that agree with the source, and where their end is found in it.",
        types=_IDS,
        inputs="src_tokens: T, cur_tokens: T, prev_suffix_match_idx: T, pred_tokens?: T",
        outputs="tokens: T, suffix_match_idx: T",
        attributes="min_ngram_size: int = 1, max_ngram_size: int = 3",
        infer="inferBifurcationDetector",
    ),
]
