//===- Forest.h - Decision trees as tables ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes of the three tree ensemble operators, checked and brought into
// one form. Nodes of all trees lie in one row of tables; a leaf is followed by
// itself, so that walking too far does no harm.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_FOREST_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_FOREST_H

#include "dialects/ONNX/ONNX.h"

#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

struct Forest {
  /// What a node asks of its feature: the outcomes of comparing it with the
  /// threshold for which the answer is yes.
  enum Outcome : uint8_t { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };

  struct Node {
    int64_t feature = 0;
    double threshold = 0;
    /// Of Outcomes; all for a leaf.
    uint8_t yes = 15;
    /// Where an answer of no and one of yes lead.
    int64_t next[2] = {0, 0};

    /// Lets a feature that is missing be answered with yes.
    void trackMissing();
  };
  /// What a leaf adds to a score.
  struct Vote {
    int64_t target;
    double weight;
  };

  std::vector<Node> nodes;
  /// For each node, empty for those that are no leaves.
  std::vector<std::vector<Vote>> votes;
  /// For each tree, its first node and the length of its longest path.
  std::vector<int64_t> roots, depths;
  int64_t features = 0;  ///< That the nodes read: one more than the last.
  bool isDouble = false; ///< Thresholds and weights are.

  /// Of TreeEnsembleRegressor and TreeEnsembleClassifier, whose votes have the
  /// attributes `prefix`_ids and so on. On failure `error` says why.
  static mlir::FailureOr<Forest>
  ofNodes(mlir::Operation *op, llvm::StringRef prefix, std::string &error);
  /// Of TreeEnsemble.
  static mlir::FailureOr<Forest> ofSplits(onnx::MLTreeEnsembleOp op,
                                          std::string &error);

  bool isLeaf(int64_t i) const { return nodes[i].yes == 15; }
  /// The places of nodes from which on there are leaves only.
  int64_t firstLeaf = 0;
  /// Where nodes differ only in what they answer to a feature that is missing,
  /// and those that answer with yes would do so to an infinity as well, lets
  /// these read feature f as f + `features` and gives that infinity.
  std::optional<double> separateMissing();
  /// Adds trees of one leaf without votes until their number is a multiple.
  void padTrees(size_t multiple);
  /// Whether all votes are for targets below `count`.
  bool votesFor(int64_t count) const;

private:
  /// Brings the nodes into order; fails where a tree does not end.
  mlir::LogicalResult finish(std::string &error);
  /// Fills in roots' depths.
  mlir::LogicalResult measureDepths(std::string &error);
  /// Puts all leaves behind all other nodes.
  void moveLeavesBack();
};

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_FOREST_H
