"""Every version of every operator has a case that passes (versions.py); a few say why they cannot."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import models  # noqa: E402
import versions  # noqa: E402

FOUND = {}


def cases():
    if not FOUND:
        FOUND.update(versions.cases())
    return FOUND


NAMES = sorted({version[:2] for version in versions.all_versions()})


@pytest.mark.parametrize("domain,name", NAMES, ids=[f"{domain}.{name}".strip(".") for domain, name in NAMES])
def test_versions_of(domain, name):
    wrong = {}
    for version in versions.all_versions():
        if version[:2] == (domain, name):
            label = f"{domain or 'ai.onnx'}.{name}-{version.since}"
            _, said = versions.judge(version, cases().get(version, []))
            if label in models.EXCEPTIONS:
                assert said, f"{label} passes: it is no exception any more"
            elif said:
                wrong[label] = said
    assert not wrong


def test_exceptions_are_versions():
    known = {f"{version.domain or 'ai.onnx'}.{version.name}-{version.since}" for version in versions.all_versions()}
    assert set(models.EXCEPTIONS) <= known


def test_a_wrong_answer_is_seen():
    case = models.case(17, "(float[2] x) => (float[2] y) { y = Neg (x) }", {"x": models.floats(2)}, [0, 0])
    assert versions.run(case) == "other numbers"
