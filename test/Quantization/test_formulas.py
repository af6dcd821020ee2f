"""Scales, zero points, rounding and packing, against the definitions number by number."""

import fractions

import numpy as np
import pytest
from onnx import TensorProto

from sardonyx.quantization import formulas
from sardonyx.quantization.quant_types import ONNX_TYPE_TO_NP_TYPE, QuantType, get_qmin_qmax_for_qType
from sardonyx.quantization.quant_utils import _flat_table

INTEGERS = [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT4, TensorProto.UINT4]


def nearest_even(value):
    return round(value)  # Python rounds fractions half to even


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("symmetric", [False, True])
def test_ranges_are_covered_and_zero_is_exact(kind, symmetric, random):
    qmin, qmax = get_qmin_qmax_for_qType(kind, symmetric=symmetric)
    low = random.normal(0, 3, 50).astype(np.float32)
    high = low + random.gamma(1, 4, 50).astype(np.float32)
    scale, zero = formulas.scales_and_zero_points(low, high, qmin, qmax, symmetric)
    assert scale.dtype == np.float32 and zero.dtype == ONNX_TYPE_TO_NP_TYPE[kind]
    for index in range(50):
        below, above = min(float(low[index]), 0.0), max(float(high[index]), 0.0)
        if symmetric:
            above = max(-below, above)
            below = -above
        step = (fractions.Fraction(above) - fractions.Fraction(below)) / (int(qmax) - int(qmin))
        assert scale[index] == np.float32(float(step))
        middle = fractions.Fraction(int(qmin) + int(qmax), 2)
        expected = nearest_even(middle) if symmetric else nearest_even(int(qmin) - fractions.Fraction(below) / step)
        assert int(zero[index]) == expected
        # Both ends are within one step of what the first and the last number stand for.
        ends = [(int(end) - int(zero[index])) * float(scale[index]) for end in (qmin, qmax)]
        assert ends[0] - 1.01 * float(step) <= below and above <= ends[1] + 1.01 * float(step)


def test_empty_ranges_and_least_ranges():
    zero, scale = formulas.compute_scale_zp(np.float32(0), np.float32(0), np.uint8(0), np.uint8(255))
    assert (int(zero), float(scale)) == (0, 1.0)
    zero, scale = formulas.compute_scale_zp(np.float32(0), np.float32(0), np.uint8(0), np.uint8(255), False, 0.5)
    assert (int(zero), float(scale)) == (0, float(np.float32(0.5 / 255)))
    with pytest.raises(ValueError, match="finite"):
        formulas.compute_scale_zp(np.float32(0), np.float32(np.nan), np.uint8(0), np.uint8(255))


def test_halves_have_ranges_beyond_their_own_type():
    zero, scale = formulas.compute_scale_zp(np.float16(-60000), np.float16(60000), np.uint8(0), np.uint8(255))
    assert int(zero) == 128 and scale == np.float16(120000 / 255)


@pytest.mark.parametrize("kind", INTEGERS)
def test_rounding_is_half_to_even_and_clipped(kind, random):
    low, high = (int(end) for end in get_qmin_qmax_for_qType(kind))
    values = np.concatenate([random.normal(0, 5, 200), np.arange(-12, 12) * 0.25]).astype(np.float32)
    for scale, zero in ((0.5, 0), (0.25, 3), (0.3, 1)):
        found = formulas.round_to(kind, values, np.float32(scale), np.array(zero, ONNX_TYPE_TO_NP_TYPE[kind]))
        for value, number in zip(values, found):
            exact = nearest_even(fractions.Fraction(float(value / np.float32(scale)))) + zero
            assert int(number) == min(max(exact, low), high)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_channels_are_each_on_their_own(axis, random):
    weight = (random.normal(0, 1, (5, 7, 3)) * random.gamma(1, 2, (5, 7, 1))).astype(np.float32)
    axis = axis % 3
    zero, scale = formulas.axis_parameters(weight, axis, TensorProto.INT8, True)
    numbers = formulas.quantize_weight(weight, TensorProto.INT8, scale, zero, axis)
    for channel in range(weight.shape[axis]):
        part = weight.take(channel, axis)
        own_zero, own_scale, own = formulas.quantize_data(part, TensorProto.INT8, True)
        assert own_scale == scale[channel] and own_zero == zero[channel]
        np.testing.assert_array_equal(own, numbers.take(channel, axis))
    restored = formulas.dequantize(numbers, scale, zero, axis)
    shape = [1] * 3
    shape[axis] = -1
    assert np.all(np.abs(restored - weight) <= scale.reshape(shape) * 0.5001)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("symmetric", [False, True])
def test_blocks_are_each_on_their_own(axis, symmetric, random):
    weight = random.normal(0, 1, (70, 33)).astype(np.float32)
    zero, scale = formulas.compute_scale_zp_blocked(weight, TensorProto.INT8, axis, 32, symmetric)
    blocks = -(-weight.shape[axis] // 32)
    assert scale.shape[axis] == blocks and scale.shape[1 - axis] == weight.shape[1 - axis]
    numbers = formulas.quantize_weight(weight, TensorProto.INT8, scale, zero, axis, 32)
    lines = weight if axis == 1 else weight.T
    for line in range(len(lines)):
        for block in range(blocks):
            part = lines[line, 32 * block : 32 * block + 32]
            place = (line, block) if axis == 1 else (block, line)
            own_zero, own_scale, own = formulas.quantize_data(part, TensorProto.INT8, symmetric)
            if len(part) == 32 or symmetric or (part.min() <= 0 <= part.max()):
                assert own_scale == scale[place] and own_zero == zero[place]
            found = numbers if axis == 1 else numbers.T
            np.testing.assert_array_equal(own, found[line, 32 * block : 32 * block + 32])
    with pytest.raises(NotImplementedError, match="rank 2"):
        formulas.compute_scale_zp_blocked(weight[None], TensorProto.INT8, 0, 32, True)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_floats_of_8_bits_are_the_nearest(kind, random):
    table = formulas.finite_float8_values(kind).astype(np.float64)
    _, scale = formulas.compute_scale_zp_float8(kind, np.float32(1.5))
    assert np.isclose(float(scale), 1.5 / table.std(), rtol=1e-6)
    values = random.normal(0, 1.5, 500).astype(np.float32)
    found = formulas.round_to(kind, values, scale, np.zeros((), ONNX_TYPE_TO_NP_TYPE[kind])).astype(np.float64)
    for value, number in zip(values / scale, found):
        assert abs(number - value) == np.abs(table - float(value)).min()


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("count", [1, 7, 16])
def test_packing(bits, count, random):
    values = random.integers(0, 2**bits, (3, count)).astype(np.uint8)
    packed = formulas.pack_bits(values, bits)
    for row in range(3):
        number = sum(int(value) << (bits * place) for place, value in enumerate(values[row]))
        assert packed[row].tobytes() == number.to_bytes(packed.shape[1], "little")
    np.testing.assert_array_equal(formulas.unpack_bits(packed, bits, count), values)
    if bits == 4:
        assert bytes(formulas.pack_bytes_to_4bit(values[0].tobytes())) == packed[0].tobytes()


def test_zero_points_that_snap(random):
    for _ in range(50):
        low, high = sorted(random.normal(0, 2, 2))
        zero, scale = formulas.snap_zero_point_to_uint8(np.float32(low), np.float32(high))
        assert int(zero) == (0 if low >= 0 else 128)
        assert (0 - int(zero)) * scale <= min(low, 0) + 1e-5 and (255 - int(zero)) * scale >= max(high, 0) - 1e-5


def test_types_by_name():
    assert QuantType.from_string("quint8") is QuantType.QUInt8 and str(QuantType.QInt4) == "QInt4"
    with pytest.raises(ValueError, match="did you mean QInt16"):
        QuantType.from_string("QInt61")


def test_table_of_tensorrt_is_a_flatbuffer():
    flatbuffers = pytest.importorskip("flatbuffers")
    from flatbuffers.table import Table

    entries = [("a", "1.5"), ("long/name:0", "0.25"), ("", "3")]
    data = bytearray(_flat_table(entries))
    root = Table(data, flatbuffers.encode.Get(flatbuffers.packer.uoffset, data, 0))
    field = root.Offset(4)
    start, count = root.Vector(field), root.VectorLen(field)
    found = []
    for index in range(count):
        pair = Table(data, root.Indirect(start + 4 * index))
        found.append(tuple(pair.String(pair.Offset(place) + pair.Pos).decode() for place in (4, 6)))
    assert found == entries
