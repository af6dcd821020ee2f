//===- NodeOrder.cpp - What nodes need which ------------------------------===//

#include "lib/Importer/NodeOrder.h"
#include "lib/Importer/Model.h"

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

void collectReads(const NodeProto &node, std::vector<std::string> &names) {
  names.insert(names.end(), node.input().begin(), node.input().end());
  forEachSubgraph(node, [&](const GraphProto &graph) {
    for (const NodeProto &inner : graph.node())
      collectReads(inner, names);
    for (const auto &output : graph.output())
      names.push_back(output.name());
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

void sortNodes(GraphProto &graph) {
  Producers producers(graph);
  std::vector<int> all(graph.node_size());
  for (int i = 0; i < graph.node_size(); ++i)
    all[i] = i;
  google::protobuf::RepeatedPtrField<NodeProto> sorted;
  for (int i : producers.reach(all, [](StringRef) { return false; }))
    sorted.Add(std::move(*graph.mutable_node(i)));
  graph.mutable_node()->Swap(&sorted);
}

} // namespace sardonyx::importer
