#!/usr/bin/env python3
"""Rounding errors of networks and layers against f64, for each value of `numerics`, as Markdown.

    accuracy.py [NAME ...] [--cpu CPU] [--seeds N] [--page FILE]

Networks are those of `networks.py` (NAME: regular expressions of some), layers those of `layers.py`. An error is ||y - ref|| / ||ref||,
the root mean square over N networks of other random numbers; what an error is compared with is that of `numerics` "exact", plain sums.
--cpu compiles for another processor that this one can run (haswell: 256 bits, x86-64-v2: 128). --page writes all tables, of
all three widths, into a file. Needs onnxruntime for its column.
"""

import argparse
import re
from pathlib import Path

import numpy as np
from layers import LAYERS
from networks import NETWORKS

import sardonyx

# Without AMX "fast" differs from "f32" in few layers.
HAS_TILES = "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
WIDTHS = {"": "512 bits", "haswell": "256 bits", "x86-64-v2": "128 bits"}
PAGE = """# Rounding errors

Made by `benchmarks/accuracy.py --page docs/performance/Accuracy.md` on a Zen 4 (AVX-512, without AMX), one thread. Networks have random weights and the blocks of the
networks that they are called after, normalisations settled on what reaches them; layers are those that rounding hurts most. Errors are ||y - ref|| / ||ref||
against f64 (root mean squares where there are several of other random numbers: --seeds). `SessionOptions.numerics` chooses: "exact" is one product and addition
in f32 after the other, "f32" (the default) what keeps to twice that for a network and four times that for a layer, "fast" also what
loses more, which only processors with AMX have
([convolutions by bf16](HowItWorks.md#convolutions-by-bf16-on-amx)). Of short sums, below 64 channels, "f32" takes no
Winograd's algorithm by tiles of 4x4, and "fast" does.
"""


def onnxruntime_error(net, model):
    try:
        import onnxruntime
    except ImportError:
        return None
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return error(onnxruntime.InferenceSession(model, options), net)


def error(session, net):
    (y,) = session.run(None, net.feeds)
    return float(np.linalg.norm(y - net.expected) / np.linalg.norm(net.expected))


def our_error(net, model, numerics, cpu):
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    options.cache = False
    options.cpu = cpu
    options.numerics = numerics
    return error(sardonyx.InferenceSession(model, options), net)


def measure(make, seeds, cpu):
    """The errors with "exact", "f32" and "fast" (NaN where that is "f32"), and onnxruntime's (NaN without it)."""
    errors = []
    for seed in range(seeds):
        net, model = make(seed)
        ours = [our_error(net, model, value, cpu) for value in ("exact", "f32")]
        ours.append(our_error(net, model, "fast", cpu) if HAS_TILES and not cpu else np.nan)
        theirs = onnxruntime_error(net, model)
        errors.append([*ours, np.nan if theirs is None else theirs])
    return np.sqrt(np.mean(np.square(errors), axis=0))


def table(cases, patterns, seeds, cpu, title):
    chosen = [name for name in cases if not patterns or any(re.search(p, name) for p in patterns)]
    if not chosen:
        return
    yield f"| {title}, {WIDTHS.get(cpu, cpu)} | exact | f32 | fast | onnxruntime | f32 / exact |"
    yield "|---|---|---|---|---|---|"
    ratios = []
    for name in chosen:
        exact, f32, fast, theirs = measure(cases[name], seeds, cpu)
        ratios.append(f32 / exact)
        shown = " | ".join("—" if np.isnan(e) else f"{e:.1e}" for e in (exact, f32, fast, theirs))
        yield f"| {name} | {shown} | {ratios[-1]:.2f} |"
    yield f"\nThe largest ratio is {max(ratios):.2f}, their geometric mean {np.exp(np.mean(np.log(ratios))):.2f}.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks and layers (default: all)")
    parser.add_argument("--cpu", default="", help="processor to compile for")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="networks of other random numbers (default 1)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write all tables there")
    arguments = parser.parse_args()
    lines = [PAGE] if arguments.page else []
    for cpu in WIDTHS if arguments.page else [arguments.cpu]:
        for title, cases in (("network", NETWORKS), ("layer", LAYERS)):
            for line in table(cases, arguments.names, arguments.seeds, cpu, title):
                print(line, flush=True)
                lines.append(line)
    if arguments.page:
        arguments.page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
