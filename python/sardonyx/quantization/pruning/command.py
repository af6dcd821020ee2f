"""`sardonyx prune MODEL -o OUTPUT --data FEEDS`: models without what they can do without."""

from __future__ import annotations

import sys

import numpy as np

from ..arguments import Parser, check_files
from ..command import REFUSALS, add_bounds, metric_of_argument, reader_of, tell
from ..contract.samples import with_labels
from ..model_files import load_model
from .prune import KINDS, prune
from .selection import COSTS


def _parser():
    parser = Parser(
        "sardonyx prune", "Writes a model without channels, heads or numbers that it can do without.",
        "sardonyx prune model.onnx -o small.onnx --data feeds --max-error 1%",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("-o", "--output", help="where the pruned model goes")
    parser.add_argument("--data", metavar="FOLDER", required=True, help="samples: .npz files of inputs, or test_data_set_* folders")
    parser.add_argument("--kind", choices=KINDS, default="structured", help="structured: narrower layers; others: zeros in weights")
    parser.add_argument("--amount", type=float, metavar="SHARE", help="how much to remove; without, as much as --max-error allows")
    parser.add_argument("--of", choices=COSTS, default="parameters", help="what the amount is a share of (parameters)")
    parser.add_argument("--block", type=int, nargs=2, default=(1, 16), metavar=("ROWS", "COLUMNS"), help="of zeros (1 16)")
    parser.add_argument("--keep", nargs="+", metavar="NODE", help="names, patterns or operators of nodes whose weights stay")
    parser.add_argument("--no-reconstruct", action="store_true", help="leave the weights that are left as they are")
    parser.add_argument("--tile", type=int, default=16, help="wide layers keep multiples of it (16)")
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done; write nothing")
    add_bounds(parser.add_argument_group("bounds", "exit code 3 where they can't be held"))
    return parser


def main(arguments=None) -> int:
    """0: written; 2: something that was asked for can't be done, which a sentence tells; 3: bounds can't be held."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.output and not given.dry_run:
        parser.error("-o says where the pruned model goes (or --dry-run that it goes nowhere)")
    try:
        check_files(given)
        return tell("prune", given, lambda: _pruned(given))
    except REFUSALS as error:
        print(f"sardonyx prune: {error}", file=sys.stderr)
        return 2


def _pruned(given):
    model = load_model(given.model)
    data = reader_of(given, model)
    if given.labels:
        data = with_labels(data, np.load(given.labels))
    bound = given.max_error
    if bound is not None and not bound.endswith("%"):
        bound = float(bound)
    return prune(
        model, data, given.kind, given.amount, bound, metric_of_argument(given.metric), given.min_speedup,
        None if given.dry_run else given.output, given.of, not given.no_reconstruct, given.keep, given.holdout,
        given.threads, given.time_limit, max_size=given.max_size, tile=given.tile, block=given.block, seed=given.seed,
    )  # fmt: skip
