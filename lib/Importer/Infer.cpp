//===- Infer.cpp - Types of intermediate values ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Contrib.h"
#include "lib/Importer/DeclaredTypes.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/GuardedSchemas.h"
#include "lib/Importer/InferGuards.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Upgrade.h"

#include <onnx/shape_inference/implementation.h>

namespace sardonyx::importer {

/// Whether an input has a size that is not known: many inference functions take
/// it for 0, and one that has no rank for none of the rank that they want.
static bool hasOpenSizes(const ::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (const ::onnx::TypeProto *type = context.getInputType(i)) {
      if (type->has_tensor_type() && !type->tensor_type().has_shape())
        return true;
      for (const auto &dim : type->tensor_type().shape().dim())
        if (!dim.has_dim_value())
          return true;
    }
  return false;
}

void inferGuarded(const ::onnx::OpSchema &schema,
                  ::onnx::InferenceContext &context) {
  checkInputs(schema, context);
  checkShapes(schema, context);
  // Names that follow are those of ONNX's own operators. The nodes of a body
  // are checked as these are.
  if (contrib::isContrib(schema)) {
    contrib::inferTypes(schema, context, GuardedSchemas());
    return;
  }
  checkOperator(schema, context);
  if (infersItself(schema))
    return inferItself(schema, context);
  if (!schema.has_type_and_shape_inference_function())
    return;
  try {
    schema.GetTypeAndShapeInferenceFunction()(context);
    correctResults(schema, context);
  } catch (const ::onnx::InferenceError &error) {
    // Where a size is open it may be what is asked for.
    if (!hasOpenSizes(context) ||
        !llvm::StringRef(error.what()).contains("ShapeInferenceError"))
      throw;
    // What was written until then may be a shape without its dimensions.
    for (size_t i = 0; i < context.getNumOutputs(); ++i)
      if (::onnx::TypeProto *type = context.getOutputType(i);
          type && type->has_tensor_type() &&
          type->tensor_type().shape().dim_size() == 0)
        type->mutable_tensor_type()->clear_shape();
  } catch (const std::out_of_range &) {
    refuse("an attribute or the value of an input does not fit the ranks of "
           "the inputs");
  } catch (const std::exception &error) {
    refuse(error.what());
  }
}

void propagateGuarded(const ::onnx::OpSchema &schema,
                      ::onnx::DataPropagationContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (isLongList(context.getInputType(i)))
      return;
  try {
    schema.GetDataPropagationFunction()(context);
  } catch (const std::exception &) {
    // Then nothing is known of the value.
  }
}

std::string inferenceErrorText(const std::exception &error) {
  llvm::StringRef text = error.what();
  if (text.starts_with("["))
    if (auto [head, rest] = text.split("] "); !rest.empty())
      text = rest;
  return text.split("\n").first.trim().str();
}

const ::onnx::OpSchema *
GuardedSchemas::GetSchema(const std::string &key, int version,
                          const std::string &domain) const {
  size_t mark = key.rfind('@');
  std::string op = key.substr(0, mark);
  if (mark != std::string::npos)
    version = std::atoi(key.c_str() + mark + 1);
  const ::onnx::OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(
      op, static_cast<int>(readVersion(domain, op, version)), domain);
  if (!schema || !(schema->has_type_and_shape_inference_function() ||
                   contrib::isContrib(*schema) || infersItself(*schema)))
    return schema;
  auto &copy = guarded[schema];
  if (!copy) {
    copy = std::make_unique<::onnx::OpSchema>(*schema);
    copy->TypeAndShapeInferenceFunction(
        [schema](::onnx::InferenceContext &context) {
          inferGuarded(*schema, context);
        });
    if (schema->has_data_propagation_function())
      copy->PartialDataPropagationFunction(
          [schema](::onnx::DataPropagationContext &context) {
            propagateGuarded(*schema, context);
          });
  }
  return copy.get();
}

/// Some exporters write -1 for a size that they do not know.
static void openUnknownSizes(::onnx::GraphProto &graph) {
  for (auto *values : {graph.mutable_input(), graph.mutable_output(),
                       graph.mutable_value_info()})
    for (::onnx::ValueInfoProto &value : *values)
      if (value.type().tensor_type().has_shape())
        for (auto &dim : *value.mutable_type()
                              ->mutable_tensor_type()
                              ->mutable_shape()
                              ->mutable_dim())
          if (dim.dim_value() == -1)
            dim.Clear();
  for (::onnx::NodeProto &node : *graph.mutable_node())
    for (::onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        openUnknownSizes(*attribute.mutable_g());
      for (::onnx::GraphProto &inner : *attribute.mutable_graphs())
        openUnknownSizes(inner);
    }
}

void inferTypes(::onnx::ModelProto &model) {
  openUnknownSizes(*model.mutable_graph());
  GuardedSchemas schemas;
  ::onnx::ShapeInferenceOptions options(/*check_type_val=*/false,
                                        /*strict_mode_val=*/0,
                                        /*data_prop_val=*/true);
  ::onnx::shape_inference::DataValueMap values;
  try {
    ::onnx::shape_inference::InferShapes(model, &schemas, options, &values);
  } catch (const std::exception &) {
    // What was inferred so far stands in value_info; the importer reports the
    // values that it still lacks a type for.
  }
}

void inferDeclaredTypes(::onnx::ModelProto &model) {
  DeclaredRanks ranks(*model.mutable_graph());
  inferTypes(model);
  ranks.restore();
}

} // namespace sardonyx::importer
