"""Ranges of the tensors of a model, found by running it on samples.

Samples come from a CalibrationDataReader (`get_next` gives a dictionary of inputs, then None), or from any iterable of
dictionaries. Nothing is kept of a sample but counts, so that memory does not grow with their number.
"""

from __future__ import annotations

import abc
import logging
import os
from pathlib import Path

import numpy as np
from onnx import ModelProto

from .graph_index import GraphIndex
from .histogram import Observation, entropy, entropy_range, percentile_range, squared_error_range  # noqa: F401
from .model_files import load_model_with_shape_infer, save_and_reload_model_with_shape_infer, save_model
from .observe import SessionObserver, model_with_outputs, reduced_model
from .tensor_data import (  # noqa: F401
    CalibrationCacheEncoder,
    CalibrationMethod,
    TensorData,
    TensorsData,
    load_tensors_data,
    save_tensors_data,
)

logger = logging.getLogger("sardonyx")


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives samples: `get_next` a dictionary {input: array}, and None after the last."""

    @classmethod
    def __subclasshook__(cls, subclass):
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> dict:
        raise NotImplementedError

    def __iter__(self):
        return self

    def __next__(self):
        sample = self.get_next()
        if sample is None:
            raise StopIteration
        return sample

    def __len__(self):
        raise NotImplementedError

    def set_range(self, start_index: int, end_index: int):
        raise NotImplementedError


def samples_of(data):
    """Samples of a reader, of an iterable of dictionaries, or of a folder of .npz files and test_data_set_* folders."""
    if isinstance(data, (str, os.PathLike)):
        from .data_folders import samples_of_folder

        yield from samples_of_folder(Path(data))
    elif callable(getattr(data, "get_next", None)):
        while True:
            sample = data.get_next()
            if not sample:
                return
            yield sample
    else:
        yield from data


class CalibraterBase:
    """Observes the tensors of f32 and f16 that certain operators read or make.

    :param model_path: a file, or a ModelProto.
    :param op_types_to_calibrate: those operators; none means all.
    :param augmented_model_path: where `augment_graph` writes a model with further outputs.
    """

    method = CalibrationMethod.MinMax
    bits = False

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx", symmetric=False,
        use_external_data_format=False, per_channel=False,
    ):  # fmt: skip
        if isinstance(model_path, ModelProto):
            self.model = save_and_reload_model_with_shape_infer(model_path)
        elif isinstance(model_path, (str, os.PathLike)):
            self.model = load_model_with_shape_infer(Path(model_path))
        else:
            raise ValueError(f"a model is given as a path or a ModelProto, not as {type(model_path).__name__}")
        self.op_types_to_calibrate = op_types_to_calibrate
        self.augmented_model_path = augmented_model_path
        self.symmetric = symmetric
        self.use_external_data_format = use_external_data_format
        self.per_channel = per_channel
        self.augment_model = None
        self.infer_session = None
        self.execution_providers = ["CPUExecutionProvider"]
        self.samples = 0

    def set_execution_providers(self, execution_providers=("CPUExecutionProvider",)):
        self.execution_providers = list(execution_providers)
        self.create_inference_session()

    def create_inference_session(self):
        """Gets ready to run; the sessions themselves are made at the first sample, whose sizes they are planned by."""
        tensors, _ = self.select_tensors_to_calibrate(self.model)
        self.infer_session = SessionObserver(self.model, tensors, self.bits, self.per_channel)

    def select_tensors_to_calibrate(self, model):
        """(names of the tensors to observe in the order of the graph, {value: ValueInfoProto})."""
        index = GraphIndex(model.graph)
        names = {}
        for node in model.graph.node:
            if not self.op_types_to_calibrate or node.op_type in self.op_types_to_calibrate:
                for name in (*node.input, *node.output):
                    if name and name not in index.initializers and index.is_float(name):
                        names[name] = None
        return list(names), index.values

    def augment_graph(self):
        """Writes `augmented_model_path`: the model with what is observed as further outputs."""
        self.augment_model = self._augmented()
        save_model(self.augment_model, self.augmented_model_path, self.use_external_data_format)

    def get_augment_model(self):
        """The model with what is observed as further outputs."""
        if self.augment_model is None:
            self.augment_model = self._augmented()
        return self.augment_model

    def _augmented(self):
        return model_with_outputs(self.model, self.select_tensors_to_calibrate(self.model)[0])

    def collect_data(self, data_reader):
        """Runs all samples and adds what they show; it may be called any number of times."""
        if self.infer_session is None:
            self.create_inference_session()
        first = self.samples
        for sample in samples_of(data_reader):
            self.infer_session.run(sample)
            self.samples += 1
            self._after_sample()
        if self.samples == first and not self.samples:
            raise ValueError("No data is collected: the reader gave no sample.")
        self._after_collection()

    def _after_sample(self):
        pass

    def _after_collection(self):
        pass

    def compute_data(self) -> TensorsData:
        """Ranges of all that was observed."""
        raise NotImplementedError

    def compute_range(self):
        """The same, by the name of older releases."""
        return self.compute_data()


class MinMaxCalibrater(CalibraterBase):
    """The least and the largest number seen.

    `moving_average`: the mean of the samples' ends in a call of `collect_data`, to which later calls move it by
    `averaging_constant` of the difference. `max_intermediate_outputs` changes nothing: nothing is kept anyway.
    """

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx", symmetric=False,
        use_external_data_format=False, moving_average=False, averaging_constant=0.01, max_intermediate_outputs=None,
        per_channel=False,
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, symmetric, use_external_data_format, per_channel
        )
        if moving_average and not 0 <= averaging_constant <= 1:
            raise ValueError(f"'averaging_constant' is from 0 to 1, unlike {averaging_constant}")
        self.moving_average = moving_average
        self.averaging_constant = averaging_constant
        self.max_intermediate_outputs = max_intermediate_outputs
        self.calibrate_tensors_range = None
        self._seen: dict[str, list] = {}  # {tensor: [least, largest, samples]} of this call

    def _augmented(self):
        return reduced_model(self.model, self.select_tensors_to_calibrate(self.model)[0], self.per_channel)

    def _after_sample(self):
        for name, observation in self.infer_session.take().items():
            low, high = observation.lowest, observation.highest
            if observation.empty:
                low = high = np.zeros(1, observation.dtype)
                if name in self._seen:
                    continue
            known = self._seen.get(name)
            if known is None:
                self._seen[name] = [low, high, 1]
            elif self.moving_average:
                self._seen[name] = [known[0] + low, known[1] + high, known[2] + 1]
            else:
                self._seen[name] = [np.minimum(known[0], low), np.maximum(known[1], high), known[2] + 1]

    def _after_collection(self):
        found = {}
        for name, (low, high, count) in self._seen.items():
            if self.moving_average:
                low, high = (np.asarray(end / end.dtype.type(count)) for end in (low, high))  # noqa: PLW2901
            if self.symmetric:
                high = np.maximum(np.abs(low), np.abs(high))  # noqa: PLW2901
                low = -high  # noqa: PLW2901
            found[name] = (low, high)
        self._seen = {}
        known = self.calibrate_tensors_range.data if self.calibrate_tensors_range is not None else {}
        merged = {name: (value.lowest, value.highest) for name, value in known.items()}
        for name, pair in found.items():
            merged[name] = self._merge(merged[name], pair) if name in merged else pair
        self.calibrate_tensors_range = TensorsData(CalibrationMethod.MinMax, merged)

    def _merge(self, old, new):
        if self.moving_average:
            return tuple(np.asarray(a + a.dtype.type(self.averaging_constant) * (b - a)) for a, b in zip(old, new))
        return np.minimum(old[0], new[0]), np.maximum(old[1], new[1])

    def compute_data(self) -> TensorsData:
        return self.calibrate_tensors_range


class HistogramCalibrater(CalibraterBase):
    """What needs the distribution of numbers. `method` is "entropy", "percentile" or "distribution"."""

    bits = True

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx",
        use_external_data_format=False, method="percentile", symmetric=False, num_bins=2048, num_quantized_bins=128,
        percentile=99.999, scenario="same",
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, symmetric, use_external_data_format
        )
        names = {each.name.lower(): each for each in CalibrationMethod if each is not CalibrationMethod.MinMax}
        if method not in names:
            raise ValueError(f"method {method!r} is none of {', '.join(names)}")
        if scenario not in ("same", "p3"):
            raise ValueError(f"scenario {scenario!r} is none of same, p3")
        self.method = names[method]
        self.num_bins = num_bins
        self.num_quantized_bins = num_quantized_bins
        self.percentile = percentile
        self.scenario = scenario

    def compute_data(self) -> TensorsData:
        if self.infer_session is None or not self.samples:
            raise ValueError("No data is collected: call collect_data before compute_data.")
        found = {name: self._data(observation) for name, observation in self.infer_session.observations.items()}
        return TensorsData(self.method, found)

    def _data(self, observation: Observation) -> TensorData:
        if self.method is CalibrationMethod.Distribution:
            return self._distribution(observation)
        if self.method is CalibrationMethod.SquaredError:
            low, high = squared_error_range(observation, self.num_quantized_bins, self.symmetric)
            return TensorData(lowest=low, highest=high)
        if self.method is CalibrationMethod.Percentile:
            (low, high), counts, edges = percentile_range(observation, self.num_bins, self.percentile, self.symmetric)
        else:
            (low, high), counts, edges = entropy_range(observation, self.num_bins, self.num_quantized_bins)
            if self.symmetric:
                high = max(abs(low), abs(high))
                low = -high
        return TensorData(lowest=np.asarray(low), highest=np.asarray(high), hist=counts, hist_edges=edges, bins=len(counts))

    def _distribution(self, observation: Observation) -> TensorData:
        """Mean and deviation: of the numbers ("same"), or of their cube roots ("p3")."""
        if self.num_bins < 512:
            raise ValueError(f"a distribution takes 512 bins or more, unlike {self.num_bins}")
        largest = max(-float(observation.ends()[0]), float(observation.ends()[1]))
        counts, edges = observation.linear(self.num_bins, -largest, largest)
        mean, deviation = observation.moments()
        if self.scenario == "p3":
            middles = np.cbrt((edges[:-1].astype(np.float64) + edges[1:]) / 2)
            total = max(counts.sum(), 1)
            mean = (counts * middles).sum() / total
            deviation = max((counts * middles**2).sum() / total - mean**2, 0.0) ** 0.5
            mean, deviation = np.asarray(mean, edges.dtype), np.asarray(deviation, edges.dtype)
        return TensorData(avg=mean, std=deviation, hist=counts, hist_edges=edges, lowest=edges.min(), highest=edges.max())


class EntropyCalibrater(HistogramCalibrater):
    """The range whose rounding changes the distribution least. With as many bins as levels there is but one range."""

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx",
        use_external_data_format=False, method="entropy", symmetric=False, num_bins=2048, num_quantized_bins=128,
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, symmetric,
            num_bins, num_quantized_bins,
        )  # fmt: skip


class SquaredErrorCalibrater(HistogramCalibrater):
    """The range in which rounding to `num_quantized_bins` levels has the least squared error."""

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx",
        use_external_data_format=False, method="squarederror", symmetric=False, num_quantized_bins=256,
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, symmetric,
            num_quantized_bins=num_quantized_bins,
        )  # fmt: skip


class PercentileCalibrater(HistogramCalibrater):
    """The range that holds `percentile` % of the numbers."""

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx",
        use_external_data_format=False, method="percentile", symmetric=False, num_bins=2048, percentile=99.999,
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, symmetric,
            num_bins, percentile=percentile,
        )  # fmt: skip


class DistributionCalibrater(HistogramCalibrater):
    """Means and standard deviations, from which scales of floats of 8 bits follow."""

    def __init__(
        self, model_path, op_types_to_calibrate=None, augmented_model_path="augmented_model.onnx",
        use_external_data_format=False, method="distribution", num_bins=2048, scenario="same",
    ):  # fmt: skip
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method,
            num_bins=num_bins, scenario=scenario,
        )  # fmt: skip


_CALIBRATERS = {
    CalibrationMethod.MinMax: (
        MinMaxCalibrater,
        ("symmetric", "moving_average", "averaging_constant", "max_intermediate_outputs", "per_channel"),
    ),
    CalibrationMethod.Entropy: (EntropyCalibrater, ("symmetric", "num_bins", "num_quantized_bins")),
    CalibrationMethod.SquaredError: (SquaredErrorCalibrater, ("symmetric", "num_quantized_bins")),
    CalibrationMethod.Percentile: (PercentileCalibrater, ("symmetric", "num_bins", "percentile")),
    CalibrationMethod.Distribution: (DistributionCalibrater, ("num_bins", "scenario")),
}


def create_calibrator(
    model, op_types_to_calibrate=None, augmented_model_path=None,
    calibrate_method=CalibrationMethod.MinMax, use_external_data_format=False, providers=None, extra_options=None,
):  # fmt: skip
    """A calibrater of a method. Of `extra_options` it takes those that the method has; None stands for its default.

    :param augmented_model_path: where to write a model with what is observed as further outputs, for readers that open
        it; None writes none.
    """
    if calibrate_method not in _CALIBRATERS:
        raise ValueError(f"{calibrate_method!r} is no CalibrationMethod")
    kind, names = _CALIBRATERS[calibrate_method]
    given = {name: (extra_options or {}).get(name) for name in names}
    calibrater = kind(
        model, op_types_to_calibrate, augmented_model_path or "augmented_model.onnx",
        use_external_data_format=use_external_data_format,
        **{name: value for name, value in given.items() if value is not None},
    )  # fmt: skip
    if augmented_model_path:
        calibrater.augment_graph()
    if providers:
        calibrater.execution_providers = providers
    calibrater.create_inference_session()
    return calibrater
