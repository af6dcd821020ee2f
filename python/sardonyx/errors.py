"""What can go wrong, by the names that onnxruntime gives it.

Each class is also the built-in exception that a caller would expect. An
exception's `detail` is empty unless a fault of the library itself is behind it:
then it says in the compiler's own terms what failed.
"""


class Fail(RuntimeError):
    """The run or the compiler failed."""

    detail = ""


class InvalidArgument(ValueError):
    """An input or option does not fit the model."""

    detail = ""


class NoSuchFile(FileNotFoundError):
    """A file is missing or cannot be read."""

    detail = ""


class InvalidGraph(Fail):
    """The model breaks the rules of ONNX."""


class NotImplemented(NotImplementedError):
    """The model is right and asks for what Sardonyx cannot do yet."""

    detail = ""
