import os
from pathlib import Path

import pytest

if not (Path(__file__).parents[2] / "lib/Targets/NVPTX").exists():
    collect_ignore = ["test_device.py", "test_gpu_tools.py"]


@pytest.fixture
def tool():
    """The path of the sardonyx driver."""
    path = os.path.join(os.environ.get("SARDONYX_BUILD", ""), "bin", "sardonyx")
    if not os.path.exists(path):
        pytest.skip("SARDONYX_BUILD names no build folder")
    return path
