"""Searches for likely texts by models that they hold."""

from .schema import F32, HALVES, I32, Contrib

_GRAPHS = "decoder: graph, init_decoder?: graph, encoder?: graph"
_IDS = "eos_token_id: int, pad_token_id: int, decoder_start_token_id: int = -1"
_FORM = "model_type: int = 0, vocab_size: int = -1, no_repeat_ngram_size: int = 0"

OPS = [
    Contrib(
        "GreedySearch",
        "Continues prompts, each time by the likeliest token.",
        types={"T": F32, "I": I32},
        inputs="input_ids: I, max_length: I, min_length?: I, repetition_penalty?: T, vocab_mask?: I, "
        "prefix_vocab_mask?: I, attention_mask?: I",
        outputs="sequences: I",
        attributes=f"{_GRAPHS}, {_IDS}, {_FORM}",
        builder="buildGreedySearch",
        infer="inferGreedySearch",
    ),
    Contrib(
        "Sampling",
        "Continues prompts, each time by a token that is drawn from the likely ones.",
        types={"T": F32, "I": I32},
        inputs="input_ids: I, max_length: I, min_length?: I, repetition_penalty?: T, vocab_mask?: I, "
        "prefix_vocab_mask?: I, attention_mask?: I, presence_mask?: I, seed?: I",
        outputs="sequences: I, filtered_logits?: T",
        attributes=f"{_GRAPHS}, {_IDS}, {_FORM}, temperature: float = 1, top_p: float = 0, "
        "filter_value: float = -1e20, min_tokens_to_keep: int = 0, presence_penalty: float = 0, custom: int = 0",
        builder="buildSampling",
        infer="inferGreedySearch",
    ),
    Contrib(
        "BeamSearch",
        "Finds the likeliest continuations of prompts among as many as there are beams.",
        types={"T": HALVES, "F": ["float", "int32", "float16"], "I": I32, "M": I32},
        inputs="input_ids: F, max_length: I, min_length?: I, num_beams: I, num_return_sequences: I, "
        "length_penalty?: T, repetition_penalty?: T, vocab_mask?: M, prefix_vocab_mask?: M, attention_mask?: I, "
        "decoder_input_ids?: I, logits_processor?: I",
        outputs="sequences: I, sequences_scores?: T, scores?: T",
        attributes=f"{_GRAPHS}, {_IDS}, {_FORM}, early_stopping: int = 0",
        builder="buildBeamSearch",
        infer="inferBeamSearch",
    ),
    Contrib(
        "WhisperBeamSearch",
        "BeamSearch by a model of Whisper's form.",
        types={"T": HALVES, "F": ["float", "int32", "float16"], "I": I32, "M": I32, "V": F32},
        inputs="input_ids: F, max_length: I, min_length?: I, num_beams: I, num_return_sequences: I, "
        "length_penalty?: T, repetition_penalty?: T, vocab_mask?: M, prefix_vocab_mask?: M, attention_mask?: I, "
        "decoder_input_ids?: I, logits_processor?: I, cross_qk_layer_head?: I, extra_decoding_ids?: I, temperature?: T",
        outputs="sequences: I, sequences_scores?: T, scores?: T, cross_qk?: V, non_speech_probs?: T",
        attributes=f"{_GRAPHS}, {_IDS}, model_type: int = 2, vocab_size: int = -1, no_repeat_ngram_size: int = 0, "
        "early_stopping: int = 0, translate_token_id?: int, transcribe_token_id?: int, start_of_lm_token_id?: int, "
        "no_speech_token_id?: int, no_timestamps_token_id?: int, beginning_timestamp_token_id?: int, "
        "decoder_output_cross_qk?: int",
        builder="buildWhisperBeamSearch",
        infer="inferBeamSearch",
    ),
]
