//===- InferML.cpp - Types that libonnx does not infer --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Half of the operators of ai.onnx.ml have no inference function, and some have
// one that is wrong: ArrayFeatureExtractor's takes the first size of the
// indices for their number, SVMClassifier's knows no results of open size, and
// LinearClassifier's takes one sum for two classes for one score.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/GuardedSchemas.h"

#include "llvm/ADT/StringSwitch.h"

namespace sardonyx::importer {
namespace {

using ::onnx::InferenceContext;
using ::onnx::TypeProto;

/// The dimensions of the first input; null where they are not known.
const ::onnx::TensorShapeProto *inputShape(const InferenceContext &context) {
  const TypeProto *type =
      context.getNumInputs() ? context.getInputType(0) : nullptr;
  return type && type->has_tensor_type() && type->tensor_type().has_shape()
             ? &type->tensor_type().shape()
             : nullptr;
}

TypeProto::Tensor &setType(InferenceContext &context, size_t output, int type) {
  TypeProto::Tensor &tensor =
      *context.getOutputType(output)->mutable_tensor_type();
  tensor.set_elem_type(type);
  return tensor;
}

/// A result of the input's sizes.
void inferSame(InferenceContext &context, int type) {
  TypeProto::Tensor &tensor = setType(context, 0, type);
  if (const auto *shape = inputShape(context))
    *tensor.mutable_shape() = *shape;
}

/// A result with a row of `columns` (-1: any number) for each of the input.
void inferRows(InferenceContext &context, size_t output, int type, int rank,
               int64_t columns = -1) {
  if (output >= context.getNumOutputs())
    return;
  auto &shape = *setType(context, output, type).mutable_shape();
  auto *rows = shape.add_dim();
  if (const auto *input = inputShape(context); input && input->dim_size() == 2)
    *rows = input->dim(0);
  if (rank < 2)
    return;
  auto *size = shape.add_dim();
  if (columns >= 0)
    size->set_dim_value(columns);
}

int64_t intOf(const InferenceContext &context, const char *name,
              int64_t otherwise) {
  const auto *attribute = context.getAttribute(name);
  return attribute ? attribute->i() : otherwise;
}

/// The last dimension at so many indices; of a list a matrix with one row.
void inferExtractor(InferenceContext &context) {
  const TypeProto *type = context.getInputType(0);
  if (!type || !type->has_tensor_type())
    return;
  TypeProto::Tensor &result =
      setType(context, 0, type->tensor_type().elem_type());
  const auto *shape = inputShape(context);
  if (!shape || shape->dim_size() < 1)
    return;
  result.mutable_shape()->clear_dim();
  if (shape->dim_size() == 1)
    result.mutable_shape()->add_dim()->set_dim_value(1);
  for (int i = 0; i + 1 < shape->dim_size(); ++i)
    *result.mutable_shape()->add_dim() = shape->dim(i);
  auto *last = result.mutable_shape()->add_dim();
  const TypeProto *indices = context.getInputType(1);
  if (!indices || !indices->tensor_type().has_shape())
    return;
  int64_t count = 1;
  for (const auto &dim : indices->tensor_type().shape().dim()) {
    int64_t size = dim.has_dim_value() ? dim.dim_value() : -1;
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return;
  }
  last->set_dim_value(count);
}

/// One row of `columns` (-1: any number).
void inferRow(InferenceContext &context, int type, int64_t columns) {
  auto &shape = *setType(context, 0, type).mutable_shape();
  shape.add_dim()->set_dim_value(1);
  auto *size = shape.add_dim();
  if (columns >= 0)
    size->set_dim_value(columns);
}

/// A value for each word of the vocabulary.
void inferDictVectorizer(InferenceContext &context) {
  const auto *strings = context.getAttribute("string_vocabulary");
  const auto *ints = context.getAttribute("int64_vocabulary");
  const TypeProto *type = context.getInputType(0);
  if (!type || !type->has_map_type())
    return;
  inferRow(context, type->map_type().value_type().tensor_type().elem_type(),
           strings && strings->strings_size() ? strings->strings_size()
           : ints                             ? ints->ints_size()
                                              : -1);
}

void inferCastMap(InferenceContext &context) {
  const auto *to = context.getAttribute("cast_to");
  int type = llvm::StringSwitch<int>(to ? to->s() : "TO_FLOAT")
                 .Case("TO_STRING", ::onnx::TensorProto::STRING)
                 .Case("TO_INT64", ::onnx::TensorProto::INT64)
                 .Default(::onnx::TensorProto::FLOAT);
  const auto *form = context.getAttribute("map_form");
  bool isSparse = form && form->s() == "SPARSE";
  inferRow(context, type, isSparse ? intOf(context, "max_map", 1) : -1);
}

/// A label and `columns` scores (-1: any number) a row.
void inferLabels(InferenceContext &context, int64_t columns) {
  const auto *strings = context.getAttribute("classlabels_strings");
  bool areStrings = strings && strings->strings_size() > 0;
  inferRows(
      context, 0,
      areStrings ? ::onnx::TensorProto::STRING : ::onnx::TensorProto::INT64, 1);
  inferRows(context, 1, ::onnx::TensorProto::FLOAT, 2, columns);
}

void inferTrees(InferenceContext &context) {
  const auto *strings = context.getAttribute("classlabels_strings");
  const auto *ints = context.getAttribute("classlabels_int64s");
  inferLabels(context, strings && strings->strings_size() > 0
                           ? strings->strings_size()
                       : ints ? ints->ints_size()
                              : -1);
}

using Infer = void (*)(InferenceContext &);

/// Null for an operator that is not among these.
Infer findInference(const ::onnx::OpSchema &schema) {
  if (schema.domain() != "ai.onnx.ml")
    return nullptr;
  constexpr int kFloat = ::onnx::TensorProto::FLOAT;
  return llvm::StringSwitch<Infer>(schema.Name())
      .Case("Imputer",
            [](InferenceContext &context) {
              if (const TypeProto *type = context.getInputType(0))
                inferSame(context, type->tensor_type().elem_type());
            })
      .Cases({"Normalizer", "Scaler"},
             [](InferenceContext &context) { inferSame(context, kFloat); })
      .Case("FeatureVectorizer",
            [](InferenceContext &context) { inferRows(context, 0, kFloat, 2); })
      .Case("LinearRegressor",
            [](InferenceContext &context) {
              inferRows(context, 0, kFloat, 2, intOf(context, "targets", 1));
            })
      .Case("SVMRegressor",
            [](InferenceContext &context) {
              inferRows(context, 0, kFloat, 2, 1);
            })
      .Case("TreeEnsembleRegressor",
            [](InferenceContext &context) {
              inferRows(context, 0, kFloat, 2, intOf(context, "n_targets", 1));
            })
      .Case("ArrayFeatureExtractor", inferExtractor)
      .Case("CastMap", inferCastMap)
      .Case("DictVectorizer", inferDictVectorizer)
      .Cases({"LinearClassifier", "SVMClassifier"},
             [](InferenceContext &context) { inferLabels(context, -1); })
      .Case("TreeEnsembleClassifier", inferTrees)
      .Default(nullptr);
}

} // namespace

bool infersItself(const ::onnx::OpSchema &schema) {
  return findInference(schema) != nullptr;
}

void inferItself(const ::onnx::OpSchema &schema, InferenceContext &context) {
  if (context.getNumOutputs() > 0 && context.getOutputType(0))
    findInference(schema)(context);
}

} // namespace sardonyx::importer
