"""Plans of row kernels and poolings, pinned: each that fits gives the same; kernels without a form say why."""

import re
import subprocess

import onnxruntime
import pytest
from test_plain_loops import MODELS, close, make
from test_plan import BIN, pinned, run, tool

import sardonyx


def rows(lanes, unroll, lane=None, transposed=None, chunk=None, prefetch=None, rows=None):
    given = {"lanes": lanes, "unroll": unroll, "lane": lane, "transposed": transposed, "chunk": chunk, "prefetch": prefetch, "rows": rows}
    return "#cpu.rows_plan<" + ", ".join(f"{name} = {value}" for name, value in given.items() if value is not None) + ">"


def pool(columns, width, rows):
    return f"#cpu.pool_plan<columns = {columns}, width = {width}, rows = {rows}>"


PLANS = {
    # For the first kernel of the model that has such a plan.
    "layer_norm": [rows(1, 1), rows(2, 8, 1), rows(32, 1, 1), rows(4, 1, 0), rows(8, 1, 0), rows(4, 2, 0, chunk=8), rows(64, 1, 1), rows(16, 4, 1, prefetch="true"), rows(16, 2, 1, rows=2), rows(8, 1, 1, prefetch="true", rows=4)],
    "softmax": [rows(1, 1), rows(2, 1, 0), rows(4, 1, 2), rows(8, 8, 1), rows(16, 4, 1), rows(16, 1, 1, chunk=32)],
    "mean": [rows(1, 1), rows(8, 1, 1), rows(2, 2, 1), rows(4, 1, 2)],
    "transpose": [rows(1, 1), rows(16, 1, 1, 0), rows(4, 1, 1, 0), rows(2, 1, 1, 0), rows(8, 1, 1), rows(8, 2, 0), rows(4, 1, 1, chunk=4)],
    "average_pool": [rows(1, 1), rows(4, 1, 2), rows(2, 2, 2), rows(8, 1, 1)],
    "resize": [rows(1, 1), rows(2, 1, 1)],
    "attention": [rows(1, 1), rows(8, 1, 3), rows(2, 4, 3), rows(8, 1, 2), rows(2, 1, 3, chunk=6)],
    "max_pool": [pool(16, 16, 8), pool(1, 4, 1), pool(2, 8, 3), pool(4, 8, 9), pool(8, 16, 5)],
    "max_pool_wide": [pool(32, 16, 11), pool(2, 8, 3), pool(16, 4, 7)],
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_fit_give_the_same(name, tmp_path):
    model, feeds = make(tmp_path, *MODELS[name])
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    kind = PLANS[name][0].split("<")[0]
    fingerprint = re.search(rf"^([0-9a-f]{{16}}) {kind}<", tool("plan", model), re.MULTILINE)[1]
    fitting = 0
    for plan in PLANS[name]:
        given = pinned(tmp_path, f"{fingerprint} {plan}\n")
        try:
            y = run(model, feeds, given)
        except sardonyx.InvalidArgument as error:
            # Other processors have other lanes.
            assert "does not fit" in str(error), plan
            continue
        close(y, expected, plan)
        assert f"{fingerprint} {plan} #" in tool("plan", model, "--plan", given)
        fitting += 1
    assert fitting > len(PLANS[name]) / 2


@pytest.mark.parametrize("name", ["layer_norm", "softmax", "transpose", "max_pool", "largest", "resize"])
def test_what_was_written_changes_nothing(name, tmp_path):
    model, _ = make(tmp_path, *MODELS[name])
    tool("plan", model, "-o", tmp_path / "model.plan")
    assert tool("compile", model, "--to", "asm", "--plan", tmp_path / "model.plan") == tool("compile", model, "--to", "asm")


SENTENCE = r"kernel 'k0_forall' of node 'y' \(TopK\) goes by plain loops because of operation 'scf.forall'"


@pytest.mark.parametrize("arguments", [["plan"], ["run", "-q"], ["compile", "--to", "kernels"], ["compile", "--to", "asm"]])
def test_remarks_say_why_a_kernel_goes_by_plain_loops(arguments, tmp_path):
    model, _ = make(tmp_path, *MODELS["largest"])

    def told(*more):
        done = subprocess.run([BIN / "sardonyx", *arguments, model, *more], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return re.findall("sardonyx: remark: (.*)", done.stderr)

    assert told() == []
    # What the cache has is compiled again.
    for _ in range(2):
        (sentence,) = told("--remarks")
        assert re.fullmatch(SENTENCE, sentence)


def test_the_line_of_a_plan_and_a_profile_say_why(tmp_path):
    model, feeds = make(tmp_path, *MODELS["largest"])
    assert "# k0_forall, forall, by plain loops: operation 'scf.forall', node 'y' (TopK)" in tool("plan", model)
    assert "by plain loops: operation 'scf.forall'" in tool("profile", model, "--seconds", "0.1")


def test_a_model_of_fast_forms_has_no_remarks(tmp_path):
    model, _ = make(tmp_path, *MODELS["layer_norm"])
    assert "by plain loops" not in tool("plan", model, "--remarks")
