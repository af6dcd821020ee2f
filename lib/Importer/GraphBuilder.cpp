//===- GraphBuilder.cpp - Nodes to ops ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/GraphBuilder.h"
#include "lib/Importer/DeclaredTypes.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Types.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace sardonyx::importer {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TypeProto;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Location GraphBuilder::location(StringRef name) {
  name = shown(name);
  if (name.empty() || !keepNames)
    return fileLoc;
  return NameLoc::get(builder.getStringAttr(name), fileLoc);
}

void GraphBuilder::define(StringRef name, Value value) {
  scopes.back().pending.erase(name);
  if (!scopes.back().values.try_emplace(name, value).second)
    fail("value '" + name + "' is defined twice in the same graph");
}

Value GraphBuilder::find(StringRef name) {
  for (size_t i = scopes.size(); i-- > 0;) {
    auto it = scopes[i].values.find(name);
    if (it == scopes[i].values.end())
      continue;
    Value value = it->second;
    // Graphs that a call gives as attributes see the values of the caller:
    // those become inputs of the functions in between.
    for (size_t j = i + 1; j < scopes.size(); ++j)
      if (Function *function = scopes[j].function)
        scopes[j].values[name] = value =
            function->addArgument(value, "", value.getLoc());
    return value;
  }
  return {};
}

Value GraphBuilder::lookup(const std::string &name, const NodeProto *user) {
  if (Value value = find(name))
    return value;
  bool later = llvm::any_of(
      scopes, [&](const Scope &scope) { return scope.pending.contains(name); });
  if (user)
    failAt(*user, "input '" + name + "' " +
                      (later ? "is used before the node that makes it: the "
                               "graph has a cycle"
                             : "is defined nowhere"));
  fail("graph output '" + name + "' is defined nowhere");
}

Value GraphBuilder::output(const std::string &name) {
  return lookup(name, nullptr);
}

const TypeProto *GraphBuilder::typeOf(StringRef name) const {
  // The body of a call stands in the graph of its caller; what is outside of
  // that graph may have values of the same names.
  for (const Scope &scope : llvm::reverse(scopes)) {
    if (const TypeProto *type = scope.types.lookup(name))
      return type;
    if (!scope.function)
      break;
  }
  return nullptr;
}

SmallVector<Value> GraphBuilder::inputs(const NodeProto &node) {
  SmallVector<Value> result;
  for (const std::string &name : node.input())
    result.push_back(name.empty() ? Value() : lookup(name, &node));
  return result;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

void GraphBuilder::addGraph(const GraphProto &graph) {
  Scope &scope = scopes.back();
  auto addTypes = [&](const auto &values) {
    for (const auto &value : values)
      if (value.has_type() && !value.name().empty())
        scope.types.try_emplace(value.name(), &value.type());
  };
  // Declared outputs first: what the model says of them counts most.
  addTypes(graph.output());
  addTypes(graph.value_info());
  for (const NodeProto &node : graph.node())
    for (const std::string &name : node.output())
      if (!name.empty() && !scope.pending.insert(name).second)
        failAt(node, "value '" + name + "' is defined twice in the same graph");
  addInitializers(graph);
  for (int i = 0; i < graph.node_size();)
    i = addNext(graph, i);
}

int GraphBuilder::addNext(const GraphProto &graph, int index) {
  const NodeProto &node = graph.node(index);
  if (callBegin(node))
    return addCall(graph, index);
  addNode(node);
  return index + 1;
}

void GraphBuilder::addInitializers(const GraphProto &graph) {
  auto add = [&](const std::string &name, TensorValue value) {
    if (name.empty())
      fail("an initializer of graph '" + graph.name() + "' has no name");
    Operation *op = createConstant(location(name), value);
    nameResults(op, StringRef(name));
    define(name, op->getResult(0));
  };
  for (const auto &tensor : graph.initializer())
    add(tensor.name(), tensors.read(tensor, tensor.name()));
  for (const auto &tensor : graph.sparse_initializer()) {
    const std::string &name = tensor.values().name();
    add(name, {tensors.readSparse(tensor, name), {}});
  }
}

Operation *GraphBuilder::createConstant(Location loc, TensorValue value) {
  OperationState state(loc, onnx::ConstantOp::getOperationName());
  state.addTypes(value.value.getType());
  state.addAttribute("value", value.value);
  Operation *op = builder.create(state);
  if (value.source)
    op->setDiscardableAttr("sdx.source", value.source);
  return op;
}

void GraphBuilder::addRegion(Region &region, const GraphProto &graph) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region);
  scopes.emplace_back();
  for (const auto &input : graph.input()) {
    Type type = convertType(builder.getContext(), input.type());
    if (!type)
      type = onnx::UnknownType::get(builder.getContext());
    define(input.name(), block->addArgument(type, location(input.name())));
  }
  addGraph(graph);
  SmallVector<Value> results;
  for (const auto &output : graph.output())
    results.push_back(this->output(output.name()));
  OperationState state(location(graph.name()),
                       onnx::YieldOp::getOperationName());
  state.addOperands(results);
  builder.create(state);
  scopes.pop_back();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void GraphBuilder::addNode(const NodeProto &node) {
  const onnx::OpSchema *schema =
      onnx::lookupSchema(node.domain(), node.op_type());
  if (!schema)
    return addCustomNode(node);
  if (schema->domain.empty() && schema->opType == "Constant")
    return addConstant(node);
  addSchemaNode(node, *schema);
}

Type GraphBuilder::resultType(const NodeProto &node, int index,
                              const onnx::OpSchema *schema,
                              ArrayRef<Value> inputs) {
  const std::string &name = node.output(index);
  if (const TypeProto *type = typeOf(name))
    if (Type converted = convertType(builder.getContext(), *type))
      return converted;
  // The schema may still tie the result's type to that of an input.
  if (schema && !schema->outputs.empty()) {
    size_t last = schema->outputs.size() - 1;
    const auto &result = schema->outputs[std::min<size_t>(index, last)];
    for (auto [i, input] : llvm::enumerate(inputs)) {
      if (!input || schema->inputs.empty())
        continue;
      const auto &param =
          schema->inputs[std::min<size_t>(i, schema->inputs.size() - 1)];
      if (param.typeIndex == result.typeIndex && param.homogeneous &&
          result.homogeneous)
        return onnx::eraseShapes(input.getType());
    }
  }
  return onnx::UnknownType::get(builder.getContext());
}

void GraphBuilder::addSchemaNode(const NodeProto &node,
                                 const onnx::OpSchema &schema) {
  SmallVector<Value> operands = inputs(node);
  SmallVector<Type> types;
  for (int i = 0; i < node.output_size(); ++i)
    types.push_back(node.output(i).empty()
                        ? Type()
                        : resultType(node, i, &schema, operands));
  SmallVector<NamedAttribute> attributes;
  llvm::StringMap<const GraphProto *> graphs;
  ArrayRef<int64_t> scanSizes;
  for (const AttributeProto &proto : node.attribute()) {
    if (proto.has_g())
      graphs[proto.name()] = &proto.g();
    else if (proto.name() == kScanSizes)
      scanSizes = {proto.ints().data(), size_t(proto.ints_size())};
    else
      attributes.push_back(
          builder.getNamedAttr(proto.name(), attribute(node, proto)));
  }
  OperationState state(location(displayName(node)), schema.mnemonic);
  std::string error;
  if (failed(onnx::buildSchemaOp(state, schema, operands, types, attributes,
                                 error)))
    failAt(node, error);
  Operation *op = builder.create(state);
  for (auto [info, region] : llvm::zip_equal(schema.regions, op->getRegions()))
    if (const GraphProto *graph = graphs.lookup(info.name))
      addRegion(region, *graph);
  if (!scanSizes.empty())
    op->setDiscardableAttr("sdx.scan_sizes",
                           builder.getDenseI64ArrayAttr(scanSizes));
  finishNode(node, op);
}

/// The eight ways to write a constant are one in the dialect.
void GraphBuilder::addConstant(const NodeProto &node) {
  const std::string &name = node.output(0);
  if (node.attribute_size() != 1)
    failAt(node, "a Constant has exactly one attribute, found " +
                     Twine(node.attribute_size()));
  const AttributeProto &proto = node.attribute(0);
  MLIRContext *context = builder.getContext();
  auto tensorOf = [&](Type element, ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, element);
  };
  Type i64 = builder.getI64Type(), f32 = builder.getF32Type();
  Type string = onnx::StringType::get(context);
  TensorValue value;
  if (proto.name() == "value") {
    value = tensors.read(proto.t(), name);
  } else if (proto.name() == "sparse_value") {
    value.value = tensors.readSparse(proto.sparse_tensor(), name);
  } else if (proto.name() == "value_int") {
    value.value = DenseElementsAttr::get(tensorOf(i64, {}), {proto.i()});
  } else if (proto.name() == "value_float") {
    value.value = DenseElementsAttr::get(tensorOf(f32, {}), {proto.f()});
  } else if (proto.name() == "value_string") {
    value.value = cast<ElementsAttr>(DenseStringElementsAttr::get(
        tensorOf(string, {}), {StringRef(proto.s())}));
  } else if (proto.name() == "value_ints") {
    SmallVector<int64_t> ints(proto.ints().begin(), proto.ints().end());
    value.value = DenseElementsAttr::get(tensorOf(i64, {int64_t(ints.size())}),
                                         ArrayRef<int64_t>(ints));
  } else if (proto.name() == "value_floats") {
    SmallVector<float> floats(proto.floats().begin(), proto.floats().end());
    value.value = DenseElementsAttr::get(
        tensorOf(f32, {int64_t(floats.size())}), ArrayRef<float>(floats));
  } else if (proto.name() == "value_strings") {
    SmallVector<StringRef> strings(proto.strings().begin(),
                                   proto.strings().end());
    value.value = cast<ElementsAttr>(DenseStringElementsAttr::get(
        tensorOf(string, {int64_t(strings.size())}), strings));
  } else {
    failAt(node, "unknown attribute '" + proto.name() + "'");
  }
  finishNode(node, createConstant(location(displayName(node)), value));
}

void GraphBuilder::addCustomNode(const NodeProto &node) {
  SmallVector<Value> operands;
  SmallVector<int64_t> absentInputs, absentOutputs;
  for (auto [i, value] : llvm::enumerate(inputs(node))) {
    if (value)
      operands.push_back(value);
    else
      absentInputs.push_back(i);
  }
  SmallVector<Type> types;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      absentOutputs.push_back(i);
    else
      types.push_back(resultType(node, i, nullptr, {}));
  }
  llvm::StringSet<> given;
  for (const AttributeProto &attribute : node.attribute())
    if (!given.insert(attribute.name()).second)
      failAt(node, "attribute '" + attribute.name() + "' is given twice");
  SmallVector<NamedAttribute> attributes;
  SmallVector<const GraphProto *> graphs;
  SmallVector<StringRef> regionNames;
  DictionaryAttr source; // a compiled model holds for that file only
  for (const AttributeProto &proto : node.attribute()) {
    if (proto.t().data_location() == ::onnx::TensorProto::EXTERNAL) {
      if (source)
        failAt(node, "more than one attribute in files of their own is not "
                     "supported");
      source = tensors.read(proto.t(), proto.name()).source;
    }
    if (proto.has_g()) {
      graphs.push_back(&proto.g());
      regionNames.push_back(proto.name());
    } else {
      attributes.push_back(
          builder.getNamedAttr(proto.name(), attribute(node, proto)));
    }
  }
  OperationState state(location(displayName(node)),
                       onnx::CustomOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttribute("domain", builder.getStringAttr(node.domain()));
  state.addAttribute("op_type", builder.getStringAttr(node.op_type()));
  int64_t version = versions.lookup(node.domain());
  state.addAttribute(
      "op_version",
      builder.getIntegerAttr(builder.getIntegerType(64, /*isSigned=*/true),
                             version ? version : 1));
  if (!attributes.empty())
    state.addAttribute("node_attributes",
                       builder.getDictionaryAttr(attributes));
  if (!absentInputs.empty())
    state.addAttribute("absent_inputs",
                       builder.getDenseI64ArrayAttr(absentInputs));
  if (!absentOutputs.empty())
    state.addAttribute("absent_outputs",
                       builder.getDenseI64ArrayAttr(absentOutputs));
  if (!regionNames.empty())
    state.addAttribute("region_names", builder.getStrArrayAttr(regionNames));
  for (size_t i = 0; i < graphs.size(); ++i)
    state.addRegion();
  Operation *op = builder.create(state);
  if (source)
    op->setDiscardableAttr("sdx.source", source);
  for (auto [graph, region] : llvm::zip_equal(graphs, op->getRegions()))
    addRegion(region, *graph);
  finishNode(node, op);
}

/// Names the results, and notes what the file says beside the semantics.
void GraphBuilder::finishNode(const NodeProto &node, Operation *op) {
  SmallVector<StringRef> names;
  SmallVector<Attribute> dims;
  bool anyDims = false;
  for (const std::string &name : node.output()) {
    if (name.empty())
      continue;
    Value result = op->getResult(names.size());
    names.push_back(name);
    define(name, result);
    const TypeProto *type = typeOf(name);
    ArrayAttr row = type ? dimNames(builder.getContext(), *type) : ArrayAttr();
    auto ranked = dyn_cast<RankedTensorType>(result.getType());
    anyDims |= row && ranked && !ranked.hasStaticShape();
    dims.push_back(row ? row : builder.getArrayAttr({}));
  }
  nameResults(op, names);
  // Names of sizes are the caller's.
  if (anyDims && !function())
    op->setDiscardableAttr("sdx.dims", builder.getArrayAttr(dims));
  if (!keepMetadata)
    return;
  if (!node.doc_string().empty())
    op->setDiscardableAttr("onnx.doc",
                           builder.getStringAttr(node.doc_string()));
  if (node.metadata_props_size())
    op->setDiscardableAttr("onnx.metadata", metadata(node.metadata_props()));
}

DictionaryAttr GraphBuilder::metadata(
    const google::protobuf::RepeatedPtrField<::onnx::StringStringEntryProto>
        &entries) {
  NamedAttrList attributes;
  for (const auto &entry : entries)
    if (!entry.key().empty())
      attributes.set(entry.key(), builder.getStringAttr(entry.value()));
  return attributes.getDictionary(builder.getContext());
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute GraphBuilder::attribute(const NodeProto &node,
                                  const AttributeProto &proto) {
  if (!proto.ref_attr_name().empty())
    failAt(node, "attribute '" + proto.name() +
                     "' refers to an attribute of a function, but the node is "
                     "in none");
  auto strings = [&](const auto &values) {
    SmallVector<StringRef> refs(values.begin(), values.end());
    return builder.getStrArrayAttr(refs);
  };
  std::string name = displayName(node) + "." + proto.name();
  switch (proto.type()) {
  case AttributeProto::FLOAT:
    return builder.getF32FloatAttr(proto.f());
  case AttributeProto::INT:
    return builder.getIntegerAttr(builder.getIntegerType(64, /*isSigned=*/true),
                                  proto.i());
  case AttributeProto::STRING:
    return builder.getStringAttr(proto.s());
  case AttributeProto::TENSOR:
    return tensors.read(proto.t(), name).value;
  case AttributeProto::SPARSE_TENSOR:
    return tensors.readSparse(proto.sparse_tensor(), name);
  case AttributeProto::FLOATS:
    return builder.getDenseF32ArrayAttr(
        SmallVector<float>(proto.floats().begin(), proto.floats().end()));
  case AttributeProto::INTS:
    return builder.getDenseI64ArrayAttr(
        SmallVector<int64_t>(proto.ints().begin(), proto.ints().end()));
  case AttributeProto::STRINGS:
    return strings(proto.strings());
  case AttributeProto::TENSORS: {
    SmallVector<Attribute> values;
    for (const auto &tensor : proto.tensors())
      values.push_back(tensors.read(tensor, name).value);
    return builder.getArrayAttr(values);
  }
  case AttributeProto::TYPE_PROTO: {
    Type type = convertType(builder.getContext(), proto.tp());
    if (!type)
      failAt(node, "attribute '" + proto.name() + "' holds an unknown type");
    return TypeAttr::get(type);
  }
  default:
    failAt(node, "attribute '" + proto.name() + "' is of kind " +
                     Twine(int(proto.type())) + ", which is not supported");
  }
}

} // namespace sardonyx::importer
