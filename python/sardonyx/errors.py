"""What can go wrong, by the names that onnxruntime gives it.

Each class that is raised here is also the built-in exception that a caller would expect. An
exception's `detail` is empty unless a fault of the library itself is behind it:
then it says in the compiler's own terms what failed. `EngineError`, `ModelLoaded`, `NoModel`, `NotFound`,
`EPFail`, `DeviceReset` and `ModelRequiresCompilation` are there for `except` clauses; nothing raises them.
"""


class Fail(RuntimeError):
    """The compiler failed, or something else; of a run see `RuntimeException`."""

    detail = ""


class InvalidArgument(ValueError):
    """An input or option does not fit the model."""

    detail = ""


class UnknownName(InvalidArgument, KeyError):
    """A name that the model does not have."""

    __str__ = Exception.__str__  # KeyError's puts quotes around it


class NoSuchFile(FileNotFoundError):
    """A file is missing or cannot be read."""

    detail = ""


class InvalidGraph(Fail):
    """The model breaks the rules of ONNX."""


class InvalidProtobuf(InvalidGraph):
    """A file or its bytes are no ONNX model at all."""


class NotImplemented(NotImplementedError):
    """The model is right and asks for what Sardonyx cannot do yet."""

    detail = ""


class ModelLoadCanceled(Fail):
    """`SessionOptions.set_load_cancellation_flag` ended the loading of a model."""


class RuntimeException(Fail):
    """A run failed."""


class EngineError(Fail):
    """A failure of onnxruntime's own engine. Nothing raises it."""


class EPFail(Fail):
    """A failure of an execution provider. Nothing raises it: there is the CPU's only."""


class DeviceReset(Fail):
    """A device was reset. Nothing raises it: there is the CPU only."""


class NoModel(Fail):
    """A session without a model. Nothing raises it: sessions load theirs when they are made."""


class ModelLoaded(Fail):
    """A second model for a session. Nothing raises it: sessions load theirs when they are made."""


class ModelRequiresCompilation(Fail):
    """A model that onnxruntime must compile ahead of time. Nothing raises it."""


class NotFound(Fail):
    """Something that onnxruntime looked for is missing. Nothing raises it: see `NoSuchFile`."""
