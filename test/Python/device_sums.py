"""What tests share of products on a device before kernels that reduce their rows: models, and numpy in f64."""

import numpy as np
from device_models import run_and_count
from onnx import numpy_helper, parser

EPSILON = 1e-5
TOLERANCE = {"f32": 1e-5, "tf32": 4e-3, "f16": 4e-3, "bf16": 3e-2}


def normalize(x, gamma, beta):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, -1, keepdims=True) + EPSILON) * gamma + beta


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run_rows(random, rows, depth, columns, text, results, precision, runs=1):
    """The results of each run, all operands in f64, and the number of kernels, of a graph of x [rows,depth], w, b, r, gamma and
    beta."""
    weights = {
        "w": random.standard_normal((depth, columns)) / np.sqrt(depth),
        "b": random.standard_normal(columns),
        "gamma": random.uniform(0.5, 2, columns),
        "beta": random.standard_normal(columns),
    }
    weights = {name: array.astype("f4") for name, array in weights.items()}
    outputs = ", ".join(f"float[{rows},{columns}] {name}" for name in results)
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m (float[{rows},{depth}] x, float[{rows},{columns}] r) => ({outputs}) {{ {text} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    feeds = {"x": random.standard_normal((rows, depth)).astype("f4"), "r": random.standard_normal((rows, columns)).astype("f4")}
    given, use = run_and_count(model, [feeds] * runs, precision=precision)
    exact = {name: array.astype(np.float64) for name, array in {**feeds, **weights}.items()}
    return given, exact, use["kernels"]


def compare(given, expected, precision):
    np.testing.assert_allclose(given, expected, rtol=0, atol=TOLERANCE[precision] * np.abs(expected).max())
