"""What editors know of the module: docstrings, stubs of the extensions, types for mypy and pyright, completions."""

import ast
import enum
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sardonyx as sdx

FOLDER = Path(sdx.__file__).parent
MODULES = (
    "sardonyx", "sardonyx.errors", "sardonyx.backend", "sardonyx.backend.backend", "sardonyx.backend.backend_rep",
    "sardonyx.capi", "sardonyx.capi.onnxruntime_inference_collection", "sardonyx.capi.onnxruntime_pybind11_state",
    "sardonyx.capi.onnxruntime_validation", "sardonyx.transformers.io_binding_helper",
)  # fmt: skip
# Of the arrays, strings and numbers that classes are made of.
BUILTIN = {name for kind in (int, str, list, tuple, dict, Exception, OSError) for name in dir(kind)}


def undocumented(name, value, seen):
    """The names of what has no words of its own, in a class also of what is in it."""
    if not (inspect.isclass(value) or callable(value)) or id(value) in seen or "sardonyx" not in (getattr(value, "__module__", "") or ""):
        return []
    seen.add(id(value))
    found = [] if (value.__doc__ or "").strip() else [name]
    if not inspect.isclass(value):
        return found
    for member in dir(value):
        if member.startswith("_") or issubclass(value, enum.Enum) or (member in BUILTIN and member not in vars(value)):
            continue
        thing = inspect.getattr_static(value, member)
        if inspect.ismemberdescriptor(thing) or not (getattr(thing, "__func__", thing).__doc__ or "").strip():
            found.append(f"{name}.{member}")
    return found


def test_every_public_name_has_a_docstring():
    missing, seen = [], set()
    for module in map(importlib.import_module, MODULES):
        assert module.__doc__, module.__name__
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            missing += undocumented(f"{module.__name__}.{name}", getattr(module, name), seen)
    assert not missing
    assert len(seen) > 100  # it has looked at something


def test_the_walk_finds_what_is_undocumented():
    class Bare:
        """A class."""

        def told(self):
            """A method."""

        def silent(self):
            pass

        @property
        def quiet(self):
            return 3

    Bare.__module__ = "sardonyx.made"
    assert undocumented("Bare", Bare, set()) == ["Bare.quiet", "Bare.silent"]


@pytest.mark.parametrize("extension", ["_runtime", "_sardonyx"])
def test_stubs_name_what_the_extension_has(extension):
    stub = ast.parse((FOLDER / f"{extension}.pyi").read_text())
    module = importlib.import_module(f"sardonyx.{extension}")
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    public = {name for name in dir(module) if not name.startswith("_")} | {"__version__"}
    assert public <= named
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            members |= {name.id for item in node.body if isinstance(item, ast.Assign) for name in item.targets}
            assert {name for name in vars(getattr(module, node.name)) if not name.startswith("_")} <= members


RIGHT = """
import numpy as np
import sardonyx
from sardonyx import InferenceSession, OrtValue, SessionOptions
from sardonyx.capi.onnxruntime_pybind11_state import InvalidProtobuf
options = SessionOptions()
options.intra_op_num_threads = 2
options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_ENABLE_ALL
session = InferenceSession("m.onnx", options, providers=["CPUExecutionProvider"])
reveal_type(session)
reveal_type(SessionOptions().intra_op_num_threads)
reveal_type(session.get_inputs()[0].name)
reveal_type(session.run(None, {"x": np.ones(3)}))
reveal_type(OrtValue.ortvalue_from_numpy(np.ones(3)).shape())
reveal_type(sardonyx.compile("m.onnx"))
reveal_type(session.timings)
reveal_type(sardonyx.load("m.so").io_binding())
reveal_type(InvalidProtobuf("").detail)
"""
TYPES = ["InferenceSession", "int", "str", "list[Any]", "list[int]", "str", "dict[str, float]", "IOBinding", "str"]
WRONG = """
import sardonyx
sardonyx.InferenceSesion("m.onnx")
options = sardonyx.SessionOptions()
options.intra_op_num_threads = "two"
options.intra_op_num_thread = 2
sardonyx.InferenceSession(3)
"""
LINES = [3, 5, 6, 7]  # of WRONG, where something is


def check(tmp_path, *command):
    environment = dict(os.environ, MYPYPATH=str(FOLDER.parent), PYTHONPATH=str(FOLDER.parent))
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout


def test_mypy(tmp_path):
    pytest.importorskip("mypy", reason="requirements.txt has it")
    said = check(tmp_path, "mypy", "--cache-dir", str(tmp_path / "cache"), "right.py", "wrong.py")
    types = [re.sub(r"(builtins|sardonyx\.\w+)\.", "", found) for found in re.findall(r'Revealed type is "(.*)"', said)]
    assert types == TYPES, said
    assert [int(line) for line in re.findall(r"wrong.py:(\d+): error", said)] == LINES, said
    assert "right.py" not in re.sub(r"right.py:\d+: note", "", said)


def test_the_module_itself_is_typed(tmp_path):
    pytest.importorskip("mypy", reason="requirements.txt has it")
    said = check(tmp_path, "mypy", "--cache-dir", str(tmp_path / "cache"), "--disable-error-code=annotation-unchecked", "-p", "sardonyx")
    assert "Success: no issues found" in said, said


def test_pyright(tmp_path):
    pytest.importorskip("basedpyright", reason="requirements.txt has it")
    config = {"typeCheckingMode": "standard", "extraPaths": [str(FOLDER.parent)], "reportMissingModuleSource": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    report = json.loads(check(tmp_path, "basedpyright", "--outputjson", "--pythonpath", sys.executable, "right.py", "wrong.py"))
    told = report["generalDiagnostics"]
    types = [re.search(r'is "(.*)"', item["message"]).group(1) for item in told if item["severity"] == "information"]
    assert types == TYPES, told
    wrong = [item for item in told if item["severity"] == "error"]
    assert {Path(item["file"]).name for item in wrong} == {"wrong.py"}, told
    assert sorted({item["range"]["start"]["line"] + 1 for item in wrong}) == LINES, told


def test_completions(tmp_path):
    jedi = pytest.importorskip("jedi", reason="requirements.txt has it")
    project = jedi.Project(str(tmp_path), added_sys_path=[str(FOLDER.parent)])

    def after(code):
        script = jedi.Script(f"import sardonyx\n{code}", project=project)
        return {completion.name for completion in script.complete()}

    assert "InferenceSession" in after("sardonyx.Infer")
    assert {"run", "run_async", "run_with_iobinding"} <= after("sardonyx.InferenceSession('m.onnx').run")
    assert "intra_op_num_threads" in after("sardonyx.SessionOptions().intra")
    assert {"name", "shape", "type"} <= after("sardonyx.InferenceSession('m.onnx').get_inputs()[0].")
    assert "install_as_onnxruntime" in after("sardonyx.install")
