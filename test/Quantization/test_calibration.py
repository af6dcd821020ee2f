"""Ranges of tensors, against those of the numbers themselves."""

import os
import stat
import tracemalloc

import numpy as np
import onnx
import pytest

from sardonyx.quantization import CalibrationMethod, create_calibrator, load_tensors_data, save_tensors_data
from sardonyx.quantization.histogram import Observation, entropy, entropy_range, percentile_range

TWO_STEPS = """m (float[N, 4] x) => (float[N, 4] y) { t = Mul(x, two) y = Add(t, x) }"""
TWO = np.array(2, np.float32)


def ranges(model, samples, method=CalibrationMethod.MinMax, **options):
    calibrater = create_calibrator(model, calibrate_method=method, extra_options=options)
    calibrater.collect_data(samples)
    return calibrater.compute_data()


def seen(*arrays, bits=True):
    observation = Observation(bits=bits)
    for array in arrays:
        observation.add(np.asarray(array, np.float32))
    return observation


def test_least_and_largest_numbers(model, random):
    batches = [random.normal(0, 1, (size, 4)).astype(np.float32) for size in (1, 3, 2)]
    found = ranges(model(TWO_STEPS, two=TWO), [{"x": batch} for batch in batches])
    everything = np.concatenate(batches)
    for name, values in (("x", everything), ("t", 2 * everything), ("y", 2 * everything + everything)):
        low, high = found[name].range_value
        np.testing.assert_array_equal([low.item(), high.item()], [values.min(), values.max()])
    assert list(found) == ["x", "t", "y"]


def test_an_early_outlier_is_kept_however_few_outputs_are(model):
    batches = [np.full((1, 4), 100, np.float32), np.ones((1, 4), np.float32), np.ones((1, 4), np.float32)]
    found = ranges(model(TWO_STEPS, two=TWO), [{"x": batch} for batch in batches], max_intermediate_outputs=1)
    assert found["x"].highest.item() == 100


def test_collections_are_merged(model):
    calibrater = create_calibrator(model(TWO_STEPS, two=TWO))
    for value in (1, -3, 2):
        calibrater.collect_data([{"x": np.full((1, 4), value, np.float32)}])
    low, high = calibrater.compute_data()["t"].range_value
    assert (low.item(), high.item()) == (-6, 4)


def test_moving_averages(model):
    calibrater = create_calibrator(
        model(TWO_STEPS, two=TWO), extra_options={"moving_average": True, "averaging_constant": 0.25}
    )
    calibrater.collect_data([{"x": np.array([[value, 0, 0, -1]], np.float32)} for value in (1, 2, 6)])
    calibrater.collect_data([{"x": np.array([[11, 0, 0, -2]], np.float32)}])
    low, high = calibrater.compute_data()["x"].range_value
    assert (low.item(), high.item()) == (-1.25, 3 + 0.25 * (11 - 3))


def test_channels(model, random):
    text = "m (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Neg(x) }"
    values = random.normal(0, 1, (2, 3, 4)).astype(np.float32)
    found = ranges(model(text), [{"x": values}], per_channel=True)
    np.testing.assert_array_equal(found["y"].lowest, (-values).min(axis=(0, 2)))
    np.testing.assert_array_equal(found["y"].highest, (-values).max(axis=(0, 2)))


def test_one_session_sees_all_and_has_no_other_outputs(model, random):
    calibrater = create_calibrator(model(TWO_STEPS, two=TWO), calibrate_method=CalibrationMethod.Percentile)
    samples = [{"x": random.normal(0, 1, (2, 4)).astype(np.float32)} for _ in range(3)]
    calibrater.collect_data(samples)
    observer = calibrater.infer_session
    assert [output.name for output in observer.session.get_outputs()] == ["y"]
    exact = seen(*(2 * sample["x"] for sample in samples))
    np.testing.assert_array_equal(observer.observations["t"].bins, exact.bins)
    assert observer.observations["t"].ends() == exact.ends() and observer.take()["t"].count == 24
    assert observer.take()["t"].empty


@pytest.mark.parametrize("shape", [(100, 100), (3, 7)])
def test_histograms_lie_close_to_exact_ones(shape, random):
    values = random.normal(0.3, 2, shape).astype(np.float32)
    parts = seen(*np.split(values, [1, 2]))
    largest = float(np.abs(values).max())
    counts, edges = parts.linear(64, -largest, largest)
    exact, exact_edges = np.histogram(values, 64, range=(-largest, largest))
    np.testing.assert_allclose(edges, exact_edges, rtol=1e-6)
    assert counts.sum() == values.size
    # A bin of the finer kind is at most 3 % of its place wide, and its numbers go to one neighbour at most.
    assert np.abs(np.cumsum(counts) - np.cumsum(exact)).max() <= 0.02 * values.size + 2


def test_absolute_histograms(random):
    values = random.normal(-1, 1, 5000).astype(np.float32)
    counts, edges = seen(values).absolute(32)
    exact, _ = np.histogram(np.abs(values), 32, range=(0, np.abs(values).max()))
    assert edges[0] == 0 and np.abs(np.cumsum(counts) - np.cumsum(exact)).max() < 0.02 * 5000


@pytest.mark.parametrize("percentile", [99.0, 99.9])
def test_percentiles(percentile, random):
    values = random.standard_t(3, 200000).astype(np.float32)
    (low, high), _, _ = percentile_range(seen(values), 2048, percentile, symmetric=False)
    cut = (100 - percentile) / 2
    np.testing.assert_allclose([low, high], np.percentile(values, [cut, 100 - cut]), rtol=0.05)
    (low, high), _, _ = percentile_range(seen(values), 2048, percentile, symmetric=True)
    np.testing.assert_allclose([-low, high], np.percentile(np.abs(values), percentile), rtol=0.05)


def divergence_of(counts, levels, width):
    """The relative entropy of a range of `width` bins to either side of the middle, as the paper defines it, in loops."""
    middle = len(counts) // 2
    start, end = middle - width, min(middle + width + 1, len(counts))
    first = [float(count) for count in counts[start:end]]
    inside = list(first)
    first[0] += sum(counts[:start])
    first[-1] += sum(counts[end:])
    size = len(inside) // levels
    second = [0.0] * len(inside)
    for level in range(levels):
        bins = range(level * size, (level + 1) * size if level < levels - 1 else len(inside))
        filled = [place for place in bins if first[place]]
        for place in filled:
            second[place] = sum(inside[each] for each in bins) / len(filled)
    smooth = []
    for part in (first, second):
        zeros = part.count(0)
        given = 1e-4 * zeros / (len(part) - zeros)
        smooth.append([1e-4 if not value else value - given for value in part])
    sums = [sum(part) for part in smooth]
    return sum(p / sums[0] * np.log(p / sums[0] / (q / sums[1])) for p, q in zip(*smooth))


def test_the_entropy_of_every_range(random):
    values = np.concatenate([random.normal(0, 1, 20000), random.normal(0, 12, 40)]).astype(np.float32)
    observation = seen(values)
    (low, high), counts, edges = entropy_range(observation, 128, 32)
    widths = range(16, 65)
    best = min(widths, key=lambda width: divergence_of(counts, 32, width))
    assert float(low) == pytest.approx(max(edges[64 - best], values.min()), rel=1e-6)
    assert float(high) == pytest.approx(min(edges[min(64 + best + 1, 128)], values.max()), rel=1e-6)
    assert high < values.max() / 2  # the outliers are clipped, which MinMax doesn't


def test_entropies_are_scipys(random):
    from scipy.stats import entropy as exact

    first, second = random.random(50), random.random(50)
    assert entropy(first, second) == pytest.approx(exact(first, second), rel=1e-5)
    assert np.isinf(entropy([0.5, 0.5], [1, 0])) and entropy([1, 0], [0.5, 0.5]) == pytest.approx(np.log(2))


def test_moments(random):
    values = random.normal(3, 2, 4000).astype(np.float32)
    mean, deviation = seen(*np.split(values, 4)).moments()
    assert mean == pytest.approx(values.mean(), rel=1e-5) and deviation == pytest.approx(values.std(), rel=1e-5)


def test_merged_observations_are_those_of_all(random):
    parts = [random.normal(0, scale, 500).astype(np.float32) for scale in (1, 5)]
    merged, whole = seen(parts[0]), seen(*parts)
    merged.merge(seen(parts[1]))
    merged.merge(Observation(bits=True))
    np.testing.assert_array_equal(merged.bins, whole.bins)
    assert merged.ends() == whole.ends() and merged.count == whole.count


@pytest.mark.parametrize("method", list(CalibrationMethod)[1:])
def test_batches_of_unlike_shapes_and_empty_ones(method, model, random):
    samples = [{"x": random.normal(0, 1, (size, 4)).astype(np.float32)} for size in (3, 0, 5)]
    found = ranges(model(TWO_STEPS, two=TWO), samples, method)
    if method is CalibrationMethod.Distribution:
        values = np.concatenate([sample["x"] for sample in samples])
        assert found["x"].avg_std[1] == pytest.approx(values.std(), rel=1e-5)
    low, high = found["t"].range_value
    assert low < 0 < high and np.isfinite([low, high]).all()


def test_memory_does_not_grow_with_samples(model):
    def peak(count):
        calibrater = create_calibrator(model(TWO_STEPS, two=TWO), calibrate_method=CalibrationMethod.Percentile)
        calibrater.collect_data([{"x": np.ones((50000, 4), np.float32)}])  # which loads the session
        tracemalloc.start()
        calibrater.collect_data({"x": np.full((50000, 4), index, np.float32)} for index in range(count))
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(16) < 1.3 * peak(4)


def test_nan_is_told_with_sample_tensor_and_node(model):
    text = "m (float[N] x) => (float[N] y) { t = Sqrt(x) y = Neg(t) }"
    made = model(text)
    made.graph.node[0].name = "/norm/Sqrt"
    samples = [{"x": np.ones(3, np.float32)}, {"x": np.array([4, -1, 1], np.float32)}]
    with pytest.raises(ValueError, match="Sample 1: tensor 't' of node '/norm/Sqrt' holds NaN"):
        ranges(made, samples)
    with pytest.raises(ValueError, match="Sample 0: tensor 'x' holds an infinite number"):
        ranges(made, [{"x": np.array([np.inf], np.float32)}])


def test_no_sample_is_an_error(model):
    with pytest.raises(ValueError, match="No data is collected"):
        ranges(model(TWO_STEPS, two=TWO), [])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes into any folder")
def test_folders_that_cannot_be_written(model, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    onnx.save(model(TWO_STEPS, two=TWO), folder / "m.onnx")
    folder.chmod(stat.S_IREAD | stat.S_IEXEC)
    ranges(folder / "m.onnx", [{"x": np.ones((1, 4), np.float32)}])


def test_nothing_is_written_unless_asked(model, tmp_path):
    onnx.save(model(TWO_STEPS, two=TWO), "m.onnx")
    calibrater = create_calibrator("m.onnx")
    calibrater.collect_data([{"x": np.ones((1, 4), np.float32)}])
    assert sorted(path.name for path in tmp_path.glob("*.onnx")) == ["m.onnx"]
    create_calibrator("m.onnx", augmented_model_path="augmented.onnx")
    assert "t_ReduceMax" in [value.name for value in onnx.load("augmented.onnx").graph.output]


def test_files_of_ranges(model, tmp_path):
    found = ranges(model(TWO_STEPS, two=TWO), [{"x": np.ones((1, 4), np.float32)}], CalibrationMethod.Percentile)
    save_tensors_data(found, tmp_path / "new" / "ranges.json")
    again = load_tensors_data(tmp_path / "new" / "ranges.json")
    assert again.calibration_method is CalibrationMethod.Percentile and list(again) == list(found)
    np.testing.assert_array_equal(again["t"].hist, found["t"].hist)
    with pytest.raises(FileNotFoundError, match="no file"):
        load_tensors_data(tmp_path / "none.json")
