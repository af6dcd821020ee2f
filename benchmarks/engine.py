"""An engine in a process of its own: loads a model, then runs it when it is told to.

Not called by hand: `side_by_side.Engine` starts it. What Sardonyx keeps between loads goes to $SARDONYX_CACHE_DIR. Requests and answers are lines of JSON:

    {"model": PATH, "inputs": FILE.npz, "threads": N}  ->  {"load": s, "first": s, "peak": bytes, "outputs": FILE.npz}
    {"seconds": S}                                     ->  [seconds of a run, ...], at least three
    {"seconds": S, "shifts": true}                     ->  the same, each run with other numbers than the one before
"""

import json
import os
import sys
import tempfile
import time

import numpy as np


def load_sardonyx(path, threads):
    import sardonyx

    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    session = sardonyx.InferenceSession(path, options)
    return [i.name for i in session.get_inputs()], lambda inputs: session.run(None, inputs)


def load_onnxruntime(path, threads):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return [i.name for i in session.get_inputs()], lambda inputs: session.run(None, inputs)


def load_openvino(path, threads):
    import openvino

    # In f32, as the others: otherwise it takes bf16 where the processor has it.
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = openvino.Core().compile_model(path, "CPU", settings)
    request = model.create_infer_request()

    def run(inputs):
        request.infer(inputs, share_inputs=True, share_outputs=True)
        return [request.get_output_tensor(i).data for i in range(len(model.outputs))]

    return [name for i in model.inputs for name in i.get_names()], run


def peak_bytes():
    """The most memory that the process has held. ru_maxrss also counts what its parent had when it was started."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def shift(array, places):
    """The array with its rows, or the elements of its only dimension, moved up: floating-point numbers only."""
    axis = next((d for d in range(array.ndim - 1) if array.shape[d] > 1), array.ndim - 1)
    return np.roll(array, places, axis) if array.dtype.kind == "f" and array.ndim else array


ENGINES = {"sardonyx": load_sardonyx, "onnxruntime": load_onnxruntime, "openvino": load_openvino}


def main():
    # What engines print is not part of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run, inputs = None, {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "model" in request:
                with np.load(request["inputs"]) as file:
                    inputs = dict(file)
                begin = time.perf_counter()
                names, run = ENGINES[sys.argv[1]](request["model"], request["threads"])
                loaded = time.perf_counter()
                inputs = {name: value for name, value in inputs.items() if name in names}
                outputs = run(inputs)
                first = time.perf_counter() - loaded
                with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
                    np.savez(file, *outputs)
                answer = {"load": loaded - begin, "first": first, "peak": peak_bytes(), "outputs": file.name}
            else:
                feeds = [inputs]
                if request.get("shifts"):
                    feeds += [{name: shift(value, i) for name, value in inputs.items()} for i in (1, 2)]
                answer, end = [], time.perf_counter() + request["seconds"]
                while len(answer) < 3 or time.perf_counter() < end:
                    fed = feeds[len(answer) % len(feeds)]
                    begin = time.perf_counter()
                    run(fed)
                    answer.append(time.perf_counter() - begin)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
