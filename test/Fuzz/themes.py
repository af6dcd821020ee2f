"""What the nodes of a random graph have in common.

Of some forty families' operators in a dozen nodes few read each other's results in a form that a pass looks for. The graphs of a
theme are chains of a few families, of sizes at which the forms that a compiler has for them begin and end.
"""

from typing import NamedTuple


class Theme(NamedTuple):
    families: tuple  # as often as they are named; none: all
    sizes: tuple
    nodes: tuple  # fewest and most
    limit: int  # elements of a value
    reuse: float  # the chance that a node reads what there is already, if that fits
    odd: float = 0.1  # the chance of declared shapes that are wrong, and of odd names of open sizes


MIXED = Theme((), (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100), (1, 12), 40_000, 0.65)
THEMES = {
    "mixed": MIXED,
    # Views and copies: sizes of 1, which many of them may drop, and few others.
    "moves": Theme(("movement", "shapes", "selection"), (1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 12, 17), (3, 16), 20_000, 0.97),
    # Products whose rows fill tiles, or leave some; of columns that are some panels, and enough for Strassen's halves.
    "products": Theme(
        ("contractions", "contractions", "elementwise", "normalisation"),
        (1, 2, 5, 6, 7, 13, 17, 30, 31, 48, 61, 64, 73, 85, 96, 127, 128, 130, 160, 197, 256),
        (1, 6),
        60_000,
        0.9,
    ),
    # Convolutions and pools of pictures, and what stands between them.
    "pictures": Theme(
        ("windows", "windows", "elementwise", "movement"), (1, 2, 3, 7, 8, 13, 14, 16, 17, 24, 28, 32, 56), (1, 6), 60_000, 0.9
    ),
    # Models that somebody has changed: what they declare of results is of the sizes of before, and names of sizes say nothing.
    "declared": Theme(
        ("shapes", "shapes", "movement", "selection", "elementwise", "control", "contractions"), (1, 1, 1, 2, 3, 4, 5, 7, 16), (1, 10), 20_000, 0.9, 1.0
    ),
    # Integers that are known, and what is made by them.
    "constants": Theme(("chains", "chains", "shapes"), (1, 1, 2, 3, 4, 5), (4, 30), 20_000, 0.8),
}
SHARE = 0.1  # of the graphs, of each but the mixed ones


def drawn(rng):
    at = int(rng.random() / SHARE)
    themes = [theme for theme in THEMES.values() if theme is not MIXED]
    return themes[at] if at < len(themes) else MIXED
