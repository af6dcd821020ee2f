"""Layer normalisations, with what exporters fuse into them."""

from .schema import FLOATS, F32, SHORT_FLOATS, Contrib

_SKIP = dict(
    types={"T": SHORT_FLOATS, "U": F32},
    outputs="output: T, mean?: U, inv_std_var?: U, input_skip_bias_sum?: T",
    attributes="epsilon: float = 1e-12",
    builder="buildSkipLayerNormalization",
)

OPS = [
    # Exporters write it into ONNX's own domain, which has no such op.
    Contrib(
        "SimplifiedLayerNormalization",
        "X divided by its root mean square over the axes from `axis` on, times scale.",
        domain="",
        types={"T": FLOATS, "U": ["float", "double"], "V": FLOATS},
        inputs="X: T, scale: V",
        outputs="Y: V, inv_std_var?: U",
        attributes="axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1",
        builder="buildSimplifiedLayerNormalization",
    ),
    Contrib(
        "SkipLayerNormalization",
        "LayerNormalization, over the last axis, of input plus skip plus bias.",
        inputs="input: T, skip: T, gamma: T, beta?: T, bias?: T",
        **_SKIP,
    ),
    Contrib(
        "SkipSimplifiedLayerNormalization",
        "RMSNormalization, over the last axis, of input plus skip plus bias.",
        inputs="input: T, skip: T, gamma: T, bias?: T",
        **_SKIP,
    ),
]
