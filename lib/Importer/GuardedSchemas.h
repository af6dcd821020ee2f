//===- GuardedSchemas.h - Schemas that survive missing types ----*- C++ -*-===//

#ifndef SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H
#define SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H

#include <onnx/defs/schema.h>

#include <memory>
#include <string>
#include <unordered_map>

namespace sardonyx::importer {

/// libonnx's schemas, with two differences. Operators that the inliner marked
/// ("Op@7") are found in their version. And inference functions are not called
/// when the type of an input is unknown: many would follow a null pointer.
/// Lives as long as the inference that uses it.
class GuardedSchemas : public ::onnx::ISchemaRegistry {
public:
  const ::onnx::OpSchema *GetSchema(const std::string &key, int version,
                                    const std::string &domain) const override;

private:
  mutable std::unordered_map<const ::onnx::OpSchema *,
                             std::unique_ptr<::onnx::OpSchema>>
      guarded;
};

/// What the guard does for one inference: throws InferenceError.
void requireInputTypes(const std::string &op,
                       ::onnx::InferenceContext &context);

/// Forgets sizes of results that an operator's inference gets wrong.
void forgetWrongSizes(const std::string &op, ::onnx::InferenceContext &context);

/// False where an operand is too long a list to be followed value by value.
bool propagatesShapes(const ::onnx::DataPropagationContext &context);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_GUARDEDSCHEMAS_H
