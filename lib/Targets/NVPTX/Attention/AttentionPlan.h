//===- AttentionPlan.h - How attention is computed --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H

#include "dialects/NV/NV.h"
#include "dialects/SDX/SDX.h"

#include <optional>
#include <string>

namespace sardonyx::nv {

/// What follows from a plan for an operation. A block has the queries of a
/// tile, of all heads that share their keys, and goes over the keys a tile at a
/// time.
struct AttentionPlan {
  AttentionPlan(AttentionPlanAttr attr, sdx::AttentionOp op, TargetAttr target);

  ProductForm form;
  /// Queries and keys of a tile, and queries of a thread (not with tensor
  /// cores, where a warp has 16).
  int64_t rows, keys, rowsOfThread = 1;
  /// Depth and columns, rounded up to what tiles have.
  int64_t depth, columns;
  /// So many blocks share the keys of a tile of queries; 0: as many as leave no
  /// multiprocessor without work, which is known when it is.
  int64_t split;
  /// Tiles of keys and values that are in shared memory at a time.
  int64_t stages = 2;
  int64_t multiprocessors, cacheBytes;
  /// The fewest tiles of keys that are worth a block.
  static constexpr int64_t kFewestTiles = 2;
  static constexpr int64_t kMostSplits = AttentionPlanAttr::kMostSplits;
  /// The fewest tiles that are shared: adding up what blocks have of fewer
  /// takes longer than going over them.
  static constexpr int64_t kFewestShared = 6;
  /// A head has more scores than these, and that many queries, where warpgroups
  /// are faster than warps.
  static constexpr int64_t kScoresOfWarps = 512 * 512, kLeastQueries = 128;

  bool isFma() const { return form == ProductForm::Fma; }
  bool isMma() const { return form == ProductForm::Mma; }
  bool isWgmma() const { return form == ProductForm::Wgmma; }
  int64_t countThreads() const {
    return isWgmma() ? rows / 64 * 128 + 128
           : isMma() ? rows / 16 * 32
                     : rows / rowsOfThread * 16;
  }
  /// Bytes of shared memory that a block needs.
  int64_t countSharedBytes() const;
  /// Of them, where a warpgroup copies: a tile of queries, and those of keys
  /// and values in each stage. One barrier for the queries and four for each
  /// stage follow.
  int64_t countQueryBytes() const;
  int64_t countKeyBytes() const;
  int64_t countValueBytes() const;
  int64_t countTileBytes() const;
};

/// The loop over the queries of a head: the last of those that share keys.
std::optional<unsigned> findQueryLoop(sdx::AttentionOp op);

/// The plan that is chosen for an operation; none where there is no kernel.
/// Where sizes are open one by warpgroups is for many scores only, and the host
/// takes `chooseWarpPlan` for fewer.
std::optional<AttentionPlanAttr> choosePlan(sdx::AttentionOp op,
                                            TargetAttr target);
AttentionPlanAttr chooseWarpPlan(sdx::AttentionOp op, TargetAttr target);
/// Whether the number of queries of a head, or that of keys, is open.
bool isOpen(sdx::AttentionOp op);
/// The most blocks that share keys where the device has work for several
/// rounds.
int64_t mostSplits(sdx::AttentionOp op, AttentionPlanAttr plan,
                   TargetAttr target);
/// Why a kernel cannot go by `plan`, the end of a sentence; empty where it can.
std::string whyNot(sdx::AttentionOp op, AttentionPlanAttr plan,
                   TargetAttr target);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONPLAN_H
