//===- Infer.cpp - Types of intermediate values ---------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"

#include <onnx/shape_inference/implementation.h>

namespace sardonyx::importer {
namespace {

/// Finds the schemas of operators that the inliner marked with a version.
class MarkedSchemas : public ::onnx::ISchemaRegistry {
public:
  const ::onnx::OpSchema *GetSchema(const std::string &key, int version,
                                    const std::string &domain) const override {
    size_t mark = key.rfind('@');
    if (mark == std::string::npos)
      return ::onnx::OpSchemaRegistry::Schema(key, version, domain);
    return ::onnx::OpSchemaRegistry::Schema(
        key.substr(0, mark), std::atoi(key.c_str() + mark + 1), domain);
  }
};

} // namespace

void inferTypes(::onnx::ModelProto &model) {
  MarkedSchemas schemas;
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

} // namespace sardonyx::importer
