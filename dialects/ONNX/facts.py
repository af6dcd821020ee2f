"""Facts about operators that their schemas do not tell: the one place to write them.

A fact is a promise about an operator in all of its forms: whatever its attributes and
operands are, or else it is not in the list. The generator makes a trait of each, which
code asks for (`op->hasTrait<onnx::KeepsShape>()`), and stops if it finds a name here
that no operator has. test/Dialect/ONNX/facts.test holds the table against ONNX's own
cases and shape inference: what is wrong here fails there, and so does a plain operator
that is missing.

Names are MLIR mnemonics without the dialect's prefix (`Conv`, `ml.Scaler`).
"""

from typing import NamedTuple


class Fact(NamedTuple):
    name: str
    doc: str  # what it promises, and who relies on it
    ops: frozenset


def _ops(text):
    return frozenset(text.split())


_UNARY = _ops(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast Ceil Celu Cos Cosh Elu
    Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg
    Not Reciprocal RegexFullMatch Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus
    Softsign Sqrt Swish Tan Tanh ThresholdedRelu
    ml.Binarizer ml.CategoryMapper ml.LabelEncoder
    ms.Gelu ms.QuickGelu
    """
)

ELEMENTWISE = Fact(
    "Elementwise",
    "Each element of the one result is made of the operands' elements at its place,\n"
    "all operands being broadcast against one another: the result has the shape that\n"
    "they have together. Sizes are followed through such ops, and marked where they\n"
    "need no broadcasting.",
    _UNARY
    | _ops(
        """
        Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater
        GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow StringConcat
        Sub Sum SwiGLU Where Xor
        ms.BiasGelu ms.FastGelu ms.GatedAdd
        """
    ),
)

ARITHMETIC = Fact(
    "Arithmetic",
    "Elementwise, and on numbers a few instructions of any processor instead of a\n"
    "function of a math library: the host program computes it on scalars, of floats\n"
    "too.",
    _ops(
        """
        Abs Add Ceil Clip Div Equal Floor Greater GreaterOrEqual Less LessOrEqual Max
        Mean Min Mul Neg Reciprocal Round Sign Sqrt Sub Sum Where
        """
    ),
)

KEEPS_SHAPE = Fact(
    "KeepsShape",
    "The first result has the shape of the first operand. Sizes are followed through\n"
    "such ops.",
    _UNARY
    | _ops(
        """
        BatchNormalization Bernoulli CastLike CausalConvWithState Clip CumProd CumSum
        DequantizeLinear Dropout DynamicQuantizeLinear EyeLike GroupNormalization
        Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization
        MeanVarianceNormalization OptionalGetElement PRelu QuantizeLinear
        RMSNormalization RandomNormalLike RandomUniformLike ReverseSequence
        RotaryEmbedding Scatter ScatterElements ScatterND Softmax SwiGLU TensorScatter
        Trilu
        ml.Imputer ml.Normalizer ml.Scaler
        ms.CausalConvWithState ms.DequantizeLinear ms.GatedRMSNorm ms.LinearAttentionGate
        ms.QLinearLeakyRelu ms.QLinearSigmoid ms.QLinearSoftmax ms.QMoE ms.QuantizeLinear
        """
    ),
)

KEEPS_BATCH = Fact(
    "KeepsBatch",
    "The first dimension of the first result is that of the first operand. Its size is\n"
    "followed through such ops.",
    _ops(
        """
        Attention AveragePool Col2Im Conv ConvInteger ConvTranspose DeformConv
        DepthToSpace GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample
        LinearAttention LpPool MaxPool Multinomial QLinearConv STFT SpaceToDepth
        ms.LinearAttention ms.NhwcFusedConv ms.NhwcMaxPool ms.QLinearAveragePool
        ms.QLinearConv ms.QLinearGlobalAveragePool
        """
    ),
)

KEEPS_ORDER = Fact(
    "KeepsOrder",
    "The result has all elements of the first operand, as they are and in their order;\n"
    "only the shape may be another one. Known values are handed through such ops, which\n"
    "do nothing where the shape stays.",
    _ops("Flatten Identity OptionalGetElement Reshape Squeeze Unsqueeze"),
)

MOVES_DATA = Fact(
    "MovesData",
    "The elements of the results are copies of operands' elements, or of a value that\n"
    "is given or zero, and which go where does not hang on those that are copied. So\n"
    "any element type will do (complex numbers go through as integers of their bits),\n"
    "and nothing is computed.",
    KEEPS_ORDER.ops
    | _ops(
        """
        BitCast CenterCropPad Compress Concat ConcatFromSequence Constant
        ConstantOfShape DepthToSpace Expand Gather GatherElements GatherND MaxUnpool
        OneHot Optional Pad ReverseSequence Scatter SequenceAt SequenceConstruct
        SequenceEmpty SequenceErase SequenceInsert Slice SpaceToDepth Split
        SplitToSequence TensorScatter Tile Transpose Trilu Where
        ml.ArrayFeatureExtractor
        """
    ),
)

IGNORES_ELEMENTS = Fact(
    "IgnoresElements",
    "Of the first operand no element is looked at, only its shape, how many tensors it\n"
    "holds or whether it is there: any element type will do.",
    _ops(
        """
        EyeLike OptionalHasElement RandomNormalLike RandomUniformLike SequenceLength
        Shape Size
        """
    ),
)

REDUCES = Fact(
    "Reduces",
    "Combines the elements of the first operand along the axes that the second one\n"
    "lists, as the attributes keepdims and noop_with_empty_axes say. Ranks are inferred\n"
    "where only the run knows the axes.",
    _ops(
        """
        ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
        ReduceProd ReduceSum ReduceSumSquare
        """
    ),
)

DRAWS_NUMBERS = Fact(
    "DrawsNumbers",
    "Draws random numbers: equal calls give different results, so they must be neither\n"
    "merged nor repeated. These have no trait Pure.",
    _ops(
        """
        Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform
        RandomUniformLike
        """
    ),
)

FACTS = (
    ELEMENTWISE,
    ARITHMETIC,
    KEEPS_SHAPE,
    KEEPS_BATCH,
    KEEPS_ORDER,
    MOVES_DATA,
    IGNORES_ELEMENTS,
    REDUCES,
    DRAWS_NUMBERS,
)
