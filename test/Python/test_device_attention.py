"""Attention on a CUDA device, which libsdx-fakecuda.so stands for, as one kernel, against its definition in f64."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from device_attention import RANDOM, TYPES, check, floats
from references import attention

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))


def run(text, inputs, folder, opset=21, weights={}):
    """The outputs that the tool gives for a model on the device, and the names of its kernels."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n' + text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, folder / "model.onnx")
    tool = BUILD / "bin" / "sardonyx"
    code = subprocess.run([tool, "compile", folder / "model.onnx", "--device", "sm_80", "--to", "ptx"], capture_output=True, text=True, check=True).stdout
    kernels = [line.split()[2].split("(")[0] for line in code.splitlines() if line.startswith(".visible .entry")]
    command = [tool, "run", folder / "model.onnx", "--device", "cuda", "-q", "--no-cache", "-o", folder]
    for name, array in inputs.items():
        np.save(folder / f"in_{name}.npy", array)
        command += ["-i", f"{name}={folder / f'in_{name}.npy'}"]
    driver = str(BUILD / "lib" / "libsdx-fakecuda.so")
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SARDONYX_CUDA_DRIVER": driver})
    assert done.returncode == 0, done.stderr
    return [np.load(folder / f"{output.name}.npy") for output in model.graph.output], kernels


def is_one_kernel(kernels):
    return sum("attention" in name and not name.endswith("_sums") for name in kernels) == 1 and not any("matmul" in name for name in kernels)


def heads(x, number):
    return x.reshape(*x.shape[:2], number, -1).swapaxes(1, 2)


# Heads lie beside each other in rows of the operands, as exporters of encoders have it: the transposes are part of the kernel.
@pytest.mark.parametrize("type", ["float", "float16", "bfloat16"])
@pytest.mark.parametrize("depth", [32, 64, 80, 128, 33, 256])
def test_an_encoder(type, depth, tmp_path):
    batch, size, number = 2, 37, 2
    x = {name: floats(type, batch, size, number * depth) for name in "qkv"}
    mask = np.where(RANDOM.random((batch, 1, 1, size)) < 0.3, -1e4, 0).astype(TYPES.get(type, np.float32))
    memory = "float16" if type == "float16" else "float"
    casts = "".join(f"{name}0 = Cast <to = {onnx.TensorProto.DataType.Value(type.upper())}> ({name})\n" for name in ("q", "k", "v", "mask", "d"))
    text = f"""g ({memory}[b, s, {number * depth}] q, {memory}[b, s, {number * depth}] k, {memory}[b, s, {number * depth}] v, {memory}[b, 1, 1, s] mask)
        => ({memory}[b, s, {number * depth}] y) <float d = {{{depth ** 0.5}}}, int64[4] split = {{0, 0, {number}, {depth}}}, int64[3] join = {{0, 0, {number * depth}}}> {{
        {casts}
        q1 = Reshape(q0, split)
        k1 = Reshape(k0, split)
        v1 = Reshape(v0, split)
        q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
        k2 = Transpose <perm = [0, 2, 3, 1]> (k1)
        v2 = Transpose <perm = [0, 2, 1, 3]> (v1)
        s = MatMul(q2, k2)
        t = Div(s, d0)
        u = Add(t, mask0)
        p = Softmax <axis = -1> (u)
        o = MatMul(p, v2)
        z = Transpose <perm = [0, 2, 1, 3]> (o)
        w = Reshape(z, join)
        y = Cast <to = {onnx.TensorProto.DataType.Value(memory.upper())}> (w)
    }}"""
    (y,), kernels = run(text, {**x, "mask": mask}, tmp_path)
    assert is_one_kernel(kernels) and not any("transpose" in name for name in kernels)
    expected = attention(*(heads(x[name], number) for name in "qkv"), depth**-0.5, lambda s: s + mask)
    check(y, expected.swapaxes(1, 2).reshape(y.shape), type)


# Heads of queries share keys, which the model repeats; the kernel does not. Few queries: blocks share the keys.
@pytest.mark.parametrize("type", ["float", "float16"])
@pytest.mark.parametrize("queries, keys", [(1, 400), (3, 130), (70, 70), (16, 1)])
def test_a_decoder(type, queries, keys, tmp_path):
    batch, number, shared, depth = 2, 8, 2, 64
    q = floats(type, batch, number, queries, depth)
    k, v = floats(type, batch, shared, keys, depth), floats(type, batch, shared, keys, depth)
    mask = np.triu(np.full((batch, 1, queries, keys), -np.inf), keys - queries + 1).astype(TYPES[type])
    text = f"""g ({type}[{batch}, {number}, {queries}, {depth}] q, {type}[{batch}, {shared}, {keys}, {depth}] k, {type}[{batch}, {shared}, {keys}, {depth}] v,
        {type}[{batch}, 1, {queries}, {keys}] mask) => ({type}[{batch}, {queries}, {number}, {depth}] y)
        <float scale = {{0.125}}, int64[1] at = {{2}}, int64[5] wide = {{{batch}, {shared}, {number // shared}, {keys}, {depth}}}, int64[4] shape = {{{batch}, {number}, {keys}, {depth}}}> {{
        k1 = Unsqueeze(k, at)
        k2 = Expand(k1, wide)
        k3 = Reshape(k2, shape)
        v1 = Unsqueeze(v, at)
        v2 = Expand(v1, wide)
        v3 = Reshape(v2, shape)
        k4 = Transpose <perm = [0, 1, 3, 2]> (k3)
        s = MatMul(q, k4)
        f = CastLike(scale, q)
        t = Mul(s, f)
        u = Add(t, mask)
        c = Cast <to = 1> (u)
        p = Softmax <axis = -1> (c)
        p1 = CastLike(p, q)
        o = MatMul(p1, v3)
        y = Transpose <perm = [0, 2, 1, 3]> (o)
    }}"""
    (y,), kernels = run(text, {"q": q, "k": k, "v": v, "mask": mask}, tmp_path)
    assert keys == 1 or is_one_kernel(kernels)
    assert any(name.endswith("_sums") for name in kernels) == (keys >= 384)
    check(y, attention(q, k, v, 0.125, lambda s: s + mask).swapaxes(1, 2), type)


# The operator with a cache of keys and values and open sizes: which keys a query may see follows from indices.
@pytest.mark.parametrize("type", ["float", "float16"])
@pytest.mark.parametrize("queries, past", [(1, 0), (1, 420), (9, 5), (100, 30), (5, 0)])
def test_the_operator_with_a_cache(type, queries, past, tmp_path):
    number, shared, depth, columns = 4, 2, 64, 48
    q = floats(type, 1, number, queries, depth)
    k, v = floats(type, 1, shared, queries, depth), floats(type, 1, shared, queries, columns)
    old_k, old_v = floats(type, 1, shared, past, depth), floats(type, 1, shared, past, columns)
    text = f"""g ({type}[1, {number}, m, {depth}] q, {type}[1, {shared}, m, {depth}] k, {type}[1, {shared}, m, {columns}] v,
        {type}[1, {shared}, p, {depth}] a, {type}[1, {shared}, p, {columns}] b)
        => ({type}[1, {number}, m, {columns}] y, {type}[1, {shared}, n, {depth}] c, {type}[1, {shared}, n, {columns}] d) {{
        y, c, d = Attention <is_causal = 1> (q, k, v, , a, b)
    }}"""
    (y, c, d), kernels = run(text, {"q": q, "k": k, "v": v, "a": old_k, "b": old_v}, tmp_path, opset=23)
    assert is_one_kernel(kernels)
    np.testing.assert_array_equal(c, np.concatenate([old_k, k], axis=2))
    np.testing.assert_array_equal(d, np.concatenate([old_v, v], axis=2))
    future = np.triu(np.ones((queries, queries + past), bool), past + 1)
    check(y, attention(q, c, d, depth**-0.5, lambda s: np.where(future, -np.inf, s)), type)


# A mask of booleans in which one query sees nothing: its row is 0 by the operator's rule.
def test_the_operator_with_a_mask(tmp_path):
    q, k, v = floats("float", 2, 3, 20, 24), floats("float", 2, 3, 33, 24), floats("float", 2, 3, 33, 24)
    mask = RANDOM.random((20, 33)) < 0.6
    mask[7] = False
    text = """g (float[2, 3, 20, 24] q, float[2, 3, 33, 24] k, float[2, 3, 33, 24] v, bool[20, 33] m) => (float[2, 3, 20, 24] y) {
        y = Attention <scale = 0.3, softcap = 2.0> (q, k, v, m)
    }"""
    (y,), kernels = run(text, {"q": q, "k": k, "v": v, "m": mask}, tmp_path, opset=23)
    assert is_one_kernel(kernels)
    expected = attention(q, k, v, 0.3, lambda s: np.where(mask, 2 * np.tanh(s / 2), -np.inf))
    expected[:, :, 7] = 0
    check(y, expected, "float")


# A causal mask among the weights: no kernel reads it, and keys past it are not visited. Heads share keys.
@pytest.mark.parametrize("type", ["float", "float16"])
@pytest.mark.parametrize("queries, keys", [(150, 150), (70, 200), (5, 9)])
def test_a_constant_mask(type, queries, keys, tmp_path):
    number, shared, depth = 4, 2, 32
    q = floats(type, number, queries, depth)
    k, v = floats(type, shared, keys, depth), floats(type, shared, keys, depth)
    model = f"""g ({type}[{number}, {queries}, {depth}] q, {type}[{shared}, {keys}, {depth}] k, {type}[{shared}, {keys}, {depth}] v) => ({type}[{number}, {queries}, {depth}] y)
        <int64[1] at = {{1}}, int64[4] wide = {{{shared}, 2, {keys}, {depth}}}, int64[3] shape = {{{number}, {keys}, {depth}}}, float low = {{-inf}}, float c = {{0.2}}> {{
        k1 = Unsqueeze(k, at)
        k2 = Expand(k1, wide)
        k3 = Reshape(k2, shape)
        v1 = Unsqueeze(v, at)
        v2 = Expand(v1, wide)
        v3 = Reshape(v2, shape)
        k4 = Transpose <perm = [0, 2, 1]> (k3)
        s = MatMul(q, k4)
        f = CastLike(c, q)
        t = Mul(s, f)
        l = CastLike(low, q)
        u = Where(mask, l, t)
        p = Softmax <axis = -1> (u)
        y = MatMul(p, v3)
    }}"""
    future = np.triu(np.ones((queries, keys), bool), keys - queries + 1)
    (y,), kernels = run(model, {"q": q, "k": k, "v": v}, tmp_path, weights={"mask": future})
    assert is_one_kernel(kernels) and len(kernels) <= 2
    check(y, attention(q[None], k[None], v[None], 0.2, lambda s: np.where(future, -np.inf, s))[0], type)


PLAIN = """g (float16[h, m, 64] q, float16[h, 64, n] k, float16[h, n, 64] v) => (float16[h, m, 64] y) {
    s = MatMul(q, k)
    p = Softmax <axis = -1> (s)
    y = MatMul(p, v)
}"""


# Scores that f16 does not hold are those of exact numbers, not infinite.
@pytest.mark.parametrize("keys", [0, 1, 65])
def test_keys_as_columns(keys, tmp_path):
    q, k, v = 40 * floats("float16", 2, 5, 64), 40 * floats("float16", 2, 64, keys), floats("float16", 2, keys, 64)
    (y,), kernels = run(PLAIN, {"q": q, "k": k, "v": v}, tmp_path)
    assert sum("attention" in name for name in kernels) >= 1
    expected = attention(q[None], k.swapaxes(1, 2)[None], v[None], 1)[0]
    check(y, np.nan_to_num(expected), "float16")


# A query whose scores are all -inf has what its softmax has.
def test_rows_without_a_number(tmp_path):
    q, k, v = floats("float", 2, 9, 16), floats("float", 2, 70, 16), floats("float", 2, 70, 16)
    mask = np.zeros((9, 70), np.float32)
    mask[3] = mask[5, 10:] = mask[6, :69] = -np.inf
    text = """g (float[2, 9, 16] q, float[2, 70, 16] k, float[2, 70, 16] v, float[9, 70] mask) => (float[2, 9, 16] y) {
        t = Transpose <perm = [0, 2, 1]> (k)
        s = MatMul(q, t)
        u = Add(mask, s)
        p = Softmax <axis = -1> (u)
        y = MatMul(p, v)
    }"""
    (y,), kernels = run(text, {"q": q, "k": k, "v": v, "mask": mask}, tmp_path)
    assert is_one_kernel(kernels)
    assert np.isnan(y[:, 3]).all() and not np.isnan(np.delete(y, 3, 1)).any()
    check(y, attention(q[None], k[None], v[None], 1, lambda s: s + mask)[0], "float")


# Where the probabilities are a result of the model they are computed.
def test_probabilities_that_are_needed(tmp_path):
    q, k, v = floats("float", 2, 9, 16), floats("float", 2, 16, 20), floats("float", 2, 20, 16)
    text = """g (float[2, 9, 16] q, float[2, 16, 20] k, float[2, 20, 16] v) => (float[2, 9, 16] y, float[2, 9, 20] p) {
        s = MatMul(q, k)
        p = Softmax <axis = -1> (s)
        y = MatMul(p, v)
    }"""
    (y, p), kernels = run(text, {"q": q, "k": k, "v": v}, tmp_path)
    assert not any("attention" in name for name in kernels)
    check(y, attention(q[None], k.swapaxes(1, 2)[None], v[None], 1)[0], "float")
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-5)
