"""Which library may include whose headers: the order of docs/Architecture.md, "Who may know whom"."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What each folder of lib may include of the others'; all may include dialects but those that know no MLIR.
MAY = {
    "Runtime": set(),
    "Model": {"Runtime"},
    "Target": {"Runtime"},
    "Contrib": set(),
    "Importer": {"Contrib"},
    "Exporter": {"Importer", "Bridge", "Contrib"},
    "Bridge": {"Importer", "Contrib"},
    "Transforms": set(),
    "Conversion": set(),
    "Dispatch": set(),
    "Host": {"Dispatch"},
    "Codegen": set(),
    "Pipelines": {"Bridge", "Codegen", "Conversion", "Dispatch", "Host", "Target", "Transforms", "Importer"},
    "Session": {"Bridge", "Conversion", "Exporter", "Importer", "Model", "Pipelines", "Runtime", "Target"},
    "Build": {"Model", "Runtime", "Session", "Target"},
    "Library": set(),
}
WITHOUT_LLVM = {"Runtime", "Model"}
WITHOUT_ONNX = {"Dispatch", "Host", "Codegen", "Target", "Model", "Runtime"}


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


def test_sources_name_their_licence():
    folders = [ROOT / name for name in ("dialects", "include", "lib", "python", "tools")]
    sources = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".h", ".cpp", ".td")]
    assert len(sources) > 500
    line = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    assert not [str(p.relative_to(ROOT)) for p in sources if line not in p.read_text(encoding="utf-8")[:600]]
