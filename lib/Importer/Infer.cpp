//===- Infer.cpp - Types of intermediate values ---------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/GuardedSchemas.h"
#include "lib/Importer/Model.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <onnx/shape_inference/implementation.h>

namespace sardonyx::importer {
/// Operators whose results' types do not hang on the inputs', or whose graphs
/// tell them; their functions are known to look before they leap.
static bool infersWithoutTypes(llvm::StringRef op) {
  static constexpr llvm::StringLiteral names[] = {
      "Cast", "ConstantOfShape", "If", "Loop", "Scan", "Shape", "Size"};
  return llvm::is_contained(names, op);
}

/// libonnx keeps the values of integer lists one message each, whatever their
/// length, and makes a tensor type of as many dimensions as a list is long.
/// None that stands for a shape comes near this.
static bool isLongList(const ::onnx::TypeProto *type) {
  constexpr int64_t limit = 1 << 16;
  return type && type->has_tensor_type() &&
         type->tensor_type().shape().dim_size() == 1 &&
         type->tensor_type().shape().dim(0).dim_value() > limit;
}

/// Operators that take the sizes or bounds of each dimension as a list.
static bool takesPerDimension(llvm::StringRef op) {
  static constexpr llvm::StringLiteral names[] = {
      "Col2Im",  "ConstantOfShape", "Expand", "Pad",
      "Reshape", "Resize",          "Slice",  "Tile"};
  return llvm::is_contained(names, op);
}

void requireInputTypes(const std::string &op,
                       ::onnx::InferenceContext &context) {
  if (takesPerDimension(op))
    for (size_t i = op == "ConstantOfShape" ? 0 : 1; i < context.getNumInputs();
         ++i)
      if (context.hasInput(i) && isLongList(context.getInputType(i)))
        fail_shape_inference("input ", i,
                             " is longer than a tensor can have dimensions");
  if (infersWithoutTypes(op))
    return;
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (context.hasInput(i) && !context.getInputType(i))
      fail_type_inference("the type of input ", i, " is not known");
}

static void forgetSizes(::onnx::InferenceContext &context, size_t output,
                        int first) {
  if (output >= context.getNumOutputs())
    return;
  ::onnx::TypeProto *type = context.getOutputType(output);
  if (!type || !type->has_tensor_type() || !type->tensor_type().has_shape())
    return;
  auto &shape = *type->mutable_tensor_type()->mutable_shape();
  for (int dim = first; dim < shape.dim_size(); ++dim)
    shape.mutable_dim(dim)->Clear();
}

void forgetWrongSizes(const std::string &op,
                      ::onnx::InferenceContext &context) {
  // It makes results longer by output_padding where auto_pad says how long they
  // are.
  if (op == "ConvTranspose") {
    const auto *pad = context.getAttribute("auto_pad");
    if (pad && pad->s().rfind("SAME", 0) == 0 &&
        context.getAttribute("output_padding"))
      forgetSizes(context, 0, 2);
  }
  // It takes unknown sizes for 0.
  if (op == "Attention") {
    bool isKnown = true;
    for (size_t i = 0; i < context.getNumInputs(); ++i)
      if (const ::onnx::TypeProto *type = context.getInputType(i)) {
        isKnown &= type->tensor_type().has_shape();
        for (const auto &dim : type->tensor_type().shape().dim())
          isKnown &= dim.has_dim_value();
      }
    for (size_t i = 0; !isKnown && i < context.getNumOutputs(); ++i)
      forgetSizes(context, i, 0);
  }
}

bool propagatesShapes(const ::onnx::DataPropagationContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (isLongList(context.getInputType(i)))
      return false;
  return true;
}

const ::onnx::OpSchema *
GuardedSchemas::GetSchema(const std::string &key, int version,
                          const std::string &domain) const {
  size_t mark = key.rfind('@');
  const ::onnx::OpSchema *schema =
      mark == std::string::npos
          ? ::onnx::OpSchemaRegistry::Schema(key, version, domain)
          : ::onnx::OpSchemaRegistry::Schema(
                key.substr(0, mark), std::atoi(key.c_str() + mark + 1), domain);
  if (!schema || !schema->has_type_and_shape_inference_function())
    return schema;
  auto &copy = guarded[schema];
  if (!copy) {
    copy = std::make_unique<::onnx::OpSchema>(*schema);
    copy->TypeAndShapeInferenceFunction(
        [op = schema->Name(),
         infer = schema->GetTypeAndShapeInferenceFunction()](
            ::onnx::InferenceContext &context) {
          requireInputTypes(op, context);
          infer(context);
          forgetWrongSizes(op, context);
        });
    if (schema->has_data_propagation_function())
      copy->PartialDataPropagationFunction(
          [propagate = schema->GetDataPropagationFunction()](
              ::onnx::DataPropagationContext &context) {
            if (propagatesShapes(context))
              propagate(context);
          });
  }
  return copy.get();
}

void inferTypes(::onnx::ModelProto &model) {
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

} // namespace sardonyx::importer
