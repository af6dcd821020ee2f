#!/usr/bin/env python3
"""Writes what the libFuzzer targets start from: corpus.py FOLDER, one folder in it for each target.

importer: models of ONNX's conformance suite; opt: the modules of the lit tests; array: .npy and
.npz files of every kind.
"""

import io
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = 16_384  # bytes


def models(folder):
    from hostile import corpus

    for i, model in enumerate(corpus()):
        data = model.SerializeToString()
        if len(data) < SMALL:
            (folder / f"model{i}").write_bytes(data)


def modules(folder):
    for room in ("Conversion", "Dispatch", "Dialect", "Transforms", "Pipelines"):
        for path in sorted((ROOT / "test" / room).rglob("*.mlir")):
            for i, part in enumerate(path.read_text().split("// -----")):
                lines = [line for line in part.splitlines() if line.strip() and not line.lstrip().startswith("//")]
                if lines and sum(map(len, lines)) < SMALL:
                    (folder / f"{path.stem}{i}").write_text("\n".join(lines) + "\n")


def arrays(folder):
    types = "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 c16 V2 >f4 O".split()
    for i, code in enumerate(types):
        array = np.zeros((2, 3), code)
        np.save(folder / f"plain{i}.npy", array, allow_pickle=True)
        np.save(folder / f"columns{i}.npy", np.asfortranarray(array), allow_pickle=True)
    np.save(folder / "scalar.npy", np.float32(1))
    np.save(folder / "empty.npy", np.zeros((0, 3, 2), np.float32))
    for version in [(1, 0), (2, 0), (3, 0)]:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.arange(12, dtype=np.int64).reshape(3, 4), version=version)
        (folder / f"version{version[0]}.npy").write_bytes(buffer.getvalue())
    both = {"x": np.ones((3, 4), np.float32), "y": np.arange(5)}
    np.savez(folder / "stored.npz", **both)
    np.savez_compressed(folder / "deflated.npz", **both)


def main():
    for name, write in {"importer": models, "opt": modules, "array": arrays, "cache": lambda folder: None}.items():
        folder = Path(sys.argv[1]) / name
        if not folder.exists():
            folder.mkdir(parents=True)
            write(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
