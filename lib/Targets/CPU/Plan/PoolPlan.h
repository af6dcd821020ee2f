//===- PoolPlan.h - How maximum poolings are computed -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of an operation's types and attributes and of the machine, and of
// nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_POOLPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_POOLPLAN_H

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// What is known of a pooling when it is compiled: all sizes, but maybe those
/// of the batch and the channels.
/// What is computed of each window.
enum class PoolKind {
  /// The largest element.
  Max,
  /// The mean of the elements in the input.
  Mean,
  /// The sum of these divided by the window's size.
  MeanWithPads
};

struct PoolFacts {
  PoolFacts(sdx::MaxPoolOp op, TargetAttr target);
  PoolFacts(sdx::AveragePoolOp op, TargetAttr target);

  /// The operation and its attributes.
  mlir::Operation *op;
  PoolKind kind;
  mlir::Value input, init;
  llvm::ArrayRef<int64_t> kernel, strides, padsBegin;

  /// Lanes of the widest vectors, 4 at least.
  int64_t lanes;
  /// Images times channels; those that are not known count as one.
  int64_t planes;
  /// Rows and columns of a plane of the result, or kDynamic.
  int64_t rows, columns;
  /// Columns of the input that windows see, or kDynamic.
  int64_t seen;

private:
  template <typename OpT> PoolFacts(OpT op, PoolKind kind, TargetAttr target);
};

/// The plan that is known to be fastest.
PoolPlanAttr selectPlan(const PoolFacts &facts);

/// A plan says all.
inline PoolPlanAttr completePlan(const PoolFacts &facts, PoolPlanAttr plan) {
  return plan;
}

/// Why a pooling cannot be computed by a plan, as the end of a sentence; empty
/// if it can.
std::string whyNot(const PoolFacts &facts, PoolPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_POOLPLAN_H
