"""Products by constants of a few bits that DequantizeLinear makes floats of: integers and floats, scales for all, for
columns and for blocks, in all orders of dimensions, against sums of numpy's in f64."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sdx

SMALL = {
    "INT2": np.arange(4) - 4 * (np.arange(4) > 1),
    "UINT2": np.arange(4),
    "INT4": np.arange(16) - 16 * (np.arange(16) > 7),
    "UINT4": np.arange(16),
    "INT8": np.arange(256) - 256 * (np.arange(256) > 127),
    "UINT8": np.arange(256),
    "FLOAT4E2M1": np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn),
    "FLOAT8E4M3FN": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
    "FLOAT8E5M2": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2),
}
# Their numbers by their codes.
NUMBERS = {name: codes.astype(float) for name, codes in SMALL.items()}
BITS = {name: int(len(codes)).bit_length() - 1 for name, codes in NUMBERS.items()}


def tensor(name, kind, codes):
    """Codes as a tensor, several in a byte."""
    per_byte = 8 // BITS[kind]
    flat = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    flat[: codes.size] = codes.reshape(-1)
    raw = np.zeros(flat.size // per_byte, np.uint8)
    for i in range(per_byte):
        raw |= flat[i::per_byte] << (BITS[kind] * i)
    result = TensorProto(name=name, data_type=getattr(TensorProto, kind), dims=codes.shape)
    result.raw_data = raw.tobytes()
    return result


class Product:
    """x * W, where W [k, n] is dequantised, `how`: MatMul; Gemm, of W's transpose; or MatMul of a Transpose of that."""

    def __init__(self, kind, k, n, block, how="MatMul", zeros=False, scale="FLOAT", seed=0):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2 ** BITS[kind], (k, n))
        finite = np.flatnonzero(np.isfinite(NUMBERS[kind]))
        codes = finite[codes % len(finite)].astype(np.uint8)
        shape = {"all": (), "column": (n,)}.get(block, (-(-k // block) if isinstance(block, int) else 1, n))
        largest = np.abs(NUMBERS[kind][finite]).max()
        # Scales of 8 bits are powers of two.
        powers = 2.0 ** rng.integers(-3, 4, shape)
        numbers = powers if scale == "FLOAT8E8M0" else rng.uniform(0.5, 1.5, shape) / largest
        self.zero = rng.integers(0, 2 ** BITS[kind], shape).astype(np.uint8) if zeros else None
        stored = np.asarray(numbers).astype(self.types[scale])
        self.kind, self.how, self.k, self.n = kind, how, k, n
        self.along = isinstance(block, int)
        self.block = block if self.along else 0
        spread = lambda of: np.repeat(of, block, 0)[:k] if self.along else of  # noqa: E731
        matrix = NUMBERS[kind][codes]
        if zeros:
            matrix = matrix - spread(NUMBERS[kind][self.zero])
        self.weights = matrix * spread(stored.astype(float))
        self.codes, self.scales, self.scale = codes, stored, scale

    types = {"FLOAT": np.float32, "FLOAT16": np.float16, "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu}

    def load(self, *given, **options):
        session = self.session(*given, **options)
        return lambda x: session.run(None, {"x": x})[0]

    def session(self, rows, codes=None, **options):
        isTurned = self.how != "MatMul"
        turn = lambda of: of.T if isTurned and np.ndim(of) == 2 else of  # noqa: E731
        number = TensorProto.FLOAT if self.scale == "FLOAT8E8M0" else getattr(TensorProto, self.scale)
        codes = self.codes if codes is None else codes
        tensors = [tensor("w", self.kind, turn(codes))]
        scale = TensorProto(name="s", data_type=getattr(TensorProto, self.scale), dims=turn(self.scales).shape)
        scale.raw_data = np.ascontiguousarray(turn(self.scales)).tobytes()
        tensors.append(scale)
        names = ["w", "s"]
        if self.zero is not None:
            tensors.append(tensor("z", self.kind, np.asarray(turn(self.zero))))
            names.append("z")
        axis = int(isTurned) if self.along else 1 - int(isTurned)
        attributes = {"axis": axis}
        if self.along:
            attributes["block_size"] = self.block
        if self.scale == "FLOAT8E8M0":
            attributes["output_dtype"] = TensorProto.FLOAT
        nodes = [helper.make_node("DequantizeLinear", names, ["d"], **attributes)]
        if self.how == "Gemm":
            nodes.append(helper.make_node("Gemm", ["x", "d"], ["y"], transB=1))
        elif self.how == "Transpose":
            nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
            nodes.append(helper.make_node("MatMul", ["x", "t"], ["y"]))
        else:
            nodes.append(helper.make_node("MatMul", ["x", "d"], ["y"]))
        value = lambda name, size: helper.make_tensor_value_info(name, number, [rows, size])  # noqa: E731
        graph = helper.make_graph(nodes, "g", [value("x", self.k)], [value("y", self.n)], tensors)
        return make_session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12), **options)


def make_session(proto, **options):
    given = sdx.SessionOptions()
    given.cache = False
    for key, option in options.items():
        setattr(given, key, option)
    return sdx.InferenceSession(proto.SerializeToString(), given)


def load(proto, **options):
    session = make_session(proto, **options)
    return lambda x: session.run(None, {"x": x})[0]


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def error(result, wanted):
    return np.linalg.norm(result - wanted) / np.linalg.norm(wanted)


NEEDS = {"haswell": "avx2", "icelake-server": "avx512_vnni", "x86-64": "sse2"}
CPUS = ["", "icelake-server", "haswell", "x86-64"]


def skip_unless_runs(cpu):
    if cpu and NEEDS[cpu] not in open("/proc/cpuinfo").read().split():
        pytest.skip("another processor")


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_kinds(kind, cpu):
    """Each kind with few rows and many, with blocks, columns, a last block that is not full."""
    skip_unless_runs(cpu)
    for k, n, block, how in [(128, 96, 32, "MatMul"), (96, 70, "column", "Gemm"), (200, 130, 32, "Transpose"), (64, 33, 16, "MatMul")]:
        product = Product(kind, k, n, block, how)
        run = product.load("m", cpu=cpu)
        for rows in (1, 5, 70):
            x = floats(rows, k)
            assert error(run(x), x.astype(float) @ product.weights) < 2e-6, (k, n, block, how, rows)


@pytest.mark.parametrize("how", ["MatMul", "Gemm", "Transpose"])
@pytest.mark.parametrize("kind", ["INT2", "UINT4", "INT8", "UINT8"])
def test_zero_points(kind, how):
    for k, n, block in [(128, 512, 32), (130, 70, "column"), (72, 300, 24), (96, 40, "all")]:
        product = Product(kind, k, n, block, how, zeros=True)
        run = product.load("m")
        for rows in (1, 40):
            x = floats(rows, k)
            assert error(run(x), x.astype(float) @ product.weights) < 2e-6, (k, n, block, rows)


@pytest.mark.parametrize("kind", ["INT4", "FLOAT8E4M3FN", "FLOAT4E2M1"])
def test_of_16_bits(kind):
    product = Product(kind, 128, 300, 32, scale="FLOAT16")
    x = floats(9, 128).astype(np.float16)
    result = product.load(9)(x)
    assert result.dtype == np.float16
    assert error(result.astype(float), x.astype(float) @ product.weights) < 1e-3


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_mxfp4(precision, cpu):
    """Floats of 4 bits with powers of two as scales of 32."""
    skip_unless_runs(cpu)
    for how in ("MatMul", "Gemm"):
        product = Product("FLOAT4E2M1", 256, 320, 32, how, scale="FLOAT8E8M0")
        run = product.load("m", cpu=cpu, precision=precision)
        for rows in (1, 7, 100):
            x = floats(rows, 256)
            most = 2e-6 if precision == "f32" else 4e-3
            assert error(run(x), x.astype(float) @ product.weights) < most, (how, rows)


def test_nvfp4():
    """Floats of 4 bits with scales of 16 that are floats of 8 bits times one for all."""
    k, n, block = 192, 260, 16
    product = Product("FLOAT4E2M1", k, n, block, "Gemm")
    rng = np.random.default_rng(3)
    codes = rng.integers(1, 0x70, (n, k // block)).astype(np.uint8)
    whole = np.float32(0.003)
    scales = NUMBERS["FLOAT8E4M3FN"][codes] * float(whole)
    tensors = [tensor("w", "FLOAT4E2M1", product.codes.T), tensor("s", "FLOAT8E4M3FN", codes), numpy_helper.from_array(whole, "g")]
    nodes = [
        helper.make_node("DequantizeLinear", ["s", "g"], ["t"]),
        helper.make_node("DequantizeLinear", ["w", "t"], ["d"], axis=1, block_size=block),
        helper.make_node("Gemm", ["x", "d"], ["y"], transB=1),
    ]
    value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", size])  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value("x", k)], [value("y", n)], tensors)
    run = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12))
    weights = NUMBERS["FLOAT4E2M1"][product.codes] * np.repeat(scales.T, block, 0)
    for rows in (1, 50):
        x = floats(rows, k)
        assert error(run(x), x.astype(float) @ weights) < 2e-6, rows


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind, code", [("FLOAT8E4M3FN", 0x7F), ("FLOAT8E4M3FN", 0xFF), ("FLOAT8E5M2", 0x7E), ("FLOAT8E5M2", 0xFC)])
def test_special_weights(kind, code, cpu):
    """A weight that is no number makes its column none, and no other."""
    skip_unless_runs(cpu)
    product = Product(kind, 96, 70, 32)
    codes = product.codes.copy()
    codes[40, 3] = code
    run = product.load("m", codes=codes, cpu=cpu)
    for rows in (1, 40):
        x = np.abs(floats(rows, 96)) + 1
        result = run(x)
        wanted = x.astype(float) @ product.weights
        if np.isnan(NUMBERS[kind][code]):
            assert np.isnan(result[:, 3]).all()
        else:
            assert (result[:, 3] == -np.inf).all()
        others = np.delete(np.arange(70), 3)
        assert error(result[:, others], wanted[:, others]) < 2e-6


@pytest.mark.parametrize("how", ["MatMul", "Gemm"])
@pytest.mark.parametrize("kind, scale", [("INT4", "FLOAT"), ("INT8", "FLOAT16"), ("FLOAT4E2M1", "FLOAT8E8M0"), ("FLOAT8E4M3FN", "FLOAT")])
def test_weights_stay_packed(kind, scale, how):
    """A session holds as many bytes as there are bits of weights and scales, those of 8 bits as 16."""
    k, n, block = 1024, 1024, 32
    product = Product(kind, k, n, block, how, scale=scale)
    session = product.session("m")
    bits = {"FLOAT": 32, "FLOAT16": 16, "FLOAT8E8M0": 16}[scale]
    assert session.bytes_held < 1.05 * k * n * (BITS[kind] + bits / block) / 8


def test_gemm_adds_and_scales():
    product = Product("INT4", 64, 40, 16, "Gemm")
    x, c = floats(5, 64), floats(40)
    tensors = [tensor("w", "INT4", product.codes.T), numpy_helper.from_array(np.ascontiguousarray(product.scales.T), "s"), numpy_helper.from_array(c, "c")]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1, block_size=16),
        helper.make_node("Gemm", ["x", "d", "c"], ["y"], transB=1, alpha=0.5, beta=2.0),
    ]
    value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, size])  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value("x", 64)], [value("y", 40)], tensors)
    run = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    assert error(run(x), 0.5 * (x.astype(float) @ product.weights) + 2.0 * c.astype(float)) < 2e-6


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "UINT2", "FLOAT4E2M1"])
def test_many_numbers_in_bytes_as_such(kind):
    """A large constant that no product reads, of a number of elements that leaves a byte half full."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2 ** BITS[kind], (301, 303)).astype(np.uint8)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [301, 303])  # noqa: E731
    tensors = [tensor("w", kind, codes), numpy_helper.from_array(np.float32(0.5), "s")]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], tensors)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    x = floats(301, 303)
    np.testing.assert_array_equal(load(proto)(x), x + np.float32(0.5) * NUMBERS[kind][codes].astype(np.float32))


@pytest.mark.parametrize("kind", ["INT4", "UINT2", "INT8", "FLOAT4E2M1", "FLOAT8E4M3FN"])
@pytest.mark.parametrize("block, axis", [(0, None), (0, 0), (0, 1), (16, 1), (25, 0)])
def test_rows_of_a_table(kind, block, axis):
    """Rows of a large table, gathered after it is dequantised."""
    rng = np.random.default_rng(4)
    rows, columns = 700, 112
    finite = np.flatnonzero(np.isfinite(NUMBERS[kind])).astype(np.uint8)
    codes = finite[rng.integers(0, len(finite), (rows, columns))]
    shape = [rows, columns]
    if block:
        shape[axis] //= block
    elif axis is not None:
        shape = [shape[axis]]
    else:
        shape = []
    scales = rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if block:
        spread = np.repeat(scales, block, axis)
    else:
        spread = scales[:, None] if axis == 0 else scales
    tensors = [tensor("w", kind, codes), numpy_helper.from_array(np.asarray(scales), "s")]
    attributes = {"axis": axis} if axis is not None else {}
    if block:
        attributes["block_size"] = block
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes),
        helper.make_node("Gather", ["d", "x"], ["y"]),
    ]
    ids = helper.make_tensor_value_info("x", TensorProto.INT64, ["b", 3])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", 3, columns])
    graph = helper.make_graph(nodes, "g", [ids], [result], tensors)
    run = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12))
    x = np.array([[0, 699, 5], [-1, 300, -700]])
    np.testing.assert_array_equal(run(x), (NUMBERS[kind][codes].astype(np.float32) * spread)[x])
    with pytest.raises(Exception, match="out of range|700"):
        run(np.array([[0, 700, 1]]))
