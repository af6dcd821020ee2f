"""Which library may include whose headers: the order of docs/Architecture.md, "Who may know whom"."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What each folder of lib may include of the others'; all may include dialects but those that know no MLIR.
MAY = {
    "Runtime": set(),
    "Model": {"Runtime"},
    "Objects": {"Runtime"},
    "Contrib": set(),
    "Importer": {"Contrib"},
    "Exporter": {"Importer", "Bridge", "Contrib"},
    "Bridge": {"Importer", "Contrib"},
    "Transforms": set(),
    "Conversion": set(),
    "Dispatch": set(),
    "Host": {"Dispatch"},
    "Targets": {"Dispatch", "Model", "Objects"},
    "Pipelines": {"Bridge", "Conversion", "Dispatch", "Host", "Objects", "Targets", "Transforms", "Importer"},
    "Session": {"Bridge", "Conversion", "Exporter", "Importer", "Model", "Objects", "Pipelines", "Runtime", "Targets", "Transforms"},
    "Build": {"Model", "Objects", "Runtime", "Session"},
    "Library": set(),
}
WITHOUT_LLVM = {"Runtime", "Model"}
WITHOUT_ONNX = {"Dispatch", "Host", "Objects", "Targets", "Model", "Runtime"}
# What only a target may know of its layouts and algorithms.
OF_TARGETS = re.compile(r"panel|winograd|strassen|kConvBlock|kPanelWidth", re.IGNORECASE)
NEUTRAL = ["lib/Dispatch", "include/sardonyx/Dispatch", "lib/Conversion", "include/sardonyx/Conversion", "lib/Host",
           "include/sardonyx/Host", "lib/Pipelines", "include/sardonyx/Pipelines", "dialects/SDX"]


def files(part):
    for folder in (ROOT / "lib" / part, ROOT / "include" / "sardonyx" / part):
        yield from (path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))


def test_includes_follow_the_layers():
    assert set(MAY) == {path.name for path in (ROOT / "lib").iterdir() if path.is_dir()}
    wrong = []
    for part, may in MAY.items():
        for path in files(part):
            for header in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text(encoding="utf-8")):
                other = re.match(r"(?:lib|sardonyx)/(\w+)/", header)
                if other and other[1] in MAY and other[1] != part and other[1] not in may:
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
                if part in WITHOUT_LLVM and header.startswith(("llvm", "mlir", "dialects/")):
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
                if part in WITHOUT_ONNX and header.startswith("dialects/ONNX"):
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
    assert not wrong, "\n".join(wrong)


def test_each_target_stands_alone():
    """Nothing but the list of targets includes one's headers, and no target another's. The dialect cpu is lib/Objects's, too, which describes
    processors."""
    targets = {path.name for path in (ROOT / "lib/Targets").iterdir() if path.is_dir()} - {"Common"}
    wrong = []
    for folder in ("lib", "include", "dialects"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in (".h", ".cpp"):
                continue
            inside = re.match(r"(?:lib|include/sardonyx)/Targets/(\w+)/", path.relative_to(ROOT).as_posix())
            for header in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text(encoding="utf-8")):
                other = re.match(r"(?:lib|sardonyx)/Targets/(\w+)/", header)
                if other and other[1] in targets and (not inside or inside[1] != other[1]):
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
                if header.startswith("dialects/NV/") and not re.search(r"dialects/NV/|/Targets/NVPTX/", path.as_posix()):
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
                if header.startswith("dialects/CPU/") and not re.search(r"dialects/CPU/|/Targets/CPU/|/Objects/", path.as_posix()):
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
    assert not wrong, "\n".join(wrong)


# What the compiler's sources are in. A room is a folder below these; the public headers of a library are a room of their own, below
# the library's.
SOURCES = ("dialects", "include", "lib", "python", "tools")
# Pairs of files that include each other's header and belong together.
MUTUAL = [
    # The generated operations name the type of their schema, and the tables of schemas are asked about operations.
    {"dialects/ONNX/ONNX", "dialects/ONNX/ONNXSchema"},
    # What is known of a tensor is found by the table of functions, which ask about operands.
    {"lib/Transforms/Evaluation", "lib/Transforms/ShapeValues"},
]


def includes():
    """Which file of the tree each includes, found as the compiler does: beside it, from the root, from include/, and from the folders
    above it, where libraries of several rooms begin."""
    files = {p.relative_to(ROOT).as_posix(): p for folder in SOURCES for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cpp")}
    for name, path in files.items():
        for header in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text(encoding="utf-8")):
            above = Path(name).parents
            found = [(base / header).as_posix() for base in (above[0], Path(), Path("include"), *above[1:])]
            other = next((place for place in found if place in files), None)
            if other and other != name:
                yield name, other


def find_circle(edges):
    """A way from a node back to itself, or nothing."""
    graph = {}
    for one, other in edges:
        if one != other:
            graph.setdefault(one, set()).add(other)
    done, way = set(), []

    def visit(node):
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return None
        way.append(node)
        for other in sorted(graph.get(node, ())):
            if circle := visit(other):
                return circle
        done.add(way.pop())
        return None

    return next((circle for node in sorted(graph) if (circle := visit(node))), None)


def test_circles_are_found():
    assert find_circle([("a", "b"), ("b", "c"), ("a", "c")]) is None
    assert find_circle([("d", "a"), ("a", "b"), ("b", "c"), ("c", "a")]) == ["a", "b", "c", "a"]


def test_includes_have_no_circle():
    """Neither headers, nor files (a .cpp and the header of its name beside it are one), nor rooms."""
    edges = list(includes())
    assert len(edges) > 1300
    headers = [edge for edge in edges if edge[0].endswith(".h")]
    assert not (circle := find_circle(headers)), " -> ".join(circle)
    units = [(one.rsplit(".", 1)[0], other.rsplit(".", 1)[0]) for one, other in edges]
    for pair in MUTUAL:
        assert all((one, other) in units for one in pair for other in pair - {one}), f"{pair} are no circle any more"
    assert not (circle := find_circle(unit for unit in units if set(unit) not in MUTUAL)), " -> ".join(circle)
    rooms = [(one.rsplit("/", 1)[0], other.rsplit("/", 1)[0]) for one, other in edges]
    assert {"lib/Dispatch", "lib/Targets/CPU/Matmul", "lib/Session/Cache"} <= {room for edge in rooms for room in edge}
    circle = find_circle(rooms)
    assert not circle, " -> ".join(circle) + "".join(
        f"\n{one} includes {other}" for (one, other), edge in zip(edges, rooms) if edge in list(zip(circle, circle[1:]))
    )


def passes():
    """The area, the name of the definition and the name of each pass."""
    for td in sorted((ROOT / "include/sardonyx").rglob("*Passes.td")):
        for definition, name in re.findall(r'^def (\w+)\s*:\s*\w+<\s*"([\w-]+)"', td.read_text(encoding="utf-8"), re.MULTILINE):
            yield td.parent.relative_to(ROOT / "include/sardonyx").as_posix(), definition, name


def test_each_pass_has_a_file_and_a_test_of_its_name():
    """sdx-fold-empty is defined in FoldEmpty.cpp, alone, and tested in fold-empty.mlir or sdx-fold-empty.mlir of test/Dispatch."""
    sources = {p: set(re.findall(r"^#define GEN_PASS_DEF_(\w+)$", p.read_text(encoding="utf-8"), re.MULTILINE)) for p in (ROOT / "lib").rglob("*.cpp")}
    wrong, names = [], []
    for area, definition, name in passes():
        names.append(name)
        short = re.sub(r"^(sdx|cpu|nv|onnx)-", "", name)
        file = "".join(word.capitalize() for word in short.split("-")).lower()
        defined = [path for path, defines in sources.items() if definition.upper() in defines]
        if len(defined) != 1 or defined[0].stem.lower() != file or len(sources[defined[0]]) != 1:
            wrong.append(f"{name} is defined in {', '.join(p.relative_to(ROOT).as_posix() for p in defined)}")
        tests = [p for p in (ROOT / "test" / area).rglob("*.mlir") if p.stem in (name, short)]
        if not any(re.search(rf"RUN:.*{name}\b", p.read_text(encoding="utf-8")) for p in tests):
            wrong.append(f"{name} has no test of its name in test/{area} that runs it")
    assert len(names) > 45 and len(names) == len(set(names))
    assert not wrong, "\n".join(wrong)


def test_layouts_are_the_targets():
    wrong = []
    for folder in NEUTRAL:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cpp", ".td"):
                for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                    if OF_TARGETS.search(line):
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_sources_name_their_licence():
    folders = [ROOT / name for name in ("dialects", "include", "lib", "python", "tools")]
    sources = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".td")]
    assert len(sources) > 500
    line = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    assert not [str(p.relative_to(ROOT)) for p in sources if line not in p.read_text(encoding="utf-8")[:600]]


LONGEST_FILE, LONGEST_FUNCTION = 600, 100
# Longer functions that are left, with their lines: a number may only shrink, and none may come.
LONG_FUNCTIONS = {}


def functions(text):
    """The names and lines of the functions in a text that clang-format has made: a line of nothing but `}` ends one that the line before
    it with the same indentation begins (a type on a line of its own does not count). Classes and tables end in `};`, namespaces in a
    comment. An indented one is a function where all that is around it are classes: the last lines with less indentation say so."""
    heads = {}  # by indentation, the last line that begins something, and its number
    for number, line in enumerate(text.split("\n"), 1):
        indent = len(line) - len(line.lstrip())
        if line.strip() == "}":
            around = [heads.get(outer, ("", 0))[0] for outer in range(0, indent, 2)]
            head, first = heads.get(indent, ("", number))
            if all(re.match(r"\s*(template.*> )?(class|struct|union)\b", outer) for outer in around) and not head.startswith(("extern", "namespace")):
                name = re.search(r"[\w:~]+(?=\()", head)
                yield (name[0] if name else head.strip()), number - first + 1
        elif line.strip() and not re.match(r"\s*(}|#|//|template.*>$|(public|private|protected):)", line):
            heads[indent] = (line, number)


def test_root_has_only_what_belongs_there():
    """No model, listing or result that somebody left there."""
    listed = subprocess.run(["git", "ls-files", "--", ":(glob)*"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert [name for name in listed if not re.search(r"^\.|^(Dockerfile|LICENSE)$|\.(md|txt|json|toml|yml)$", name)] == []


def test_files_and_functions_are_short():
    folders = [ROOT / name for name in ("lib", "include", "dialects", "tools", "python")]
    sources = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".td")]
    texts = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sources}
    long = [f"{path}: {text.count(chr(10))} lines" for path, text in texts.items() if text.count("\n") > LONGEST_FILE]
    found = 0
    left = dict(LONG_FUNCTIONS)
    for path, text in texts.items():
        for name, lines in functions(text):
            found += 1
            if lines > left.pop(f"{path}: {name}", LONGEST_FUNCTION):
                long.append(f"{path}: {name} has {lines} lines")
    assert found > 4000
    assert not long, "\n".join(long)
    assert not left, f"are no longer there: {left}"


def test_emitters_do_not_change_after_their_constructor():
    """Data members of an emitter are constants or references: what it emits follows from its plan and its operands."""
    found, wrong = set(), []
    for path in (ROOT / "lib/Targets").rglob("*.h"):
        for name, body in re.findall(r"^class (\w+Emitter) \{\n(.*?)^\};", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            found.add(name)
            for line in body.split("\n"):
                member = re.match(r"  (?! )(?!using|static|friend|struct|class|enum|const )[^()&{}]+;$", line)
                # Operations and what builds others have no constant methods.
                if member and not re.search(r"Op op;$|^  IndexMath math;$", line):
                    wrong.append(f"{name}: {line.strip()}")
    assert {"ConvEmitter", "MatmulEmitter", "StrassenEmitter"} <= found
    assert not wrong, "\n".join(wrong)
