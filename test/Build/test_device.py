"""Models as files whose kernels run on a GPU, by the driver that needs none.

A process has one driver: what runs does so in one of its own.
"""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import sardonyx
from test_build import HERE, cc, libraries, needed  # noqa: F401

MODEL = """<ir_version: 10, opset_import: ["" : 21]> m (float[n, 4] x, float[n, 8] z) => (float[n, 8] y, int64[2] s) {
    w = Constant <value = float[8, 4] {%s}> ()
    t = Transpose <perm = [1, 0]> (w)
    p = MatMul (x, t)
    q = Add (p, z)
    y = Relu (q)
    s = Shape (y)
}""" % ", ".join(str(k % 7 - 3) for k in range(32))
STRINGS = """<ir_version: 10, opset_import: ["" : 21]> m (string[n] t, float[n] x) => (string[n] u, float[n] y) {
    u = StringConcat (t, t)
    y = Sqrt (x)
}"""
PREAMBLE = """
import numpy as np, sys
import sardonyx as sdx
X = np.random.default_rng(1).standard_normal((5, 4), dtype=np.float32)
Z = np.random.default_rng(2).standard_normal((5, 8), dtype=np.float32)
W = np.array([k % 7 - 3 for k in range(32)], np.float32).reshape(8, 4)
Y = np.maximum(X @ W.T + Z, 0)
FEEDS = {"x": X, "z": Z}
def check(results):
    np.testing.assert_allclose(results[0], Y, rtol=1e-5, atol=1e-5)
    assert results[1].tolist() == [5, 8]
"""


@pytest.fixture
def driver():
    """The variable that has a process take the fake driver."""
    library = Path(os.environ.get("SARDONYX_BUILD", ""), "lib", "libsdx-fakecuda.so")
    if not library.exists():
        pytest.skip("SARDONYX_BUILD names no build folder")
    return {"SARDONYX_CUDA_DRIVER": str(library)}


@pytest.fixture
def ptxas(tmp_path, monkeypatch):
    """An assembler whose cubins the fake driver runs, and which notes what it was asked for."""
    path = tmp_path / "tools" / "ptxas"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\n" + (HERE / "fake_ptxas.py").read_text())
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SARDONYX_PTXAS", str(path))
    return path


def build(output, target, text=MODEL, **options):
    return sardonyx.build(parser.parse_model(text), output, target=target, **options)


def run(driver, text, says="", **variables):
    """Runs a script; what the process writes on stderr."""
    environment = {**os.environ, **driver, **variables}
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(text)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stderr, done.stderr
    return done.stderr


@pytest.fixture
def no_ptxas(monkeypatch):
    monkeypatch.setenv("SARDONYX_PTXAS", "none")


def test_runs_without_the_compiler(tmp_path, driver, no_ptxas):
    files = build(tmp_path / "m.so", "nvidia:sm_90a,sm_80")
    assert [Path(file).name for file in files] == ["m.so", "m.h", "m.hpp"]
    assert needed(tmp_path / "m.so") <= libraries()
    run(
        driver,
        f"""
        model = sdx.load({str(tmp_path / "m.so")!r})
        assert model.get_providers() == ["CUDAExecutionProvider", "CPUExecutionProvider"]
        check(model.run(None, FEEDS))
        check(model.run(None, FEEDS))
        out = np.empty((5, 8), np.float32)
        model.run(None, FEEDS, out={{"y": out}})
        np.testing.assert_allclose(out, Y, rtol=1e-5, atol=1e-5)
        maps = open("/proc/self/maps").read()
        assert "libMLIR" not in maps and "libLLVM" not in maps
        assert "sardonyx._sardonyx" not in sys.modules
        """,
    )


def test_takes_and_gives_what_lies_on_the_device(tmp_path, driver, no_ptxas):
    build(tmp_path / "m.so", "nvidia:sm_80")
    run(
        driver,
        f"""
        model = sdx.load({str(tmp_path / "m.so")!r}, device=0)
        values = {{name: sdx.OrtValue.ortvalue_from_numpy(FEEDS[name], "cuda", 0) for name in FEEDS}}
        binding = model.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("y", "cuda")
        binding.bind_output("s")
        model.run_with_iobinding(binding)
        y, s = binding.get_outputs()
        assert y.device_name().lower() == "cuda" and s.device_name().lower() == "cpu"
        check([y.numpy(), s.numpy()])
        """,
    )


def test_a_file_for_processors_runs_on_no_device(tmp_path, driver):
    sardonyx.build(parser.parse_model(MODEL), tmp_path / "m.so")
    run(
        driver,
        f"""
        check(sdx.load({str(tmp_path / "m.so")!r}).run(None, FEEDS))
        try:
            sdx.load({str(tmp_path / "m.so")!r}, device=0)
        except sdx.NotImplemented as error:
            assert "was built for processors, and has no code for CUDA devices" in str(error), error
        else:
            raise AssertionError
        """,
    )
    # What uses the driver is not in it.
    assert b"libcuda.so" not in (tmp_path / "m.so").read_bytes()


@pytest.mark.parametrize(
    "sm, refused",
    [("90", None), ("80", None), ("86", None), ("100", None), ("75", "has compute capability 7.5")],
)
def test_the_best_image_is_taken(tmp_path, driver, no_ptxas, sm, refused):
    build(tmp_path / "m.so", "nvidia:sm_90a,sm_80")
    load = f"sdx.load({str(tmp_path / 'm.so')!r})"
    if refused is None:
        run(driver, f"check({load}.run(None, FEEDS))", SARDONYX_FAKECUDA_SM=sm)
    else:
        run(driver, f"try: {load}\nexcept sdx.Fail as e: assert {refused!r} in str(e), e\nelse: raise AssertionError", SARDONYX_FAKECUDA_SM=sm)


def test_what_does_not_fit_is_told(tmp_path, driver, no_ptxas):
    build(tmp_path / "m.so", "nvidia:sm_90a")
    run(
        driver,
        f"""
        try:
            sdx.load({str(tmp_path / "m.so")!r})
        except sdx.NotImplemented as error:
            assert str(error).endswith(
                "the model 'm' has no code for the device: it is 'Sardonyx fake CUDA device' of compute capability 8.0, "
                "and there is sm_90a ptx"
            ), error
        else:
            raise AssertionError
        """,
        SARDONYX_FAKECUDA_SM="80",
    )


def test_no_driver_is_a_sentence(tmp_path, no_ptxas):
    build(tmp_path / "m.so", "nvidia:sm_80")
    run(
        {"SARDONYX_CUDA_DRIVER": "/nowhere/libcuda.so.1"},
        f"""
        try:
            sdx.load({str(tmp_path / "m.so")!r})
        except sdx.Fail as error:
            assert "no CUDA driver on this machine" in str(error), error
        else:
            raise AssertionError
        """,
    )


def test_weights_beside_and_several_processors(tmp_path, driver, no_ptxas):
    build(tmp_path / "m.so", ["nvidia:sm_90a,sm_80"], cpus=["x86-64-v3", "x86-64"], weights=tmp_path / "m.bin")
    run(driver, f"check(sdx.load({str(tmp_path / 'm.so')!r}).run(None, FEEDS))")
    damaged = bytearray((tmp_path / "m.bin").read_bytes())
    damaged[5] ^= 1
    (tmp_path / "m.bin").write_bytes(damaged)
    run(
        driver,
        f"""
        try:
            sdx.load({str(tmp_path / "m.so")!r})
        except sdx.InvalidGraph as error:
            assert "does not hold the weights" in str(error), error
        else:
            raise AssertionError
        """,
    )


def test_the_processor_may_help(tmp_path, driver, no_ptxas):
    with pytest.raises(sardonyx.NotImplemented, match="no kernels for a node of the model"):
        build(tmp_path / "m.so", "nvidia:sm_80", STRINGS)
    build(tmp_path / "m.so", "nvidia:sm_80,cpu", STRINGS)
    run(
        driver,
        f"""
        model = sdx.load({str(tmp_path / "m.so")!r})
        u, y = model.run(None, {{"t": np.array(["a", "b"]), "x": np.array([4, 9], np.float32)}})
        assert u.tolist() == ["aa", "bb"] and y.tolist() == [2, 3]
        """,
    )


@pytest.mark.parametrize(
    "target, sentence",
    [
        ("nvidia", "none of the form 'nvidia:sm_90a,sm_80'"),
        ("nvidia:", "none of the form"),
        ("nvidia:cpu", "none of the form"),
        ("nvidia:sm_80,x", "none of the form"),
        ("nvidia:sm_70", "there is no code for the device 'sm_70'"),
        ("nvidia:sm_9000000000000", "there is no code for the device"),
    ],
)
def test_wrong_targets(tmp_path, target, sentence):
    with pytest.raises(sardonyx.InvalidArgument, match=sentence):
        build(tmp_path / "m.so", target)
    assert not (tmp_path / "m.so").exists()


def test_static_programs_and_pages_have_no_device(tmp_path):
    with pytest.raises(sardonyx.NotImplemented, match="static program cannot load CUDA's driver"):
        build(tmp_path / "m", "nvidia:sm_80", static=True)
    with pytest.raises(sardonyx.NotImplemented, match="WebAssembly has no CUDA devices"):
        build(tmp_path / "m.wasm", "nvidia:sm_80")


def test_header(tmp_path, driver, no_ptxas, cc):  # noqa: F811
    build(tmp_path / "m.a", "nvidia:sm_80")
    program = tmp_path / "program"
    command = [cc, "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", str(HERE / "device_model.c"), str(tmp_path / "m.a")]
    subprocess.run([*command, "-ldl", "-lm", "-lpthread", "-o", program], check=True)
    done = subprocess.run([program, driver["SARDONYX_CUDA_DRIVER"]], capture_output=True, text=True, timeout=60, env={**os.environ, **driver})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["host", "device"]


def test_program(tmp_path, driver, no_ptxas):
    build(tmp_path / "m", "nvidia:sm_80")
    x, z = np.ones((2, 4), np.float32), np.zeros((2, 8), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "z.npy", z)
    command = [tmp_path / "m", "--input", f"x={tmp_path}/x.npy", "--input", f"z={tmp_path}/z.npy", "--output-dir", tmp_path / "out"]
    subprocess.run(command, check=True, env={**os.environ, **driver}, capture_output=True)
    weights = np.array([k % 7 - 3 for k in range(32)], np.float32).reshape(8, 4)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), np.maximum(x @ weights.T, 0))


def test_tool_runs_on_the_device(tmp_path, tool, driver, no_ptxas):
    build(tmp_path / "m.so", "nvidia:sm_80")
    done = subprocess.run([tool, "run", tmp_path / "m.so", "--device", "cuda", "--dim", "n=2"], capture_output=True, text=True, env={**os.environ, **driver})
    assert done.returncode == 0 and "y: float [2, 8]" in done.stdout, done.stderr
    done = subprocess.run([tool, "run", tmp_path / "m.so", "--device", "cuda:3"], capture_output=True, text=True, env={**os.environ, **driver})
    assert done.returncode == 1 and "no CUDA device 3" in done.stderr, done.stderr


@pytest.mark.parametrize("sm", ["90", "80", "86"])
def test_cubins_go_before_text(tmp_path, driver, ptxas, monkeypatch, sm):
    monkeypatch.setenv("SARDONYX_FAKE_PTXAS_LOG", str(tmp_path / "log"))
    build(tmp_path / "m.so", "nvidia:sm_90a,sm_80")
    asked = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["-arch=sm_90a", "-arch=sm_80"]
    told = (tmp_path / "m.so").read_bytes()
    assert b"sm_90a cubin\0" in told and b"sm_80 cubin, sm_80 ptx\0" in told
    run(driver, f"check(sdx.load({str(tmp_path / 'm.so')!r}).run(None, FEEDS))", SARDONYX_FAKECUDA_SM=sm)


def test_a_cubin_that_the_driver_refuses_is_passed_over(tmp_path, driver, ptxas, monkeypatch):
    """As that of a later CUDA: then PTX is compiled."""
    ptxas.write_text(ptxas.read_text().replace("0x7FAB0001", "1"))
    build(tmp_path / "m.so", "nvidia:sm_90a,sm_80")
    says = run(driver, f"check(sdx.load({str(tmp_path / 'm.so')!r}).run(None, FEEDS))", says="only PTX can be interpreted")
    assert says.count("\n") == 1
    build(tmp_path / "n.so", "nvidia:sm_90a")
    run(
        driver,
        f"""
        try:
            sdx.load({str(tmp_path / "n.so")!r})
        except sdx.Fail as error:
            assert "cannot load the kernels of the model" in str(error), error
        else:
            raise AssertionError
        """,
        says="only PTX can be interpreted",
    )


def test_what_ptxas_refuses_is_told(tmp_path, ptxas, monkeypatch):
    monkeypatch.setenv("SARDONYX_FAKE_PTXAS", "fail")
    with pytest.raises(sardonyx.Fail, match="ptxas' makes no code for sm_80: .*error.*Not to my taste$"):
        build(tmp_path / "m.so", "nvidia:sm_80")
    assert not (tmp_path / "m.so").exists()
    monkeypatch.setenv("SARDONYX_PTXAS", str(tmp_path / "nothing"))
    with pytest.raises(sardonyx.Fail, match="the assembler '.*nothing' is no program"):
        build(tmp_path / "m.so", "nvidia:sm_80")


def test_ptxas_is_found_where_cuda_is(tmp_path, ptxas, monkeypatch):
    for name in ("SARDONYX_PTXAS", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SARDONYX_FAKE_PTXAS_LOG", str(tmp_path / "log"))
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    ptxas.rename(tmp_path / "cuda" / "bin" / "ptxas")
    for name, value in {"CUDA_HOME": tmp_path / "cuda", "CUDA_PATH": tmp_path / "cuda", "PATH": f"{tmp_path}/cuda/bin"}.items():
        with monkeypatch.context() as patch:
            patch.setenv("PATH", "/nowhere")
            patch.setenv(name, str(value))
            build(tmp_path / "m.so", "nvidia:sm_80")
        assert len((tmp_path / "log").read_text().splitlines()) == 1
        (tmp_path / "log").unlink()


SESSION = """
    session = sdx.InferenceSession({model!r}, providers=["CUDAExecutionProvider"])
    check(session.run(None, FEEDS))
    print(session.from_cache)
"""


def load_session(driver, tmp_path, **variables):
    """Runs the model in a session whose cache is in the folder."""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(MODEL).SerializeToString())
    script = SESSION.format(model=str(tmp_path / "m.onnx"))
    return run(driver, script, SARDONYX_CACHE="1", SARDONYX_CACHE_DIR=str(tmp_path / "cache"), **variables)


def kept(tmp_path):
    """The cache's files that hold machine code."""
    return [file for file in (tmp_path / "cache").iterdir() if b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xbe\x00" in file.read_bytes()]


def test_sessions_keep_what_the_driver_compiles(tmp_path, driver, no_ptxas):
    load_session(driver, tmp_path)
    (file,) = kept(tmp_path)
    before = file.stat().st_mtime_ns, file.read_bytes()
    # Linking fails: what is kept is used, and loaded as machine code.
    load_session(driver, tmp_path, SARDONYX_FAKECUDA_FAIL="cuLinkCreate:1")
    assert [file] == kept(tmp_path) and file.read_bytes() == before[1]
    # Another driver, another device.
    load_session(driver, tmp_path, SARDONYX_FAKECUDA_VERSION="12040")
    assert len(kept(tmp_path)) == 2
    load_session(driver, tmp_path, SARDONYX_FAKECUDA_SM="80")
    assert len(kept(tmp_path)) == 3
    # What is damaged is made again.
    damaged = bytearray(before[1])
    damaged[-100] ^= 1
    file.write_bytes(damaged)
    load_session(driver, tmp_path)
    assert file.read_bytes() == before[1]


def test_sessions_run_where_the_driver_cannot_link(tmp_path, driver, no_ptxas):
    load_session(driver, tmp_path, SARDONYX_FAKECUDA_FAIL="cuLinkCreate:1:801")
    assert not kept(tmp_path)


def test_sessions_use_ptxas(tmp_path, driver, ptxas):
    log = tmp_path / "log"
    load_session(driver, tmp_path, SARDONYX_FAKE_PTXAS_LOG=str(log), SARDONYX_FAKECUDA_FAIL="cuLinkCreate:1")
    version, arguments = log.read_text().splitlines()
    assert version == "--version" and arguments.startswith("-arch=sm_90a ")
    assert len(kept(tmp_path)) == 1
    load_session(driver, tmp_path, SARDONYX_FAKE_PTXAS_LOG=str(log))
    assert len(log.read_text().splitlines()) == 2
    # Not one whose code the driver cannot read.
    newer = {"SARDONYX_FAKE_PTXAS_LOG": str(log), "SARDONYX_FAKE_PTXAS_RELEASE": "13.0", "SARDONYX_FAKECUDA_VERSION": "12050"}
    load_session(driver, tmp_path, **newer)
    assert log.read_text().splitlines()[2:] == ["--version"]
    # And one that fails is no reason not to run.
    load_session(driver, tmp_path, SARDONYX_FAKE_PTXAS="fail", SARDONYX_FAKECUDA_SM="80")


def test_other_machines_have_devices_too(tmp_path, no_ptxas):
    """Of aarch64 the file is only looked at: there is no driver for an emulator."""
    try:
        build(tmp_path / "m.so", ["aarch64-linux-gnu", "nvidia:sm_90a"])
    except sardonyx.NoSuchFile:
        pytest.skip("the C library of aarch64 is not there")
    assert needed(tmp_path / "m.so") <= libraries()
    held = (tmp_path / "m.so").read_bytes()
    assert held[18:20] == b"\xb7\0" and b"libcuda.so.1" in held and b"sm_90a ptx\0" in held
