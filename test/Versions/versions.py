#!/usr/bin/env python3
"""Every version of every operator: a case for each, run and compared.

    versions.py [--only RE] [--list]

ONNX counts as many versions of an operator as its definition has changed. For each, in all of ONNX's domains, there is a model
that is stamped with the opset in which that version counts. Most come from ONNX's conformance suite, which has cases of the newest
versions mostly: one of another version whose form the older one knows is stamped as such, its axes, pads and the like become
attributes where they were attributes then. The others are written down in models.py. Results are compared with onnx's reference evaluator,
with onnxruntime where that does not know the old form, or with what models.py says.

Prints what has no case and what does not pass; --list prints every version with its case. Exit status: 1 if anything is printed
but the known exceptions.
"""

import argparse
import collections
import copy
import os
import re
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.reference  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx.backend.test.runner import _normalize_tensor  # noqa: E402

Version = collections.namedtuple("Version", "domain name since")
# The IR version that came with an opset, so that models look as they did.
IR_OF_OPSET = {1: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 15: 8, 19: 9, 21: 10, 23: 11, 24: 12, 25: 13}
SMALL = 20_000  # bytes of a case that is looked at

# Whose numbers are nobody's to tell; their shapes are.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

# Inputs of now that were attributes then: (operator, before which version) -> (input's place, attribute).
ONCE_ATTRIBUTES = {
    "Squeeze": (13, [(1, "axes")]),
    "Unsqueeze": (13, [(1, "axes")]),
    "ReduceSum": (13, [(1, "axes")]),
    **{f"Reduce{kind}": (18, [(1, "axes")]) for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod SumSquare".split()},
    "Split": (13, [(1, "split")]),
    "Slice": (10, [(1, "starts"), (2, "ends"), (3, "axes")]),
    "Pad": (11, [(1, "pads"), (2, "value")]),
    "Clip": (11, [(1, "min"), (2, "max")]),
    "TopK": (10, [(1, "k")]),
    "Reshape": (5, [(1, "shape")]),
    "Upsample": (9, [(1, "scales")]),
    "Dropout": (12, [(1, "ratio")]),
}


def histories():
    """{(domain, name): schemas, oldest first}"""
    result = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        result[schema.domain, schema.name].append(schema)
    for schemas in result.values():
        schemas.sort(key=lambda schema: schema.since_version)
    return result


HISTORIES = histories()


def all_versions():
    return [Version(*key, s.since_version) for key, schemas in sorted(HISTORIES.items()) for s in schemas]


def schema_of(version):
    return next(s for s in HISTORIES[version[:2]] if s.since_version == version.since)


def counts_at(domain, name, opset):
    """The version of an operator that counts in an opset."""
    known = [s.since_version for s in HISTORIES.get((domain, name), []) if s.since_version <= opset]
    return Version(domain, name, known[-1]) if known else None


def used(model):
    """The versions that a model uses."""
    opsets = {entry.domain.replace("ai.onnx", "") if entry.domain == "ai.onnx" else entry.domain: entry.version
              for entry in model.opset_import}  # fmt: skip
    found = set()

    def walk(graph):
        for node in graph.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            if domain in opsets:
                found.add(counts_at(domain, node.op_type, opsets[domain]))
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g)

    walk(model.graph)
    return found - {None}


class Case:
    """A model, its inputs by name, and what is expected: arrays, or None where a reference tells."""

    def __init__(self, name, model, feeds, expected=None, random=False, tolerance=1e-3):
        self.name, self.model, self.feeds, self.expected = name, model, feeds, expected
        self.random = random or any(version.name in RANDOM for version in used(model))
        self.tolerance = tolerance


def stamped(model, domain, opset):
    """The model with another opset of one domain."""
    result = copy.deepcopy(model)
    result.ir_version = IR_OF_OPSET[max(v for v in IR_OF_OPSET if v <= opset)] if domain == "" else result.ir_version
    del result.opset_import[:]
    others = [entry for entry in model.opset_import if entry.domain != domain and not (domain == "" and entry.domain == "ai.onnx")]
    result.opset_import.extend([*others, helper.make_opsetid(domain, opset)])
    return result


def made_old(model, feeds, version):
    """A suite's model of one operator in the form of an older version, with its feeds; None where that has no such form."""
    result = stamped(model, version.domain, version.since)
    schema, feeds = schema_of(version), dict(feeds)
    for node in result.graph.node:
        if (node.domain, node.op_type) != version[:2]:
            continue
        before, moved = ONCE_ATTRIBUTES.get(node.op_type, (0, []))
        if version.since < before:
            for place, attribute in reversed(moved):
                if place >= len(node.input):
                    continue
                name = node.input[place]
                del node.input[place]
                if not name:
                    continue
                if name not in feeds:
                    return None
                value = feeds.pop(name)
                kind = schema.attributes[attribute].type if attribute in schema.attributes else None
                if kind is None:
                    return None
                isList = kind in (onnx.defs.OpSchema.AttrType.INTS, onnx.defs.OpSchema.AttrType.FLOATS)
                if np.size(value) == 0:
                    return None
                value = np.ravel(value).tolist() if isList else np.ravel(value)[0].item()
                node.attribute.append(helper.make_attribute(attribute, value))
                for k, entry in enumerate(result.graph.input):
                    if entry.name == name:
                        del result.graph.input[k]
                        break
            while node.input and not node.input[-1]:
                del node.input[-1]
        if any(attribute.name not in schema.attributes for attribute in node.attribute):
            return None
        if len(node.input) > schema.max_input or len(node.output) > schema.max_output:
            return None
    return result, feeds


def suite():
    """The conformance suite's cases that are small."""
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            model, sets = case.model, case.data_sets
            if model is None:
                folder = Path(case.model_dir)
                if not (folder / "model.onnx").exists():
                    continue
                model = onnx.load(folder / "model.onnx")
                sets = [([numpy_helper.to_array(onnx.load_tensor(str(path))) for path in sorted((folder / "test_data_set_0").glob(f"{way}_*.pb"))])
                        for way in ("input", "output")]  # fmt: skip
                sets = [tuple(sets)]
            if model.ByteSize() > SMALL or not sets:
                continue
            inputs, outputs = ([_normalize_tensor(value) for value in values] for values in sets[0])
            yield case.name, model, dict(zip((value.name for value in model.graph.input), inputs)), outputs


def cases():
    """{version: candidates, the best first}"""
    import models

    result = collections.defaultdict(list)
    for case in models.all_cases():
        for version in used(case.model):
            result[version].append(case)
    of_operator = collections.defaultdict(list)
    for name, model, feeds, expected in suite():
        for version in used(model):
            if len(result[version]) < 3:
                result[version].append(Case(name, model, feeds, expected))
            of_operator[version[:2]].append((version.since, name, model, feeds))
    for version in all_versions():
        if result[version]:
            continue
        # Of the nearest version, and small ones, first.
        donors = sorted(of_operator[version[:2]], key=lambda d: (abs(d[0] - version.since), len(d[2].graph.node), d[2].ByteSize(), d[1]))
        for _, name, model, feeds in donors[:40]:
            old = made_old(model, feeds, version)
            if old and version in used(old[0]):
                result[version].append(Case(f"{name} at opset {version.since}", *old))
    return result


def reference(case):
    """What a case should give: the first of the references that runs it."""
    if case.expected is not None:
        return case.expected
    try:
        return onnx.reference.ReferenceEvaluator(case.model).run(None, case.feeds)
    except Exception:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, case.feeds)


def is_sound(case):
    try:
        onnx.checker.check_model(case.model)
        reference(case)
    except Exception:
        return False
    return True


def differs(got, want, tolerance):
    if want is None or got is None:
        return got is not want
    if isinstance(want, list) and isinstance(got, list):
        return len(got) != len(want) or any(differs(a, b, tolerance) for a, b in zip(got, want))
    if isinstance(want, dict):
        return got != want
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return True
    if want.dtype.kind in "OUSb" or got.dtype.kind in "OUSb":
        return not (got.astype(object) == want.astype(object)).all()
    return not np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=1e-5, equal_nan=True)


def run(case):
    """What is wrong with a case; empty if nothing is."""
    import sardonyx

    options = sardonyx.SessionOptions()
    options.cache = False
    try:
        got = sardonyx.InferenceSession(case.model.SerializeToString(), options).run(None, case.feeds)
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:200]}"
    want = reference(case)
    if case.random:
        return "" if [np.shape(a) for a in got] == [np.shape(a) for a in want] else "other shapes"
    return "other numbers" if any(differs(a, b, case.tolerance) for a, b in zip(got, want)) else ""


def judge(version, candidates):
    """(case, what is wrong with it): the first candidate that some reference can run."""
    for case in candidates:
        if case.expected is not None or case.random or is_sound(case):
            return case, run(case)
    return None, "no case"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    import models

    found, faults, count = cases(), 0, 0
    for version in all_versions():
        label = f"{version.domain or 'ai.onnx'}.{version.name}-{version.since}"
        if not re.search(arguments.only, label):
            continue
        count += 1
        case, wrong = judge(version, found[version])
        if wrong and label not in models.EXCEPTIONS:
            faults += 1
            print(f"{label}: {wrong}" + (f" ({case.name})" if case else ""), flush=True)
        elif arguments.list:
            print(f"{label}: {case.name if case else models.EXCEPTIONS[label]}", flush=True)
    print(f"{count} versions, {faults} without a case or not right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
