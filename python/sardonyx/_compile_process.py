"""`SessionOptions.compile = "process"`: another process compiles a model, and this one finds it in the cache.

The other process runs `serve`. It is asked and answers by pickles, on its standard input and output.
"""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _sardonyx
    from ._options import SessionOptions

from ._loading import INTERRUPTED
from .errors import Fail, InvalidArgument, ModelLoadCanceled

# What the other process begins with: where to find packages, as this one does, comes before all else.
_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    f"from {__name__} import serve; serve()"
)
_POLL = 0.05  # seconds between two looks at whether the caller has given up


class CompileProcess:
    """Compiles one model in a process of its own, into the cache of `native`, which gets a folder for the time of the load
    where it has none. A context: at its end the folder is gone.

    `providers`: what `InferenceSession` was given besides.
    """

    def __init__(
        self, path: str, data: bytes, options: SessionOptions, native: _sardonyx.Options, providers: tuple[Any, Any]
    ):
        self.error: BaseException | None = None
        self._cancel = options._cancel
        self._folder = None
        if not native.cache:
            self._folder = tempfile.TemporaryDirectory(prefix="sardonyx-")
            native.cache, native.cache_dir = True, self._folder.name
        asked = copy.copy(options)
        asked.compile, asked.optimized_model_filepath, asked.log_severity_level = "wait", "", 4
        asked.cache, asked.cache_dir = True, native.cache_dir
        asked.external_data_dir, asked._files = native.external_data_dir, {}
        self._request = path, data, asked, providers
        native.set_compile_elsewhere(self._compile)

    def __enter__(self) -> CompileProcess:
        return self

    def __exit__(self, *_) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _compile(self) -> bool:
        """Whether the cache has the model now; `error` says why not. It is called from the compiler's code, which no
        exception may pass."""
        try:
            error = _ask(self._request, self._cancel)
        except BaseException as raised:  # noqa: BLE001
            error = raised
        self.error = error
        return error is None


def _ask(request: tuple, cancel: _sardonyx.CancelFlag) -> BaseException | None:
    """Has another process compile; what it raised, or None."""
    if not sys.executable:
        raise Fail('compile = "process" needs a Python to start: sys.executable names none')
    try:
        message = pickle.dumps(sys.path) + pickle.dumps(request)
    except (TypeError, pickle.PicklingError) as problem:
        raise InvalidArgument(f'compile = "process" cannot give the options to another process: {problem}') from None
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
            )
        except OSError as problem:
            raise Fail(f"the process that is to compile cannot be started: {problem}") from None
        with process:
            try:
                answer = _talk(process, message, cancel)
            finally:
                process.kill()
        try:
            return pickle.loads(answer)
        except Exception:  # noqa: BLE001  it ended before its answer
            said.seek(0)
            raise Fail(_tell_end(process.returncode, said.read())) from None


def _talk(process: subprocess.Popen, message: bytes | None, cancel: _sardonyx.CancelFlag) -> bytes:
    while True:
        try:
            return process.communicate(message, timeout=_POLL)[0]
        except subprocess.TimeoutExpired:
            message = None  # communicate goes on with what it was given first
            if cancel.is_set():
                raise ModelLoadCanceled(INTERRUPTED) from None


def _tell_end(status: int, said: bytes) -> str:
    how = f"with status {status}"
    if status < 0:
        try:
            how = f"by {signal.Signals(-status).name}"
        except ValueError:
            how = f"by signal {-status}"
    lines = said.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"the process that compiled the model ended {how}" + (f": {last}" if last else "")


def serve() -> None:
    """What the other process does: a session of the model, which leaves it in the cache."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what anything prints is no answer
    error = None
    try:
        path, data, options, (providers, provider_options) = pickle.load(sys.stdin.buffer)
        from ._session import InferenceSession

        InferenceSession(path or data, options, providers, provider_options, read_config_from_model=False)
    except BaseException as raised:  # noqa: BLE001
        error = raised.with_traceback(None)
        error.__context__ = error.__cause__ = None
    try:
        answer = pickle.dumps(error)
        pickle.loads(answer)
    except Exception:  # noqa: BLE001
        answer = pickle.dumps(Fail(f"{type(error).__name__}: {error}"))
    with open(answers, "wb") as file:
        file.write(answer)
    # Nothing more is to be written here, such as the profile of a session that never ran.
    os._exit(0)
