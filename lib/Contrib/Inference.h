//===- Inference.h - Types of operators that have no body -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_INFERENCE_H
#define SARDONYX_LIB_CONTRIB_INFERENCE_H

#include "llvm/ADT/ArrayRef.h"

#include <onnx/defs/schema.h>

namespace sardonyx::contrib {

/// Makes an output a tensor; sizes of -1 are open. Does nothing for one that
/// nobody asks for.
void setTensor(::onnx::InferenceContext &context, size_t output,
               int elementType, llvm::ArrayRef<int64_t> sizes);

/// The sizes of an input, -1 where they are open; none where its rank is not
/// known.
std::optional<std::vector<int64_t>>
sizesOf(const ::onnx::InferenceContext &context, size_t input);

/// Infers the types in the graphs of a search, from those that their inputs
/// have.
void inferGraphs(::onnx::InferenceContext &context);

/// The only output is like the first input.
void inferAsFirst(::onnx::InferenceContext &context);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_INFERENCE_H
