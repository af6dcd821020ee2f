"""Holds the table of facts (dialects/ONNX/facts.py) against ONNX: against its backend
cases with their expected results, its reference implementation where elements move or
change, and its shape inference for operators that the table leaves out. Prints what is
wrong and fails then."""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import defs, helper, shape_inference
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import _normalize_tensor
from onnx.reference import ReferenceEvaluator

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "dialects" / "ONNX"))

import facts  # noqa: E402
from generator import model as generator  # noqa: E402

warnings.simplefilter("ignore")
OPS = {op.mnemonic: op for op in generator.latest_ops()}
MNEMONIC = {(op.domain, op.op_type): name for name, op in OPS.items()}
RANDOM = facts.DRAWS_NUMBERS.ops
rng = np.random.default_rng(1)

# Of operators that the suite has no case of a single node for.
MADE = {
    "ConcatFromSequence": "y = ConcatFromSequence <axis = 1> (l)",
    "GlobalLpPool": "y = GlobalLpPool (x)",
    "Multinomial": "y = Multinomial <sample_size = 4> (m)",
    "Optional": "y = Optional (x)",
    "RandomNormalLike": "y = RandomNormalLike (x)",
    "RandomUniformLike": "y = RandomUniformLike (x)",
    "SequenceAt": "y = SequenceAt (l, i)",
    "SequenceConstruct": "y = SequenceConstruct (x, x)",
    "SequenceEmpty": "y = SequenceEmpty ()",
    "SequenceErase": "y = SequenceErase (l, i)",
    "SequenceLength": "y = SequenceLength (l)",
    "ml.CategoryMapper": 'y = ai.onnx.ml.CategoryMapper <cats_int64s = [1, 2], cats_strings = ["a", "b"]> (n)',
    "ml.Imputer": "y = ai.onnx.ml.Imputer <imputed_value_floats = [2.0]> (m)",
    "ml.Normalizer": 'y = ai.onnx.ml.Normalizer <norm = "L2"> (m)',
    "ml.Scaler": "y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (m)",
    "ms.BiasGelu": "y = com.microsoft.BiasGelu (x, v)",
    "ms.CausalConvWithState": "y, t = com.microsoft.CausalConvWithState (x, f)",
    "ms.DequantizeLinear": "y = com.microsoft.DequantizeLinear (q, s, z)",
    "ms.FastGelu": "y = com.microsoft.FastGelu (x, v)",
    "ms.GatedAdd": "y = com.microsoft.GatedAdd (x, x, g)",
    "ms.GatedRMSNorm": "y = com.microsoft.GatedRMSNorm (x, v, x)",
    "ms.Gelu": "y = com.microsoft.Gelu (x)",
    "ms.LinearAttention": 'y, t = com.microsoft.LinearAttention <q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"> (x, x, x)',
    "ms.LinearAttentionGate": "y = com.microsoft.LinearAttentionGate (x, v, v)",
    "ms.NhwcFusedConv": "y = com.microsoft.NhwcFusedConv (x, h)",
    "ms.NhwcMaxPool": "y = com.microsoft.NhwcMaxPool <kernel_shape = [2]> (q)",
    "ms.QLinearAveragePool": "y = com.microsoft.QLinearAveragePool <kernel_shape = [2]> (q, s, z, s, z)",
    "ms.QLinearConv": "y = com.microsoft.QLinearConv (q, s, z, k, s, z, s, z)",
    "ms.QLinearGlobalAveragePool": "y = com.microsoft.QLinearGlobalAveragePool (q, s, z, s, z)",
    "ms.QLinearLeakyRelu": "y = com.microsoft.QLinearLeakyRelu (q, s, z, s, z)",
    "ms.QLinearSigmoid": "y = com.microsoft.QLinearSigmoid (q, s, z, s, z)",
    "ms.QLinearSoftmax": "y = com.microsoft.QLinearSoftmax <opset = 13> (q, s, z, s, z)",
    "ms.QMoE": "y = com.microsoft.QMoE <expert_weight_bits = 8> (m, r, e, b, b, e, b, b)",
    "ms.QuantizeLinear": "y = com.microsoft.QuantizeLinear (x, s, z)",
    "ms.QuickGelu": "y = com.microsoft.QuickGelu (x)",
}
INPUTS = {
    "x": ("float[2, 3, 5]", rng.random((2, 3, 5), np.float32)),
    "m": ("float[3, 5]", rng.random((3, 5), np.float32)),
    "v": ("float[5]", rng.random(5, np.float32)),
    "n": ("int64[2, 3, 5]", rng.integers(0, 3, (2, 3, 5))),
    "i": ("int64", np.array(1)),
    "l": ("seq(float[2, 3])", list(rng.random((3, 2, 3), np.float32))),
    "q": ("uint8[2, 3, 5]", rng.integers(0, 255, (2, 3, 5), np.uint8)),
    "s": ("float", np.float32(0.5)),
    # Weights of convolutions, of channels first and last; a gate; scores, weights and biases of experts.
    "f": ("float[3, 1, 2]", rng.random((3, 1, 2), np.float32)),
    "h": ("float[4, 5, 2]", rng.random((4, 5, 2), np.float32)),
    "k": ("uint8[4, 3, 2]", rng.integers(0, 255, (4, 3, 2), np.uint8)),
    "g": ("float[2, 3, 1]", rng.random((2, 3, 1), np.float32)),
    "r": ("float[3, 4]", rng.random((3, 4), np.float32)),
    "e": ("uint8[4, 5, 5]", rng.integers(0, 255, (4, 5, 5), np.uint8)),
    "b": ("float[4, 5]", rng.random((4, 5), np.float32)),
    "z": ("uint8", np.uint8(3)),
}
OPSETS = '"" : 24, "ai.onnx.ml" : 4, "com.microsoft" : 1'

# `results` are the expected ones where `exact`, otherwise only of the expected shapes.
Case = collections.namedtuple("Case", "op node model feeds operands results exact")


def cases():
    """ONNX's cases of one node, by the mnemonic of its operator."""
    found = collections.defaultdict(list)
    for case in load_model_tests(kind="node"):
        nodes = case.model.graph.node
        if len(nodes) != 1 or (nodes[0].domain, nodes[0].op_type) not in MNEMONIC:
            continue
        op = OPS[MNEMONIC[nodes[0].domain, nodes[0].op_type]]
        for inputs, outputs in case.data_sets:
            feeds = dict(zip((i.name for i in case.model.graph.input), map(_normalize_tensor, inputs)))
            operands = [feeds[name] for name in nodes[0].input if name]
            results = list(map(_normalize_tensor, outputs))
            found[op.mnemonic].append(Case(op, nodes[0], case.model, feeds, operands, results, True))
    return found


def made_case(mnemonic):
    """A case of a node in MADE."""
    names = re.search(r"\(([^()]*)\)$", MADE[mnemonic])[1].replace(",", " ").split()
    inputs = ", ".join(f"{INPUTS[name][0]} {name}" for name in dict.fromkeys(names))
    text = f"<ir_version: 10, opset_import: [{OPSETS}]> g ({inputs}) => (float[] y) {{ {MADE[mnemonic]} }}"
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].ClearField("type")
    feeds = {name: INPUTS[name][1] for name in names}
    try:
        results, exact = ReferenceEvaluator(model).run(None, feeds), True
    except NotImplementedError:
        results, exact = [np.zeros(inferred_shape(model), np.float32)], False
    op = OPS[mnemonic]
    return Case(op, model.graph.node[0], model, feeds, [feeds[n] for n in names], results, exact)


def compile_to(phase, model):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        done = subprocess.run(["sardonyx", "compile", "--to", phase, file.name], stdout=-1, text=True, check=True)
        return done.stdout


def inferred_shape(model):
    """By ONNX's own rules; by the compiler, from the body, of an operator of com.microsoft."""
    if not model.graph.node[0].domain == "com.microsoft":
        inferred = shape_inference.infer_shapes(model).graph.output[0].type.tensor_type
        return [dim.dim_value for dim in inferred.shape.dim]
    sizes = re.search(r"return %\S+ : tensor<((?:\d+x)*)", compile_to("import", model))[1]
    return [int(size) for size in sizes.split("x") if size]


def leaves(value):
    """The tensors of a value: of a sequence, an optional or a tensor."""
    if value is None:
        return []
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value)]


def elements(values):
    found = set()
    for array in leaves(values):
        found.update(map(str, array.ravel()) if array.dtype == object else (e.tobytes() for e in array.ravel()))
    return found


def run(case, operands):
    feeds = dict(case.feeds)
    feeds.update(zip([name for name in case.node.input if name], operands))
    return ReferenceEvaluator(case.model).run(None, feeds)


def is_close(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "OUSb":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return np.allclose(a.astype(wide), b.astype(wide), 1e-3, 1e-5, equal_nan=True)


# What each fact promises, of one case: true, false, or None where the case tells nothing.


def keeps_shape(case):
    x, y = case.operands[0], case.results[0]
    return np.shape(x) == np.shape(y) if isinstance(x, np.ndarray) else None


def is_elementwise(case):
    """Also where all elements are shuffled in the same way, as a list."""
    operands, y = case.operands, case.results[0]
    if not all(isinstance(o, (np.ndarray, np.generic)) for o in operands):
        return None
    if np.broadcast_shapes(*map(np.shape, operands)) != np.shape(y):
        return False
    if not case.exact:
        return True
    order = rng.permutation(np.size(y))
    shuffled = [np.broadcast_to(o, np.shape(y)).ravel()[order] for o in operands]
    return is_close(run(case, shuffled)[0], np.ravel(run(case, operands)[0])[order])


def keeps_batch(case):
    return np.shape(case.operands[0])[0] == np.shape(case.results[0])[0]


def keeps_order(case):
    x, y = case.operands[0], case.results[0]
    return np.array_equal(np.ravel(x), np.ravel(y)) if isinstance(x, np.ndarray) else None


def moves_data(case):
    """Results have no other elements than operands, attributes and zero. Where the
    elements have other values, the results have them in the same places."""
    given = [onnx.numpy_helper.to_array(a.t) for a in case.node.attribute if a.type == a.TENSOR]
    given += [np.array(helper.get_attribute_value(a)) for a in case.node.attribute if a.name.startswith("value_")]
    zeros = [np.zeros(1, r.dtype) for r in leaves(case.results)]
    known = elements(case.operands) | elements(zeros)
    for array in given:
        known |= elements(array) | elements(array.astype(np.float32) if array.dtype.kind == "f" else array)
    if not elements(case.results) <= known | {"", "0"}:
        return False
    return moves_as_before(case)


def moves_as_before(case):
    y = case.results[0]
    if not isinstance(y, np.ndarray) or y.dtype not in (np.float32, np.float64, np.int32, np.int64):
        return True
    formals = {p.name: p.type_str for p in case.op.schema.inputs}
    result = case.op.schema.outputs[0].type_str
    types = (list(formals.values()) + [list(formals.values())[-1]] * len(case.node.input)) if formals else []
    moved = [i for i, name in enumerate(n for n in case.node.input) if name and types[i] == result]
    if not moved or "" in case.node.input or case.op.deprecated:
        return True
    rename = lambda array: (np.asarray(array) * 2 + np.sign(array)).astype(array.dtype)  # keeps 0, one to one
    operands = [rename(o) if i in moved else o for i, o in enumerate(case.operands)]
    return np.array_equal(run(case, operands)[0], rename(np.asarray(run(case, case.operands)[0])))


def ignores_elements(case):
    if not case.operands:
        return None
    zero = lambda v: [zero(i) for i in v] if isinstance(v, list) else None if v is None else np.zeros_like(v)
    before, after = run(case, case.operands)[0], run(case, [zero(case.operands[0])] + case.operands[1:])[0]
    if case.op.mnemonic in RANDOM:
        return np.shape(before) == np.shape(after)
    return np.array_equal(before, after)


def reduces(case):
    attributes = {a.name: a.i for a in case.node.attribute}
    x, y = case.operands[0], case.results[0]
    axes = [int(a) for a in np.ravel(case.operands[1])] if len(case.operands) > 1 else []
    if not axes and not attributes.get("noop_with_empty_axes"):
        axes = range(x.ndim)
    axes = {a % x.ndim for a in axes} if x.ndim else set()
    keep = attributes.get("keepdims", 1)
    return y.shape == tuple(1 if d in axes else n for d, n in enumerate(x.shape) if keep or d not in axes)


CHECKS = {
    "Elementwise": is_elementwise,
    "Arithmetic": is_elementwise,
    "KeepsShape": keeps_shape,
    "KeepsBatch": keeps_batch,
    "KeepsOrder": keeps_order,
    "MovesData": moves_data,
    "IgnoresElements": ignores_elements,
    "Reduces": reduces,
}


def check_cases():
    found = cases()
    for fact in facts.FACTS:
        for name in sorted(fact.ops if fact.name in CHECKS else ()):
            of_op = found[name] if name not in MADE else [made_case(name)]
            told = [CHECKS[fact.name](case) for case in of_op]
            if False in told:
                yield f"{fact.name} is wrong of {name}: {of_op[told.index(False)].node}"
            elif True not in told:
                yield f"{fact.name} of {name}: no case tells"


# Bodies that depend on operands count as random to ONNX.
NOT_RANDOM = {"AffineGrid"}


def check_randomness():
    unknown = defs.OpSchema.NodeDeterminism.NonDeterministic
    expected = {name for name, op in OPS.items() if op.schema.node_determinism == unknown and not op.regions}
    if wrong := (expected - NOT_RANDOM) ^ RANDOM:
        yield f"DrawsNumbers: ONNX says otherwise of {wrong}"


def check_relations():
    for part, whole in (facts.ARITHMETIC, facts.ELEMENTWISE), (facts.KEEPS_ORDER, facts.MOVES_DATA):
        if wrong := part.ops - whole.ops:
            yield f"{part.name}, but not {whole.name}: {wrong}"
    for fact in (facts.ELEMENTWISE, facts.MOVES_DATA, facts.ARITHMETIC):
        if wrong := fact.ops & RANDOM:
            yield f"{fact.name} and random: {wrong}"
    for name in facts.KEEPS_SHAPE.ops | facts.KEEPS_BATCH.ops | facts.KEEPS_ORDER.ops | facts.REDUCES.ops:
        if OPS[name].inputs[0].option != "Single":
            yield f"{name}: the first operand may be another than the first input"


def infer(op, shapes):
    """The dimensions of the first result for inputs of these dimensions; None if unknown."""
    names = [f"x{i}" for i in range(len(shapes))]
    for element in (onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL, onnx.TensorProto.INT64, onnx.TensorProto.STRING):
        inputs = [helper.make_tensor_value_info(n, element, s) for n, s in zip(names, shapes)]
        node = helper.make_node(op.op_type, names, ["y"], domain=op.domain)
        graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(op.domain, op.since)])
        try:
            inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        except Exception:
            continue
        kind = inferred.graph.output[0].type.tensor_type
        return [d.dim_param or d.dim_value for d in kind.shape.dim] if kind.HasField("shape") else None
    return None


def check_completeness():
    """Operators that are told by the shape of their result for operands of one kind."""
    for name, op in OPS.items():
        required = sum(p.option == "Single" for p in op.inputs)
        if op.deprecated or op.domain == "com.microsoft" or any(a.required for a in op.attributes):
            continue
        whole = ["a", "b", "c", "d"]
        if required == 1 and infer(op, [whole]) == whole and name not in facts.KEEPS_SHAPE.ops:
            yield f"KeepsShape lacks {name}"
        if required == 2 and infer(op, [["a", 1, "c"], [1, "b", 1]]) == ["a", "b", "c"]:
            if name not in facts.ELEMENTWISE.ops:
                yield f"Elementwise lacks {name}"


INSTRUCTIONS = {"absf", "ceil", "copysign", "floor", "fma", "roundeven", "sqrt"}


def check_arithmetic():
    """On floats it becomes what there are instructions for."""
    nodes = []
    for name in sorted(facts.ARITHMETIC.ops):
        inputs = ["x"] * max(2 if p.option == "Variadic" else 1 for p in OPS[name].inputs) * len(OPS[name].inputs)
        nodes.append(helper.make_node(name, ["c", "x", "x"] if name == "Where" else inputs, [name]))
    values = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [])]
    values.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    graph = helper.make_graph(nodes, "g", values, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    if wrong := set(re.findall(r" math\.(\w+)", compile_to("linalg", model))) - INSTRUCTIONS:
        yield f"Arithmetic: there are functions of a library, {wrong}"


def check_rows():
    """What is lowered by a row of a table is elementwise."""
    for path in (ROOT / "lib" / "Conversion").rglob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        for table in re.findall(r"ElementwiseRow rows\[\] = \{(.*?)\n  \};", text, re.S):
            names = set(re.findall(r'\{"onnx\.([\w.]+)"', table))
            if wrong := names - facts.ELEMENTWISE.ops:
                yield f"{path.name}: rows for {wrong}, which are not Elementwise"


def check_the_generator():
    """It stops at names that there are not."""
    held = generator.FACTS
    generator.FACTS = held + (facts.Fact("Wrong", "", frozenset({"Frobnicate"})),)
    try:
        generator.latest_ops()
        yield "the generator takes an operator that there is not"
    except SystemExit as error:
        if "Frobnicate" not in str(error):
            yield f"the generator says: {error}"
    finally:
        generator.FACTS = held


if __name__ == "__main__":
    checks = (
        check_cases, check_randomness, check_relations, check_completeness, check_arithmetic, check_rows,
        check_the_generator,
    )  # fmt: skip
    wrong = [line for check in checks for line in check()]
    print("\n".join(wrong))
    sys.exit(bool(wrong))
