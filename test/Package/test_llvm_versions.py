"""LLVM of a release that Sardonyx is not written for is refused before anything is built, by a sentence."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def said(tmp_path, llvm):
    """What CMake says of a build with this LLVM, in one line."""
    variables = [f"-DLLVM_ROOT={llvm}", "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22"]
    command = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path / "build", f"-DSARDONYX_PYTHON={ROOT / '.venv/bin/python'}", *variables]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode != 0
    return re.sub(r"\s+", " ", done.stderr)


@pytest.mark.parametrize("version", ["19.1.7", "21.1.0", "23.0.0"])
def test_another_release(tmp_path, version):
    folder = tmp_path / "llvm" / "lib" / "cmake" / "llvm"
    folder.mkdir(parents=True)
    (folder / "LLVMConfig.cmake").write_text('message(FATAL_ERROR "nobody loads it")\n')
    # As LLVM's own: releases of one minor version are compatible.
    (folder / "LLVMConfigVersion.cmake").write_text(f"""set(PACKAGE_VERSION "{version}")
if("{version.rsplit('.', 1)[0]}" VERSION_EQUAL "${{PACKAGE_FIND_VERSION_MAJOR}}.${{PACKAGE_FIND_VERSION_MINOR}}")
  set(PACKAGE_VERSION_COMPATIBLE 1)
endif()
""")
    assert f"'{tmp_path}/llvm' (LLVM_ROOT) has LLVM {version}, and Sardonyx is written for 22.1" in said(tmp_path, tmp_path / "llvm")


def test_no_llvm(tmp_path):
    assert "has no LLVM with MLIR for programs that use them. On Debian: apt-get install llvm-22-dev" in said(tmp_path, tmp_path / "nowhere")
