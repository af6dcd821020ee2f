//===- Inference.cpp - Types of operators that have no body ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Inference.h"

namespace sardonyx::contrib {

void setTensor(::onnx::InferenceContext &context, size_t output,
               int elementType, llvm::ArrayRef<int64_t> sizes) {
  if (!context.hasOutput(output))
    return;
  auto &type = *context.getOutputType(output)->mutable_tensor_type();
  type.set_elem_type(elementType);
  type.mutable_shape()->clear_dim();
  for (int64_t size : sizes) {
    auto *dim = type.mutable_shape()->add_dim();
    if (size >= 0)
      dim->set_dim_value(size);
  }
}

std::optional<std::vector<int64_t>>
sizesOf(const ::onnx::InferenceContext &context, size_t input) {
  const ::onnx::TypeProto *type = context.getInputType(input);
  if (!type || !type->tensor_type().has_shape())
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const auto &dim : type->tensor_type().shape().dim())
    sizes.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return sizes;
}

void inferGraphs(::onnx::InferenceContext &context) {
  for (const char *name : {"decoder", "init_decoder", "encoder"}) {
    const auto *graph = context.getAttribute(name);
    auto *inferencer =
        graph ? context.getGraphAttributeInferencer(name) : nullptr;
    if (!inferencer)
      continue;
    std::vector<const ::onnx::TypeProto *> types;
    for (const auto &input : graph->g().input())
      types.push_back(&input.type());
    inferencer->doInferencing(
        types, std::vector<const ::onnx::TensorProto *>(types.size()));
  }
}

void inferAsFirst(::onnx::InferenceContext &context) {
  *context.getOutputType(0) = *context.getInputType(0);
}

} // namespace sardonyx::contrib
