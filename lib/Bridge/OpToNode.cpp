//===- OpToNode.cpp - Ops to nodes ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bridge/OpToNode.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Tensors.h"
#include "lib/Importer/Types.h"
#include "sardonyx/NodeName.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sardonyx::bridge {

using importer::fail;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

std::pair<std::string, std::string> operatorOf(Operation *op) {
  if (auto custom = dyn_cast<onnx::CustomOp>(op))
    return {custom.getDomain().str(), custom.getOpType().str()};
  const onnx::OpSchema *schema = onnx::lookupSchema(op);
  if (!schema)
    fail("'" + op->getName().getStringRef() + "' is no ONNX operator");
  return {schema->domain.str(), schema->opType.str()};
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void describeTensor(ElementsAttr value, TensorProto &tensor) {
  int dataType = importer::dataTypeOf(value.getElementType());
  if (dataType == TensorProto::UNDEFINED)
    fail("a constant has elements that ONNX does not know");
  tensor.set_data_type(dataType);
  for (int64_t size : value.getShapedType().getShape())
    tensor.add_dims(size);
}

void writeWholeTensor(ElementsAttr value, TensorProto &tensor) {
  describeTensor(value, tensor);
  if (auto strings = dyn_cast<DenseStringElementsAttr>(value)) {
    for (StringRef string : strings.getValues<StringRef>())
      tensor.add_string_data(string.str());
    return;
  }
  tensor.set_raw_data(importer::rawData(value));
}

void writeSmallTensor(ElementsAttr value, Operation *, TensorProto &tensor) {
  unsigned bits =
      importer::bitWidth(importer::dataTypeOf(value.getElementType()));
  bool small = value.getNumElements() <= kSmallTensorBytes &&
               value.getNumElements() * bits <= 8 * kSmallTensorBytes;
  // A splat may stand for any number of elements.
  if (small && isa<DenseElementsAttr, DenseResourceElementsAttr>(value))
    writeWholeTensor(value, tensor);
  else
    describeTensor(value, tensor);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static void setStrings(ArrayRef<Attribute> values, AttributeProto &proto) {
  proto.set_type(AttributeProto::STRINGS);
  for (Attribute value : values)
    proto.add_strings(cast<StringAttr>(value).getValue().str());
}

void OpToNode::attribute(Operation *op, StringRef name, Attribute value,
                         AttributeProto &proto) const {
  proto.set_name(name.str());
  llvm::TypeSwitch<Attribute>(value)
      .Case([&](IntegerAttr a) {
        proto.set_type(AttributeProto::INT);
        proto.set_i(a.getValue().getSExtValue());
      })
      .Case([&](FloatAttr a) {
        proto.set_type(AttributeProto::FLOAT);
        proto.set_f(static_cast<float>(a.getValueAsDouble()));
      })
      .Case([&](StringAttr a) {
        proto.set_type(AttributeProto::STRING);
        proto.set_s(a.getValue().str());
      })
      .Case([&](DenseI64ArrayAttr a) {
        proto.set_type(AttributeProto::INTS);
        for (int64_t i : a.asArrayRef())
          proto.add_ints(i);
      })
      .Case([&](DenseF32ArrayAttr a) {
        proto.set_type(AttributeProto::FLOATS);
        for (float f : a.asArrayRef())
          proto.add_floats(f);
      })
      .Case([&](TypeAttr a) {
        proto.set_type(AttributeProto::TYPE_PROTO);
        if (!importer::convertType(a.getValue(), *proto.mutable_tp()))
          fail("attribute '" + name + "' holds a type that ONNX lacks");
      })
      .Case([&](ElementsAttr a) {
        proto.set_type(AttributeProto::TENSOR);
        writeTensor(a, op, *proto.mutable_t());
      })
      .Case([&](ArrayAttr a) {
        if (llvm::all_of(a, llvm::IsaPred<StringAttr>))
          return setStrings(a.getValue(), proto);
        proto.set_type(AttributeProto::TENSORS);
        for (Attribute tensor : a) {
          auto elements = dyn_cast<ElementsAttr>(tensor);
          if (!elements)
            fail("attribute '" + name + "' is a list that ONNX cannot hold");
          writeTensor(elements, op, *proto.add_tensors());
        }
      })
      .Default([&](Attribute) {
        fail("attribute '" + name + "' of '" + op->getName().getStringRef() +
             "' is of a kind that ONNX cannot hold");
      });
}

//===----------------------------------------------------------------------===//
// Nodes and graphs
//===----------------------------------------------------------------------===//

static void describeNode(Operation *op, NodeProto &node) {
  if (auto doc = op->getAttrOfType<StringAttr>("onnx.doc"))
    node.set_doc_string(doc.getValue().str());
  auto metadata = op->getAttrOfType<DictionaryAttr>("onnx.metadata");
  for (NamedAttribute entry :
       metadata ? metadata.getValue() : ArrayRef<NamedAttribute>())
    if (auto value = dyn_cast<StringAttr>(entry.getValue())) {
      auto *property = node.add_metadata_props();
      property->set_key(entry.getName().str());
      property->set_value(value.getValue().str());
    }
}

/// Attributes at their defaults are left out, as older versions of an operator
/// may not know them.
static bool isDefault(const onnx::AttrInfo &info, Attribute value) {
  if (!info.hasDefault)
    return false;
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return info.kind == onnx::AttrKind::Int &&
           integer.getValue().getSExtValue() == info.defaultInt;
  if (auto real = dyn_cast<FloatAttr>(value))
    return info.kind == onnx::AttrKind::Float &&
           real.getValueAsDouble() == double(info.defaultFloat);
  if (auto string = dyn_cast<StringAttr>(value))
    return info.kind == onnx::AttrKind::String &&
           string.getValue() == info.defaultString;
  return false;
}

void OpToNode::customNode(Operation *op, NodeProto &node) const {
  auto custom = cast<onnx::CustomOp>(op);
  auto spread = [&](auto values, std::optional<ArrayRef<int64_t>> absent,
                    auto add) {
    SmallVector<int64_t> holes;
    if (absent)
      holes.assign(absent->begin(), absent->end());
    auto next = values.begin();
    size_t total = values.size() + holes.size();
    for (size_t i = 0; i < total; ++i)
      add(llvm::is_contained(holes, int64_t(i)) || next == values.end()
              ? std::string()
              : nameOf(*next++));
  };
  spread(custom.getInputs(), custom.getAbsentInputs(),
         [&](std::string name) { node.add_input(name); });
  spread(custom.getOutputs(), custom.getAbsentOutputs(),
         [&](std::string name) { node.add_output(name); });
  if (DictionaryAttr attributes = custom.getNodeAttributesAttr())
    for (NamedAttribute named : attributes)
      attribute(op, named.getName(), named.getValue(), *node.add_attribute());
  ArrayAttr names = custom.getRegionNamesAttr();
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    AttributeProto *proto = node.add_attribute();
    proto->set_name(names && i < names.size()
                        ? cast<StringAttr>(names[i]).getValue().str()
                        : "graph" + std::to_string(i));
    proto->set_type(AttributeProto::GRAPH);
    graph(region.front(), *proto->mutable_g());
  }
}

/// The function is an instance, in which the call's attributes are bound.
void OpToNode::callNode(onnx::CallOp call, NodeProto &node) const {
  if (!calleeOf)
    fail("a call of function '" + call.getCallee() + "' was not inlined");
  auto [domain, name] = calleeOf(call);
  node.set_domain(domain);
  node.set_op_type(name);
  if (std::string name = nodeName(call.getLoc()); !name.empty())
    node.set_name(name);
  describeNode(call, node);
  for (Value input : call.getInputs())
    node.add_input(nameOf(input));
  for (Value output : call.getOutputs())
    node.add_output(nameOf(output));
}

void OpToNode::function(Block &block, ArrayRef<std::string> results,
                        ::onnx::FunctionProto &function) const {
  for (BlockArgument argument : block.getArguments())
    function.add_input(nameOf(argument));
  OpToNode inner = *this;
  inner.constantsAsInitializers = false;
  for (Operation &op : block.without_terminator())
    inner.node(&op, *function.add_node());
  Operation *terminator = block.getTerminator();
  for (auto [value, name] :
       llvm::zip_equal(terminator->getOperands(), results)) {
    function.add_output(name);
    if (nameOf(value) == name)
      continue;
    // An input, or a value that is returned twice.
    ::onnx::GraphProto nodes;
    identity(value, name, nodes);
    *function.add_node() = nodes.node(0);
  }
}

void OpToNode::node(Operation *op, NodeProto &node) const {
  if (auto call = dyn_cast<onnx::CallOp>(op))
    return callNode(call, node);
  auto [domain, type] = operatorOf(op);
  if (!domain.empty())
    node.set_domain(domain);
  node.set_op_type(type);
  if (std::string name = nodeName(op->getLoc()); !name.empty())
    node.set_name(name);
  describeNode(op, node);
  if (isa<onnx::CustomOp>(op))
    return customNode(op, node);
  const onnx::OpSchema &schema = *onnx::lookupSchema(op);
  for (Value input : onnx::getPositionalInputs(op))
    node.add_input(input ? nameOf(input) : "");
  // What stands before a list is named, be it there or not and the list empty.
  if (!schema.inputs.empty() &&
      schema.inputs.back().option == onnx::ParamOption::Variadic)
    while (node.input_size() < static_cast<int>(schema.inputs.size()) - 1)
      node.add_input("");
  for (Value output : onnx::getPositionalOutputs(op))
    node.add_output(output ? nameOf(output) : "");
  for (const onnx::AttrInfo &info : schema.attributes)
    if (Attribute value = op->getAttr(info.name);
        value && !isDefault(info, value))
      attribute(op, info.name, value, *node.add_attribute());
  for (auto [info, region] : llvm::zip(schema.regions, op->getRegions())) {
    if (region.empty())
      continue;
    AttributeProto *proto = node.add_attribute();
    proto->set_name(info.name.str());
    proto->set_type(AttributeProto::GRAPH);
    graph(region.front(), *proto->mutable_g());
    if (proto->g().name().empty())
      proto->mutable_g()->set_name(info.name.str());
  }
  if (!note)
    return;
  auto typesOf = [](ArrayRef<Value> values) {
    return llvm::map_to_vector(
        values, [](Value v) { return v ? v.getType() : Type(); });
  };
  note(node, typesOf(onnx::getPositionalInputs(op)),
       typesOf(onnx::getPositionalOutputs(op)));
}

void OpToNode::identity(Value value, const std::string &name,
                        ::onnx::GraphProto &graph) const {
  NodeProto *node = graph.add_node();
  node->set_op_type("Identity");
  node->add_input(nameOf(value));
  node->add_output(name);
  if (note)
    note(*node, value.getType(), value.getType());
}

void OpToNode::declare(Value value, ::onnx::ValueInfoProto &info) const {
  info.set_name(nameOf(value));
  // An unknown type is left out.
  ::onnx::TypeProto type;
  if (importer::convertType(value.getType(), type))
    *info.mutable_type() = std::move(type);
}

void OpToNode::graph(Block &block, ::onnx::GraphProto &graph,
                     bool identityOutputs) const {
  for (BlockArgument argument : block.getArguments())
    declare(argument, *graph.add_input());
  for (Operation &op : block.without_terminator()) {
    auto constant = dyn_cast<onnx::ConstantOp>(op);
    auto value = constant ? dyn_cast_or_null<ElementsAttr>(op.getAttr("value"))
                          : ElementsAttr();
    if (constantsAsInitializers && value) {
      TensorProto *tensor = graph.add_initializer();
      tensor->set_name(nameOf(op.getResult(0)));
      writeTensor(value, &op, *tensor);
      continue;
    }
    node(&op, *graph.add_node());
  }
  Operation *terminator = block.getTerminator();
  llvm::SmallPtrSet<Value, 8> given;
  for (Value result : terminator->getOperands()) {
    ::onnx::ValueInfoProto &output = *graph.add_output();
    declare(result, output);
    Operation *maker = result.getDefiningOp();
    bool made = maker && maker->getBlock() == &block &&
                !isa<onnx::ConstantOp>(maker) && given.insert(result).second;
    if (made || !identityOutputs || !freshName)
      continue;
    output.set_name(freshName());
    identity(result, output.name(), graph);
  }
}

} // namespace sardonyx::bridge
