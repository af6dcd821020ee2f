"""Operators on quantized tensors: of floats that integers, a scale and a zero
point stand for."""

from .schema import BYTES, F32, HALVES, I32, Contrib

_T = {"T": BYTES}


def _binary(op):
    return Contrib(
        f"QLinear{op}",
        f"{op} of quantized tensors.",
        types=_T,
        inputs="A: T, A_scale: float, A_zero_point?: T, B: T, B_scale: float, "
        "B_zero_point?: T, C_scale: float, C_zero_point?: T",
        outputs="C: T",
        builder=f"buildQLinear{op}",
    )


def _unary(op, doc, attributes=""):
    return Contrib(
        f"QLinear{op}",
        doc,
        types=_T,
        inputs="X: T, X_scale: float, X_zero_point?: T, Y_scale: float, Y_zero_point?: T",
        outputs="Y: T",
        attributes=attributes,
        builder=f"buildQLinear{op}",
    )


OPS = [
    Contrib(
        "QuantizeLinear",
        "ONNX's QuantizeLinear, from before it had 16 and 4 bits.",
        types={"T1": HALVES, "T2": BYTES + ["int16", "uint16", "int4", "uint4"]},
        inputs="x: T1, y_scale: T1, y_zero_point?: T2",
        outputs="y: T2",
        attributes="axis?: int",
        body="y = QuantizeLinear <axis: int = @axis> (x, y_scale, y_zero_point)",
    ),
    Contrib(
        "DequantizeLinear",
        "ONNX's DequantizeLinear, from before it had 16 and 4 bits.",
        types={
            "T1": BYTES + ["int16", "uint16", "int32", "int4", "uint4"],
            "T2": HALVES,
        },
        inputs="x: T1, x_scale: T2, x_zero_point?: T1",
        outputs="y: T2",
        attributes="axis?: int",
        body="y = DequantizeLinear <axis: int = @axis> (x, x_scale, x_zero_point)",
    ),
    Contrib(
        "MatMulIntegerToFloat",
        "MatMulInteger, times both scales, plus a bias.",
        types={"T1": BYTES, "T2": BYTES, "T3": HALVES},
        inputs="A: T1, B: T2, a_scale: T3, b_scale: T3, a_zero_point?: T1, "
        "b_zero_point?: T2, bias?: T3",
        outputs="Y: T3",
        builder="buildMatMulIntegerToFloat",
    ),
    Contrib(
        "MatMulInteger16",
        "MatMul of integers of 16 bits, in 32 bits.",
        types={
            "T1": ["int16", "uint16"],
            "T2": ["int16", "uint16"],
            "T3": ["int32", "uint32"],
        },
        inputs="A: T1, B: T2",
        outputs="Y: T3",
        builder="buildMatMulInteger16",
    ),
    Contrib(
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat of A quantized by its own range.",
        types={"T1": F32, "T2": BYTES},
        inputs="A: T1, B: T2, b_scale: T1, b_zero_point?: T2, bias?: T1",
        outputs="Y: T1",
        builder="buildDynamicQuantizeMatMul",
    ),
    Contrib(
        "QGemm",
        "Gemm of quantized matrices; without a scale for it the result is float.",
        types={
            "T": F32, "TA": BYTES, "TB": BYTES, "TC": I32, "TYZ": BYTES,
            "TY": ["float", "int8", "uint8"],
        },
        inputs="A: TA, a_scale: T, a_zero_point: TA, B: TB, b_scale: T, b_zero_point: TB, "
        "C?: TC, y_scale?: T, y_zero_point?: TYZ",
        outputs="Y: TY",
        attributes="alpha: float = 1.0, transA: int = 0, transB: int = 0",
        builder="buildQGemm",
    ),
    _binary("Add"),
    _binary("Mul"),
    _unary("Sigmoid", "Sigmoid of a quantized tensor."),
    _unary("LeakyRelu", "LeakyRelu of a quantized tensor.", "alpha: float = 0.01"),
    Contrib(
        "QLinearWhere",
        "Where of tensors that are quantized each in its way.",
        types={"B": ["bool"], "T": BYTES, "TF": F32},
        inputs="condition: B, X: T, x_scale: TF, x_zero_point: T, Y: T, y_scale: TF, "
        "y_zero_point: T, z_scale: TF, z_zero_point: T",
        outputs="Z: T",
        builder="buildQLinearWhere",
    ),
    Contrib(
        "QLinearConcat",
        "Concat of tensors that are quantized each in its way: three inputs for each, "
        "a tensor, its scale and its zero point.",
        types={"T8": BYTES, "TF": F32, "TV": ["int8", "uint8", "float"]},
        inputs="Y_scale: TF, Y_zero_point: T8, inputs*: TV",
        outputs="Y: T8",
        attributes="axis: int",
        builder="buildQLinearConcat",
    ),
    Contrib(
        "QLinearReduceMean",
        "ReduceMean of a quantized tensor.",
        types=_T,
        inputs="data: T, data_scale: float, data_zero_point?: T, reduced_scale: float, "
        "reduced_zero_point?: T",
        outputs="reduced: T",
        attributes="axes: ints, keepdims: int",
        builder="buildQLinearReduceMean",
    ),
    Contrib(
        "QLinearConv",
        "ONNX's QLinearConv, also of tensors [N, ..., C].",
        types={"T1": BYTES, "T2": BYTES, "T3": BYTES, "T4": I32},
        inputs="x: T1, x_scale: float, x_zero_point: T1, w: T2, w_scale: float, "
        "w_zero_point: T2, y_scale: float, y_zero_point: T3, B?: T4",
        outputs="y: T3",
        attributes="auto_pad: string = NOTSET, kernel_shape?: ints, dilations?: ints, "
        "strides?: ints, pads?: ints, group: int = 1, channels_last: int = 0",
        builder="buildQLinearConv",
    ),
    Contrib(
        "NhwcMaxPool",
        "MaxPool of a tensor [N, ..., C].",
        types=_T,
        inputs="x: T",
        outputs="y: T",
        attributes="auto_pad: string = NOTSET, kernel_shape: ints, dilations?: ints, "
        "strides?: ints, pads?: ints, ceil_mode: int = 0",
        builder="buildNhwcMaxPool",
    ),
    Contrib(
        "QLinearAveragePool",
        "AveragePool of a quantized tensor.",
        types=_T,
        inputs="X: T, x_scale: float, x_zero_point?: T, y_scale: float, y_zero_point?: T",
        outputs="Y: T",
        attributes="auto_pad: string = NOTSET, kernel_shape: ints, strides?: ints, "
        "pads?: ints, ceil_mode: int = 0, count_include_pad: int = 0, "
        "channels_last: int = 0",
        builder="buildQLinearAveragePool",
    ),
    Contrib(
        "QLinearGlobalAveragePool",
        "GlobalAveragePool of a quantized tensor.",
        types=_T,
        inputs="X: T, x_scale: float, x_zero_point: T, y_scale: float, y_zero_point: T",
        outputs="Y: T",
        attributes="channels_last: int = 0",
        builder="buildQLinearGlobalAveragePool",
    ),
    Contrib(
        "QLinearSoftmax",
        "Softmax of a quantized tensor, as the version `opset` of ONNX has it.",
        types=_T,
        inputs="X: T, X_scale: float, x_zero_point?: T, y_scale: float, y_zero_point: T",
        outputs="Y: T",
        attributes="axis: int = -1, opset: int",
        builder="buildQLinearSoftmax",
    ),
]
