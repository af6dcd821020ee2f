//===- AttentionKernel.h - A kernel around attention ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores of a tile of queries and one of keys, and sums of values, are in
// registers, while the next keys and values are on their way to shared memory.
// Of the softmax a thread has, for each of its queries, the largest score so
// far and the sum of exponentials of what scores are below it: when the largest
// score grows, all sums are multiplied by a factor (Milakov and Gimelshein
// 2018; Dao et al. 2022). Where queries are few, blocks share the keys, and a
// second kernel adds up what they have.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONKERNEL_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONKERNEL_H

#include "Attention/AttentionTile.h"
#include "Kernel/PointEvaluator.h"

#include "lib/Dispatch/Attention/ScoreModifier.h"

namespace sardonyx::nv {

class AttentionKernel {
public:
  AttentionKernel(sdx::AttentionOp op, const AttentionPlan &plan,
                  KernelBody &body);

  /// Whether all that the kernel computes can be computed so; the caller has
  /// another way.
  bool isPossible();
  /// Puts the loop over the blocks at the builder's place.
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  using Values = llvm::SmallVector<mlir::Value>;

  /// A query of the thread.
  struct Row {
    mlir::Value number, exists; // of all that share keys
    Values indices;             // of the loops before that over keys
  };
  /// What a thread has of its queries: for each the largest score, times
  /// log2(e), the sum of exponentials of its own keys, and sums of values.
  struct State {
    Values largest, sums, values;
    Values flatten() const;
    State unflatten(mlir::ValueRange all) const;
  };

  void findSizes(mlir::ImplicitLocOpBuilder &b);
  mlir::Value countParts(mlir::ImplicitLocOpBuilder &b);
  mlir::Value allocatePartials(mlir::ImplicitLocOpBuilder &b);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value id);
  Row findRow(mlir::ImplicitLocOpBuilder &b, mlir::Value pair,
              mlir::Value number);
  TileSource findSource(unsigned operand, mlir::Value pair);
  mlir::Value countKeys(mlir::ImplicitLocOpBuilder &b, bool ofAll);
  State emitKeys(mlir::ImplicitLocOpBuilder &b, mlir::Value pair,
                 mlir::Value from, mlir::Value count);
  State emitTile(mlir::ImplicitLocOpBuilder &b, Values scores,
                 mlir::Value firstKey, mlir::Value exchange, mlir::Value values,
                 mlir::Value offset, const State &state);
  void modifyScores(mlir::ImplicitLocOpBuilder &b, Values &scores,
                    mlir::Value firstKey);
  void modifyEach(mlir::ImplicitLocOpBuilder &b, Values &scores,
                  mlir::Value firstKey, bool mayPass);
  Values loadExtras(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange indices);
  void addRow(mlir::ImplicitLocOpBuilder &b, size_t row,
              llvm::MutableArrayRef<mlir::Value> scores, State &state);
  mlir::Value combineRow(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                         bool isSum);
  void emitResults(mlir::ImplicitLocOpBuilder &b, State state);
  void storePartials(mlir::ImplicitLocOpBuilder &b, const State &state,
                     mlir::Value part, mlir::Value pair);
  void emitSums(mlir::ImplicitLocOpBuilder &b);
  /// Neighbouring columns that are there or not together.
  int64_t width(int64_t most);
  using EmitColumns =
      llvm::function_ref<void(size_t row, size_t first, mlir::Value column)>;
  void forEachPiece(mlir::ImplicitLocOpBuilder &b, EmitColumns emitColumns);
  void emitPoints(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange indices,
                  mlir::Value column, mlir::ValueRange values);

  sdx::AttentionOp op;
  AttentionPlan plan;
  KernelBody &body;
  PointEvaluator points;
  attention::ScoreModifier modifier;
  Values sizes; // of all loops
  llvm::SmallVector<unsigned> pairLoops, rowLoops;
  Values pairSizes, rowSizes;
  mlir::Value pairs, rows, tiles; // of rows
  mlir::Value parts;              // blocks that share keys
  mlir::Value partials;
  // Of the block that is emitted.
  std::unique_ptr<AttentionTile> tile;
  mlir::Value thread, row0;
  mlir::Value seenByAll; // how many keys all of its queries see
  llvm::SmallVector<Row> rowsOfThread;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONKERNEL_H
