"""Sardonyx in the place of onnxruntime: modules, names, classes of errors and metadata, each in a process of its own."""

import base64
import hashlib
import inspect
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

ort = pytest.importorskip("onnxruntime")

START = "import sardonyx\nsardonyx.install_as_onnxruntime()\n"
MODEL = """
import numpy as np, onnx
model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }')
x = np.ones((2, 3), np.float32)
"""


def run(program, start=START):
    """What a program prints, line by line."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", start + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


IMPORTS = (
    "import onnxruntime as ort",
    "from onnxruntime import InferenceSession, SessionOptions, OrtValue, NodeArg, get_available_providers",
    "from onnxruntime.capi import _pybind_state as C; C.OrtValueVector, C.SessionIOBinding, C.GraphOptimizationLevel",
    "import onnxruntime.capi._pybind_state; onnxruntime.capi._pybind_state.SessionOptions()",
    "from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidProtobuf, NoSuchFile, RuntimeException, SessionOptions",
    "from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession, check_and_normalize_provider_args",
    "import onnxruntime as rt; rt.capi.onnxruntime_pybind11_state.RuntimeException; rt.capi._pybind_state.OrtValue",
    "from onnxruntime.capi.onnxruntime_validation import get_package_name_and_version_info",
    "from onnxruntime.backend import prepare, run",
    "from onnxruntime.backend.backend import OnnxRuntimeBackend",
    "from onnxruntime.transformers.io_binding_helper import TypeHelper, IOBindingHelper",
    "import onnxruntime; onnxruntime.preload_dlls(); onnxruntime.disable_telemetry_events(); onnxruntime.set_default_logger_severity(3)",
)


def test_imports():
    run("\n".join(IMPORTS))


def test_it_is_sardonyx():
    program = MODEL + """
import onnxruntime, sys
from onnxruntime.capi import onnxruntime_pybind11_state as state, _pybind_state
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
print(session.run(None, {"x": x})[0].sum(), isinstance(session, sardonyx.InferenceSession))
print(onnxruntime.SessionOptions is sardonyx.SessionOptions is state.SessionOptions is _pybind_state.SessionOptions)
print(state.InvalidArgument is sardonyx.InvalidArgument, onnxruntime.__name__, onnxruntime.capi._pybind_state is _pybind_state)
try:
    session.run(["q"], {"x": x})
except state.InvalidArgument as error:
    print(error)
sardonyx.install_as_onnxruntime()
print(sys.modules["onnxruntime"] is onnxruntime)
"""
    assert run(program) == [
        "-6.0 True", "True", "True onnxruntime True", "the model has no output 'q'; it has y", "True",
    ]  # fmt: skip


def test_versions():
    program = """
import importlib.metadata, importlib.util, onnxruntime
print(onnxruntime.__version__, onnxruntime.get_version_string(), importlib.metadata.version("onnxruntime"))
print(importlib.util.find_spec("onnxruntime") is not None, importlib.util.find_spec("onnxruntime.capi") is not None)
print(importlib.util.find_spec("onnxruntime.training"), sardonyx.__version__ != onnxruntime.__version__)
print(importlib.metadata.version("numpy") != onnxruntime.__version__)
"""
    version = run(program)
    assert version == [f"{ort.__version__} {ort.__version__} {ort.__version__}", "True True", "None True", "True"]


@pytest.mark.parametrize(
    "line",
    [
        "import onnxruntime.quantization.cuda_quantizer",
        "import onnxruntime.transformers.optimizer",
        "from onnxruntime.transformers import optimizer",
        "from onnxruntime.transformers.fusion_options import FusionOptions",
        "import onnxruntime.tools.symbolic_shape_infer",
        "from onnxruntime import datasets",
    ],
)
@pytest.mark.parametrize("start", [START, "import sys, sardonyx\nsys.modules['onnxruntime'] = sardonyx\n"], ids=["installed", "by hand"])
def test_what_is_absent_is_an_import_error_that_says_so(line, start):
    if start != START and ("transformers." in line or "quantization." in line):
        pytest.skip("a module that no finder of Sardonyx's is asked for")
    said = run(f"try:\n    {line}\nexcept ImportError as error:\n    print(error)", start)
    assert len(said) == 1 and "a part of onnxruntime that Sardonyx" in said[0]


def test_what_programs_read_of_a_session_though_it_is_no_api(model, tmp_path):
    """By optimum, kokoro-onnx, insightface and others."""
    import onnx

    import sardonyx

    proto = model("m (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }")
    path = str(tmp_path / "m.onnx")
    onnx.save(proto, path)
    answers = []
    for engine in (ort, sardonyx):
        for source in (path, proto.SerializeToString()):
            session = engine.InferenceSession(source, engine.SessionOptions(), providers=["CPUExecutionProvider"])
            names = [arg.name for arg in (*session._inputs_meta, *session._outputs_meta, *session._sess.inputs_meta)]
            said = (session._model_path, session._providers, session._provider_options, names, session._model_meta.graph_name)
            answers.append((*said, session._sess_options is session.get_session_options()))
    assert answers[:2] == answers[2:]


def test_a_failed_run_is_a_runtime_exception(model):
    """Of which unstructured-inference takes none amiss. onnxruntime has another class by the operator; here it is both."""
    import onnxruntime.capi.onnxruntime_pybind11_state as theirs

    import sardonyx
    from sardonyx.errors import RuntimeException

    proto = model("m (float[N, K] x, int64[2] s) => (float[A, B] y) { y = Reshape(x, s) }")
    feed = {"x": np.ones((2, 3), np.float32), "s": np.array([4, 5])}
    for engine, kind in ((ort, (theirs.Fail, theirs.RuntimeException)), (sardonyx, RuntimeException)):
        session = engine.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        with pytest.raises(kind, match="Reshape"):
            session.run(None, feed)
    assert issubclass(RuntimeException, sardonyx.Fail)


def test_unknown_names_are_attribute_errors():
    program = """
import onnxruntime
from onnxruntime.capi import _pybind_state
for module, name in ((onnxruntime, "NoSuchName"), (_pybind_state, "no_such_kernel")):
    try:
        getattr(module, name)
    except AttributeError as error:
        print(name in str(error) and "Sardonyx" in str(error))
try:
    import onnxruntime.nothing
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run(program) == ["True", "True", "onnxruntime.nothing"]


def test_after_onnxruntime_itself():
    """What holds onnxruntime's own objects keeps them; a warning tells."""
    program = MODEL + """
import onnxruntime as theirs, warnings
from onnxruntime import InferenceSession
before = InferenceSession(model.SerializeToString())
import sardonyx
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    sardonyx.install_as_onnxruntime()
print([w.category.__name__ for w in told])
import onnxruntime
print(onnxruntime is theirs, onnxruntime.InferenceSession is sardonyx.InferenceSession, InferenceSession is theirs.InferenceSession)
print(before.run(None, {"x": x})[0].sum(), onnxruntime.InferenceSession(model).run(None, {"x": x})[0].sum())
import onnxruntime.capi.onnxruntime_pybind11_state as state
print(state.Fail is sardonyx.Fail)
"""
    assert run(program, "") == ["['RuntimeWarning']", "False True True", "-6.0 -6.0", "True"]


def test_no_compiler_is_loaded_before_it_is_needed():
    program = """
import onnxruntime, sys
from onnxruntime.capi import _pybind_state, onnxruntime_pybind11_state
print("sardonyx._sardonyx" in sys.modules)
"""
    assert run(program) == ["False"]


CLASSES = (
    "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "OrtDevice", "OrtMemoryInfo", "OrtValue", "RunOptions",
    "SessionIOBinding", "SessionOptions", "SparseTensor", "OrtArenaCfg", "AdapterFormat", "LoraAdapter", "OrtEpDevice",
    "OrtHardwareDevice", "OrtExternalInitializerInfo",
)  # fmt: skip


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_all_public_names_are_there():
    import sardonyx

    own = {
        "capi", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation", "package_name", "version",
        "print_debug_info",
    }  # fmt: skip
    assert public(ort) - own - set(dir(sardonyx)) - {"backend", "quantization", "tools", "transformers"} == set()
    for name in CLASSES:
        assert public(getattr(ort, name)) - public(getattr(sardonyx, name)) == set(), name


def test_classes_of_the_extension():
    """Those that programs reach below onnxruntime's Python classes, and all classes of errors."""
    import onnxruntime.capi.onnxruntime_pybind11_state as theirs

    import sardonyx.capi.onnxruntime_pybind11_state as ours

    for name, value in vars(theirs).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(getattr(ours, name), Exception), name
    # Memory by an OrtMemoryInfo is made by `ortvalue_from_shape_and_type`; no tensor of blocks can be made.
    beyond = {
        "ortvalue_from_shape_and_type_for_memory_info", "ortvalue_from_shape_and_onnx_type_for_memory_info", "blocksparse_from_numpy",
        "create_ortvalue_from_shape_and_onnx_type",
    }  # fmt: skip
    session = ours.InferenceSession(None, None, False)
    for name in ("OrtValue", "OrtDevice", "OrtValueVector", "SessionIOBinding", "SparseTensor", "OrtArenaCfg", "OrtMemoryInfo"):
        assert public(getattr(theirs, name)) - public(getattr(ours, name)) - beyond == set(), name
    assert {"inputs_meta", "model_meta", "session_options"} <= public(session)


# ===- The package ----------------------------------------------------------===

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "as_onnxruntime"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel sardonyx-as-onnxruntime, made as pip has it made."""
    folder = tmp_path_factory.mktemp("wheel")
    program = f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\nimport wheel_builder; print(wheel_builder.build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True)
    return folder / done.stdout.strip()


def test_the_package_and_what_it_tells_of_itself(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith("/RECORD"))
        for line in archive.read(record).decode().splitlines():
            name, digest, size = line.rsplit(",", 2)
            data = archive.read(name)
            if name != record:
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert int(size) == len(data)
            # As pip puts it into site-packages.
            target = tmp_path / name.partition(".data/purelib/")[2] if ".data/purelib/" in name else tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        assert len(archive.read(record).decode().splitlines()) == len(names)
    program = MODEL + f"""
import importlib.metadata, sys
sys.path.insert(0, {str(tmp_path)!r})
import onnxruntime
import sardonyx
from onnxruntime.capi._pybind_state import OrtValueVector
print(onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {{"x": x}})[0].sum())
of = importlib.metadata.version
print(onnxruntime.__version__ == of("onnxruntime") == of("OnnxRuntime"), of("sardonyx-as-onnxruntime") == sardonyx.__version__)
print(importlib.metadata.requires("sardonyx-as-onnxruntime") == [f"sardonyx=={{sardonyx.__version__}}"])
"""
    assert run(program, "") == ["-6.0", "True True", "True"]
    (metadata,) = tmp_path.glob("onnxruntime-*.dist-info/METADATA")
    assert f"Version: {ort.__version__}" in metadata.read_text() and not (metadata.parent / "RECORD").exists()


def test_types_for_other_libraries(model):
    """Of onnxruntime.transformers.io_binding_helper, which optimum imports."""
    import ml_dtypes

    import sardonyx
    from sardonyx.transformers.io_binding_helper import TypeHelper

    graph = "m (float16[N] x, bool[N] m) => (int64[N] y) { c = Cast <to = 7> (x) d = Cast <to = 7> (m) y = Add(c, d) }"
    session = sardonyx.InferenceSession(model(graph))
    assert TypeHelper.get_input_type(session, "x") == "tensor(float16)"
    assert TypeHelper.get_output_type(session, "y") == "tensor(int64)"
    assert TypeHelper.get_io_numpy_type_map(session) == {"x": np.float16, "m": bool, "y": np.int64}
    assert TypeHelper.get_io_onnx_type_map(session) == {"x": 10, "m": 9, "y": 7}
    assert TypeHelper.ort_type_to_numpy_type("tensor(bfloat16)") is ml_dtypes.bfloat16
    for wrong in (
        lambda: TypeHelper.get_input_type(session, "nope"),
        lambda: TypeHelper.get_output_type(session, "x"),
        lambda: TypeHelper.ort_type_to_numpy_type("seq(tensor(float))"),
    ):
        with pytest.raises(ValueError, match="not found"):
            wrong()
