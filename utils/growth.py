#!/usr/bin/env python3
"""How loading a model grows with it: time and memory at n, 2n and 4n for many shapes of growth.

    utils/growth.py                     every shape, as a table
    utils/growth.py concat sum --scale 2
    utils/growth.py --list

Each model is loaded in a process of its own, on one thread, without the cache. Needs a build; run it as
`PYTHONPATH=build/release/python .venv/bin/python utils/growth.py`. `x2` is the growth of the time per doubling of n
(after taking off the time that loading a model of one operation takes): 2 is linear, 4 quadratic.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings

from growth_shapes import SHAPES


def load(name, n):
    """In the child: loads the model of this shape, says what it took."""
    import resource

    import sardonyx

    make, _ = SHAPES[name or "elementwise-chain"]
    model = make(n if name else 1).SerializeToString()
    options = sardonyx.SessionOptions()
    options.cache = False
    options.intra_op_num_threads = 1
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    session = sardonyx.InferenceSession(model, options)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": seconds, "cpu": after.ru_utime - before.ru_utime, "mib": after.ru_maxrss / 1024, "phases": session.timings}))


def measure(name, n, limit):
    command = [sys.executable, __file__, "--load", name, str(n)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if child.returncode:
        return (child.stderr.strip().splitlines() or [f"ended with status {child.returncode}"])[-1]
    return json.loads(child.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE")
    parser.add_argument("--list", action="store_true", help="list the shapes")
    parser.add_argument("--scale", type=float, default=1, help="multiply every n by this")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one load")
    parser.add_argument("--phases", action="store_true", help="say where the time of the largest went")
    parser.add_argument("--load", nargs=2, metavar=("SHAPE", "N"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        return load(arguments.load[0], int(arguments.load[1]))
    if arguments.list:
        return print("\n".join(f"{name:24} n = {n}" for name, (_, n) in SHAPES.items()))
    unknown = set(arguments.shapes) - set(SHAPES)
    if unknown:
        parser.error(f"no such shape: {', '.join(sorted(unknown))}; --list names them")
    base = measure("", 1, arguments.limit)
    base = base["cpu"] if isinstance(base, dict) else 0
    print(f"one operation loads in {base:.2f} s\n{'shape':24}{'n':>7}   {'seconds at n, 2n, 4n':^27}{'x2':>6}   {'MiB':^21}")
    for name in arguments.shapes or SHAPES:
        n = max(1, round(SHAPES[name][1] * arguments.scale))
        row = []
        for factor in (1, 2, 4):
            row.append(measure(name, n * factor, arguments.limit))
            if not isinstance(row[-1], dict):
                break
        done = [r for r in row if isinstance(r, dict)]
        seconds = "".join(f"{r['cpu']:9.2f}" for r in done).ljust(27)
        growth = ""
        if len(done) > 1:
            extra = [max(r["cpu"] - base, 1e-3) for r in done]
            growth = f"{extra[-1] / extra[-2]:.1f}"
        print(f"{name:24}{n:7}   {seconds}{growth:>6}   " + "".join(f"{r['mib']:7.0f}" for r in done), end="")
        if len(done) < len(row):
            print("   " + (row[-1] or f"over {arguments.limit:.0f} s")[:100], end="")
        print(flush=True)
        if arguments.phases and done:
            parts = sorted(done[-1]["phases"].items(), key=lambda part: -part[1])
            print(" " * 8 + "  ".join(f"{phase} {s:.2f}" for phase, s in parts[:6]), flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
