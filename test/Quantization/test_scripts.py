"""utils/quantization_scripts.py: what it takes for a script that has run."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "utils"))

import quantization_scripts  # noqa: E402
import script_data  # noqa: E402
import script_table  # noqa: E402

# A script of onnxruntime's names.
QUANTIZE = """
import onnxruntime
from onnxruntime.quantization import quantize_dynamic
assert onnxruntime.__author__ == "Sardonyx"
quantize_dynamic("m.onnx", "q.onnx")
print("done")
"""
COPY = "import shutil; shutil.copy('m.onnx', 'q.onnx')"
WORSE = """
import onnx
model = onnx.load("m.onnx")
values = onnx.numpy_helper.to_array(model.graph.initializer[-2]) * 2
model.graph.initializer[-2].CopyFrom(onnx.numpy_helper.from_array(values, model.graph.initializer[-2].name))
onnx.save(model, "q.onnx")
"""


@pytest.mark.parametrize(
    "text, passed, words",
    [
        (QUANTIZE, True, "results within"),
        (COPY, False, "nothing was quantised"),
        (WORSE, False, "away from the float model's"),
        ("raise ValueError('no luck')", False, "ValueError: no luck"),
        (QUANTIZE.replace("done", ""), False, "printed nothing of the form"),
    ],
)
def test_judgement(tmp_path, monkeypatch, text, passed, words):
    monkeypatch.setenv("PYTHONPATH", str(BUILD / "python"))

    def make(folder):
        script_data.classifier(folder / "m.onnx", 32)
        (folder / "script.py").write_text(text)
        says = "done" if "quantize_dynamic" in text else ""
        return quantization_scripts.Job(
            [quantization_scripts.Step("script.py")], [("m.onnx", "q.onnx")], script_data.pictures("input", 32), says=says
        )

    script = quantization_scripts.Script(1, "owner/name", "", "script.py", "quantize_dynamic", make)
    found, reason = quantization_scripts.perform(script, tmp_path, tmp_path / "work", "sardonyx")
    assert found is passed and words in reason


def test_missing_checkouts_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["quantization_scripts.py", str(tmp_path)])
    assert quantization_scripts.main() == 0
    said = capsys.readouterr().out
    for script in script_table.SCRIPTS:
        assert f"https://github.com/{script.repository}" in said
    assert {script.row for script in script_table.SCRIPTS} == set(range(1, 13)) and "0 of 12 rows run" in said
