//===- ChannelWindowPlan.h - How windows are computed --------------*- C++
//-*-===//
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

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_CHANNELWINDOWPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_CHANNELWINDOWPLAN_H

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// What is known of windows of single channels when they are compiled.
struct ChannelWindowFacts {
  ChannelWindowFacts(DepthwiseNarrowConvOp op, TargetAttr target);
  ChannelWindowFacts(ChannelsLastMaxPoolOp op, TargetAttr target);

  mlir::MLIRContext *context;
  /// The most lanes of a vector, and positions whose vectors leave registers
  /// for the rest.
  int64_t lanes, positions;
  /// Channels, and positions in a line of outputs; kDynamic where not known.
  int64_t channels, line;

private:
  void setSizes(mlir::ShapedType init);
};

/// The plan that is known to be fastest.
ChannelWindowPlanAttr selectPlan(const ChannelWindowFacts &facts);

/// A plan says all.
inline ChannelWindowPlanAttr completePlan(const ChannelWindowFacts &,
                                          ChannelWindowPlanAttr plan) {
  return plan;
}

/// Why windows cannot be computed by a plan, as the end of a sentence; empty if
/// they can.
std::string whyNot(const ChannelWindowFacts &facts, ChannelWindowPlanAttr plan);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_CHANNELWINDOWPLAN_H
