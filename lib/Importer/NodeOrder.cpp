//===- NodeOrder.cpp - What nodes need which ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/NodeOrder.h"
#include "lib/Importer/Subgraphs.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// The names that a graph makes itself.
static StringSet<> collectDefinitions(const GraphProto &graph) {
  StringSet<> names;
  for (const auto &input : graph.input())
    names.insert(input.name());
  for (const auto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    names.insert(tensor.values().name());
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      names.insert(output);
  return names;
}

void collectReads(const NodeProto &node, std::vector<std::string> &names) {
  names.insert(names.end(), node.input().begin(), node.input().end());
  forEachSubgraph(node, [&](const GraphProto &graph) {
    std::vector<std::string> inside;
    for (const NodeProto &inner : graph.node())
      collectReads(inner, inside);
    for (const auto &output : graph.output())
      inside.push_back(output.name());
    // A name may be one of the graph's own and of a node around it, too.
    StringSet<> own = collectDefinitions(graph);
    for (std::string &name : inside)
      if (!own.contains(name))
        names.push_back(std::move(name));
  });
}

Producers::Producers(const GraphProto &graph) : graph(graph) {
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &output : graph.node(i).output())
      if (!output.empty())
        makers[output] = i;
}

int Producers::find(StringRef name) const {
  auto it = makers.find(name);
  return it == makers.end() ? -1 : it->second;
}

std::vector<int> Producers::reach(ArrayRef<int> roots,
                                  function_ref<bool(StringRef)> stopAt) const {
  std::vector<int> order;
  std::vector<char> seen(graph.node_size());
  struct Visit {
    int node;
    std::vector<std::string> reads;
    size_t next = 0;
  };
  for (int root : roots) {
    std::vector<Visit> stack;
    auto enter = [&](int node) {
      if (node < 0 || seen[node])
        return;
      seen[node] = true;
      stack.push_back({node, {}});
      collectReads(graph.node(node), stack.back().reads);
    };
    enter(root);
    while (!stack.empty()) {
      Visit &top = stack.back();
      if (top.next == top.reads.size()) {
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      std::string name = top.reads[top.next++];
      if (!name.empty() && !stopAt(name))
        enter(find(name));
    }
  }
  return order;
}

void sortNodes(google::protobuf::RepeatedPtrField<NodeProto> &nodes) {
  GraphProto graph;
  graph.mutable_node()->Swap(&nodes);
  std::vector<int> all(graph.node_size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> order =
      Producers(graph).reach(all, [](StringRef) { return false; });
  if (order == all) {
    nodes.Swap(graph.mutable_node());
    return;
  }
  nodes.Reserve(graph.node_size());
  for (int i : order)
    nodes.Add(std::move(*graph.mutable_node(i)));
}

} // namespace sardonyx::importer
