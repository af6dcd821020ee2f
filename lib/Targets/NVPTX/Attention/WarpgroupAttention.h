//===- WarpgroupAttention.h - Tiles of attention by warpgroups --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup has keys and values copied to shared memory (TMA), others
// multiply what lies there (wgmma), 64 queries each. Scores and factors stay in
// registers: the left-hand side of the second product is there. Barriers tell,
// of each stage, that its keys, or values, are there, and that they are no
// longer needed (Shah et al. 2024).
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_WARPGROUPATTENTION_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_WARPGROUPATTENTION_H

#include "Attention/AttentionTile.h"
#include "Kernel/Warpgroup.h"

namespace sardonyx::nv {

class WarpgroupAttention : public AttentionShare {
public:
  WarpgroupAttention(mlir::Type type, const AttentionPlan &plan,
                     mlir::Value thread)
      : type(type), plan(plan), thread(thread) {}

  Values rows(mlir::ImplicitLocOpBuilder &b) const override;
  Values keys(mlir::ImplicitLocOpBuilder &b) const override;
  Values columns(mlir::ImplicitLocOpBuilder &b) const override;
  int64_t columnWidth() const override { return 2; }
  int64_t threadsOfRow() const override { return 4; }

  /// Elements of a row of a box.
  static constexpr int64_t kBoxCols = kMapRowBytes / 2;

  /// Makes the barriers. All threads call it.
  void begin(mlir::ImplicitLocOpBuilder &b);
  mlir::Value isWorker(mlir::ImplicitLocOpBuilder &b);

  /// The operands, of which boxes are copied.
  struct Sources {
    MappedSource queries, keys, values;
  };
  /// Copies the queries from `row` on, and `count` tiles of keys and values
  /// from tile `from` on. The last warpgroup calls it.
  void copy(mlir::ImplicitLocOpBuilder &b, const Sources &sources,
            mlir::Value row, mlir::Value from, mlir::Value count);

  /// Which of the two that a stage has.
  enum Part { Keys, AllValues };
  void waitForQueries(mlir::ImplicitLocOpBuilder &b);
  void waitForPart(mlir::ImplicitLocOpBuilder &b, Part part, const Ring &ring);
  /// Nobody of the calling warpgroup reads it any more.
  void release(mlir::ImplicitLocOpBuilder &b, Part part, const Ring &ring);

  /// Starts the products of the queries and the keys of a stage, a group.
  Values startScores(mlir::ImplicitLocOpBuilder &b, const Ring &ring);
  /// Starts to add to `sums` those of its values times `factors`, as packPieces
  /// gives them.
  Values startSums(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange factors,
                   const Ring &ring, mlir::ValueRange sums);

private:
  mlir::Value barrierAt(mlir::ImplicitLocOpBuilder &b, int64_t number,
                        mlir::Value stage);
  mlir::Value fullAt(mlir::ImplicitLocOpBuilder &b, Part part,
                     mlir::Value stage);
  mlir::Value freeAt(mlir::ImplicitLocOpBuilder &b, Part part,
                     mlir::Value stage);
  mlir::Value byteOf(mlir::ImplicitLocOpBuilder &b, Part part,
                     mlir::Value stage);
  void copyTile(mlir::ImplicitLocOpBuilder &b, const MappedSource &source,
                mlir::Value row, mlir::Value byte, int64_t boxes,
                int64_t boxRows, mlir::Value barrier);
  void copyPart(mlir::ImplicitLocOpBuilder &b, Part part,
                const MappedSource &source, mlir::Value key, const Ring &ring);

  mlir::Type type;
  AttentionPlan plan;
  mlir::Value thread, bytes;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_WARPGROUPATTENTION_H
