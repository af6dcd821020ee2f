//===- AttentionPlan.h - How attention is computed --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// The tiles of attention. A block has the queries of a tile, of all heads that
/// share their keys, and goes over the keys a tile at a time.
struct AttentionPlan {
  /// By tensor cores; otherwise by multiply-adds.
  bool isMma = false;
  /// Queries and keys of a tile, and queries of a thread (not with tensor
  /// cores, where a warp has 16).
  int64_t rows = 0, keys = 0, rowsOfThread = 1;
  /// Depth and columns, rounded up to what tiles have.
  int64_t depth = 0, columns = 0;
  /// So many blocks share the keys of a tile of queries; 0: as many as leave no
  /// multiprocessor without work, which is known when it is.
  int64_t split = 1;
  int64_t multiprocessors = 1;
  /// The fewest tiles of keys that are worth a block, and the most blocks.
  static constexpr int64_t kFewestTiles = 2, kMostSplits = 32;
  /// The fewest tiles that are shared: adding up what blocks have of fewer
  /// takes longer than going over them.
  static constexpr int64_t kFewestShared = 6;

  int64_t countThreads() const {
    return isMma ? rows / 16 * 32 : rows / rowsOfThread * 16;
  }
};

AttentionPlan chooseAttentionPlan(sdx::AttentionOp op, TargetAttr target);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H
