//===- InferGuards.h - What surrounds libonnx's inference -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of what libonnx's inference functions take for granted come before
// them, corrections of what they get wrong after them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_INFERGUARDS_H
#define SARDONYX_LIB_IMPORTER_INFERGUARDS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

#include <string>

namespace sardonyx::importer {

/// libonnx's own macros do not know which of the namespaces named onnx is
/// meant.
[[noreturn]] inline void refuse(const llvm::Twine &why) {
  throw ::onnx::InferenceError(why.str());
}

/// libonnx keeps the values of integer lists one message each, whatever their
/// length, and makes a tensor type of as many dimensions as a list is long.
/// None that stands for a shape comes near this.
bool isLongList(const ::onnx::TypeProto *type);

/// The terms of an equation: those of the operands, and the result's, which is
/// empty where it says none.
struct EinsumTerms {
  explicit EinsumTerms(std::string equation);
  EinsumTerms(const EinsumTerms &) = delete;

  std::string text; // that the others are parts of
  llvm::SmallVector<llvm::StringRef> operands;
  llvm::StringRef result;
};

/// Throws if an operator of whatever kind cannot have the inputs that it has.
void checkInputs(const ::onnx::OpSchema &schema,
                 ::onnx::InferenceContext &context);

/// Throws if one of ONNX's own operators has inputs or attributes that its
/// inference function would not survive.
void checkOperator(const ::onnx::OpSchema &schema,
                   ::onnx::InferenceContext &context);

/// Forgets sizes of results that libonnx gets wrong, and adds some that it does
/// not know.
void correctResults(const ::onnx::OpSchema &schema,
                    ::onnx::InferenceContext &context);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_INFERGUARDS_H
