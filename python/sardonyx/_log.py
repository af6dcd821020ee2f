"""What loading and runs tell on stderr, by onnxruntime's levels of severity."""

from __future__ import annotations

import datetime
import sys
import time

from .errors import Fail

VERBOSE, INFO, WARNING, ERROR, FATAL = range(5)
_default = WARNING


def set_default(severity: int) -> None:
    global _default
    _default = severity


class Logger:
    """Those of a session: `severity` -1 is the process's, as `logid` is the caller's name for it."""

    def __init__(self, severity: int = -1, logid: str = ""):
        if not -1 <= severity <= FATAL:
            raise Fail(f"Invalid session log severity level: {severity}; it is -1 for the default, or from 0 to 4")
        self._severity, self._logid = severity, logid

    def takes(self, severity: int) -> bool:
        return severity >= (_default if self._severity < 0 else self._severity)

    def info(self, what: str, text: str) -> None:
        self._write(INFO, "I", what, text)

    def warning(self, what: str, text: str) -> None:
        self._write(WARNING, "W", what, text)

    def _write(self, severity: int, letter: str, what: str, text: str) -> None:
        if self.takes(severity):
            now = datetime.datetime.now()
            print(f"{now:%F %H:%M:%S.%f} [{letter}:sardonyx:{self._logid}, {what}] {text}", file=sys.stderr)

    def of_run(self, options) -> Logger:
        """The logger of a run with these options."""
        severity = options.log_severity_level
        if not -1 <= severity <= FATAL:
            raise Fail(f"Invalid run log severity level: {severity}; it is -1 for the session's, or from 0 to 4")
        if severity < 0 and not options.logid:
            return self
        names = [name for name in (self._logid, options.logid) if name]
        return Logger(self._severity if severity < 0 else severity, ":".join(names))


class Stopwatch:
    def __init__(self):
        self._begin = time.perf_counter()

    def __str__(self):
        return f"{(time.perf_counter() - self._begin) * 1000:.3f} ms"
