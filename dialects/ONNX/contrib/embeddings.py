"""Look-ups of tables, and rotations by position."""

from .schema import BYTES, F32, HALVES, I32, SHORT_FLOATS, Contrib

OPS = [
    Contrib(
        "EmbedLayerNormalization",
        "LayerNormalization of the sum of the embeddings of words, positions and "
        "segments.",
        types={"T1": I32, "T": HALVES},
        inputs="input_ids: T1, segment_ids?: T1, word_embedding: T, position_embedding: T, "
        "segment_embedding?: T, gamma: T, beta: T, mask?: T1, position_ids?: T1",
        outputs="output: T, mask_index?: T1, embedding_sum?: T",
        attributes="epsilon: float = 1e-12, mask_index_type?: int",
        builder="buildEmbedLayerNormalization",
    ),
    Contrib(
        "QEmbedLayerNormalization",
        "EmbedLayerNormalization of quantized tables.",
        types={"T1": I32, "T2": BYTES, "T": F32},
        inputs="input_ids: T1, segment_ids?: T1, word_embedding_quant: T2, "
        "position_embedding_quant: T2, segment_embedding?: T2, gamma_quant: T2, "
        "beta_quant: T2, mask?: T1, word_embedding_scale: T, position_embedding_scale: T, "
        "segment_embedding_scale?: T, gamma_scale: T, beta_scale: T, "
        "word_embedding_zero_point: T2, position_embedding_zero_point: T2, "
        "segment_embedding_zero_point?: T2, gamma_zero_point: T2, beta_zero_point: T2",
        outputs="layernorm_out: T, mask_index_out: T1",
        attributes="epsilon: float = 1e-12",
        builder="buildQEmbedLayerNormalization",
    ),
    Contrib(
        "RotaryEmbedding",
        "Rotates the heads of the input by the angles of their positions.",
        types={"T": SHORT_FLOATS, "M": ["int64"]},
        inputs="input: T, position_ids: M, cos_cache: T, sin_cache: T",
        outputs="output: T",
        attributes="scale?: float, interleaved?: int, num_heads?: int, "
        "rotary_embedding_dim?: int, is_packed_batching?: int",
        builder="buildRotaryEmbedding",
    ),
    Contrib(
        "GatherBlockQuantized",
        "Gather of data that is quantized in blocks along one axis.",
        types={
            "T1": ["int4", "uint4", "uint8"],
            "T2": SHORT_FLOATS,
            "Tind": ["int32", "int64"],
        },
        inputs="data: T1, indices: Tind, scales: T2, zero_points?: T1",
        outputs="output: T2",
        attributes="gather_axis: int = 0, quantize_axis: int = 1, block_size: int = 128, "
        "bits: int = 4",
        builder="buildGatherBlockQuantized",
    ),
    Contrib(
        "MRotaryEmbedding",
        "RotaryEmbedding by three streams of positions, each for a part of the angles.",
        types={"T": SHORT_FLOATS, "M": ["int64"]},
        inputs="input: T, position_ids: M, cos_cache: T, sin_cache: T",
        outputs="output: T",
        attributes="mrope_section: ints, mrope_layout?: int, scale?: float, interleaved?: int, num_heads?: int, "
        "rotary_embedding_dim?: int, is_packed_batching?: int",
        builder="buildMRotaryEmbedding",
    ),
]
