#!/usr/bin/env python3
"""The assembly of many kernels, kept so that two trees can be compared.

    utils/assembly.py freeze FOLDER [--zoo MODELS] [--models NAME,...] [--cpus NAME,...] [--threads 1,2]
    utils/assembly.py compare OLD NEW [--all]     which kernels differ, and how the smallest of them does
    utils/assembly.py check [--update]            a sample of it, against test/Objects/assembly.txt

`freeze` compiles every section of test/Objects/Inputs/operators.onnxtxt and hot-loops.onnxtxt, ONNX's light models
and, with --zoo, the .onnx files of a folder (those of an exporter) for nine x86-64 processors, aarch64 and wasm32, for one
thread and for two. FOLDER gets table.txt, with a line for each function: model, processor, threads, function, hash and number
of lines; and text.zip, the assembly of each hash. Numbers that depend on a function's place in its module are left out: the n
of kN_name, .LBBn_m and .LCPIn_m. --build names the build whose `sardonyx` compiles (build/release).

`compare` pairs functions of the same model, processor, threads and name. Exit status: 1 if one differs, came or went.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import difflib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = [ROOT / "test" / "Objects" / name for name in ("Inputs/operators.onnxtxt", "hot-loops.onnxtxt")]
TABLE = ROOT / "test" / "Objects" / "assembly.txt"
OTHERS = {"aarch64": "aarch64-linux-gnu", "wasm32": "wasm32-wasi"}
sys.path.insert(0, str(ROOT / "test" / "Objects" / "Inputs"))
import hot_loops  # noqa: E402

PROCESSORS = [*hot_loops.PROCESSORS, *OTHERS]
SECTION = re.compile(r"^#--- (\S+)\n", re.MULTILINE)


def models_of_text(path, folder):
    """Writes the sections of a file as models, with constants for what `# weights:` names. Returns (name, file)."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper, parser

    parts = SECTION.split(path.read_text())[1:]
    for name, text in zip(parts[::2], parts[1::2]):
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        if not any(lines):
            continue
        model = parser.parse_model("\n".join(lines))
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        for weight in re.findall(r"^# weights: (.*)$", text, re.MULTILINE):
            for wanted in weight.split():
                (value,) = (v for v in model.graph.input if v.name == wanted)
                kind = value.type.tensor_type
                shape = [dim.dim_value for dim in kind.shape.dim]
                dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
                numbers = rng.integers(0, 100, shape) if dtype.kind in "iu" else abs(rng.standard_normal(shape)) + 0.01
                if dtype.kind not in "iu" and len(shape) > 1:
                    numbers *= rng.choice([-1, 1], shape)
                model.graph.input.remove(value)
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(numbers).astype(dtype), wanted))
        file = folder / f"{path.stem}-{name.removesuffix('.onnxtxt')}.onnx"
        onnx.save(model, file)
        yield file.stem, file


def all_models(folder, zoo):
    import onnx

    for path in TEXTS:
        yield from models_of_text(path, folder)
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(light.glob("*.onnx")):
        yield path.stem, path
    for path in sorted(zoo.glob("*.onnx")) if zoo else []:
        yield f"zoo-{path.stem}", path


def functions(assembly):
    """Function by function, as (name, text). What stands before a function, such as its constants, is its own."""
    begin = 0
    for match in re.finditer(r"^\t\.size\t(\S+), .*\n|^\tend_function\n", assembly, re.MULTILINE):
        text = assembly[begin : match.end()]
        begin = match.end()
        name = match.group(1) or (re.findall(r"^(\w+):", text, re.MULTILINE) or ["?"])[-1]
        if f"\n{name}:" in text:
            yield normal(name), normal(text)
    yield "data", normal(assembly[begin:])


def normal(text):
    text = re.sub(r"\bk\d+_", "k_", text)
    text = re.sub(r"(\.L(?:BB|CPI|JTI|func_begin|func_end|tmp))\d+", r"\1", text)
    return re.sub(r"[ \t]+#.*$|[ \t]+//.*$", "", text, flags=re.MULTILINE)


class Compiled:
    """The functions of all jobs: rows of the table, and the text of each hash."""

    def __init__(self):
        self.rows, self.texts = [], {}

    def add(self, job, assembly):
        for name, text in functions(assembly):
            key = hashlib.sha256(text.encode()).hexdigest()[:16]
            self.texts[key] = text
            self.rows.append((*job, name, key, str(text.count("\n"))))

    def table(self):
        return "".join(" ".join(row) + "\n" for row in sorted(self.rows))


def compile_one(tool, file, cpu, threads):
    target = ["--target", OTHERS[cpu]] if cpu in OTHERS else ["--cpu", cpu]
    done = subprocess.run(
        [tool, "compile", file, "--to", "asm", "--threads", threads, *target], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{file} for {cpu}: {done.stderr.strip()}")
    return done.stdout


def compile_all(jobs, files, build):
    tool, result = str(build / "bin" / "sardonyx"), Compiled()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        texts = pool.map(lambda job: compile_one(tool, files[job[0]], *job[1:]), jobs)
        for done, (job, text) in enumerate(zip(jobs, texts), 1):
            result.add(job, text)
            if sys.stderr.isatty():
                print(f"\r{done} of {len(jobs)}", end="", file=sys.stderr)
    return result


def chosen(given, known, what):
    names = given.split(",") if given else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"there is no {what} '{name}'; there are {', '.join(known)}")
    return names


def freeze(args):
    with tempfile.TemporaryDirectory() as folder:
        files = dict(all_models(Path(folder), args.zoo))
        names, cpus = chosen(args.models, files, "model"), chosen(args.cpus, PROCESSORS, "processor")
        jobs = [(name, cpu, threads) for name in names for cpu in cpus for threads in args.threads.split(",")]
        result = compile_all(jobs, files, args.build)
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "table.txt").write_text(result.table())
    with zipfile.ZipFile(args.folder / "text.zip", "w", zipfile.ZIP_DEFLATED) as texts:
        for key, text in sorted(result.texts.items()):
            texts.writestr(key, text)
    print(f"{len(jobs)} compilations, {len(result.rows)} functions, {len(result.texts)} different ones")


def read(table):
    """Hashes by (model, processor, threads, function), in the order of the table."""
    result = collections.defaultdict(list)
    for line in table.splitlines():
        if not line.startswith("#"):
            *where, key, lines = line.split(" ")
            result[tuple(where)].append((key, int(lines)))
    return result


def differences(old, new):
    """(where, the old's hashes and lines, the new's) of what only one of the two has."""
    for where in sorted(old.keys() | new.keys()):
        gone, come = (collections.Counter(keys.get(where, [])) for keys in (old, new))
        gone, come = gone - come, come - gone
        if gone or come:
            yield where, sorted(gone.elements()), sorted(come.elements())


def tell(found, shown):
    by_function = collections.defaultdict(list)
    for (model, cpu, threads, name), gone, come in found:
        by_function[model, name].append((cpu, threads, len(gone), len(come)))
    for (model, name), places in list(by_function.items())[:shown]:
        kind = "came" if not any(p[2] for p in places) else "went" if not any(p[3] for p in places) else "differs"
        print(f"{model}: {name} {kind} for " + ", ".join(sorted({f"{cpu}/{threads}" for cpu, threads, *_ in places})))
    if len(by_function) > shown:
        print(f"and {len(by_function) - shown} more (--all)")


def compare(args):
    found = list(differences(*(read((folder / "table.txt").read_text()) for folder in (args.old, args.new))))
    tell(found, len(found) if args.all else 40)
    both = [(gone[0][1] + come[0][1], where, gone[0][0], come[0][0]) for where, gone, come in found if gone and come]
    if both:
        _, where, *keys = min(both)
        texts = [
            zipfile.ZipFile(folder / "text.zip").read(key).decode().splitlines()
            for folder, key in zip((args.old, args.new), keys)
        ]
        print(f"\nthe smallest, {' '.join(where)}:")
        print("\n".join(difflib.unified_diff(*texts, "old", "new", lineterm="", n=2)))
    if not found:
        print("no function differs")
    return bool(found)


@contextlib.contextmanager
def sample():
    """The files of all models, and jobs: each operator for one processor and number of threads, in turn, and a light model."""
    with tempfile.TemporaryDirectory() as folder:
        files = dict(all_models(Path(folder), None))
        names = [name for name in files if not name.startswith("light") or name == "light_squeezenet"]
        yield files, [(name, PROCESSORS[i % len(PROCESSORS)], str(1 + i // len(PROCESSORS) % 2)) for i, name in enumerate(names)]


def llvm_version(build):
    text = subprocess.run([build / "bin" / "onnx-opt", "--version"], capture_output=True, text=True).stdout
    return re.search(r"LLVM version (\S+)", text).group(1)


def check(args):
    with sample() as (files, jobs):
        result = compile_all(jobs, files, args.build)
    first = f"# LLVM {llvm_version(args.build)}; made by utils/assembly.py check --update\n"
    if args.update:
        TABLE.write_text(first + result.table())
        return 0
    table = TABLE.read_text()
    if not table.startswith(first):
        print(f"{TABLE.name} is of another LLVM: {table.splitlines()[0]}")
        return 77  # neither equal nor different
    found = list(differences(read(table), read(result.table())))
    tell(found, len(found))
    if found:
        print("if that is meant, run utils/assembly.py check --update and say in the commit which kernels change")
    return bool(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("freeze")
    add.add_argument("folder", type=Path)
    add.add_argument("--zoo", type=Path, help="a folder of .onnx files")
    add.add_argument("--models", help="names of models (default: all)")
    add.add_argument("--cpus", help="names of processors (default: all)")
    add.add_argument("--threads", default="1,2")
    add.set_defaults(run=freeze)
    other = commands.add_parser("compare")
    other.add_argument("old", type=Path)
    other.add_argument("new", type=Path)
    other.add_argument("--all", action="store_true")
    other.set_defaults(run=compare)
    last = commands.add_parser("check")
    last.add_argument("--update", action="store_true")
    last.set_defaults(run=check)
    for command in (add, last):
        command.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
