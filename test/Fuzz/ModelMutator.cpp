//===- ModelMutator.cpp - Changes models as messages, not bytes -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelMutator.h"
#include "onnx/defs/schema.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

using namespace sardonyx::fuzz;
using namespace onnx;

/// Every operator of ONNX's own domain, once.
static const std::vector<std::string> &operatorNames() {
  static const std::vector<std::string> *names = [] {
    auto *list = new std::vector<std::string>;
    for (const OpSchema &schema : OpSchemaRegistry::get_all_schemas())
      if (schema.domain().empty())
        list->push_back(schema.Name());
    std::sort(list->begin(), list->end());
    return list;
  }();
  return *names;
}

int64_t ModelMutator::someInteger() {
  static const int64_t interesting[] = {0,
                                        1,
                                        -1,
                                        2,
                                        3,
                                        4,
                                        7,
                                        8,
                                        16,
                                        17,
                                        64,
                                        127,
                                        128,
                                        255,
                                        256,
                                        1024,
                                        65535,
                                        65536,
                                        1 << 20,
                                        std::numeric_limits<int32_t>::max(),
                                        std::numeric_limits<int32_t>::min(),
                                        int64_t(1) << 32,
                                        int64_t(1) << 40,
                                        int64_t(1) << 62,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
  if (oneIn(3))
    return int64_t(below(16)) - 4;
  return interesting[below(std::size(interesting))];
}

/// A value of the graph, mostly.
std::string ModelMutator::someName(const GraphProto &graph) {
  std::vector<const std::string *> names;
  for (const auto &value : graph.input())
    names.push_back(&value.name());
  for (const auto &tensor : graph.initializer())
    names.push_back(&tensor.name());
  for (const auto &node : graph.node())
    for (const auto &output : node.output())
      names.push_back(&output);
  if (names.empty() || oneIn(12))
    return oneIn(2) ? "" : "nowhere";
  return *names[below(names.size())];
}

/// The graph of the model or one inside of it.
GraphProto *ModelMutator::someGraph(ModelProto &model) {
  std::vector<GraphProto *> graphs{model.mutable_graph()};
  for (size_t i = 0; i < graphs.size() && graphs.size() < 20; ++i)
    for (auto &node : *graphs[i]->mutable_node())
      for (auto &attribute : *node.mutable_attribute())
        if (attribute.has_g())
          graphs.push_back(attribute.mutable_g());
  return oneIn(2) ? graphs[0] : graphs[below(graphs.size())];
}

AttributeProto *ModelMutator::someAttribute(NodeProto &node) {
  if (node.attribute_size() && !oneIn(3))
    return node.mutable_attribute(below(node.attribute_size()));
  const OpSchema *schema =
      OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (!schema || schema->attributes().empty())
    return nullptr;
  auto it = schema->attributes().begin();
  std::advance(it, below(schema->attributes().size()));
  AttributeProto *attribute = node.add_attribute();
  attribute->set_name(it->first);
  attribute->set_type(
      static_cast<AttributeProto::AttributeType>(it->second.type));
  return attribute;
}

void ModelMutator::mutate(ModelProto &model) {
  for (size_t count = 1 + below(3); count--;)
    change(model);
}

void ModelMutator::change(ModelProto &model) {
  GraphProto &graph = *someGraph(model);
  switch (below(12)) {
  case 0:
    return changeAnything(model);
  case 1:
    if (model.opset_import_size())
      model.mutable_opset_import(below(model.opset_import_size()))
          ->set_version(oneIn(6) ? someInteger() : 1 + below(29));
    return;
  case 2:
    if (graph.initializer_size())
      changeTensor(*graph.mutable_initializer(below(graph.initializer_size())));
    return;
  case 3:
    if (graph.input_size())
      changeType(
          *graph.mutable_input(below(graph.input_size()))->mutable_type());
    return;
  case 4:
    if (graph.output_size())
      changeType(
          *graph.mutable_output(below(graph.output_size()))->mutable_type());
    return;
  case 5:
    return changeList(graph);
  default:
    return changeNode(model, graph);
  }
}

/// Adds to, takes from or reorders the graph's lists.
void ModelMutator::changeList(GraphProto &graph) {
  switch (below(6)) {
  case 0:
    if (graph.input_size())
      graph.mutable_input()->DeleteSubrange(below(graph.input_size()), 1);
    return;
  case 1:
    if (graph.input_size()) {
      ValueInfoProto copy = graph.input(below(graph.input_size()));
      if (oneIn(2))
        copy.set_name(copy.name() + "_more");
      *graph.add_input() = copy;
    }
    return;
  case 2: { // any value as an output
    ValueInfoProto *output = graph.add_output();
    output->set_name(someName(graph));
    if (oneIn(2))
      changeType(*output->mutable_type());
    return;
  }
  case 3:
    if (graph.output_size() > 1)
      graph.mutable_output()->DeleteSubrange(below(graph.output_size()), 1);
    return;
  case 4: { // an input becomes a constant
    if (!graph.input_size())
      return;
    const ValueInfoProto &input = graph.input(below(graph.input_size()));
    TensorProto *tensor = graph.add_initializer();
    tensor->set_name(input.name());
    tensor->set_data_type(input.type().tensor_type().elem_type());
    changeTensor(*tensor);
    return;
  }
  default:
    if (graph.initializer_size())
      graph.mutable_initializer()->DeleteSubrange(
          below(graph.initializer_size()), 1);
  }
}

void ModelMutator::changeNode(ModelProto &model, GraphProto &graph) {
  if (!graph.node_size()) {
    NodeProto *node = graph.add_node();
    node->set_op_type(operatorNames()[below(operatorNames().size())]);
    node->add_input(someName(graph));
    node->add_output("made");
    return;
  }
  NodeProto &node = *graph.mutable_node(below(graph.node_size()));
  switch (below(10)) {
  case 0:
    graph.mutable_node()->DeleteSubrange(below(graph.node_size()), 1);
    return;
  case 1: { // once more, beside itself
    NodeProto copy = node;
    for (auto &output : *copy.mutable_output())
      if (!output.empty() && !oneIn(8))
        output += "_again";
    *graph.add_node() = copy;
    graph.mutable_node()->SwapElements(graph.node_size() - 1,
                                       below(graph.node_size()));
    return;
  }
  case 2:
    node.set_op_type(operatorNames()[below(operatorNames().size())]);
    return;
  case 3: // a new reader of some value
    if (graph.node_size() < 200) {
      NodeProto *added = graph.add_node();
      added->set_op_type(operatorNames()[below(operatorNames().size())]);
      for (size_t i = below(4) + 1; i--;)
        added->add_input(someName(graph));
      added->add_output("made" + std::to_string(graph.node_size()));
      graph.add_output()->set_name(added->output(0));
    }
    return;
  case 4:
    node.add_input(someName(graph));
    return;
  case 5:
    if (node.input_size())
      node.set_input(below(node.input_size()), someName(graph));
    return;
  case 6:
    if (node.input_size() && oneIn(2))
      node.mutable_input()->RemoveLast();
    else if (node.output_size() > 1)
      node.mutable_output()->RemoveLast();
    else
      node.add_output("more" + std::to_string(below(4)));
    return;
  case 7:
    if (oneIn(2) && node.attribute_size())
      node.mutable_attribute()->DeleteSubrange(below(node.attribute_size()), 1);
    else if (oneIn(3)) // the whole graph as a body
      if (AttributeProto *attribute = someAttribute(node)) {
        GraphProto copy = *someGraph(model);
        if (copy.ByteSizeLong() < 4096)
          *attribute->mutable_g() = copy;
      }
    return;
  default:
    return changeAttribute(node, graph);
  }
}

void ModelMutator::changeAttribute(NodeProto &node, GraphProto &) {
  AttributeProto *attribute = someAttribute(node);
  if (!attribute)
    return;
  switch (attribute->type()) {
  case AttributeProto::INT:
    return attribute->set_i(someInteger());
  case AttributeProto::FLOAT: {
    static const float values[] = {0,
                                   1,
                                   -1,
                                   0.5f,
                                   1e30f,
                                   -1e-30f,
                                   std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};
    return attribute->set_f(values[below(std::size(values))]);
  }
  case AttributeProto::STRING: {
    static const char *values[] = {
        "",      "SAME_UPPER", "SAME_LOWER", "VALID",         "linear",
        "cubic", "edge",       "reflect",    "wrap",          "add",
        "max",   "ij,jk->ik",  "...->",      "bidirectional", "%s\xff"};
    if (oneIn(4))
      return changeAnything(*attribute);
    return attribute->set_s(values[below(std::size(values))]);
  }
  case AttributeProto::INTS:
    if (attribute->ints_size() && !oneIn(3)) {
      if (oneIn(4))
        attribute->mutable_ints()->RemoveLast();
      else
        attribute->set_ints(below(attribute->ints_size()), someInteger());
    } else if (attribute->ints_size() < 40) {
      attribute->add_ints(someInteger());
    }
    return;
  case AttributeProto::TENSOR:
    return changeTensor(*attribute->mutable_t());
  default:
    return changeAnything(*attribute);
  }
}

void ModelMutator::changeTensor(TensorProto &tensor) {
  switch (below(7)) {
  case 0:
    return tensor.set_data_type(below(28));
  case 1:
    return tensor.add_dims(oneIn(2) ? someInteger() : below(4));
  case 2:
    if (tensor.dims_size())
      tensor.set_dims(below(tensor.dims_size()), someInteger());
    return;
  case 3:
    if (tensor.dims_size())
      tensor.mutable_dims()->RemoveLast();
    return;
  case 4: {
    std::string data = tensor.raw_data();
    data.resize(oneIn(2) ? data.size() / 2 : data.size() + below(17));
    return tensor.set_raw_data(data);
  }
  case 5: { // other elements, of the right number
    if (tensor.raw_data().empty() || tensor.raw_data().size() > 1 << 16)
      return;
    std::string data = tensor.raw_data();
    int64_t value = someInteger();
    size_t bytes = std::min<size_t>(8, data.size());
    memcpy(&data[below(data.size() - bytes + 1) / bytes * bytes], &value,
           bytes);
    return tensor.set_raw_data(data);
  }
  default:
    if (tensor.int64_data_size() && oneIn(2))
      tensor.set_int64_data(below(tensor.int64_data_size()), someInteger());
    else
      changeAnything(tensor);
  }
}

void ModelMutator::changeType(TypeProto &type) {
  if (oneIn(10))
    return changeAnything(type);
  TypeProto::Tensor &tensor = *type.mutable_tensor_type();
  if (oneIn(3))
    return tensor.set_elem_type(below(28));
  TensorShapeProto &shape = *tensor.mutable_shape();
  if (oneIn(4) || !shape.dim_size()) {
    if (shape.dim_size() && oneIn(2))
      shape.mutable_dim()->RemoveLast();
    else if (shape.dim_size() < 12)
      shape.add_dim()->set_dim_value(someInteger());
    return;
  }
  auto &dim = *shape.mutable_dim(below(shape.dim_size()));
  if (oneIn(2))
    dim.set_dim_param(std::string(1, char('A' + below(4))));
  else if (oneIn(5))
    dim.clear_value();
  else
    dim.set_dim_value(someInteger());
}

void ModelMutator::changeAnything(google::protobuf::MessageLite &message) {
  std::string bytes = message.SerializeAsString();
  for (size_t count = 1 + below(4); count--;) {
    size_t at = below(bytes.size() + 1);
    if (oneIn(3) || at == bytes.size())
      bytes.insert(at, 1, char(below(256)));
    else if (oneIn(2))
      bytes[at] ^= char(1 << below(8));
    else
      bytes.erase(at, 1);
  }
  std::unique_ptr<google::protobuf::MessageLite> changed(message.New());
  if (changed->ParsePartialFromString(bytes)) {
    message.Clear();
    message.CheckTypeAndMergeFrom(*changed);
  }
}

void ModelMutator::mix(ModelProto &model, const ModelProto &other) {
  GraphProto &graph = *model.mutable_graph();
  if (other.graph().node_size())
    for (size_t count = 1 + below(3); count--;)
      *graph.add_node() = other.graph().node(below(other.graph().node_size()));
  if (other.graph().initializer_size())
    *graph.add_initializer() =
        other.graph().initializer(below(other.graph().initializer_size()));
  if (other.functions_size() && oneIn(2))
    *model.add_functions() = other.functions(below(other.functions_size()));
  for (auto &node : *graph.mutable_node())
    for (auto &input : *node.mutable_input())
      if (oneIn(4))
        input = someName(graph);
}
