//===- Body.cpp - Writing the function body of an operator ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"
#include "lib/Contrib/Contrib.h"

#include "llvm/ADT/APFloat.h"

#include <onnx/defs/parser.h>

using namespace llvm;

namespace sardonyx::contrib {

using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

//===----------------------------------------------------------------------===//
// Attributes of new nodes
//===----------------------------------------------------------------------===//

Attr::Attr(const char *name, int64_t value) {
  proto.set_name(name);
  proto.set_type(AttributeProto::INT);
  proto.set_i(value);
}

Attr::Attr(const char *name, float value) {
  proto.set_name(name);
  proto.set_type(AttributeProto::FLOAT);
  proto.set_f(value);
}

Attr::Attr(const char *name, const char *value) {
  proto.set_name(name);
  proto.set_type(AttributeProto::STRING);
  proto.set_s(value);
}

Attr::Attr(const char *name, const Ints &values) {
  proto.set_name(name);
  proto.set_type(AttributeProto::INTS);
  for (int64_t value : values)
    proto.add_ints(value);
}

Attr::Attr(const char *name, ::onnx::GraphProto graph) {
  proto.set_name(name);
  proto.set_type(AttributeProto::GRAPH);
  *proto.mutable_g() = std::move(graph);
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

Body::Body(const ::onnx::FunctionBodyBuildContext &context,
           const ::onnx::OpSchema &schema, ::onnx::FunctionProto &function)
    : context(context), schema(schema), function(function),
      nodes(function.mutable_node()) {
  for (const auto &formal : schema.inputs()) {
    if (formal.GetOption() != ::onnx::OpSchema::Variadic) {
      function.add_input(formal.GetName());
      continue;
    }
    // A variadic tail has as many names as there are inputs.
    for (int i = function.input_size(); context.hasInput(i); ++i)
      function.add_input(formal.GetName() + std::to_string(i));
  }
  for (const auto &formal : schema.outputs())
    function.add_output(formal.GetName());
}

Name Body::inputAt(unsigned position) const {
  return context.hasInput(position) ? function.input(position) : Name();
}

int Body::find(StringRef input) const {
  for (int i = 0; i < function.input_size(); ++i)
    if (function.input(i) == input)
      return i;
  throw std::logic_error("no input '" + input.str() + "'");
}

Name Body::in(StringRef name) const { return inputAt(find(name)); }

bool Body::wants(StringRef name) const {
  for (int i = 0; i < function.output_size(); ++i)
    if (function.output(i) == name)
      return context.hasOutput(i);
  throw std::logic_error("no output '" + name.str() + "'");
}

int Body::elementType(StringRef input) const {
  const TypeProto *type = context.getInputType(find(input));
  if (!type || !type->has_tensor_type() || !type->tensor_type().elem_type())
    refuseUnknown("the type of input '" + input + "' is not known");
  return type->tensor_type().elem_type();
}

std::optional<int64_t> Body::rank(StringRef input) const {
  const TypeProto *type = context.getInputType(find(input));
  if (!type || !type->has_tensor_type() || !type->tensor_type().has_shape())
    return std::nullopt;
  return type->tensor_type().shape().dim_size();
}

int64_t Body::requireRank(StringRef input) const {
  if (std::optional<int64_t> known = rank(input))
    return *known;
  refuseUnknown("the rank of input '" + input + "' is not known");
}

int64_t Body::size(StringRef input, int64_t axis) const {
  std::optional<int64_t> known = rank(input);
  if (!known)
    return -1;
  if (axis < 0)
    axis += *known;
  if (axis < 0 || axis >= *known)
    return -1;
  const auto &dim =
      context.getInputType(find(input))->tensor_type().shape().dim(axis);
  return dim.has_dim_value() ? dim.dim_value() : -1;
}

const AttributeProto *Body::attribute(StringRef name) const {
  if (const AttributeProto *given = context.getAttribute(name.str()))
    return given;
  auto it = schema.attributes().find(name.str());
  if (it == schema.attributes().end())
    throw std::logic_error("no attribute '" + name.str() + "'");
  return it->second.default_value.has_name() ? &it->second.default_value
                                             : nullptr;
}

bool Body::given(StringRef name) const { return attribute(name); }

int64_t Body::getInt(StringRef name, int64_t otherwise) const {
  const AttributeProto *value = attribute(name);
  return value ? value->i() : otherwise;
}

float Body::getFloat(StringRef name, float otherwise) const {
  const AttributeProto *value = attribute(name);
  return value ? value->f() : otherwise;
}

std::string Body::getString(StringRef name) const {
  const AttributeProto *value = attribute(name);
  return value ? value->s() : "";
}

Ints Body::getInts(StringRef name) const {
  const AttributeProto *value = attribute(name);
  return value ? Ints(value->ints().begin(), value->ints().end()) : Ints();
}

std::vector<float> Body::getFloats(StringRef name) const {
  const AttributeProto *value = attribute(name);
  if (!value)
    return {};
  return {value->floats().begin(), value->floats().end()};
}

const ::onnx::GraphProto *Body::getGraph(StringRef name) const {
  const AttributeProto *value = attribute(name);
  return value ? &value->g() : nullptr;
}

std::vector<std::string> Body::getStrings(StringRef name) const {
  const AttributeProto *value = attribute(name);
  if (!value)
    return {};
  return {value->strings().begin(), value->strings().end()};
}

void Body::pass(Attrs &attrs, ArrayRef<const char *> names) const {
  for (const char *name : names)
    if (const AttributeProto *value = attribute(name)) {
      attrs.emplace_back(name, 0);
      attrs.back().proto = *value;
    }
}

void Body::refuse(const Twine &why) const {
  throw Refusal(why, /*isForGood=*/true);
}

void Body::refuseUnknown(const Twine &what) const {
  throw Refusal(what, /*isForGood=*/false);
}

void Body::refuseInput(StringRef name) const {
  if (has(name))
    refuse("input '" + name + "' is not supported");
}

void Body::refuseOutput(StringRef name) const {
  if (wants(name))
    refuse("output '" + name + "' is not supported");
}

void Body::refuseUnless(StringRef name, int64_t only) const {
  if (int64_t value = getInt(name, only); value != only)
    refuse("attribute '" + name + "' is " + Twine(value) +
           ", which is not supported");
}

//===----------------------------------------------------------------------===//
// New nodes
//===----------------------------------------------------------------------===//

NodeProto &Body::node(StringRef type, const Names &inputs) {
  NodeProto &node = *nodes->Add();
  node.set_op_type(type.str());
  for (const Name &input : inputs)
    node.add_input(input);
  while (node.input_size() && node.input(node.input_size() - 1).empty())
    node.mutable_input()->RemoveLast();
  return node;
}

Name Body::newName(StringRef what) {
  return "v" + std::to_string(counter++) + "_" + what.str();
}

Names Body::op(unsigned outputs, StringRef type, Names inputs, Attrs attrs) {
  NodeProto &made = node(type, inputs);
  Names names;
  for (unsigned i = 0; i < outputs; ++i) {
    names.push_back(newName(type));
    made.add_output(names.back());
  }
  for (const Attr &attr : attrs)
    *made.add_attribute() = attr.proto;
  return names;
}

Name Body::op(StringRef type, Names inputs, Attrs attrs) {
  return op(1, type, std::move(inputs), std::move(attrs)).front();
}

Name Body::ownOp(StringRef type, Names inputs, Attrs attrs) {
  Name made = op(type, std::move(inputs), std::move(attrs));
  nodes->rbegin()->set_domain(schema.domain());
  return made;
}

Name Body::constant(TensorProto tensor) {
  NodeProto &made = node("Constant", {});
  made.add_output(newName("Constant"));
  AttributeProto *attribute = made.add_attribute();
  attribute->set_name("value");
  attribute->set_type(AttributeProto::TENSOR);
  *attribute->mutable_t() = std::move(tensor);
  return made.output(0);
}

Name Body::ints(ArrayRef<int64_t> values) {
  TensorProto tensor;
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(values.size());
  for (int64_t value : values)
    tensor.add_int64_data(value);
  return constant(std::move(tensor));
}

Name Body::numbers(ArrayRef<float> values) {
  TensorProto tensor;
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(values.size());
  for (float value : values)
    tensor.add_float_data(value);
  return constant(std::move(tensor));
}

Name Body::integer(int64_t value) { return scalar(value, TensorProto::INT64); }

Name Body::scalar(double value, int elementType) {
  TensorProto tensor;
  tensor.set_data_type(elementType);
  auto narrow = [&](const fltSemantics &semantics) {
    APFloat number(value);
    bool inexact;
    number.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
    tensor.add_int32_data(number.bitcastToAPInt().getZExtValue());
  };
  switch (elementType) {
  case TensorProto::FLOAT:
    tensor.add_float_data(value);
    break;
  case TensorProto::DOUBLE:
    tensor.add_double_data(value);
    break;
  case TensorProto::FLOAT16:
    narrow(APFloat::IEEEhalf());
    break;
  case TensorProto::BFLOAT16:
    narrow(APFloat::BFloat());
    break;
  case TensorProto::INT64:
    tensor.add_int64_data(value);
    break;
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    tensor.add_uint64_data(value);
    break;
  default:
    tensor.add_int32_data(value);
  }
  return constant(std::move(tensor));
}

void Body::give(StringRef output, const Name &value) {
  node("Identity", {value}).add_output(output.str());
}

void Body::addText(const char *nodes) {
  ::onnx::OnnxParser parser(nodes);
  while (!parser.EndOfInput()) {
    auto status = parser.Parse(*this->nodes->Add());
    if (!status.IsOK())
      throw std::logic_error(status.ErrorMessage());
  }
  for (const auto &[name, attribute] : schema.attributes())
    function.add_attribute(name);
}

::onnx::GraphProto Body::graph(ArrayRef<GraphInput> inputs,
                               function_ref<Names(ArrayRef<Name>)> make) {
  ::onnx::GraphProto made;
  made.set_name("body");
  Names inside;
  for (const GraphInput &input : inputs) {
    inside.push_back(newName("input"));
    auto &info = *made.add_input();
    info.set_name(inside.back());
    if (!input.elementType)
      continue;
    auto &type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(input.elementType);
    auto &shape = *type.mutable_shape();
    for (int64_t size : input.sizes) {
      auto *dim = shape.add_dim();
      if (size >= 0)
        dim->set_dim_value(size);
    }
  }
  auto *outer = nodes;
  nodes = made.mutable_node();
  // An output is a value of the graph's own, and there once.
  for (const Name &value : make(inside))
    made.add_output()->set_name(op("Identity", {value}));
  nodes = outer;
  return made;
}

Names Body::call(const ::onnx::GraphProto &graph, const Names &inputs) {
  for (int i = 0; i < graph.input_size(); ++i)
    node("Identity", {inputs[i]}).add_output(graph.input(i).name());
  for (const TensorProto &tensor : graph.initializer())
    node("Identity", {constant(tensor)}).add_output(tensor.name());
  for (const NodeProto &made : graph.node())
    *nodes->Add() = made;
  Names outputs;
  for (const auto &output : graph.output())
    outputs.push_back(output.name());
  return outputs;
}

Names Body::scan(const Names &states, const Names &sequences, bool backwards,
                 function_ref<Names(ArrayRef<Name>, ArrayRef<Name>)> step) {
  std::vector<GraphInput> inputs(states.size() + sequences.size());
  ::onnx::GraphProto body = graph(inputs, [&](ArrayRef<Name> inside) {
    return step(inside.take_front(states.size()),
                inside.drop_front(states.size()));
  });
  const size_t made = body.output_size();
  Names operands = states;
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  Attrs attrs = {{"num_scan_inputs", int64_t(sequences.size())}};
  if (backwards) {
    attrs.emplace_back("scan_input_directions", Ints(sequences.size(), 1));
    attrs.emplace_back("scan_output_directions", Ints(made - states.size(), 1));
  }
  attrs.emplace_back("body", std::move(body));
  return op(made, "Scan", operands, std::move(attrs));
}

Names Body::branch(const Name &condition, function_ref<Names()> then,
                   function_ref<Names()> otherwise) {
  ::onnx::GraphProto taken = graph({}, [&](ArrayRef<Name>) { return then(); });
  ::onnx::GraphProto other =
      graph({}, [&](ArrayRef<Name>) { return otherwise(); });
  const unsigned made = taken.output_size();
  return op(
      made, "If", {condition},
      {{"then_branch", std::move(taken)}, {"else_branch", std::move(other)}});
}

Name Body::slice(const Name &value, const Name &from, const Name &to,
                 int64_t axis) {
  return op("Slice", {value, from, to, ints({axis})});
}

Name Body::sizeOf(const Name &value, int64_t axis) {
  if (axis == -1)
    return op("Shape", {value}, {{"start", -1}});
  return op("Shape", {value}, {{"start", axis}, {"end", axis + 1}});
}

Name Body::iota(const Name &size) {
  return op("Range",
            {integer(0), op("Squeeze", {size, ints({0})}), integer(1)});
}

} // namespace sardonyx::contrib
