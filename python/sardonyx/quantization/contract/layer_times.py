"""What each layer of a model takes, by the times of its kernels."""

from __future__ import annotations

import json
import re

import numpy as np

from ..model_files import temporary_folder

_PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "MatMulInteger", "ConvInteger", "MatMulNBits")


def layer_times(model, samples, threads=None, runs=9) -> dict[str, float]:
    """{node: µs of the kernel that computes it, median of some runs}. Of nodes in one kernel the first product has its time.

    :param samples: feeds, gone through in turn.
    """
    from sardonyx import InferenceSession, SessionOptions

    options = SessionOptions()
    if threads:
        options.intra_op_num_threads = threads
    options.enable_profiling = True
    with temporary_folder() as folder:
        options.profile_file_prefix = str(folder / "profile")
        session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = [entry.name for entry in session.get_inputs()]
        for run in range(runs + 1):
            feeds = samples[run % len(samples)]
            session.run(None, {name: feeds[name] for name in wanted if name in feeds})
        events = json.loads(open(session.end_profiling()).read())
    events = events["traceEvents"] if isinstance(events, dict) else events
    times: dict[str, list] = {}
    run = -1
    for event in events:
        if event.get("name") == "model_run":
            run += 1
        elif event.get("cat") == "Node" and run > 0:  # the first run warms up
            name = _layer(event["args"].get("nodes", ()))
            if name:
                times.setdefault(name, [0.0] * (runs + 1))[run] += event["dur"]
    return {name: float(np.median(each[1:])) for name, each in times.items()}


def _layer(nodes) -> str:
    """The node that a kernel is named for, of texts like `'/conv1/Conv' (Conv)`."""
    found = [re.fullmatch(r"'(.*)' \((\w+)\)", text) for text in nodes]
    named = [match.groups() for match in found if match]
    return next((name for name, kind in named if kind in _PRODUCTS), named[0][0] if named else "")
