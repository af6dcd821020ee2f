import warnings

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test has a cache of its own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def quiet():
    """What the libraries have to say of their small data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
