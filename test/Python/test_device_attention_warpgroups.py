"""Attention by warpgroups, of tiles that the hardware copies (wgmma, TMA), on a CUDA device of compute capability 9.0, which
libsdx-fakecuda.so stands for, against its definition in f64."""

import re
import subprocess

import numpy as np
import onnx
import pytest
from device_attention import RANDOM, check, floats
from device_models import BUILD, run_on_device
from references import attention

CODES = {"float16": onnx.TensorProto.FLOAT16, "bfloat16": onnx.TensorProto.BFLOAT16}


def tool(folder, command, *options, sm="sm_90a"):
    words = [BUILD / "bin" / "sardonyx", command, folder / "model.onnx", "--device", sm, *options]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def make(type, q, k, v, result, nodes, opset=23, inputs=""):
    """A model of these nodes; of bf16, which numpy does not have, inputs and results are f32."""
    memory = "float16" if type == "float16" else "float"
    wide = "" if type == "float16" else "0"
    sizes = {"q": q, "k": k, "v": v}
    given = ", ".join(f"{memory}[{', '.join(map(str, size))}] {name}{wide}" for name, size in sizes.items())
    casts = "".join(f"{name} = Cast <to = {CODES[type]}> ({name}0)\n" for name in "qkv" if wide)
    last = f"y0 = Cast <to = {onnx.TensorProto.FLOAT}> (y)" if wide else ""
    text = f"g ({given}{inputs}) => ({memory}[{', '.join(map(str, result))}] y{wide}) {{ {casts} {nodes} {last} }}"
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n' + text)


def feed(type, **arrays):
    return {name + ("0" if type == "bfloat16" and name in "qkv" else ""): array for name, array in arrays.items()}


def choose(model, folder, given):
    """The settings by which the model's attention goes by a plan."""
    onnx.save(model, folder / "model.onnx")
    text, count = re.subn(r"#nv\.attention_plan<[^>]*>", f"#nv.attention_plan<form = wgmma, {given}>", tool(folder, "plan"))
    assert count == 1, text
    (folder / "plan").write_text(text)
    code = tool(folder, "compile", "--to", "ptx", "--plan", folder / "plan")
    assert "wgmma.mma_async" in code and "mma.sync" not in code
    return {"plan": str(folder / "plan")}


SHAPES = [(8, 72), (40, 40), (80, 40), (64, 64), (128, 128), (96, 160), (256, 256)]


@pytest.mark.parametrize("type", CODES)
@pytest.mark.parametrize("depth, columns", SHAPES, ids=lambda size: str(size))
@pytest.mark.parametrize("given", ["queries = 128, keys = 64", "queries = 64, keys = 32, split = 3"], ids=["two", "one"])
def test_tiles(type, depth, columns, given, tmp_path):
    """Queries and keys that are no multiples of tiles, more tiles than stages, rows that fill no box, and shared keys."""
    q, k, v = (floats(type, 2, 2, *size) for size in ((150, depth), (205, depth), (205, columns)))
    model = make(type, q.shape, k.shape, v.shape, (2, 2, 150, columns), "y = Attention (q, k, v)")
    ((y,),) = run_on_device(model, [feed(type, q=q, k=k, v=v)], **choose(model, tmp_path, given))
    check(y, attention(q, k, v, depth**-0.5), type)


@pytest.mark.parametrize("type", CODES)
@pytest.mark.parametrize("keys", [16, 80, 300])
def test_a_causal_mask(type, keys, tmp_path):
    """Groups of heads share keys. Keys past the last one of a tile of queries are not visited; there may be none."""
    q, k, v = floats(type, 1, 6, 300, 64), floats(type, 1, 2, keys, 64), floats(type, 1, 2, keys, 64)
    model = make(type, q.shape, k.shape, v.shape, q.shape, "y = Attention <is_causal = 1> (q, k, v)")
    ((y,),) = run_on_device(model, [feed(type, q=q, k=k, v=v)], **choose(model, tmp_path, "queries = 128, keys = 48"))
    future = np.triu(np.ones((300, keys), bool), 1)
    check(y, attention(q, k, v, 0.125, lambda s: np.where(future, -np.inf, s)), type)


@pytest.mark.parametrize("queries, keys", [(130, 330), (64, 64)])
def test_a_bias(queries, keys, tmp_path):
    """Numbers that are added to scores, some of them -inf; heads lie beside each other."""
    q, k, v = (floats("float16", 2, size, 3 * 64) for size in (queries, keys, keys))
    bias = floats("float16", 3, queries, keys)
    bias[RANDOM.random(bias.shape) < 0.3] = -np.inf
    model = make(
        "float16", q.shape, k.shape, v.shape, q.shape, "y = Attention <q_num_heads = 3, kv_num_heads = 3> (q, k, v, m)",
        inputs=f", float16[3, {queries}, {keys}] m",
    )  # fmt: skip
    ((y,),) = run_on_device(model, [feed("float16", q=q, k=k, v=v, m=bias)], **choose(model, tmp_path, "queries = 128, keys = 128"))
    of_heads = [x.reshape(2, -1, 3, 64).swapaxes(1, 2) for x in (q, k, v)]
    expected = attention(*of_heads, 0.125, lambda s: s + bias)
    check(y, expected.swapaxes(1, 2).reshape(q.shape), "float16")


def test_open_sizes(tmp_path):
    """The host chooses: warpgroups for many scores, warps for others."""
    model = make("float16", (1, 2, "m", 64), (1, 2, "n", 64), (1, 2, "n", 64), (1, 2, "m", 64), "y = Attention <is_causal = 1> (q, k, v)")
    onnx.save(model, tmp_path / "model.onnx")
    assert "form = wgmma" in tool(tmp_path, "plan")
    code = tool(tmp_path, "compile", "--to", "ptx")
    assert "wgmma.mma_async" in code and "mma.sync" in code
    for queries, keys in [(600, 600), (130, 2100), (130, 100), (1, 700), (5, 0), (600, 0)]:
        q, k, v = (floats("float16", 1, 2, size, 64) for size in (queries, keys, keys))
        ((y,),) = run_on_device(model, [{"q": q, "k": k, "v": v}])
        future = np.triu(np.ones((queries, keys), bool), 1)
        check(y, np.nan_to_num(attention(q, k, v, 0.125, lambda s: np.where(future, -np.inf, s))), "float16")


@pytest.mark.parametrize(
    "queries, keys, depth, sm, form",
    [(512, 512, 64, "sm_90a", "mma"), (1024, 1024, 64, "sm_90a", "wgmma"), (64, 8192, 64, "sm_90a", "mma"), (1024, 1024, 60, "sm_90a", "mma"),
     (1024, 1024, 64, "sm_90", "mma"), (1024, 1024, 64, "sm_100", "mma")],
)  # fmt: skip
def test_what_is_chosen(queries, keys, depth, sm, form, tmp_path):
    model = make("float16", (4, 8, queries, depth), (4, 8, keys, depth), (4, 8, keys, depth), (4, 8, queries, depth), "y = Attention (q, k, v)")
    onnx.save(model, tmp_path / "model.onnx")
    assert f"#nv.attention_plan<form = {form}," in tool(tmp_path, "plan", sm=sm)
