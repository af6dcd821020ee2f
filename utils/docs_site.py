"""What mkdocs calls while it makes the site: pages out of the sources, and links that lead out of docs.

Python's page comes from the docstrings, those of C and C++ are the headers, those of passes and dialects are what
mlir-tblgen makes of their definitions.
"""

import ast
import re
import shutil
import subprocess
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
TBLGEN = shutil.which("mlir-tblgen") or "/usr/lib/llvm-22/bin/mlir-tblgen"
CPP = [
    "sardonyx/Session/Session.h", "sardonyx/Session/TypedValues.h", "sardonyx/Model/Values.h", "sardonyx/Model/Types.h",
    "sardonyx/Model/Error.h", "sardonyx/Session/Compile.h", "sardonyx/Build/Build.h", "sardonyx/Model/LoadArtifact.h",
]  # fmt: skip
C = ["sardonyx-c/sardonyx.h", "sardonyx-c/Values.h", "sardonyx-c/Artifact.h", "sardonyx-c/CustomOps.h"]


def headers(title, names, language):
    parts = [f"# {title}\n"]
    for name in names:
        text = (ROOT / "include" / name).read_text()
        # Without the licence, which every file has.
        text = re.sub(r"\A//===-.*?\n(?://.*\n)*?//===-+===//\n", "", text)
        parts.append(f"## {name}\n\n```{language}\n{text.strip()}\n```\n")
    return "\n".join(parts)


def signature(node):
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^self(, )?", "", arguments)
    return f"{node.name}({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def describe(node, level):
    doc = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        is_property = any(ast.unparse(d).endswith("property") for d in node.decorator_list)
        yield f"{'#' * level} `{node.name if is_property else signature(node)}`\n\n{doc}\n"
        return
    yield f"{'#' * level} {node.name}\n\n{doc}\n"
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            if ast.get_docstring(item) and not any(ast.unparse(d).endswith(".setter") for d in item.decorator_list):
                yield from describe(item, level + 1)
        elif isinstance(item, ast.Assign) and isinstance(item.value, ast.Call) and "Attribute" in ast.unparse(item.value.func):
            texts = [part.value for part in ast.walk(item.value) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            yield f"{'#' * (level + 1)} `{ast.unparse(item.targets[0])}`\n\n{max(texts, key=len, default='')}\n"


def python():
    """The names of the package that have docstrings, in alphabetic order."""
    package = ROOT / "python" / "sardonyx"
    tree = ast.parse((package / "__init__.py").read_text())
    public = next(
        ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    known = {}
    for path in sorted(package.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                known.setdefault(node.name, node)
    # What InferenceSession and BuiltModel have in common.
    names = sorted({*public, "Runnable"} & set(known))
    parts = ["# Python\n", ast.get_docstring(tree) or "", ""]
    for name in names:
        parts += describe(known[name], 2)
    text = "\n".join(parts)
    # The docstrings' paths are those of the repository.
    return re.sub(r"\]\((?!https?:)[^)]*\)", "]", text)


def tblgen(kind, path, *flags):
    command = [TBLGEN, kind, *flags, "-I", "/usr/lib/llvm-22/include", "-I", ROOT / "include", "-I", ROOT, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def deeper(text):
    """Headings one level below, and no comment of tblgen's."""
    text = re.sub(r"<!--.*?-->\n*", "", text, flags=re.S)
    return re.sub(r"^(#+) ", r"#\1 ", text, flags=re.M)


def passes():
    parts = ["# Passes\n\n`onnx-opt MODEL.mlir --PASS` runs each by itself.\n"]
    for path in sorted((ROOT / "include" / "sardonyx").rglob("*asses.td")):
        text = tblgen("-gen-pass-doc", path).strip()
        if text:
            parts.append(f"## {path.parent.relative_to(ROOT / 'include' / 'sardonyx')}: {path.stem}\n\n{deeper(text)}\n")
    return "\n".join(parts)


def dialects():
    parts = ["# Dialects\n"]
    for name, dialect in (("SDX", "sdx"), ("CPU", "cpu"), ("NV", "nv")):
        parts.append(deeper(tblgen("-gen-dialect-doc", ROOT / "dialects" / name / f"{name}Ops.td", f"-dialect={dialect}")))
    parts.append("## onnx\n\nIts operations are ONNX's own, generated from ONNX's schemas: see Operators.\n")
    return "\n".join(parts)


def on_files(files, config):
    made = {
        "Python": python(), "C": headers("C", C, "c"), "Cpp": headers("C++", CPP, "cpp"),
        "Passes": passes(), "Dialects": dialects(),
    }  # fmt: skip
    for name, text in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files outside of docs become their paths."""
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent

    def replace(match):
        target = match[2].split("#")[0]
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        path = (folder / target).resolve()
        if path.is_relative_to(config.docs_dir):
            return match[0]
        return f"{match[1]} (`{path.relative_to(ROOT)}`)"

    return re.sub(r"(?<!\!)\[([^\]\[]+)\]\(([^)\s]+)\)", replace, markdown)
