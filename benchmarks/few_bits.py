"""The memory that it takes to quantise the weights of a large model to few bits, as a multiple of the model's size.

    PYTHONPATH=build/release/python .venv/bin/python benchmarks/few_bits.py --gigabytes 2.4

The model is made up: products of random f32 weights beside it, and a table that stays as it is.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 4096


def make_model(folder, gigabytes):
    """Writes a model with weights of so many 1e9 bytes, without having them in memory, and gives its path."""
    count = max(1, round((gigabytes * 1e9 / 4 / WIDTH**2 - 1) / 2))
    random = np.random.default_rng(0)
    initializers, nodes, offset = [], [], 0
    with open(folder / "weights.bin", "wb") as file:

        def weight(name, rows, columns):
            nonlocal offset
            random.standard_normal((rows, columns), np.float32).tofile(file)
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[rows, columns])
            tensor.data_location = TensorProto.EXTERNAL
            size = rows * columns * 4
            for key, value in (("location", "weights.bin"), ("offset", offset), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            offset += size
            initializers.append(tensor)
            return name

        nodes.append(helper.make_node("Gather", [weight("table", WIDTH, WIDTH), "ids"], ["h0"], "embed"))
        for layer in range(count):
            nodes.append(helper.make_node("MatMul", [f"h{layer}", weight(f"w{layer}", WIDTH, 2 * WIDTH)], [f"u{layer}"], f"up{layer}"))
            nodes.append(helper.make_node("Split", [f"u{layer}"], [f"a{layer}", f"b{layer}"], f"split{layer}", axis=-1, num_outputs=2))
            nodes.append(helper.make_node("Mul", [f"a{layer}", f"b{layer}"], [f"h{layer + 1}"], f"gate{layer}"))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N"])],
        [helper.make_tensor_value_info(f"h{count}", TensorProto.FLOAT, ["N", WIDTH])], initializers,
    )  # fmt: skip
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path, offset


def quantise(path, output):
    from sardonyx.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    start = time.perf_counter()
    quantizer = MatMulNBitsQuantizer(path, 4, 32, True)
    quantizer.process()
    quantizer.model.save_model_to_file(output, True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak": peak, "seconds": time.perf_counter() - start}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.4)
    parser.add_argument("--quantise", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quantise:
        return quantise(*args.quantise)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, size = make_model(folder, args.gigabytes)
        command = [sys.executable, __file__, "--quantise", path, folder / "small.onnx"]
        answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ).stdout.splitlines()[-1])
        made = sum(file.stat().st_size for file in folder.glob("small*"))
        print(
            f"{size / 1e9:.2f} GB to {made / 1e9:.2f} GB in {answer['seconds']:.0f} s, peak {answer['peak'] / 1e9:.2f} GB, "
            f"{answer['peak'] / size:.2f} x the model"
        )


if __name__ == "__main__":
    main()
