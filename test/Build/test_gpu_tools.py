"""utils/gpu.py and utils/ptx.py on a machine without a GPU."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "utils"))

import gpu  # noqa: E402
import ptx  # noqa: E402

BUILD = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build/release"))


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    if not (BUILD / "lib" / gpu.FAKE).exists():
        pytest.skip("SARDONYX_BUILD names no build folder")
    folder = tmp_path_factory.mktemp("gpu") / "pack"
    command = [sys.executable, ROOT / "utils/gpu.py", "pack", f"{folder}.zip", "--fake", "--every=250", "--jobs=2", "--build", BUILD]
    subprocess.run([*command, "--networks", "perceptron"], check=True, env={**os.environ, "SARDONYX_PTXAS": "none"})
    shutil.rmtree(folder)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", f"{folder}.zip", folder.parent], check=True)
    return folder


def run(folder, *options, **variables):
    # -S: nothing but Python's own library.
    command = [sys.executable, "-I", "-S", folder / "gpu.py", "run", *options]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})


def test_all_is_right(packed, tmp_path):
    done = run(packed, "--output", tmp_path / "results.json")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["wrong"] == [] and int(results["cases"][0][1]) >= 4
    assert [row[:2] for row in results["networks"][1:]] == [["perceptron", "f32"], ["perceptron", "f16"]]
    f32, f16 = (float(row[2]) for row in results["networks"][1:])
    assert 0 < f32 < 1e-5 < f16 < 1e-2
    assert re.search(r"^cases +\d+ +wrong +0$", done.stdout, re.MULTILINE), done.stdout


def test_wrong_results_are_told(packed, tmp_path):
    folder = tmp_path / "pack"
    shutil.copytree(packed, folder)
    index = json.loads((folder / gpu.INDEX).read_text())
    case = next(case for case in index["cases"] for file in case["outputs"].values())
    file = folder / case["place"] / next(iter(case["outputs"].values()))
    data = bytearray(file.read_bytes())
    data[-1] ^= 0x40
    file.write_bytes(data)
    done = run(folder, "--only", "cases")
    assert done.returncode == 1 and f"case {case['name']}: element " in done.stdout, done.stdout


def test_a_lost_device_and_a_hang_cost_one_program(packed, tmp_path):
    done = run(packed, "--only", "networks", "--output", tmp_path / "r.json", SARDONYX_FAKECUDA_FAIL="cuLaunchKernelEx:2:700")
    assert done.returncode == 1 and "network perceptron (f32): status 1: " in done.stdout, done.stdout
    done = run(packed, "--only", "networks", "--output", tmp_path / "r.json", "--timeout", "0.001")
    assert done.returncode == 1 and "network perceptron (f16): no end within 0.001 s" in done.stdout, done.stdout


def test_files_of_numpy_are_read(tmp_path):
    np = pytest.importorskip("numpy")
    for kind in gpu.NPY_LETTERS:
        array = np.arange(6).reshape(2, 3).astype(kind)
        np.save(tmp_path / "x.npy", array)
        assert gpu.read_npy(tmp_path / "x.npy") == (kind, (2, 3), tuple(array.ravel().tolist()))


PTX = """
.visible .entry a(
.maxntid 256, 1, 1
{
    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
}
.visible .entry b(
{
    .local .align 4 .b8 __local_depot0[16];
    @%p1 ld.local.b32 %r1, [%rd1];
}
"""


def test_what_ptx_must_not_have():
    assert ptx.find_local(PTX) == ["b"]
    assert ptx.most_registers(PTX) == {"a": 255} and ptx.most_registers(PTX.replace("256", "1024")) == {"a": 64}
    assert ptx.missing(PTX, {"ld.global.v4": 1, "mma.sync": 2}) == ["0 of mma.sync, expected 2"]


@pytest.mark.parametrize("options", [["--forms"], ["--every", "150"]])
def test_ptxas_takes_all_kernels(options):
    if not ptx.find_ptxas():
        pytest.skip("there is no ptxas")
    command = [sys.executable, ROOT / "utils/ptx.py", "--jobs", "2", "--build", BUILD, *options]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
