//===- LooseModels.cpp - Models that bend ONNX's rules --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tools write and onnxruntime takes although ONNX forbids it, where it has
// one meaning.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Model.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <onnx/defs/schema.h>

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

//===----------------------------------------------------------------------===//
// Imports
//===----------------------------------------------------------------------===//

template <typename Nodes>
static void collectDomains(const Nodes &nodes, StringSet<> &domains) {
  for (const NodeProto &node : nodes) {
    domains.insert(node.domain());
    forEachSubgraph(node, [&](const GraphProto &graph) {
      collectDomains(graph.node(), domains);
    });
  }
}

template <typename T, typename Nodes>
static void addImports(T &proto, const Nodes &nodes) {
  static constexpr StringLiteral kKnown[] = {"ai.onnx.ml", "ai.onnx.preview",
                                             "ai.onnx.preview.training",
                                             "com.microsoft"};
  StringSet<> used;
  collectDomains(nodes, used);
  for (const auto &import : proto.opset_import())
    used.erase(import.domain());
  const auto &versions =
      ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (StringRef domain : kKnown) {
    auto range = versions.find(domain.str());
    if (!used.contains(domain) || range == versions.end())
      continue;
    auto *import = proto.add_opset_import();
    import->set_domain(domain.str());
    import->set_version(range->second.second);
  }
}

void addImpliedImports(::onnx::ModelProto &model) {
  addImports(model, model.graph().node());
}

void addImpliedImports(::onnx::FunctionProto &function) {
  addImports(function, function.node());
}

//===----------------------------------------------------------------------===//
// Constants of one name
//===----------------------------------------------------------------------===//

/// Takes away those for which `drop` holds.
template <typename List, typename Predicate>
static void eraseIf(List &list, Predicate drop) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i)
    if (!drop(i, list.Get(i)))
      list.SwapElements(kept++, i);
  list.DeleteSubrange(kept, list.size() - kept);
}

static bool isConstant(const NodeProto &node) {
  return node.op_type() == "Constant" &&
         (node.domain().empty() || node.domain() == "ai.onnx") &&
         node.output_size() == 1;
}

void keepLastConstants(GraphProto &graph) {
  // The place of the last one of each name: initializers, sparse ones and nodes
  // count in this order.
  StringMap<int> last;
  int place = 0;
  for (const auto &tensor : graph.initializer())
    last[tensor.name()] = place++;
  const int firstSparse = place;
  for (const auto &tensor : graph.sparse_initializer())
    last[tensor.values().name()] = place++;
  const int firstNode = place;
  for (const NodeProto &node : graph.node()) {
    if (isConstant(node))
      last[node.output(0)] = place;
    ++place;
  }
  // Each name is there once.
  size_t constants =
      firstNode + count_if(graph.node(), [](const NodeProto &node) {
        return isConstant(node);
      });
  if (last.size() == constants)
    return;
  eraseIf(*graph.mutable_initializer(), [&](int i, const auto &tensor) {
    return last.lookup(tensor.name()) != i;
  });
  eraseIf(*graph.mutable_sparse_initializer(), [&](int i, const auto &tensor) {
    return last.lookup(tensor.values().name()) != firstSparse + i;
  });
  eraseIf(*graph.mutable_node(), [&](int i, const NodeProto &node) {
    return isConstant(node) && last.lookup(node.output(0)) != firstNode + i;
  });
}

} // namespace sardonyx::importer
