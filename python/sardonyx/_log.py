"""What loading and runs tell, by onnxruntime's levels of severity: to handlers of the logger "sardonyx" (module `logging`)
where there are some, else on stderr."""

from __future__ import annotations

import datetime
import logging
import sys
import time

from .errors import Fail

VERBOSE, INFO, WARNING, ERROR, FATAL = range(5)
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_default = WARNING
_logger = logging.getLogger("sardonyx")


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
        if severity >= (_default if self._severity < 0 else self._severity):
            return True
        # A level that the logger itself was given asks for more.
        return _logger.level != logging.NOTSET and _logger.isEnabledFor(_LEVELS[severity])

    def info(self, what: str, text: str) -> None:
        self._write(INFO, "I", what, text)

    def warning(self, what: str, text: str) -> None:
        self._write(WARNING, "W", what, text)

    def _write(self, severity: int, letter: str, what: str, text: str) -> None:
        if not self.takes(severity):
            return
        if _logger.hasHandlers():
            # What a session was told to tell is told, whatever the level above it.
            name = f"{self._logid}, {what}" if self._logid else what
            _logger.handle(_logger.makeRecord(_logger.name, _LEVELS[severity], "", 0, "[%s] %s", (name, text), None))
        else:
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
