"""Matrix products and convolutions, with what exporters fuse into them."""

from .schema import FLOATS, HALVES, I32, SHORT_FLOATS, Contrib

_MATMUL = dict(types={"T": FLOATS}, inputs="A: T, B: T", outputs="Y: T", builder="buildFusedMatMul")
_ACTIVATION = (
    "activation_alpha?: float, activation_beta?: float, activation_gamma?: float"
)

OPS = [
    Contrib(
        "FusedMatMul",
        "MatMul of transposed operands, times alpha. transBatchA moves the first "
        "axis of A behind the batch axes.",
        attributes="alpha: float = 1.0, transA: int = 0, transB: int = 0, "
        "transBatchA: int = 0, transBatchB: int = 0",
        **_MATMUL,
    ),
    Contrib(
        "TransposeMatMul",
        "An older name of FusedMatMul.",
        attributes="alpha: float = 1.0, transA: int = 0, transB: int = 0",
        **_MATMUL,
    ),
    Contrib(
        "FusedGemm",
        "Gemm and an activation.",
        types={
            "T": ["float", "float16", "double", "int32", "int64", "uint32", "uint64"]
        },
        inputs="A: T, B: T, C?: T",
        outputs="Y: T",
        attributes="alpha: float = 1.0, beta: float = 1.0, transA: int = 0, "
        "transB: int = 0, activation?: string, " + _ACTIVATION,
        builder="buildFusedGemm",
    ),
    Contrib(
        "FusedConv",
        "Conv, plus Z, and an activation.",
        types={"T": ["float", "float16", "double"]},
        inputs="X: T, W: T, B?: T, Z?: T",
        outputs="Y: T",
        attributes="auto_pad: string = NOTSET, kernel_shape?: ints, dilations?: ints, "
        "strides?: ints, pads?: ints, group: int = 1, activation?: string, "
        "activation_params?: floats",
        builder="buildFusedConv",
    ),
    Contrib(
        "NhwcFusedConv",
        "FusedConv of tensors [N, ..., C].",
        types={"T": HALVES},
        inputs="X: T, W: T, B?: T, Z?: T",
        outputs="Y: T",
        attributes="auto_pad: string = NOTSET, kernel_shape?: ints, dilations?: ints, "
        "strides?: ints, pads?: ints, group: int = 1, activation?: string, "
        "activation_params?: floats",
        builder="buildFusedConv",
    ),
    Contrib(
        "MatMulNBits",
        "MatMul of A and a matrix [N, K] that is quantized in blocks along K: "
        "integers of `bits` bits lie packed in bytes, the lowest bits first.",
        types={"T1": SHORT_FLOATS, "T2": ["uint8"], "T3": SHORT_FLOATS + ["uint8"], "T4": I32},
        inputs="A: T1, B: T2, scales: T1, zero_points?: T3, g_idx?: T4, bias?: T1",
        outputs="Y: T1",
        attributes="K: int, N: int, bits: int = 4, block_size: int, "
        "accuracy_level: int = 0, weight_prepacked: int = 0",
        builder="buildMatMulNBits",
    ),
    Contrib(
        "MatMulBnb4",
        "MatMul of A and a matrix [N, K] of 4 bits a number, FP4 (0) or NF4 (1), whose "
        "elements, row after row, are quantized in blocks.",
        types={"T1": SHORT_FLOATS, "T2": ["uint8"]},
        inputs="A: T1, B: T2, absmax: T1",
        outputs="Y: T1",
        attributes="K: int, N: int, block_size: int, quant_type: int, "
        "training_mode: int = 0, transB: int = 1",
        builder="buildMatMulBnb4",
    ),
    Contrib(
        "MoE",
        "A mixture of experts: of each row the k experts that the router likes best.",
        types={"T": SHORT_FLOATS},
        inputs="input: T, router_probs: T, fc1_experts_weights: T, fc1_experts_bias?: T, "
        "fc2_experts_weights: T, fc2_experts_bias?: T, fc3_experts_weights?: T, "
        "fc3_experts_bias?: T",
        outputs="output: T",
        attributes="activation_type: string = relu, k: int = 1, "
        "normalize_routing_weights: int = 0, use_sparse_mixer: int = 0, "
        "activation_alpha: float = 1.0, activation_beta: float = 0.0, "
        "swiglu_fusion: int = 0, swiglu_limit?: float",
        builder="buildMoE",
    ),
    Contrib(
        "QMoE",
        "MoE of weights of 2, 4 or 8 bits, packed along their last axis, the lowest bits "
        "first: quantized by row, or by blocks of one. The router's k best share by the "
        "softmax of these alone.",
        types={
            "T": SHORT_FLOATS,
            "T1": ["uint8", "float8e4m3fn"],
            "T2": SHORT_FLOATS + ["float8e8m0", "float8e4m3fn"],
            "T4": ["float"],
        },
        inputs="input: T, router_probs: T, fc1_experts_weights: T1, fc1_scales?: T2, "
        "fc1_experts_bias?: T, fc2_experts_weights: T1, fc2_scales?: T2, "
        "fc2_experts_bias?: T, fc3_experts_weights?: T1, fc3_scales?: T2, "
        "fc3_experts_bias?: T, fc1_zero_points?: T1, fc2_zero_points?: T1, "
        "fc3_zero_points?: T1, router_weights?: T, fc1_global_scale?: T4, "
        "fc2_global_scale?: T4, fc1_act_scale?: T4, fc2_act_scale?: T4, "
        "fc1_act_block_scale?: T2, fc2_act_block_scale?: T2",
        outputs="output: T",
        attributes="activation_type: string = relu, k: int = 1, "
        "normalize_routing_weights: int = 0, use_sparse_mixer: int = 0, "
        "activation_alpha: float = 1.0, activation_beta: float = 0.0, "
        "swiglu_fusion: int = 0, swiglu_limit?: float, expert_weight_bits: int = 4, "
        "fc1_expert_weight_bits?: int, fc2_expert_weight_bits?: int, "
        "fc3_expert_weight_bits?: int, block_size: int = 0, quant_type: string = int, "
        "accuracy_level: int = 0, weights_prepacked: int = -1",
        builder="buildQMoE",
    ),
]
