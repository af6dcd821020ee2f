//===- PoolPlan.cpp - How maximum poolings are computed -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/PoolPlan.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The fewest results in a vector: a register of 128 bits.
static constexpr int64_t kMinWidth = 4;
/// The most columns of the input at a time, in vectors.
static constexpr int64_t kMostVectors = 4;

PoolFacts::PoolFacts(sdx::MaxPoolOp op, TargetAttr target)
    : lanes(std::max(kMinWidth, int64_t(target.getVectorBits()) / 32)),
      planes(1), op(op) {
  ArrayRef<int64_t> out = op.getInit().getType().getShape();
  for (int64_t size : out.take_front(2))
    planes *= ShapedType::isDynamic(size) ? 1 : size;
  rows = std::max<int64_t>(out[2], 1);
  columns = out[3];
  int64_t reach = (columns - 1) * op.getStrides()[1] + op.getKernelShape()[1] -
                  op.getPadsBegin()[1];
  seen = std::min(op.getInput().getType().getDimSize(3), reach);
}

PoolPlanAttr cpu::selectPlan(const PoolFacts &facts) {
  // As few as fill the line.
  int64_t width = facts.lanes;
  while (width > kMinWidth && width / 2 >= facts.columns)
    width /= 2;
  int64_t columns = llvm::bit_floor<uint64_t>(
      std::clamp<int64_t>(facts.seen, 1, 2 * facts.lanes));
  // All rows of a plane are a task, unless planes are too few for the threads.
  constexpr int64_t kMinPlanes = 16, kFewRows = 8;
  int64_t rows =
      facts.planes >= kMinPlanes ? facts.rows : std::min(kFewRows, facts.rows);
  return PoolPlanAttr::get(facts.getOp().getContext(), columns, width, rows);
}

std::string cpu::whyNot(const PoolFacts &facts, PoolPlanAttr plan) {
  auto isPowerWithin = [](int64_t number, int64_t least, int64_t most) {
    return llvm::isPowerOf2_64(number) && number >= least && number <= most;
  };
  const int64_t most =
      std::clamp<int64_t>(facts.seen, 1, kMostVectors * facts.lanes);
  if (!isPowerWithin(plan.getColumns(), 1, most))
    return "'columns' must be a power of two from 1 to " + std::to_string(most);
  if (!isPowerWithin(plan.getWidth(), kMinWidth, facts.lanes))
    return "'width' must be a power of two from " + std::to_string(kMinWidth) +
           " to " + std::to_string(facts.lanes);
  if (plan.getRows() < 1 || plan.getRows() > facts.rows)
    return "'rows' must be 1 to " + std::to_string(facts.rows);
  return "";
}
