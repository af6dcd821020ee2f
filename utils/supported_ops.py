#!/usr/bin/env python3
"""Writes docs/reference/Operators.md: which operators, versions and element types there are.

    supported_ops.py [--only RE] [--check N]

Nothing in it is by hand. Versions are those that have a case that passes in test/Versions. Element types are tried: the case of
the newest version is written with each type that the schema allows for what the operator works on, and loaded; what the compiler
says is the answer. --check N makes the rows of N operators anew, always the same ones, and compares them with the
file; exit status 1 if one differs. The whole takes some minutes.
"""

import argparse
import collections
import copy
import random
import re
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "Versions"))
warnings.filterwarnings("ignore")

import onnx  # noqa: E402
import models  # noqa: E402
import versions  # noqa: E402
from onnx import TensorProto  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "Operators.md"
HEAD = """# Operators

Made by `utils/supported_ops.py`. A version of an operator is there when its case in `test/Versions` passes; an element type, when
the operator's newest version loads with it. Types are those of the type parameter of its schema that allows most; types that the
schema does not allow, and values that are no tensors, are not listed. "function": computed by the definition that ONNX gives in simpler operators, or may be.

Beside these there are com.microsoft's (`dialects/ONNX/contrib`), those that you bring along ([CustomOps](../howto/CustomOps.md)), and what ONNX
called experimental until its version 10: Affine, Crop, DynamicSlice, GivenTensorFill, ImageScaler, ParametricSoftplus, Scale, ScaledTanh.
LayerNormalization, MeanVarianceNormalization and ThresholdedRelu are taken in models of any version, as onnxruntime's tools write them.

| operator | versions | element types | not these | |
|---|---|---|---|---|
"""


def type_codes(schema, parameter):
    """Element types of tensors that a type parameter allows, by name."""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == parameter), [parameter])
    names = [re.fullmatch(r"tensor\((\w+)\)", text) for text in allowed]
    return {match[1]: TensorProto.DataType.Value(match[1].upper()) for match in names if match}


def parameter_of(formals, index):
    """The type parameter of an operand; the last one may stand for many."""
    formal = formals[min(index, len(formals) - 1)] if formals else None
    return formal.type_str if formal else None


def retyped(model, schema, parameter, code):
    """A model of one node with all tensors of a type parameter of another element type; None where that cannot be written."""
    result = copy.deepcopy(model)
    nodes = [node for node in result.graph.node if node.op_type == schema.name and node.domain == schema.domain]
    if len(result.graph.node) != 1 or len(nodes) != 1:
        return None
    node, values = nodes[0], {}
    for formals, names, entries in ((schema.inputs, node.input, result.graph.input), (schema.outputs, node.output, result.graph.output)):
        for index, name in enumerate(names):
            if parameter_of(formals, index) == parameter:
                values[name] = True
        for entry in entries:
            if entry.name in values:
                if entry.type.WhichOneof("value") != "tensor_type":
                    return None
                entry.type.tensor_type.elem_type = code
    for tensor in result.graph.initializer:
        if tensor.name in values:
            return None
    return result if values else None


def load(model):
    import sardonyx

    options = sardonyx.SessionOptions()
    options.cache = False
    try:
        sardonyx.InferenceSession(model.SerializeToString(), options)
        return True
    except NotImplementedError:
        return False
    except Exception:
        return None  # the schema wants something else with this type


def single_nodes():
    """{version: models of this one node}, a few of each."""
    result = collections.defaultdict(list)
    for _, model, _, _ in versions.suite():
        if len(model.graph.node) == 1:
            for version in versions.used(model):
                if len(result[version]) < 4:
                    result[version].append(model)
    for case in models.all_cases():
        if len(case.model.graph.node) == 1:
            for version in versions.used(case.model):
                result[version].append(case.model)
    return result


def types_row(domain, name, single):
    schema = versions.HISTORIES[domain, name][-1]
    version = versions.Version(domain, name, schema.since_version)
    # What the operator works on is the parameter that allows most.
    parameters = dict.fromkeys(formal.type_str for formals in (schema.inputs, schema.outputs) for formal in formals)
    if not parameters:
        return [], []
    parameter = max(parameters, key=lambda parameter: len(type_codes(schema, parameter)))
    codes = type_codes(schema, parameter)
    works, refused = [], []
    for kind, code in codes.items():
        answers = []
        for model in single[version]:
            if written := retyped(model, schema, parameter, code):
                answers.append(load(written))
            if True in answers:
                break
        if True in answers:
            works.append(kind)
        elif False in answers:
            refused.append(kind)
    return works, refused


def row(domain, name, found, single):
    passing, failing = [], []
    for version in versions.all_versions():
        if version[:2] == (domain, name):
            (failing if versions.judge(version, found.get(version, []))[1] else passing).append(str(version.since))
    schema = versions.HISTORIES[domain, name][-1]
    works, refused = types_row(domain, name, single)
    notes = []
    if failing:
        notes.append(f"not: {', '.join(failing)}")
    if schema.deprecated:
        notes.append("deprecated")
    if schema.has_function or schema.has_context_dependent_function:
        notes.append("function")
    label = f"{domain}.{name}" if domain else name
    return f"| {label} | {', '.join(passing)} | {', '.join(works)} | {', '.join(refused)} | {'; '.join(notes)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--check", type=int, default=0)
    arguments = parser.parse_args()
    keys = sorted({version[:2] for version in versions.all_versions()})
    known = PAGE.read_text().splitlines() if PAGE.exists() else []
    if arguments.check:
        listed = {line.split("|")[1].strip() for line in known if line.startswith("| ")} - {"operator"}
        missing = {f"{d}.{n}".strip(".") for d, n in keys} - listed
        chosen = random.Random(0).sample(keys, min(arguments.check, len(keys)))
        found, single = versions.cases(), single_nodes()
        wrong = [made for key in chosen if (made := row(*key, found, single)) not in known]
        print("\n".join([*(f"not listed: {name}" for name in sorted(missing)), *wrong]) or f"{arguments.check} rows are current")
        return 1 if missing or wrong else 0
    found, single = versions.cases(), single_nodes()
    rows = [row(*key, found, single) for key in keys if re.search(arguments.only, f"{key[0]}.{key[1]}")]
    if arguments.only:
        print("\n".join(rows))
    else:
        PAGE.write_text(HEAD + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
