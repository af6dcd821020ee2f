//===- DeclaredTypes.cpp - What a model says of its values ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/DeclaredTypes.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Types.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace sardonyx::importer {

using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorShapeProto;
using ::onnx::TypeProto;

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// Whether a node's inputs tell the types of what its graphs take. Those of
/// com.microsoft's searches are called with what the declarations ask for.
static bool tellsTypes(const NodeProto &node) {
  return node.domain() != "com.microsoft";
}

/// Calls `body(graph, isInner)` for a graph and then for those in its nodes;
/// `isInner` are those whose inputs have their types from the node.
static void walkGraphs(GraphProto &graph, bool isInner,
                       llvm::function_ref<void(GraphProto &, bool)> body) {
  body(graph, isInner);
  for (NodeProto &node : *graph.mutable_node())
    forEachSubgraph(node, [&](GraphProto &inner) {
      walkGraphs(inner, tellsTypes(node), body);
    });
}

/// Calls `body(shape)` for the shape of a tensor, also of one inside of a
/// sequence or an optional; null where it has none.
template <typename Body> static void withTensor(TypeProto &type, Body body) {
  switch (type.value_case()) {
  case TypeProto::kTensorType:
    return body(*type.mutable_tensor_type());
  case TypeProto::kSparseTensorType:
    return body(*type.mutable_sparse_tensor_type());
  case TypeProto::kSequenceType:
    return withTensor(*type.mutable_sequence_type()->mutable_elem_type(), body);
  case TypeProto::kOptionalType:
    return withTensor(*type.mutable_optional_type()->mutable_elem_type(), body);
  default:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static void openSizes(TypeProto &type) {
  withTensor(type, [](auto &tensor) {
    if (tensor.has_shape())
      for (auto &dim : *tensor.mutable_shape()->mutable_dim()) {
        if (dim.dim_value() < -1)
          fail("negative dimension " + Twine(dim.dim_value()) +
               " in the type of a value");
        if (dim.has_dim_value())
          dim.clear_dim_value();
      }
  });
}

static void typeOutputs(GraphProto &graph) {
  StringMap<const TypeProto *> types;
  for (const auto &value : graph.value_info())
    if (value.has_type())
      types.try_emplace(value.name(), &value.type());
  for (auto &output : *graph.mutable_output())
    if (const TypeProto *type = types.lookup(output.name());
        type && (!output.has_type() ||
                 output.type().value_case() == TypeProto::VALUE_NOT_SET))
      *output.mutable_type() = *type;
}

/// A Loop that runs no iteration gives scan results of no element, but of the
/// sizes that the body declares.
static void keepScanSizes(NodeProto &loop) {
  const GraphProto *body = nullptr;
  for (const auto &attribute : loop.attribute())
    if (attribute.name() == "body" && attribute.has_g())
      body = &attribute.g();
  if (!body)
    return;
  ::onnx::AttributeProto sizes;
  sizes.set_name(kScanSizes);
  sizes.set_type(::onnx::AttributeProto::INTS);
  bool isAnyKnown = false;
  for (int i = 1 + std::max(loop.input_size() - 2, 0); i < body->output_size();
       ++i) {
    const auto &tensor = body->output(i).type().tensor_type();
    sizes.add_ints(tensor.has_shape() ? tensor.shape().dim_size() : -1);
    for (const auto &dim : tensor.shape().dim()) {
      bool isKnown = dim.has_dim_value() && dim.dim_value() >= 0;
      isAnyKnown |= isKnown;
      sizes.add_ints(isKnown ? dim.dim_value() : -1);
    }
  }
  if (isAnyKnown)
    *loop.add_attribute() = std::move(sizes);
}

DeclaredTypes::DeclaredTypes(GraphProto &graph) {
  walkGraphs(graph, /*isInner=*/false, [](GraphProto &inner, bool) {
    typeOutputs(inner);
    for (NodeProto &node : *inner.mutable_node())
      if (node.op_type() == "Loop" && node.domain().empty())
        keepScanSizes(node);
  });
  for (const auto &output : graph.output()) {
    outputs.push_back(output.type());
    values.try_emplace(output.name(), output.type());
  }
  for (const auto &value : graph.value_info())
    values.try_emplace(value.name(), value.type());
  walkGraphs(graph, /*isInner=*/false, [](GraphProto &inner, bool isInner) {
    if (isInner)
      for (auto &input : *inner.mutable_input())
        openSizes(*input.mutable_type());
    for (auto *declared : {inner.mutable_output(), inner.mutable_value_info()})
      for (auto &value : *declared)
        if (value.has_type())
          openSizes(*value.mutable_type());
  });
}

static std::string describe(const TensorShapeProto &shape) {
  std::string text = "[";
  for (const auto &dim : shape.dim()) {
    text += text.size() > 1 ? ", " : "";
    text += dim.has_dim_value() ? std::to_string(dim.dim_value())
            : dim.has_dim_param() && !dim.dim_param().empty() ? dim.dim_param()
                                                              : "?";
  }
  return text + "]";
}

static bool contradict(const TensorShapeProto &a, const TensorShapeProto &b) {
  if (a.dim_size() != b.dim_size())
    return true;
  return llvm::any_of(llvm::zip(a.dim(), b.dim()), [](auto pair) {
    const auto &[x, y] = pair;
    return x.has_dim_value() && y.has_dim_value() && x.dim_value() >= 0 &&
           x.dim_value() != y.dim_value();
  });
}

std::vector<std::string>
DeclaredTypes::contradictions(const GraphProto &graph) const {
  std::vector<std::string> sentences;
  StringMap<bool> seen;
  auto look = [&](const auto &found, const char *what) {
    for (const auto &value : found) {
      auto it = values.find(value.name());
      if (it == values.end() || !seen.try_emplace(value.name(), true).second)
        continue;
      const auto &declared = it->second.tensor_type();
      const auto &made = value.type().tensor_type();
      if (declared.has_shape() && made.has_shape() &&
          contradict(declared.shape(), made.shape()))
        sentences.push_back(std::string(what) + " '" + value.name() +
                            "' is declared with the shape " +
                            describe(declared.shape()) + ", but has " +
                            describe(made.shape()) +
                            "; the declaration is ignored");
    }
  };
  look(graph.output(), "output");
  look(graph.value_info(), "value");
  return sentences;
}

mlir::Type DeclaredTypes::shown(int output, mlir::Type known) const {
  const auto &declared = outputs[output].tensor_type().shape();
  auto type = dyn_cast<RankedTensorType>(known);
  if (!type || type.getRank() != declared.dim_size())
    return known;
  SmallVector<int64_t> sizes(type.getShape());
  for (auto [size, dim] : zip_equal(sizes, declared.dim()))
    if (ShapedType::isDynamic(size) && dim.has_dim_value() &&
        dim.dim_value() >= 0)
      size = dim.dim_value();
  return RankedTensorType::get(sizes, type.getElementType());
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// The types of these declarations, from which the shapes are taken.
static std::vector<TypeProto>
takeShapes(google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> &values) {
  std::vector<TypeProto> types;
  for (auto &value : values) {
    types.push_back(value.type());
    if (value.has_type())
      withTensor(*value.mutable_type(),
                 [](auto &tensor) { tensor.clear_shape(); });
  }
  return types;
}

DeclaredRanks::DeclaredRanks(GraphProto &graph) : graph(graph) {
  walkGraphs(graph, /*isInner=*/false, [&](GraphProto &inner, bool isInner) {
    Declarations &declared = all.emplace_back();
    if (isInner)
      declared.inputs = takeShapes(*inner.mutable_input());
    declared.outputs = takeShapes(*inner.mutable_output());
    declared.values = takeShapes(*inner.mutable_value_info());
  });
}

/// Gives a shape that was found the names of one that was declared.
static void takeNames(TensorShapeProto &found, const TensorShapeProto &named) {
  if (found.dim_size() != named.dim_size())
    return;
  for (auto [dim, name] : llvm::zip(*found.mutable_dim(), named.dim()))
    if (!dim.has_dim_value() && !dim.has_dim_param() && name.has_dim_param())
      dim = name;
}

template <typename Tensor>
static void completeTensor(Tensor &found, const Tensor &declared) {
  if (!found.elem_type())
    found.set_elem_type(declared.elem_type());
  if (!declared.has_shape())
    return;
  if (found.has_shape())
    takeNames(*found.mutable_shape(), declared.shape());
  else
    *found.mutable_shape() = declared.shape();
}

static void complete(TypeProto &found, const TypeProto &declared) {
  if (found.value_case() == TypeProto::VALUE_NOT_SET) {
    found = declared;
    return;
  }
  if (found.value_case() != declared.value_case())
    return;
  switch (found.value_case()) {
  case TypeProto::kTensorType:
    return completeTensor(*found.mutable_tensor_type(), declared.tensor_type());
  case TypeProto::kSparseTensorType:
    return completeTensor(*found.mutable_sparse_tensor_type(),
                          declared.sparse_tensor_type());
  case TypeProto::kSequenceType:
    return complete(*found.mutable_sequence_type()->mutable_elem_type(),
                    declared.sequence_type().elem_type());
  case TypeProto::kOptionalType:
    return complete(*found.mutable_optional_type()->mutable_elem_type(),
                    declared.optional_type().elem_type());
  default:
    return;
  }
}

void DeclaredRanks::restore() {
  // Inference adds to value_info at its end, and changes no order.
  auto next = all.begin();
  auto put = [](auto &values, const std::vector<TypeProto> &declared) {
    for (auto [value, type] : llvm::zip(values, declared))
      if (type.value_case() != TypeProto::VALUE_NOT_SET)
        complete(*value.mutable_type(), type);
  };
  walkGraphs(graph, /*isInner=*/false, [&](GraphProto &inner, bool) {
    put(*inner.mutable_input(), next->inputs);
    put(*inner.mutable_output(), next->outputs);
    put(*inner.mutable_value_info(), next->values);
    ++next;
  });
}

} // namespace sardonyx::importer
