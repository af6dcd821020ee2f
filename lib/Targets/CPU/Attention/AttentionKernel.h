//===- AttentionKernel.h - The loops of attention ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task has some queries, of all heads that share keys, and passes the keys
// block by block. Keys and values of a block are packed in panels, so that both
// come from the cache however they lie in memory. Of a softmax a task has, for
// each query, the largest score so far and the sum of exponentials of what
// scores are below it: when the largest score grows, all sums are multiplied by
// a factor (Milakov and Gimelshein 2018; Dao et al. 2022). So the memory that a
// task needs does not hang on the number of keys.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONKERNEL_H
#define SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONKERNEL_H

#include "Attention/AttentionPlan.h"
#include "Kernel/Epilogue.h"

#include "lib/Dispatch/Attention/KeyBounds.h"

namespace sardonyx::cpu {

class AttentionKernel {
public:
  AttentionKernel(const AttentionFacts &facts, AttentionPlanAttr plan,
                  KernelBody &body);

  llvm::LogicalResult verify();
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Some queries that share keys, and the memory for what is made of them.
  struct Task {
    /// Indices of the outer loops that keys have; null for the others.
    Values pair;
    /// The first query, of all that share keys, and how many there are.
    mlir::Value firstQuery, count;
    /// f32: [query, depth], panels of keys [panel, depth, key] and of values
    /// [panel, key, column], scores or probabilities [row, key], sums of values
    /// [query, column], the largest score of each query and, in lanes, sums of
    /// its exponentials. Of bf16 queries, keys, values and `probabilities` are
    /// pairs of neighbours along the depth, or of neighbouring keys, in an i32;
    /// `fewQueries` are f32, and so are the probabilities of few.
    mlir::Value queries, keys, values, scores, sums, largest, totals,
        probabilities, fewQueries;
    /// Some keys, or values, as f32 [key, depth or column], where several
    /// queries read bytes as they lie; null otherwise.
    mlir::Value widened;
    /// Whether its queries are known to be few, though their number is not.
    bool hasFew = false;
    /// Which of some parts of the keys it has; null: it has all keys.
    mlir::Value part, parts;
    /// All of its memory.
    mlir::Value memory;
    /// Limits of keys, if the body has any, for each set of rows (see Limit).
    mlir::Value limits;
  };
  /// What `limits` has of some rows: the first key and the one behind the last
  /// that one of them sees, and that all of them see.
  enum Limit { First, End, FirstOfAll, EndOfAll, NumLimits };
  /// Keys of a block: from `first` on, `count` of them, in `panels`.
  struct Keys {
    mlir::Value first, count, panels;
  };
  /// Rows of a task, from `first` on, of which scores are computed at a time.
  struct Rows {
    mlir::Value first, count;
  };
  /// What scores of a query are changed by, whatever the key.
  struct Query {
    Values indices, elements;
  };

  // AttentionKernel.cpp
  void findSizes(mlir::ImplicitLocOpBuilder &b);
  void allocate(mlir::ImplicitLocOpBuilder &b, Task &task);
  Task startTask(mlir::ImplicitLocOpBuilder &b, mlir::Value pair,
                 mlir::Value firstQuery, bool hasFew = false);
  void clearSums(mlir::ImplicitLocOpBuilder &b, const Task &task);
  void emitLimits(mlir::ImplicitLocOpBuilder &b, const Task &task);
  bool mayRepeat() const;
  mlir::Value emitIsLow(mlir::ImplicitLocOpBuilder &b, const Task &task);
  void emitPasses(mlir::ImplicitLocOpBuilder &b, const Task &task);
  void emitKeys(mlir::ImplicitLocOpBuilder &b, const Task &task,
                mlir::Value isLimited);
  void chooseByQueries(mlir::ImplicitLocOpBuilder &b, const Task &task,
                       llvm::function_ref<void()> few,
                       llvm::function_ref<void()> many);
  void emitResults(mlir::ImplicitLocOpBuilder &b, const Task &task);
  Values findIndices(mlir::ImplicitLocOpBuilder &b, const Task &task,
                     mlir::Value query);
  Values at(mlir::ImplicitLocOpBuilder &b, unsigned operand,
            llvm::ArrayRef<mlir::Value> loops);

  // AttentionOperands.cpp
  void copyQueries(mlir::ImplicitLocOpBuilder &b, const Task &task);
  void packKeys(mlir::ImplicitLocOpBuilder &b, const Task &task,
                const Keys &keys);
  void copyValues(mlir::ImplicitLocOpBuilder &b, const Task &task,
                  const Keys &keys);
  void copyRow(mlir::ImplicitLocOpBuilder &b, mlir::Value source,
               mlir::ValueRange from, mlir::Value dest, mlir::Value row,
               int64_t size);

  // Bf16Operands.cpp
  mlir::Value loadPairs(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                        mlir::ValueRange indices, int64_t count,
                        mlir::Value isThere = nullptr);
  void copyQueryPairs(mlir::ImplicitLocOpBuilder &b, const Task &task);
  void packKeyPairs(mlir::ImplicitLocOpBuilder &b, const Task &task,
                    const Keys &keys);
  void packValuePairs(mlir::ImplicitLocOpBuilder &b, const Task &task,
                      const Keys &keys);

  // AttentionProducts.cpp
  Values emitTile(mlir::ImplicitLocOpBuilder &b, mlir::Value size,
                  int64_t columns,
                  llvm::function_ref<mlir::Value(mlir::Value, int64_t)> lhs,
                  llvm::function_ref<mlir::Value(mlir::Value, int64_t)> rhs);
  void forEachRowTile(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                      llvm::function_ref<void(mlir::Value, int64_t)> emit);
  void emitScores(mlir::ImplicitLocOpBuilder &b, const Task &task,
                  const Rows &rows, const Keys &keys);
  void emitSums(mlir::ImplicitLocOpBuilder &b, const Task &task,
                const Rows &rows, const Keys &keys);

  // FewQueries.cpp
  void emitScoresOfFew(mlir::ImplicitLocOpBuilder &b, const Task &task,
                       const Rows &rows, const Keys &keys);
  void emitSumsOfFew(mlir::ImplicitLocOpBuilder &b, const Task &task,
                     const Rows &rows, const Keys &keys);

  /// Whether few queries read keys and values that were widened first: so many
  /// at a time.
  bool widensForFew() {
    return op.isOfBytes() && !facts.areMany() && facts.queries != 1;
  }
  static constexpr int64_t kWidenedKeys = 32;

  // SplitKeys.cpp
  bool mayBeSplit() const;
  mlir::Value countParts(mlir::ImplicitLocOpBuilder &b);
  void emitSplit(mlir::ImplicitLocOpBuilder &b, mlir::Value parts);

  // AttentionSoftmax.cpp
  Query findQuery(mlir::ImplicitLocOpBuilder &b, const Task &task,
                  mlir::Value query);
  void emitSoftmax(mlir::ImplicitLocOpBuilder &b, const Task &task,
                   const Rows &rows, const Keys &keys, mlir::Value isWithin);
  mlir::Value emitLargest(mlir::ImplicitLocOpBuilder &b, const Task &task,
                          mlir::Value row, const Keys &keys,
                          const Query *query);
  mlir::Value emitLargestOfPanel(mlir::ImplicitLocOpBuilder &b,
                                 const Task &task, mlir::Value row,
                                 const Keys &keys, mlir::Value panel,
                                 const Query *query, mlir::Value count,
                                 mlir::Value largest);
  mlir::Value modify(mlir::ImplicitLocOpBuilder &b, mlir::Value scores,
                     mlir::Value firstKey, const Query &query,
                     mlir::Value mask);
  mlir::Value loadExtra(mlir::ImplicitLocOpBuilder &b, unsigned extra,
                        llvm::ArrayRef<mlir::Value> loops, mlir::Value firstKey,
                        mlir::Value mask);
  mlir::Value emitExp(mlir::ImplicitLocOpBuilder &b, mlir::Value scores,
                      mlir::Value base);
  mlir::Value emitBase(mlir::ImplicitLocOpBuilder &b, mlir::Value largest);
  mlir::Value growTo(mlir::ImplicitLocOpBuilder &b, const Task &task,
                     mlir::Value query, mlir::Value score);
  void storeTerms(mlir::ImplicitLocOpBuilder &b, const Task &task,
                  mlir::Value row, mlir::Value at,
                  llvm::ArrayRef<mlir::Value> terms);
  void emitExponentials(mlir::ImplicitLocOpBuilder &b, const Task &task,
                        mlir::Value row, mlir::Value query, const Keys &keys,
                        mlir::Value largest);

  mlir::VectorType vectorType(mlir::ImplicitLocOpBuilder &b) {
    return mlir::VectorType::get({facts.lanes}, b.getF32Type());
  }
  bool hasLimits() const { return bounds.hasFirst() || bounds.hasEnd(); }
  /// Whether keys may not fill a panel.
  bool hasTail() const {
    return mlir::ShapedType::isDynamic(facts.keys) ||
           facts.keys % facts.panel != 0;
  }

  const AttentionFacts &facts;
  sdx::AttentionOp op;
  const AttentionPlanAttr plan;
  KernelBody &body;
  TileEvaluator evaluator;
  /// What scores are multiplied by before their exponentials are taken.
  const double factor;
  attention::KeyBounds bounds;
  Values sizes; // of all loops
  llvm::SmallVector<unsigned> pairLoops, queryLoops;
  Values pairSizes, querySizes;
  mlir::Value pairs, queries, keys; // how many there are
};

/// `width` elements of f32, or of shorter floats or signed bytes as f32; zeros
/// in lanes that `mask` turns off.
mlir::Value loadWide(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                     mlir::ValueRange indices, int64_t width,
                     mlir::Value mask = nullptr);

/// Two vectors of f32, rounded to bf16, one after the other.
mlir::Value emitRounded(mlir::ImplicitLocOpBuilder &b, mlir::Value low,
                        mlir::Value high);
/// Pairs of bf16 as i32.
mlir::Value emitAsPairs(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);

mlir::Value emitBool(mlir::ImplicitLocOpBuilder &b, bool value);

/// The largest lane of a vector without NaN, or the sum of all lanes.
mlir::Value emitLargestLane(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);
mlir::Value emitSumOfLanes(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONKERNEL_H
