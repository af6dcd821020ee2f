"""The interface of onnx.backend over models in WebAssembly, run by Node.

    conformance.py --engine web
"""

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import sardonyx
from onnx.backend.base import BackendRep, namedtupledict
from onnx.helper import tensor_dtype_to_np_dtype

RUNNER = Path(__file__).with_name("web.mjs")


def encode(value):
    if value is None:
        return None
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {"keys": encode(np.array(list(value))), "values": encode(np.array(list(value.values())))}
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        strings = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1)]
        return {"strings": strings, "dims": list(array.shape)}
    contents = np.ascontiguousarray(array).tobytes()
    return {"bytes": base64.b64encode(contents).decode(), "dims": list(array.shape)}


def decode(value, type_proto):
    """A value of the type that the model declares."""
    if value is None:
        return None
    kind = type_proto.WhichOneof("value")
    if kind == "optional_type":
        return decode(value, type_proto.optional_type.elem_type)
    if kind == "sequence_type":
        return [decode(item, type_proto.sequence_type.elem_type) for item in value]
    if kind == "map_type":
        return dict(value["map"])
    if "strings" in value:
        return np.array(value["strings"], dtype=object).reshape(value["dims"])
    dtype = np.dtype(tensor_dtype_to_np_dtype(type_proto.tensor_type.elem_type))
    return np.frombuffer(base64.b64decode(value["bytes"]), dtype).reshape(value["dims"])


def run(module, inputs, options=None):
    """What the module answers: {"outputs": ...} or {"error": ...}, and what it says on the side."""
    given = json.dumps({"inputs": {name: encode(value) for name, value in inputs.items()}, "options": options or {}})
    done = subprocess.run(["node", RUNNER, module], input=given, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Rep(BackendRep):
    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        given = {value.name for value in model.graph.initializer}
        self.names = [value.name for value in model.graph.input if value.name not in given]

    def run(self, inputs, **kwargs):
        answer = run(os.path.join(self.folder.name, "model.mjs"), dict(zip(self.names, inputs)))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        values = [decode(answer["outputs"][output.name], output.type) for output in self.model.graph.output]
        return namedtupledict("Outputs", [output.name for output in self.model.graph.output])(*values)


def prepare(model, device="CPU", **kwargs):
    folder = tempfile.TemporaryDirectory()
    sardonyx.build(model, os.path.join(folder.name, "model.wasm"))
    return Rep(folder, model)


def supports_device(device):
    return device.upper().startswith("CPU")


def is_compatible(model, device="CPU", **kwargs):
    return supports_device(device)
