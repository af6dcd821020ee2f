#!/usr/bin/env python3
"""Count the kernels that a run of a model starts on a GPU, without one.

    utils/launches.py MODEL.onnx ...                    a line each
    utils/launches.py MODEL.onnx --list                 every launch, in order: kernel, and the node that it is for
    utils/launches.py MODEL.onnx --fix seq=128 --precision f16 --device sm_90a

Other options go to `sardonyx compile`. Counted is what the compiled host program starts: launches in a loop of the host once,
and those without blocks at the sizes of a run, too, so sizes are fixed by --fix, or are those of MODEL.npz where that has a
feed of each input. With several launches a function is named as often.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))


def fixed_sizes(model):
    """NAME=SIZE of the model's open sizes, by the feeds beside it."""
    feeds = model.with_suffix(".npz")
    if not feeds.exists():
        return []
    import numpy
    import onnx

    sizes = {}
    with numpy.load(feeds) as arrays:
        for value in onnx.load(model, load_external_data=False).graph.input:
            dims = value.type.tensor_type.shape.dim
            if value.name in arrays:
                sizes |= {dim.dim_param: size for dim, size in zip(dims, arrays[value.name].shape) if dim.dim_param}
    return [f"{name}={size}" for name, size in sizes.items()]


def find_body(lines, start):
    """The lines of the function that begins at line `start`."""
    end = next(i for i in range(start + 1, len(lines)) if lines[i] == "  }")
    return lines[start + 1 : end]


def find_launches(text):
    """The functions of the kernels that the host program starts, in order, of the text of the phase `codegen`."""
    lines, counts, main = text.splitlines(), {}, []
    for i, line in enumerate(lines):
        if not (name := re.match(r"  func\.func (?:private )?@([\w$.]+)\(.*\{$", line)):
            continue
        body = find_body(lines, i)
        counts[name[1]] = sum("call @sdx_rt_launch(" in inner for inner in body)
        if name[1] == "main":
            main = body
    launches = []
    for line in main:
        if "call @sdx_rt_launch(" in line:
            launches.append("main")
        elif call := re.search(r"\bcall @([\w$.]+)\(", line):
            launches += [call[1]] * counts.get(call[1], 0)
    return launches


def count(model, arguments, rest):
    command = [str(BUILD / "bin" / "sardonyx"), "compile", str(model), "--to", "codegen", "--elide-weights", *rest]
    command += ["--device", arguments.device, "--precision", arguments.precision]
    for size in arguments.fix or fixed_sizes(model):
        command += ["--fix", size]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model.mlir"
        done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{model}: {done.stderr.strip()}")
        return find_launches(output.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--device", default="sm_90a")
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--fix", action="append")
    parser.add_argument("--list", action="store_true")
    arguments, rest = parser.parse_known_args()
    for model in arguments.models:
        launches = count(model, arguments, rest)
        print(f"{model.stem:24} {len(launches)} launches")
        if arguments.list:
            print("\n".join(f"  {name}" for name in launches))


if __name__ == "__main__":
    main()
