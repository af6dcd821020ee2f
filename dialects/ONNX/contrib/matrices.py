"""What takes matrices as a whole."""

from .schema import F32, FLOATS, I32, Contrib

OPS = [
    Contrib(
        "Inverse",
        "The inverse of each matrix.",
        types={"T": FLOATS},
        inputs="X: T",
        outputs="Y: T",
        infer="inferAsFirst",
    ),
    Contrib(
        "CDist",
        "The distance of each row of A to each of B.",
        types={"T": ["float", "double"]},
        inputs="A: T, B: T",
        outputs="C: T",
        attributes="metric: string = sqeuclidean",
        builder="buildCDist",
    ),
    Contrib(
        "DynamicTimeWarping",
        "The path of least cost from the first to the last element of a matrix, as rows and columns.",
        types={"F": F32, "I": I32},
        inputs="input: F",
        outputs="output: I",
        infer="inferDynamicTimeWarping",
    ),
]
