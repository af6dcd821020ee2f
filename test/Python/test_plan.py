"""Plans of kernels as text: written, edited, given back (`sardonyx plan`, `--plan`, SessionOptions.plan)."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SARDONYX_BUILD", ROOT / "build" / "release")) / "bin"


def tool(*arguments, fails=False):
    done = subprocess.run([BIN / "sardonyx", *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def conv(folder, shape, filters, **attributes):
    """A model of one convolution and a Relu."""
    rng = np.random.default_rng(sum(shape) + sum(filters))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", **attributes), helper.make_node("Relu", ["c"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(rng.standard_normal(filters, dtype=np.float32), "w")],
    )
    file = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), file)
    return file, {"x": rng.standard_normal(shape, dtype=np.float32)}


def plans_of(text, kind="conv"):
    """[(fingerprint, plan)] of the lines of a kind of kernel."""
    return re.findall(rf"^([0-9a-f]{{16}}) (#cpu\.{kind}_plan<.*>) # \S+", text, re.MULTILINE)


def run(model, feeds, plan=None, **fields):
    options = sardonyx.SessionOptions()
    options.cache = False
    for name, value in fields.items():
        setattr(options, name, value)
    if plan is not None:
        options.plan = plan
    return sardonyx.InferenceSession(str(model), options).run(None, feeds)[0]


CASES = [
    # The shape, the filters, attributes, and the plans that fit beside the one that is chosen.
    ((1, 3, 40, 44), (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}, ["<im2col>", "<row_buffer>"]),
    ((2, 3, 9, 10), (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}, ["<im2col>", "<row_buffer>"]),
    ((1, 2, 5, 3), (5, 2, 3, 2), {}, ["<im2col>", "<row_buffer>"]),
    ((1, 4, 33, 31), (12, 4, 5, 5), {"strides": [2, 2], "pads": [2, 2, 2, 2]}, ["<im2col>", "<im2col, polyphase = true>", "<row_buffer>"]),
    ((1, 16, 20, 20), (24, 16, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, ["<im2col>", "<im2col, polyphase = true>"]),
    ((1, 12, 17, 17), (12, 1, 3, 3), {"group": 12, "pads": [1, 1, 1, 1]}, ["<im2col>", "<depthwise>"]),
    ((1, 64, 5, 5), (64, 64, 1, 1), {}, ["<im2col>", "<output_channels>"]),
]


@pytest.mark.parametrize("shape,filters,attributes,fitting", CASES, ids=range(len(CASES)))
def test_every_plan_that_fits_gives_the_same(shape, filters, attributes, fitting, tmp_path):
    model, feeds = conv(tmp_path, shape, filters, **attributes)
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    text = tool("plan", model)
    ((fingerprint, chosen),) = plans_of(text)
    assert "conv" in text.splitlines()[-1] and "node 'conv'" in text
    for plan in {f"#cpu.conv_plan{form}" for form in fitting} | {chosen}:
        file = tmp_path / "model.plan"
        file.write_text(f"{fingerprint} {plan} # pinned\n")
        np.testing.assert_allclose(run(model, feeds, file), expected, rtol=1e-4, atol=1e-4, err_msg=plan)
        # What is pinned is what is shown, with the numbers that it leaves open.
        ((shown_fingerprint, shown),) = plans_of(tool("plan", model, "--plan", file))
        assert shown_fingerprint == fingerprint and shown.startswith(plan.rstrip(">"))


NUMBERS = [
    # The shape, the filters, attributes, and plans with numbers by hand.
    ((2, 5, 23, 19), (24, 5, 3, 3), {"pads": [1, 1, 1, 1]}, [
        "<im2col, tile_rows = 1, columns = 5, chunk_tiles = 7>",
        "<im2col, tile_rows = 4, columns = 1, chunk_tiles = 2, packing = before>",
        "<im2col, tile_rows = 8, columns = 4, chunk_tiles = 1>",
        "<im2col, tile_rows = 2, columns = 2, chunk_tiles = 100>",
    ]),
    ((1, 3, 40, 44), (9, 3, 3, 3), {"pads": [1, 1, 1, 1]}, [
        "<row_buffer, tile_rows = 2, columns = 1>", "<row_buffer, tile_rows = 4, columns = 4>", "<row_buffer, columns = 2>",
    ]),
    ((1, 40, 9, 9), (20, 40, 1, 1), {}, [
        "<im2col, packing = never, columns = 1>", "<im2col, packing = before, columns = 2, chunk_tiles = 1>", "<im2col, packing = in_first_tile>",
    ]),
    ((1, 64, 5, 5), (160, 64, 1, 1), {}, ["<output_channels, columns = 1>", "<output_channels, columns = 3>", "<output_channels, columns = 5>"]),
    ((3, 64, 30, 26), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}, [
        "<winograd, columns = 1, threads = panels>", "<winograd, threads = filters>", "<winograd, threads = panels>",
    ]),
]


@pytest.mark.parametrize("shape,filters,attributes,plans", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_by_hand_give_the_same(shape, filters, attributes, plans, tmp_path):
    model, feeds = conv(tmp_path, shape, filters, **attributes)
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    ((fingerprint, _),) = plans_of(tool("plan", model))
    ran = 0
    for plan in plans:
        file = tmp_path / "model.plan"
        file.write_text(f"{fingerprint} #cpu.conv_plan{plan}\n")
        try:
            result = run(model, feeds, file)
        except Exception as error:  # what another processor's layout or vectors do not take
            assert "does not fit" in str(error)
            continue
        ran += 1
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3, err_msg=plan)
    assert ran


ROWS = [1, 2, 7, 31, 40, 0, 130]


def product(folder, kind, rows, depth, columns):
    """A model of one product with weights, of `rows` or (None) an open number of them; and feeds for each number of rows."""
    rng = np.random.default_rng(depth + columns)
    weights = rng.standard_normal((depth, columns), dtype=np.float32)
    arrays, domain, attributes = {"w": weights}, "", {}
    element, result = TensorProto.FLOAT, TensorProto.FLOAT
    if kind == "MatMulInteger":
        element, result = TensorProto.UINT8, TensorProto.INT32
        arrays = {"w": rng.integers(-128, 128, (depth, columns), dtype=np.int8)}
    elif kind == "MatMulNBits":
        domain, attributes = "com.microsoft", {"K": depth, "N": columns, "bits": 4, "block_size": 32}
        blocks = -(-depth // 32)
        arrays = {
            "w": rng.integers(0, 256, (columns, blocks, 16), dtype=np.uint8),
            "s": rng.standard_normal(columns * blocks, dtype=np.float32),
        }
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *arrays], ["y"], name="product", domain=domain, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", element, [rows or "rows", depth])],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    file = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
    feeds = []
    for count in [rows] if rows else ROWS:
        x = rng.integers(0, 256, (count, depth), dtype=np.uint8)
        feeds.append({"x": x if kind == "MatMulInteger" else rng.standard_normal((count, depth), dtype=np.float32)})
    return file, feeds


def draw_case(rng, micro, fetches, max_rows=0):
    """A case that fits: any tile that registers hold, any chunks."""
    columns = int(rng.choice([32, 16, 8]))
    panels = int(rng.choice([1, 2, 3])) if columns == 32 else 1
    fields = {
        "rows": int(rng.integers(1, 200)),
        "tile_rows": int(rng.integers(1, 4)),
        "tile_columns": columns,
        "panels": panels,
        "chunk_tiles": int(rng.integers(1, 12)),
        "order": str(rng.choice(["panels_outer", "rows_outer"])),
        "prefetch": str(rng.choice(["none", "near", "l2"])) if fetches else "none",
    }
    if max_rows:
        fields["max_rows"] = max_rows
    return f'<"{micro}", ' + ", ".join(f"{name} = {value}" for name, value in fields.items()) + ">"


def reference(model, feeds):
    """The first result of a model of one product, or of several operators on floats."""
    graph = onnx.load(model).graph
    if graph.node[-1].op_type == "MatMulInteger":
        # onnxruntime's sums of two products of bytes saturate at 16 bits on processors without VNNI.
        (x,) = feeds.values()
        return x.astype(np.int32) @ numpy_helper.to_array(graph.initializer[0]).astype(np.int32)
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.mark.parametrize("rows", [None, 1, 6, 61])
@pytest.mark.parametrize(
    "kind,depth,columns",
    [("MatMul", 256, 256), ("MatMul", 77, 50), ("MatMulInteger", 256, 260), ("MatMulInteger", 37, 40), ("MatMulNBits", 96, 200)],
)
def test_every_plan_of_a_product_gives_the_same(kind, depth, columns, rows, tmp_path):
    model, feeds = product(tmp_path, kind, rows, depth, columns)
    expected = [reference(model, feed) for feed in feeds]
    rng = np.random.default_rng(depth + (rows or 0))
    text = tool("plan", model)
    ((fingerprint, chosen),) = plans_of(text, "matmul")
    chosen_micro = re.search(r'<"(\w+)"', chosen)[1]
    fetches = "prefetch" in chosen
    micros = {"MatMul": ["fma"], "MatMulInteger": ["widen_int8", chosen_micro], "MatMulNBits": ["dequant"]}[kind]
    plans = [chosen]
    for micro in micros * 2:
        cases = [draw_case(rng, micro, fetches)]
        if not rows:
            cases = [draw_case(rng, micro, fetches, most) for most in ([], [1], [5, 33], [1, 64])[rng.integers(4)]] + cases
        plans.append(f"#cpu.matmul_plan<[{', '.join(cases)}]>")
    for plan in plans:
        file = tmp_path / "model.plan"
        file.write_text(f"{fingerprint} {plan}\n")
        options = sardonyx.SessionOptions()
        options.cache = False
        options.plan = file
        try:
            session = sardonyx.InferenceSession(str(model), options)
        except sardonyx.InvalidArgument as error:  # a tile for wider vectors
            assert "does not fit" in str(error) and plan != chosen, plan
            continue
        for feed, right in zip(feeds, expected):
            np.testing.assert_allclose(session.run(None, feed)[0], right, rtol=1e-4, atol=2e-3, err_msg=f"{plan}, {len(feed['x'])} rows")


def test_what_was_written_changes_nothing(tmp_path):
    model, feeds = conv(tmp_path, (1, 3, 32, 32), (8, 3, 3, 3))
    tool("plan", model, "-o", tmp_path / "model.plan")
    plain = tool("compile", model, "--to", "asm")
    assert tool("compile", model, "--to", "asm", "--plan", tmp_path / "model.plan") == plain
    np.testing.assert_array_equal(run(model, feeds, tmp_path / "model.plan"), run(model, feeds))


def pinned(tmp_path, text):
    file = tmp_path / "model.plan"
    file.write_text(text)
    return file


def test_a_plan_that_does_not_fit_is_an_error_with_the_reason(tmp_path):
    model, feeds = conv(tmp_path, (1, 16, 12, 12), (8, 16, 3, 3))
    ((fingerprint, _),) = plans_of(tool("plan", model))
    wrong = pinned(tmp_path, f"{fingerprint} #cpu.conv_plan<row_buffer>\n")
    reason = r"node 'conv' \(Conv\): the plan #cpu.conv_plan<row_buffer> of kernel 'k\d+_conv' does not fit: it has not 1 to 4 channels"
    with pytest.raises(Exception, match=reason):
        run(model, feeds, wrong)
    assert re.search(reason, tool("run", model, "--plan", wrong, "--no-cache", fails=True))


def test_a_stale_line_is_a_warning(tmp_path):
    model, _ = conv(tmp_path, (1, 16, 12, 12), (8, 16, 3, 3))
    stale = pinned(tmp_path, "0123456789abcdef #cpu.conv_plan<im2col>\n")
    done = subprocess.run([BIN / "sardonyx", "run", model, "-q", "--no-cache", "--plan", stale], capture_output=True, text=True)
    assert done.returncode == 0
    assert "the plan of 0123456789abcdef is of no kernel of this model on this processor" in done.stderr


@pytest.mark.parametrize(
    "text,sentence",
    [
        ("conv #cpu.conv_plan<im2col>", "line 1 of the plan is no fingerprint of 16 digits, or *, and a plan"),
        ("\n0123456789abcdef", "line 2 of the plan is no fingerprint of 16 digits, or *, and a plan"),
        ("0123456789abcdef #cpu.conv_plan<fast>", "line 1 of the plan cannot be read: expected ::sardonyx::cpu::ConvForm to be one of: im2col"),
        ("0123456789abcdef nothing", "line 1 of the plan cannot be read"),
        (
            "0123456789abcdef #cpu.conv_plan<im2col>\n0123456789abcdef #cpu.conv_plan<im2col>",
            "line 2 of the plan is of a kernel that another line is of",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_its_line(text, sentence, tmp_path):
    model, feeds = conv(tmp_path, (1, 16, 12, 12), (8, 16, 3, 3))
    file = pinned(tmp_path, text)
    assert sentence in tool("run", model, "--plan", file, "--no-cache", fails=True)
    with pytest.raises(Exception, match=re.escape(sentence)):
        run(model, feeds, file)


def test_a_plan_for_another_kind_of_kernel_is_an_error(tmp_path):
    model, _ = conv(tmp_path, (1, 16, 12, 12), (8, 16, 3, 3))
    ((fingerprint, _),) = plans_of(tool("plan", model))
    error = tool("run", model, "--plan", pinned(tmp_path, f"{fingerprint} 5 : i64\n"), "--no-cache", fails=True)
    assert "does not fit: it is for another kind of kernel" in error


def test_the_cache_knows_plans_apart(tmp_path):
    model, feeds = conv(tmp_path, (1, 3, 40, 44), (8, 3, 3, 3))
    ((fingerprint, chosen),) = plans_of(tool("plan", model))
    arguments = ["run", model, "-q", "-v", "--cache-dir", tmp_path / "cache"]
    assert "from the cache" not in tool(*arguments)
    assert "from the cache" in tool(*arguments)
    other = pinned(tmp_path, f"{fingerprint} #cpu.conv_plan<im2col>\n")
    assert "from the cache" not in tool(*arguments, "--plan", other)


def test_a_file_that_is_not_there(tmp_path):
    model, feeds = conv(tmp_path, (1, 3, 8, 8), (4, 3, 3, 3))
    assert "cannot read" in tool("run", model, "--plan", tmp_path / "none", fails=True)
    with pytest.raises(OSError):
        run(model, feeds, tmp_path / "none")
