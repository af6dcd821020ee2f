"""Samples of tests with many cases: `--whole`, or a test's name, asks for all of them."""

import collections

# Of a folder's tests with many cases the first few run, and every so manieth of the others.
SAMPLES = {"Python": (3, 10), "Quantization": (3, 8)}


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="all cases of tests that have many, not a sample of them")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a case that takes seconds, which a sample leaves out")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--whole") or any("::" in argument for argument in config.args):
        return
    count = collections.Counter()
    kept, left = [], []
    for item in items:
        few, every = SAMPLES.get(item.path.parent.name, (len(items), 1))
        test = (item.path, getattr(item, "originalname", item.name))
        count[test] += 1
        is_left = item.get_closest_marker("slow") or (count[test] > few and count[test] % every)
        (left if is_left else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept
