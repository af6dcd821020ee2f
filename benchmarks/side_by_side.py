"""Times engines on a model: each in a process of its own, all on the same cores, in turn, round after round.

Machines drift (other tenants, clocks, temperature): what is compared has to run within the same seconds.
"""

import importlib.metadata
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


class Engine:
    """A running engine.py; `cache` is the folder of what it keeps between loads."""

    def __init__(self, name, cores, cache):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, HERE / "engine.py", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"SARDONYX_CACHE_DIR": cache},
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def ask(self, **request):
        """The answer; {"error": ...} if the engine died."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": "the engine died"}

    def close(self):
        self.process.kill()
        self.process.communicate()


def installed(names):
    return [name for name in names if importlib.util.find_spec(name)]


def start(name, cores, cache, model, inputs, threads):
    """A running engine that has loaded the model, and its answer."""

    def load():
        engine = Engine(name, cores, cache)
        return engine, engine.ask(model=str(model), inputs=str(inputs), threads=threads)

    engine, cold = load()
    if name != "sardonyx" or "error" in cold:
        return engine, cold
    engine.close()
    os.unlink(cold["outputs"])
    engine, cached = load()
    if "error" in cached:
        return engine, cached
    return engine, cold | {"outputs": cached.pop("outputs"), "cached": cached}


def compare(model, inputs, engines, threads=1, rounds=5, seconds=0.25):
    """For each engine {"ms", "load", "first", "peak", "error"}: milliseconds of a run (median over all rounds),
    seconds to load and of the first run, bytes at its peak after that, and how far its outputs are from those of the
    first engine that has any, as ‖y - ref‖ / ‖ref‖. Where an engine fails: {"failure": text}. An engine with a cache
    has it empty first; "cached" are "load", "first" and "peak" of a second process, which is the one that is timed.
    """
    cores = sorted(os.sched_getaffinity(0))[:threads]
    running, results, reference = [], {}, None
    with tempfile.TemporaryDirectory() as cache:
        for name in engines:
            engine, answer = start(name, cores, cache, model, inputs, threads)
            if "error" in answer:
                results[name] = {"failure": answer["error"]}
                engine.close()
                continue
            outputs = take(answer.pop("outputs"))
            reference = reference or outputs
            results[name] = answer | {"error": distance(outputs, reference), "times": []}
            running.append(engine)
    for _ in range(rounds):
        for engine in running:
            times = engine.ask(seconds=seconds)
            if isinstance(times, list):
                results[engine.name]["times"] += times
    for engine in running:
        engine.close()
        times = results[engine.name].pop("times")
        if times:
            results[engine.name]["ms"] = 1e3 * statistics.median(times)
        else:
            results[engine.name] = {"failure": "the engine died"}
    return results


def take(path):
    with np.load(path) as file:
        arrays = [file[name] for name in file.files]
    os.unlink(path)
    return arrays


def distance(outputs, reference):
    """The largest over all floating-point outputs; infinite where shapes differ."""
    worst = 0.0
    for y, ref in zip(outputs, reference):
        if y.shape != ref.shape:
            return float("inf")
        if ref.dtype.kind == "f" and ref.size:
            y, ref = y.astype(np.float64), ref.astype(np.float64)
            same = (y == ref) | (np.isnan(y) & np.isnan(ref))
            with np.errstate(invalid="ignore"):
                off = np.linalg.norm(np.where(same, 0, y - ref))
            worst = max(worst, float(off / (np.linalg.norm(ref[np.isfinite(ref)]) or 1)))
    return worst


def processor():
    """The processor's name and how many cores may be used."""
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {len(os.sched_getaffinity(0))} cores"


def table(header, rows):
    """Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def versions(engines):
    found = []
    for name in engines:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(name)
    return ", ".join(found)
