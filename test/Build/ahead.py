"""The interface of onnx.backend over models that were built ahead of time.

    conformance.py --engine ahead        with this folder in PYTHONPATH

Each model becomes a shared library, which runs in a process of its own: a thousand of them stay in one otherwise.
"""

import multiprocessing
import os
import tempfile

import sardonyx
from onnx.backend.base import BackendRep, namedtupledict

CPUS = [name for name in os.environ.get("AHEAD_CPUS", "").split(",") if name]


def _answer(path, feeds, pipe):
    try:
        model = sardonyx.load(path, threads=1)
        pipe.send(([output.name for output in model.get_outputs()], model.run(None, feeds)))
    except Exception as failure:
        pipe.send(failure)


class Rep(BackendRep):
    def __init__(self, folder, path, names):
        self.folder, self.path, self.names = folder, path, names

    def run(self, inputs, **kwargs):
        feeds = dict(zip(self.names, inputs))
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=_answer, args=(self.path, feeds, theirs))
        process.start()
        theirs.close()
        try:
            answer = ours.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"the process ended with {process.exitcode}") from None
        process.join()
        if isinstance(answer, Exception):
            raise answer
        names, values = answer
        return namedtupledict("Outputs", names)(*values)


def prepare(model, device="CPU", **kwargs):
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "model.so")
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    sardonyx.build(model, path, cpus=CPUS, options=options)
    given = {value.name for value in model.graph.initializer}
    return Rep(folder, path, [value.name for value in model.graph.input if value.name not in given])


def supports_device(device):
    return device.upper().startswith("CPU")


def is_compatible(model, device="CPU", **kwargs):
    return supports_device(device)
