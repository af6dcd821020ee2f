#!/usr/bin/env python3
"""Rightness and speed on a GPU, prepared on a machine that has none.

    utils/gpu.py pack FOLDER[.zip]  here: cases and networks as programs, what they take and what must come of it
    FOLDER/gpu.py run               there: needs CUDA's driver and Python, and nothing of ours besides the folder

`pack` builds cases of ONNX's suite (--every N, 100) and networks of benchmarks/networks.py (--networks A,B) ahead of time
for nvidia:sm_90a,sm_80 (--devices), networks also with f16 operands; what networks compute is known in f64. --fake packs the
driver that needs no GPU, and only what it runs in a minute; `run` then uses it. --jobs N programs are built at a time.

`run` runs each program by itself, for --timeout seconds at most, so that a hang or a lost device costs one. Groups (--only):
cases, networks, and memory, where compute-sanitizer is there: it looks at the networks' accesses. Tables come last;
results.json in the folder (--output) has all. The status is 1 where anything is wrong.
"""

import argparse
import ast
import concurrent.futures
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

INDEX, FAKE = "index.json", "libsdx-fakecuda.so"
# Small enough for a folder that travels: about 60 MB with every 100th case.
NETWORKS = ["3x3 of 64 channels", "densenet", "mobilenet v2", "bert", "mlp-mixer"]
FAKE_NETWORKS = ["3x3 of 16 channels", "mlp-mixer"]
# Errors relative to the largest element, of operands in f32 and rounded to f16.
LIMITS = {"f32": 2e-4, "f16": 2e-2}
NPY_LETTERS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}


# What runs there: no numpy.


def read_npy(path):
    """(type, shape, elements) of a file of numpy's."""
    data = Path(path).read_bytes()
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else (struct.unpack("<I", data[8:12])[0], 12)
    head = ast.literal_eval(data[start : start + size].decode("latin1"))
    if head["fortran_order"]:
        raise ValueError("columns come first")
    kind = head["descr"].lstrip("<|=")
    count = math.prod(head["shape"])
    return kind, tuple(head["shape"]), struct.unpack_from(f"<{count}{NPY_LETTERS[kind]}", data, start + size)


def compare_case(got, wanted, rtol, atol):
    """Why a result is not the one that is wanted, or nothing: ONNX's own rule."""
    if got[:2] != wanted[:2]:
        return f"{got[0]} {list(got[1])} in the place of {wanted[0]} {list(wanted[1])}"
    for i, (ours, theirs) in enumerate(zip(got[2], wanted[2])):
        same = ours == theirs or (ours != ours and theirs != theirs)
        if not same and not (got[0][0] == "f" and abs(ours - theirs) <= atol + rtol * abs(theirs)):
            return f"element {i} is {ours}, expected {theirs}"
    return ""


def relative_error(got, wanted):
    if got[1] != wanted[1]:
        return math.inf
    largest = max(map(abs, wanted[2]), default=0) or 1
    return max((abs(a - b) if math.isfinite(a) else math.inf for a, b in zip(got[2], wanted[2])), default=0) / largest


class Runs:
    """Programs of a folder, on the device."""

    def __init__(self, folder, timeout, fake):
        self.folder, self.timeout = folder, timeout
        self.environment = dict(os.environ)
        if fake:
            self.environment["SARDONYX_CUDA_DRIVER"] = str(folder / FAKE)

    def run(self, item, program, repeat=1, before=()):
        """(seconds, what it printed, where its outputs are), or why it failed as a sentence."""
        place = self.folder / item["place"]
        output = place / f"out_{program}"
        shutil.rmtree(output, ignore_errors=True)
        (place / program).chmod(0o755)  # which archives forget
        command = [*before, str(place / program), "--output-dir", str(output), "--repeat", str(repeat)]
        for name, file in item["inputs"].items():
            command += ["--input", f"{name}={place / file}"]
        start = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout, env=self.environment)
        except subprocess.TimeoutExpired:
            return f"no end within {self.timeout:g} s"
        said = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
        if done.returncode:
            return f"status {done.returncode}: {said[-1][:300]}"
        return time.monotonic() - start, done.stdout, output


def run_cases(runs, index):
    rows, wrong = [], []
    for item in index["cases"]:
        done = runs.run(item, "program")
        why = done if isinstance(done, str) else ""
        for name, file in item["outputs"].items() if not why else ():
            got = read_npy(done[2] / (re.sub(r"[^A-Za-z0-9.-]", "_", name) + ".npy"))
            why = why or compare_case(got, read_npy(runs.folder / item["place"] / file), item["rtol"], item["atol"])
        if why:
            wrong.append(f"case {item['name']}: {why}")
    rows.append(["cases", str(len(index["cases"])), "wrong", str(len(wrong))])
    return rows, wrong


def run_networks(runs, index):
    rows, wrong = [["network", "precision", "error", "ms a run (best)", "s of the process", "MB"]], []
    for item in index["networks"]:
        place = runs.folder / item["place"]
        for precision in item["precisions"]:
            done = runs.run(item, precision, repeat=index["repeat"])
            if isinstance(done, str):
                wrong.append(f"network {item['name']} ({precision}): {done}")
                continue
            error = relative_error(read_npy(done[2] / "y.npy"), read_npy(place / "expected.npy"))
            if not error <= LIMITS[precision]:
                wrong.append(f"network {item['name']} ({precision}): an error of {error:.2g}, at most {LIMITS[precision]:g} is right")
            best = re.search(r"([\d.]+) ms a run", done[1])
            size = (place / precision).stat().st_size / 1e6
            rows.append([item["name"], precision, f"{error:.1e}", best[1] if best else "", f"{done[0]:.2f}", f"{size:.1f}"])
    return rows, wrong


def run_memory(runs, index):
    sanitizer = shutil.which("compute-sanitizer")
    if not sanitizer:
        return [["memory", "not looked at: there is no compute-sanitizer"]], []
    wrong = []
    for item in index["networks"]:
        for tool in ("memcheck", "racecheck"):
            done = runs.run(item, "f32", before=[sanitizer, "--tool", tool, "--error-exitcode", "9"])
            if isinstance(done, str):
                wrong.append(f"{tool} of {item['name']}: {done}")
    return [["memory", f"{len(index['networks'])} networks", "wrong", str(len(wrong))]], wrong


GROUPS = {"cases": run_cases, "networks": run_networks, "memory": run_memory}


def describe_device():
    """What the driver's own tool says of the GPU."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return "no nvidia-smi"
    done = subprocess.run([tool, "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip()


def print_table(rows):
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def run(args):
    folder = Path(args.folder).resolve()
    index = json.loads((folder / INDEX).read_text())
    runs = Runs(folder, args.timeout, index["fake"])
    results, wrong = {"device": "fake" if index["fake"] else describe_device()}, []
    for name in args.only.split(",") if args.only else GROUPS:
        print(f"{name} ...", flush=True)
        rows, faults = GROUPS[name](runs, index)
        results[name] = rows
        wrong += faults
    Path(args.output or folder / "results.json").write_text(json.dumps({**results, "wrong": wrong}, indent=1))
    for fault in wrong:
        print(fault)
    print(f"device: {results.pop('device')}")
    for rows in results.values():
        print()
        print_table(rows)
    return 1 if wrong else 0


# What packs here.


class Packer:
    def __init__(self, args):
        self.root = Path(__file__).resolve().parent.parent
        self.args, self.archive = args, args.folder.endswith(".zip")
        self.folder = Path(args.folder.removesuffix(".zip")).resolve()
        self.tool = args.build / "bin/sardonyx"
        self.target = f"nvidia:{args.devices},cpu"

    def build(self, model, program, *options):
        """Whether the model became a program."""
        # The machine with the GPU is another one.
        command = [self.tool, "build", model, "-o", program, "-q", "--target", self.target, "--cpu", "x86-64-v3", *options]
        return not subprocess.run([str(word) for word in command], capture_output=True).returncode

    def pack_case(self, name, case, materialize, rtol):
        import numpy as np
        import onnx

        model, data_sets = materialize(case)
        inputs, expected = data_sets[0]
        held = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in held]
        if any(value.type.HasField("optional_type") for value in model.graph.input):
            return None  # programs take tensors
        for value in (*inputs, *expected):
            if type(value) is not np.ndarray or value.dtype.str[1:] not in NPY_LETTERS:
                return None  # what files of numpy cannot hold
        place = self.folder / "cases" / name
        place.mkdir(parents=True)
        onnx.save(model, place / "model.onnx")
        built = self.build(place / "model.onnx", place / "program")
        (place / "model.onnx").unlink()
        if not built:
            shutil.rmtree(place)
            return None
        item = {"name": name, "place": f"cases/{name}", "inputs": {}, "outputs": {}, "rtol": rtol, "atol": case.atol}
        for kind, values, titles in (("in", inputs, names), ("out", expected, [value.name for value in model.graph.output])):
            for i, (title, value) in enumerate(zip(titles, values)):
                np.save(place / f"{kind}_{i}.npy", np.ascontiguousarray(value).reshape(value.shape))
                item["inputs" if kind == "in" else "outputs"][title] = f"{kind}_{i}.npy"
        return item

    def pack_network(self, name):
        import numpy as np

        sys.path.insert(0, str(self.root / "benchmarks"))
        import networks

        net, data = networks.NETWORKS[name](1)
        place = self.folder / "networks" / re.sub(r"\W+", "_", name)
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(data)
        np.save(place / "x.npy", net.feeds["x"])
        np.save(place / "expected.npy", net.expected)
        made = [p for p in LIMITS if self.build(place / "model.onnx", place / p, "--precision", p)]
        (place / "model.onnx").unlink()
        return {"name": name, "place": str(place.relative_to(self.folder)), "inputs": {"x": "x.npy"}, "precisions": made}

    def pack(self):
        sys.path.insert(0, str(self.root / "test/Conformance"))
        from test_onnx_backend import CASES, PASSING, UNPASSABLE, materialize, rtol_on_devices

        self.folder.mkdir(parents=True)
        light = [name for name in sorted(PASSING - UNPASSABLE) if CASES[name].model is not None]
        names = self.args.networks.split(";") if self.args.networks else FAKE_NETWORKS if self.args.fake else NETWORKS
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            cases = [pool.submit(self.pack_case, name, CASES[name], materialize, rtol_on_devices(name)) for name in light[:: self.args.every]]
            nets = [pool.submit(self.pack_network, name) for name in names]
            index = {
                "fake": self.args.fake,
                "repeat": 2 if self.args.fake else 50,
                "cases": [case for task in cases if (case := task.result())],
                "networks": [task.result() for task in nets],
            }
        if self.args.fake:
            shutil.copy(self.args.build / "lib" / FAKE, self.folder / FAKE)
        shutil.copy(__file__, self.folder / "gpu.py")
        (self.folder / INDEX).write_text(json.dumps(index, indent=1))
        if self.archive:
            shutil.make_archive(str(self.folder), "zip", self.folder.parent, self.folder.name)
        size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        print(f"{len(index['cases'])} of {len(cases)} cases and {len(names)} networks, {size / 1e6:.1f} MB in {self.folder}")
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing, running = commands.add_parser("pack"), commands.add_parser("run")
    packing.add_argument("folder")
    packing.add_argument("--build", type=Path, default=Path(__file__).resolve().parent.parent / "build/release")
    packing.add_argument("--devices", default="sm_90a,sm_80")
    packing.add_argument("--every", type=int, default=100)
    packing.add_argument("--networks", default="", help="names of benchmarks/networks.py between semicolons")
    packing.add_argument("--fake", action="store_true")
    packing.add_argument("--jobs", type=int, default=os.cpu_count())
    running.add_argument("folder", nargs="?", default=Path(__file__).resolve().parent)
    running.add_argument("--only", default="", help=f"groups: {','.join(GROUPS)}")
    running.add_argument("--timeout", type=float, default=60)
    running.add_argument("--output", default="")
    args = parser.parse_args()
    return run(args) if args.command == "run" else Packer(args).pack()


if __name__ == "__main__":
    sys.exit(main())
