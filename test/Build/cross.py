"""The interface of onnx.backend over programs for another machine, run by an emulator.

    CROSS_TARGET=aarch64-linux-gnu CROSS_RUN=qemu-aarch64 conformance.py --engine cross

Values that files of numpy cannot hold (strings, sequences, optionals) raise NotImplementedError.
"""

import os
import re
import subprocess
import tempfile

import numpy as np
import onnx
import sardonyx
from onnx.backend.base import BackendRep, namedtupledict
from onnx.helper import tensor_dtype_to_np_dtype

_TARGET = os.environ.get("CROSS_TARGET", "aarch64-linux-gnu")
_RUN = os.environ.get("CROSS_RUN", "qemu-aarch64").split()
_CPUS = [name for name in os.environ.get("CROSS_CPUS", "").split(",") if name]


def _file_name(name):
    """As the program names the file of an output."""
    name = re.sub(r"[^A-Za-z0-9.-]", "_", name)
    return ("_" if not name or name[0] == "." else "") + name + ".npy"


def _bits(array):
    """What numpy has no type for, as unsigned integers."""
    if array.dtype.kind in "fiubc" and array.dtype.isbuiltin == 1:
        return array
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


class Rep(BackendRep):
    def __init__(self, folder, program, model):
        self.folder, self.program, self.model = folder, program, model
        given = {value.name for value in model.graph.initializer}
        self.names = [value.name for value in model.graph.input if value.name not in given]

    def run(self, inputs, **kwargs):
        command = [*_RUN, self.program, "--output-dir", os.path.join(self.folder.name, "out")]
        for number, (name, value) in enumerate(zip(self.names, inputs)):
            if isinstance(value, list) or value is None or np.asarray(value).dtype.kind in "OUS":
                raise NotImplementedError("no tensor of numbers")
            path = os.path.join(self.folder.name, f"{number}.npy")
            np.save(path, np.ascontiguousarray(_bits(np.asarray(value))).reshape(np.shape(value)))
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"the program ended with {done.returncode}")
        values = []
        for output in self.model.graph.output:
            path = os.path.join(self.folder.name, "out", _file_name(output.name))
            if not os.path.exists(path):
                raise NotImplementedError("no tensor of numbers")
            array = np.load(path)
            dtype = np.dtype(tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type))
            values.append(array if array.dtype == dtype else array.view(dtype))
        return namedtupledict("Outputs", [output.name for output in self.model.graph.output])(*values)


def prepare(model, device="CPU", **kwargs):
    folder = tempfile.TemporaryDirectory()
    program = os.path.join(folder.name, "program")
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    sardonyx.build(model, program, target=_TARGET, cpus=_CPUS, static=True, options=options)
    return Rep(folder, program, model)


def supports_device(device):
    return device.upper().startswith("CPU")


def is_compatible(model, device="CPU", **kwargs):
    return supports_device(device)
