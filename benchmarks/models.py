#!/usr/bin/env python3
"""Sardonyx beside its peers on whole models, as Markdown and as a picture.

    models.py MODEL.onnx... [--engines a,b] [--threads N] [--rounds R] [--seconds S] [--dim NAME=SIZE]... [--svg FILE]
              [--write FILE]

Inputs come from MODEL.npz beside the model (an array for each input), or are random: open sizes are 1 or what --dim
says, integers are 0 or 1. The ratio is Sardonyx' time to that of the fastest peer. In brackets: what its second process
takes, which finds the compiled model and the packed weights of the first. Peers that are not installed are left out.
The FILE that is written becomes a page with the table, the slowest beside its peers first.
"""

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import side_by_side

ENGINES = ["sardonyx", "onnxruntime", "openvino"]
COLOURS = {"sardonyx": "#b4442c", "onnxruntime": "#7c8a97", "openvino": "#b7c0c7"}


def make_inputs(path, sizes, folder):
    """A file with the model's inputs."""
    beside = path.with_suffix(".npz")
    if beside.exists():
        return beside
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    rng, arrays = np.random.default_rng(0), {}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [sizes.get(d.dim_param, 1) if d.dim_param else d.dim_value or 1 for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        numbers = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        arrays[value.name] = numbers.astype(dtype)
    file = Path(folder) / (path.stem + ".npz")
    np.savez(file, **arrays)
    return file


def row(name, results, engines):
    def cell(engine, key, form, unit=1):
        result = results[engine]
        if key not in result:
            return "—"
        text = form.format(result[key] / unit)
        if key in result.get("cached", {}):
            text += f" ({form.format(result['cached'][key] / unit)})"
        return text

    ours = results["sardonyx"].get("ms")
    peers = [results[e]["ms"] for e in engines if e != "sardonyx" and "ms" in results[e]]
    ratio = ours / min(peers) if ours and peers else None
    cells = [name, *(cell(e, "ms", "{:.2f}") for e in engines), f"{ratio:.2f}" if ratio else "—"]
    cells += [" / ".join(cell(e, "load", "{:.2f}") for e in engines)]
    cells += [" / ".join(cell(e, "peak", "{:.0f}", unit=2**20) for e in engines)]
    cells += [f"{max((results[e]['error'] for e in engines if 'error' in results[e]), default=0):.1e}"]
    return cells, ratio


def picture(measured, engines, title):
    """Bars of time, each model's against its slowest engine, as SVG."""
    bar, gap, left, width = 14, 14, 150, 620
    height = 50 + len(measured) * (len(engines) * bar + gap)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><text x="8" y="18" font-size="14">{title}</text>'
    ]
    for i, engine in enumerate(engines):
        x = left + i * 130
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[engine]}"/>')
        parts.append(f'<text x="{x + 14}" y="37">{engine}</text>')
    y = 50
    for name, results in measured:
        slowest = max((results[e]["ms"] for e in engines if "ms" in results[e]), default=1)
        parts.append(f'<text x="8" y="{y + bar * len(engines) / 2 + 4}">{name}</text>')
        for engine in engines:
            if "ms" in results[engine]:
                length = width * results[engine]["ms"] / slowest
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{COLOURS[engine]}"/>'
                    f'<text x="{left + length + 6:.1f}" y="{y + bar - 3}">{results[engine]["ms"]:.2f} ms</text>'
                )
            y += bar
        y += gap
    return "\n".join([*parts, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--engines", default=",".join(side_by_side.installed(ENGINES)))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--write", metavar="FILE", type=Path, help="a page of Markdown for the table")
    args = parser.parse_args()
    engines = args.engines.split(",")
    if "sardonyx" not in engines:
        parser.error("sardonyx has to be among the engines")
    sizes = {name: int(size) for name, _, size in (pair.partition("=") for pair in args.dim)}
    measured, rows, ratios, failures = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for path in args.models:
            inputs = make_inputs(path, sizes, folder)
            results = side_by_side.compare(path, inputs, engines, args.threads, args.rounds, args.seconds)
            measured.append((path.stem, results))
            failures += [f"{path.stem}, {e}: {r['failure']}" for e, r in results.items() if "failure" in r]
            cells, ratio = row(path.stem, results, engines)
            rows.append(cells)
            ratios.append(ratio)
    title = f"{side_by_side.processor()}; {args.threads} thread{'s' * (args.threads > 1)}"
    about = f"{title}; {side_by_side.versions(engines)}"
    header = ["model", *(f"{e} ms" for e in engines), "to the best peer", "load s", "peak MB", "error"]
    print(f"{about}\n\n{side_by_side.table(header, rows)}")
    known = [ratio for ratio in ratios if ratio]
    mean = ""
    if len(known) > 1:
        mean = f"Geometric mean of the ratios: {math.exp(sum(map(math.log, known)) / len(known)):.3f}"
        print(f"\n{mean}")
    if args.write:
        order = sorted(range(len(rows)), key=lambda i: -(ratios[i] or 0))
        page = side_by_side.table(header, [rows[i] for i in order])
        args.write.write_text(f"# Performance: networks\n\n`benchmarks/exports.py` makes these networks, and `benchmarks/models.py --write {args.write}` this page: {about}.\n{mean}.\n\n{page}\n")
    for failure in failures:
        print(f"\nFailed: {failure}")
    if args.svg:
        args.svg.write_text(picture(measured, engines, title))


if __name__ == "__main__":
    main()
