"""Checks a model and prints what the tests look at."""

import sys

import onnx

model = onnx.load(sys.argv[1], load_external_data=False)
onnx.checker.check_model(sys.argv[1], full_check=True)


def show(value):
    dims = value.type.tensor_type.shape.dim
    sizes = ", ".join(d.dim_param or str(d.dim_value) for d in dims)
    return f"{value.name} [{sizes}]"


print("ir_version", model.ir_version)
for entry in model.opset_import:
    print("opset", entry.domain or "ai.onnx", entry.version)
print("producer", model.producer_name, model.producer_version)
for tensor in model.graph.initializer:
    place = {e.key: e.value for e in tensor.external_data}
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    print("initializer", tensor.name, kind, list(tensor.dims), place or "")
for value in model.graph.input:
    print("input", show(value))
for value in model.graph.output:
    print("output", show(value))


def show_graph(graph, indent=""):
    for node in graph.node:
        attributes = ", ".join(sorted(a.name for a in node.attribute))
        domain = node.domain + "." if node.domain else ""
        print(
            f"{indent}{domain}{node.op_type}({', '.join(node.input)}) -> "
            f"({', '.join(node.output)}) {{{attributes}}}"
        )
        for attribute in node.attribute:
            if attribute.HasField("g"):
                show_graph(attribute.g, indent + "  ")


show_graph(model.graph)
for function in model.functions:
    print(f"function {function.domain}.{function.name}({', '.join(function.input)}) -> ({', '.join(function.output)})")
    show_graph(function, "  ")
