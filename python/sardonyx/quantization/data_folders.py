"""Samples in folders: .npz files of inputs by their names, or test_data_set_* folders of input_*.pb as ONNX has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto


def _number(path: Path) -> int:
    digits = path.stem.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def read_data_set(folder: Path, names) -> dict:
    """One sample: the arrays of input_0.pb, input_1.pb, … by their own names, or else in the order of `names`."""
    sample = {}
    for path in sorted(folder.glob("input_*.pb"), key=_number):
        tensor = TensorProto.FromString(path.read_bytes())
        place = _number(path)
        name = tensor.name or (names[place] if place < len(names) else "")
        if not name:
            raise ValueError(f"'{path}' is input {place}, and the model has {len(names)} inputs")
        sample[name] = onnx.numpy_helper.to_array(tensor)
    return sample


def samples_of_folder(folder: Path, names=()):
    """All samples of a folder, in the order of their names. `names` are those of the model's inputs."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder '{folder}' of samples")
    arrays = sorted(folder.glob("*.npz"))
    sets = sorted(folder.glob("test_data_set_*"), key=_number)
    if not arrays and not sets:
        raise ValueError(f"folder '{folder}' has no sample: neither a .npz file nor a folder test_data_set_0")
    for path in arrays:
        with np.load(path) as data:
            yield {name: data[name] for name in data.files}
    for path in sets:
        yield read_data_set(path, names)


class FolderDataReader:
    """Samples of a folder, as a reader that can go back to its start."""

    def __init__(self, folder, names=()):
        self.folder, self.names = Path(folder), list(names)
        self.rewind()

    def rewind(self):
        self._samples = samples_of_folder(self.folder, self.names)

    def __deepcopy__(self, memo):
        return FolderDataReader(self.folder, self.names)

    def get_next(self):
        return next(self._samples, None)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._samples)
