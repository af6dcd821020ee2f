#!/usr/bin/env python3
"""Sardonyx beside ONNX Runtime on single operators, slowest first: what stands out has a cause.

    operators.py [PATTERN] [--engines a,b] [--threads N] [--rounds R] [--seconds S]

PATTERN is a regular expression on the cases' names.
"""

import argparse
import re
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import side_by_side

CASES = {}


def case(name, *nodes, inputs, constants=(), opset=21):
    """Nodes as ("Op", inputs, outputs, attributes); arrays by name."""
    CASES[name] = (nodes, inputs, dict(constants), opset)


def build(name, folder):
    """The paths of the model and of its inputs."""
    nodes, inputs, constants, opset = CASES[name]
    nodes = [helper.make_node(op, i.split(","), o.split(","), **(a[0] if a else {})) for op, i, o, *a in nodes]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()],
        [onnx.ValueInfoProto(name=output) for output in nodes[-1].output],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    paths = Path(folder) / "model.onnx", Path(folder) / "inputs.npz"
    onnx.save(onnx.shape_inference.infer_shapes(model), paths[0])
    np.savez(paths[1], **inputs)
    return paths


def define():
    rng = np.random.default_rng(0)

    def f32(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def ints(low, high, *shape, dtype=np.int64):
        return rng.integers(low, high, shape).astype(dtype)

    def one(value, dtype=np.float32):
        return np.array(value, dtype)

    same = {"pads": [1, 1, 1, 1]}
    for c, f, k, s, size in [
        (3, 32, 3, 2, 224), (3, 64, 7, 2, 224), (16, 96, 1, 1, 112), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56),
        (128, 128, 3, 2, 56), (256, 1024, 1, 1, 14), (256, 256, 3, 1, 14), (512, 512, 3, 1, 7), (512, 2048, 1, 1, 7),
    ]:  # fmt: skip
        attributes = {"strides": [s, s], "pads": [k // 2] * 4}
        case(
            f"Conv {k}x{k}/{s} {c}-{f} {size}", ("Conv", "x,w,b", "c", attributes), ("Relu", "c", "y"),
            inputs={"x": f32(1, c, size, size)}, constants={"w": f32(f, c, k, k), "b": f32(f)},
        )  # fmt: skip
    for c, k, size in [(32, 3, 112), (144, 3, 56), (120, 5, 28), (960, 3, 7)]:
        attributes = {"group": c, "pads": [k // 2] * 4}
        case(f"Conv depthwise {k}x{k} {c} {size}", ("Conv", "x,w", "y", attributes),
             inputs={"x": f32(1, c, size, size)}, constants={"w": f32(c, 1, k, k)})  # fmt: skip
    case("Conv 32 groups", ("Conv", "x,w", "y", {"group": 32, **same}),
         inputs={"x": f32(1, 128, 56, 56)}, constants={"w": f32(128, 4, 3, 3)})  # fmt: skip
    case("Conv 1-D", ("Conv", "x,w", "y", {"pads": [4, 4]}),
         inputs={"x": f32(1, 128, 1000)}, constants={"w": f32(128, 128, 9)})  # fmt: skip
    case("Conv 3-D", ("Conv", "x,w", "y", {"pads": [1] * 6}),
         inputs={"x": f32(1, 16, 16, 28, 28)}, constants={"w": f32(32, 16, 3, 3, 3)})  # fmt: skip
    for k, c, pads in [(2, 128, [0] * 4), (4, 64, [1] * 4), (3, 64, [1] * 4)]:
        attributes = {"strides": [2, 2], "pads": pads}
        case(f"ConvTranspose {k}x{k}/2", ("ConvTranspose", "x,w", "y", attributes),
             inputs={"x": f32(1, c, 32, 32)}, constants={"w": f32(c, 64, k, k)})  # fmt: skip

    for m, k, n in [(1, 1024, 1024), (128, 768, 768), (128, 768, 3072), (1024, 1024, 1024)]:
        case(f"MatMul {m}x{k}x{n}", ("MatMul", "x,w", "y"), inputs={"x": f32(m, k)}, constants={"w": f32(k, n)})
    case("MatMul batched", ("MatMul", "x,w", "y"), inputs={"x": f32(12, 128, 64), "w": f32(12, 64, 128)})
    for dtype in [np.float16, np.float64]:
        case(f"MatMul {np.dtype(dtype)}", ("MatMul", "x,w", "y"), inputs={"x": f32(128, 768).astype(dtype)},
             constants={"w": f32(768, 768).astype(dtype)})  # fmt: skip
    bytes_ = {"x": ints(0, 256, 128, 768, dtype=np.uint8)}
    weights = {"w": ints(-127, 128, 768, 768, dtype=np.int8), "wz": one(0, np.int8), "ws": one(0.1)}
    zero = {"xz": one(3, np.uint8), "xs": one(0.1), "yz": one(0, np.uint8), "ys": one(9)}
    case("MatMulInteger", ("MatMulInteger", "x,w,xz,wz", "y"), inputs=bytes_, constants=weights | zero)
    case("QLinearMatMul", ("QLinearMatMul", "x,xs,xz,w,ws,wz,ys,yz", "y"), inputs=bytes_, constants=weights | zero)
    case("MatMul dequantised", ("QuantizeLinear", "x,xs,xz", "q"), ("DequantizeLinear", "q,xs,xz", "d"),
         ("DequantizeLinear", "w,ws,wz", "e"), ("MatMul", "d,e", "y"),
         inputs={"x": f32(128, 768)}, constants=weights | zero)  # fmt: skip
    case("QLinearConv 3x3", ("QLinearConv", "x,xs,xz,w,ws,wz,ys,yz", "y", same),
         inputs={"x": ints(0, 256, 1, 64, 56, 56, dtype=np.uint8)},
         constants=weights | zero | {"w": ints(-127, 128, 64, 64, 3, 3, dtype=np.int8)})  # fmt: skip
    case("Einsum bhid,bhjd->bhij", ("Einsum", "x,w", "y", {"equation": "bhid,bhjd->bhij"}),
         inputs={"x": f32(2, 8, 64, 64), "w": f32(2, 8, 64, 64)})  # fmt: skip
    case("Attention", ("Attention", "q,k,v", "y"), inputs={n: f32(1, 12, 128, 64) for n in "qkv"}, opset=23)
    for op, gates in [("LSTM", 4), ("GRU", 3)]:
        case(op, (op, "x,w,r,b", "y", {"hidden_size": 256}), inputs={"x": f32(50, 1, 128)},
             constants={"w": f32(1, gates * 256, 128) / 10, "r": f32(1, gates * 256, 256) / 10,
                        "b": f32(1, gates * 512)})  # fmt: skip

    picture = {"x": f32(1, 64, 112, 112)}
    case("MaxPool 3x3/2 padded", ("MaxPool", "x", "y", {"kernel_shape": [3, 3], "strides": [2, 2], **same}),
         inputs=picture)  # fmt: skip
    case("AveragePool 3x3 padded", ("AveragePool", "x", "y", {"kernel_shape": [3, 3], **same}), inputs=picture)
    case("GlobalAveragePool", ("GlobalAveragePool", "x", "y"), inputs={"x": f32(1, 512, 28, 28)})
    for mode in ["nearest", "linear", "cubic"]:
        case(f"Resize {mode} 2x", ("Resize", "x,,s", "y", {"mode": mode}), inputs={"x": f32(1, 16, 64, 64)},
             constants={"s": one([1, 1, 2, 2])})  # fmt: skip
    case("Pad by reflection", ("Pad", "x,p", "y", {"mode": "reflect"}), inputs={"x": f32(1, 64, 56, 56)},
         constants={"p": one([0, 0, 1, 1, 0, 0, 1, 1], np.int64)})  # fmt: skip
    case("Softmax 12x128x128", ("Softmax", "x", "y"), inputs={"x": f32(12, 128, 128)})
    case("LogSoftmax 8x50257", ("LogSoftmax", "x", "y"), inputs={"x": f32(8, 50257)})
    case("LayerNormalization", ("LayerNormalization", "x,s,b", "y"), inputs={"x": f32(128, 768)},
         constants={"s": f32(768), "b": f32(768)})  # fmt: skip
    case("InstanceNormalization", ("InstanceNormalization", "x,s,b", "y"), inputs=picture,
         constants={"s": f32(64), "b": f32(64)})  # fmt: skip
    case("GroupNormalization", ("GroupNormalization", "x,s,b", "y", {"num_groups": 32}),
         inputs={"x": f32(1, 320, 32, 32)}, constants={"s": f32(320), "b": f32(320)})  # fmt: skip
    for axes in [[0], [1], [0, 1]]:
        case(f"ReduceSum over {axes}", ("ReduceSum", "x,a", "y"), inputs={"x": f32(1000, 1000)},
             constants={"a": one(axes, np.int64)})  # fmt: skip
    for name, shape, order in [("0213", (8, 128, 12, 64), [0, 2, 1, 3]), ("0231", (1, 64, 112, 112), [0, 2, 3, 1]),
                               ("10", (1024, 1024), [1, 0])]:  # fmt: skip
        case(f"Transpose {name}", ("Transpose", "x", "y", {"perm": order}), inputs={"x": f32(*shape)})
    case("Concat of channels", ("Concat", "x,z", "y", {"axis": 1}), inputs={n: f32(1, 64, 56, 56) for n in "xz"})
    case("Gather of rows", ("Gather", "w,i", "y"), inputs={"i": ints(0, 30000, 8, 128)},
         constants={"w": f32(30000, 384)})  # fmt: skip
    case("GatherElements", ("GatherElements", "x,i", "y", {"axis": 1}),
         inputs={"x": f32(100, 1000), "i": ints(0, 1000, 100, 1000)})  # fmt: skip
    case("ScatterND of rows", ("ScatterND", "x,i,u", "y"),
         inputs={"x": f32(1000, 256), "i": rng.permutation(1000)[:500, None], "u": f32(500, 256)})  # fmt: skip
    case("TopK 5 of 50257", ("TopK", "x,k", "v,i"), inputs={"x": f32(1, 50257)}, constants={"k": one([5], np.int64)})
    case("TopK 10 of 1000, 100 rows", ("TopK", "x,k", "v,i"), inputs={"x": f32(100, 1000)},
         constants={"k": one([10], np.int64)})  # fmt: skip
    case("ArgMax 8x50257", ("ArgMax", "x", "y", {"axis": 1}), inputs={"x": f32(8, 50257)})
    case("CumSum", ("CumSum", "x,a", "y"), inputs={"x": f32(100, 10000)}, constants={"a": one(1, np.int64)})
    case("NonZero", ("NonZero", "x", "y"), inputs={"x": (f32(500, 500) > 1).astype(np.float32)})
    case("Where", ("Where", "c,x,z", "y"),
         inputs={"c": f32(1000, 1000) > 0, "x": f32(1000, 1000), "z": f32(1000, 1000)})  # fmt: skip
    for op in ["Exp", "Log", "Tanh", "Erf", "Sigmoid", "Gelu", "Softplus", "HardSwish", "Sin", "Sqrt"]:
        case(op, (op, "x", "y"), inputs={"x": np.abs(f32(256, 1024))})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--engines", default=",".join(side_by_side.installed(["sardonyx", "onnxruntime"])))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    args = parser.parse_args()
    define()
    engines = args.engines.split(",")
    names = [name for name in CASES if re.search(args.pattern, name)]
    if not names:
        parser.error(f"no case is called like '{args.pattern}'")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            results = side_by_side.compare(*build(name, folder), engines, args.threads, args.rounds, args.seconds)
            times = [results[e].get("ms") for e in engines]
            ratio = times[0] / min(t for t in times[1:] if t) if times[0] and any(times[1:]) else 0
            error = max((r["error"] for r in results.values() if "error" in r), default=0)
            cells = [f"{t:.3f}" if t else results[e]["failure"] for e, t in zip(engines, times)]
            rows.append((ratio, [name, *cells, f"{ratio:.2f}" if ratio else "—", f"{error:.0e}"]))
    rows.sort(key=lambda row: -row[0])
    header = ["operator", *(f"{e} ms" for e in engines), f"{engines[0]} to the best", "error"]
    print(f"{side_by_side.processor()}; {args.threads} thread{'s' * (args.threads > 1)}; {side_by_side.versions(engines)}\n")
    print(side_by_side.table(header, [cells for _, cells in rows]))


if __name__ == "__main__":
    main()
