"""Which operators the families make, and which of all that sardonyx has they don't."""

import re
import sys
from pathlib import Path

import numpy as np
import onnx

import workers
from graphs import Builder
from operators import families
from references import Refused

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "reference" / "Operators.md"
# No family makes these, and why.
EXCEPTIONS = {
    **{
        ("com.microsoft", op): "a rounding may change a whole text; test/Python/test_contrib_search.py has them"
        for op in ("GreedySearch", "Sampling", "BeamSearch", "WhisperBeamSearch")
    },
    # onnxruntime has no kernel of these on a CPU, ...
    ("com.microsoft", "NhwcFusedConv"): "test/Python/test_contrib_quantized.py",
    ("com.microsoft", "QLinearReduceMean"): "test/Python/test_contrib_quantized.py",
    # ... and here wants a result in the memory of an input.
    ("com.microsoft", "SparseAttention"): "test/Python/test_contrib_attention.py",
}


def supported():
    """(domain, operator) of all that there are, ai.onnx by "" as in models."""
    names = re.findall(r"^\| ([\w.]+) \| \d", PAGE.read_text(), re.M)
    sys.path.insert(0, str(ROOT / "dialects" / "ONNX"))
    import contrib

    ours = {(op.schema.domain, op.schema.name) for op in contrib.all_ops()}
    return {tuple(name.rpartition(".")[::2]) for name in names} | ours


def domains_of(node):
    """The operators of a node and of its bodies."""
    yield node.domain.replace("ai.onnx", "") if node.domain == "ai.onnx" else node.domain, node.op_type
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for inner in body.node:
                yield from domains_of(inner)


def made_by(maker, seed):
    """What the maker makes of this seed that a reference computes."""
    old = maker.__module__.endswith("legacy")
    builder = Builder(np.random.default_rng(seed), 7 + seed % 6 if old else [28, 26, 21, 17][seed % 4])
    try:
        maker(builder)
    except (Refused, onnx.defs.SchemaError):
        pass  # what it made before counts
    return {op for step in builder.steps for node in step.nodes for op in domains_of(node)}


def mentions(makers, operators):
    """Whether the file of a family may make one of the operators: it has its name, at least an end of it."""
    text = Path(sys.modules[makers[0].__module__].__file__).read_text()
    return any(re.search(rf"\b{name.removeprefix('Reduce')}\b", text) for _, name in operators)


def serve(task, stage):
    """A process of its own: onnxruntime ends the whole of it now and then."""
    family, seed = task
    made = set()
    for maker in dict.fromkeys(families()[family]):
        made |= made_by(maker, seed)
    return {"status": "ok", "made": made}


def missing(rounds=400, jobs=1):
    """What no family makes, but the exceptions. Families are tried as long as one may make what is missing."""
    wanted = supported() - set(EXCEPTIONS)

    def tasks():
        for seed in range(rounds):
            for family, makers in families().items():
                if seed == 0 or mentions(makers, wanted):
                    yield family, seed

    def take(task, result):
        wanted.difference_update(result.get("made", ()))
        return not wanted

    workers.serve_all(serve, tasks(), jobs, 60, take)
    return wanted
