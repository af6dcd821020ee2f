"""Attention as exporters fuse it."""

from .schema import HALVES, I32, SHORT_FLOATS, BYTES, Contrib

_T = {"T": SHORT_FLOATS, "M": I32}
_CACHES = SHORT_FLOATS + ["int8", "uint8", "float8e4m3fn"]

OPS = [
    Contrib(
        "Attention",
        "Self-attention, with the projections of queries, keys and values in it.",
        types=_T,
        inputs="input: T, weights: T, bias?: T, mask_index?: M, past?: T, "
        "attention_bias?: T, past_sequence_length?: M",
        outputs="output: T, present?: T",
        attributes="num_heads: int, qkv_hidden_sizes?: ints, unidirectional: int = 0, "
        "scale?: float, mask_filter_value?: float, do_rotary?: int, "
        "rotary_embedding_dim?: int, past_present_share_buffer?: int",
        builder="buildAttention",
    ),
    Contrib(
        "MultiHeadAttention",
        "Attention of queries, keys and values that are projected already, apart or "
        "packed.",
        types=dict(_T, QK=SHORT_FLOATS),
        inputs="query: T, key?: T, value?: T, bias?: T, key_padding_mask?: M, "
        "attention_bias?: T, past_key?: T, past_value?: T, past_sequence_length?: M, "
        "cache_indirection?: M",
        outputs="output: T, present_key?: T, present_value?: T, qk?: QK",
        attributes="num_heads: int, unidirectional: int = 0, scale?: float, "
        "mask_filter_value?: float",
        builder="buildMultiHeadAttention",
    ),
    Contrib(
        "DecoderMaskedMultiHeadAttention",
        "MultiHeadAttention of one token, whose keys and values go to a cache, or of the "
        "keys and values of an encoder.",
        types={"T": HALVES, "QK": HALVES, "M": I32},
        inputs="query: T, key?: T, value?: T, mask_index?: M, attention_bias?: T, "
        "past_key?: T, past_value?: T, past_sequence_length?: M, beam_width?: M, "
        "cache_indirection?: M, bias?: T",
        outputs="output: T, present_key?: T, present_value?: T, qk?: QK",
        attributes="num_heads: int, scale?: float, mask_filter_value?: float, "
        "past_present_share_buffer?: int, output_qk?: int",
        builder="buildDecoderMaskedMultiHeadAttention",
    ),
    Contrib(
        "GroupQueryAttention",
        "Causal attention in which several heads share their keys and values, with a "
        "cache of these and rotary embeddings.",
        types=dict(_T, T_CACHE=_CACHES, T_KV_SCALE=["float"]),
        inputs="query: T, key?: T, value?: T, past_key?: T_CACHE, past_value?: T_CACHE, "
        "seqlens_k: M, total_sequence_length: M, cos_cache?: T, sin_cache?: T, "
        "position_ids?: int64, attention_bias?: T, head_sink?: T, k_scale?: T_KV_SCALE, "
        "v_scale?: T_KV_SCALE, q_norm_weight?: T, k_norm_weight?: T",
        outputs="output: T, present_key?: T_CACHE, present_value?: T_CACHE, output_qk?: T",
        attributes="num_heads: int, kv_num_heads: int, causal: int = 1, scale?: float, "
        "softcap?: float, local_window_size: int = -1, do_rotary?: int, "
        "rotary_interleaved?: int, smooth_softmax: int = -1, qk_output: int = 0, "
        "k_quant_type: string = NONE, v_quant_type: string = NONE, "
        "kv_cache_bit_width?: int, sliding_window_cache: int = 0, "
        "qk_norm_epsilon: float = 1e-6",
        builder="buildGroupQueryAttention",
    ),
    Contrib(
        "SparseAttention",
        "GroupQueryAttention to those blocks of keys that a layout names for each block "
        "of queries, in the form of compressed sparse rows.",
        types=_T,
        inputs="query: T, key?: T, value?: T, past_key: T, past_value: T, "
        "block_row_indices: M, block_col_indices: M, total_sequence_length: M, "
        "key_total_sequence_lengths: M, cos_cache?: T, sin_cache?: T",
        outputs="output: T, present_key: T, present_value: T",
        attributes="num_heads: int, kv_num_heads: int, sparse_block_size: int, "
        "scale?: float, do_rotary: int = 0, rotary_interleaved: int = 0",
        builder="buildSparseAttention",
    ),
    Contrib(
        "QAttention",
        "Attention of a quantized input and quantized weights.",
        types={"T1": BYTES, "T2": BYTES, "T3": HALVES, "T4": I32},
        inputs="input: T1, weight: T2, bias: T3, input_scale: T3, weight_scale: T3, "
        "mask_index?: T4, input_zero_point?: T1, weight_zero_point?: T2, past?: T3",
        outputs="output: T3, present?: T3",
        attributes="num_heads: int, unidirectional: int = 0, scale?: float, "
        "mask_filter_value?: float, do_rotary?: int, past_present_share_buffer?: int",
        builder="buildQAttention",
    ),
]
