"""Gelu and its kin."""

from .schema import FLOATS, Contrib

_T = {"T": FLOATS}

OPS = [
    Contrib(
        "Gelu",
        "Gelu by the error function.",
        types=_T,
        inputs="X: T",
        outputs="Y: T",
        body="Y = Gelu (X)",
    ),
    Contrib(
        "BiasGelu",
        "Gelu of A plus a bias for each element of the last axis.",
        types=_T,
        inputs="A: T, B: T",
        outputs="C: T",
        body="S = Add (A, B)  C = Gelu (S)",
    ),
    Contrib(
        "FastGelu",
        "Gelu by the hyperbolic tangent, of X plus a bias.",
        types=_T,
        inputs="X: T, bias?: T",
        outputs="Y: T",
        builder="buildFastGelu",
    ),
    Contrib(
        "QuickGelu",
        "X times the logistic function of alpha times X.",
        types=_T,
        inputs="X: T",
        outputs="Y: T",
        attributes="alpha: float = 1.702",
        builder="buildQuickGelu",
    ),
]
