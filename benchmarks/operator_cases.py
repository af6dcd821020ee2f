"""What operators.py times: `CASES` has a function for each name, which gives the case's nodes, inputs and constants.

A name is the operator, what is special, the type unless it is float32, and the size.
"""

import zlib

import numpy as np

CASES = {}
F16, F32, F64, I8, U8, I32, I64 = np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64
SIZES = [(64, 64), (256, 1024), (2000, 2000)]


class Numbers:
    """Random numbers of a case, the same in each run."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape, dtype=F32):
        """Standard normal; integers up to a hundred in size, or those of a byte."""
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            least, most = (0, 255) if dtype == U8 else (-100, 100)
            return self.rng.integers(least, most, shape, endpoint=True).astype(dtype)
        return self.rng.standard_normal(shape).astype(dtype)

    def positive(self, *shape, dtype=F32):
        return (np.abs(self.normal(*shape, dtype=dtype)) + np.dtype(dtype).type(1 if np.dtype(dtype).kind in "iu" else 0.01)).astype(dtype)

    def unit(self, *shape):
        """Between -0.99 and 0.99."""
        return self.rng.uniform(-0.99, 0.99, shape).astype(F32)

    def ints(self, low, high, *shape, dtype=I64):
        return self.rng.integers(low, high, shape).astype(dtype)

    def permutation(self, count):
        return self.rng.permutation(count)


def case(name, make, opset=21, domains=()):
    """`make` of the case's numbers gives (nodes, inputs, constants): nodes as (op, inputs, outputs[, attributes])."""
    assert name not in CASES, name
    CASES[name] = lambda: (*make(Numbers(name)), opset, domains)


def one(name, op, inputs, constants=lambda r: {}, outputs="y", opset=21, wires=None, domains=(), **attributes):
    """A case of one node, whose inputs are `inputs` and `constants` in their order, or as `wires` says."""

    def make(r):
        feeds, held = inputs(r), {k: np.asarray(v) for k, v in constants(r).items()}
        node = (op, wires or ",".join([*feeds, *held]), outputs, attributes)
        return [node], feeds, held

    case(name, make, opset, domains)


def label(dtype):
    name = np.dtype(dtype).name
    return "" if name == "float32" else " " + name


def shape_text(shape):
    return "x".join(map(str, shape))


def elementwise():
    domains = {"Asin": "unit", "Acos": "unit", "Atanh": "unit", "Log": "positive", "Sqrt": "positive", "Acosh": "acosh"}
    makers = {"acosh": lambda r, *s: r.positive(*s) + 1}
    functions = "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu"
    for op in functions.split():
        kind = domains.get(op, "normal")
        for shape in SIZES if op in ("Exp", "Sin", "Tanh", "Relu", "Erf", "Atan") else SIZES[1:2]:
            one(f"{op} {shape_text(shape)}", op, lambda r, k=kind, s=shape: {"x": makers[k](r, *s) if k in makers else getattr(r, k)(*s)})
    for op in ("Exp", "Tanh", "Sigmoid", "Sqrt", "Abs", "Sin", "Relu"):
        for dtype in (F16, F64):
            one(f"{op}{label(dtype)} 256x1024", op, lambda r, d=dtype: {"x": r.positive(256, 1024, dtype=d)})
    one("Swish 256x1024", "Swish", lambda r: {"x": r.normal(256, 1024)}, opset=24)
    one("Sin of large angles", "Sin", lambda r: {"x": r.normal(256, 1024) * 1000})
    one("IsNaN 256x1024", "IsNaN", lambda r: {"x": r.normal(256, 1024)})
    one("Not 1000x1000", "Not", lambda r: {"x": r.normal(1000, 1000, dtype=bool)})
    one("Clip 256x1024", "Clip", lambda r: {"x": r.normal(256, 1024)}, lambda r: {"a": F32(-1), "b": F32(1)})
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        for dtype in (F32, F16, F64, I64) if op in ("Add", "Mul", "Div") else (F32,):
            one(f"{op}{label(dtype)} 1000x1000", op, lambda r, d=dtype: {"x": r.normal(1000, 1000, dtype=d), "z": r.positive(1000, 1000, dtype=d)})
    for shape in [(1000,), (1000, 1), (1,)]:
        one(f"Add 1000x1000 and {shape_text(shape)}", "Add", lambda r, s=shape: {"x": r.normal(1000, 1000), "z": r.normal(*s)})
    one("Add 64x64", "Add", lambda r: {"x": r.normal(64, 64), "z": r.normal(64, 64)})
    for exponent in (0.5, 2.0, 3.0, -1.0, 2.2):
        one(f"Pow {exponent} 1000x1000", "Pow", lambda r: {"x": r.positive(1000, 1000)}, lambda r, e=exponent: {"e": F32(e)})
    one("Pow 1000x1000", "Pow", lambda r: {"x": r.positive(1000, 1000), "e": r.normal(1000, 1000)})
    one("Mod fmod 1000x1000", "Mod", lambda r: {"x": r.normal(1000, 1000) * 10, "z": r.positive(1000, 1000)}, fmod=1)
    one("Mod int64 by 7", "Mod", lambda r: {"x": r.ints(-(10**6), 10**6, 1000, 1000)}, lambda r: {"z": I64(7)})
    one("PRelu 1x64x112x112", "PRelu", lambda r: {"x": r.normal(1, 64, 112, 112)}, lambda r: {"s": r.normal(64, 1, 1)})
    for op in ("Equal", "Less", "GreaterOrEqual"):
        for dtype in (F32, I64):
            one(f"{op}{label(dtype)} 1000x1000", op, lambda r, d=dtype: {"x": r.normal(1000, 1000, dtype=d), "z": r.normal(1000, 1000, dtype=d)})
    for op in ("And", "Or", "Xor"):
        one(f"{op} 1000x1000", op, lambda r: {"x": r.normal(1000, 1000, dtype=bool), "z": r.normal(1000, 1000, dtype=bool)})
    one("BitwiseAnd int32 1000x1000", "BitwiseAnd", lambda r: {"x": r.normal(1000, 1000, dtype=I32), "z": r.normal(1000, 1000, dtype=I32)})
    for dtype in (F32, F16, F64, I64, U8):
        one(f"Where{label(dtype)} 1000x1000", "Where", lambda r, d=dtype: {"c": r.normal(1000, 1000, dtype=bool), "x": r.normal(1000, 1000, dtype=d), "z": r.normal(1000, 1000, dtype=d)})
    one("Where of a mask for all heads", "Where", lambda r: {"c": r.normal(1, 1, 256, 256, dtype=bool), "x": r.normal(1, 12, 256, 256)}, lambda r: {"z": F32(-1e9)})
    codes = {F32: 1, U8: 2, I32: 6, I64: 7, bool: 9, F16: 10, F64: 11}
    for a, b in [(F16, F32), (F32, F16), (F32, F64), (F64, F32), (I64, F32), (F32, I64), (U8, F32), (F32, U8), (I64, I32), (I32, I64), (bool, F32), (F32, bool)]:
        one(f"Cast {np.dtype(a).name} to {np.dtype(b).name}", "Cast", lambda r, a=a: {"x": np.abs(r.normal(1000, 1000, dtype=a)) if a is not bool else r.normal(1000, 1000, dtype=bool)}, to=codes[b])


def reductions():
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
        for axes in ([0], [1], [0, 1]) if op in ("ReduceSum", "ReduceMax") else ([1],):
            one(f"{op} 1000x1000 over {axes}", op, lambda r: {"x": r.unit(1000, 1000)}, lambda r, a=axes: {"a": np.array(a)})
    for dtype in (F16, F64, I64, I32):
        one(f"ReduceSum{label(dtype)} 1000x1000 over [1]", "ReduceSum", lambda r, d=dtype: {"x": r.normal(1000, 1000, dtype=d)}, lambda r: {"a": np.array([1])})
    for dtype in (U8, I64):
        one(f"ReduceMax{label(dtype)} 1000x1000 over [1]", "ReduceMax", lambda r, d=dtype: {"x": r.normal(1000, 1000, dtype=d)}, lambda r: {"a": np.array([1])})
    one("ReduceMean of pictures", "ReduceMean", lambda r: {"x": r.normal(1, 512, 28, 28)}, lambda r: {"a": np.array([2, 3])})
    one("ReduceMean 8x2048x64 over [1]", "ReduceMean", lambda r: {"x": r.normal(8, 2048, 64)}, lambda r: {"a": np.array([1])})
    one("ReduceSum 64x64 over [1]", "ReduceSum", lambda r: {"x": r.normal(64, 64)}, lambda r: {"a": np.array([1])})
    for op in ("ArgMax", "ArgMin"):
        for shape, axis in [((8, 50257), 1), ((1, 21, 256, 256), 1), ((64, 64), 1)]:
            one(f"{op} {shape_text(shape)} over {axis}", op, lambda r, s=shape: {"x": r.normal(*s)}, axis=axis)
    for shape, axis in [((64, 4096), 1), ((4096, 64), 0)]:
        for dtype in (F32, I64):
            one(f"CumSum{label(dtype)} {shape_text(shape)} along {axis}", "CumSum", lambda r, s=shape, d=dtype: {"x": r.normal(*s, dtype=d)}, lambda r, a=axis: {"a": I64(a)})
    for op in ("Softmax", "LogSoftmax"):
        for shape, axis in [((12, 128, 128), -1), ((12, 512, 512), -1), ((64, 5000), -1), ((1, 21, 256, 256), 1), ((1000, 10), -1)]:
            one(f"{op} {shape_text(shape)} along {axis}", op, lambda r, s=shape: {"x": r.normal(*s)}, axis=axis)
    for dtype in (F16, F64):
        one(f"Softmax{label(dtype)} 12x128x128", "Softmax", lambda r, d=dtype: {"x": r.normal(12, 128, 128, dtype=d)})
    one("Hardmax 100x1000", "Hardmax", lambda r: {"x": r.normal(100, 1000)})
    one("LpNormalization 1000x512", "LpNormalization", lambda r: {"x": r.normal(1000, 512)})
    for rows, width in [(1, 768), (128, 768), (3136, 96), (64, 4096)]:
        one(f"LayerNormalization {rows}x{width}", "LayerNormalization", lambda r, n=rows, w=width: {"x": r.normal(n, w)}, lambda r, w=width: {"s": r.normal(w), "b": r.normal(w)})
    for dtype in (F16, F64):
        one(f"LayerNormalization{label(dtype)} 128x768", "LayerNormalization", lambda r, d=dtype: {"x": r.normal(128, 768, dtype=d)}, lambda r, d=dtype: {"s": r.normal(768, dtype=d), "b": r.normal(768, dtype=d)})
    one("RMSNormalization 64x2048", "RMSNormalization", lambda r: {"x": r.normal(64, 2048)}, lambda r: {"s": r.normal(2048)}, opset=23)
    one("GroupNormalization 1x256x64x64", "GroupNormalization", lambda r: {"x": r.normal(1, 256, 64, 64)}, lambda r: {"s": r.normal(256), "b": r.normal(256)}, num_groups=32)
    for shape in [(1, 64, 128, 128), (1, 32, 32, 48, 48)]:
        one(f"InstanceNormalization {shape_text(shape)}", "InstanceNormalization", lambda r, s=shape: {"x": r.normal(*s)}, lambda r, s=shape: {"s": r.normal(s[1]), "b": r.normal(s[1])})
    for shape in [(1, 64, 112, 112), (4096, 64)]:
        one(f"BatchNormalization {shape_text(shape)}", "BatchNormalization", lambda r, s=shape: {"x": r.normal(*s)}, lambda r, s=shape: {"s": r.normal(s[1]), "b": r.normal(s[1]), "m": r.normal(s[1]), "v": r.positive(s[1])})
    one("LRN 1x64x56x56", "LRN", lambda r: {"x": r.normal(1, 64, 56, 56)}, size=5)
    one("MeanVarianceNormalization 1x64x56x56", "MeanVarianceNormalization", lambda r: {"x": r.normal(1, 64, 56, 56)})


def movement():
    for shape, order in [((1, 64, 128, 128), (0, 2, 3, 1)), ((1, 128, 128, 64), (0, 3, 1, 2)), ((4, 128, 12, 64), (0, 2, 1, 3)), ((2000, 3000), (1, 0)), ((64, 64), (1, 0)), ((8, 7, 8, 7, 96), (0, 2, 1, 3, 4)), ((1, 3, 640, 640), (0, 2, 3, 1))]:
        for dtype in (F32, F16, F64, U8) if shape[0] == 1 and shape[1] == 64 else (F32,):
            one(f"Transpose{label(dtype)} {shape_text(shape)} {''.join(map(str, order))}", "Transpose", lambda r, s=shape, d=dtype: {"x": r.normal(*s, dtype=d)}, perm=order)
    for axis, shape in [(1, (1, 64, 64, 64)), (1, (4096, 64)), (0, (4096, 64)), (2, (8, 64, 100))]:
        one(f"Concat {shape_text(shape)} along {axis}", "Concat", lambda r, s=shape: {n: r.normal(*s) for n in "xz"}, axis=axis)
        one(f"Split {shape_text(shape)} along {axis}", "Split", lambda r, s=shape: {"x": r.normal(*s)}, outputs="y,w", axis=axis, num_outputs=2)
    for name, shape, starts, steps in [("every second", (1, 3, 640, 640), [0, 0, 0, 0], [1, 1, 2, 2]), ("a box", (1, 64, 128, 128), [0, 8, 8, 8], [1, 1, 1, 1]), ("rows", (4096, 256), [100, 0], [1, 1]), ("backwards", (1000, 1000), [-1, -1], [-1, -1])]:
        one(f"Slice {name} of {shape_text(shape)}", "Slice", lambda r, s=shape: {"x": r.normal(*s)}, lambda r, s=starts, t=steps: {"s": np.array(s), "e": np.array([2**62 if step > 0 else -(2**62) for step in t]), "a": np.arange(len(t)), "t": np.array(t)})
    for mode in ("constant", "reflect", "edge", "wrap"):
        for name, shape, pads in [("1x64x128x128 by 1", (1, 64, 128, 128), [0, 0, 1, 1] * 2), ("1x3x256x256 by 3", (1, 3, 256, 256), [0, 0, 3, 3] * 2), ("1x16000 by 200", (1, 16000), [0, 200] * 2), ("1x64x128x128 behind rows", (1, 64, 128, 128), [0, 0, 0, 0, 0, 0, 0, 2])]:
            one(f"Pad {mode} {name}", "Pad", lambda r, s=shape: {"x": r.normal(*s)}, lambda r, p=pads: {"p": np.array(p)}, mode=mode)
    for dtype in (F16, F64, U8):
        one(f"Pad reflect{label(dtype)} 1x64x56x56 by 1", "Pad", lambda r, d=dtype: {"x": r.normal(1, 64, 56, 56, dtype=d)}, lambda r: {"p": np.array([0, 0, 1, 1] * 2)}, mode="reflect")
    one("Expand of heads", "Expand", lambda r: {"x": r.normal(1, 8, 1, 128, 64)}, lambda r: {"s": np.array([1, 8, 4, 128, 64])})
    one("Tile 256x256 by 4x4", "Tile", lambda r: {"x": r.normal(256, 256)}, lambda r: {"n": np.array([4, 4])})
    one("DepthToSpace 1x128x64x64", "DepthToSpace", lambda r: {"x": r.normal(1, 128, 64, 64)}, blocksize=2)
    one("SpaceToDepth 1x32x128x128", "SpaceToDepth", lambda r: {"x": r.normal(1, 32, 128, 128)}, blocksize=2)
    one("Trilu 512x512", "Trilu", lambda r: {"x": r.normal(512, 512)})
    one("EyeLike 1000x1000", "EyeLike", lambda r: {"x": r.normal(1000, 1000)})
    one("OneHot 512x8192", "OneHot", lambda r: {"x": r.ints(0, 8192, 512)}, lambda r: {"d": I64(8192), "v": np.array([0, 1], F32)}, axis=-1)
    one("ReverseSequence 100x32x64", "ReverseSequence", lambda r: {"x": r.normal(100, 32, 64), "l": r.ints(1, 100, 32)})
    one("Compress 1000x256", "Compress", lambda r: {"x": r.normal(1000, 256), "c": r.normal(1000, dtype=bool)}, axis=0)
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for shape, scales in [((1, 256, 20, 20), (2, 2)), ((1, 128, 40, 40), (2, 2)), ((2, 64, 28, 28), (2, 2)), ((1, 64, 32, 32), (4, 4)), ((1, 64, 32, 32), (3, 3)), ((1, 64, 64, 64), (1, 2)), ((1, 64, 64, 64), (2, 1)), ((1, 64, 128, 128), (0.5, 0.5)), ((1, 3, 224, 224), (1.5, 2))]:
        for dtype in (F32, F16, U8) if shape[1] == 128 else (F32,):
            one(f"Resize nearest{label(dtype)} {shape_text(shape)} by {shape_text(scales)}", "Resize", lambda r, s=shape, d=dtype: {"x": r.normal(*s, dtype=d)}, lambda r, f=scales: {"s": np.array((1, 1, *f), F32)}, wires="x,,s", **floor)
    one("Resize nearest half_pixel 1x64x64x64 by 2x2", "Resize", lambda r: {"x": r.normal(1, 64, 64, 64)}, lambda r: {"s": np.array((1, 1, 2, 2), F32)}, wires="x,,s")
    one("Resize nearest 1x64x64x64 by 2x2, channels last", "Resize", lambda r: {"x": r.normal(1, 64, 64, 64)}, lambda r: {"s": np.array((1, 2, 2, 1), F32)}, wires="x,,s", **floor)
    one("Resize nearest 1x16x24x24x24 by 2x2x2", "Resize", lambda r: {"x": r.normal(1, 16, 24, 24, 24)}, lambda r: {"s": np.array((1, 1, 2, 2, 2), F32)}, wires="x,,s", **floor)
    one("Resize nearest 1x128x4000 by 2", "Resize", lambda r: {"x": r.normal(1, 128, 4000)}, lambda r: {"s": np.array((1, 1, 2), F32)}, wires="x,,s", **floor)
    for mode, shape, scales in [("linear", (1, 128, 64, 50), (2, 2)), ("linear", (1, 3, 256, 256), (2, 2)), ("linear", (1, 64, 64, 64), (0.5, 0.5)), ("cubic", (1, 3, 256, 256), (2, 2)), ("linear", (1, 16, 16, 24, 24), (2, 2, 2))]:
        one(f"Resize {mode} {shape_text(shape)} by {shape_text(scales)}", "Resize", lambda r, s=shape: {"x": r.normal(*s)}, lambda r, f=scales: {"s": np.array((1, 1, *f), F32)}, wires="x,,s", mode=mode)
    for mode in ("linear", "cubic"):
        one(f"Resize antialiased {mode} 640 to 224", "Resize", lambda r: {"x": r.normal(1, 3, 640, 640)}, lambda r: {"z": np.array((1, 3, 224, 224))}, wires="x,,,z", mode=mode, antialias=1)
    one("Resize linear uint8 480x640 to 224", "Resize", lambda r: {"x": r.normal(1, 3, 480, 640, dtype=U8)}, lambda r: {"z": np.array((1, 3, 224, 224))}, wires="x,,,z", mode="linear")


def indices():
    for name, shape, axis, count, dtype in [("embeddings", (30000, 768), 0, 512, I64), ("rows of 64", (20000, 64), 0, 5000, I64), ("rows of 64 by int32", (20000, 64), 0, 5000, I32), ("axis 1", (16, 1000, 64), 1, 500, I64), ("the last axis", (512, 2048), 1, 300, I64), ("bytes", (30000, 768), 0, 512, I64)]:
        one(f"Gather {name}", "Gather", lambda r, s=shape, n=count, a=axis, d=dtype, k=name: {"x": r.normal(*s, dtype=U8 if k == "bytes" else F32), "i": r.ints(0, s[a], n, dtype=d)}, axis=axis)
    one("GatherElements 100x1000", "GatherElements", lambda r: {"x": r.normal(100, 1000), "i": r.ints(0, 1000, 100, 1000)}, axis=1)
    one("GatherElements 1x4x353x128", "GatherElements", lambda r: {"x": r.normal(1, 4, 353, 128), "i": r.ints(0, 1, 1, 4, 353, 128)}, axis=1)
    one("GatherND rows", "GatherND", lambda r: {"x": r.normal(64, 128, 96), "i": r.ints(0, 60, 4000, 2)})
    one("GatherND of a batch", "GatherND", lambda r: {"x": r.normal(2, 64, 56, 56, dtype=I32), "i": r.ints(0, 50, 2, 16, 16, 3)}, batch_dims=1)
    for reduction in ("none", "add", "max"):
        one(f"ScatterND rows {reduction}", "ScatterND", lambda r: {"x": r.normal(4096, 256), "i": r.permutation(4096)[:2000, None], "u": r.normal(2000, 256)}, reduction=reduction)
        one(f"ScatterND points {reduction}", "ScatterND", lambda r: {"x": r.normal(512, 512), "i": np.stack(np.divmod(r.permutation(512 * 512)[:20000], 512), 1), "u": r.normal(20000)}, reduction=reduction)
        one(f"ScatterElements 64x4096 {reduction}", "ScatterElements", lambda r: {"x": r.normal(64, 4096), "i": np.stack([r.permutation(4096)[:1000] for _ in range(64)]), "u": r.normal(64, 1000)}, axis=1, reduction=reduction)
    for width in (1, 8, 32, 64, 128):
        one(f"ScatterND 2048 rows of {width} add", "ScatterND", lambda r, w=width: {"x": r.normal(4096, w), "i": r.ints(0, 4096, 2048, 1), "u": r.normal(2048, w)}, reduction="add")
    for dtype in (F64, I64):
        one(f"ScatterND rows add{label(dtype)}", "ScatterND", lambda r, d=dtype: {"x": r.normal(4096, 256, dtype=d), "i": r.ints(0, 4096, 2000, 1), "u": r.normal(2000, 256, dtype=d)}, reduction="add")
    one("ScatterND into a cache", "ScatterND", lambda r: {"x": r.normal(1024, 64), "i": np.array([[5]]), "u": r.normal(1, 64)})
    one("ScatterElements of a graph's edges", "ScatterElements", lambda r: {"x": r.normal(2000, 32), "i": r.ints(0, 2000, 20000, 32), "u": r.normal(20000, 32)}, axis=0, reduction="add")
    for rows, width, k in [(1, 100000, 100), (4, 50257, 50), (1, 217413, 1000), (1, 10000, 10000), (100, 1000, 10), (1, 8400, 300), (1000, 128, 8), (200, 150, 20)]:
        for dtype in (F32, I64) if width == 50257 else (F32,):
            one(f"TopK {k} of {rows}x{width}{label(dtype)}", "TopK", lambda r, n=rows, w=width, d=dtype: {"x": r.normal(n, w, dtype=d)}, lambda r, k=k: {"k": np.array([k])}, outputs="v,i")
    one("TopK 5 along axis 1", "TopK", lambda r: {"x": r.normal(8, 100, 400)}, lambda r: {"k": np.array([5])}, outputs="v,i", axis=1)
    for dtype in (F32, I64):
        for count, span in [(100000, 5000), (100000, 100000), (1000, 100)]:
            one(f"Unique{label(dtype)} {count} of {span}", "Unique", lambda r, n=count, s=span, d=dtype: {"x": r.ints(0, s, n, dtype=d)})
    one("NonZero half of 1000x1000", "NonZero", lambda r: {"x": r.normal(1000, 1000, dtype=bool)})
    one("NonZero few of 1000x1000", "NonZero", lambda r: {"x": (r.normal(1000, 1000) > 2.3).astype(F32)})
    for groups in (1, 80):
        one(f"NonMaxSuppression {groups} classes of 2000", "NonMaxSuppression", lambda r, g=groups: {"b": (r.unit(1, 2000, 4) * 300 + 300), "s": (r.unit(1, g, 2000) + 1) / 2}, lambda r: {"m": np.array([100]), "i": np.array([0.5], F32), "t": np.array([0.6], F32)})

    def detections(r):
        corners, sizes = r.unit(1, 8400, 2) * 300 + 300, r.unit(1, 8400, 2) * 30 + 35
        return {"b": np.concatenate([corners, corners + sizes], 2), "s": np.abs(r.unit(1, 80, 8400)) ** 20}

    one("NonMaxSuppression 80 classes of 8400", "NonMaxSuppression", detections, lambda r: {"m": np.array([300]), "i": np.array([0.45], F32), "t": np.array([0.25], F32)})
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection") if mode != "cubic" else ("zeros",):
            one(f"GridSample {mode} {padding} 1x64x64x64", "GridSample", lambda r: {"x": r.normal(1, 64, 64, 64), "g": r.unit(1, 64, 64, 2)}, mode=mode, padding_mode=padding)
    one("GridSample linear 8x32x25x25 at 300x4", "GridSample", lambda r: {"x": r.normal(8, 32, 25, 25), "g": r.unit(8, 300, 4, 2)}, mode="linear")
    one("GridSample linear 1x8x16x32x32", "GridSample", lambda r: {"x": r.normal(1, 8, 16, 32, 32), "g": r.unit(1, 16, 32, 32, 3)}, mode="linear")
    regions = lambda r, n: np.sort(r.rng.random((n, 2, 2)) * 800, 1).reshape(n, 4).astype(F32)  # noqa: E731
    for mode, channels, count, ratio in [("avg", 256, 200, 2), ("avg", 64, 100, 2), ("avg", 64, 100, 0), ("max", 64, 100, 2)]:
        one(f"RoiAlign {mode} {channels} channels, {count} regions, ratio {ratio}", "RoiAlign", lambda r, c=channels, n=count: {"x": r.normal(1, c, 50, 50), "r": regions(r, n), "b": np.zeros(n, I64)}, mode=mode, output_height=7, output_width=7, sampling_ratio=ratio, spatial_scale=0.0625)
