//===- ChannelWindowPlan.cpp - How windows of channels are computed
//----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/ChannelWindowPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

void ChannelWindowFacts::setSizes(ShapedType init) {
  ArrayRef<int64_t> shape = init.getShape();
  channels = shape.back();
  line = shape[shape.size() - 2];
}

/// Sums are of 32 bits.
ChannelWindowFacts::ChannelWindowFacts(DepthwiseNarrowConvOp op,
                                       TargetAttr target)
    : context(op.getContext()), lanes(std::max<int64_t>(target.getLanes(), 4)),
      positions(target.countVectorRegisters() / 4) {
  setSizes(op.getInit().getType());
}

ChannelWindowFacts::ChannelWindowFacts(ChannelsLastMaxPoolOp op,
                                       TargetAttr target)
    : context(op.getContext()),
      lanes(target.getVectorBits() /
            op.getInput().getType().getElementTypeBitWidth()),
      positions(2) {
  setSizes(op.getInit().getType());
}

ChannelWindowPlanAttr cpu::selectPlan(const ChannelWindowFacts &facts) {
  int64_t lanes = facts.lanes, positions = facts.positions;
  if (!ShapedType::isDynamic(facts.channels))
    while (lanes > 4 && lanes / 2 >= facts.channels)
      lanes /= 2;
  // As few tiles as possible, all alike.
  if (!ShapedType::isDynamic(facts.line) && facts.line > 0)
    positions =
        llvm::divideCeil(facts.line, llvm::divideCeil(facts.line, positions));
  return ChannelWindowPlanAttr::get(facts.context, lanes, positions);
}

std::string cpu::whyNot(const ChannelWindowFacts &facts,
                        ChannelWindowPlanAttr plan) {
  if (!llvm::isPowerOf2_64(plan.getLanes()) || plan.getLanes() > facts.lanes)
    return "'lanes' must be a power of two, at most " +
           std::to_string(facts.lanes);
  constexpr int64_t kMostPositions = 16;
  if (plan.getPositions() < 1 || plan.getPositions() > kMostPositions)
    return "'positions' must be 1 to " + std::to_string(kMostPositions);
  return "";
}
