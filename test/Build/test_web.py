"""Models in WebAssembly: what they answer in Node and in a browser, and what is refused."""

import base64
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.backend.test.runner import _normalize_tensor
from PIL import Image

import sardonyx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import web  # noqa: E402
from models import network  # noqa: E402

PASSING = (HERE.parent / "Conformance" / "passing.txt").read_text().split()
# Their libraries are no part of a built file, which test_refused looks at.
SESSIONS_ONLY = ("test_regex_full_match", "test_image_decoder", "test_strnorm", "test_string_normalizer")
HEADER = '<ir_version: 10, opset_import: ["": 21]>'
EXP = HEADER + " m (float[n] x) => (float[n] y) { y = Exp (x) }"
ENDLESS = HEADER + """ m (float x) => (float y) {
    yes = Constant <value = bool {1}> ()
    most = Constant <value = int64 {9223372036854775807}> ()
    y = Loop (most, yes, x) <body = b (int64 i, bool c, float a) => (bool co, float ao) { co = Identity (c) ao = Add (a, x) }>
}"""
GATHER = HEADER + " m (float[n] x, int64[k] i) => (float[k] y) { y = Gather (x, i) }"


@pytest.fixture(scope="module", autouse=True)
def node():
    if shutil.which("node") is None:
        pytest.fail("nodejs is missing")


def build(text, output, **options):
    model = parser.parse_model(text) if isinstance(text, str) else text
    return sardonyx.build(model, output, **options)


def script(folder, text):
    """What a program of JavaScript prints."""
    (folder / "script.mjs").write_text(text)
    done = subprocess.run(["node", folder / "script.mjs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_network(tmp_path):
    model = network()
    files = build(model, tmp_path / "m.wasm")
    assert [Path(file).name for file in files] == ["m.wasm", "m.mjs", "m.d.mts"]
    x = np.random.default_rng(1).standard_normal((3, 8, 12, 12), np.float32)
    (expected,) = sardonyx.InferenceSession(model).run(None, {"x": x})
    answer = web.run(tmp_path / "m.mjs", {"x": x})
    y = web.decode(answer["outputs"]["y"], model.graph.output[0].type)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_small(tmp_path):
    """A model asks for next to nothing, and is not larger than its code."""
    build(EXP, tmp_path / "m.wasm")
    assert (tmp_path / "m.wasm").stat().st_size < 400_000
    imports = script(tmp_path, """
        import { readFileSync } from "node:fs";
        const module = new WebAssembly.Module(readFileSync(new URL("./m.wasm", import.meta.url)));
        console.log(WebAssembly.Module.imports(module).map(({ module, name }) => `${module}.${name}`).join(" "));
    """)
    assert all(name.startswith("wasi_snapshot_preview1.") for name in imports.split())


def test_readers_lines(tmp_path):
    """As the documentation has it: arrays, open sizes, many runs."""
    build(EXP, tmp_path / "model.wasm")
    printed = script(tmp_path, """
        import { load } from "./model.mjs";
        const model = await load();
        const { y } = model.run({ x: new Float32Array([0, 1]) });
        const { y: z } = model.run({ x: { data: Float32Array.of(0, 0, 0), dims: [3] } });
        for (let i = 0; i < 1000; ++i) model.run({ x: new Float32Array(1000) });
        console.log(y.type, y.dims, y.data[0], z.data.length, model.metadata("graph_name"), model.inputs[0].dims);
        model.close();
        try { model.run({ x: new Float32Array(1) }) } catch (error) { console.log(error.message) }
    """)
    assert printed == "float32 [ 2 ] 1 3 m [ 'n' ]\nthe model 'model' is closed"


def test_other_sources(tmp_path):
    """Bytes, modules, URLs."""
    build(EXP, tmp_path / "model.wasm")
    (tmp_path / "model.wasm").rename(tmp_path / "other.wasm")
    assert script(tmp_path, """
        import { readFileSync } from "node:fs";
        import { load } from "./model.mjs";
        const bytes = readFileSync(new URL("./other.wasm", import.meta.url));
        for (const source of [bytes, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), "other.wasm",
                              new URL("other.wasm", import.meta.url), new WebAssembly.Module(bytes)])
            console.log((await load(source)).run({ x: new Float32Array(1) }).y.data[0]);
    """).split() == ["1"] * 5


@pytest.mark.parametrize("inputs, message", [
    ({}, "input 'x' is missing"),
    ({"x": np.zeros(3, np.float32), "z": np.zeros(3)}, "the model has no input 'z'; it has x, i"),
    ({"x": np.zeros((3, 2), np.float32), "i": np.zeros(1, np.int64)}, "input 'x'"),
    ({"x": np.zeros(3, np.float32), "i": np.array([1, 7])}, "Gather"),
])  # fmt: skip
def test_wrong_inputs(tmp_path, inputs, message):
    build(GATHER, tmp_path / "m.wasm")
    if "z" in inputs:  # what the runner would drop
        printed = script(tmp_path, """
            import { load } from "./m.mjs";
            try { (await load()).run({ x: new Float32Array(3), z: 1 }) } catch (error) { console.log(error.message) }
        """)
    else:
        printed = web.run(tmp_path / "m.mjs", inputs)["error"]
    assert message in printed


def test_lives_on(tmp_path):
    """After a run that has failed, deep in compiled code."""
    build(GATHER, tmp_path / "m.wasm")
    assert script(tmp_path, """
        import { load } from "./m.mjs";
        const model = await load(), x = Float32Array.of(1, 2, 3);
        for (let k = 0; k < 100; ++k) {
            try { model.run({ x, i: BigInt64Array.of(5n) }); console.log("taken") }
            catch (error) { if (error.name !== "ModelError") throw error }
        }
        console.log(model.run({ x, i: BigInt64Array.of(2n, -1n, 0n) }).y.data.join(" "));
        try { model.run({ x: new Float64Array(3), i: BigInt64Array.of(0n) }) } catch (error) { console.log(error.message) }
    """) == "3 3 1\ninput 'x' takes a Float32Array of float32, not Float64Array"


def test_limits(tmp_path):
    build(ENDLESS, tmp_path / "m.wasm")
    x = {"x": np.float32(1)}
    assert "longer than its limit" in web.run(tmp_path / "m.mjs", x, {"timeout": 0.2})["error"]
    assert "trips" in web.run(tmp_path / "m.mjs", x, {"maxTripCount": 10})["error"]


def test_too_much_memory(tmp_path):
    """More than WebAssembly has: a sentence, and not the engine's."""
    build(HEADER + " m (int64[2] s) => (float[a, b] y) { y = ConstantOfShape (s) }", tmp_path / "m.wasm")
    error = web.run(tmp_path / "m.mjs", {"s": np.array([1 << 20, 1 << 12])})["error"]
    assert error.startswith("out of memory")


def test_values_of_any_type(tmp_path):
    """Sequences, optionals, strings."""
    build(HEADER + """ m (seq(float[n]) s, float[k] x, string[2] t) => (seq(float[k]) longer, int64 count, string[2] joined) {
        longer = SequenceInsert (s, x)
        count = SequenceLength (longer)
        mark = Constant <value = string {"!"}> ()
        joined = StringConcat (t, mark)
    }""", tmp_path / "m.wasm")
    given = {"s": [np.zeros(2, np.float32)], "x": np.ones(3, np.float32), "t": np.array(["ä", ""])}
    outputs = web.run(tmp_path / "m.mjs", given)["outputs"]
    assert [item["dims"] for item in outputs["longer"]] == [[2], [3]]
    assert outputs["joined"]["strings"] == ["ä!", "!"]


def test_short_floats(tmp_path):
    """All halfs, and what rounds to halfs and bfloats: bit for bit as numpy and ml_dtypes round."""
    model = HEADER + """ m (float16[n] h, bfloat16[n] b, float[k] x, double[k] d)
        => (float[n] hf, double[n] hd, float[n] bf, float16[k] xh, bfloat16[k] xb, float16[k] dh, bool[n] less) {
        hf = Cast <to = 1> (h)
        hd = Cast <to = 11> (h)
        bf = Cast <to = 1> (b)
        xh = Cast <to = 10> (x)
        xb = Cast <to = 16> (x)
        dh = Cast <to = 10> (d)
        zero = Constant <value_float = 0.0> ()
        z = Cast <to = 10> (zero)
        less = Less (h, z)
    }"""
    build(model, tmp_path / "m.wasm")
    rng = np.random.default_rng(0)
    all_bits = np.arange(1 << 16, dtype=np.uint16)
    halfs, bfloats = all_bits.view(np.float16), all_bits.view(ml_dtypes.bfloat16)
    # Numbers, the middle between two halfs, its neighbours, and any bits.
    finite = halfs[np.isfinite(halfs)].astype(np.float64)
    middle = (finite[:-1] + finite[1:]) / 2
    doubles = np.concatenate([finite, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf),
                              [65519.99, 65520, 1e300, -1e300, np.inf, -np.inf, np.nan]])  # fmt: skip
    floats = np.concatenate([doubles.astype(np.float32), np.nextafter(doubles.astype(np.float32), np.float32(np.inf)),
                             rng.integers(0, 1 << 32, 100000, np.uint32).view(np.float32)])  # fmt: skip
    doubles = np.resize(doubles, floats.shape)
    outputs = web.run(tmp_path / "m.mjs", {"h": halfs, "b": bfloats, "x": floats, "d": doubles})["outputs"]
    with np.errstate(all="ignore"):
        expected = {
            "hf": halfs.astype(np.float32), "hd": halfs.astype(np.float64), "bf": bfloats.astype(np.float32),
            "xh": floats.astype(np.float16), "xb": floats.astype(ml_dtypes.bfloat16), "dh": doubles.astype(np.float16),
            "less": halfs < 0,
        }  # fmt: skip
        for name, values in expected.items():
            answer = np.frombuffer(base64.b64decode(outputs[name]["bytes"]), values.dtype)
            is_number = ~np.isnan(values.astype(np.float64))
            assert np.isnan(answer.astype(np.float64)[~is_number]).all(), name
            assert answer[is_number].tobytes() == values[is_number].tobytes(), name


def test_refused(tmp_path):
    cases = [
        ({"weights": tmp_path / "w"}, "m.wasm", "weights in a file beside"),
        ({"cpus": ["generic", "mvp"]}, "m.wasm", "several processors"),
        ({"target": "wasm32"}, "m.so", "must be called .wasm"),
        ({"target": "aarch64-linux-gnu"}, "m.wasm", "cannot be called .wasm"),
        ({"static": True}, "m.wasm", "only a program can be static"),
        ({"cpus": ["znver4"]}, "m.wasm", "'znver4' is not known"),
    ]
    for options, name, message in cases:
        with pytest.raises(Exception, match=re.escape(message)):
            build(EXP, tmp_path / name, **options)
    regex = HEADER + ' m (string[n] x) => (bool[n] y) { y = RegexFullMatch <pattern = "a"> (x) }'
    with pytest.raises(Exception, match="needs libraries that only sessions have"):
        build(regex, tmp_path / "m.wasm")


def test_too_large(tmp_path):
    """Engines take no more than a gigabyte, and LLVM's object writer ends the process at two. Weights of one row
    take three bytes each."""
    model = parser.parse_model(HEADER + " m (float[1, 23000] x) => (float[1, 16384] y) { y = MatMul (x, w) }")
    weight = model.graph.initializer.add(name="w", dims=[23000, 16384], data_type=1, data_location=1)
    weight.external_data.add(key="location", value="w")
    with open(tmp_path / "w", "wb") as file:
        file.truncate(23000 * 16384 * 4)  # zeros, which take no space
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(Exception, match="files of less than a gigabyte"):
        sardonyx.build(tmp_path / "m.onnx", tmp_path / "m.wasm")


def test_odd_names(tmp_path):
    """What JavaScript, or a comment in it, takes for something else."""
    model = parser.parse_model(EXP)
    model.doc_string = "*/ alert('\u2028') /* \n `${x}` \\"
    name, result = "a \"b\" */ \\ ${1} \u2028 ä", "__proto__"
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    model.graph.output[0].name = model.graph.node[0].output[0] = result
    build(model, tmp_path / "m.wasm")
    printed = script(tmp_path, f"""
        import {{ load }} from "./m.mjs";
        const outputs = (await load()).run({{ [{json.dumps(name)}]: new Float32Array(1) }});
        console.log(Object.entries(outputs).map(([name, {{ data }}]) => `${{name}} ${{data[0]}}`).join());
    """)
    assert printed == "__proto__ 1"


def test_damaged(tmp_path):
    build(EXP, tmp_path / "m.wasm")
    build(GATHER, tmp_path / "n.wasm")
    whole = (tmp_path / "m.wasm").read_bytes()
    loading = """
        import { load } from "./m.mjs";
        try { console.log((await load()).name) } catch (error) { console.log(`${error.name}: ${error.message}`) }
    """
    for length in range(0, len(whole), len(whole) // 7):
        (tmp_path / "m.wasm").write_bytes(whole[:length])
        assert script(tmp_path, loading).startswith("ModelError: the model 'm' cannot be loaded"), length
    (tmp_path / "m.wasm").write_bytes((tmp_path / "n.wasm").read_bytes())
    assert "another model's" in script(tmp_path, loading)
    (tmp_path / "m.wasm").write_bytes(b"\0asm\1\0\0\0")
    assert "no model of Sardonyx" in script(tmp_path, loading)


def cases():
    from onnx.backend.test.loader import load_model_tests

    warnings.filterwarnings("ignore")
    wanted = {name for name in PASSING[::40] if not name.startswith(SESSIONS_ONLY)}
    return [case for case in load_model_tests(kind="node") if case.name in wanted and case.model is not None]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_conformance(case):
    inputs, outputs = (list(map(_normalize_tensor, values)) for values in case.data_sets[0])
    answers = web.prepare(case.model).run(inputs)
    for answer, expected in zip(answers, outputs):
        expected = np.asarray(expected)
        assert answer.dtype == expected.dtype and answer.shape == expected.shape
        if expected.dtype.kind in "OUST":
            assert answer.tolist() == expected.tolist()
            continue
        ours, theirs = (np.asarray(v, np.float64) if v.dtype.kind == "V" else v for v in (answer, expected))
        np.testing.assert_allclose(ours, theirs, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-6))


# Opens the page in a frame, gives it a picture as a person would, and tells what it shows.
DRIVER = """<!doctype html><iframe id="page" src="index.html"></iframe><script type="module">
    const page = document.getElementById("page");
    const tell = (text) => fetch("told", { method: "POST", body: text });
    const shown = (id) => page.contentDocument?.getElementById(id)?.textContent ?? "";
    const until = async (ready) => {
        while (!ready() && !shown("problem")) await new Promise((wake) => setTimeout(wake, 20));
        if (shown("problem")) throw new Error(shown("problem"));
    };
    try {
        await until(() => shown("state").startsWith("Choose"));
        const picture = await (await fetch("red.png")).blob();
        const files = new DataTransfer();
        files.items.add(new File([picture], "red.png", { type: "image/png" }));
        const chooser = page.contentDocument.getElementById("file");
        chooser.files = files.files;
        chooser.dispatchEvent(new Event("change"));
        await until(() => shown("state").endsWith(" ms"));
        const rows = [...page.contentDocument.querySelectorAll("tr")].map((row) => row.textContent);
        tell([shown("state"), ...rows].join("\\n"));
    } catch (error) {
        tell(`failed: ${error.message}`);
    }
</script>"""


class Server(http.server.SimpleHTTPRequestHandler):
    told, event = [], threading.Event()

    def do_POST(self):
        self.told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()
        self.event.set()

    def log_message(self, *_):
        pass


def test_page(tmp_path):
    """The example, in a browser: a model that answers with the mean of each colour sees a red picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("chromium is missing")
    folder = tmp_path / "web"
    shutil.copytree(ROOT / "examples" / "web", folder)
    build(HEADER + """ m (float[n, 3, 32, 32] x) => (float[n, 3] y) {
        p = GlobalAveragePool (x)
        y = Flatten (p)
    }""", folder / "model.wasm")
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    (folder / "driver.html").write_text(DRIVER)
    Image.new("RGB", (80, 50), (255, 0, 0)).save(folder / "red.png")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={tmp_path / 'profile'}", f"http://127.0.0.1:{server.server_address[1]}/driver.html",
    ]  # fmt: skip
    with open(tmp_path / "log", "w") as log:
        browser = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ, HOME=str(tmp_path)))
    try:
        assert Server.event.wait(120), (tmp_path / "log").read_text()
    finally:
        browser.terminate()
        browser.wait(30)
        server.shutdown()
    time, *rows = Server.told[0].splitlines()
    colours = (np.array([1, 0, 0]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    expected = np.sort(np.exp(colours) / np.exp(colours).sum())[::-1]
    assert re.fullmatch(r"[0-9.]+ ms", time), Server.told
    assert rows == [f"{label}{p:.4f}" for label, p in zip(["red", "blue", "green"], expected)]


def shown(url, tmp_path):
    """What a page is, some seconds after it was loaded."""
    command = [
        "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", url,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME=str(tmp_path)))
    return done.stdout


def test_page_says_what_is_missing(tmp_path):
    """No model, half of one, no server: a sentence with the command that helps, in the place of waiting for ever."""
    folder = tmp_path / "web"
    shutil.copytree(ROOT / "examples" / "web", folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/index.html"
    try:
        page = shown(url, tmp_path)
        assert "model.mjs is missing: sardonyx build model.onnx" in page and "Loading the model" not in page
        (folder / "model.mjs").write_text("export const load = 0;")
        assert "model.wasm is missing" in shown(url, tmp_path)
    finally:
        server.shutdown()
    assert "python3 -m http.server" in shown((folder / "index.html").as_uri(), tmp_path)
