"""What only moves elements, or picks and interpolates them by place."""

from .schema import ELEMENTS, FLOATS, HALVES, I32, NUMBERS, Contrib

_ANY = {"T": ELEMENTS}
_PLACES = ["int32", "int64"]

OPS = [
    Contrib(
        "Trilu",
        "The upper or lower triangle of matrices, zeros elsewhere.",
        types={"T": NUMBERS + ["bool"]},
        inputs="X: T, k?: int64",
        outputs="Y: T",
        attributes="upper: int = 1",
        body="Y = Trilu <upper: int = @upper> (X, k)",
    ),
    Contrib(
        "Pad",
        "Pads data by numbers of elements, cuts it where they are negative. They may be a row, the value a list of one.",
        types={"T": FLOATS},
        inputs="data: T, pads: int64, value?: T",
        outputs="output: T",
        attributes="mode: string = constant",
        builder="buildPad",
    ),
    Contrib(
        "Range",
        "Numbers from start up to but not including limit; each of the inputs may be a list of one.",
        types={"T": ["float", "double", "int16", "int32", "int64"]},
        inputs="start: T, limit: T, delta?: T",
        outputs="Y: T",
        builder="buildRange",
    ),
    Contrib(
        "GatherND",
        "Slices of data by the tuples of the last axis of indices.",
        types=_ANY | {"Tind": _PLACES},
        inputs="data: T, indices: Tind",
        outputs="output: T",
        body="At = Cast <to = 7> (indices)  output = GatherND (data, At)",
    ),
    Contrib(
        "ExpandDims",
        "X with a dimension of one at axis.",
        types=_ANY,
        inputs="X: T, axis: int32",
        outputs="Y: T",
        body="One = Constant <value_ints = [1]> ()  At = Cast <to = 7> (axis)  Axes = Reshape (At, One)  "
        "Y = Unsqueeze (X, Axes)",
    ),
    Contrib(
        "Unique",
        "Each value of a list once, in the order of their first places.",
        types=_ANY,
        inputs="x: T",
        outputs="y: T, idx: int64, counts: int64",
        builder="buildUnique",
    ),
    Contrib(
        "UnfoldTensor",
        "All slices of a size along one axis, each along a new last axis.",
        types=_ANY,
        inputs="input: T",
        outputs="output: T",
        attributes="dim: int = -1, size: int, step: int = 1",
        builder="buildUnfoldTensor",
    ),
    Contrib(
        "GridSample",
        "X sampled at the places of a grid.",
        types={"T1": FLOATS, "T2": FLOATS},
        inputs="X: T1, Grid: T1",
        outputs="Y: T2",
        attributes="mode: string = bilinear, padding_mode: string = zeros, align_corners: int = 0",
        builder="buildGridSample",
    ),
    Contrib(
        "CropAndResize",
        "Boxes of images, each resized to one height and width with its corners aligned.",
        types={"T1": HALVES + ["double"], "T2": I32},
        inputs="X: T1, rois: T1, batch_indices: T2, crop_size: T2",
        outputs="Y: T1",
        attributes="mode: string = bilinear, extrapolation_value: float = 0",
        builder="buildCropAndResize",
    ),
    Contrib(
        "SampleOp",
        "X.",
        types={"T": ["uint32", "uint64", "int32", "int64"] + HALVES + ["double"]},
        inputs="X: T",
        outputs="Y: T",
        body="Y = Identity (X)",
    ),
    Contrib(
        "ConvTransposeWithDynamicPads",
        "ConvTranspose of which Pads, two for each axis, are cut away.",
        types={"T": FLOATS},
        inputs="X: T, W: T, Pads?: int64, B?: T",
        outputs="Y: T",
        attributes="kernel_shape?: ints, output_padding?: ints, dilations?: ints, strides?: ints, "
        "auto_pad: string = NOTSET, group: int = 1",
        builder="buildConvTransposeWithDynamicPads",
    ),
]
