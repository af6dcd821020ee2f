"""Whole models by plain loops (`* #cpu.loops` in a plan) against the normal way and onnxruntime."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_plan import pinned, reference, run, tool

EVERY_KERNEL = "* #cpu.loops\n"


def floats(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape, dtype=np.float32)


def make(folder, nodes, feeds, weights):
    """(file, feeds) of a model; `nodes` are (operator, inputs, outputs, attributes)."""
    result = TensorProto.INT32 if nodes[-1][0] == "MatMulInteger" else TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node(op, ins, outs, domain="com.microsoft" if op == "MatMulNBits" else "", **attributes)
            for op, ins, outs, attributes in nodes
        ],
        "g",
        [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(v, k) for k, v in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    file = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
    return file, feeds


def product(rows, depth, columns, epilogue="Relu"):
    feeds, weights = {"x": floats(rows, depth)}, {"w": floats(depth, columns), "b": floats(columns)}
    return [("Gemm", ["x", "w", "b"], ["c"], {}), (epilogue, ["c"], ["y"], {})], feeds, weights


def attention(batch, rows, heads, size):
    """softmax(q k) v of heads that lie beside each other."""
    shape = np.array([batch, rows, heads, size])
    nodes = [("Reshape", [name, "shape"], [f"{name}4"], {}) for name in "qkv"]
    nodes += [("Transpose", [f"{name}4"], [f"{name}t"], {"perm": perm}) for name, perm in
              (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))]
    nodes += [("MatMul", ["qt", "kt"], ["s"], {}), ("Softmax", ["s"], ["p"], {"axis": -1}), ("MatMul", ["p", "vt"], ["y"], {})]
    return nodes, {name: floats(batch, rows, heads * size, seed=i) for i, name in enumerate("qkv")}, {"shape": shape}


def few_bits(bits, rows, depth, columns, zeros):
    rng = np.random.default_rng(bits)
    block = 32
    blocks = -(-depth // block)
    weights = {
        "w": rng.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
        "s": rng.uniform(0.01, 0.1, columns * blocks).astype(np.float32),
    }
    if zeros:
        weights["z"] = rng.integers(0, 256, columns * -(-blocks * bits // 8), np.uint8)
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    return [("MatMulNBits", ["x", *weights], ["y"], attributes)], {"x": floats(rows, depth)}, weights


def whole_numbers():
    rng = np.random.default_rng(3)
    weights = {"w": rng.integers(-128, 128, (70, 50), np.int8)}
    return [("MatMulInteger", ["x", "w"], ["y"], {})], {"x": rng.integers(0, 256, (9, 70), np.uint8)}, weights


def conv(shape, filters, **attributes):
    nodes = [("Conv", ["x", "w", "b"], ["c"], attributes), ("Relu", ["c"], ["y"], {})]
    return nodes, {"x": floats(*shape)}, {"w": floats(*filters) / np.sqrt(np.prod(filters[1:])).astype(np.float32), "b": floats(filters[0])}


def of(op, *shape, inputs=("x",), weights=None, **attributes):
    return [(op, list(inputs), ["y"], attributes)], {"x": floats(*shape)}, weights or {}


MODELS = {
    "product": product(64, 96, 200),
    "product_of_one_row": product(1, 512, 700),
    "product_with_erf": product(17, 33, 45, "Erf"),
    "strassen": product(128, 512, 512),
    "attention": attention(2, 13, 4, 16),
    "u4": few_bits(4, 3, 64, 40, True),
    "u4_without_zeros": few_bits(4, 1, 96, 70, False),
    "u8": few_bits(8, 5, 64, 40, True),
    "u2": few_bits(2, 5, 64, 40, True),
    "bytes": whole_numbers(),
    "conv": conv((2, 16, 14, 14), (24, 16, 3, 3), pads=[1, 1, 1, 1], dilations=[2, 2]),
    "conv_of_lines": conv((2, 6, 40), (9, 6, 5), strides=[2], pads=[2, 2]),
    "conv_of_volumes": conv((1, 3, 6, 7, 8), (5, 3, 2, 3, 3), pads=[0, 1, 1, 1, 1, 0]),
    "conv_in_groups": conv((1, 12, 10, 11), (18, 4, 3, 3), group=3, strides=[2, 1]),
    "conv_depthwise": conv((1, 20, 15, 15), (20, 1, 3, 3), group=20, pads=[1, 1, 1, 1]),
    "conv_of_three_channels": conv((1, 3, 32, 40), (16, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3]),
    "conv_polyphase": conv((1, 16, 20, 20), (24, 16, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    "conv_in_lanes": conv((1, 64, 7, 7), (64, 64, 1, 1)),
    "conv_winograd": conv((1, 64, 28, 28), (64, 64, 3, 3), pads=[1, 1, 1, 1]),
    "conv_winograd_small": conv((1, 96, 6, 6), (64, 96, 3, 3), pads=[1, 1, 1, 1]),
    "conv_winograd_strided": conv((1, 128, 28, 28), (128, 128, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]),
    "softmax": of("Softmax", 7, 3, 70, axis=1),
    "layer_norm": of("LayerNormalization", 9, 40, inputs=("x", "s", "b"), weights={"s": floats(40), "b": floats(40, seed=1)}),
    "mean": of("ReduceMean", 5, 6, 7, inputs=("x", "a"), weights={"a": np.array([1])}, keepdims=0),
    "max_pool": of("MaxPool", 2, 3, 17, 19, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "max_pool_wide": of("MaxPool", 1, 20, 12, 33, kernel_shape=[2, 5], strides=[1, 3]),
    "average_pool": of("AveragePool", 2, 3, 9, 9, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "transpose": of("Transpose", 5, 33, 18, perm=[2, 0, 1]),
    "gather": of("GatherElements", 9, 20, inputs=("x", "i"), weights={"i": np.array([[3, -1], [0, 8]])}),
    "resize": of("Resize", 1, 2, 5, 6, inputs=("x", "", "s"), weights={"s": np.array([1, 1, 2, 1.5], np.float32)}, mode="linear"),
    "cumulative": of("CumSum", 4, 20, inputs=("x", "a"), weights={"a": np.array(1)}),
    "largest": of("TopK", 4, 20, inputs=("x", "k"), weights={"k": np.array([5])}),
}
MODELS["largest"][0][0] = ("TopK", ["x", "k"], ["y", "at"], {})


def close(y, expected, message):
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max()))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5 * scale, err_msg=message)


def lines_of(text):
    """[(fingerprint, plan, kernel)] of a plan's lines."""
    return re.findall(r"^([0-9a-f]{16}) (#.*?) # (\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", MODELS)
def test_plain_loops_give_the_same(name, tmp_path):
    model, feeds = make(tmp_path, *MODELS[name])
    expected = reference(model, feeds)
    everything = pinned(tmp_path, EVERY_KERNEL)
    close(run(model, feeds), expected, "the normal way")
    close(run(model, feeds, everything), expected, "all kernels by loops")
    kernels = lines_of(tool("plan", model, "--plan", everything))
    assert kernels and all(plan == "#cpu.loops" for _, plan, _ in kernels)
    # Operands that one way packs and the other reads.
    packing = {fingerprint for fingerprint, _, kernel in kernels if "_pack" in kernel}
    for chosen in (packing, {fingerprint for fingerprint, _, _ in kernels} - packing) if packing else ():
        some = pinned(tmp_path, "".join(f"{fingerprint} #cpu.loops\n" for fingerprint in chosen))
        close(run(model, feeds, some), expected, f"loops in {len(chosen)} of {len(kernels)} kernels")


def test_operations_over_vectors_give_the_same(tmp_path):
    model, feeds = make(tmp_path, *MODELS["attention"])
    close(run(model, feeds, pinned(tmp_path, "* #cpu.loops<vectors = true>\n")), run(model, feeds), "")


def test_a_kernel_of_its_own_line_keeps_it(tmp_path):
    model, feeds = make(tmp_path, *MODELS["conv"])
    ((fingerprint, chosen, kernel),) = [line for line in lines_of(tool("plan", model)) if "conv_plan" in line[1]]
    mixed = pinned(tmp_path, f"{EVERY_KERNEL}{fingerprint} {chosen}\n")
    plans = {name: plan for _, plan, name in lines_of(tool("plan", model, "--plan", mixed))}
    assert plans.pop(kernel) == chosen and set(plans.values()) == {"#cpu.loops"}
    close(run(model, feeds, mixed), run(model, feeds), "")


def test_all_kernels_have_one_other_plan(tmp_path):
    model, _ = make(tmp_path, *MODELS["softmax"])
    error = tool("run", model, "--plan", pinned(tmp_path, EVERY_KERNEL * 2), "--no-cache", fails=True)
    assert "line 2 of the plan is a second one for all kernels" in error


def test_loops_are_scalars(tmp_path):
    """What is slow and sure shares no vectors with what is fast."""
    model, _ = make(tmp_path, *MODELS["layer_norm"])
    arguments = ["compile", model, "--to", "codegen", "--plan", pinned(tmp_path, EVERY_KERNEL)]
    assert "vector<" not in tool(*arguments) and "vector<" in tool(*arguments[:-2])
