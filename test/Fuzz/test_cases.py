"""What the differential fuzzer found once stays right: every text in Cases, in a process of its own."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import covering  # noqa: E402
import workers  # noqa: E402
from trial import attempt  # noqa: E402

FILES = sorted((HERE / "Cases").glob("*.onnxtxt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_case(path):
    text = path.read_text()
    result = workers.alone(attempt, cases.from_text(text), 120)
    if "# open\n" in text and result["status"] != "ok" and result.get("kind") != "foreign exception":
        pytest.xfail(f"known: {result['text']}")
    assert result["status"] == "ok" or result["status"] == "refused" and "# refused\n" in text, result


def test_a_wrong_answer_is_seen():
    """The judge itself: right up to rounding, and no further."""
    import numpy as np

    from judge import differences

    want = np.linspace(-1, 1, 100, dtype=np.float32)
    rounded, wrong = want * np.float32(1 + 2**-22), want.copy()
    wrong[7] += 1e-4
    assert differences(rounded, want, lambda: [want], set()) is None
    assert "1 of 100" in differences(wrong, want, lambda: [want], set())
    assert "shape" in differences(want[:50], want, lambda: [want], set())
    assert differences(wrong, want, lambda: [wrong, want], set()) is None  # such is the spread
    assert "1 of 3" in differences(np.array([1, 2, 4]), np.array([1, 2, 3]), lambda: [np.array([1, 2, 3])], set())


def test_every_operator_is_made():
    """Each of docs/reference/Operators.md and of com.microsoft is made by a family, and computed by a reference."""
    assert covering.missing(jobs=2) == set(), "a maker for it goes into test/Fuzz/operators"
    assert not set(covering.EXCEPTIONS) - covering.supported()
