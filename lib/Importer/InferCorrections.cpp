//===- InferCorrections.cpp - What libonnx's inference gets wrong ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes of results that libonnx's inference functions get wrong are forgotten,
// and some that they leave open are added.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/InferGuards.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <onnx/defs/tensor_proto_util.h>

#include <cmath>

namespace sardonyx::importer {

/// Leaves the sizes of a result open, from dimension `first` on.
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

/// Leaves all of a result open but how many dimensions it has.
static void setRank(::onnx::InferenceContext &context, size_t output,
                    int rank) {
  ::onnx::TypeProto *type = context.getOutputType(output);
  if (!type || !type->has_tensor_type())
    return;
  auto &shape = *type->mutable_tensor_type()->mutable_shape();
  shape.clear_dim();
  while (shape.dim_size() < rank)
    shape.add_dim();
}

static int64_t intAt(const ::onnx::AttributeProto *ints, int i,
                     int64_t otherwise) {
  return ints && i < ints->ints_size() ? ints->ints(i) : otherwise;
}

/// Where a window is larger than its padded input libonnx rounds the number of
/// steps towards zero and counts one position where there is none. Forgets
/// those sizes.
static void forgetMissedWindows(const std::string &op,
                                ::onnx::InferenceContext &context) {
  bool isPool = llvm::StringRef(op).ends_with("Pool");
  size_t weights = op == "QLinearConv" ? 3 : 1;
  const auto *kernel = context.getAttribute("kernel_shape");
  const auto *pads = context.getAttribute("pads");
  const auto *dilations = context.getAttribute("dilations");
  const auto *autoPad = context.getAttribute("auto_pad");
  if (autoPad && llvm::StringRef(autoPad->s()).starts_with("SAME"))
    return;
  if (!context.getInputType(0))
    return;
  const auto &input = context.getInputType(0)->tensor_type().shape();
  for (int dim = 2; dim < input.dim_size(); ++dim) {
    if (!input.dim(dim).has_dim_value())
      continue;
    int64_t extent = intAt(kernel, dim - 2, 0);
    if (!isPool && !extent && context.hasInput(weights)) {
      const auto &shape = context.getInputType(weights)->tensor_type().shape();
      extent = dim < shape.dim_size() ? shape.dim(dim).dim_value() : 0;
    }
    // In floating point nothing overflows.
    double window =
        double(intAt(dilations, dim - 2, 1)) * (double(extent) - 1) + 1;
    double padded = double(input.dim(dim).dim_value()) +
                    double(intAt(pads, dim - 2, 0)) +
                    double(intAt(pads, dim - 2 + input.dim_size() - 2, 0));
    if (padded >= window)
      continue;
    for (size_t i = 0; i < context.getNumOutputs(); ++i) {
      ::onnx::TypeProto *type = context.getOutputType(i);
      if (type && dim < type->tensor_type().shape().dim_size())
        type->mutable_tensor_type()->mutable_shape()->mutable_dim(dim)->Clear();
    }
  }
}

static void forgetNegativeSizes(::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumOutputs(); ++i)
    if (::onnx::TypeProto *type = context.getOutputType(i);
        type && type->has_tensor_type() && type->tensor_type().has_shape())
      for (auto &dim :
           *type->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (dim.dim_value() < 0)
          dim.Clear();
}

/// The labels of a term of an equation: letters, and for the dimensions of an
/// ellipsis -1, -2, ... from the last.
static llvm::SmallVector<int> labelsOf(llvm::StringRef term, int rank) {
  auto [before, after] = term.split("...");
  llvm::SmallVector<int> labels(before.begin(), before.end());
  if (before.size() != term.size())
    for (int left = rank - int(term.size()) + 3; left > 0; --left)
      labels.push_back(-left);
  labels.append(after.begin(), after.end());
  return labels;
}

EinsumTerms::EinsumTerms(std::string equation) : text(std::move(equation)) {
  llvm::erase(text, ' ');
  auto [left, right] = llvm::StringRef(text).split("->");
  left.split(operands, ',');
  result = right;
}

/// A size of 1 is stretched to what other operands have under the same label,
/// but libonnx keeps the first size that it meets. Forgets ones that another
/// operand may stretch.
static void forgetStretchedSizes(::onnx::InferenceContext &context) {
  const auto *equation = context.getAttribute("equation");
  ::onnx::TypeProto *type = context.getOutputType(0);
  if (!equation || !type || !type->tensor_type().has_shape())
    return;
  EinsumTerms terms(equation->s());
  llvm::SmallDenseSet<int> stretched;
  size_t operands = std::min(terms.operands.size(), context.getNumInputs());
  for (size_t i = 0; i < operands; ++i) {
    const ::onnx::TypeProto *input = context.getInputType(i);
    if (!input || !input->tensor_type().has_shape())
      return forgetSizes(context, 0, 0);
    const auto &shape = input->tensor_type().shape();
    for (auto [label, dim] :
         llvm::zip(labelsOf(terms.operands[i], shape.dim_size()), shape.dim()))
      if (!dim.has_dim_value() || dim.dim_value() != 1)
        stretched.insert(label);
  }
  auto &result = *type->mutable_tensor_type()->mutable_shape();
  llvm::SmallVector<int> labels = labelsOf(terms.result, result.dim_size());
  bool isExplicit = int(labels.size()) == result.dim_size();
  for (int dim = 0; dim < result.dim_size(); ++dim)
    if (result.dim(dim).dim_value() == 1 &&
        (!isExplicit || stretched.contains(labels[dim])))
      result.mutable_dim(dim)->Clear();
}

/// Forgets sizes of results that libonnx gets wrong.
static void forgetWrongSizes(const std::string &op,
                             ::onnx::InferenceContext &context) {
  static constexpr llvm::StringLiteral windowed[] = {
      "AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"};
  if (llvm::is_contained(windowed, op))
    forgetMissedWindows(op, context);
  // It makes results longer by output_padding where auto_pad says how long they
  // are.
  if (op == "ConvTranspose") {
    const auto *pad = context.getAttribute("auto_pad");
    if (pad && pad->s().rfind("SAME", 0) == 0 &&
        context.getAttribute("output_padding"))
      forgetSizes(context, 0, 2);
  }
  if (op == "Einsum")
    forgetStretchedSizes(context);
  // It takes onesided, where it is left out, for 0, and gives up where it does
  // not know a length.
  if (op == "STFT")
    setRank(context, 0, 4);
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

/// Where a GatherND picks one element libonnx adds no dimension, and so no
/// shape either.
static void noteSingleElement(::onnx::InferenceContext &context) {
  ::onnx::TypeProto *output = context.getOutputType(0);
  if (!output || output->tensor_type().has_shape())
    return;
  for (unsigned i : {0u, 1u})
    if (!context.getInputType(i)->tensor_type().has_shape())
      return;
  const auto &data = context.getInputType(0)->tensor_type().shape();
  const auto &indices = context.getInputType(1)->tensor_type().shape();
  if (indices.dim_size() == 1 && indices.dim(0).has_dim_value() &&
      indices.dim(0).dim_value() == data.dim_size())
    output->mutable_tensor_type()->mutable_shape();
}

/// The scales of a Resize or Upsample of any version, where they decide on the
/// sizes and are known.
static std::vector<float> getScales(const ::onnx::InferenceContext &context) {
  if (const auto *scales = context.getAttribute("scales"))
    return {scales->floats().begin(), scales->floats().end()};
  size_t inputs = context.getNumInputs(), index = inputs > 2 ? 2 : 1;
  if (inputs <= index || (inputs > 3 && context.hasInput(3)))
    return {};
  const ::onnx::TensorProto *data = context.getInputData(index);
  if (!data || data->data_type() != ::onnx::TensorProto::FLOAT)
    return {};
  return ::onnx::ParseData<float>(data);
}

/// ONNX leaves open how a size is multiplied by a scale. libonnx does it in
/// f64, where 10 * 0.7f is less than 7; everybody else, and who writes scales,
/// counts in f32, the type of scales, where it is 7.
static void multiplyInSinglePrecision(::onnx::InferenceContext &context) {
  std::vector<float> scales = getScales(context);
  ::onnx::TypeProto *output = context.getOutputType(0);
  if (scales.empty() || !output || !output->tensor_type().has_shape())
    return;
  const auto &input = context.getInputType(0)->tensor_type().shape();
  auto &shape = *output->mutable_tensor_type()->mutable_shape();
  int rank = input.dim_size();
  const auto *axes = context.getAttribute("axes");
  bool areListed = axes && axes->ints_size();
  int64_t count = areListed ? axes->ints_size() : rank;
  if (shape.dim_size() != rank || int64_t(scales.size()) != count)
    return;
  for (int i = 0; i < count; ++i) {
    int64_t dim = areListed ? axes->ints(i) : i;
    dim = dim < 0 ? dim + rank : dim;
    if (dim >= 0 && dim < rank && input.dim(dim).has_dim_value())
      shape.mutable_dim(dim)->set_dim_value(
          std::floor(float(input.dim(dim).dim_value()) * scales[i]));
  }
}

/// Where input 'output_shape' of a MaxUnpool says the sizes libonnx gives no
/// shape, though it has the rank of the input.
static void noteUnpooledShape(::onnx::InferenceContext &context) {
  if (context.getNumInputs() < 3 || !context.hasInput(2))
    return;
  const auto &input = context.getInputType(0)->tensor_type();
  if (!input.has_shape())
    return;
  setRank(context, 0, input.shape().dim_size());
  const ::onnx::TensorProto *sizes = context.getInputData(2);
  if (!sizes || sizes->data_type() != ::onnx::TensorProto::INT64)
    return;
  auto &shape =
      *context.getOutputType(0)->mutable_tensor_type()->mutable_shape();
  std::vector<int64_t> values = ::onnx::ParseData<int64_t>(sizes);
  for (auto [dim, value] : llvm::zip(*shape.mutable_dim(), values))
    if (value >= 0)
      dim.set_dim_value(value);
}

void correctResults(const ::onnx::OpSchema &schema,
                    ::onnx::InferenceContext &context) {
  forgetWrongSizes(schema.Name(), context);
  forgetNegativeSizes(context);
  if (schema.Name() == "GatherND")
    noteSingleElement(context);
  if (schema.Name() == "MaxUnpool")
    noteUnpooledShape(context);
  if (schema.Name() == "Resize" || schema.Name() == "Upsample")
    multiplyInSinglePrecision(context);
}

} // namespace sardonyx::importer
