//===- UpgradeExperimental.cpp - Operators that ONNX has dropped ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Until version 10 of its domain ONNX had experimental operators, which models
// of its first releases hold and onnxruntime still takes. There is no schema of
// them: their forms are checked here.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using ::onnx::AttributeProto;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {
namespace {

struct Attribute {
  StringLiteral name;
  AttributeProto::AttributeType type;
  bool required = false;
};

/// Refuses a node that has other inputs, outputs or attributes.
void checkForm(NodeUpgrade &u, int leastInputs, int mostInputs,
               ArrayRef<Attribute> attributes) {
  int inputs = u.node.input_size();
  if (inputs < leastInputs || inputs > mostInputs)
    u.refuse("it takes " + Twine(leastInputs) + " to " + Twine(mostInputs) +
             " inputs, found " + Twine(inputs));
  for (int i = 0; i < leastInputs; ++i)
    if (!u.hasInput(i))
      u.refuse("input " + Twine(i) + " is missing");
  if (u.node.output_size() != 1 || !u.hasOutput(0))
    u.refuse("it gives one output, found " + Twine(u.node.output_size()));
  for (const Attribute &attribute : attributes)
    if (attribute.required && !u.find(attribute.name))
      u.refuse("attribute '" + attribute.name + "' is missing");
  for (const AttributeProto &given : u.node.attribute()) {
    const auto *known = find_if(attributes, [&](const Attribute &attribute) {
      return attribute.name == given.name();
    });
    if (known == attributes.end())
      u.refuse("it has no attribute '" + given.name() + "'");
    if (known->type != given.type())
      u.refuse("attribute '" + given.name() + "' must be of type " +
               AttributeProto::AttributeType_Name(known->type) + ", found " +
               AttributeProto::AttributeType_Name(given.type()));
  }
}

/// Makes the node another one of these inputs, without attributes.
void become(NodeUpgrade &u, StringRef op, ArrayRef<std::string> inputs) {
  u.node.set_op_type(op.str());
  u.node.clear_attribute();
  u.node.clear_input();
  for (const std::string &input : inputs)
    u.node.add_input(input);
}

/// alpha x + beta
void affine(NodeUpgrade &u) {
  checkForm(
      u, 1, 1,
      {{"alpha", AttributeProto::FLOAT}, {"beta", AttributeProto::FLOAT}});
  const std::string x = u.node.input(0);
  float alpha = u.takeFloat("alpha", 1.0f), beta = u.takeFloat("beta", 0.0f);
  std::string scaled = u.op("Mul", {x, u.scalarLike(alpha, x)});
  become(u, "Add", {scaled, u.scalarLike(beta, x)});
}

void scale(NodeUpgrade &u) {
  checkForm(u, 1, 1, {{"scale", AttributeProto::FLOAT}});
  const std::string x = u.node.input(0);
  become(u, "Mul", {x, u.scalarLike(u.takeFloat("scale", 1.0f), x)});
}

/// alpha f(beta x)
void scaledActivation(NodeUpgrade &u, StringRef function) {
  checkForm(u, 1, 1,
            {{"alpha", AttributeProto::FLOAT, /*required=*/true},
             {"beta", AttributeProto::FLOAT, /*required=*/true}});
  const std::string x = u.node.input(0);
  float alpha = u.takeFloat("alpha", 0.0f), beta = u.takeFloat("beta", 0.0f);
  std::string inner = u.op("Mul", {x, u.scalarLike(beta, x)});
  become(u, "Mul", {u.op(function, {inner}), u.scalarLike(alpha, x)});
}

void scaledTanh(NodeUpgrade &u) { scaledActivation(u, "Tanh"); }
void parametricSoftplus(NodeUpgrade &u) { scaledActivation(u, "Softplus"); }

/// The shape of an image [N,C,H,W], -1 where a size is open.
std::vector<int64_t> requireImage(NodeUpgrade &u) {
  std::optional<std::vector<int64_t>> shape = u.shape(u.node.input(0));
  if (!shape || shape->size() != 4)
    u.refuse("input '" + u.node.input(0) + "' must be known to be [N,C,H,W]");
  return *shape;
}

/// A size at run time, as a list of one element.
std::string sizeOf(NodeUpgrade &u, const std::string &x, int64_t axis) {
  std::string size = u.fresh("Shape");
  auto &node = u.addBefore("Shape", {x}, {size});
  setAttribute(node, "start", axis);
  setAttribute(node, "end", axis + 1);
  return size;
}

/// scale x + bias, with a bias for each channel
void imageScaler(NodeUpgrade &u) {
  checkForm(
      u, 1, 1,
      {{"scale", AttributeProto::FLOAT}, {"bias", AttributeProto::FLOATS}});
  const std::string x = u.node.input(0);
  int64_t channels = requireImage(u)[1];
  std::string factor = u.scalarLike(u.takeFloat("scale", 1.0f), x);
  std::optional<AttributeProto> bias = u.take("bias");
  if (!bias || bias->floats().empty()) {
    become(u, "Mul", {x, factor});
    return;
  }
  int64_t count = bias->floats_size();
  if (channels >= 0 && channels != count)
    u.refuse("attribute 'bias' has " + Twine(count) +
             " elements, and the image " + Twine(channels) + " channels");
  std::string scaled = u.op("Mul", {x, factor});
  // Unlike the sum, a shape does not make many channels of one.
  if (channels < 0)
    scaled = u.op("Reshape", {scaled, u.ints({0, count, 0, 0})});
  std::vector<float> values(bias->floats().begin(), bias->floats().end());
  std::string column = u.op("CastLike", {u.floats(values), x});
  become(u, "Add", {scaled, u.op("Unsqueeze", {column, u.ints({1, 2})})});
}

/// Makes the node a Split whose first part has `size`, and gives its inputs.
/// Unlike Slice, that fails where the axis is shorter.
std::vector<std::string> splitInputs(NodeUpgrade &u, const std::string &x,
                                     int64_t size, int64_t axis) {
  std::string first = u.ints({size});
  std::string rest = u.op("Sub", {sizeOf(u, x, axis), first});
  std::string sizes = u.fresh("Concat");
  setAttribute(u.addBefore("Concat", {first, rest}, {sizes}), "axis",
               int64_t(0));
  return {x, sizes};
}

/// An image without its borders (left, top, right, bottom), or with a size
/// (height, width) behind the left and top ones.
void crop(NodeUpgrade &u) {
  checkForm(u, 1, 1,
            {{"border", AttributeProto::INTS, /*required=*/true},
             {"scale", AttributeProto::INTS}});
  const std::string x = u.node.input(0);
  requireImage(u);
  std::vector<int64_t> border = *u.takeInts("border");
  std::vector<int64_t> size =
      u.takeInts("scale").value_or(std::vector<int64_t>());
  if (border.size() != 4 || (!size.empty() && size.size() != 2))
    u.refuse("attribute 'border' must have 4 elements, and 'scale' 2");
  auto isImpossible = [](int64_t value) {
    return value < 0 || value > INT32_MAX;
  };
  if (any_of(border, isImpossible) || any_of(size, isImpossible))
    u.refuse("an element of 'border' or 'scale' is negative, or larger than "
             "an image can be");
  int64_t left = border[0], top = border[1];
  bool sized = !size.empty();
  std::string pads = u.ints({0, 0, -top, -left, 0, 0, sized ? 0 : -border[3],
                             sized ? 0 : -border[2]});
  if (!sized) {
    become(u, "Pad", {x, pads});
    return;
  }
  std::string cut = u.op("Pad", {x, pads}), rows = u.fresh("Split");
  setAttribute(u.addBefore("Split", splitInputs(u, cut, size[0], 2),
                           {rows, u.fresh("Split")}),
               "axis", int64_t(2));
  become(u, "Split", splitInputs(u, rows, size[1], 3));
  u.set("axis", int64_t(3));
  u.node.add_output(u.fresh("Split"));
}

/// Slice had its bounds in attributes.
void dynamicSlice(NodeUpgrade &u) {
  checkForm(u, 3, 4, {});
  u.node.set_op_type("Slice");
}

/// The values of an attribute in a shape that another one tells, or that the
/// input has, with `extra_shape` behind it.
void givenTensorFill(NodeUpgrade &u) {
  checkForm(u, 0, 1,
            {{"values", AttributeProto::FLOATS, /*required=*/true},
             {"shape", AttributeProto::INTS},
             {"input_as_shape", AttributeProto::INT},
             {"extra_shape", AttributeProto::INTS}});
  if (u.takeInt("input_as_shape", 0))
    u.refuse("attribute 'input_as_shape' asks for a shape of floats, which is "
             "not supported");
  auto list = u.take("values")->floats();
  std::string values = u.floats(std::vector<float>(list.begin(), list.end()));
  if (u.hasInput(0))
    values = u.op("CastLike", {values, u.node.input(0)});
  std::optional<std::vector<int64_t>> given = u.takeInts("shape");
  std::optional<std::vector<int64_t>> extra = u.takeInts("extra_shape");
  if (given) {
    become(u, "Reshape", {values, u.ints(*given)});
    return;
  }
  if (!u.hasInput(0))
    u.refuse("neither an attribute nor an input tells the shape");
  std::string shape = u.op("Shape", {u.node.input(0)});
  if (extra && !extra->empty()) {
    std::string longer = u.fresh("Concat");
    setAttribute(u.addBefore("Concat", {shape, u.ints(*extra)}, {longer}),
                 "axis", int64_t(0));
    shape = longer;
  }
  become(u, "Reshape", {values, shape});
}

constexpr UpgradeRow kRows[] = {
    {"", "Affine", INT64_MAX, affine, true},
    {"", "Crop", INT64_MAX, crop, true},
    {"", "DynamicSlice", INT64_MAX, dynamicSlice},
    {"", "GivenTensorFill", INT64_MAX, givenTensorFill, true},
    {"", "ImageScaler", INT64_MAX, imageScaler, true},
    {"", "ParametricSoftplus", INT64_MAX, parametricSoftplus, true},
    {"", "Scale", INT64_MAX, scale, true},
    {"", "ScaledTanh", INT64_MAX, scaledTanh, true},
};

} // namespace

ArrayRef<UpgradeRow> experimentalUpgrades() { return kRows; }

} // namespace sardonyx::importer
