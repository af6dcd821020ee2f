"""Models that several files build."""

import numpy as np
from onnx import numpy_helper, parser


def network():
    """Weights that are folded and packed: a convolution, a batch norm, a product."""
    rng = np.random.default_rng(0)
    model = parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> m (float[n, 8, 12, 12] x) => (float[n, 10] y)
        <float[32, 8, 3, 3] w, float[32] s, float[32] b, float[32] m1, float[32] v, float[32, 10] p> {
        c = Conv <pads = [1, 1, 1, 1]> (x, w)
        d = BatchNormalization (c, s, b, m1, v)
        r = Relu (d)
        g = GlobalAveragePool (r)
        f = Flatten (g)
        y = MatMul (f, p)
    }""")
    for value, shape in {"w": (32, 8, 3, 3), "s": 32, "b": 32, "m1": 32, "v": 32, "p": (32, 10)}.items():
        array = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, value))
    return model
