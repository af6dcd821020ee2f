"""What can go wrong, by the names that onnxruntime gives it.

Each class is also the built-in exception that a caller would expect.
"""


class Fail(RuntimeError):
    """The run or the compiler failed."""


class InvalidArgument(ValueError):
    """An input or option does not fit the model."""


class NoSuchFile(FileNotFoundError):
    """A file is missing or cannot be read."""


class InvalidGraph(Fail):
    """The model breaks the rules of ONNX."""


class NotImplemented(NotImplementedError):
    """The model is right and asks for what Sardonyx cannot do yet."""
