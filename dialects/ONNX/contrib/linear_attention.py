"""Attention by a state of fixed size, and what stands around it."""

from .schema import F32, SHORT_FLOATS, Contrib

_T = {"T": SHORT_FLOATS}

OPS = [
    Contrib(
        "LinearAttention",
        "ONNX's LinearAttention, whose queries, or keys, may have fewer heads than there "
        "are states.",
        types=dict(_T, S=SHORT_FLOATS),
        inputs="query: T, key: T, value: T, past_state?: S, decay?: T, beta?: T",
        outputs="output: T, present_state: S",
        attributes="q_num_heads: int, kv_num_heads: int, update_rule: string = gated_delta, "
        "scale: float = 0.0, chunk_size: int = 64, state_window: int = 0",
        builder="buildLinearAttention",
    ),
    Contrib(
        "LinearAttentionGate",
        "Decays and update rates for LinearAttention, of their projections.",
        types=dict(_T, TF=F32),
        inputs="a: T, dt_bias: TF, decay_scale: TF, b?: T",
        outputs="decay: T, beta?: T",
        builder="buildLinearAttentionGate",
    ),
    Contrib(
        "CausalConvWithState",
        "A convolution of each channel with the steps up to its own, the first of which "
        "come from a state.",
        types=_T,
        inputs="input: T, weight: T, bias?: T, past_state?: T",
        outputs="output: T, present_state: T",
        attributes="activation: string = none, ndim: int = 1, dilation: int = 1, "
        "channels_last: int = 0, state_window: int = 0",
        builder="buildCausalConvWithState",
    ),
    Contrib(
        "GatedAdd",
        "X plus Y times a gate for each row.",
        types=_T,
        inputs="X: T, Y: T, gate: T",
        outputs="output: T",
        body="S = Mul (Y, gate)  output = Add (X, S)",
    ),
    Contrib(
        "GatedRMSNorm",
        "RMSNormalization of parts of the last axis that are as long as scale, times an "
        "activation of a gate.",
        types=_T,
        inputs="X: T, scale: T, gate: T",
        outputs="Y: T",
        attributes="activation: string = silu, epsilon: float = 1e-5",
        builder="buildGatedRMSNorm",
    ),
]
