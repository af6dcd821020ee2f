"""More of operator_cases.py: products, convolutions, pools, cells, quantised operators, transforms, trees."""

import numpy as np
from operator_cases import F16, F32, F64, I8, I32, I64, U8, case, label, one, shape_text


def products():
    for m, k, n in [(1, 1024, 1024), (1, 4096, 4096), (8, 768, 768), (32, 768, 3072), (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (512, 512, 512), (1024, 1024, 1024)]:
        one(f"MatMul {m}x{k}x{n}, weights", "MatMul", lambda r, m=m, k=k: {"x": r.normal(m, k)}, lambda r, k=k, n=n: {"w": r.normal(k, n)})
    for size in (64, 256, 512, 1024):
        one(f"MatMul {size}x{size}x{size}", "MatMul", lambda r, s=size: {"x": r.normal(s, s), "w": r.normal(s, s)})
    for dtype, sizes in [(F64, (128, 256, 512, 768)), (F16, (128, 512)), (I64, (128,)), (I32, (128,))]:
        for size in sizes:
            one(f"MatMul{label(dtype)} {size}x{size}x{size}", "MatMul", lambda r, s=size, d=dtype: {"x": r.normal(s, s, dtype=d), "w": r.normal(s, s, dtype=d)})
    for dtype in (F16, F64):
        one(f"MatMul{label(dtype)} 64x512x128, weights", "MatMul", lambda r, d=dtype: {"x": r.normal(64, 512, dtype=d)}, lambda r, d=dtype: {"w": r.normal(512, 128, dtype=d)})
    one("MatMul of heads 12x128x64x128", "MatMul", lambda r: {"x": r.normal(12, 128, 64), "w": r.normal(12, 64, 128)})
    one("MatMul of 1000 8x8x8", "MatMul", lambda r: {"x": r.normal(1000, 8, 8), "w": r.normal(1000, 8, 8)})
    for ta, tb in [(0, 0), (1, 0), (0, 1), (1, 1)]:
        one(f"Gemm 256x512x384, transposed {ta}{tb}", "Gemm", lambda r, a=ta, b=tb: {"x": r.normal(*(512, 256) if a else (256, 512)), "w": r.normal(*(384, 512) if b else (512, 384)), "c": r.normal(384)}, transA=ta, transB=tb)
    equations = {"bhid,bhjd->bhij": [(2, 8, 64, 64), (2, 8, 64, 64)], "bhwc,hkc->bhwk": [(12, 14, 14, 64), (14, 14, 64)], "bqhd,bkhd->bhqk": [(2, 128, 8, 64), (2, 128, 8, 64)], "ibnd,jbnd->ijbn": [(128, 1, 12, 64), (128, 1, 12, 64)], "nctkv,kvw->nctw": [(1, 64, 75, 3, 25), (3, 25, 25)], "ij,j->i": [(1000, 1000), (1000,)]}
    for equation, (x, w) in equations.items():
        one(f"Einsum {equation}", "Einsum", lambda r, x=x, w=w: {"x": r.normal(*x), "w": r.normal(*w)}, equation=equation)
    for heads, length in [(12, 128), (8, 512), (8, 2048)]:
        one(f"Attention {heads} heads of {length}", "Attention", lambda r, h=heads, n=length: {name: r.normal(1, h, n, 64) for name in "qkv"}, opset=23)
    one("Det 100 of 8x8", "Det", lambda r: {"x": r.normal(100, 8, 8)})
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        for length, batch, width, hidden in [(1, 1, 128, 256), (50, 1, 128, 256), (100, 8, 64, 128)]:
            def weights(r, g=gates, i=width, h=hidden):
                return {"w": r.normal(1, g * h, i) / 10, "r": r.normal(1, g * h, h) / 10, "b": r.normal(1, 2 * g * h)}

            one(f"{op} {length} steps of {batch}x{width} to {hidden}", op, lambda r, n=length, b=batch, i=width: {"x": r.normal(n, b, i)}, weights, hidden_size=hidden)


def convolutions():
    for c, f, k, s, size in [(3, 32, 3, 2, 224), (3, 64, 7, 2, 224), (16, 96, 1, 1, 112), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56), (128, 128, 3, 2, 56), (128, 128, 3, 1, 28), (256, 1024, 1, 1, 14), (256, 256, 3, 1, 14), (512, 512, 3, 1, 7), (512, 2048, 1, 1, 7)]:
        def make(r, c=c, f=f, k=k, s=s, size=size):
            nodes = [("Conv", "x,w,b", "c", {"strides": [s, s], "pads": [k // 2] * 4}), ("Relu", "c", "y", {})]
            return nodes, {"x": r.normal(1, c, size, size)}, {"w": r.normal(f, c, k, k), "b": r.normal(f)}

        case(f"Conv {k}x{k}/{s} {c}-{f} {size}", make)
    for c, k, size, stride in [(32, 3, 112, 1), (96, 3, 112, 2), (144, 3, 56, 1), (120, 5, 28, 1), (960, 3, 7, 1), (96, 7, 56, 1), (64, 31, 32, 1)]:
        one(f"Conv depthwise {k}x{k}/{stride} {c} {size}", "Conv", lambda r, c=c, n=size: {"x": r.normal(1, c, n, n)}, lambda r, c=c, k=k: {"w": r.normal(c, 1, k, k)}, group=c, pads=[k // 2] * 4, strides=[stride] * 2)
    for dtype in (F16, F64):
        one(f"Conv 3x3{label(dtype)} 16-16 56", "Conv", lambda r, d=dtype: {"x": r.normal(1, 16, 56, 56, dtype=d)}, lambda r, d=dtype: {"w": r.normal(16, 16, 3, 3, dtype=d)}, pads=[1] * 4)
    one("Conv 3x3 in 32 groups 128 56", "Conv", lambda r: {"x": r.normal(1, 128, 56, 56)}, lambda r: {"w": r.normal(128, 4, 3, 3)}, group=32, pads=[1] * 4)
    one("Conv 3x3 dilated by 6 256 33", "Conv", lambda r: {"x": r.normal(1, 256, 33, 33)}, lambda r: {"w": r.normal(256, 256, 3, 3)}, dilations=[6, 6], pads=[6] * 4)
    for c, k, length, dilation, group in [(128, 9, 1000, 1, 1), (128, 11, 1600, 5, 1), (512, 3, 300, 1, 1), (512, 31, 400, 1, 512)]:
        one(f"Conv 1-D {k} of {c} {length}, dilation {dilation}, {group} groups", "Conv", lambda r, c=c, n=length: {"x": r.normal(1, c, n)}, lambda r, c=c, k=k, g=group: {"w": r.normal(c, c // g, k)}, group=group, dilations=[dilation], pads=[k // 2 * dilation] * 2)
    for c, f, shape, group in [(16, 32, (16, 28, 28), 1), (32, 32, (16, 48, 48), 1), (1, 32, (20, 64, 64), 1), (64, 64, (16, 32, 32), 64)]:
        one(f"Conv 3-D 3x3x3 {c}-{f} {shape_text(shape)}, {group} groups", "Conv", lambda r, c=c, s=shape: {"x": r.normal(1, c, *s)}, lambda r, c=c, f=f, g=group: {"w": r.normal(f, c // g, 3, 3, 3)}, group=group, pads=[1] * 6)
    for k, c, f, pads, group in [(2, 256, 128, 0, 1), (4, 128, 64, 1, 1), (3, 64, 64, 1, 1), (4, 64, 64, 1, 64)]:
        one(f"ConvTranspose {k}x{k}/2 {c}-{f} 32, {group} groups", "ConvTranspose", lambda r, c=c: {"x": r.normal(1, c, 32, 32)}, lambda r, c=c, f=f, k=k, g=group: {"w": r.normal(c, f // g, k, k)}, strides=[2, 2], pads=[pads] * 4, group=group)
    one("ConvTranspose 1-D 1024/256 1026-1 112", "ConvTranspose", lambda r: {"x": r.normal(1, 1026, 112)}, lambda r: {"w": r.normal(1026, 1, 1024)}, strides=[256])
    one("ConvTranspose 1-D 16/8 256-128 200", "ConvTranspose", lambda r: {"x": r.normal(1, 256, 200)}, lambda r: {"w": r.normal(256, 128, 16)}, strides=[8], pads=[4, 4])
    for c, size in [(64, 32), (256, 16), (32, 64)]:
        one(f"DeformConv 3x3 {c} {size}", "DeformConv", lambda r, c=c, n=size: {"x": r.normal(1, c, n, n)}, lambda r, c=c, n=size: {"w": r.normal(c, c, 3, 3), "o": r.normal(1, 18, n, n)}, pads=[1] * 4)
    for shape, k, s, p in [((1, 64, 112, 112), 3, 2, 1), ((1, 256, 20, 20), 5, 1, 2), ((1, 192, 35, 35), 3, 1, 1), ((1, 64, 112, 112), 2, 2, 0)]:
        for op in ("MaxPool", "AveragePool"):
            one(f"{op} {k}x{k}/{s} {shape_text(shape)}", op, lambda r, n=shape: {"x": r.normal(*n)}, kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)
    one("AveragePool 3x3/1 1x192x35x35, with padding", "AveragePool", lambda r: {"x": r.normal(1, 192, 35, 35)}, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    one("MaxPool 3-D 2x2x2/2 1x32x20x64x64", "MaxPool", lambda r: {"x": r.normal(1, 32, 20, 64, 64)}, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    for dtype in (F16, F64, U8):
        if dtype != F16:
            one(f"MaxPool 3x3/2{label(dtype)} 1x64x56x56", "MaxPool", lambda r, d=dtype: {"x": r.normal(1, 64, 56, 56, dtype=d)}, kernel_shape=[3, 3], strides=[2, 2])
    one("LpPool 3x3/2 1x64x56x56", "LpPool", lambda r: {"x": r.normal(1, 64, 56, 56)}, kernel_shape=[3, 3], strides=[2, 2])
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in [(1, 512, 28, 28), (1, 2048, 7, 7)]:
            one(f"{op} {shape_text(shape)}", op, lambda r, s=shape: {"x": r.normal(*s)})


def quantized():
    q = {"s": F32(0.02), "z": U8(128)}
    one("QuantizeLinear 1000x1000", "QuantizeLinear", lambda r: {"x": r.normal(1000, 1000)}, lambda r: q)
    one("DequantizeLinear 1000x1000", "DequantizeLinear", lambda r: {"x": r.normal(1000, 1000, dtype=U8)}, lambda r: q)
    one("DynamicQuantizeLinear 1000x1000", "DynamicQuantizeLinear", lambda r: {"x": r.normal(1000, 1000)}, outputs="y,s,z")
    zero = {"xz": U8(3), "xs": F32(0.1), "yz": U8(0), "ys": F32(9), "wz": I8(0), "ws": F32(0.1)}
    for m, k, n in [(1, 768, 768), (128, 768, 768), (128, 768, 3072)]:
        def weights(r, k=k, n=n):
            return {"w": r.normal(k, n, dtype=I8)} | zero

        one(f"MatMulInteger {m}x{k}x{n}", "MatMulInteger", lambda r, m=m, k=k: {"x": r.normal(m, k, dtype=U8)}, weights, wires="x,w,xz,wz")
        one(f"QLinearMatMul {m}x{k}x{n}", "QLinearMatMul", lambda r, m=m, k=k: {"x": r.normal(m, k, dtype=U8)}, weights, wires="x,xs,xz,w,ws,wz,ys,yz")

        def dynamic(r, m=m, k=k, n=n):
            nodes = [("DynamicQuantizeLinear", "x", "q,s,z", {}), ("MatMulInteger", "q,w,z,wz", "i", {}), ("Cast", "i", "c", {"to": 1}), ("Mul", "s,ws", "t", {}), ("Mul", "c,t", "y", {})]
            return nodes, {"x": r.normal(1, m, k)}, {"w": r.normal(k, n, dtype=I8), "wz": I8(0), "ws": F32(0.01)}

        case(f"MatMul of dynamic bytes {m}x{k}x{n}", dynamic)
    for c, size, f, k, group, stride in [(3, 320, 16, 3, 1, 2), (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 1), (128, 28, 128, 3, 1, 1), (256, 28, 256, 1, 1, 1), (256, 14, 256, 3, 1, 1), (1024, 14, 256, 1, 1, 1), (512, 7, 512, 3, 1, 1), (144, 56, 144, 3, 144, 1)]:
        def make(r, c=c, size=size, f=f, k=k, group=group, stride=stride):
            nodes = [
                ("QuantizeLinear", "x,xs,xz", "q", {}),
                ("DequantizeLinear", "q,xs,xz", "d", {}),
                ("DequantizeLinear", "w,ws,wz", "e", {"axis": 0}),
                ("Conv", "d,e", "c", {"pads": [k // 2] * 4, "group": group, "strides": [stride] * 2}),
                ("Relu", "c", "a", {}),
                ("QuantizeLinear", "a,ys,yz", "p", {}),
                ("DequantizeLinear", "p,ys,yz", "y", {}),
            ]
            held = {"w": r.normal(f, c // group, k, k, dtype=I8), "ws": np.full(f, 0.01, F32), "wz": np.zeros(f, I8), "xs": F32(0.05), "xz": U8(3), "ys": F32(0.1), "yz": U8(0)}
            return nodes, {"x": r.normal(1, c, size, size)}, held

        case(f"Conv of bytes {k}x{k}/{stride} {c}-{f} {size}, {group} groups", make, opset=13)


def others():
    one("DFT 16x1024", "DFT", lambda r: {"x": r.normal(16, 1024, 1)}, opset=17, axis=1)
    one("DFT 16x1000", "DFT", lambda r: {"x": r.normal(16, 1000, 1)}, opset=17, axis=1)
    one("STFT 16000, 400 by 160", "STFT", lambda r: {"x": r.normal(1, 16000, 1)}, lambda r: {"s": I64(160), "w": np.hanning(400).astype(F32)}, wires="x,s,w", opset=17)
    for name, count in [("Add", 300), ("Mul", 300)]:
        def chain(r, name=name, count=count):
            nodes = [(name, f"{'x' if i == 0 else f't{i}'},c", "y" if i + 1 == count else f"t{i + 1}", {}) for i in range(count)]
            return nodes, {"x": r.normal(16)}, {"c": F32(1.001)}

        case(f"{count} times {name} of 16", chain)
    one("Add of 4", "Add", lambda r: {"x": r.normal(4), "z": r.normal(4)})

    def small_products(r):
        nodes, held, at = [], {}, "x"
        for i in range(60):
            held[f"w{i}"] = r.normal(16, 16) * F32(0.2)
            nodes += [("MatMul", f"{at},w{i}", f"m{i}", {}), ("Tanh", f"m{i}", "y" if i == 59 else f"t{i}", {})]
            at = f"t{i}"
        return nodes, {"x": r.normal(1, 16)}, held

    case("60 times MatMul 1x16x16 and Tanh", small_products)
    ml = (("ai.onnx.ml", 3),)
    one("Scaler 1000x100", "ai.onnx.ml.Scaler", lambda r: {"x": r.normal(1000, 100)}, offset=[0.5] * 100, scale=[2.0] * 100, domains=ml)
    one("Normalizer 1000x100", "ai.onnx.ml.Normalizer", lambda r: {"x": r.normal(1000, 100)}, norm="L2", domains=ml)
    one("Binarizer 1000x1000", "ai.onnx.ml.Binarizer", lambda r: {"x": r.normal(1000, 1000)}, threshold=0.5, domains=ml)
    one("LinearRegressor 1000x100", "ai.onnx.ml.LinearRegressor", lambda r: {"x": r.normal(1000, 100)}, coefficients=[0.1] * 100, intercepts=[1.0], domains=ml)
    for batch in (1, 1000):
        one(f"TreeEnsembleRegressor 100 trees of depth 6, batch {batch}", "ai.onnx.ml.TreeEnsembleRegressor", lambda r, n=batch: {"x": r.normal(n, 20)}, opset=15, domains=ml, **trees(100, 6, 20))


def trees(count, depth, features):
    """Attributes of full trees with random splits."""
    rng = np.random.default_rng(1)
    inner, leaves = 2**depth - 1, 2**depth
    at = np.tile(np.arange(inner + leaves), count)
    tree = np.repeat(np.arange(count), inner + leaves)
    is_leaf = at >= inner
    return dict(
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=at.tolist(),
        nodes_featureids=rng.integers(0, features, len(at)).tolist(),
        nodes_modes=["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        nodes_values=rng.standard_normal(len(at)).tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, 2 * at + 1).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, 2 * at + 2).tolist(),
        target_treeids=tree[is_leaf].tolist(),
        target_nodeids=at[is_leaf].tolist(),
        target_ids=[0] * int(is_leaf.sum()),
        target_weights=rng.standard_normal(int(is_leaf.sum())).tolist(),
    )
