"""Writes the trait of each fact."""

from facts import FACTS

HEAD = """/// {doc}
template <typename ConcreteOp>
class {name} : public mlir::OpTrait::TraitBase<ConcreteOp, {name}> {{}};
"""


def emit():
    return "\n".join(
        HEAD.format(doc=fact.doc.replace("\n", "\n/// "), name=fact.name) for fact in FACTS
    )


def emit_ods():
    return "".join(f'def ONNX_{fact.name} : ONNX_Fact<"{fact.name}">;\n' for fact in FACTS)
