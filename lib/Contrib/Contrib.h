//===- Contrib.h - Operators beyond ONNX's own ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operators that dialects/ONNX/contrib describes, as schemas in libonnx's
// registry. Nearly all have a function body, so that importer, type inference
// and onnx-expand-functions need to know nothing of them; the others have a
// lowering.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_CONTRIB_H
#define SARDONYX_LIB_CONTRIB_CONTRIB_H

#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

#include <stdexcept>

namespace sardonyx::contrib {

/// What a builder of function bodies throws of a node that it has none for.
struct Refusal : std::runtime_error {
  Refusal(const llvm::Twine &why, bool isForGood)
      : std::runtime_error(why.str()), isForGood(isForGood) {}
  /// No sizes of inputs could help.
  bool isForGood;
};

/// Registers the schemas; further calls do nothing. Comes before all that reads
/// the registry.
void registerSchemas();

/// Whether `schema` is one of these.
bool isContrib(const ::onnx::OpSchema &schema);

/// Infers the results' types, through the body unless the operator has a
/// function for it. Leaves them unknown where there is no body for the inputs
/// as they are.
void inferTypes(const ::onnx::OpSchema &schema,
                ::onnx::InferenceContext &context,
                const ::onnx::ISchemaRegistry &registry);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_CONTRIB_H
