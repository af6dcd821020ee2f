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

#include "MicroKernels/ContractionLoop.h"

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// Convolutions of at most this many output positions may have channels in
/// the lanes of vectors: those whose weights come in blocks of a panel's width.
inline constexpr int64_t kMaxOutputChannelPositions = 64;

/// Whether a size of ConvFacts is not kDynamic.
inline bool isKnown(int64_t size) { return !mlir::ShapedType::isDynamic(size); }

/// Chunks that keep the threads of most machines busy.
inline constexpr int64_t kMinConvChunks = 16;

/// Registers of sums that hide the latency of multiply-adds.
inline constexpr int64_t kMinConvSums = 8;

/// What is known of a convolution when it is compiled. Sizes are kDynamic where
/// they are not.
struct ConvFacts {
  ConvFacts(ConvOp op, TargetAttr target);

  ConvOp getOp() const { return op; }

  TargetAttr target;
  /// Spatial sizes of the input and of the output.
  llvm::SmallVector<int64_t, 3> in, out;
  int64_t images;
  /// Channels and filters of a group, and values of a filter.
  int64_t channels, filters, depth;
  /// Output positions of an image.
  int64_t positions;

  /// Whether there are inputs and outputs, and but for images one knows how
  /// many.
  bool hasKnownSizes() const;
  /// Whether all sizes that products of split filters need are known: all but
  /// the number of images.
  bool hasSizesToSplit() const;
  /// Taps of the kernel.
  int64_t countTaps() const;
  /// Whether each column of the kernel has planes of its own (see
  /// PolyphaseInputs.cpp).
  bool hasTapPhases() const;
  /// Whether an output position and the input that one tap reads for it are
  /// always the same distance apart in memory, edges aside; `polyphase`: in the
  /// planes of such inputs.
  bool readsShifted(bool polyphase) const;
  /// Tiles whose rows divide a block of filters.
  TileShape getTileShape() const;

private:
  ConvOp op;
};

/// The fastest form that is known to fit.
ConvPlanAttr selectPlan(const ConvFacts &facts);

/// Why a convolution cannot be computed by a plan, as the end of a sentence;
/// empty if it can.
std::string whyNot(const ConvFacts &facts, ConvPlanAttr plan);

/// A plan with all numbers of its form: those that are not given are chosen.
ConvPlanAttr completePlan(const ConvFacts &facts, ConvPlanAttr plan);

/// Why the numbers of a plan, whose form fits, do not.
std::string whyNotNumbers(const ConvFacts &facts, ConvPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_CONVPLAN_H
