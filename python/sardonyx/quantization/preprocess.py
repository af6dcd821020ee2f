"""Preprocessing as a command: `python -m sardonyx.quantization.preprocess --input MODEL --output OUTPUT`."""

from __future__ import annotations

import argparse

from .shape_inference import quant_pre_process


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "1")


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Gets a model ready to be quantised: shapes, constants, normalisations.")
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    for name in ("skip_optimization", "skip_onnx_shape", "skip_symbolic_shape"):
        parser.add_argument(f"--{name}", type=_flag, default=False, nargs="?", const=True)
    parser.add_argument("--auto_merge", action="store_true", help="does nothing here")
    parser.add_argument("--int_max", type=int, default=2**31 - 1, help="does nothing here")
    parser.add_argument("--guess_output_rank", action="store_true", help="does nothing here")
    parser.add_argument("--verbose", type=int, default=0, help="does nothing here")
    parser.add_argument("--save_as_external_data", type=_flag, default=False, nargs="?", const=True)
    parser.add_argument("--all_tensors_to_one_file", type=_flag, default=False, nargs="?", const=True)
    parser.add_argument("--external_data_location", default=None)
    parser.add_argument("--external_data_size_threshold", type=int, default=1024, help="bytes")
    return parser.parse_args(arguments)


def main(arguments=None) -> None:
    given = vars(parse_arguments(arguments))
    quant_pre_process(given.pop("input"), given.pop("output"), **given)


if __name__ == "__main__":
    main()
