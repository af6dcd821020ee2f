"""Ranges of tensors as calibration finds them, and the file that keeps them."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from enum import Enum
from pathlib import Path

import numpy as np


class CalibrationMethod(Enum):
    """How a range follows from what was seen: all of it, what rounds best (by entropy or squared error), most of it, or its deviation."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3
    SquaredError = 4


class TensorData:
    """What calibration found of a tensor: some of lowest, highest, avg, std, hist, hist_edges, bins."""

    _allowed = frozenset(["avg", "std", "lowest", "highest", "hist", "hist_edges", "bins"])
    _floats = frozenset(["avg", "std", "lowest", "highest", "hist_edges"])

    def __init__(self, **kwargs):
        self._attrs = list(kwargs)
        for name, value in kwargs.items():
            if name not in self._allowed:
                raise ValueError(f"TensorData has no '{name}'; it has {', '.join(sorted(self._allowed))}")
            kind = getattr(value, "dtype", None)
            if name in self._floats and kind not in (np.float16, np.float32):
                raise ValueError(f"'{name}' of a TensorData is an array of float32 or float16, not of {kind or type(value)}")
            setattr(self, name, value)

    def _pair(self, *names):
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            raise AttributeError(f"this TensorData has no '{missing[0]}', but {', '.join(self._attrs) or 'nothing'}")
        return tuple(getattr(self, name) for name in names)

    @property
    def range_value(self):
        return self._pair("lowest", "highest")

    @property
    def avg_std(self):
        return self._pair("avg", "std")

    def to_dict(self) -> dict:
        return {**{name: getattr(self, name) for name in self._attrs}, "CLS": type(self).__name__}

    @classmethod
    def from_dict(cls, d: dict) -> TensorData:
        kept = {}
        for name, value in d.items():
            if name == "CLS":
                continue
            if isinstance(value, dict) and value.get("CLS") == "numpy.array":
                value = np.array(value["data"], np.dtype(value["dtype"]))  # noqa: PLW2901
            elif name in cls._floats:
                value = np.array(value, np.float32)  # noqa: PLW2901
            kept[name] = value
        return cls(**kept)


class TensorsData:
    """{tensor: TensorData}, and the method that found them. Entries may be given as tuples (lowest, highest[, hist, bins])."""

    def __init__(self, calibration_method, data):
        self.calibration_method = calibration_method
        self.data = {}
        for name, value in data.items():
            if not isinstance(name, str):
                raise TypeError(f"names of tensors are text, not {type(name).__name__}")
            if isinstance(value, tuple) and len(value) in (2, 4):
                value = TensorData(**dict(zip(("lowest", "highest", "hist", "bins"), value)))  # noqa: PLW2901
            if not isinstance(value, TensorData):
                raise TypeError(f"the range of '{name}' must be a TensorData, not {type(value).__name__}")
            self.data[name] = value

    def __iter__(self):
        yield from self.data

    def __contains__(self, key):
        return key in self.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        if key not in self.data:
            raise RuntimeError(f"'{key}' has no range that could be changed")
        self.data[key] = value

    def keys(self):
        return self.data.keys()

    def values(self):
        return self.data.values()

    def items(self):
        return self.data.items()

    def to_dict(self) -> dict:
        return {"CLS": type(self).__name__, "data": self.data, "calibration_method": self.calibration_method}

    @classmethod
    def from_dict(cls, d: dict) -> TensorsData:
        method = d["calibration_method"]
        if isinstance(method, dict):
            method = CalibrationMethod[method["value"].split(".")[-1]]
        return cls(method, {name: TensorData.from_dict(value) for name, value in d["data"].items()})


class CalibrationCacheEncoder(json.JSONEncoder):
    """Writes TensorsData, and arrays of numpy's, as JSON."""

    def default(self, o):
        if isinstance(o, (TensorData, TensorsData)):
            return o.to_dict()
        if isinstance(o, np.ndarray):
            return {"data": o.tolist(), "dtype": str(o.dtype), "CLS": "numpy.array"}
        if isinstance(o, CalibrationMethod):
            return {"CLS": type(o).__name__, "value": str(o)}
        if isinstance(o, np.generic):
            return o.item()
        return super().default(o)


def save_tensors_data(tensors_data: TensorsData, path, *, smooth_quant: bool = False) -> None:
    """Writes ranges as JSON, the file as a whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**tensors_data.to_dict(), "smooth_quant": smooth_quant}, cls=CalibrationCacheEncoder)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".calibration_", suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def load_tensors_data(path) -> TensorsData:
    """Reads what `save_tensors_data` wrote."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no file '{path}' of ranges")
    if not path.is_file():
        raise ValueError(f"'{path}' is no file of ranges")
    return TensorsData.from_dict(json.loads(path.read_text()))
