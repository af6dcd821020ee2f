//===- NodeOrder.h - What nodes need which ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_NODEORDER_H
#define SARDONYX_LIB_IMPORTER_NODEORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace sardonyx::importer {

/// The names that a node reads, in graphs of its own too, but for what these
/// make themselves.
void collectReads(const ::onnx::NodeProto &node,
                  std::vector<std::string> &names);

/// The nodes of a graph by what they make.
class Producers {
public:
  explicit Producers(const ::onnx::GraphProto &graph);

  /// -1 for what no node makes.
  int find(llvm::StringRef name) const;
  /// The nodes that `roots` need, each after those that it needs itself.
  /// `stopAt` says which names are not looked behind.
  std::vector<int>
  reach(llvm::ArrayRef<int> roots,
        llvm::function_ref<bool(llvm::StringRef)> stopAt) const;

private:
  const ::onnx::GraphProto &graph;
  llvm::StringMap<int> makers;
};

/// Puts nodes behind those that they need, and leaves those that are there
/// where they are. Nodes of a cycle end up in some order.
void sortNodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_NODEORDER_H
