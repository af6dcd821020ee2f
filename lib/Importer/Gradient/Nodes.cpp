//===- Nodes.cpp - What rules of differentiation work with ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Gradient/Gradient.h"

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

//===----------------------------------------------------------------------===//
// NodeMaker
//===----------------------------------------------------------------------===//

NodeMaker::Names NodeMaker::ops(StringRef type, Names inputs, int results,
                                const Attributes &attributes) {
  NodeProto &node = made.emplace_back();
  node.set_op_type(type.str());
  node.set_name(messageName);
  for (std::string &input : inputs)
    node.add_input(std::move(input));
  while (node.input_size() && node.input(node.input_size() - 1).empty())
    node.mutable_input()->RemoveLast();
  Names outputs;
  for (int i = 0; i < results; ++i) {
    outputs.push_back(names.make("gradient"));
    node.add_output(outputs.back());
  }
  for (const NodeAttribute &attribute : attributes) {
    if (auto *text = std::get_if<std::string>(&attribute.value)) {
      AttributeProto *proto = node.add_attribute();
      proto->set_name(attribute.name.str());
      proto->set_type(AttributeProto::STRING);
      proto->set_s(*text);
    } else if (auto *list =
                   std::get_if<std::vector<int64_t>>(&attribute.value)) {
      setAttribute(node, attribute.name, ArrayRef<int64_t>(*list));
    } else {
      setAttribute(node, attribute.name, std::get<int64_t>(attribute.value));
    }
  }
  return outputs;
}

std::string NodeMaker::op(StringRef type, Names inputs,
                          const Attributes &attributes) {
  return ops(type, std::move(inputs), 1, attributes).front();
}

std::string NodeMaker::ints(ArrayRef<int64_t> values) {
  std::string result = op("Constant", {});
  AttributeProto *value = made.back().add_attribute();
  value->set_name("value");
  value->set_type(AttributeProto::TENSOR);
  TensorProto &tensor = *value->mutable_t();
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(values.size());
  for (int64_t number : values)
    tensor.add_int64_data(number);
  return result;
}

std::string NodeMaker::scalar(double number, int elementType) {
  std::string result = op("Constant", {});
  AttributeProto *value = made.back().add_attribute();
  value->set_name("value");
  value->set_type(AttributeProto::TENSOR);
  TensorProto &tensor = *value->mutable_t();
  bool isDouble = elementType == TensorProto::DOUBLE;
  tensor.set_data_type(isDouble ? TensorProto::DOUBLE : TensorProto::FLOAT);
  if (isDouble)
    tensor.add_double_data(number);
  else
    tensor.add_float_data(static_cast<float>(number));
  if (isDouble || elementType == TensorProto::FLOAT)
    return result;
  return op("Cast", {result}, {{"to", int64_t(elementType)}});
}

std::vector<int64_t> upTo(int64_t begin, int64_t end) {
  std::vector<int64_t> values;
  for (int64_t i = begin; i < end; ++i)
    values.push_back(i);
  return values;
}

//===----------------------------------------------------------------------===//
// Adjoint: attributes and types
//===----------------------------------------------------------------------===//

void Adjoint::refuse(const Twine &why) const {
  failAt(node, "its derivative is not supported: " + why);
}

const AttributeProto *Adjoint::find(StringRef name) const {
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t Adjoint::intOf(StringRef name, int64_t otherwise) const {
  const AttributeProto *attribute = find(name);
  return attribute ? attribute->i() : otherwise;
}

double Adjoint::floatOf(StringRef name, double otherwise) const {
  const AttributeProto *attribute = find(name);
  return attribute ? attribute->f() : otherwise;
}

std::string Adjoint::stringOf(StringRef name, StringRef otherwise) const {
  const AttributeProto *attribute = find(name);
  return attribute ? attribute->s() : otherwise.str();
}

std::vector<int64_t> Adjoint::intsOf(StringRef name, int64_t count,
                                     int64_t otherwise) const {
  const AttributeProto *attribute = find(name);
  if (!attribute)
    return std::vector<int64_t>(count, otherwise);
  if (attribute->ints_size() != count)
    refuse("attribute '" + name + "' has " + Twine(attribute->ints_size()) +
           " elements in place of " + Twine(count));
  return {attribute->ints().begin(), attribute->ints().end()};
}

Dims Adjoint::dims(const std::string &name) const {
  const TypeProto *type = types.find(name);
  if (!type || !type->has_tensor_type() || !type->tensor_type().has_shape())
    refuse("the rank of one of its operands or results is not known");
  const auto &shape = type->tensor_type().shape().dim();
  return {shape.begin(), shape.end()};
}

int64_t Adjoint::rank(const std::string &name) const {
  return dims(name).size();
}

int64_t Adjoint::knownSize(const std::string &name, int64_t dim) const {
  Dims sizes = dims(name);
  return dim < int64_t(sizes.size()) && sizes[dim].has_dim_value()
             ? sizes[dim].dim_value()
             : -1;
}

int64_t Adjoint::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank)
    refuse("axis " + Twine(value) + " is none of a tensor of rank " +
           Twine(rank));
  return value < 0 ? value + rank : value;
}

//===----------------------------------------------------------------------===//
// Adjoint: nodes
//===----------------------------------------------------------------------===//

std::string Adjoint::numberLike(double value, const std::string &like) {
  const TypeProto *type = types.find(like);
  if (type && type->has_tensor_type())
    return scalar(value, type->tensor_type().elem_type());
  return op("CastLike", {scalar(value, TensorProto::DOUBLE), like});
}

std::string Adjoint::zerosLike(const std::string &like) {
  return expandTo(numberLike(0, like), shapeOf(like));
}

std::string Adjoint::onesLike(const std::string &like) {
  return expandTo(numberLike(1, like), shapeOf(like));
}

std::string Adjoint::sumTo(const std::string &derivative,
                           const std::string &whole, const std::string &part) {
  Dims from = dims(whole), to = dims(part);
  int64_t lead = int64_t(from.size()) - int64_t(to.size());
  if (lead < 0)
    refuse("'" + part + "' has more dimensions than the result");
  // A size that may be 1 or that of the result is split into itself and the
  // rest, which is summed over.
  std::vector<int64_t> axes;
  Names split;
  bool splits = false;
  for (int64_t i = 0; i < lead; ++i) {
    axes.push_back(split.size());
    split.push_back(size(whole, i));
  }
  for (int64_t i = 0; i < int64_t(to.size()); ++i) {
    // Names prove nothing: "?" stands for any size, and inputs may disagree on
    // a name.
    const auto &mine = to[i];
    bool repeats = mine.has_dim_value() && mine.dim_value() == 1;
    if (mine.has_dim_value() && !repeats) {
      split.push_back(size(whole, lead + i));
    } else if (repeats) {
      axes.push_back(split.size());
      split.push_back(size(whole, lead + i));
    } else {
      splits = true;
      std::string here = size(part, i);
      split.push_back(here);
      axes.push_back(split.size());
      split.push_back(div(size(whole, lead + i), op("Max", {here, ints({1})})));
    }
  }
  if (axes.empty())
    return derivative;
  std::string sum = derivative;
  if (splits)
    sum = reshapeTo(sum, op("Concat", split, {{"axis", int64_t(0)}}));
  sum = op("ReduceSum", {sum, ints(axes)}, {{"keepdims", int64_t(0)}});
  return reshapeTo(sum, shapeOf(part));
}

std::string Adjoint::positionsOf(const std::string &x) {
  // Range takes scalars.
  auto integer = [&](int64_t value) { return op("Squeeze", {ints({value})}); };
  std::string all = op("Range", {integer(0), op("Size", {x}), integer(1)});
  return reshapeTo(all, shapeOf(x));
}

std::string Adjoint::scatter(const std::string &derivative,
                             const std::string &positions,
                             const std::string &x) {
  std::string count = op("Reshape", {op("Size", {x}), ints({1})});
  std::string zeros = expandTo(numberLike(0, x), count);
  std::string sums =
      op("ScatterElements", {zeros, flat(positions), flat(derivative)},
         {{"axis", int64_t(0)}, {"reduction", std::string("add")}});
  return reshapeTo(sums, shapeOf(x));
}

} // namespace sardonyx::importer
