import os

import pytest


@pytest.fixture
def tool():
    """The path of the sardonyx driver."""
    path = os.path.join(os.environ.get("SARDONYX_BUILD", ""), "bin", "sardonyx")
    if not os.path.exists(path):
        pytest.skip("SARDONYX_BUILD names no build folder")
    return path
