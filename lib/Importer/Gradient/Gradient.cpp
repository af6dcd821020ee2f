//===- Gradient.cpp - Replacing Gradient nodes ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the graph between xs, zs and y is copied with the inputs of the
// Gradient node in the places of xs and zs, as the specification has it. Where
// these are the same, the copies fall together with the originals later on.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Gradient/Gradient.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/NodeOrder.h"

#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

using namespace llvm;

namespace sardonyx::importer {
namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::OpSchemaRegistry;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

bool isGradient(const NodeProto &node) {
  return node.op_type() == "Gradient" &&
         node.domain() == "ai.onnx.preview.training";
}

bool hasGradient(const GraphProto &graph) {
  return any_of(graph.node(), isGradient);
}

void refuseInside(const GraphProto &graph) {
  for (const NodeProto &node : graph.node())
    forEachSubgraph(node, [](const GraphProto &inner) {
      for (const NodeProto &gradient : inner.node())
        if (isGradient(gradient))
          failAt(gradient, "Gradient in a graph of another node is not "
                           "supported");
      refuseInside(inner);
    });
}

const GradientRule *findRule(const NodeProto &node) {
  static const StringMap<const GradientRule *> rules = [] {
    StringMap<const GradientRule *> all;
    for (ArrayRef<GradientRule> family :
         {elementwiseGradients(), movementGradients(), reductionGradients(),
          networkGradients(), normalizationGradients()})
      for (const GradientRule &rule : family)
        all[rule.op] = &rule;
    return all;
  }();
  return node.domain().empty() ? rules.lookup(node.op_type()) : nullptr;
}

bool isFloat(const TypeProto *type) {
  if (!type)
    return true; // as far as we know
  if (!type->has_tensor_type())
    return false;
  int element = type->tensor_type().elem_type();
  return element == TensorProto::FLOAT || element == TensorProto::DOUBLE ||
         element == TensorProto::FLOAT16 || element == TensorProto::BFLOAT16;
}

bool hasSubgraph(const NodeProto &node) {
  bool found = false;
  forEachSubgraph(node, [&](const GraphProto &) { found = true; });
  return found;
}

bool drawsNumbers(const NodeProto &node) {
  static constexpr StringLiteral ops[] = {
      "Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"};
  return node.domain().empty() && is_contained(ops, node.op_type());
}

//===----------------------------------------------------------------------===//
// One Gradient node
//===----------------------------------------------------------------------===//

class Expansion {
public:
  Expansion(::onnx::ModelProto &model, NodeProto gradient, FreshNames &names,
            uint64_t &nodesLeft)
      : model(model), graph(*model.mutable_graph()),
        gradient(std::move(gradient)), names(names), nodesLeft(nodesLeft) {
    readAttributes();
  }

  /// The Gradient node is no longer in the graph.
  void run() {
    copyRegion();
    while (expandFunctions())
      ;
    differentiate();
  }

private:
  void readAttributes();
  void copyRegion();
  std::vector<int> region() const;
  void findActive(ArrayRef<int> nodes, const ValueTypes &types);
  bool expandFunctions();
  void nameAfterCalls();
  void makeCall(NodeProto &node, const ValueTypes &types);
  void differentiate();
  void step(const NodeProto &node, const ValueTypes &types);
  void append(std::vector<NodeProto> &made);
  void declare(const std::string &name, const TypeProto *type);

  ::onnx::ModelProto &model;
  GraphProto &graph;
  NodeProto gradient;
  FreshNames &names;
  uint64_t &nodesLeft;

  std::vector<std::string> xs, zs;
  std::string y;
  /// What stands for xs in the copy, and all that hangs on these.
  std::vector<std::string> variables;
  StringSet<> isVariable, active;
  /// Terms of the derivatives with respect to values.
  StringMap<std::vector<std::string>> terms;
  /// By the name of a call that is inlined, that of the node it stands for.
  std::vector<std::pair<std::string, std::string>> calls;
};

} // namespace

void Expansion::readAttributes() {
  for (const auto &attribute : gradient.attribute()) {
    if (attribute.name() == "xs")
      xs.assign(attribute.strings().begin(), attribute.strings().end());
    else if (attribute.name() == "zs")
      zs.assign(attribute.strings().begin(), attribute.strings().end());
    else if (attribute.name() == "y")
      y = attribute.s();
  }
  if (gradient.input_size() != int(xs.size() + zs.size()))
    failAt(gradient, "has " + Twine(gradient.input_size()) +
                         " inputs for the " + Twine(xs.size() + zs.size()) +
                         " names in 'xs' and 'zs'");
  if (gradient.output_size() > int(xs.size()))
    failAt(gradient, "has " + Twine(gradient.output_size()) +
                         " outputs for the " + Twine(xs.size()) +
                         " names in 'xs'");
  for (const std::string &input : gradient.input())
    if (input.empty())
      failAt(gradient, "leaves out an input");
  StringSet<> known, seen;
  for (const auto &input : graph.input())
    known.insert(input.name());
  for (const TensorProto &tensor : graph.initializer())
    known.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    known.insert(tensor.values().name());
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      known.insert(output);
  for (const auto *list : {&xs, &zs})
    for (const std::string &name : *list) {
      if (name.empty() || !known.contains(name))
        failAt(gradient, "names '" + name +
                             "', which is no value of the graph, in 'xs' or "
                             "'zs'");
      if (!seen.insert(name).second)
        failAt(gradient, "names '" + name + "' twice in 'xs' and 'zs'");
    }
}

void Expansion::append(std::vector<NodeProto> &made) {
  if (made.size() > nodesLeft)
    failAt(gradient, "makes too many nodes");
  nodesLeft -= made.size();
  for (NodeProto &node : made)
    *graph.add_node() = std::move(node);
  made.clear();
}

void Expansion::declare(const std::string &name, const TypeProto *type) {
  if (!type)
    return;
  auto &info = *graph.add_value_info();
  info.set_name(name);
  *info.mutable_type() = *type;
}

//===----------------------------------------------------------------------===//
// The function that is differentiated
//===----------------------------------------------------------------------===//

void Expansion::copyRegion() {
  ValueTypes types(graph);
  StringMap<std::string> inPlaceOf;
  NodeMaker maker(names, displayName(gradient));
  // Names of their own: one value may be given for two variables.
  for (size_t i = 0; i < xs.size() + zs.size(); ++i) {
    std::string given = gradient.input(i);
    std::string own = maker.op("Identity", {given});
    const TypeProto *type = types.find(given);
    declare(own, type);
    inPlaceOf[i < xs.size() ? xs[i] : zs[i - xs.size()]] = own;
    if (i >= xs.size())
      continue;
    if (!isFloat(type))
      failAt(gradient, "input '" + given + "' of 'xs' is no tensor of floats");
    variables.push_back(own);
    isVariable.insert(own);
  }
  append(maker.made);

  Producers producers(graph);
  bool isGiven = inPlaceOf.count(y);
  int root = producers.find(y);
  if (root < 0 && !isGiven)
    failAt(gradient, "'" + y + "' in 'y' is the result of no node");
  if (!isFloat(types.find(y)))
    failAt(gradient, "'" + y + "' in 'y' is no tensor of floats");
  std::vector<int> needed;
  if (!isGiven)
    needed = producers.reach(
        {root}, [&](StringRef name) { return inPlaceOf.count(name) != 0; });
  StringSet<> graphInputs;
  for (const auto &input : graph.input())
    graphInputs.insert(input.name());

  std::vector<NodeProto> copies;
  for (int i : needed) {
    NodeProto copy = graph.node(i);
    std::vector<std::string> reads;
    collectReads(copy, reads);
    bool changes = false;
    for (const std::string &name : reads) {
      changes |= inPlaceOf.count(name) != 0;
      if (graphInputs.contains(name) && !inPlaceOf.count(name))
        failAt(gradient, "'" + y + "' is also a function of '" + name +
                             "', which is in neither 'xs' nor 'zs'");
    }
    if (!changes)
      continue;
    if (hasSubgraph(copy))
      failAt(copy, "Gradient through an operator that has graphs is not "
                   "supported");
    if (drawsNumbers(copy))
      failAt(copy, "Gradient through random numbers is not supported");
    for (std::string &input : *copy.mutable_input())
      if (auto it = inPlaceOf.find(input); it != inPlaceOf.end())
        input = it->second;
    copy.set_name(displayName(copy));
    for (std::string &output : *copy.mutable_output())
      if (!output.empty())
        output = inPlaceOf[output] = names.make("copy");
    copies.push_back(std::move(copy));
  }
  append(copies);
  if (auto it = inPlaceOf.find(y); it != inPlaceOf.end())
    y = it->second;
  sortNodes(*graph.mutable_node());
  inferTypes(model);
}

/// The nodes between the variables and y.
std::vector<int> Expansion::region() const {
  Producers producers(graph);
  if (isVariable.contains(y) || producers.find(y) < 0)
    return {};
  return producers.reach({producers.find(y)}, [&](StringRef name) {
    return isVariable.contains(name);
  });
}

void Expansion::findActive(ArrayRef<int> nodes, const ValueTypes &types) {
  active.clear();
  for (const std::string &variable : variables)
    active.insert(variable);
  for (int i : nodes) {
    const NodeProto &node = graph.node(i);
    if (none_of(node.input(),
                [&](StringRef name) { return active.contains(name); }))
      continue;
    for (const std::string &output : node.output())
      if (!output.empty() && isFloat(types.find(output)))
        active.insert(output);
  }
}

static bool anyActive(const NodeProto &node, const StringSet<> &active) {
  auto isActive = [&](StringRef name) { return active.contains(name); };
  return any_of(node.input(), isActive) && any_of(node.output(), isActive);
}

/// Puts the bodies of operators without a rule in their places; false when
/// there are none.
bool Expansion::expandFunctions() {
  ValueTypes types(graph);
  std::vector<int> nodes = region();
  findActive(nodes, types);
  bool found = false;
  for (int i : nodes) {
    NodeProto &node = *graph.mutable_node(i);
    if (!anyActive(node, active) || findRule(node))
      continue;
    makeCall(node, types);
    found = true;
  }
  if (!found)
    return false;
  int before = graph.node_size();
  inlineFunctions(model, nodesLeft, /*allowCapture=*/true);
  nameAfterCalls();
  nodesLeft -= std::min<uint64_t>(nodesLeft, graph.node_size() - before);
  if (upgradeNeedsTypes(model))
    inferTypes(model);
  upgradeModel(model);
  inferTypes(model);
  return true;
}

/// Gives inlined nodes the name of the node that they come from: whoever reads
/// of them knows that one only.
void Expansion::nameAfterCalls() {
  for (NodeProto &node : *graph.mutable_node()) {
    std::string name = displayName(node);
    for (const auto &[call, origin] : calls)
      if (StringRef(name).starts_with(call + "/"))
        node.set_name(origin);
  }
  calls.clear();
}

/// Makes the node a call of a function of the model that is its body.
void Expansion::makeCall(NodeProto &node, const ValueTypes &types) {
  std::vector<TypeProto> inputs;
  for (const std::string &input : node.input()) {
    const TypeProto *type = types.find(input);
    if (!input.empty() && !type)
      failAt(node, "its derivative is not supported: the type of one of its "
                   "operands is not known");
    inputs.push_back(type ? *type : TypeProto());
  }
  ::onnx::FunctionProto function;
  if (!makeFunctionBody(node, inputs, function))
    failAt(node, "its derivative, which Gradient '" + displayName(gradient) +
                     "' needs, is not supported");
  // The name of a node begins the names of what is inlined.
  std::string origin = displayName(node);
  node.set_name(names.make(origin));
  calls.emplace_back(node.name(), origin);
  node.set_op_type(names.make("body"));
  node.set_domain("sdx");
  function.set_name(node.op_type());
  function.set_domain(node.domain());
  normalizeFunction(function);
  *model.add_functions() = std::move(function);
}

//===----------------------------------------------------------------------===//
// Reverse accumulation
//===----------------------------------------------------------------------===//

void Expansion::step(const NodeProto &node, const ValueTypes &types) {
  Adjoint adjoint(node, types, names, displayName(gradient));
  bool any = false;
  for (int i = 0; i < node.output_size(); ++i) {
    auto it = terms.find(node.output(i));
    if (it == terms.end() || node.output(i).empty())
      continue;
    const std::vector<std::string> &sum = it->second;
    adjoint.results[i] = sum.size() == 1 ? sum[0] : adjoint.op("Sum", sum);
    any = true;
  }
  if (!any)
    return;
  for (int i = 0; i < node.input_size(); ++i)
    adjoint.wanted[i] = active.contains(node.input(i));
  findRule(node)->apply(adjoint);
  for (int i = 0; i < node.input_size(); ++i) {
    if (!adjoint.wanted[i] || adjoint.given[i].empty())
      continue;
    terms[node.input(i)].push_back(adjoint.given[i]);
    // It is of the input's type, which inference may not find out.
    if (adjoint.given[i] != adjoint.dy())
      declare(adjoint.given[i], types.find(node.input(i)));
  }
  append(adjoint.made);
}

void Expansion::differentiate() {
  ValueTypes types(graph);
  std::vector<int> nodes = region();
  findActive(nodes, types);
  // Adding nodes moves those of the graph.
  std::vector<NodeProto> ordered;
  for (int i : nodes)
    if (anyActive(graph.node(i), active))
      ordered.push_back(graph.node(i));
  NodeProto none;
  none.set_name(displayName(gradient));
  none.set_op_type(gradient.op_type());
  Adjoint maker(none, types, names, displayName(gradient));
  if (active.contains(y)) {
    std::string ones = maker.onesLike(y);
    declare(ones, types.find(y));
    terms[y].push_back(ones);
  }
  append(maker.made);
  for (const NodeProto &node : reverse(ordered))
    step(node, types);

  for (int i = 0; i < gradient.output_size(); ++i) {
    if (gradient.output(i).empty())
      continue;
    auto it = terms.find(variables[i]);
    std::string result = it == terms.end() ? maker.zerosLike(variables[i])
                         : it->second.size() == 1 ? it->second[0]
                                                  : maker.op("Sum", it->second);
    maker.op("Identity", {result});
    maker.made.back().set_output(0, gradient.output(i));
    if (!types.find(gradient.output(i)))
      declare(gradient.output(i), types.find(variables[i]));
  }
  append(maker.made);
  sortNodes(*graph.mutable_node());
}

//===----------------------------------------------------------------------===//
// All Gradient nodes
//===----------------------------------------------------------------------===//

bool usesGradient(const GraphProto &graph) {
  return any_of(graph.node(), [](const NodeProto &node) {
    bool inside = isGradient(node);
    forEachSubgraph(
        node, [&](const GraphProto &inner) { inside |= usesGradient(inner); });
    return inside;
  });
}

/// A Gradient node whose function holds no other; -1 when there is none.
static int findInnermost(const GraphProto &graph) {
  Producers producers(graph);
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeProto &node = graph.node(i);
    if (!isGradient(node))
      continue;
    int root = -1;
    for (const auto &attribute : node.attribute())
      if (attribute.name() == "y")
        root = producers.find(attribute.s());
    std::vector<int> needed;
    if (root >= 0)
      needed = producers.reach({root}, [](StringRef) { return false; });
    if (none_of(needed, [&](int j) { return isGradient(graph.node(j)); }))
      return i;
  }
  return -1;
}

void expandGradients(::onnx::ModelProto &model, uint64_t maxNodes) {
  GraphProto &graph = *model.mutable_graph();
  refuseInside(graph);
  if (!hasGradient(graph))
    return;
  FreshNames names(graph);
  inferTypes(model);
  while (hasGradient(graph)) {
    int i = findInnermost(graph);
    if (i < 0)
      fail("the Gradient nodes of the model differentiate each other");
    NodeProto gradient = graph.node(i);
    graph.mutable_node()->DeleteSubrange(i, 1);
    Expansion(model, std::move(gradient), names, maxNodes).run();
    if (hasGradient(graph))
      inferTypes(model);
  }
}

} // namespace sardonyx::importer
