"""The driver as a command: `sardonyx run model.onnx`, or `python -m sardonyx run model.onnx`."""

import signal
import sys


def main() -> int:
    if sys.argv[1:2] == ["quantize"]:
        from .quantization.command import main as quantize

        return quantize(sys.argv[2:])
    if sys.argv[1:2] == ["prune"]:
        from .quantization.pruning.command import main as prune

        return prune(sys.argv[2:])
    from . import _sardonyx

    # As in any program of C: ^C ends it at once, and so does a reader that has enough.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return _sardonyx.run_driver(["sardonyx", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
