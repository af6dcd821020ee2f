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
  return schema->BuildContextDependentFunction(context, function, version);
}

} // namespace sardonyx::importer
