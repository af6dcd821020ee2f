"""Parts of onnxruntime that Sardonyx has not."""

from __future__ import annotations


def refuse(module: str) -> None:
    """Raises the ImportError of a module of onnxruntime's that is not here."""
    raise ImportError(
        f"'{module}' is a part of onnxruntime that Sardonyx, which stands in its place, does not have; "
        "use onnxruntime's own in a process without it",
        name=module,
    )
