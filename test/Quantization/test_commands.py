"""`sardonyx quantize` and `sardonyx prune` as commands: help, wrong lines, and outputs that would be inputs."""

import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.quantization.command import main as quantize
from sardonyx.quantization.model_files import save_model
from sardonyx.quantization.pruning.command import main as prune

COMMANDS = {"quantize": quantize, "prune": prune}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = np.random.default_rng(0).standard_normal((32, 32), np.float32)
    f = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "g",
        [helper.make_tensor_value_info("x", f, ["n", 32])], [helper.make_tensor_value_info("y", f, ["n", 32])],
        [numpy_helper.from_array(w, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "m.onnx")
    os.mkdir("feeds")
    for i in range(4):
        np.savez(f"feeds/{i}.npz", x=np.random.default_rng(i).standard_normal((8, 32), np.float32))
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal(name, capsys):
    with pytest.raises(SystemExit) as ended:
        COMMANDS[name](["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0 and max(map(len, out.splitlines())) <= 80 and f"Example: sardonyx {name} " in out


@pytest.mark.parametrize("name, arguments, sentence", [
    ("quantize", ["m.onnx", "--ouput", "s.onnx"], "there is no option '--ouput' (did you mean --output?)"),
    ("quantize", ["m.onnx", "-o", "s.onnx", "--precision", "int5"], "invalid choice: 'int5'"),
    ("quantize", ["m.onnx"], "-o says where the quantised model goes"),
    ("prune", ["m.onnx", "--dta", "feeds"], "there is no option '--dta' (did you mean --data?)"),
    ("prune", ["m.onnx"], "the following arguments are required: --data"),
    ("quantize", [], "the following arguments are required: MODEL"),
])  # fmt: skip
def test_wrong_command_lines(here, capsys, name, arguments, sentence):
    with pytest.raises(SystemExit) as ended:
        COMMANDS[name](arguments)
    err = capsys.readouterr().err
    assert ended.value.code == 2 and sentence in err and err.count("\n") == 1
    assert err.startswith(f"sardonyx {name}: ") and err.endswith(f"see sardonyx {name} --help\n")


def test_no_output_is_an_input(here, capsys):
    os.symlink("m.onnx", "link.onnx")
    before = (here / "m.onnx").read_bytes()
    for name in ("m.onnx", "link.onnx", "feeds/1.npz"):
        assert quantize(["m.onnx", "-o", name, "--precision", "int8-dynamic"]) == 2 or name == "feeds/1.npz"
        assert quantize(["m.onnx", "-o", name, "--data", "feeds"]) == 2
        assert f"'{name}' is not written: it is the file" in capsys.readouterr().err
        assert prune(["m.onnx", "-o", name, "--data", "feeds", "--amount", "0.5"]) == 2
        np.savez("feeds/1.npz", x=np.ones((8, 32), np.float32))
    assert quantize(["m.onnx", "-o", "s.onnx", "--precision", "int8-dynamic", "--save-plan", "m.onnx"]) == 2
    assert (here / "m.onnx").read_bytes() == before and not (here / "s.onnx").exists()


def test_outputs_are_whole_or_not_there(here, capsys, monkeypatch):
    """What fails in the middle leaves what was there; links stay links; weights beside a model take their place with it."""
    assert quantize(["m.onnx", "-o", "s.onnx", "--precision", "int8-dynamic"]) == 0
    os.symlink("s.onnx", "link.onnx")
    assert quantize(["m.onnx", "-o", "link.onnx", "--precision", "f16"]) == 0
    assert os.path.islink("link.onnx") and b"Cast" in (here / "s.onnx").read_bytes()
    model = onnx.load("m.onnx")
    save_model(model, "big.onnx", external_data=True)
    assert sorted(name for name in os.listdir() if name.startswith("big")) == ["big.onnx", "big.onnx.data"]
    np.testing.assert_array_equal(numpy_helper.to_array(onnx.load("big.onnx").graph.initializer[0]), numpy_helper.to_array(onnx.load("m.onnx").graph.initializer[0]))
    kept = (here / "s.onnx").read_bytes()

    def fails(model, path, **options):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(onnx, "save_model", fails)
    assert quantize(["m.onnx", "-o", "s.onnx", "--precision", "int8-dynamic"]) == 2
    assert (here / "s.onnx").read_bytes() == kept and not [name for name in os.listdir() if name.startswith(".sardonyx")]
    assert quantize(["m.onnx", "-o", "none/s.onnx", "--precision", "int8-dynamic"]) == 2
    assert "there is no folder" in capsys.readouterr().err
