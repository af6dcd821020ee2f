//===- ValueTypes.cpp - The types of a graph's values ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/ValueTypes.h"

using namespace llvm;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

namespace sardonyx::importer {

ValueTypes::ValueTypes(const ::onnx::GraphProto &graph) {
  auto add = [&](const auto &values) {
    for (const auto &value : values)
      if (value.has_type())
        types.try_emplace(value.name(), value.type());
  };
  add(graph.value_info());
  add(graph.input());
  add(graph.output());
  for (const TensorProto &tensor : graph.initializer()) {
    TypeProto type;
    auto &made = *type.mutable_tensor_type();
    made.set_elem_type(tensor.data_type());
    made.mutable_shape();
    for (int64_t size : tensor.dims())
      made.mutable_shape()->add_dim()->set_dim_value(size);
    types[tensor.name()] = type;
  }
}

const TypeProto *ValueTypes::find(StringRef name) const {
  auto it = types.find(name);
  return it == types.end() ? nullptr : &it->second;
}

} // namespace sardonyx::importer
