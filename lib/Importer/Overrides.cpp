//===- Overrides.cpp - What a caller puts in a model's place --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Types.h"
#include "sardonyx/UnknownName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace sardonyx::importer {

void setDenotedDims(::onnx::ModelProto &model,
                    const std::map<std::string, int64_t> &sizes) {
  if (sizes.empty())
    return;
  ::onnx::GraphProto &graph = *model.mutable_graph();
  std::map<std::string, int64_t> named;
  for (auto &input : *graph.mutable_input()) {
    if (!input.type().tensor_type().has_shape())
      continue;
    auto &shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (auto &dim : *shape.mutable_dim()) {
      auto found = sizes.find(dim.denotation());
      if (dim.denotation().empty() || found == sizes.end() ||
          dim.has_dim_value())
        continue;
      if (dim.has_dim_param() && !dim.dim_param().empty() &&
          !named.insert({dim.dim_param(), found->second}).second &&
          named[dim.dim_param()] != found->second)
        fail("dimension '" + dim.dim_param() +
             "' has denotations that were given different sizes");
      dim.set_dim_value(found->second);
    }
  }
  // One name is one size.
  for (auto *values : {graph.mutable_input(), graph.mutable_output()})
    for (auto &value : *values) {
      if (!value.type().tensor_type().has_shape())
        continue;
      auto &shape =
          *value.mutable_type()->mutable_tensor_type()->mutable_shape();
      for (auto &dim : *shape.mutable_dim())
        if (auto found = named.find(dim.dim_param());
            dim.has_dim_param() && found != named.end())
          dim.set_dim_value(found->second);
    }
}

static bool isExternal(const ::onnx::TensorProto &tensor) {
  return tensor.data_location() == ::onnx::TensorProto::EXTERNAL &&
         none_of(tensor.external_data(),
                 [](const auto &entry) { return entry.key() == kCutKey; });
}

static void replace(::onnx::TensorProto &tensor,
                    const GivenInitializer &given) {
  std::string name = tensor.name();
  const bool sameShape = equal(tensor.dims(), given.shape);
  const bool sameType = tensor.data_type() == given.elementType;
  if (given.isExternal && !isExternal(tensor))
    fail("initializer '" + name +
         "' was given as an external one, but has its data in the model");
  if (!sameType)
    fail("initializer '" + name + "' has elements of type " +
         dataTypeName(tensor.data_type()) + ", was given ones of " +
         dataTypeName(given.elementType));
  if (given.isExternal && !sameShape)
    fail("initializer '" + name +
         "' was given as an external one with another shape than it has");
  tensor.Clear();
  tensor.set_name(name);
  tensor.set_data_type(given.elementType);
  for (int64_t size : given.shape)
    tensor.add_dims(size);
  if (given.elementType != ::onnx::TensorProto::STRING) {
    tensor.set_raw_data(given.bytes);
    return;
  }
  for (const std::string &text : given.strings)
    tensor.add_string_data(text);
}

void setInitializers(::onnx::ModelProto &model,
                     const GivenInitializers &initializers) {
  ::onnx::GraphProto &graph = *model.mutable_graph();
  StringMap<::onnx::TensorProto *> own;
  for (auto &tensor : *graph.mutable_initializer())
    own[tensor.name()] = &tensor;
  for (const auto &[name, given] : initializers) {
    if (auto found = own.find(name); found != own.end())
      replace(*found->second, given);
    else if (any_of(graph.sparse_initializer(),
                    [&name = name](const auto &tensor) {
                      return tensor.values().name() == name;
                    }))
      fail("initializer '" + name +
           "' is sparse, and cannot be given in its place");
    else if (given.isExternal)
      fail("the model has no initializer '" + name + "'");
  }
}

void setOutputs(::onnx::ModelProto &model,
                const std::vector<std::string> &names) {
  if (names.empty())
    return;
  ::onnx::GraphProto &graph = *model.mutable_graph();
  // What the file says of values, and the names of all of them, in order.
  StringMap<::onnx::ValueInfoProto> values;
  std::vector<std::string> known;
  auto add = [&](const ::onnx::ValueInfoProto &value) {
    if (!value.name().empty() && values.try_emplace(value.name(), value).second)
      known.push_back(value.name());
  };
  auto addName = [&](const std::string &name) {
    ::onnx::ValueInfoProto value;
    value.set_name(name);
    add(value);
  };
  for_each(graph.output(), add);
  StringMap<const ::onnx::ValueInfoProto *> declared;
  for (const auto &value : graph.value_info())
    declared.try_emplace(value.name(), &value);
  for (const auto &node : graph.node())
    for (const std::string &name : node.output())
      if (auto found = declared.find(name); found != declared.end())
        add(*found->second);
      else
        addName(name);
  for_each(graph.input(), add);
  for (const auto &tensor : graph.initializer())
    addName(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    addName(tensor.values().name());
  graph.clear_output();
  StringSet<> chosen;
  for (const std::string &name : names) {
    auto found = values.find(name);
    if (found == values.end())
      fail(unknownName("value", name, known));
    if (!chosen.insert(name).second)
      fail("the value '" + name + "' is asked for twice");
    *graph.add_output() = found->second;
  }
}

} // namespace sardonyx::importer
