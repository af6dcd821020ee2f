"""Kernels write no byte beyond a result, whatever its rows are long."""

import numpy as np
import onnx
import pytest
import sardonyx

GUARD = 64
QUANTIZED = "f = Softmax <axis = -1> (x) y = QuantizeLinear (f, c, d)"
KINDS = {
    "int8": (QUANTIZED, "float c = {0.0039}, int8 d = {-128}"),
    "uint8": (QUANTIZED, "float c = {0.0039}, uint8 d = {0}"),
    "int16": ("y = Cast <to = 5> (x)", "float c = {0}"),
    "bool": ("z = Cast <to = 9> (x) y = Not (z)", "float c = {0}"),
    "float16": ("s = Softmax (x) y = Cast <to = 10> (s)", "float c = {0}"),
    "int32": ("y = Cast <to = 6> (x)", "float c = {0}"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
def test_nothing_is_written_behind_a_result(kind, cpu):
    body, constants = KINDS[kind]
    dtype = np.dtype(kind)
    for width in (1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 49, 65):
        text = f'<ir_version: 10, opset_import: ["" : 22]> g (float[3,{width}] x) => ({kind}[3,{width}] y) <{constants}> {{ {body} }}'
        options = sardonyx.SessionOptions()
        options.cache, options.intra_op_num_threads = False, 1
        if cpu:
            options.cpu = cpu
        session = sardonyx.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)
        x = np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
        memory = np.full(3 * width * dtype.itemsize + GUARD, 77, np.uint8)
        result = memory[: 3 * width * dtype.itemsize].view(dtype).reshape(3, width)
        session.run(None, {"x": x}, out={"y": result})
        assert (memory[-GUARD:] == 77).all(), width
        np.testing.assert_array_equal(result, session.run(None, {"x": x})[0])
