"""What the commands of this package have in common: errors of one line, and outputs that are no inputs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from .._suggest import close_to


class Parser(argparse.ArgumentParser):
    """Errors are a line on the standard error with the status 2, and suggest what was meant; help fits 80 columns."""

    _words: list[str]

    def __init__(self, prog: str, description: str, example: str):
        super().__init__(
            prog=prog, usage="%(prog)s MODEL -o OUTPUT [OPTIONS]", description=description, epilog=f"Example: {example}",
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=28, width=80),
        )  # fmt: skip

    def parse_known_args(self, args=None, namespace=None):
        import sys

        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._words, namespace)

    def error(self, message):
        known = self._option_string_actions
        for word in self._words:
            name = word.split("=")[0]
            if name.startswith("--") and len(name) > 2 and not any(option.startswith(name) for option in known):
                like = close_to(name, known)
                message = f"there is no option '{name}'" + (f" (did you mean {like}?)" if like else "")
                break
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raises `ValueError` where a file that is to be written is one that is read, be it through links."""
    read = [path for path in inputs if path and os.path.exists(path)]
    for output in outputs:
        for path in read:
            if output and os.path.exists(output) and os.path.samefile(output, path):
                raise ValueError(f"'{output}' is not written: it is the file '{path}', which is read")


def check_files(given: argparse.Namespace) -> None:
    """The same for what a command was given."""

    def of(*names):
        return [getattr(given, name, None) for name in names]

    read = of("model", "plan", "labels", "data")
    if given.data and os.path.isdir(given.data):
        read += [os.path.join(folder, name) for folder, _, names in os.walk(given.data) for name in names]
    check_outputs(of("output", "save_plan", "report", "html"), read)
