"""Writes the schema tables that the verifier, parser and importer read."""

from onnx import defs

from contrib.schema import MS_DOMAIN

from .ods import default_of, quote

A = defs.OpSchema.AttrType
KIND = {
    A.INT: "Int",
    A.FLOAT: "Float",
    A.STRING: "String",
    A.INTS: "Ints",
    A.FLOATS: "Floats",
    A.STRINGS: "Strings",
    A.TENSOR: "Tensor",
    A.SPARSE_TENSOR: "SparseTensor",
    A.TYPE_PROTO: "TypeProto",
    A.GRAPH: "Graph",
}


def _flag(value):
    return "true" if value else "false"


def _array(type_name, name, rows):
    if not rows:
        return ""
    body = ",\n".join("    {" + row + "}" for row in rows)
    return f"constexpr {type_name} {name}[] = {{\n{body}}};\n"


def _ref(name, rows):
    return name if rows else "{}"


def _param_rows(params):
    return [
        f'"{p.name}", ParamOption::{p.option}, {p.type_index}, '
        f"{_flag(p.homogeneous)}, {p.min_arity}"
        for p in params
    ]


def _attribute_row(attribute):
    default = default_of(attribute)
    values = {A.INT: "0", A.FLOAT: "0.0f", A.STRING: '""'}
    if default is not None and attribute.type in values:
        is_text = attribute.type == A.STRING
        values[attribute.type] = quote(default) if is_text else default
    return (
        f'"{attribute.name}", AttrKind::{KIND[attribute.type]}, '
        f"{_flag(attribute.required)}, {_flag(default is not None)}, "
        + ", ".join(values.values())
    )


def emit_schema(op):
    """Returns the arrays of one op and its row of the table."""
    stem = op.class_name
    types = []
    for t in op.type_sets:
        b = t.bits
        bits = ", ".join(f"0x{b[k]:x}u" for k in ("tensor", "seq", "opt", "optseq", "map", "seqmap"))
        types.append(f'"{t.name}", {bits}')
    attributes = [_attribute_row(a) for a in op.attributes]
    regions = [f'"{a.name}", {_flag(a.required)}' for a in op.regions]
    parts = {
        "Types": ("TypeSet", types),
        "Inputs": ("ParamInfo", _param_rows(op.inputs)),
        "Outputs": ("ParamInfo", _param_rows(op.outputs)),
        "Attrs": ("AttrInfo", attributes),
        "Regions": ("RegionInfo", regions),
    }
    arrays = "".join(_array(t, stem + k, rows) for k, (t, rows) in parts.items())
    refs = ", ".join(_ref(stem + k, rows) for k, (_, rows) in parts.items())
    row = (
        f'    {{"onnx.{op.mnemonic}", "{op.domain}", "{op.op_type}", {op.since}, '
        f"{_flag(op.deprecated)}, {refs}}}"
    )
    return arrays, row


def emit(ops):
    arrays, rows = zip(*(emit_schema(op) for op in ops))
    table = "constexpr OpSchema schemaTable[] = {\n" + ",\n".join(rows) + "};\n"
    latest = {}
    for op in ops:
        latest[op.domain] = max(latest.get(op.domain, 0), op.since)
    versions = [f'    {{"{d}", {latest_version(d)}}}' for d in sorted(latest)]
    domains = "constexpr DomainVersion domainVersions[] = {\n" + ",\n".join(versions) + "};\n"
    return "".join(arrays) + table + domains


def latest_version(domain):
    """The newest released opset of `domain`."""
    if domain == "":
        return defs.onnx_opset_version()
    if domain == MS_DOMAIN:
        return 1
    return max(
        s.since_version for s in defs.get_all_schemas_with_history() if s.domain == domain
    )
