//===- Subgraphs.h - The graphs in attributes of a node ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_SUBGRAPHS_H
#define SARDONYX_LIB_IMPORTER_SUBGRAPHS_H

#include <type_traits>

namespace sardonyx::importer {

/// Calls `body(graph)` for each graph in attributes of `node`.
template <typename Node, typename Body>
void forEachSubgraph(Node &node, Body body) {
  if constexpr (std::is_const_v<Node>) {
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g())
        body(attribute.g());
      for (const auto &graph : attribute.graphs())
        body(graph);
    }
  } else {
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        body(*attribute.mutable_g());
      for (auto &graph : *attribute.mutable_graphs())
        body(graph);
    }
  }
}

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_SUBGRAPHS_H
