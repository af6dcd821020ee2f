//===- Infer.cpp - Types of intermediate values ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNXSchema.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Importer/DeclaredTypes.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/GuardedSchemas.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <onnx/defs/tensor_proto_util.h>
#include <onnx/shape_inference/implementation.h>

#include <cmath>
#include <cstring>

namespace sardonyx::importer {
/// libonnx's own macros do not know which of the namespaces named onnx is
/// meant.
[[noreturn]] static void refuse(const llvm::Twine &why) {
  throw ::onnx::InferenceError(why.str());
}

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

/// Sizes below 0 index what is no dimension, and some arithmetic makes them.
static void checkNoneNegative(const ::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (const ::onnx::TypeProto *type = context.getInputType(i))
      for (const auto &dim : type->tensor_type().shape().dim())
        if (dim.dim_value() < 0)
          refuse("input " + llvm::Twine(i) + " has the negative size " +
                 llvm::Twine(dim.dim_value()));
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

/// The terms of an equation: those of the operands, and the result's, which is
/// empty where it says none.
struct EinsumTerms {
  explicit EinsumTerms(std::string equation) : text(std::move(equation)) {
    llvm::erase(text, ' ');
    auto [left, right] = llvm::StringRef(text).split("->");
    left.split(operands, ',');
    result = right;
  }
  EinsumTerms(const EinsumTerms &) = delete;

  std::string text; // that the others are parts of
  llvm::SmallVector<llvm::StringRef> operands;
  llvm::StringRef result;
};

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

/// Whether an input has a size that is not known: many inference functions take
/// it for 0.
static bool hasOpenSizes(const ::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (const ::onnx::TypeProto *type = context.getInputType(i))
      for (const auto &dim : type->tensor_type().shape().dim())
        if (!dim.has_dim_value())
          return true;
  return false;
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

void inferGuarded(const ::onnx::OpSchema &schema,
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
  checkShapes(schema, context);
  // Names that follow are those of ONNX's own operators. The nodes of a body
  // are checked as these are.
  if (contrib::isContrib(schema)) {
    contrib::inferTypes(schema, context, GuardedSchemas());
    return;
  }
  if (schema.Name() == "Split")
    checkSplit(context);
  if (schema.Name() == "Resize" || schema.Name() == "Upsample")
    checkScales(context);
  if (isConvolution(schema.Name()))
    checkChannels(schema.Name(), context);
  if (schema.Name() == "Einsum")
    if (const auto *equation = context.getAttribute("equation"))
      checkEquation(equation->s());
  if (infersItself(schema))
    return inferItself(schema, context);
  if (!schema.has_type_and_shape_inference_function())
    return;
  try {
    schema.GetTypeAndShapeInferenceFunction()(context);
    forgetWrongSizes(schema.Name(), context);
    forgetNegativeSizes(context);
    if (schema.Name() == "GatherND")
      noteSingleElement(context);
    if (schema.Name() == "MaxUnpool")
      noteUnpooledShape(context);
    if (schema.Name() == "Resize" || schema.Name() == "Upsample")
      multiplyInSinglePrecision(context);
  } catch (const ::onnx::InferenceError &error) {
    // Where a size is open it may be what is asked for.
    if (!hasOpenSizes(context) ||
        !llvm::StringRef(error.what()).contains("ShapeInferenceError"))
      throw;
    // What was written until then may be a shape without its dimensions.
    for (size_t i = 0; i < context.getNumOutputs(); ++i)
      if (::onnx::TypeProto *type = context.getOutputType(i);
          type && type->has_tensor_type() &&
          type->tensor_type().shape().dim_size() == 0)
        type->mutable_tensor_type()->clear_shape();
  } catch (const std::out_of_range &) {
    refuse("an attribute or the value of an input does not fit the ranks of "
           "the inputs");
  } catch (const std::exception &error) {
    refuse(error.what());
  }
}

void propagateGuarded(const ::onnx::OpSchema &schema,
                      ::onnx::DataPropagationContext &context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (isLongList(context.getInputType(i)))
      return;
  try {
    schema.GetDataPropagationFunction()(context);
  } catch (const std::exception &) {
    // Then nothing is known of the value.
  }
}

std::string inferenceErrorText(const std::exception &error) {
  llvm::StringRef text = error.what();
  if (text.starts_with("["))
    if (auto [head, rest] = text.split("] "); !rest.empty())
      text = rest;
  return text.split("\n").first.trim().str();
}

const ::onnx::OpSchema *
GuardedSchemas::GetSchema(const std::string &key, int version,
                          const std::string &domain) const {
  size_t mark = key.rfind('@');
  std::string op = key.substr(0, mark);
  if (mark != std::string::npos)
    version = std::atoi(key.c_str() + mark + 1);
  const ::onnx::OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(
      op, static_cast<int>(readVersion(domain, op, version)), domain);
  if (!schema || !(schema->has_type_and_shape_inference_function() ||
                   contrib::isContrib(*schema) || infersItself(*schema)))
    return schema;
  auto &copy = guarded[schema];
  if (!copy) {
    copy = std::make_unique<::onnx::OpSchema>(*schema);
    copy->TypeAndShapeInferenceFunction(
        [schema](::onnx::InferenceContext &context) {
          inferGuarded(*schema, context);
        });
    if (schema->has_data_propagation_function())
      copy->PartialDataPropagationFunction(
          [schema](::onnx::DataPropagationContext &context) {
            propagateGuarded(*schema, context);
          });
  }
  return copy.get();
}

/// Some exporters write -1 for a size that they do not know.
static void openUnknownSizes(::onnx::GraphProto &graph) {
  for (auto *values : {graph.mutable_input(), graph.mutable_output(),
                       graph.mutable_value_info()})
    for (::onnx::ValueInfoProto &value : *values)
      if (value.type().tensor_type().has_shape())
        for (auto &dim : *value.mutable_type()
                              ->mutable_tensor_type()
                              ->mutable_shape()
                              ->mutable_dim())
          if (dim.dim_value() == -1)
            dim.Clear();
  for (::onnx::NodeProto &node : *graph.mutable_node())
    for (::onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        openUnknownSizes(*attribute.mutable_g());
      for (::onnx::GraphProto &inner : *attribute.mutable_graphs())
        openUnknownSizes(inner);
    }
}

void inferTypes(::onnx::ModelProto &model) {
  openUnknownSizes(*model.mutable_graph());
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

void inferDeclaredTypes(::onnx::ModelProto &model) {
  DeclaredRanks ranks(*model.mutable_graph());
  inferTypes(model);
  ranks.restore();
}

} // namespace sardonyx::importer
