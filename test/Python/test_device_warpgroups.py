"""Products by warpgroups, of tiles that the hardware copies (wgmma, TMA), to two blocks at once where they are clusters, on a CUDA
device of compute capability 9.0, which libsdx-fakecuda.so stands for, against numpy."""

import re
import subprocess

import ml_dtypes
import numpy as np
import onnx
import pytest
from device_models import BUILD, run_on_device
from onnx import TensorProto, helper, numpy_helper, parser

RANDOM = np.random.default_rng(17)
TYPES = {"f16": (np.float16, TensorProto.FLOAT16, 2**-11), "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2**-8)}
ROWS = [130, 7, 300, 64, 64, 64]


# Two blocks are a cluster, below or beside each other.
BELOW, BESIDE = "cluster_m = 2", "cluster_n = 2"


def plan(m, n, stages, split=1, cluster="cluster_m = 1", k=64):
    sizes = f"tile_m = {m}, tile_n = {n}, tile_k = {k}, part_m = 64, part_n = {n}, stages = {stages}, split = {split}"
    return f"#nv.matmul_plan<form = wgmma, {sizes}, {cluster}>"


def spell(tile):
    return "x".join(str(part).replace(" = ", "") for part in tile) if tile else "chosen"


def numbers(shape, dtype):
    return RANDOM.standard_normal(shape).astype(dtype)


def product(kind, k, n, transposed=False, ends="", batch=(), weights=()):
    """A model of a product, [batch..., m, k] x [weights..., k, n], and what may follow it: a bias, a residual, an activation."""
    dtype, element, _ = TYPES[kind]
    w = numbers((*weights, n, k) if transposed else (*weights, k, n), dtype)
    tensors = {"w": w, "b": numbers((n,), dtype)}
    last = "p"
    nodes = [helper.make_node("Gemm", ["x", "w"], ["p"], transB=1) if transposed else helper.make_node("MatMul", ["x", "w"], ["p"])]
    if "bias" in ends:
        nodes.append(helper.make_node("Add", [last, "b"], ["s"]))
        last = "s"
    if "relu" in ends:
        nodes.append(helper.make_node("Relu", [last], ["a"]))
        last = "a"
    inputs = [helper.make_tensor_value_info("x", element, [*batch, "m", k])]
    if "residual" in ends:
        inputs.append(helper.make_tensor_value_info("r", element, [*batch, "m", n]))
        nodes.append(helper.make_node("Add", ["r", last], ["t"]))
        last = "t"
    nodes[-1].output[0] = "y"
    outputs = [helper.make_tensor_value_info("y", element, [*batch, "m", n])]
    if kind == "bf16":
        # numpy has no such numbers: callers give and get f32.
        nodes[-1].output[0] = "z"
        for value in inputs:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        for node in nodes:
            node.input[:] = [f"narrow_{name}" if name in ("x", "r") else name for name in node.input]
        nodes[:0] = [helper.make_node("Cast", [value.name], [f"narrow_{value.name}"], to=element) for value in inputs]
        nodes.append(helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT))
        outputs[0].type.tensor_type.elem_type = TensorProto.FLOAT
    initializers = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, np.swapaxes(w, -1, -2) if transposed else w, tensors["b"]


def choose(model, given, folder, *options):
    """The settings by which the model's product goes by a plan."""
    onnx.save(model, folder / "model.onnx")
    command = [BUILD / "bin" / "sardonyx", "plan", folder / "model.onnx", "--device", "sm_90a", *options]
    text, count = re.subn(r"#nv\.matmul_plan<[^>]*>", given, subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert count == 1, text
    (folder / "plan").write_text(text)
    return {"plan": str(folder / "plan")}


def check(kind, made, ends="", batch=(), rows=ROWS, given=None, folder=None):
    dtype, _, unit = TYPES[kind]
    model, w, b = made
    w, b = w.astype(np.float64), b.astype(np.float64)
    feeds = []
    for m in rows:
        feeds.append({"x": numbers((*batch, m, w.shape[-2]), dtype)})
        if "residual" in ends:
            feeds[-1]["r"] = numbers((*batch, m, w.shape[-1]), dtype)
    settings = choose(model, given, folder) if given else {}
    inputs = [{name: array.astype(np.float32 if kind == "bf16" else dtype) for name, array in feed.items()} for feed in feeds]
    for feed, (y,) in zip(feeds, run_on_device(model, inputs, **settings), strict=True):
        x = feed["x"].astype(np.float64)
        expected = x @ w
        # Sums are of f32; each step of the model is rounded at most once.
        bound = 2**-20 * (np.abs(x) @ np.abs(w)) + unit * np.abs(expected)
        if "bias" in ends:
            expected = expected + b
            bound += unit * np.abs(expected)
        if "relu" in ends:
            expected = np.maximum(expected, 0)
        if "residual" in ends:
            expected = expected + feed["r"].astype(np.float64)
            bound += unit * np.abs(expected)
        assert y.shape == expected.shape
        wrong = np.abs(y.astype(np.float64) - expected) > 1.01 * bound
        assert not wrong.any(), (np.argwhere(wrong)[:5], y[wrong][:5], expected[wrong][:5])


def ptx_of(model, folder, sm, *options):
    onnx.save(model, folder / "model.onnx")
    tool = [BUILD / "bin" / "sardonyx", "compile", folder / "model.onnx", "--device", sm, "--to", "ptx", *options]
    return subprocess.run(tool, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "tile",
    [(128, 256, 4), (128, 128, 6), (64, 64, 6), (64, 64, 3, 3), (128, 64, 2, 2), (128, 256, 4, 1, BELOW), (128, 64, 3, 2, BESIDE), (64, 128, 2, 3, BELOW)],
    ids=spell,
)  # fmt: skip
def test_tiles(kind, transposed, tile, tmp_path):
    """Sizes that are no multiples of tiles, of all numbers of rows, more steps than stages, and blocks that share a tile."""
    check(kind, product(kind, 456, 328, transposed, "bias relu residual"), "bias relu residual", given=plan(*tile), folder=tmp_path)


def test_narrow_tiles(tmp_path):
    check("f16", product("f16", 256, 72, True), given=plan(64, 32, 8), folder=tmp_path)
    check("f16", product("f16", 264, 40, True), given=plan(64, 40, 4, 2), folder=tmp_path)


@pytest.mark.parametrize("cluster", [BELOW, BESIDE])
@pytest.mark.parametrize("k", [40, 520])
def test_narrow_tiles_that_blocks_share(cluster, k, tmp_path):
    """Parts of few rows; fewer steps than stages."""
    check("f16", product("f16", k, 72, True), rows=[130, 7], given=plan(64, 48, 3, 1, cluster), folder=tmp_path)


@pytest.mark.parametrize(
    "tile", [(128, 64, 3), (64, 64, 6), (64, 64, 4, 2), (128, 64, 3, 1, BESIDE), (64, 128, 3, 1, BELOW), (64, 64, 4, 2, BESIDE)], ids=spell
)
def test_many_tiles(tile, tmp_path):
    """Blocks go from tile to tile where there are more of them than run at a time: copies for the next one are under way then."""
    ends = "bias relu residual"
    check("f16", product("f16", 136, 72 * 8, False, ends), ends, rows=[2130, 130, 2130], given=plan(*tile), folder=tmp_path)
    assert ptx_of(product("f16", 136, 576, False, ends)[0], tmp_path, "sm_90a", "--plan", tmp_path / "plan").count("wait_group.read") > 0


RESULTS = {
    "f32": ("float[m, 200] y", "y = Cast <to = 1> (p)"),
    "u8": ("uint8[m, 200] y", "a = Constant <value_float = 0.25> ()\ns = Cast <to = 10> (a)\nb = Constant <value_int = 120> ()\nz = Cast <to = 2> (b)\ny = QuantizeLinear (p, s, z)"),
    "bool": ("bool[m, 200] y", "a = Constant <value_float = 1.0> ()\nc = Cast <to = 10> (a)\ny = Greater (p, c)"),
    "two": ("float16[m, 200] y, float16[m, 200] z", "y = Neg (p)\nz = Relu (p)"),
    "gathered": ("float16[m, 200] y", "a = Constant <value_float = 0.0> ()\nl = Cast <to = 10> (a)\nb = Constant <value_float = 9.0> ()\nh = Cast <to = 10> (b)\nc = Clip (p, l, h)\ni = Cast <to = 7> (c)\ny = Gather (table, i)"),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results(kind):
    """Results that the hardware stores, of one to four bytes, and such as threads store."""
    outputs, text = RESULTS[kind]
    x, w, table = numbers((70, 96), np.float16), numbers((96, 200), np.float16) / np.float16(4), np.arange(10).astype(np.float16)
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float16[m, 96] x) => ({outputs}) <float16[96, 200] w, float16[10] table> {{ p = MatMul (x, w)\n{text} }}'
    )
    for name, array in [("w", w), ("table", table)]:
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    ((y, *more),) = run_on_device(model, [{"x": x}])
    exact = x.astype(np.float64) @ w.astype(np.float64)
    bound = 2**-20 * (np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64)) + 2**-11 * np.abs(exact)
    if kind == "u8":
        assert y.dtype == np.uint8
        error = np.abs(y - np.clip(np.rint(exact / 0.25) + 120, 0, 255))
        assert error.max() <= 1 and (error > 0).mean() < 0.01
    elif kind == "bool":
        sure = np.abs(exact - 1) > bound
        assert y.dtype == bool and (y == (exact > 1))[sure].all() and 0.1 < y.mean() < 0.9
    elif kind == "gathered":
        sure = np.abs(exact - np.rint(exact)) > bound
        assert (y == np.floor(np.clip(exact, 0, 9)))[sure].all()
    else:
        assert (np.abs(y - (-exact if kind == "two" else exact)) <= 1.01 * bound).all()
    if kind == "two":
        assert (np.abs(more[0] - np.maximum(exact, 0)) <= 1.01 * bound).all()


@pytest.mark.parametrize("columns", [251, 254, 44])
@pytest.mark.parametrize("tile", [(64, 64, 3), (64, 64, 3, 2), (64, 64, 3, 1, BELOW), (64, 64, 3, 2, BESIDE)], ids=spell)
def test_rows_that_no_copy_begins_at(columns, tile, tmp_path):
    check("f16", product("f16", 264, columns, True), rows=[130], given=plan(*tile), folder=tmp_path)


@pytest.mark.parametrize("weights", [(), (3,)], ids=["one", "each"])
@pytest.mark.parametrize("tile", [None, (64, 128, 3, 1, BELOW), (64, 64, 3, 1, BESIDE)], ids=spell)
def test_batches(weights, tile, tmp_path):
    made = product("f16", 136, 200, batch=(3,), weights=weights)
    check("f16", made, batch=(3,), rows=[65, 20, 20, 20], given=tile and plan(*tile), folder=tmp_path)


@pytest.mark.parametrize("tile", [None, (128, 256, 4), (64, 40, 4, 2), (128, 256, 4, 1, BELOW), (64, 40, 4, 2, BESIDE)], ids=spell)
def test_tf32(tile, tmp_path):
    """Weights of f32 are transposed for it, both operands rounded to 11 bits."""
    x, w = numbers((70, 264), np.float32), numbers((264, 200), np.float32)
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[m, 264] x) => (float[m, 200] y) <float[264, 200] w> { y = MatMul (x, w) }')
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    settings = {"precision": "tf32", **(choose(model, plan(*tile, k=32), tmp_path, "--precision", "tf32") if tile else {})}
    assert "f32.tf32.tf32" in ptx_of(model, tmp_path, "sm_90a", "--precision", "tf32")
    ((y,),) = run_on_device(model, [{"x": x}], **settings)
    exact, size = x.astype(np.float64) @ w.astype(np.float64), np.abs(x).astype(np.float64) @ np.abs(w)
    error = np.abs(y - exact)
    assert (error <= 2**-10 * size).all() and error.max() > 2**-16 * size.mean()


def integers(low, high, dtype, *shape):
    return RANDOM.integers(low, high, shape).astype(dtype)


BYTES = {"u8": (0, 256, np.uint8), "i8": (-128, 128, np.int8)}
SPELLED = {"u8": "uint8", "i8": "int8"}


@pytest.mark.parametrize("kinds", [("u8", "i8"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8")], ids="-".join)
@pytest.mark.parametrize(
    "tile", [None, (128, 256, 4), (64, 64, 4, 3), (64, 24, 4), (128, 256, 4, 1, BELOW), (64, 24, 4, 1, BESIDE), (64, 64, 4, 2, BELOW)], ids=spell
)
def test_bytes(kinds, tile, tmp_path):
    """Sums of 32 bits are exact, whichever signs and zero points the operands have."""
    k, n = 464, 248
    x = [integers(*BYTES[kinds[0]], m, k) for m in (130, 7, 70)]
    w, zero = integers(*BYTES[kinds[1]], k, n), integers(*BYTES[kinds[1]], n)
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g ({SPELLED[kinds[0]]}[m, {k}] x) => (int32[m, {n}] y) '
        f"<{SPELLED[kinds[1]]}[{k}, {n}] w, {SPELLED[kinds[0]]} a = {{3}}, {SPELLED[kinds[1]]}[{n}] z> {{ y = MatMulInteger (x, w, a, z) }}"
    )
    for name, array in [("w", w), ("z", zero)]:
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    text = ptx_of(model, tmp_path, "sm_90a")
    assert "s32.s8.s8" in text and "mma.sync" not in text and ".version 8.0" in text
    assert "wgmma" not in ptx_of(model, tmp_path, "sm_80")
    settings = choose(model, plan(*tile, k=128), tmp_path) if tile else {}
    for given, (y,) in zip(x, run_on_device(model, [{"x": array} for array in x], **settings), strict=True):
        expected = (given.astype(np.int64) - 3) @ (w.astype(np.int64) - zero)
        assert (y == expected).all(), np.argwhere(y != expected)[:5]


def test_quantized_layers():
    """Two products of bytes after each other: the first one's results are bytes that the second one's copies read."""
    x, w1, w2 = numbers((70, 96), np.float32), integers(-128, 128, np.int8, 96, 64), integers(-128, 128, np.int8, 64, 48)
    model = parser.parse_model(
        '''<ir_version: 10, opset_import: ["" : 21]> g (float[m, 96] x) => (float[m, 48] y) <int8[96, 64] w1, int8[64, 48] w2, float s = {0.03},
        uint8 z = {128}, float v = {0.01}, int8 o = {0}, float t = {0.0613}> {
        a = QuantizeLinear (x, s, z)
        b = DequantizeLinear (a, s, z)
        c = DequantizeLinear (w1, v, o)
        d = MatMul (b, c)
        e = QuantizeLinear (d, t, z)
        f = DequantizeLinear (e, t, z)
        g = DequantizeLinear (w2, v, o)
        y = MatMul (f, g) }'''
    )
    for name, array in [("w1", w1), ("w2", w2)]:
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    ((y,),) = run_on_device(model, [{"x": x}])
    a = np.clip(np.rint(x / np.float32(0.03)), -128, 127).astype(np.int64)
    d = (a @ w1).astype(np.float64) * (np.float64(np.float32(0.03)) * np.float32(0.01))
    e = np.clip(np.rint(d / np.float32(0.0613)), -128, 127)
    expected = e @ w2.astype(np.float64) * (np.float64(np.float32(0.0613)) * np.float32(0.01))
    # Where a number is almost half way the first layer may round it the other way.
    assert np.abs(y - expected).max() <= 0.0613 * 0.01 * 128 * 2 and np.abs(y - expected).mean() < 1e-3


def quantized(dtype, name, array):
    """A tensor of floats of eight bits of these numbers."""
    made = TensorProto()
    made.name, made.data_type, made.raw_data = name, BYTE_FLOATS[dtype], array.tobytes()
    made.dims.extend(array.shape)
    return made


BYTE_FLOATS = {ml_dtypes.float8_e4m3fn: TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e5m2: TensorProto.FLOAT8E5M2}


@pytest.mark.parametrize("dtype", BYTE_FLOATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("tile", [None, (128, 256, 4), (64, 64, 3, 2), (64, 64, 3, 2, BELOW), (64, 64, 3, 1, BESIDE)], ids=spell)
@pytest.mark.parametrize("scales", ["one", "columns", "rows", "batch"])
def test_byte_floats(dtype, tile, scales, tmp_path):
    """Both operands dequantised, with one scale or one of each row and column: multiplied as they are, and scaled afterwards."""
    k, n, m, batch = 336, 200, 70, (2,) if scales == "batch" else ()
    w = numbers((k, n), np.float32).astype(dtype)
    w[0, 0] = np.nan
    ofColumns = RANDOM.uniform(0.5, 2, n).astype(np.float32) if scales == "columns" else np.float32(0.5)
    ofRows = RANDOM.uniform(0.5, 2, m).astype(np.float32) if scales == "rows" else np.float32(0.25)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=0),
        helper.make_node("DequantizeLinear", ["q", "s"], ["a"], axis=0),
        helper.make_node("DequantizeLinear", ["w", "t"], ["b"], axis=1),
        helper.make_node("MatMul", ["a", "b"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    rows = m if scales == "rows" else "m"
    zero = quantized(dtype, "z", np.zeros(ofRows.shape, dtype))
    tensors = [quantized(dtype, "w", w), zero, numpy_helper.from_array(ofRows, "s"), numpy_helper.from_array(ofColumns, "t")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*batch, rows, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*batch, rows, n])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    name = "e4m3" if dtype is ml_dtypes.float8_e4m3fn else "e5m2"
    assert f"f32.{name}.{name}" in ptx_of(model, tmp_path, "sm_90a")
    assert "wgmma" not in ptx_of(model, tmp_path, "sm_80")
    settings = choose(model, plan(*tile, k=128), tmp_path) if tile else {}
    x = numbers((*batch, m, k), np.float32)
    column = ofRows[:, None] if ofRows.ndim else ofRows
    a = (x / column).astype(dtype).astype(np.float64)
    expected = np.maximum(a @ w.astype(np.float64) * column * ofColumns, 0)
    bound = 2**-20 * (np.abs(a) @ np.abs(w.astype(np.float64))) * column * ofColumns
    for options in (settings, {"plan": str(write_loops(tmp_path))}):
        ((y,),) = run_on_device(model, [{"x": x}], **options)
        assert np.isnan(y[..., 0]).all() and (np.abs(y - expected)[..., 1:] <= bound[..., 1:]).all()


def write_loops(folder):
    """A plan by which the model's kernels are plain loops."""
    (folder / "loops").write_text("* #nv.loops\n")
    return folder / "loops"


def test_what_is_chosen(tmp_path):
    """Rows that no copy of the hardware's begins at, few rows and other devices have another form."""
    text = ptx_of(product("f16", 512, 256)[0], tmp_path, "sm_90a")
    assert ".target sm_90a" in text and "wgmma.mma_async" in text and "cp.async.bulk.tensor" in text
    for model, sm in [(product("f16", 508, 256), "sm_90a"), (product("f16", 512, 252), "sm_90a"), (product("f16", 512, 256), "sm_90"),
                      (product("f16", 512, 256), "sm_80"), (product("f16", 512, 256), "sm_100")]:  # fmt: skip
        text = ptx_of(model[0], tmp_path, sm)
        assert "wgmma" not in text and "mma.sync" in text, (sm, model[0])
    check("f16", product("f16", 508, 256), rows=[33])


@pytest.mark.parametrize("cluster", [BELOW, BESIDE])
def test_rows_of_sums_that_clusters_share(cluster, tmp_path):
    """A normalisation reads the partial sums of blocks that share tiles, and the products of each."""
    x, w = numbers((130, 4096), np.float16), numbers((4096, 192), np.float16) / np.float16(64)
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float16[130, 4096] x) => (float16[130, 192] y) <float16[4096, 192] w, float16[192] s> '
        "{ p = MatMul (x, w) y = LayerNormalization (p, s) }"
    )
    for key, array in [("w", w), ("s", np.ones(192, np.float16))]:
        model.graph.initializer.append(numpy_helper.from_array(array, key))
    settings = choose(model, plan(64, 128, 3, 4, cluster), tmp_path)
    ((y,),) = run_on_device(model, [{"x": x}], **settings)
    p = x.astype(np.float64) @ w.astype(np.float64)
    expected = (p - p.mean(1, keepdims=True)) / np.sqrt(p.var(1, keepdims=True) + 1e-5)
    assert np.abs(y - expected).max() < 2**-8


@pytest.mark.parametrize("rows, isPair", [(4096, True), (128 * 7, True), (128 * 5, False), (512, False), ("m", False)])
def test_which_blocks_are_clusters(rows, isPair, tmp_path):
    """Where there is work for all multiprocessors, and no round of tiles more for a last row of a single one."""
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float16[{rows}, 768] x, float16[768, 3072] w) => (float16[{rows}, 3072] y) {{ y = MatMul (x, w) }}'
    )
    text = ptx_of(model, tmp_path, "sm_90a")
    for part in (".reqnctapercluster 2", "multicast::cluster", "mbarrier.arrive.release.cluster.shared::cluster"):
        assert (part in text) == isPair, part


def test_products_after_each_other():
    """A chain by one session: what one product writes the next one's copies read, in graphs, too."""
    dtype, element, unit = TYPES["f16"]
    weights = [numbers((128, 128), dtype) / np.float16(8) for _ in range(4)]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(4)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x0", element, ["m", 128])],
        [helper.make_tensor_value_info("x4", element, ["m", 128])],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    feeds = [{"x0": numbers((m, 128), dtype)} for m in (70, 70, 70, 50, 70)]
    for feed, (y,) in zip(feeds, run_on_device(model, feeds), strict=True):
        expected = feed["x0"].astype(np.float64)
        for w in weights:
            expected = (expected @ w.astype(np.float64)).astype(dtype).astype(np.float64)
        assert np.abs(y.astype(np.float64) - expected).max() < 32 * unit * np.abs(expected).max()
