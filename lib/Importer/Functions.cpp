//===- Functions.cpp - Instances of model-local functions -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call is replaced by the function's body, with attribute references bound to
// the call's attributes, until no call is left. Functions may not recurse, and
// the number of nodes made is bounded: a chain of functions that call the next
// one twice doubles it at each link.
//
// ONNX's functions have no types, and take ranks, attributes, left out inputs
// and even versions of operators from each call. In the place of the call all
// of these are known to whatever upgrades nodes and infers types, which may
// also look at constants that the call passes. Marks around the body tell the
// GraphBuilder to make a function of it again (Calls.cpp).
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

using namespace llvm;

namespace sardonyx::importer {
namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Calls nest on the machine's stack, so their depth is bounded as well.
constexpr unsigned kMaxCallDepth = 200;
/// Copied bytes (attributes) are bounded together with the nodes.
constexpr uint64_t kBytesPerNode = 1024;

std::string identifier(StringRef domain, StringRef name, StringRef overload) {
  return (domain + ":" + name + ":" + overload).str();
}

/// The names and attributes that a body sees in place of its own.
struct Binding {
  const FunctionProto *function;
  std::string prefix;
  StringMap<std::string> values;
  StringMap<const AttributeProto *> attributes;
  StringMap<int64_t> versions;
  /// Names that the body defines; filled only where it may use others.
  StringSet<> own;
};

class Inliner {
public:
  Inliner(const ::onnx::ModelProto &model, uint64_t maxNodes, bool allowCapture,
          std::vector<FunctionCall> *calls)
      : maxNodes(maxNodes), allowCapture(allowCapture), calls(calls) {
    for (const FunctionProto &function : model.functions()) {
      std::string id =
          identifier(function.domain(), function.name(), function.overload());
      if (!functions.try_emplace(id, &function).second)
        fail("the model defines function '" + id + "' twice");
    }
    for (const auto &import : model.opset_import())
      modelVersions[import.domain()] = import.version();
  }

  void graph(GraphProto &graph) {
    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    nodes.Swap(graph.mutable_node());
    auto *result = graph.mutable_node();
    for (NodeProto &node : nodes) {
      forEachSubgraph(node, [&](GraphProto &g) { this->graph(g); });
      if (const FunctionProto *function = callee(node))
        expand(node, *function, result);
      else
        result->Add(std::move(node));
    }
  }

  /// Domains that bodies import and the model does not.
  StringMap<int64_t> newVersions;

private:
  const FunctionProto *callee(const NodeProto &node) const {
    return functions.lookup(
        identifier(node.domain(), node.op_type(), node.overload()));
  }

  void expand(const NodeProto &call, const FunctionProto &function,
              google::protobuf::RepeatedPtrField<NodeProto> *result) {
    if (!active.insert(&function).second)
      failAt(call, "function '" + function.name() +
                       "' calls itself, directly or through others");
    auto leave = make_scope_exit([&] { active.erase(&function); });
    if (active.size() > kMaxCallDepth)
      failAt(call, "functions call each other more than " +
                       Twine(kMaxCallDepth) + " levels deep");
    if (call.input_size() > function.input_size())
      failAt(call, "function '" + function.name() + "' takes " +
                       Twine(function.input_size()) + " inputs, found " +
                       Twine(call.input_size()));
    if (call.output_size() > function.output_size())
      failAt(call, "function '" + function.name() + "' has " +
                       Twine(function.output_size()) + " outputs, found " +
                       Twine(call.output_size()));
    Binding binding = bind(call, function);
    std::vector<NodeProto> identities = bindOutputs(call, function, binding);
    if (calls)
      *result->Add() = beginCall(call, function, binding);
    for (const NodeProto &node : function.node()) {
      NodeProto copy = node;
      rewrite(copy, binding, call);
      forEachSubgraph(copy, [&](GraphProto &g) { this->graph(g); });
      if (const FunctionProto *inner = callee(copy))
        expand(copy, *inner, result);
      else
        result->Add(std::move(copy));
    }
    for (NodeProto &node : identities)
      result->Add(std::move(node));
    if (calls) {
      NodeProto &mark = *result->Add();
      mark.set_domain(kCallDomain);
      mark.set_op_type("end");
    }
  }

  /// What the call may be shown with.
  static bool isPlain(const AttributeProto &attribute) {
    switch (attribute.type()) {
    case AttributeProto::FLOAT:
    case AttributeProto::INT:
    case AttributeProto::STRING:
    case AttributeProto::FLOATS:
    case AttributeProto::INTS:
    case AttributeProto::STRINGS:
      return true;
    default:
      return false;
    }
  }

  NodeProto beginCall(const NodeProto &node, const FunctionProto &function,
                      const Binding &binding) {
    NodeProto mark;
    mark.set_domain(kCallDomain);
    mark.set_op_type(std::to_string(calls->size()));
    FunctionCall &call = calls->emplace_back();
    call.node = node;
    auto *attributes = call.node.mutable_attribute();
    for (int i = attributes->size() - 1; i >= 0; --i)
      if (!isPlain(attributes->Get(i)))
        attributes->DeleteSubrange(i, 1);
    call.inputs.assign(function.input().begin(), function.input().end());
    call.outputs.assign(function.output().begin(), function.output().end());
    call.prefix = binding.prefix;
    return mark;
  }

  Binding bind(const NodeProto &call, const FunctionProto &function) {
    Binding binding;
    binding.function = &function;
    std::string base = call.name().empty() ? function.name() : call.name();
    binding.prefix = base + "/" + std::to_string(counter++) + "/";
    for (int i = 0; i < function.input_size(); ++i)
      binding.values[function.input(i)] =
          i < call.input_size() ? call.input(i) : "";
    for (const AttributeProto &attribute : function.attribute_proto())
      binding.attributes[attribute.name()] = &attribute;
    for (const AttributeProto &attribute : call.attribute())
      binding.attributes[attribute.name()] = &attribute;
    for (const auto &import : function.opset_import())
      binding.versions[import.domain()] = import.version();
    if (allowCapture)
      for (const NodeProto &node : function.node())
        collectNames(node, binding.own);
    return binding;
  }

  /// Outputs that are inputs as well, or named twice, need a node of their own.
  std::vector<NodeProto> bindOutputs(const NodeProto &call,
                                     const FunctionProto &function,
                                     Binding &binding) {
    std::vector<NodeProto> identities;
    for (int i = 0; i < call.output_size(); ++i) {
      const std::string &formal = function.output(i);
      if (call.output(i).empty())
        continue;
      auto [it, added] = binding.values.try_emplace(formal, call.output(i));
      if (added)
        continue;
      if (it->second.empty())
        failAt(call, "output '" + formal + "' of function '" + function.name() +
                         "' is an input that the call leaves out");
      NodeProto identity;
      identity.set_op_type("Identity");
      identity.add_input(it->second);
      identity.add_output(call.output(i));
      identities.push_back(std::move(identity));
    }
    return identities;
  }

  std::string rename(const std::string &name, const Binding &binding) {
    if (name.empty())
      return name;
    auto it = binding.values.find(name);
    if (it != binding.values.end())
      return it->second;
    if (allowCapture && !binding.own.contains(name))
      return name;
    return binding.prefix + name;
  }

  static void collectNames(const NodeProto &node, StringSet<> &names) {
    for (const std::string &output : node.output())
      names.insert(output);
    forEachSubgraph(node, [&](const GraphProto &graph) {
      for (const auto &value : graph.input())
        names.insert(value.name());
      for (const auto &tensor : graph.initializer())
        names.insert(tensor.name());
      for (const NodeProto &inner : graph.node())
        collectNames(inner, names);
    });
  }

  /// Turns a copied node of the body into one of the caller's graph.
  void rewrite(NodeProto &node, const Binding &binding, const NodeProto &call) {
    spent += 1 + node.ByteSizeLong() / kBytesPerNode;
    if (spent > maxNodes)
      failAt(call, "inlining the model's functions makes more than " +
                       Twine(maxNodes) + " nodes");
    for (std::string &name : *node.mutable_input())
      name = rename(name, binding);
    for (std::string &name : *node.mutable_output())
      name = rename(name, binding);
    if (!node.name().empty())
      node.set_name(binding.prefix + node.name());
    // Graphs that the call gives keep their names: rename before binding.
    forEachSubgraph(node, [&](GraphProto &g) { rewrite(g, binding, call); });
    bindAttributes(node, binding);
    markVersion(node, binding);
  }

  void rewrite(GraphProto &graph, const Binding &binding,
               const NodeProto &call) {
    for (auto &value : *graph.mutable_input())
      value.set_name(rename(value.name(), binding));
    for (auto &value : *graph.mutable_output())
      value.set_name(rename(value.name(), binding));
    for (auto &value : *graph.mutable_value_info())
      value.set_name(rename(value.name(), binding));
    for (auto &tensor : *graph.mutable_initializer())
      tensor.set_name(rename(tensor.name(), binding));
    for (auto &tensor : *graph.mutable_sparse_initializer())
      tensor.mutable_values()->set_name(
          rename(tensor.values().name(), binding));
    for (NodeProto &node : *graph.mutable_node())
      rewrite(node, binding, call);
  }

  /// References to attributes of the function take the call's, or vanish.
  void bindAttributes(NodeProto &node, const Binding &binding) {
    google::protobuf::RepeatedPtrField<AttributeProto> attributes;
    attributes.Swap(node.mutable_attribute());
    for (AttributeProto &attribute : attributes) {
      if (attribute.ref_attr_name().empty()) {
        node.mutable_attribute()->Add(std::move(attribute));
        continue;
      }
      auto it = binding.attributes.find(attribute.ref_attr_name());
      if (it == binding.attributes.end())
        continue;
      AttributeProto *bound = node.add_attribute();
      *bound = *it->second;
      bound->set_name(attribute.name());
    }
  }

  /// Constants mean the same in every version, and inference knows them by
  /// their name.
  static bool sameForm(const NodeProto &node, int64_t a, int64_t b) {
    if (a == b || node.op_type() == "Constant")
      return true;
    using Schemas = ::onnx::OpSchemaRegistry;
    return Schemas::Schema(node.op_type(), a, node.domain()) ==
           Schemas::Schema(node.op_type(), b, node.domain());
  }

  void markVersion(NodeProto &node, const Binding &binding) {
    if (callee(node) || StringRef(node.op_type()).contains('@'))
      return;
    auto it = binding.versions.find(node.domain());
    if (it == binding.versions.end()) {
      // Exporters leave the import out where it agrees with the model's.
      if (modelVersions.count(node.domain()))
        return;
      failAt(node, "function '" + binding.function->name() +
                       "' does not import domain '" + node.domain() + "'");
    }
    auto [known, added] = modelVersions.try_emplace(node.domain(), it->second);
    if (added)
      newVersions[node.domain()] = it->second;
    if (!sameForm(node, known->second, it->second))
      node.set_op_type(node.op_type() + "@" + std::to_string(it->second));
  }

  StringMap<const FunctionProto *> functions;
  StringMap<int64_t> modelVersions;
  SmallPtrSet<const FunctionProto *, 8> active;
  uint64_t counter = 0, spent = 0, maxNodes;
  bool allowCapture;
  std::vector<FunctionCall> *calls;
};

} // namespace

void inlineFunctions(::onnx::ModelProto &model, uint64_t maxNodes,
                     bool allowCapture, std::vector<FunctionCall> *calls) {
  if (model.functions_size() == 0)
    return;
  Inliner inliner(model, maxNodes, allowCapture, calls);
  inliner.graph(*model.mutable_graph());
  for (auto &entry : inliner.newVersions) {
    auto *import = model.add_opset_import();
    import->set_domain(entry.getKey().str());
    import->set_version(entry.getValue());
  }
  model.clear_functions();
  if (calls && !calls->empty()) {
    auto *import = model.add_opset_import();
    import->set_domain(kCallDomain);
    import->set_version(1);
  }
}

std::optional<size_t> callBegin(const NodeProto &node) {
  size_t number = 0;
  if (node.domain() != kCallDomain ||
      StringRef(node.op_type()).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

bool isCallEnd(const NodeProto &node) {
  return node.domain() == kCallDomain && !callBegin(node);
}

static void dropMarks(GraphProto &graph) {
  google::protobuf::RepeatedPtrField<NodeProto> nodes;
  nodes.Swap(graph.mutable_node());
  for (NodeProto &node : nodes) {
    forEachSubgraph(node, dropMarks);
    if (node.domain() != kCallDomain)
      graph.mutable_node()->Add(std::move(node));
  }
}

void dropCalls(Model &model) {
  if (!model.calls.empty())
    dropMarks(*model.proto.mutable_graph());
  model.calls.clear();
}

} // namespace sardonyx::importer
