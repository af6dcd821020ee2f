"""Residual streams of several branches: a tensor has its branches as the axis before
the last, or side by side in the last."""

from .schema import SHORT_FLOATS, Contrib

_TYPES = {"T": SHORT_FLOATS, "M": SHORT_FLOATS}

OPS = [
    Contrib(
        "BranchwiseRMSNorm",
        "Each branch by the root of the mean of its squares.",
        types=_TYPES,
        inputs="X: T, scale?: M",
        outputs="Y: T",
        attributes="num_branches: int = 0, epsilon: float = 1e-5",
        builder="buildBranchwiseRMSNorm",
    ),
    Contrib(
        "HyperConnectionPreMix",
        "The sum of all branches, each times its gate.",
        types=_TYPES,
        inputs="streams: T, pre_mix: M",
        outputs="output: T",
        attributes="num_branches: int = 0, reduction_scale: float = 1",
        builder="buildHyperConnectionPreMix",
    ),
    Contrib(
        "HyperConnectionPostMix",
        "Branches mixed by a matrix, plus what is new times the gate of each.",
        types=_TYPES,
        inputs="streams: T, block_output: T, post_mix: M, stream_mix?: M",
        outputs="output: T",
        attributes="num_branches: int = 0",
        builder="buildHyperConnectionPostMix",
    ),
    Contrib(
        "ScaledSiLU",
        "The scaled X times its logistic function.",
        types=_TYPES,
        inputs="X: T, scale?: M",
        outputs="Y: T",
        attributes="alpha: float = 1",
        builder="buildScaledSiLU",
    ),
]
