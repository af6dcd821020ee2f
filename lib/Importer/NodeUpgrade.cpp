//===- NodeUpgrade.cpp - What rows of the upgrade table work with ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Types.h"
#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/Twine.h"

#include <onnx/defs/tensor_proto_util.h>

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *NodeUpgrade::find(StringRef name) const {
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

std::optional<AttributeProto> NodeUpgrade::take(StringRef name) {
  auto *attributes = node.mutable_attribute();
  for (int i = 0; i < attributes->size(); ++i) {
    if (attributes->Get(i).name() != name)
      continue;
    AttributeProto result = attributes->Get(i);
    attributes->DeleteSubrange(i, 1);
    return result;
  }
  return std::nullopt;
}

int64_t NodeUpgrade::takeInt(StringRef name, int64_t otherwise) {
  std::optional<AttributeProto> attribute = take(name);
  return attribute ? attribute->i() : otherwise;
}

float NodeUpgrade::takeFloat(StringRef name, float otherwise) {
  std::optional<AttributeProto> attribute = take(name);
  return attribute ? attribute->f() : otherwise;
}

std::string NodeUpgrade::takeString(StringRef name, StringRef otherwise) {
  std::optional<AttributeProto> attribute = take(name);
  return attribute ? attribute->s() : otherwise.str();
}

std::optional<std::vector<int64_t>> NodeUpgrade::takeInts(StringRef name) {
  std::optional<AttributeProto> attribute = take(name);
  if (!attribute)
    return std::nullopt;
  return std::vector<int64_t>(attribute->ints().begin(),
                              attribute->ints().end());
}

static AttributeProto &newAttribute(NodeProto &node, StringRef name,
                                    AttributeProto::AttributeType type) {
  AttributeProto *attribute = nullptr;
  for (AttributeProto &existing : *node.mutable_attribute())
    if (existing.name() == name)
      attribute = &existing;
  if (!attribute)
    attribute = node.add_attribute();
  attribute->Clear();
  attribute->set_name(name.str());
  attribute->set_type(type);
  return *attribute;
}

void setAttribute(NodeProto &node, StringRef name, int64_t value) {
  newAttribute(node, name, AttributeProto::INT).set_i(value);
}

void setAttribute(NodeProto &node, StringRef name, ArrayRef<int64_t> values) {
  AttributeProto &attribute = newAttribute(node, name, AttributeProto::INTS);
  for (int64_t value : values)
    attribute.add_ints(value);
}

void setAttribute(NodeProto &node, StringRef name, StringRef value) {
  newAttribute(node, name, AttributeProto::STRING).set_s(value.str());
}

void NodeUpgrade::set(StringRef name, int64_t value) {
  setAttribute(node, name, value);
}

void NodeUpgrade::set(StringRef name, float value) {
  newAttribute(node, name, AttributeProto::FLOAT).set_f(value);
}

void NodeUpgrade::set(StringRef name, StringRef value) {
  setAttribute(node, name, value);
}

void NodeUpgrade::set(StringRef name, ArrayRef<int64_t> values) {
  setAttribute(node, name, values);
}

//===----------------------------------------------------------------------===//
// Inputs, outputs, types
//===----------------------------------------------------------------------===//

bool NodeUpgrade::hasInput(int index) const {
  return index < node.input_size() && !node.input(index).empty();
}

bool NodeUpgrade::hasOutput(int index) const {
  return index < node.output_size() && !node.output(index).empty();
}

void NodeUpgrade::setInput(int index, std::string name) {
  while (node.input_size() <= index)
    node.add_input("");
  node.set_input(index, name);
  while (node.input_size() && node.input(node.input_size() - 1).empty())
    node.mutable_input()->RemoveLast();
}

std::string NodeUpgrade::redirectOutput(int index) {
  nameNode();
  std::string name = fresh(node.output(index));
  node.set_output(index, name);
  return name;
}

std::optional<std::vector<int64_t>> NodeUpgrade::shape(StringRef name) const {
  std::vector<int64_t> result;
  if (const TensorProto *tensor = constant(name)) {
    result.assign(tensor->dims().begin(), tensor->dims().end());
    return result;
  }
  const ::onnx::TypeProto *type = typeOf(name);
  if (!type || !type->has_tensor_type() || !type->tensor_type().has_shape())
    return std::nullopt;
  for (const auto &dim : type->tensor_type().shape().dim())
    result.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return result;
}

std::optional<int64_t> NodeUpgrade::rank(StringRef name) const {
  if (std::optional<std::vector<int64_t>> sizes = shape(name))
    return sizes->size();
  return std::nullopt;
}

int64_t NodeUpgrade::requireRank(StringRef name) const {
  std::optional<int64_t> result = rank(name);
  if (!result)
    refuse("the rank of '" + name + "' must be known to read version " +
           Twine(version) + " of the operator");
  return *result;
}

int NodeUpgrade::dataType(StringRef name) const {
  if (const TensorProto *tensor = constant(name))
    return tensor->data_type();
  const ::onnx::TypeProto *type = typeOf(name);
  return type ? type->tensor_type().elem_type() : 0;
}

/// The tensor of a Constant node that a row made.
static const TensorProto *findConstant(ArrayRef<NodeProto> nodes,
                                       StringRef name) {
  for (const NodeProto &node : nodes)
    if (node.op_type() == "Constant" && node.output(0) == name)
      return &node.attribute(0).t();
  return nullptr;
}

const TensorProto *NodeUpgrade::constant(StringRef name) const {
  if (const TensorProto *tensor = scope.constant(name))
    return tensor;
  if (const TensorProto *tensor = findConstant(earlier, name))
    return tensor;
  return findConstant(before, name);
}

/// The elements of `tensor`, if it holds them and they are of `type`.
template <typename T>
static std::optional<std::vector<T>> readValues(const TensorProto *tensor,
                                                TensorProto::DataType type) {
  if (!tensor || tensor->data_type() != type ||
      tensor->data_location() == TensorProto::EXTERNAL ||
      tensor->external_data_size())
    return std::nullopt;
  try {
    return ::onnx::ParseData<T>(tensor);
  } catch (const std::exception &) {
    return std::nullopt; // whoever reads the tensor reports it
  }
}

std::optional<std::vector<int64_t>>
NodeUpgrade::intValues(StringRef name) const {
  return readValues<int64_t>(constant(name), TensorProto::INT64);
}

std::optional<std::vector<float>>
NodeUpgrade::floatValues(StringRef name) const {
  return readValues<float>(constant(name), TensorProto::FLOAT);
}

void NodeUpgrade::refuse(const Twine &why) const { failAt(node, why); }

//===----------------------------------------------------------------------===//
// New nodes
//===----------------------------------------------------------------------===//

const std::string &NodeUpgrade::nameNode() {
  if (node.name().empty())
    node.set_name(displayName(node));
  return node.name();
}

std::string NodeUpgrade::fresh(StringRef hint) { return names.make(hint); }

static NodeProto makeNode(StringRef type, std::vector<std::string> inputs,
                          std::vector<std::string> outputs) {
  NodeProto node;
  node.set_op_type(type.str());
  for (std::string &input : inputs)
    node.add_input(std::move(input));
  for (std::string &output : outputs)
    node.add_output(std::move(output));
  return node;
}

NodeProto &NodeUpgrade::addBefore(StringRef type,
                                  std::vector<std::string> inputs,
                                  std::vector<std::string> outputs) {
  before.push_back(makeNode(type, std::move(inputs), std::move(outputs)));
  before.back().set_name(nameNode());
  return before.back();
}

NodeProto &NodeUpgrade::addAfter(StringRef type,
                                 std::vector<std::string> inputs,
                                 std::vector<std::string> outputs) {
  after.push_back(makeNode(type, std::move(inputs), std::move(outputs)));
  after.back().set_name(nameNode());
  return after.back();
}

std::string NodeUpgrade::op(StringRef type, std::vector<std::string> inputs) {
  std::string result = fresh(type);
  addBefore(type, std::move(inputs), {result});
  return result;
}

/// The tensor of a new Constant node.
static TensorProto &constantTensor(NodeProto &node, int dataType) {
  AttributeProto *attribute = node.add_attribute();
  attribute->set_name("value");
  attribute->set_type(AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(dataType);
  return *attribute->mutable_t();
}

std::string NodeUpgrade::ints(ArrayRef<int64_t> values) {
  std::string result = fresh("ints");
  TensorProto &tensor =
      constantTensor(addBefore("Constant", {}, {result}), TensorProto::INT64);
  tensor.add_dims(values.size());
  for (int64_t value : values)
    tensor.add_int64_data(value);
  return result;
}

std::string NodeUpgrade::floats(ArrayRef<float> values) {
  std::string result = fresh("floats");
  TensorProto &tensor =
      constantTensor(addBefore("Constant", {}, {result}), TensorProto::FLOAT);
  tensor.add_dims(values.size());
  for (float value : values)
    tensor.add_float_data(value);
  return result;
}

std::string NodeUpgrade::scalar(int64_t value) {
  std::string result = fresh("int");
  constantTensor(addBefore("Constant", {}, {result}), TensorProto::INT64)
      .add_int64_data(value);
  return result;
}

std::string NodeUpgrade::scalar(float value) {
  std::string result = fresh("float");
  constantTensor(addBefore("Constant", {}, {result}), TensorProto::FLOAT)
      .add_float_data(value);
  return result;
}

std::string NodeUpgrade::scalarLike(float value, const std::string &like) {
  int type = dataType(like);
  if (type == TensorProto::FLOAT)
    return scalar(value);
  if (type != TensorProto::DOUBLE && type != TensorProto::FLOAT16 &&
      type != TensorProto::BFLOAT16)
    return op("CastLike", {scalar(value), like});
  std::string result = fresh("float");
  TensorProto &tensor =
      constantTensor(addBefore("Constant", {}, {result}), type);
  if (type == TensorProto::DOUBLE) {
    tensor.add_double_data(value);
    return result;
  }
  APFloat narrow(value);
  bool inexact;
  narrow.convert(type == TensorProto::FLOAT16 ? APFloat::IEEEhalf()
                                              : APFloat::BFloat(),
                 APFloat::rmNearestTiesToEven, &inexact);
  tensor.add_int32_data(narrow.bitcastToAPInt().getZExtValue());
  return result;
}

} // namespace sardonyx::importer
