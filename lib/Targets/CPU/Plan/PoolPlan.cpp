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

template <typename OpT>
PoolFacts::PoolFacts(OpT op, PoolKind kind, TargetAttr target)
    : op(op), kind(kind), input(op.getInput()), init(op.getInit()),
      kernel(op.getKernelShape()), strides(op.getStrides()),
      padsBegin(op.getPadsBegin()),
      lanes(std::max(kMinWidth, int64_t(target.getVectorBits()) / 32)),
      planes(1), seen(ShapedType::kDynamic) {
  ArrayRef<int64_t> out = op.getInit().getType().getShape();
  for (int64_t size : out.take_front(2))
    planes *= ShapedType::isDynamic(size) ? 1 : size;
  rows = out[2];
  columns = out[3];
  int64_t in = op.getInput().getType().getDimSize(3);
  if (!ShapedType::isDynamic(in) && !ShapedType::isDynamic(columns))
    seen = std::min(in, (columns - 1) * strides[1] + kernel[1] - padsBegin[1]);
}

PoolFacts::PoolFacts(sdx::MaxPoolOp op, TargetAttr target)
    : PoolFacts(op, PoolKind::Max, target) {}

PoolFacts::PoolFacts(sdx::AveragePoolOp op, TargetAttr target)
    : PoolFacts(
          op, op.getCountIncludePad() ? PoolKind::MeanWithPads : PoolKind::Mean,
          target) {}

/// The most of `size` elements that a plan may take together.
static int64_t limit(int64_t size, int64_t most) {
  return ShapedType::isDynamic(size) ? most
                                     : std::clamp<int64_t>(size, 1, most);
}

PoolPlanAttr cpu::selectPlan(const PoolFacts &facts) {
  // As few as fill the line.
  int64_t width = facts.lanes;
  while (width > kMinWidth && !ShapedType::isDynamic(facts.columns) &&
         width / 2 >= facts.columns)
    width /= 2;
  int64_t columns =
      ShapedType::isDynamic(facts.seen)
          ? facts.lanes
          : llvm::bit_floor<uint64_t>(limit(facts.seen, 2 * facts.lanes));
  // All rows of a plane are a task, unless planes are too few for the threads.
  constexpr int64_t kMinPlanes = 16, kFewRows = 8, kManyRows = 64;
  int64_t rows = facts.planes < kMinPlanes ? limit(facts.rows, kFewRows)
                 : ShapedType::isDynamic(facts.rows) ? kManyRows
                                                     : facts.rows;
  return PoolPlanAttr::get(facts.op->getContext(), columns, width, rows);
}

std::string cpu::whyNot(const PoolFacts &facts, PoolPlanAttr plan) {
  auto isPowerWithin = [](int64_t number, int64_t least, int64_t most) {
    return llvm::isPowerOf2_64(number) && number >= least && number <= most;
  };
  const int64_t most = limit(facts.seen, kMostVectors * facts.lanes);
  if (!isPowerWithin(plan.getColumns(), 1, most))
    return "'columns' must be a power of two from 1 to " + std::to_string(most);
  if (!isPowerWithin(plan.getWidth(), kMinWidth, facts.lanes))
    return "'width' must be a power of two from " + std::to_string(kMinWidth) +
           " to " + std::to_string(facts.lanes);
  const int64_t mostRows = limit(facts.rows, INT32_MAX);
  if (plan.getRows() < 1 || plan.getRows() > mostRows)
    return "'rows' must be 1 to " + std::to_string(mostRows);
  return "";
}
