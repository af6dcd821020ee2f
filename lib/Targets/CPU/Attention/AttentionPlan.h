//===- AttentionPlan.h - How attention is computed --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of an operation's types, attributes and body and of the machine,
// and of nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONPLAN_H

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// What is known of attention when it is compiled. Sizes are kDynamic where
/// they are not.
struct AttentionFacts {
  AttentionFacts(sdx::AttentionOp op, TargetAttr target);

  /// Its operands and results stay what they are.
  sdx::AttentionOp getOp() const { return op; }

  /// What products are computed by: multiply-adds of f32, or, where operands
  /// are bf16 or may be rounded to it, instructions that multiply pairs of
  /// these, on vectors or on tile registers.
  enum class Products { F32, Pairs, Tiles };

  TargetAttr target;
  Products products;
  /// Lanes of a vector; keys of a packed panel, two vectors; queries of a
  /// register tile.
  int64_t lanes, panel, tileRows;
  /// How many sets of keys there are, queries that share one, and keys in it.
  int64_t pairs, queries, keys;
  int64_t depth, columns;
  /// Of so many queries or fewer, products are computed on keys and values as
  /// they lie: packing them would take longer.
  static constexpr int64_t kFewQueries = 8;
  /// Whether there are few, or many; neither where it is not known.
  bool areFew() const { return queries >= 0 && queries <= kFewQueries; }
  bool areMany() const { return queries > kFewQueries; }
  bool areBf16() const { return products != Products::F32; }
  bool areTiles() const { return products == Products::Tiles; }
  /// Columns as whole vectors, or pairs of tile registers.
  int64_t paddedColumns() const {
    return llvm::alignTo(columns, areTiles() ? panel : lanes);
  }
  /// Pairs of values along the depth, as whole vectors of them.
  int64_t pairsOfDepth() const {
    return llvm::divideCeil(depth, panel) * lanes;
  }

private:
  sdx::AttentionOp op;
};

/// The plan that is known to be fastest.
AttentionPlanAttr selectPlan(const AttentionFacts &facts);

/// A plan says all.
inline AttentionPlanAttr completePlan(const AttentionFacts &facts,
                                      AttentionPlanAttr plan) {
  return plan;
}

/// Why attention cannot be computed by a plan, as the end of a sentence; empty
/// if it can.
std::string whyNot(const AttentionFacts &facts, AttentionPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ATTENTION_ATTENTIONPLAN_H
