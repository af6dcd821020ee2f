"""Runs the samples of a folder through the model there, in a process that has seen nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main(folder: Path, threads: int) -> None:
    from sardonyx import InferenceSession, SessionOptions

    options = SessionOptions()
    if threads:
        options.intra_op_num_threads = threads
    session = InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    wanted = [entry.name for entry in session.get_inputs()]
    for place in range(len(list(folder.glob("feeds_*.npz")))):
        with np.load(folder / f"feeds_{place}.npz") as feeds:
            outputs = session.run(None, {name: feeds[name] for name in wanted if name in feeds.files})
        np.savez(folder / f"outputs_{place}.npz", **{str(each): value for each, value in enumerate(outputs)})
    (folder / "onnxruntime.txt").write_text(_loads_in_onnxruntime(folder))


def _loads_in_onnxruntime(folder) -> str:
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError:
        return "not installed"
    try:
        onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    except Exception as error:  # what it raises has no common class
        return f"refuses the model: {str(error)[:200]}"
    return f"{onnxruntime.__version__} loads the model"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
