"""Products by weights of a few bits, with many rows and few, in all the forms that processors have for them, against
sums of numpy's in f64."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx


NEEDS = {"haswell": "avx2", "alderlake": "avx_vnni", "icelake-server": "avx512_vnni"}


def runs(cpu):
    return NEEDS[cpu] in open("/proc/cpuinfo").read().split()


def unpacked(data, bits):
    parts = [(data >> (bits * i)) & (2**bits - 1) for i in range(8 // bits)]
    return np.stack(parts, -1).reshape(*data.shape[:-1], -1).astype(float)


class Product:
    """A MatMulNBits and its weights [K, N]."""

    def __init__(self, k, n, block, bits=4, zeros=None, level=0, seed=0):
        rng = np.random.default_rng(seed)
        blocks = -(-k // block)
        data = rng.integers(0, 256, (n, blocks, block * bits // 8), np.uint8)
        scales = rng.uniform(0.5, 1.5, (n, blocks)).astype(np.float32) / np.float32(2**bits)
        constants, zero = {"b": data, "s": scales}, np.full((n, blocks), 2.0 ** (bits - 1))
        if zeros == "whole":
            constants["z"] = rng.integers(0, 256, (n, -(-blocks * bits // 8)), np.uint8)
            zero = unpacked(constants["z"], bits)[:, :blocks]
        elif zeros == "floats":
            constants["z"] = rng.uniform(0, 2**bits, (n, blocks)).astype(np.float32)
            zero = constants["z"].astype(float)
        weights = (unpacked(data, bits) - zero[..., None]) * scales.astype(float)[..., None]
        self.weights = weights.reshape(n, -1)[:, :k].T
        self.k, self.n, self.block = k, n, block
        self.constants = constants
        self.attributes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}

    def load(self, rows, **options):
        node = helper.make_node("MatMulNBits", ["x", *self.constants], ["y"], domain="com.microsoft", **self.attributes)
        value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size])  # noqa: E731
        tensors = [numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        graph = helper.make_graph([node], "g", [value("x", self.k)], [value("y", self.n)], tensors)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        given = sdx.SessionOptions()
        given.cache = False
        for key, option in options.items():
            setattr(given, key, option)
        session = sdx.InferenceSession(proto.SerializeToString(), given)
        return lambda x: session.run(None, {"x": x})[0]

    def round_rows(self, x):
        """Rows as integers up to 127 times a scale for each block."""
        blocks = -(-self.k // self.block)
        padded = np.zeros((len(x), blocks * self.block))
        padded[:, : self.k] = x
        padded = padded.reshape(len(x), blocks, self.block)
        scale = np.abs(padded).max(-1, keepdims=True) / 127
        rounded = np.rint(padded / np.where(scale, scale, 1)) * scale
        return rounded.reshape(len(x), -1)[:, : self.k]


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def error(result, wanted):
    return np.linalg.norm(result - wanted) / np.linalg.norm(wanted)


# Depths that end within a step, a group of four and a block; blocks of a part of a step, of several, and of all values.
SHAPES = [(128, 512, 32), (200, 300, 32), (256, 290, 16), (1056, 270, 352), (1000, 257, 1000), (72, 300, 24), (2048, 260, 128), (4160, 260, 32)]
FORMS = {"tiles": {"split_floats": True}, "vectors": {"split_floats": False}, "haswell": {"cpu": "haswell"}, "x86-64": {"cpu": "x86-64"}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits, zeros", [(4, None), (4, "whole"), (4, "floats"), (2, "whole"), (8, None), (8, "whole")])
def test_sums_of_f32(bits, zeros, form):
    for k, n, block in SHAPES if form == "tiles" and bits == 4 else SHAPES[1:4]:
        product = Product(k, n, block, bits, zeros)
        for declared, counts in [("m", (1, 7, 33, 300)), (70, (70,))]:
            run = product.load(declared, **FORMS[form])
            for rows in counts:
                x = floats(rows, k)
                assert error(run(x), x.astype(float) @ product.weights) < 2e-6, (k, n, block, rows)


@pytest.mark.parametrize("cpu", ["", "haswell", "alderlake", "icelake-server"])
@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize("bits, zeros", [(4, None), (4, "whole"), (4, "floats"), (2, None), (8, "whole")])
def test_rounded_rows(bits, zeros, level, cpu):
    """Where rows may be rounded results are as exact as if they were bytes, at least."""
    if cpu and not runs(cpu):
        pytest.skip("another processor")
    for k, n, block in SHAPES[:6] if not cpu and level == 4 else SHAPES[1:3]:
        product = Product(k, n, block, bits, zeros, level)
        run = product.load("m", cpu=cpu)
        for rows in (1, 3, 40, 64, 300):
            x = floats(rows, k)
            exact = x.astype(float) @ product.weights
            bytes_ = product.round_rows(x) @ product.weights
            assert error(run(x), exact) < 1.05 * error(bytes_, exact), (k, n, block, rows)


@pytest.mark.parametrize("zeros", [None, "whole"])
def test_rounded_to_bf16(zeros):
    for k, n, block in SHAPES[:4]:
        product = Product(k, n, block, zeros=zeros)
        for declared, rows in [("m", 1), ("m", 77), (64, 64)]:
            x = floats(rows, k)
            result = product.load(declared, precision="bf16")(x)
            assert error(result, x.astype(float) @ product.weights) < 4e-3, (k, n, block, rows)


@pytest.mark.parametrize("level, precision", [(0, "f32"), (0, "bf16"), (4, "f32")])
def test_special_rows(level, precision):
    """What is no number stays in its row, and tiny numbers and zeros are what they are."""
    product = Product(256, 300, 32, level=level)
    x = floats(80, 256)
    x[3, 7], x[17, 200], x[40, 0] = np.inf, np.nan, -np.inf
    x[5], x[60] = 0, x[60] * np.float32(1e-30)
    with np.errstate(invalid="ignore"):
        wanted = x.astype(float) @ product.weights
    special = [3, 17, 40]
    usual = np.setdiff1d(np.arange(80), special)
    for rows in (80, 6):
        result = product.load("m", precision=precision, split_floats=True)(x[:rows])
        inside = [row for row in usual if row < rows]
        assert error(result[inside], wanted[inside]) < (1e-2 if level or precision == "bf16" else 2e-6)
        assert not np.isfinite(result[[row for row in special if row < rows]]).any()
        assert not result[5].any()
    if precision == "f32":
        tiny = product.load("m", split_floats=True)(x)[60]
        assert error(tiny, wanted[60]) < (1e-2 if level else 2e-6)
