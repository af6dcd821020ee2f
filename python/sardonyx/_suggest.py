"""Sentences about names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 12  # names that a sentence lists


def close_to(name, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that is most like `name`, or an empty text where none is."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(str(candidate).lower(), str(candidate))
    found = difflib.get_close_matches(str(name).lower(), list(folded), 1, cutoff)
    return folded[found[0]] if found else ""


def unknown(kind: str, name, known: Iterable[str], owner: str = "the model") -> str:
    """`the model has no input 'X'; it has x, b (did you mean x?)`"""
    known = [str(candidate) for candidate in known]
    listed = ", ".join(known[:_MOST]) + (f" and {len(known) - _MOST} more" if len(known) > _MOST else "")
    text = f"{owner} has no {kind} {name!r}; it has {listed or 'none'}"
    like = close_to(name, known)
    return f"{text} (did you mean {like}?)" if like else text
