"""DFT and STFT against numpy's transforms in double precision."""

import ml_dtypes
import numpy as np
import pytest
from numerics import constant, run
from onnx import helper


def complex_of(x):
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def expected(x, axis, length, inverse, onesided):
    signal = complex_of(x)
    axis = axis % x.ndim
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis)[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1)


def transform(x, axis=None, length=None, inverse=0, onesided=0, form="static"):
    """The form says what is known when compiling: all, all but sizes, or nothing."""
    names, feeds, held = ["x", "", ""], {"x": x}, []
    for i, (name, value) in enumerate([("length", length), ("axis", axis)]):
        if value is not None:
            names[i + 1] = name
            if form == "run-time":
                feeds[name] = np.array(value)
            else:
                held.append(constant(name, value))
    node = helper.make_node("DFT", names, ["y"], inverse=inverse, onesided=onesided)
    shapes = {"x": list(x.shape)} if form == "static" else None
    return run([node], feeds, ["y"], shapes, 20, held)[0]


def check(got, want, x):
    assert got.dtype == x.dtype and got.shape == want.shape
    scale = np.abs(want).max(initial=1)
    tolerance = {2: 1e-2, 4: 1e-6, 8: 1e-13}[x.dtype.itemsize]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("form", ["static", "open", "run-time"])
@pytest.mark.parametrize("inverse, onesided", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_random(inverse, onesided, form):
    rng = np.random.default_rng([inverse, onesided, len(form)])
    types = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
    for case in range(3):
        rank = int(rng.integers(2, 5))
        shape = [int(n) for n in rng.integers(1, 9, rank)]
        axis = int(rng.integers(0, rank - 1))
        shape[axis] = int(rng.integers(2, 40))
        shape[-1] = 2 if inverse and onesided else 1 if onesided else 1 + case % 2
        x = rng.standard_normal(shape).astype(types[(case + len(form)) % 4])
        length = None if case < 1 else int(rng.integers(1, 50))
        default = 2 * (shape[axis] - 1) if inverse and onesided else shape[axis]
        want = expected(x, axis, length or default, inverse, onesided)
        given = axis - rank if case % 2 else axis
        if case == 2:
            given = None if axis == rank - 2 else given
        check(transform(x, given, length, inverse, onesided, form), want, x)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 13, 17, 30, 64, 68, 97, 134, 143, 360, 1001, 1009, 1024, 1156])
@pytest.mark.parametrize("form", ["static", "open"])
def test_lengths(length, form):
    inverse = length % 2
    dtype = np.float64 if form == "static" else np.float32
    x = np.random.default_rng(length).standard_normal((2, length, 2)).astype(dtype)
    check(transform(x, inverse=inverse, form=form), expected(x, 1, length, inverse, 0), x)


@pytest.mark.parametrize("form", ["static", "open", "run-time"])
def test_of_nothing(form):
    for shape in [(0, 1), (2, 0, 2)]:
        x = np.zeros(shape, np.float32)
        for inverse in (0, 1):
            got = transform(x, len(shape) - 2, inverse=inverse, form=form)
            assert got.shape == (*shape[:-1], 2)
    with pytest.raises(Exception, match="there is nothing to transform"):
        transform(np.zeros((2, 0, 1), np.float32), 1, onesided=1, form=form)


@pytest.mark.parametrize("form", ["static", "open"])
def test_near_zero_bins(form):
    """What cancels is zero to far below single precision."""
    x = np.arange(100, dtype=np.float32).reshape(1, 10, 10, 1)
    got, want = transform(x, 1, form=form), expected(x, 1, 10, 0, 0)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("form", ["static", "open"])
def test_single_precision(form):
    """An inverse transform of single precision rounds as numpy's does, but for the division by the length."""
    for length in (8, 10, 12, 30, 60):
        x = np.arange(10 * length, dtype=np.float32).reshape(1, length, 10, 1)
        got, want = transform(x, 1, inverse=1, form=form), np.fft.ifft(x[..., 0].astype(np.complex64), axis=1)
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1.2e-7)


@pytest.mark.parametrize("length, lines, columns", [(64, 1, 1), (400, 3, 1), (512, 2, 5), (1000, 5, 1), (1155, 1, 2), (1024, 2, 40),
                                                    (2197, 1, 1), (20000, 1, 1), (65536, 1, 1), (22, 70, 1), (60, 1, 17)])
def test_many_stages(length, lines, columns):
    """Lines that are matrices inside, and lines side by side; one-sided spectra of them."""
    rng = np.random.default_rng([length, lines, columns])
    x = rng.standard_normal((lines, length, columns, 2)).astype(np.float32)
    check(transform(x, 1, inverse=1), expected(x, 1, length, 1, 0), x)
    real = x[..., :1]
    check(transform(real, 1, onesided=1), expected(real, 1, length, 0, 1), real)
    half = x[:, : length // 2 + 1].astype(np.float64)
    check(transform(half, 1, length, inverse=1, onesided=1), expected(half, 1, length, 1, 1), half)


@pytest.mark.parametrize("axis, length, what", [(2, None, "axis"), (-1, None, "axis"), (-4, None, "axis"), (3, None, "axis"),
                                                (1, 0, "dft_length"), (1, -3, "dft_length"), (1, 2**62, "dft_length|large|memory|impossible")])
@pytest.mark.parametrize("form", ["static", "run-time"])
def test_refusals(form, axis, length, what):
    with pytest.raises(Exception, match=what):
        transform(np.zeros((2, 3, 1), np.float32), axis, length, form=form)


def frames(x, step, window, length, onesided):
    signal = complex_of(x)
    count = 1 + (signal.shape[1] - length) // step
    parts = np.stack([signal[:, i * step : i * step + length] for i in range(count)], 1)
    y = np.fft.fft(parts * window, axis=-1)
    if onesided:
        y = y[..., : length // 2 + 1]
    return np.stack([y.real, y.imag], -1)


@pytest.mark.parametrize("form", ["static", "open", "run-time"])
@pytest.mark.parametrize("onesided", [0, 1])
def test_stft(onesided, form):
    rng = np.random.default_rng(37)
    for case in range(4):
        batch, extent, length = int(rng.integers(1, 4)), int(rng.integers(20, 60)), int(rng.integers(2, 20))
        x = rng.standard_normal((batch, extent, 1 + (case % 2 and not onesided))).astype([np.float32, np.float64][case % 2])
        window = rng.random(length).astype(x.dtype)
        step = int(rng.integers(1, 9))
        optional = {"step": step, "window": window, "length": length}
        if case == 1:
            del optional["length"]
        if case > 2:
            del optional["window"]
            window = np.ones(length)
        feeds, held = {"x": x}, []
        for name, value in optional.items():
            if form == "run-time":
                feeds[name] = np.asarray(value)
            else:
                held.append(constant(name, value, np.asarray(value).dtype))
        names = ["x", *(name if name in optional else "" for name in ["step", "window", "length"])]
        node = helper.make_node("STFT", names, ["y"], onesided=onesided)
        shapes = {"x": list(x.shape)} if form == "static" else None
        [got] = run([node], feeds, ["y"], shapes, 17, held)
        check(got, frames(x, step, window, length, onesided), x)


@pytest.mark.parametrize("step, length", [(0, 4), (-1, 4), (1, 0), (1, 11), (2**62, 4)])
def test_stft_refusals(step, length):
    x = np.zeros((1, 10, 1), np.float32)
    node = helper.make_node("STFT", ["x", "step", "", "length"], ["y"])
    feeds = {"x": x, "step": np.array(step), "length": np.array(length)}
    with pytest.raises(Exception, match="frame"):
        run([node], feeds, ["y"])
    held = [constant("step", step), constant("length", length)]
    with pytest.raises(Exception, match="frame"):
        run([node], {"x": x}, ["y"], {"x": [1, 10, 1]}, 17, held)
