"""Makers of nodes. Each takes a builder, picks inputs and attributes, and emits a node or a few;
OPERATORS lists them, common ones more often. `families` gives those of one file by its name."""

import importlib

FAMILIES = """elementwise casts reductions windows contractions movement shapes normalisation quantise selection
 control recurrent strings sequences learned trees fused contrib networks images
 training signals maps preview gradients legacy chains""".split()


def families():
    return {name: importlib.import_module(f"operators.{name}").OPERATORS for name in FAMILIES}


def operators_of(names):
    """Every family counts the same, however many operators it has, and as often as it is named."""
    table = families()
    longest = max(len(table[name]) for name in names)
    return [maker for name in names for maker in table[name] * max(1, longest // (2 * len(table[name])))]
