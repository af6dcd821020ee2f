#!/usr/bin/env python3
"""Times models in WebAssembly beside the same compiled for this machine, and looks at what both answer.

    benchmarks/web.py MODEL.onnx ... [--runs 20]

Node runs one process for each model. The columns: bytes beyond the weights, time to load, of the first run, and the best
of the others; then the best of a session on one thread, compiled for vectors of as many bits without fused multiply-adds
(x86-64-v2), and for this processor. Inputs come from MODEL.npz where it is there, and are of random numbers otherwise.
"""

import argparse
import base64
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import sardonyx

RUNNER = """
import { readFileSync } from "node:fs";
const { load } = await import(process.argv[2]);
const given = JSON.parse(readFileSync(0, "utf8"));
const arrays = { 1: Float32Array, 6: Int32Array, 7: BigInt64Array, 9: Uint8Array };
const since = (start) => performance.now() - start;
let start = performance.now();
const model = await load();
const times = { load: since(start), runs: [] };
const inputs = Object.fromEntries(model.inputs.map(({ name, type }) => {
  const bytes = Buffer.from(given.inputs[name].bytes, "base64");
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return [name, { data: new arrays[type](buffer), dims: given.inputs[name].dims }];
}));
let outputs;
for (let i = 0; i < given.runs; ++i) {
  start = performance.now();
  outputs = model.run(inputs);
  times.runs.push(since(start));
}
const { data } = Object.values(outputs)[0];
const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
console.log(JSON.stringify({ ...times, bytes }));
"""


def feeds_of(model, session):
    given = model.with_suffix(".npz")
    if given.exists():
        with np.load(given) as file:
            return {name: file[name] for name in file.files}
    rng = np.random.default_rng(0)
    shapes = {i.name: [size if isinstance(size, int) else 1 for size in i.shape] for i in session.get_inputs()}
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def best(session, feeds, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        outputs = session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, outputs[0]


def measure(model, runs):
    sessions = []
    for cpu in ("x86-64-v2", ""):
        options = sardonyx.SessionOptions()
        options.intra_op_num_threads = 1
        options.cpu = cpu
        sessions.append(sardonyx.InferenceSession(model, options))
    feeds = feeds_of(model, sessions[0])
    with tempfile.TemporaryDirectory() as folder:
        sardonyx.build(model, f"{folder}/model.wasm")
        Path(folder, "run.mjs").write_text(RUNNER)
        size = Path(folder, "model.wasm").stat().st_size
        inputs = {
            name: {"bytes": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode(), "dims": value.shape}
            for name, value in feeds.items()
        }
        given = json.dumps({"inputs": inputs, "runs": runs})
        command = ["node", f"{folder}/run.mjs", f"{folder}/model.mjs"]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        web = json.loads(done.stdout)
    (narrow, expected), (wide, _) = (best(session, feeds, runs) for session in sessions)
    answer = np.frombuffer(base64.b64decode(web["bytes"]), expected.dtype).reshape(expected.shape)
    error = np.linalg.norm(answer - expected) / np.linalg.norm(expected)
    run = min(web["runs"][1:])
    print(
        f"| {model.stem} | {size / 1e6:.1f} MB | {web['load']:.0f} | {web['runs'][0]:.0f} | {run:.1f} | {narrow:.1f} "
        f"| {wide:.1f} | {run / narrow:.2f} | {error:.1e} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    print("| model | file | load ms | first run ms | run ms | x86-64-v2 ms | this processor ms | web / x86-64-v2 | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in arguments.models:
        measure(model, arguments.runs)


if __name__ == "__main__":
    main()
