"""One model, loaded and run: is anything wrong?"""

import ctypes
import mmap
import re
import resource
from typing import NamedTuple

import numpy as np

from graphs import Builder, Graph, grow
from judge import SINGLE, SPREADS, differences, moved
from operators import FAMILIES, operators_of
from references import Refused, alike
from themes import THEMES, drawn
from values import apply, held, is_tensor, raw, same

OLD = [7, 8, 9, 10, 11, 12]
OPSETS = [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 22, 23, 23, 24, 24, 25, 26, 27, 28]
MEMORY = 12 << 30
# Words of the compiler that mean nothing to a user.
LEAK = re.compile(
    r"internal error|\b(sdx|scf|arith|affine|vector|builtin|llvm|func)\.\w|memref|tensor\.|linalg|tensor<"
    r"|an intermediate result takes"
)
# What `check_bounds` says of code that would read or write where nothing of its own is.
BEYOND = "(bounds check in '"
# Long sums: the references' own are no better.
LOOSE = set(
    """Conv ConvTranspose Einsum MatMul Gemm Attention LSTM GRU RNN MeanVarianceNormalization LayerNormalization
 RMSNormalization InstanceNormalization GroupNormalization ReduceMean ReduceSum ReduceSumSquare ReduceL1 ReduceL2
 CumSum LpNormalization LpPool GlobalAveragePool AveragePool""".split()
)


class Settings(NamedTuple):
    """How a model is compiled."""

    cpu: str = ""
    threads: int = 1
    check_bounds: bool = False

    def options(self):
        import sardonyx

        result = sardonyx.SessionOptions()
        result.cache, result.cpu, result.intra_op_num_threads = False, self.cpu, self.threads
        result.check_bounds = self.check_bounds
        return result

    @staticmethod
    def drawn(rng):
        cpu = ["", "", "haswell", "x86-64"][rng.integers(4)]
        return Settings(cpu, int(rng.choice([1, 1, 2])), bool(rng.random() < 0.3))


class Trial:
    """What is tried: a graph, the inputs of each run, and how to compile it."""

    def __init__(self, graph, runs, settings=Settings()):
        self.graph, self.runs, self.settings = graph, runs, settings


def of_seed(seed, names=()):
    """The trial of a seed, of these families or of one theme; without names of any."""
    rng = np.random.default_rng(seed)
    theme = drawn(rng)
    if len(names) == 1 and names[0] in THEMES:
        theme = THEMES[names[0]]
        names = theme.families
    operators = operators_of(names or theme.families or FAMILIES)
    nodes = 1 if rng.random() < 0.3 and theme.nodes[0] == 1 else int(rng.integers(max(2, theme.nodes[0]), theme.nodes[1] + 1))
    # Makers of the forms that operators once had need the opsets of then.
    old = rng.random() < 0.06 or list(names) == ["legacy"]
    builder = Builder(rng, int(rng.choice(OLD if old else OPSETS)), bool(rng.random() < 0.5), theme)
    grow(builder, operators, nodes)
    if not builder.steps:
        raise Refused("no node")
    graph = Graph(builder, rng)
    feeds = graph.feeds()
    chooser = Builder(rng, builder.opset, theme=theme)
    runs = [feeds, feeds, graph.other_feeds(chooser)]
    if graph.open_sizes:
        runs += [graph.other_feeds(chooser), feeds]
    return Trial(graph, runs, Settings.drawn(rng))


def guarded(array):
    """A copy that ends where memory begins that cannot be touched."""
    if not is_tensor(array):
        return raw(apply(guarded, array))
    if not array.nbytes or array.dtype == object:
        return array
    page = mmap.PAGESIZE
    size = (array.nbytes + page - 1) // page * page
    memory = mmap.mmap(-1, size + page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(page), 0)
    result = np.frombuffer(memory, np.uint8, array.nbytes, size - array.nbytes).view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def fault(kind, text, **more):
    return {"status": "fault", "kind": kind, "text": " ".join(str(text).split())[:400], **more}


def failure_of(problem):
    """(fault or None) for an exception, whatever the model."""
    text = f"{type(problem).__name__}: {problem}"
    if not type(problem).__module__.startswith("sardonyx"):
        return fault("foreign exception", text)
    if BEYOND in text:
        return fault("out of bounds", text)
    if LEAK.search(text):
        return fault("internal words", text)
    return None


def refusal_of(problem):
    """What a NotImplementedError is: of a sound model no pass has to refuse anything."""
    if detail := getattr(problem, "detail", ""):
        return fault("refused by a pass", f"{problem}: {detail}")
    return failure_of(problem) or {"status": "refused", "text": str(problem)[:300]}


def attempt(trial, stage=lambda text: None):
    """{"status": "ok", "refused" or "fault", ...}; tells its stage before each thing that may crash."""
    import sardonyx

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    graph = trial.graph
    expected = []
    for feeds in trial.runs:
        try:
            expected.append(graph.step_through(feeds))
        except Refused:
            expected.append(None)
    stage("load")
    try:
        session = sardonyx.InferenceSession(graph.model().SerializeToString(), trial.settings.options())
    except NotImplementedError as refusal:
        return refusal_of(refusal)
    except Exception as problem:
        return failure_of(problem) or fault("refuses to load", f"{type(problem).__name__}: {problem}")
    first, counts = None, {"answers": 0, "undefined": 0}
    for index, (feeds, values) in enumerate(zip(trial.runs, expected)):
        stage(f"run {index}")
        counts["answers" if values else "undefined"] += 1
        try:
            got = session.run(None, {name: guarded(array) for name, array in feeds.items()})
        except NotImplementedError as refusal:
            return refusal_of(refusal)
        except Exception as problem:
            wrong = failure_of(problem)
            # onnx.reference alone broadcasts what no operator says it does.
            may_refuse = feeds is not trial.runs[0] and any(step.lenient for step in graph.steps)
            if wrong is None and values is not None and not may_refuse:
                wrong = fault("refuses to run", f"{type(problem).__name__}: {problem}")
            if wrong:
                return wrong | {"run": index}
            continue
        stage("compare")
        if values is not None:
            wrong = compare(graph, feeds, values, got)
            if wrong:
                return wrong | {"run": index}
        if feeds is trial.runs[0]:
            if first is not None:
                if not all(map(same, first, got)):
                    return fault("not deterministic", "two runs with the same inputs differ", run=index)
            first = got
    return {"status": "ok", **counts}


def is_single(node):
    """Whether the references have a few digits only; onnxruntime's recurrent layers make Elu of e^x - 1."""
    return node.op_type in SINGLE or any(a.name == "activations" and b"Elu" in a.strings for a in node.attribute)


def is_quantised(node):
    """Whether a result is rounded to a byte, of numbers that each reference rounds as it likes."""
    return node.domain == "com.microsoft" and (node.op_type.startswith("Q") or node.op_type == "DynamicQuantizeMatMul")


def is_slope(node):
    """Which is compared with central differences."""
    return node.op_type == "Gradient"


def compare(graph, feeds, values, got):
    nodes = [node for step in graph.steps for node in step.nodes]
    loose = {"sums"} if any(node.op_type in LOOSE for node in nodes) else set()
    for name, has in {"single": is_single, "quantised": is_quantised, "slopes": is_slope}.items():
        if any(map(has, nodes)):
            loose.add(name)
    spreads = []

    def spread(name):
        for seed in range(len(spreads), SPREADS):
            rng = np.random.default_rng(seed)

            def move(array, nodes=()):
                return moved(array, rng, quantised=any(map(is_quantised, nodes)))

            try:
                spreads.append(graph.step_through(feeds, move))
            except Refused:
                spreads.append({})
        return [s.get(name) for s in spreads]

    for name, result in zip(graph.outputs, got):
        text = differences(result, values[name], lambda: spread(name), loose)
        if not text:
            continue
        disputed, other = name in values.disputed, values.others.get(name)
        if disputed and alike(held(result, other), other):
            continue
        # Either reference may be the worse one by a few digits.
        if other is not None and not differences(result, other, lambda: spread(name), loose):
            continue
        return fault("disputed answer" if disputed else "wrong answer", f"output {name}: {text}", output=name)
    return None
