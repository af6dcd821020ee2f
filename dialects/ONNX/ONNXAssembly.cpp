//===- ONNXAssembly.cpp - The textual form that all generated ops share ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %y = onnx.Clip(%x, none, %max) {name = value} : (types) -> types
//   %r = onnx.If(%c) : (tensor<i1>) -> tensor<f32> then_branch {..} else_branch
//   {..}
//
// Operands go by position as in ONNX, `none` is one left out; a result left out
// between others has the type `none`. Defaults are not printed, and an integer
// attribute goes without its type.
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx::onnx {

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static bool isDefault(const AttrInfo &info, Attribute attribute) {
  if (!info.hasDefault)
    return false;
  switch (info.kind) {
  case AttrKind::Int: {
    auto value = dyn_cast<IntegerAttr>(attribute);
    return value && value.getType().isSignedInteger(64) &&
           value.getSInt() == info.defaultInt;
  }
  case AttrKind::Float: {
    auto value = dyn_cast<FloatAttr>(attribute);
    return value && value.getType().isF32() &&
           value.getValue().bitwiseIsEqual(APFloat(info.defaultFloat));
  }
  case AttrKind::String: {
    auto value = dyn_cast<StringAttr>(attribute);
    return value && value.getValue() == info.defaultString;
  }
  default:
    return false;
  }
}

static void printAttributes(OpAsmPrinter &printer, Operation *op,
                            const OpSchema &schema) {
  bool first = true;
  for (NamedAttribute named : op->getAttrs()) {
    StringRef name = named.getName();
    if (name == "operandSegmentSizes" || name == "resultSegmentSizes")
      continue;
    const AttrInfo *info = schema.findAttribute(name);
    if (info && isDefault(*info, named.getValue()))
      continue;
    printer << (first ? " {" : ", ");
    first = false;
    printer.printKeywordOrString(name);
    if (isa<UnitAttr>(named.getValue()))
      continue;
    printer << " = ";
    if (info && info->kind == AttrKind::Int)
      printer.printAttributeWithoutType(named.getValue());
    else
      printer.printAttribute(named.getValue());
  }
  if (!first)
    printer << "}";
}

void printSchemaOp(OpAsmPrinter &printer, Operation *op,
                   const OpSchema &schema) {
  printer << "(";
  llvm::interleaveComma(getPositionalInputs(op), printer, [&](Value value) {
    if (value)
      printer << value;
    else
      printer << "none";
  });
  printer << ")";
  printAttributes(printer, op, schema);
  printer << " : (";
  llvm::interleaveComma(op->getOperandTypes(), printer);
  printer << ") -> ";
  SmallVector<Value> results = getPositionalOutputs(op);
  bool wrap = results.size() != 1;
  if (wrap)
    printer << "(";
  llvm::interleaveComma(results, printer, [&](Value value) {
    if (value)
      printer << value.getType();
    else
      printer << "none";
  });
  if (wrap)
    printer << ")";
  for (auto [info, region] : llvm::zip(schema.regions, op->getRegions())) {
    if (region.empty())
      continue;
    printer << " " << info.name << " ";
    printer.printRegion(region);
  }
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Brings an attribute that was written without its type to the schema's type.
static Attribute normalize(const AttrInfo &info, Attribute attribute) {
  MLIRContext *context = attribute.getContext();
  if (info.kind == AttrKind::Int) {
    auto value = dyn_cast<IntegerAttr>(attribute);
    if (value && value.getType().isSignlessInteger(64))
      return IntegerAttr::get(
          IntegerType::get(context, 64, IntegerType::Signed), value.getValue());
  }
  if (info.kind == AttrKind::Float) {
    auto value = dyn_cast<FloatAttr>(attribute);
    if (value && value.getType().isF64())
      return FloatAttr::get(Float32Type::get(context),
                            value.getValueAsDouble());
  }
  return attribute;
}

static ParseResult parseAttributes(OpAsmParser &parser, OperationState &result,
                                   const OpSchema &schema) {
  SMLoc loc = parser.getCurrentLocation();
  NamedAttrList attributes;
  if (parser.parseOptionalAttrDict(attributes))
    return failure();
  for (NamedAttribute named : attributes) {
    const AttrInfo *info = schema.findAttribute(named.getName());
    Attribute value = named.getValue();
    result.addAttribute(named.getName(),
                        info ? normalize(*info, value) : value);
  }
  // Without this an attribute of a wrong kind would vanish silently.
  auto emitError = [&]() {
    return parser.emitError(loc) << "'" << schema.mnemonic << "' op ";
  };
  return result.name.verifyInherentAttrs(result.attributes, emitError);
}

static ParseResult
parseOperands(OpAsmParser &parser,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
              SmallVectorImpl<bool> &present) {
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
        present.push_back(failed(parser.parseOptionalKeyword("none")));
        if (!present.back())
          return success();
        return parser.parseOperand(operands.emplace_back());
      });
}

ParseResult parseSchemaOp(OpAsmParser &parser, OperationState &result,
                          const OpSchema &schema) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<bool> present;
  FunctionType type;
  if (parseOperands(parser, operands, present) ||
      parseAttributes(parser, result, schema) || parser.parseColonType(type))
    return failure();
  if (parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();

  // buildSchemaOp lays out the segments; operands are resolved in order.
  SmallVector<Value> inputs;
  size_t next = 0;
  for (bool here : present)
    inputs.push_back(here ? result.operands[next++] : Value());
  SmallVector<Type> outputs;
  for (Type output : type.getResults())
    outputs.push_back(isa<NoneType>(output) ? Type() : output);
  OperationState built(result.location, schema.mnemonic);
  std::string error;
  if (failed(buildSchemaOp(built, schema, inputs, outputs, {}, error)))
    return parser.emitError(loc)
           << "'" << schema.mnemonic << "' op: " << error << ".";
  result.addTypes(built.types);
  result.attributes.append(built.attributes.begin(), built.attributes.end());

  for (const RegionInfo &info : schema.regions) {
    Region *region = result.addRegion();
    bool given = succeeded(parser.parseOptionalKeyword(info.name));
    if (!given && !info.required)
      continue;
    if (!given)
      return parser.emitError(parser.getCurrentLocation())
             << "'" << schema.mnemonic << "' op needs the graph '" << info.name
             << "'.";
    if (parser.parseRegion(*region))
      return failure();
  }
  return success();
}

} // namespace sardonyx::onnx
