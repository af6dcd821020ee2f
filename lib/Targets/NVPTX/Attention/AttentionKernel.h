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

#include "Attention/WarpgroupAttention.h"
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
  /// Whether a head has so many queries and keys, which the host counts, that
  /// warpgroups are faster.
  mlir::Value isLong(mlir::ImplicitLocOpBuilder &b);
  /// Puts the loop over the blocks at the builder's place. Where `onlyIf` is
  /// there and does not hold there are none.
  void emit(mlir::ImplicitLocOpBuilder &b, mlir::Value onlyIf = {});

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
  mlir::Value findTile(mlir::ImplicitLocOpBuilder &b, mlir::Value id);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value id);
  void findRows(mlir::ImplicitLocOpBuilder &b, const AttentionShare &ofThread);
  void finish(mlir::ImplicitLocOpBuilder &b, const State &state,
              mlir::Value part);
  State startState(mlir::ImplicitLocOpBuilder &b);
  Row findRow(mlir::ImplicitLocOpBuilder &b, mlir::Value pair,
              mlir::Value number);
  TileSource findSource(unsigned operand, mlir::Value pair);
  mlir::Value countKeys(mlir::ImplicitLocOpBuilder &b, bool ofAll);
  State emitKeys(mlir::ImplicitLocOpBuilder &b, mlir::Value from,
                 mlir::Value count);
  State emitTile(mlir::ImplicitLocOpBuilder &b, Values scores,
                 mlir::Value firstKey, mlir::Value exchange, mlir::Value values,
                 mlir::Value offset, const State &state);
  void modifyScores(mlir::ImplicitLocOpBuilder &b, Values &scores,
                    mlir::Value firstKey);
  void modifyEach(mlir::ImplicitLocOpBuilder &b, Values &scores,
                  mlir::Value firstKey, bool mayPass);
  Values loadExtras(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange indices);
  mlir::Value addRow(mlir::ImplicitLocOpBuilder &b, size_t row,
                     llvm::MutableArrayRef<mlir::Value> scores, State &state);
  Values addRows(mlir::ImplicitLocOpBuilder &b, Values &scores, State &state);
  void scaleValues(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange factors,
                   State &state);
  mlir::Value combineRow(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                         bool isSum);
  void combineSums(mlir::ImplicitLocOpBuilder &b, State &state);
  void emitResults(mlir::ImplicitLocOpBuilder &b, State state);
  void storePartials(mlir::ImplicitLocOpBuilder &b, const State &state,
                     mlir::Value part);
  void emitSums(mlir::ImplicitLocOpBuilder &b);
  /// Neighbouring columns that are there or not together.
  int64_t width(int64_t most);
  using EmitColumns =
      llvm::function_ref<void(size_t row, size_t first, mlir::Value column)>;
  void forEachPiece(mlir::ImplicitLocOpBuilder &b, EmitColumns emitColumns);
  void emitPoints(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange indices,
                  mlir::Value column, mlir::ValueRange values);

  // By warpgroups.
  MappedSource mapOperand(mlir::ImplicitLocOpBuilder &b, unsigned operand,
                          unsigned rowLoop, int64_t boxRows);
  WarpgroupAttention::Sources mapOperands(mlir::ImplicitLocOpBuilder &b);
  void emitWarpgroups(mlir::ImplicitLocOpBuilder &b, mlir::Value part,
                      mlir::Value from, mlir::Value count);
  State emitKeysOfGroup(mlir::ImplicitLocOpBuilder &b,
                        WarpgroupAttention &groups, mlir::Value from,
                        mlir::Value count);
  Values emitTilesOfGroup(mlir::ImplicitLocOpBuilder &b,
                          WarpgroupAttention &groups, mlir::Value from,
                          mlir::Value count);
  Values emitFactors(mlir::ImplicitLocOpBuilder &b, Values scores,
                     mlir::Value firstKey, State &state, Values &factors);

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
  /// Whether the kernel is wanted, for the host; null: always.
  mlir::Value isWanted;
  WarpgroupAttention::Sources sources;
  // Of the block that is emitted.
  std::unique_ptr<AttentionTile> tile;
  const AttentionShare *share = nullptr;
  mlir::Value thread, pair, row0;
  mlir::Value seenByAll; // how many keys all of its queries see
  llvm::SmallVector<Row> rowsOfThread;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONKERNEL_H
