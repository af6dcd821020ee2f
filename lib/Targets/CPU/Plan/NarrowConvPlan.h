//===- NarrowConvPlan.h - How narrow convolutions are computed --*- C++ -*-===//
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

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_NARROWCONVPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_NARROWCONVPLAN_H

#include "MicroKernels/MicroKernel.h"

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// What is known of a convolution of bytes or bf16 when it is compiled.
struct NarrowConvFacts {
  NarrowConvFacts(NarrowConvOp op, TargetAttr target);

  NarrowConvOp getOp() const { return op; }
  /// Whether windows are rows of the input as it lies.
  bool canBeInPlace() const;
  /// Whether tile registers can read windows from lines of the input with their
  /// pads: neighbours overlap by all but one pixel, and what a line of the
  /// kernel meets follows each other there.
  bool canBeInLines() const;
  /// Bytes of a row that is copied: those of the weights.
  int64_t getRowBytes() const { return 4 * groups; }
  int64_t getRowElements() const { return groups * packing.getDepthGroup(); }
  int64_t getWeightBytes() const {
    return getRowBytes() * panels * kPanelWidth;
  }
  /// Whether values of a window that is read in place fill tile registers.
  bool fillsTilesInPlace() const;

  /// Whether there is one image, which is known.
  bool hasOneImage() const;
  /// Pixels of such a line, and how many output positions follow from it.
  int64_t getPitch() const;
  int64_t getLinePositions() const;
  int64_t countOutputLines() const;
  /// Output lines whose input is copied at once if so many positions are.
  int64_t countChunkLines(int64_t chunkRows) const;

  TargetAttr target;
  /// Output positions of all images, if their number is known.
  std::optional<int64_t> rows;
  int64_t group, channels, filters;
  PackingAttr packing;
  /// Values of a filter, groups of 32 bits of them in the weights, and panels
  /// of the filters of a group.
  int64_t depth, groups, panels;

private:
  NarrowConvOp op;
};

/// The fastest plan that is known to fit.
NarrowConvPlanAttr selectPlan(const NarrowConvFacts &facts);

/// A plan says all.
inline NarrowConvPlanAttr completePlan(const NarrowConvFacts &,
                                       NarrowConvPlanAttr plan) {
  return plan;
}

/// Why a convolution cannot be computed by a plan, as the end of a sentence;
/// empty if it can.
std::string whyNot(const NarrowConvFacts &facts, NarrowConvPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_NARROWCONVPLAN_H
