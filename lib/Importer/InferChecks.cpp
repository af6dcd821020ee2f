//===- InferChecks.cpp - What inference takes for granted -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of nodes that libonnx's inference functions do not make themselves.
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNXSchema.h"
#include "lib/Importer/GuardedSchemas.h"
#include "lib/Importer/InferGuards.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <cstring>

namespace sardonyx::importer {

/// Operators whose results' types do not hang on the inputs', or whose graphs
/// tell them; their functions are known to look before they leap.
static bool infersWithoutTypes(llvm::StringRef op) {
  static constexpr llvm::StringLiteral names[] = {
      "Cast", "ConstantOfShape", "If", "Loop", "Scan", "Shape", "Size"};
  return llvm::is_contained(names, op);
}

bool isLongList(const ::onnx::TypeProto *type) {
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

static void requireInputTypes(const ::onnx::OpSchema &schema,
                              ::onnx::InferenceContext &context) {
  const std::string &op = schema.Name();
  if (takesPerDimension(op))
    for (size_t i = op == "ConstantOfShape" ? 0 : 1; i < context.getNumInputs();
         ++i)
      if (context.hasInput(i) && isLongList(context.getInputType(i)))
        refuse("input " + llvm::Twine(i) +
               " is longer than a tensor can have dimensions");
  if (infersWithoutTypes(op))
    return;
  // An empty name may stand where an input is required.
  const auto &formal = schema.inputs();
  for (size_t i = 0; i < context.getNumInputs() && i < formal.size(); ++i)
    if (formal[i].GetOption() == ::onnx::OpSchema::Single &&
        !context.hasInput(i))
      refuse("input " + llvm::Twine(i) + " is required");
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (context.hasInput(i) && !context.getInputType(i))
      refuse("the type of input " + llvm::Twine(i) + " is not known");
}

/// Sizes below 0 index what is no dimension, and some arithmetic makes them.
static void checkNoneNegative(const ::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (const ::onnx::TypeProto *type = context.getInputType(i))
      for (const auto &dim : type->tensor_type().shape().dim())
        if (dim.dim_value() < 0)
          refuse("input " + llvm::Twine(i) + " has the negative size " +
                 llvm::Twine(dim.dim_value()));
}

/// libonnx's parser of equations never gets past a character that is neither a
/// letter nor part of the first ellipsis of its term.
static void checkEquation(const std::string &equation) {
  EinsumTerms terms(equation);
  llvm::SmallVector<llvm::StringRef> all(terms.operands);
  all.push_back(terms.result);
  for (llvm::StringRef term : all) {
    auto [before, after] = term.split("...");
    if (!llvm::all_of(before, llvm::isAlpha) ||
        !llvm::all_of(after, llvm::isAlpha))
      refuse("the equation '" + llvm::Twine(equation) +
             "' has a term that is not made of letters and at most one "
             "ellipsis");
  }
}

/// The numbers of element types are narrowed before they are looked at.
static void checkDataTypes(const ::onnx::OpSchema &schema,
                           ::onnx::InferenceContext &context) {
  for (const auto &[name, attribute] : schema.attributes()) {
    if (!onnx::isDataTypeAttribute(name))
      continue;
    const ::onnx::AttributeProto *given = context.getAttribute(name);
    if (given && given->has_i() &&
        (given->i() < 0 || given->i() > INT32_MAX ||
         !::onnx::TensorProto::DataType_IsValid(int(given->i()))))
      refuse("attribute '" + llvm::Twine(name) + "' is " +
             llvm::Twine(given->i()) +
             ", which is the number of no element type");
  }
}

static bool isConvolution(llvm::StringRef op) {
  static constexpr llvm::StringLiteral names[] = {
      "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"};
  return llvm::is_contained(names, op);
}

/// Convolutions whose channels do not fit: inference looks at windows only.
static void checkChannels(llvm::StringRef op,
                          ::onnx::InferenceContext &context) {
  const size_t weights = op == "QLinearConv" ? 3 : 1;
  // One that is not known or not there is -1.
  auto size = [&](size_t input, int at) -> int64_t {
    const ::onnx::TypeProto *type =
        input < context.getNumInputs() ? context.getInputType(input) : nullptr;
    if (!type || at >= type->tensor_type().shape().dim_size() ||
        !type->tensor_type().shape().dim(at).has_dim_value())
      return -1;
    return type->tensor_type().shape().dim(at).dim_value();
  };
  int64_t group = 1;
  if (const auto *given = context.getAttribute("group"))
    group = given->i();
  if (group < 1)
    refuse("group is " + llvm::Twine(group));
  const bool isTransposed = op == "ConvTranspose";
  int64_t channels = size(0, 1), first = size(weights, 0),
          second = size(weights, 1);
  // Filters are [M, C / group, ...], transposed ones [C, M / group, ...].
  if (first % group != 0 && first >= 0)
    refuse("the filters' first size, " + llvm::Twine(first) +
           ", is no multiple of group, " + llvm::Twine(group));
  int64_t taken = isTransposed ? first : second;
  if (channels < 0 || taken < 0)
    return;
  bool fits = isTransposed ? channels == taken
                           : channels % group == 0 && channels / group == taken;
  if (!fits)
    refuse("the input has " + llvm::Twine(channels) +
           " channels, and the filters take " + llvm::Twine(taken) + ", in " +
           llvm::Twine(group) + (group == 1 ? " group" : " groups"));
}

/// Sizes that scales make must be numbers that an integer can hold.
static void checkScales(::onnx::InferenceContext &context) {
  if (context.getNumInputs() < 1 || !context.getInputType(0))
    return;
  double largest = 1;
  for (const auto &dim : context.getInputType(0)->tensor_type().shape().dim())
    largest = std::max(largest, double(dim.dim_value()));
  auto check = [&](float scale) {
    if (!(std::abs(scale) * largest < 0x1p62))
      refuse("a scale of " + llvm::Twine(std::to_string(scale)) +
             " makes no size");
  };
  if (const auto *scales = context.getAttribute("scales"))
    llvm::for_each(scales->floats(), check);
  for (size_t i = 1; i < context.getNumInputs(); ++i) {
    const ::onnx::TensorProto *data = context.getInputData(i);
    if (!data || data->data_type() != ::onnx::TensorProto::FLOAT)
      continue;
    llvm::for_each(data->float_data(), check);
    for (size_t at = 0; at + 4 <= data->raw_data().size(); at += 4) {
      float scale;
      std::memcpy(&scale, data->raw_data().data() + at, 4);
      check(scale);
    }
  }
}

/// libonnx makes as many sizes as `num_outputs` says, and looks at the number
/// of given sizes only where the size to split is known.
static void checkSplit(::onnx::InferenceContext &context) {
  int64_t outputs = context.getNumOutputs();
  if (const auto *count = context.getAttribute("num_outputs");
      count && count->i() != outputs)
    refuse("num_outputs is " + llvm::Twine(count->i()) + ", but there are " +
           llvm::Twine(outputs) + " outputs");
  const ::onnx::TypeProto *sizes =
      context.getNumInputs() > 1 ? context.getInputType(1) : nullptr;
  if (!sizes || sizes->tensor_type().shape().dim_size() != 1)
    return;
  const auto &length = sizes->tensor_type().shape().dim(0);
  if (length.has_dim_value() && length.dim_value() != outputs)
    refuse(llvm::Twine(length.dim_value()) + " sizes are given for " +
           llvm::Twine(outputs) + " outputs");
}

void checkInputs(const ::onnx::OpSchema &schema,
                 ::onnx::InferenceContext &context) {
  // They assert that it is so.
  if (context.getNumInputs() < size_t(schema.min_input()) ||
      context.getNumOutputs() < size_t(schema.min_output()))
    refuse("it has " + llvm::Twine(context.getNumInputs()) + " inputs and " +
           llvm::Twine(context.getNumOutputs()) + " outputs, and needs " +
           llvm::Twine(schema.min_input()) + " and " +
           llvm::Twine(schema.min_output()));
  requireInputTypes(schema, context);
  checkNoneNegative(context);
  checkDataTypes(schema, context);
}

void checkOperator(const ::onnx::OpSchema &schema,
                   ::onnx::InferenceContext &context) {
  if (schema.Name() == "Split")
    checkSplit(context);
  if (schema.Name() == "Resize" || schema.Name() == "Upsample")
    checkScales(context);
  if (isConvolution(schema.Name()))
    checkChannels(schema.Name(), context);
  if (schema.Name() == "Einsum")
    if (const auto *equation = context.getAttribute("equation"))
      checkEquation(equation->s());
}

} // namespace sardonyx::importer
