//===- ConvPlan.h - How convolutions are computed ---------------*- C++ -*-===//
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

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_CONVPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_CONVPLAN_H

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// Convolutions of at most this many output positions may have channels in
/// the lanes of vectors: those whose weights come in blocks of a panel's width.
inline constexpr int64_t kMaxOutputChannelPositions = 64;

/// What is known of a convolution when it is compiled. Sizes are kDynamic where
/// they are not.
struct ConvFacts {
  ConvFacts(ConvOp op, TargetAttr target);

  ConvOp getOp() const { return op; }

  TargetAttr target;
  /// Spatial sizes of the input and of the output.
  llvm::SmallVector<int64_t, 3> in, out;
  /// Channels and filters of a group.
  int64_t channels, filters;
  /// Output positions of an image.
  int64_t positions;

  /// Whether there are inputs and outputs, and but for images one knows how
  /// many.
  bool hasKnownSizes() const;
  /// Taps of the kernel.
  int64_t countTaps() const;
  /// Whether each column of the kernel has planes of its own (see
  /// PolyphaseInputs.cpp). Sizes are known.
  bool hasTapPhases() const;

private:
  ConvOp op;
};

/// The fastest form that is known to fit.
ConvPlanAttr selectPlan(const ConvFacts &facts);

/// Why a convolution cannot be computed by a plan, as the end of a sentence;
/// empty if it can.
std::string whyNot(const ConvFacts &facts, ConvPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_CONVPLAN_H
