#!/usr/bin/env python3
"""Sardonyx beside ONNX Runtime on single operators, slowest first: what stands out has a cause.

    operators.py [PATTERN] [--engines a,b] [--threads 1,2] [--sizes fixed,open] [--rounds R] [--seconds S] [--list]
                 [--write FILE]

PATTERN is a regular expression on the cases' names. Times are tenth percentiles of runs in turn, each with other
numbers than the one before. A case's roofline is the time that its inputs and outputs take to be copied, or that its
multiply-adds take at the rate of a matrix product, whichever is longer. FILE becomes a page with the table.
"""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import operator_cases
import product_cases
import side_by_side
from onnx import helper, numpy_helper
from operator_cases import CASES

for define in (operator_cases.elementwise, operator_cases.reductions, operator_cases.movement, operator_cases.indices,
               product_cases.products, product_cases.convolutions, product_cases.quantized, product_cases.others):  # fmt: skip
    define()

PROBE = 512  # rows, columns and depth of the product that tells how fast multiply-adds are


def build(name, is_open=False):
    """The model and its inputs."""
    nodes, inputs, constants, opset, domains = CASES[name]()
    made = []
    for op, read, written, attributes in nodes:
        domain, _, kind = op.rpartition(".")
        made.append(helper.make_node(kind, read.split(","), written.split(","), domain=domain, **attributes))
    sizes = {k: [f"{k}{d}" for d in range(v.ndim)] if is_open else v.shape for k, v in inputs.items()}
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), sizes[k]) for k, v in inputs.items()],
        [onnx.ValueInfoProto(name=output) for output in made[-1].output],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    versions = [helper.make_opsetid("", opset), *(helper.make_opsetid(*domain) for domain in domains)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    return onnx.shape_inference.infer_shapes(model), inputs


def count_operations(model):
    """Multiplications and additions of its products, by type; what shapes don't tell counts as none."""
    graph, counts = model.graph, {}
    types = {v.name: v.type.tensor_type for v in [*graph.input, *graph.value_info, *graph.output]}
    sizes = {name: [d.dim_value for d in t.shape.dim] for name, t in types.items()}
    sizes |= {t.name: list(t.dims) for t in graph.initializer}
    for node in graph.node:
        out, left = sizes.get(node.output[0]), sizes.get(node.input[0])
        if not out or not left or node.op_type not in ("MatMul", "Gemm", "Conv", "ConvTranspose"):
            continue
        if node.op_type == "MatMul":
            depth, elements = left[-1], np.prod(out)
        elif node.op_type == "Gemm":
            depth, elements = np.prod(left) // out[0], np.prod(out)
        else:
            filters = sizes[node.input[1]]
            depth = np.prod(filters[1:])
            elements = np.prod(out if node.op_type == "Conv" else left)
        kind = types[node.output[0]].elem_type
        counts[kind] = counts.get(kind, 0) + 2 * float(depth) * float(elements)
    return counts


class Machine:
    """How fast this machine copies, and multiplies on so many threads."""

    def __init__(self, engine, threads, folder):
        self.copies = {}
        path = save(*product_of(PROBE), folder)
        answer = engine.ask(model=str(path[0]), inputs=str(path[1]), threads=threads)
        self.rate = 0
        if "error" not in answer:
            os.unlink(answer["outputs"])
            self.rate = 2 * PROBE**3 / np.quantile(engine.ask(seconds=0.3), 0.1)

    def copy(self, count):
        """Seconds in which `count` bytes are read or written, of as many as that."""
        size = 1 << max(10, int(count // 2).bit_length())
        if size not in self.copies:
            source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
            times = []
            for _ in range(9):
                begin = time.perf_counter()
                np.copyto(target, source)
                times.append(time.perf_counter() - begin)
            self.copies[size] = 2 * size / min(times)
        return count / self.copies[size]

    def bound(self, model, inputs, outputs):
        """Seconds that a case takes at least."""
        data = [*inputs.values(), *outputs, *map(numpy_helper.to_array, model.graph.initializer)]
        seconds = self.copy(sum(a.nbytes for a in data))
        for kind, count in count_operations(model).items():
            share = {onnx.TensorProto.FLOAT: 1, onnx.TensorProto.DOUBLE: 0.5}.get(kind)
            if share and self.rate:
                seconds = max(seconds, count / (share * self.rate))
        return seconds


def product_of(size):
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal((size, size), np.float32)}
    weights = numpy_helper.from_array(rng.standard_normal((size, size), np.float32), "w")
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [size, size])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value], [onnx.ValueInfoProto(name="y")], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), inputs


def save(model, inputs, folder):
    paths = Path(folder) / "model.onnx", Path(folder) / "inputs.npz"
    onnx.save(model, paths[0])
    np.savez(paths[1], **inputs)
    return paths


def measure(name, is_open, threads, engines, machine, args, folder):
    """A row of the table, and its ratio; the engines stay loaded for the next case."""
    model, inputs = build(name, is_open)
    paths = save(model, inputs, folder)
    times, errors, reference, bound = {}, {}, None, 0
    for key, engine in engines.items():
        answer = engine.ask(model=str(paths[0]), inputs=str(paths[1]), threads=threads)
        if "error" in answer:
            errors[key] = answer["error"].split(":")[0]
            continue
        outputs = side_by_side.take(answer["outputs"])
        bound = bound or machine.bound(build(name)[0] if is_open else model, inputs, outputs)
        reference = reference or outputs
        errors[key] = side_by_side.distance(outputs, reference)
        times[key] = []
    for _ in range(args.rounds):
        for key in times:
            answer = engines[key].ask(seconds=args.seconds, shifts=True)
            times[key] += answer if isinstance(answer, list) else []
    best = {key: float(np.quantile(t, 0.1)) for key, t in times.items() if t}
    first, *others = engines
    ratio = best[first] / min(best[key] for key in others if key in best) if first in best and len(best) > 1 else 0
    distances = [e for e in errors.values() if not isinstance(e, str)]
    text = name + (", open sizes" if is_open else "") + (f", {threads} threads" if threads > 1 else "")
    cells = [f"{1e3 * best[key]:.3f}" if key in best else errors.get(key, "the engine died") for key in engines]
    part = f"{100 * bound / best[first]:.0f} %" if first in best else "—"
    return ratio, [text, *cells, f"{ratio:.2f}" if ratio else "—", part, f"{max(distances, default=0):.0e}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--engines", default=",".join(side_by_side.installed(["sardonyx", "onnxruntime"])))
    parser.add_argument("--threads", default="1")
    parser.add_argument("--sizes", default="fixed")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--write", metavar="FILE", help="a page of Markdown for the table")
    args = parser.parse_args()
    names = [name for name in CASES if re.search(args.pattern, name)]
    if not names:
        parser.error(f"no case is called like '{args.pattern}'")
    if args.list:
        return print("\n".join(names))
    keys, rows = args.engines.split(","), []
    for threads in map(int, args.threads.split(",")):
        cores = sorted(os.sched_getaffinity(0))[:threads]
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            engines = {key: side_by_side.Engine(key, cores, cache) for key in keys}
            machine = Machine(engines[keys[0]], threads, folder)
            for sizes in args.sizes.split(","):
                for name in names:
                    rows.append(measure(name, sizes == "open", threads, engines, machine, args, folder))
                    for key in [key for key in keys if engines[key].process.poll() is not None]:
                        engines[key] = side_by_side.Engine(key, cores, cache)
            for engine in engines.values():
                engine.close()
    rows.sort(key=lambda row: -row[0])
    header = ["operator", *(f"{key} ms" for key in keys), "ratio", "of the roofline", "error"]
    about = f"{side_by_side.processor()}; {side_by_side.versions(keys)}"
    table = side_by_side.table(header, [cells for _, cells in rows])
    print(f"{about}\n\n{table}")
    if args.write:
        slower = sum(ratio > 1 for ratio, _ in rows)
        count = f"Of {len(rows)} cases {slower} take longer than the best of the others."
        Path(args.write).write_text(f"# Performance: operators\n\n`benchmarks/operators.py --write {args.write}` makes this page: {about}. {count}\n\n{table}\n")


if __name__ == "__main__":
    main()
