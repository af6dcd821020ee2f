//===- GuardedSchemas.h - Schemas that survive missing types ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H
#define SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H

#include <onnx/defs/schema.h>

#include <memory>
#include <string>
#include <unordered_map>

namespace sardonyx::importer {

/// libonnx's schemas, with two differences. Operators that the inliner marked
/// ("Op@7") are found in their version. And inference goes through the guards
/// below. Lives as long as the inference that uses it.
class GuardedSchemas : public ::onnx::ISchemaRegistry {
public:
  const ::onnx::OpSchema *GetSchema(const std::string &key, int version,
                                    const std::string &domain) const override;

private:
  mutable std::unordered_map<const ::onnx::OpSchema *,
                             std::unique_ptr<::onnx::OpSchema>>
      guarded;
};

/// Calls the schema's inference function, if it has one, unless it would not
/// survive what the node holds: many follow null pointers where a type is not
/// known, and count on attributes that make sense. Throws nothing but
/// InferenceError.
void inferGuarded(const ::onnx::OpSchema &schema,
                  ::onnx::InferenceContext &context);

/// The same for the values of shapes; leaves out what cannot be followed.
void propagateGuarded(const ::onnx::OpSchema &schema,
                      ::onnx::DataPropagationContext &context);

/// Whether an operator has an inference function of ours in place of libonnx's,
/// and what that says.
bool infersItself(const ::onnx::OpSchema &schema);
void inferItself(const ::onnx::OpSchema &schema,
                 ::onnx::InferenceContext &context);

/// Throws if the inputs have shapes that the operator cannot have.
void checkShapes(const ::onnx::OpSchema &schema,
                 ::onnx::InferenceContext &context);

/// What libonnx says went wrong, without its headings.
std::string inferenceErrorText(const std::exception &error);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H
