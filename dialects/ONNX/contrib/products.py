"""Matrix products and convolutions, with what exporters fuse into them."""

from .schema import FLOATS, I32, SHORT_FLOATS, Contrib

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
]
