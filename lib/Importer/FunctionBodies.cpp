//===- FunctionBodies.cpp - Bodies that ONNX has for operators ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Model.h"

#include <onnx/defs/function.h>
#include <onnx/defs/schema.h>

namespace sardonyx::importer {

using ::onnx::NodeProto;

/// Bodies refer to attributes that a node leaves at their defaults.
static void fillDefaults(NodeProto &node, const ::onnx::OpSchema &schema) {
  for (const auto &[name, attribute] : schema.attributes()) {
    if (!attribute.default_value.has_name())
      continue;
    bool given = false;
    for (const auto &present : node.attribute())
      given |= present.name() == name;
    if (!given)
      *node.add_attribute() = attribute.default_value;
  }
}

static int elementTypeOf(const std::vector<::onnx::TypeProto> &types,
                         size_t i) {
  return i < types.size() ? types[i].tensor_type().elem_type() : 0;
}

/// Inserts a node before node number `at` of a function.
static NodeProto &insertNode(::onnx::FunctionProto &function, int at,
                             const char *op, const std::string &result) {
  function.add_node();
  for (int i = function.node_size() - 1; i > at; --i)
    function.mutable_node()->SwapElements(i, i - 1);
  NodeProto &node = *function.mutable_node(at);
  node.set_op_type(op);
  node.add_output(result);
  return node;
}

/// ONNX's body of CenterCropPad compares the sizes, of any type of integers,
/// with int64.
static void widenSizes(::onnx::FunctionProto &function) {
  const std::string name = function.input(1), wide = name + "_as_int64";
  for (NodeProto &user : *function.mutable_node())
    for (std::string &input : *user.mutable_input())
      if (input == name)
        input = wide;
  NodeProto &cast = insertNode(function, 0, "Cast", wide);
  cast.add_input(name);
  ::onnx::AttributeProto &to = *cast.add_attribute();
  to.set_name("to");
  to.set_type(::onnx::AttributeProto::INT);
  to.set_i(::onnx::TensorProto::INT64);
}

/// ONNX's body of Attention multiplies probabilities, which have the type of
/// the queries, by values, which may have another.
static void convertValues(::onnx::FunctionProto &function) {
  for (int i = function.node_size() - 1; i >= 0; --i) {
    if (function.node(i).op_type() != "MatMul")
      continue;
    std::string probabilities = function.node(i).input(0),
                values = function.node(i).input(1);
    const std::string converted = values + "_as_queries";
    function.mutable_node(i)->set_input(1, converted);
    NodeProto &cast = insertNode(function, i, "CastLike", converted);
    cast.add_input(values);
    cast.add_input(probabilities);
    return;
  }
}

bool makeFunctionBody(NodeProto &node,
                      const std::vector<::onnx::TypeProto> &inputTypes,
                      ::onnx::FunctionProto &function) {
  const ::onnx::OpSchema *schema =
      ::onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (!schema)
    return false;
  fillDefaults(node, *schema);
  if (schema->HasFunction()) {
    function = *schema->GetFunction();
    return true;
  }
  if (!schema->HasContextDependentFunction())
    return false;
  ::onnx::FunctionBodyBuildContextImpl context(node, inputTypes);
  int version = schema->context_dependent_function_opset_versions().back();
  if (!schema->BuildContextDependentFunction(context, function, version))
    return false;
  if (!node.domain().empty())
    return true;
  if (node.op_type() == "CenterCropPad" &&
      elementTypeOf(inputTypes, 1) == ::onnx::TensorProto::INT32)
    widenSizes(function);
  if (node.op_type() == "Attention" &&
      elementTypeOf(inputTypes, 0) != elementTypeOf(inputTypes, 2))
    convertValues(function);
  return true;
}

} // namespace sardonyx::importer
