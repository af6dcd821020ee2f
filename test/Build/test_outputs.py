"""Where files are written: never over what is read, never half, and under no name that lies."""

import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import parser

import sardonyx

MODEL = '<ir_version: 10, opset_import: ["": 21]> m (float[n] x) => (float[n] y) { y = Add (x, x) }'


@pytest.fixture
def folder(tmp_path):
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones(3, np.float32))
    return tmp_path


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def refuse(tool, folder, *arguments, stdout=subprocess.PIPE):
    """What the tool says that has changed nothing."""
    before = contents(folder)
    done = subprocess.run([tool, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert done.returncode == 1, done
    assert contents(folder) == before and not list(folder.glob(".sardonyx*"))
    return done.stderr


@pytest.mark.parametrize("how", ["itself", "path", "link", "hard link", "from a link"])
@pytest.mark.parametrize("command", ["build", "compile"])
def test_not_over_the_model(folder, tool, command, how):
    model, output = "m.onnx", "m.onnx"
    if how == "path":
        output = folder / ".." / folder.name / "m.onnx"
    elif how == "link":
        output = "other"
        (folder / output).symlink_to("m.onnx")
    elif how == "hard link":
        output = "other"
        os.link(folder / "m.onnx", folder / output)
    elif how == "from a link":
        model = "other.onnx"
        (folder / model).symlink_to("m.onnx")
    said = refuse(tool, folder, command, model, "-o", output)
    assert "is not written: it is the file" in said or "no file of the kind '.onnx'" in said


def test_not_over_other_files_that_are_read(folder, tool):
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> m (float[n, 40] x) => (float[n, 40] y) { y = MatMul (x, w) }')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((40, 40), np.float32), "w"))
    onnx.save(model, folder / "large.onnx", save_as_external_data=True, location="w.so", size_threshold=0)
    assert "'w.so' is not written" in refuse(tool, folder, "build", "large.onnx", "-o", "w.so")
    assert "'w.so' is not written" in refuse(tool, folder, "build", "large.onnx", "-o", "a.so", "--weights", "w.so")
    assert "'w.so' is not written" in refuse(tool, folder, "compile", "large.onnx", "-o", "w.so")
    assert "'w.so' is not written" in refuse(tool, folder, "profile", "large.onnx", "--seconds", 0, "--html", "w.so")
    (folder / "m.h").symlink_to("m.onnx")
    assert "'m.h' is not written" in refuse(tool, folder, "build", "m.onnx", "-o", "m.so")
    (folder / "out").mkdir()
    (folder / "out" / "y.npy").symlink_to(folder / "x.npy")
    assert "y.npy' is not written" in refuse(tool, folder, "run", "m.onnx", "-i", "x=x.npy", "-o", "out")
    with pytest.raises(sardonyx.InvalidArgument, match="is not written"):
        sardonyx.build(folder / "large.onnx", folder / "w.so")


def test_two_outputs_of_one_name(folder, tool):
    model = parser.parse_model(MODEL.replace("y = Add (x, x)", "y = Add (x, x) z = Neg (x)"))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, ["n"]))
    for value, node, name in zip(model.graph.output, model.graph.node, ("a/b", "a:b")):
        value.name = node.output[0] = name
    onnx.save(model, folder / "two.onnx")
    assert "a_b.npy': two files of this name" in refuse(tool, folder, "run", "two.onnx", "-o", ".")
    sardonyx.build(model, folder / "two")
    done = subprocess.run([folder / "two", "--output-dir", folder], capture_output=True, text=True)
    assert done.returncode == 1 and "two outputs would be written" in done.stderr


def test_links_and_other_files_are_replaced(folder, tool):
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    inode = (folder / "real").stat().st_ino
    subprocess.run([tool, "compile", "m.onnx", "-o", "link"], check=True, cwd=folder)
    assert (folder / "link").is_symlink() and "linalg" in (folder / "real").read_text()
    assert (folder / "real").stat().st_ino != inode
    done = subprocess.run([tool, "compile", "m.onnx", "-o", "/dev/stdout"], check=True, cwd=folder, capture_output=True, text=True)
    assert "linalg" in done.stdout
    assert not list(folder.glob(".sardonyx*"))


@pytest.mark.parametrize("name", ["m.dll", "m.DLL", "m.dylib", "m.exe", "m.lib", "m.obj", "m.js", "m.h", "m.onnx2.onnx", "m.npy", "m.SO", "-"])
def test_names_that_lie(folder, tool, name):
    said = refuse(tool, folder, "build", "m.onnx", "-o", name)
    assert "names are NAME.so" in said or "no name of a file" in said


def test_library_with_a_version(folder, tool):
    subprocess.run([tool, "build", "-q", "m.onnx", "-o", "libm.so.1"], check=True, cwd=folder)
    (y,) = sardonyx.load(folder / "libm.so.1").run(None, {"x": np.ones(2, np.float32)})
    assert y.tolist() == [2, 2]


@pytest.mark.parametrize("target", [
    "x86_64-linux-musl", "aarch64-linux-musl", "x86_64-linux-android", "aarch64-linux-android", "x86_64-linux-gnux32",
    "aarch64-linux-ohos", "aarch64-apple-darwin", "x86_64-pc-windows-msvc", "riscv64-linux-gnu",
])  # fmt: skip
def test_systems_without_glibc(folder, tool, target):
    said = refuse(tool, folder, "build", "m.onnx", "--target", target, "-o", "m.so")
    assert "models cannot be built for" in said and "x86_64-linux-gnu" in said


@pytest.mark.parametrize("target, name", [("wasm32-unknown-emscripten", "m.wasm"), ("wasm64-wasi", "m.wasm")])
def test_other_engines(folder, tool, target, name):
    assert "models cannot be built for" in refuse(tool, folder, "build", "m.onnx", "--target", target, "-o", name)


def test_full_disk(folder, tool):
    """The output and what programs print on the standard output."""
    for arguments in (["build", "m.onnx", "-o", "/dev/full"], ["compile", "m.onnx", "-o", "/dev/full"]):
        assert "cannot write '/dev/full': No space left on device" in refuse(tool, folder, *arguments)
    with open("/dev/full", "w") as full:
        for arguments in (["run", "m.onnx"], ["inspect", "m.onnx"], ["compile", "m.onnx"], ["bench", "m.onnx", "--seconds", "0"],
                          ["--help"], ["profile", "m.onnx", "--seconds", "0"]):  # fmt: skip
            assert "cannot write to the standard output" in refuse(tool, folder, *arguments, stdout=full)
        subprocess.run([tool, "build", "-q", "m.onnx", "-o", "program"], check=True, cwd=folder)
        done = subprocess.run([folder / "program"], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "cannot write to the standard output" in done.stderr


@pytest.fixture
def small_disk(folder):
    """A file system of 64 kB."""
    place = folder / "small"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("no file system can be mounted")
    yield place
    subprocess.run(["umount", place], check=True)


def test_small_disk(folder, small_disk, tool):
    """Nothing is left of files that do not fit, and what was there before stays."""
    (small_disk / "m.so").write_text("old")
    x = np.ones(100000, np.float32)
    np.save(folder / "long.npy", x)
    for arguments in (["build", "m.onnx", "-o", "small/m.so"], ["run", "m.onnx", "-i", "x=long.npy", "-o", "small"],
                      ["build", "m.onnx", "-o", "small/m.wasm"], ["build", "m.onnx", "-o", "small/m"],
                      ["build", "m.onnx", "-o", "small/m.a"], ["build", "m.onnx", "-o", "small/m.o"]):  # fmt: skip
        said = refuse(tool, folder, *arguments)
        assert "No space left on device" in said and ".sardonyx" not in said, said
        assert [(file.name, file.read_text()) for file in small_disk.iterdir()] == [("m.so", "old")]
    model = parser.parse_model(MODEL.replace("Add (x, x)", "Add (x, w)").replace("n]", "100000]"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(x, "w"))
    options = sardonyx.SessionOptions()
    options.optimized_model_filepath = str(small_disk / "m.so")
    with pytest.raises(sardonyx.Fail, match="could not be written to .*small/m.so': cannot write 'm.so': No space left"):
        sardonyx.InferenceSession(model, options)
    assert [(file.name, file.read_text()) for file in small_disk.iterdir()] == [("m.so", "old")]


def test_folders(folder, tool):
    assert "cannot write 'none/m.so': No such file" in refuse(tool, folder, "build", "m.onnx", "-o", "none/m.so")
    assert "cannot write 'none/m': No such file" in refuse(tool, folder, "compile", "m.onnx", "-o", "none/m")
    (folder / "there").mkdir()
    assert "cannot write 'there'" in refuse(tool, folder, "build", "m.onnx", "-o", "there")
    assert "cannot write 'there'" in refuse(tool, folder, "compile", "m.onnx", "-o", "there")


def test_other_tools(folder):
    """Those of the compiler's developers, where they were built."""
    bin = os.path.join(os.environ.get("SARDONYX_BUILD", ""), "bin")
    translate, opt = os.path.join(bin, "onnx-translate"), os.path.join(bin, "onnx-opt")
    if not os.path.exists(translate) or not os.path.exists(opt):
        pytest.skip("there is no onnx-translate")
    subprocess.run([translate, "--onnx-to-mlir", "m.onnx", "-o", "m.mlir"], check=True, cwd=folder)
    for command in ([translate, "--onnx-to-mlir", "m.onnx", "-o", "m.onnx"], [translate, "--mlir-to-onnx", "m.mlir", "-o", "m.mlir"],
                    [opt, "m.mlir", "-o", "m.mlir"]):  # fmt: skip
        assert "is not written: it is the input" in refuse(command[0], folder, *command[1:])
    for command in ([translate, "--onnx-to-mlir", "m.onnx"], [translate, "--mlir-to-onnx", "m.mlir"], [opt, "m.mlir"]):
        for output in ([], ["-o", "/dev/full"]):
            with open("/dev/full", "w") as full:
                assert "No space left on device" in refuse(command[0], folder, *command[1:], *output, stdout=full)
